"""Translation of exceptions into error messages of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lithos.actors.kit import ActorGaveUp
from lithos.cli.session import CommandFailed
from lithos.front.bridge.client import OwnerRefuses, OwnerUnreachable
from lithos.front.server.sockets import CannotListen
from lithos.stores.lock import AlreadyOwned
from lithos.stores.migrations import NewerLayout
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed
from lithos.tools.contract.arguments import ArgumentFault

OWNED = 4

_KNOWN = (
    ActorGaveUp,
    AlreadyOwned,
    ArgumentFault,
    CannotListen,
    CommandFailed,
    CorruptDatabase,
    DatabaseFailed,
    NewerLayout,
    OSError,
    OwnerRefuses,
    OwnerUnreachable,
)


@contextmanager
def explained_failures() -> Iterator[None]:
    """Turn what the block may fail with, alone or in groups, into `CommandFailed`; bugs pass through."""
    try:
        yield
    except (ExceptionGroup, *_KNOWN) as failure:
        explained = next(filter(None, map(_explain, _leaves(failure))), None)
        if explained is None:
            raise
        raise explained from None


def _leaves(failure: BaseException) -> Iterator[BaseException]:
    if isinstance(failure, BaseExceptionGroup):
        for inner in failure.exceptions:
            yield from _leaves(inner)
    else:
        yield failure


def _explain(failure: BaseException) -> Exception | None:
    match failure:
        case CommandFailed() | BrokenPipeError():
            return failure
        case AlreadyOwned() | OwnerRefuses():
            return CommandFailed(str(failure), OWNED)
        case CannotListen() | OwnerUnreachable() | ArgumentFault() | NewerLayout():
            return CommandFailed(str(failure))
        case CorruptDatabase():
            return CommandFailed(
                f"{failure}. It holds tasks, claims and the event journal, so nothing was started. "
                "Restore it from a backup, or move the file away to begin without them."
            )
        case ActorGaveUp():
            return CommandFailed(f"A part of the server failed again and again: {failure}")
        case DatabaseFailed():
            return CommandFailed(
                f"A database in the data directory cannot be used: {failure}. Check that the directory is "
                "writable and the disk has space."
            )
        case OSError():
            return CommandFailed(
                f"A file or folder cannot be used: {failure}. Check that it is readable, "
                "that the data directory is writable and that the disk has space."
            )
    return None
