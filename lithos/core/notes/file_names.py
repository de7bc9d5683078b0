"""The names of all other files of a vault: what a link leads to that is no note, and yet not broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from lithos.core.notes.links import LONGEST_NAME
from lithos.core.text.analysis import normalise

#: Files that are remembered. In a vault with more of them a link to any name with a suffix counts as right.
MOST: Final = 100_000


class FileNames:
    """Attachments by name, ci: a link need not say the folder."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._names: Counter[str] = Counter()
        self._is_full = False
        for path in paths:
            self.add(path)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, target: object) -> bool:
        """Whether a link target, with or without an anchor, leads to one of the files."""
        if not isinstance(target, str) or len(target) > LONGEST_NAME:
            return False
        name = _name(target.partition("#")[0])
        return name in self._names or (self._is_full and "." in name)

    def paths(self) -> frozenset[str]:
        """All of them as they are now: two milliseconds for the most there are."""
        return frozenset(self._paths)

    def add(self, path: str) -> bool:
        """Remember a file, by its path in the vault; False when it is known, or there is no room."""
        if path in self._paths:
            return False
        if len(self._paths) >= MOST:
            self._is_full = True
            return False
        self._paths.add(path)
        self._names[_name(path)] += 1
        return True

    def discard(self, path: str) -> bool:
        """Forget a file; False when it is not known."""
        if path not in self._paths:
            return False
        self._paths.remove(path)
        name = _name(path)
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name]
        return True


def _name(path: str) -> str:
    return normalise("NFC", path.rpartition("/")[2]).strip().casefold()


def same_name(paths: Iterable[str], target: str) -> str | None:
    """The first path, by folder and alphabet, whose file has the name of a link target; None without one."""
    wanted = _name(target.partition("#")[0])
    return min(
        (path for path in paths if _name(path) == wanted),
        key=lambda path: (path.count("/"), path),
        default=None,
    )
