"""Attachments as a capability."""

from __future__ import annotations

from lithos.actors.attaching.attaching import Attaching
from lithos.actors.attaching.captions import Captions
from lithos.actors.indexing.indexer import FulltextIndexer
from lithos.actors.indexing.ports import ChunkSizes
from lithos.actors.indexing.semantic import SemanticBackend
from lithos.actors.opening import Opening
from lithos.actors.watching.watcher import Watcher
from lithos.actors.writing.writer import Writer
from lithos.attachments.settings import AttachmentsConfig, reads_attachments
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.services.attachments.reading import AttachmentReading
from lithos.services.attachments.searching import AttachmentSearch
from lithos.stores.notes.files import NoteFiles


def make_attaching(
    attachments: AttachmentsConfig,
    storage: StorageConfig,
    files: NoteFiles,
    semantic: SemanticBackend,
    sizes: ChunkSizes,
    captions: Captions,
    clock: Clock,
    watcher: Watcher,
    writer: Writer,
    opening: Opening,
    words: FulltextIndexer,
) -> Attaching:
    """Make the actor that reads files."""

    async def notes_first() -> None:
        await opening.complete.wait()
        await words.converged()
        await semantic.settled.wait()

    attaching = Attaching(
        files,
        storage.data_dir / ".lithos",
        semantic,
        sizes,
        captions,
        clock,
        is_told=lambda: watcher.is_told,
        notes_first=notes_first,
        changes=lambda: writer.mailbox.stats.handled,
        is_enabled=reads_attachments(attachments, storage),
    )
    watcher.on_noticed = attaching.notice
    return attaching


ATTACHMENTS = Capability(
    name="attachments",
    makers=(Captions, make_attaching, AttachmentReading, AttachmentSearch),
    background=(Background(Attaching, Attaching.run),),
)
