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
from lithos.attachments.backlog import AttachmentBacklog
from lithos.config.catalogue import Config
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Clock
from lithos.server.command.serving import Backlog
from lithos.services.attachments.reading import AttachmentReading
from lithos.services.attachments.searching import AttachmentSearch
from lithos.stores.notes.files import NoteFiles


def make_attaching(
    config: Config,
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
        config.storage.data_dir / ".lithos",
        semantic,
        sizes,
        captions,
        clock,
        is_told=lambda: watcher.is_told,
        notes_first=notes_first,
        changes=lambda: writer.mailbox.stats.handled,
        is_enabled=config.reads_attachments,
    )
    watcher.on_noticed = attaching.notice
    return attaching


def make_backlog(attaching: Attaching) -> Backlog:
    """Make what shows how far the reading is."""
    return AttachmentBacklog(attaching)


ATTACHMENTS = Capability(
    name="attachments",
    makers=(Captions, make_attaching, make_backlog, AttachmentReading, AttachmentSearch),
    background=(Background(Attaching, Attaching.run),),
)
