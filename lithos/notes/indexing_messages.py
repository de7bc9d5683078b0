"""Messages to an indexer, its reply, and the port (`Index`) through which it changes its search index."""

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
    """The reply to a change:

    `DONE` if the note is searchable, `DEFERRED` if it waits for the embedding model.
    """

    DONE = "done"
    DEFERRED = "deferred"


@frozen
class Upsert(Command[Indexed]):
    """Insert or replace a note in the index. A stale repair, whose note has changed since, is dropped."""

    entry: Entry
    document: Document
    repair: bool = False


@frozen
class Removal(Command[Indexed]):
    """Delete a note from the index."""

    serial: int


@frozen
class Slice(Command[Indexed]):
    """A bulk upsert: many notes in one message, so that they are indexed in one batch."""

    upserts: tuple[Upsert, ...]


@frozen
class FlushIndex(Command[Indexed]):
    """A flush request. A caller waits for the changes queued before it, so the batch must start at once."""


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
    """A search index as its indexer uses it. All methods block."""

    def is_ready(self) -> bool:
        """Return whether changes can be applied. Until then, they are deferred."""

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        """Make the changes searchable, either all or none. Raises `IndexFailed`."""

    def stamps(self) -> Mapping[int, int]:
        """Return the state of the index: the stamp (content hash) of each note by serial number."""

    def expected(self, entry: Entry) -> int:
        """Return the stamp that the index should have for this note."""
