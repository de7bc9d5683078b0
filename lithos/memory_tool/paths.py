"""Paths below `/memories`, and the refusal of every path that may leave it (docs/spec/memory-tool.md §2)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from attrs import frozen

from lithos.memory_tool.refusals import Refusal

ROOT: Final = "/memories"
#: Maximum number of characters of a path.
MOST_CHARACTERS: Final = 1_000
#: Maximum number of folders and files in a path.
MOST_SEGMENTS: Final = 16
#: Maximum number of bytes of a name, which leaves space for a suffix within the limit of file systems (255).
MOST_BYTES: Final = 200
#: Maximum number of times that a path is percent-decoded for the check. `%2525…` is longer than a usual name.
_MOST_DECODINGS: Final = 8
#: Characters that are drawn like a slash or backslash, but have no such compatibility form.
_SLASHES: Final = str.maketrans(dict.fromkeys("∕⧸╱⟋", "/") | dict.fromkeys("⧵∖⧹╲⟍", "\\"))


@frozen
class MemoryPath:
    """A path below `/memories`: names without `..`, hidden names and special characters."""

    #: The path as the caller wrote it. Answers repeat it.
    given: str
    #: Names of the folders and the file. The root has no names.
    names: tuple[str, ...]

    @property
    def is_root(self) -> bool:
        """Return whether the path is `/memories` itself."""
        return not self.names

    @property
    def relative(self) -> str:
        """Return the path below `/memories`, without a leading slash."""
        return "/".join(self.names)

    @property
    def normal(self) -> str:
        """Return the path from `/memories` on, without repeated or trailing slashes."""
        return "/".join((ROOT, *self.names))

    def is_below(self, other: MemoryPath) -> bool:
        """Return whether this path is in the folder `other`."""
        return len(self.names) > len(other.names) and self.names[: len(other.names)] == other.names


def parse_path(given: object) -> MemoryPath:
    """Return the path, or raise `Refusal` if it is not safely below `/memories`."""
    if not isinstance(given, str):
        raise Refusal(f"A path must be a text such as {ROOT}/notes.md, got: {given!r:.100}")
    if len(given) > MOST_CHARACTERS:
        raise Refusal(f"A path has at most {MOST_CHARACTERS:,} characters, got {len(given):,}.")
    if given != ROOT and not given.startswith(f"{ROOT}/"):
        raise Refusal(f"Path must start with {ROOT}, got: {shown(given)}")
    for form in _forms(given):
        _check_form(given, form)
    names = tuple(name for name in given.split("/")[2:] if name not in ("", "."))
    if len(names) > MOST_SEGMENTS:
        raise Refusal(f"Path {shown(given)} has {len(names)} levels. Use at most {MOST_SEGMENTS}.")
    for name in names:
        _check_name(given, name)
    return MemoryPath(given.rstrip("/"), names)


def shown(text: str) -> str:
    """Return a path for a message. Characters that cannot be printed or encoded are escaped."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _forms(given: str) -> Iterator[str]:
    """Yield the path in every form in which a file system, server or reader may understand it."""
    yield given
    decoded = given
    for _ in range(_MOST_DECODINGS):
        folded = unicodedata.normalize("NFKC", _without_ignorable(decoded)).translate(_SLASHES)
        yield folded
        decoded, before = unquote(folded), decoded
        if decoded in (before, folded):
            return
    raise Refusal(f"Path {shown(given)} would escape {ROOT} directory: it is percent-encoded too often.")


def _without_ignorable(text: str) -> str:
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf")


def _check_form(given: str, form: str) -> None:
    """Raise `Refusal` if this form of the path has a part that leads elsewhere."""
    names, own = form.split("/"), given.split("/")
    leaves = "\\" in form or ".." in names or len(names) != len(own)
    # A name that another reader takes for a dot or a hidden name is refused too.
    hides = form != given and (
        names.count(".") != own.count(".")
        or any(name.strip().startswith(".") and name != "." for name in names)
    )
    if leaves or hides:
        raise Refusal(f"Path {shown(given)} would escape {ROOT} directory")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in form):
        raise Refusal(f"Path {shown(given)} has a control character. Use another name.")


def _check_name(given: str, name: str) -> None:
    folded = unicodedata.normalize("NFKC", _without_ignorable(name)).strip()
    if folded.startswith(".") or not folded:
        raise Refusal(
            f"Path {shown(given)} has a hidden name ({shown(name)!r}). "
            f"Names below {ROOT} must not begin with a dot."
        )
    if folded != folded.rstrip(".") or name != name.strip():
        raise Refusal(
            f"Path {shown(given)} has a name that not every disk can store ({shown(name)!r}). "
            "A name must not begin with a space, or end in a space or a full stop."
        )
    if len(name.encode()) > MOST_BYTES:
        raise Refusal(f"A name has at most {MOST_BYTES} bytes, got {len(name.encode())}. Use a shorter name.")
