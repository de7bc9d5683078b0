"""The `attachments` capability: its components, pages, check and health."""

from __future__ import annotations

from lithos.attachments.backlog import AttachmentBacklog
from lithos.attachments.extraction.actor import Attaching
from lithos.attachments.extraction.captions import Captions
from lithos.attachments.service.reading import AttachmentReading
from lithos.attachments.service.searching import AttachmentSearch
from lithos.attachments.settings import AttachmentsConfig, reads_attachments
from lithos.attachments.state import look_at_attachments
from lithos.attachments.tools import AttachmentFiles, AttachmentHits
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import HealthCheck
from lithos.notes.files.files import NoteFiles
from lithos.notes.model.note_projects import ProjectRules
from lithos.notes.service.ports import OtherFiles
from lithos.notes.watching.watcher import Watcher
from lithos.notes.writing.actor_writer import Writer
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.service.other_files import OtherHits
from lithos.search.settings import SearchConfig
from lithos.server.command.serve_ports import Backlog
from lithos.text.chunk import ChunkSizes


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
    projects: ProjectRules,
) -> Attaching:
    """Return the actor that reads attachments. The watcher notifies it of changes."""

    async def notes_first() -> None:
        await opening.complete.wait()
        await words.converged()
        await semantic.settled.wait()

    attaching = Attaching(
        files,
        config.of(StorageConfig).data_dir / ".lithos",
        semantic,
        sizes,
        captions,
        clock,
        is_told=lambda: watcher.is_told,
        notes_first=notes_first,
        changes=lambda: writer.mailbox.stats.handled,
        is_enabled=reads_attachments(config.of(AttachmentsConfig), config.of(StorageConfig)),
        projects=projects,
        language=config.of(SearchConfig).note_language,
    )
    watcher.on_noticed = attaching.notice
    return attaching


async def has_file(server: Parts, thing: str) -> bool:
    """Return whether an attachment has this id."""
    return thing in server.get(Attaching).ids


def make_other_files(files: AttachmentFiles) -> OtherFiles:
    """Return the service that reads and lists attachments like notes."""
    return files


def make_other_hits(hits: AttachmentHits) -> OtherHits:
    """Return the attachment search. Its hits are listed next to hits in notes."""
    return hits


def make_backlog(attaching: Attaching) -> Backlog:
    """Return the object that reports how many attachments have not been read yet."""
    return AttachmentBacklog(attaching)


ATTACHMENTS = Capability(
    name="attachments",
    makers=(
        Captions,
        make_attaching,
        make_backlog,
        AttachmentReading,
        AttachmentSearch,
        AttachmentFiles,
        AttachmentHits,
        make_other_files,
        make_other_hits,
    ),
    background=(Background(Attaching, Attaching.run),),
    pages=Pages(
        modules=("lithos.attachments.pages",), tabs=(NavigationLink(2, "Files", "/console/attachments"),)
    ),
    holds=has_file,
    checks=("lithos.attachments.checks",),
    health=(HealthCheck("attachments", 12, look_at_attachments),),
)
