"""Translation of exceptions into command-line error messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lithos.kernel.actors.mailboxes import ActorGaveUp
from lithos.kernel.databases.database import DatabaseLost
from lithos.kernel.databases.lock import AlreadyOwned, NoLocks
from lithos.kernel.databases.migrations import NewerLayout
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.values.errors import leaves_of
from lithos.server.command.session import CommandFailed
from lithos.server.http.sockets import CannotListen
from lithos.server.mcp.client import OwnerRefuses, OwnerUnreachable
from lithos.server.tools.arguments import ArgumentFault

OWNED = 4

#: Message and exit code for each exception class. The first class that matches an exception counts.
_WORDS: Final[Mapping[type[Exception], tuple[str, int]]] = {
    **dict.fromkeys((AlreadyOwned, OwnerRefuses), ("{}", OWNED)),
    **dict.fromkeys((DatabaseLost, NoLocks), ("{}.", 1)),
    **dict.fromkeys((CannotListen, OwnerUnreachable, ArgumentFault, NewerLayout), ("{}", 1)),
    CorruptDatabase: (
        "{}. The file contains tasks, claims and the event journal, so nothing was started. Restore "
        "the file from a backup, or move it away to begin without them.",
        1,
    ),
    ActorGaveUp: ("A part of the server failed several times: {}", 1),
    DatabaseFailed: (
        "A database in the data directory cannot be used: {}. Check that the directory is "
        "writable and the disk has free space and inodes.",
        1,
    ),
    OSError: (
        "A file or folder cannot be used: {}. Check that it is readable, "
        "that the data directory is writable and that the disk has free space and inodes.",
        1,
    ),
}


_KNOWN: Final[tuple[type[Exception], ...]] = (ExceptionGroup, CommandFailed, *_WORDS)


@contextmanager
def explained_failures() -> Iterator[None]:
    """Turn expected failures of the block into `CommandFailed`, including failures in exception groups.

    Unexpected exceptions (bugs) are not changed.
    """
    try:
        yield
    except _KNOWN as failure:
        explained = next(filter(None, map(_explain, leaves_of(failure))), None)
        if explained is None:
            raise
        raise explained from None


def _explain(failure: BaseException) -> Exception | None:
    if isinstance(failure, CommandFailed | BrokenPipeError):
        return failure
    words = next((words for kind, words in _WORDS.items() if isinstance(failure, kind)), None)
    return None if words is None else CommandFailed(words[0].format(failure), words[1])
