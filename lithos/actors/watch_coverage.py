"""Whether notifications can come from every folder.

Linux watches each folder by itself, and each user may have so many watches
(`fs.inotify.max_user_watches`, shared with editors and sync programs). Beyond that the library watches
the rest of the tree not at all and says nothing. What the kernel holds for this process is counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lithos.actors.blocking import Blocking
from lithos.stores.files import NoteFiles

#: A folder that was made this moment has no watch yet: a shortage must last for some looks.
LOOKS = 3
_DESCRIPTORS = "/proc/self/fd"
_DETAILS = "/proc/self/fdinfo"


class Coverage:
    """Compares folders with watches whenever something gave reason to."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._files = files
        self._blocking = blocking
        self._is_doubted = True
        self._short = 0

    @property
    def is_short(self) -> bool:
        """True while folders are known to be without a watch."""
        return self._short >= LOOKS

    def doubt(self) -> None:
        """Folders may have come."""
        self._is_doubted = True

    async def shortage(self) -> str | None:
        """What a person has to know about missing watches."""
        if self._is_doubted:
            folders, watches = await self._blocking.run(self._count)
            self._is_doubted = False
            if watches is None or watches >= folders:
                self._short = 0
            else:
                self._short = min(self._short + 1, LOOKS)
                self._is_doubted = not self.is_short
        if not self.is_short:
            return None
        return (
            "notifications do not come from every folder, for the system's limit of watches is reached; "
            "raise fs.inotify.max_user_watches and start again"
        )

    def _count(self) -> tuple[int, int | None]:
        return sum(1 for _ in _folders(os.path.realpath(self._files.root))), count_watches()


def count_watches() -> int | None:
    """Folders that this process has notifications of; None where the system does not tell. Blocks."""
    try:
        descriptors = os.listdir(_DESCRIPTORS)
    except OSError:
        return None
    number = 0
    for descriptor in descriptors:
        try:
            if os.readlink(f"{_DESCRIPTORS}/{descriptor}") != "anon_inode:inotify":
                continue
            with open(f"{_DETAILS}/{descriptor}") as details:
                number += sum(line.startswith("inotify wd:") for line in details)
        except OSError:
            continue  # closed meanwhile
    return number


def _folders(top: str) -> Iterator[str]:
    """Every folder that may be listed, dot-named ones as well: they take watches, too."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield folder
