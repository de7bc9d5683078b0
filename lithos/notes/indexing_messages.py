"""Messages of an indexer, its reply, and the port (`Index`) through which it changes its search index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

from attrs import frozen

from lithos.kernel.actors.mailboxes import Mailbox
from lithos.kernel.values.messages import Command
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.model.note import Document


class Indexed(Enum):
    """The reply to a change: `DONE` is searchable, `DEFERRED` waits for the embedding model."""

    DONE = "done"
    DEFERRED = "deferred"


@frozen
class Upsert(Command[Indexed]):
    """Insert or replace a note in the index. A stale repair (the note has changed since) is dropped."""

    entry: Entry
    document: Document
    repair: bool = False


@frozen
class Removal(Command[Indexed]):
    """Delete a note from the index."""

    serial: int


@frozen
class Slice(Command[Indexed]):
    """Bulk upsert: many notes as one message, so that they are indexed in one batch."""

    upserts: tuple[Upsert, ...]


@frozen
class FlushIndex(Command[Indexed]):
    """Flush request: a caller waits for the changes queued before this, so the batch must not linger."""


IndexMessage = Upsert | Removal | Slice | FlushIndex
IndexMailbox = Mailbox[IndexMessage]


def spread(messages: Sequence[IndexMessage]) -> Iterator[Upsert | Removal]:
    """Flatten messages into single changes, in order."""
    for message in messages:
        if isinstance(message, Slice):
            yield from message.upserts
        elif not isinstance(message, FlushIndex):
            yield message


class Index(Protocol):
    """A search index as its indexer sees it; the methods block."""

    def is_ready(self) -> bool:
        """False until changes can be applied; they are deferred meanwhile."""

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        """Make the changes searchable, all or none; raises `IndexFailed`."""

    def stamps(self) -> Mapping[int, int]:
        """Return the index's state: the stamp (content hash) of each note by its serial."""

    def expected(self, entry: Entry) -> int:
        """Return the stamp that the index should have for this note."""
