"""What is said of note files: their states, the changes to make, and why one was not made."""

from __future__ import annotations

import os

from attrs import frozen

#: What SQLite's integers hold; some file systems have later times, and no one compares those.
_LATEST_NS = 2**63 - 1


@frozen
class FileState:
    """What tells one state of a file from another: size in bytes, mtime in nanoseconds."""

    size: int
    mtime_ns: int


@frozen
class FoundFile:
    """A note file met while listing; `path` is relative to `knowledge/`, with `/`."""

    path: str
    state: FileState


@frozen
class ReadFile:
    """The bytes of a note file and the state they were read in."""

    data: bytes
    state: FileState


@frozen
class Put:
    """Write `data` to `path`.

    `expected` is the state the caller decided upon; `None` means the file must not exist yet.
    """

    path: str
    data: bytes
    expected: FileState | None


@frozen
class Remove:
    """Delete the file at `path`."""

    path: str


class OutsideKnowledge(Exception):
    """The path leads out of `knowledge/` through a symlink."""


class FileChanged(Exception):
    """The file is not in the expected state any more: decide again."""


class FileOccupied(Exception):
    """A file that must not exist exists."""


class NotSynced(OSError):
    """The change is carried out, but the disk did not confirm it: a power failure may undo it.

    `state` is that of the written file, `None` after a removal.
    """

    def __init__(self, failure: OSError, state: FileState | None) -> None:
        super().__init__(failure.errno, failure.strerror)
        self.state = state


def state_of(status: os.stat_result) -> FileState:
    """The state that a look at a file shows."""
    return FileState(status.st_size, max(-_LATEST_NS, min(status.st_mtime_ns, _LATEST_NS)))
