"""Repair (reconciliation) of a search index: applies the difference between expected and actual content."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.kernel.actors.mailboxes import ActorDown, Envelope
from lithos.kernel.actors.threads import Blocking, slices
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge, digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.indexing_messages import (
    FlushIndex,
    Index,
    Indexed,
    IndexMailbox,
    IndexMessage,
    Removal,
    Slice,
    Upsert,
)
from lithos.notes.model.note import Document
from lithos.notes.model.plan import plan_index
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

log = get_logger("lithos.indexer")

#: Number of notes that a repair sends at once. Because the number is small, a write never waits long during a
#: rebuild.
REPAIR_SLICE = 64
#: Number of notes compared in one turn of the event loop. This takes a few milliseconds.
LOOK_SLICE = 1_000


@frozen
class Repair:
    """A repair of one index. It sends small batches of notes through the mailbox of the indexer.

    `_reading` reads the next notes from disk while earlier notes are indexed.
    """

    _name: str
    _index: Index
    _mailbox: IndexMailbox
    _catalogue: Catalogue
    _files: NoteFiles
    _blocking: Blocking
    _reading: Blocking
    _size: int = REPAIR_SLICE

    async def run(self) -> bool:
        """Apply the missing upserts and removals. Return False if something failed and a retry is needed."""
        wanted = await self._wanted()
        plan = await self._blocking.run(lambda: plan_index(wanted, self._index.stamps()))
        if plan.total:
            log.info("index repair", index=self._name, adding=len(plan.add), removing=len(plan.remove))
        complete = True
        for serial in plan.remove:
            if self._catalogue.at_serial(serial) is None:
                complete &= await self._settle(await self._post(Removal(serial)))
        waiting: Envelope[IndexMessage, Indexed] | None = None
        size = self._size
        for begin in range(0, len(plan.add), size):
            entries = [self._catalogue.at_serial(serial) for serial in plan.add[begin : begin + size]]
            present = [entry for entry in entries if entry is not None]
            loaded = await self._load_all(present)
            complete &= await self._settle(waiting)
            waiting = await self._post(Slice(tuple(upsert for upsert in loaded if upsert is not None)))
        return await self._settle(waiting) and complete

    async def _wanted(self) -> dict[int, int]:
        """Return the expected stamps by serial. Later changes arrive through the mailbox."""
        wanted: dict[int, int] = {}
        async for some in slices(self._catalogue.serials(), LOOK_SLICE):
            for entry in self._catalogue.at_serials(some):
                wanted[entry.serial] = self._index.expected(entry)
        return wanted

    async def _load_all(self, entries: Sequence[Entry]) -> list[Upsert | None]:
        return await self._reading.run(
            lambda: [load_note(self._files, entry, self._catalogue.style) for entry in entries]
        )

    async def _post(self, message: IndexMessage) -> Envelope[IndexMessage, Indexed]:
        envelope = await self._mailbox.post(message)
        self._mailbox.nudge(FlushIndex())
        return envelope

    async def _settle(self, envelope: Envelope[IndexMessage, Indexed] | None) -> bool:
        """Wait for the reply to `envelope`. Return False if the batch failed."""
        try:
            if envelope is not None:
                await envelope.reply()
        except (IndexFailed, ActorDown):
            return False
        return True


def load_note(files: NoteFiles, entry: Entry, style: VaultStyle = PLAIN) -> Upsert | None:
    """Read a note from its current file. Return None if the file is unreadable, which the scan reports."""
    try:
        source = files.read(entry.path)
        if digest_of(source.data) == entry.digest:
            # The frontmatter is not parsed again, because the catalogue already has its data. Parsing takes
            # ten times as long.
            document = Document(note=entry.note, content=_content(source.data, style))
            return Upsert(entry, document, repair=True)
        modified = from_nanoseconds(source.state.mtime_ns)
        document = parse_document(source.data, entry.path, modified, entry.note.id, style)
    except (OSError, OutsideKnowledge, UnreadableNote):
        return None
    return Upsert(entry, document, repair=True)


def _content(data: bytes, style: VaultStyle) -> str:
    return read_layout(data, keeps_heading=style.is_foreign).content
