"""What an indexer is told, what it answers, and what it needs of its index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.actors.kit import Mailbox
from lithos.core.model import Document


class Indexed(Enum):
    """What became of a change: `DONE` is searchable, `DEFERRED` waits for the embedding model."""

    DONE = "done"
    DEFERRED = "deferred"


@frozen
class Upsert:
    """Index a note. A repair is dropped when the note has changed since it was read."""

    entry: Entry
    document: Document
    repair: bool = False


@frozen
class Removal:
    """Drop a note from the index."""

    serial: int


@frozen
class Slice:
    """Many notes as one message, so that they are indexed in one batch."""

    upserts: tuple[Upsert, ...]


@frozen
class Hurry:
    """Somebody waits for what was queued before this."""


IndexMessage = Upsert | Removal | Slice | Hurry
IndexMailbox = Mailbox[IndexMessage, Indexed]


def spread(messages: Sequence[IndexMessage]) -> Iterator[Upsert | Removal]:
    """The single changes in the messages, in order."""
    for message in messages:
        if isinstance(message, Slice):
            yield from message.upserts
        elif not isinstance(message, Hurry):
            yield message


class Index(Protocol):
    """A search index as its indexer sees it; the methods block."""

    def is_ready(self) -> bool:
        """False until changes can be applied; they are deferred meanwhile."""
        ...

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        """Make the changes searchable, all or none; raises `IndexFailed`."""
        ...

    def stamps(self) -> Mapping[int, int]:
        """What the index holds: number to stamp."""
        ...

    def expected(self, entry: Entry) -> int:
        """The stamp the index should hold for this note."""
        ...
