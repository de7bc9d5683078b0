"""Messages to an indexer and its replies.

An indexer changes its search index through the port `Index`.
"""

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
    """The reply of an indexer to a change.

    `DONE` means that the note is searchable, `DEFERRED` that it waits for the embedding model.
    """

    DONE = "done"
    DEFERRED = "deferred"


@frozen
class Upsert(Command[Indexed]):
    """Insert or replace a note in the index.

    An outdated repair is dropped, because the note has changed since.
    """

    entry: Entry
    document: Document
    repair: bool = False


@frozen
class Removal(Command[Indexed]):
    """Delete a note from the index."""

    serial: int


@frozen
class Slice(Command[Indexed]):
    """A bulk upsert. One message contains many notes, so that they are indexed in one batch."""

    upserts: tuple[Upsert, ...]


@frozen
class FlushIndex(Command[Indexed]):
    """A request to start the batch at once.

    A caller is waiting for the changes queued before this message.
    """


IndexMessage = Upsert | Removal | Slice | FlushIndex
IndexMailbox = Mailbox[IndexMessage]


def spread(messages: Sequence[IndexMessage]) -> Iterator[Upsert | Removal]:
    """Split messages into single changes, in order."""
    for message in messages:
        if isinstance(message, Slice):
            yield from message.upserts
        elif not isinstance(message, FlushIndex):
            yield message


class Index(Protocol):
    """A search index, as its indexer uses it. All methods block."""

    def is_ready(self) -> bool:
        """Return whether changes can be applied now. If not, changes are deferred."""

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        """Make all changes searchable, or none of them. Raise `IndexFailed` on failure."""

    def stamps(self) -> Mapping[int, int]:
        """Return the stamps (content hashes) of the indexed notes by serial number."""

    def expected(self, entry: Entry) -> int:
        """Return the stamp that the index should have for a note."""
