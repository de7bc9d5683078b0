"""The notes capability: the catalogue, actors that write and watch notes, and services for tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import evolve

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import make_id
from lithos.events.journal.settled_clock import SettledClock
from lithos.events.model.ports import ExtraRows, KnownNotes
from lithos.events.reading.agents import NoteTitles
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.actors.threads import NoteThreads, Threads
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages, Store
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.database import Database
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import Gauge, HealthCheck, Observed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.first_lines import FirstLooks
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.files.displaced import Displaced, Moves
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.files.manifest import Manifest
from lithos.notes.model.scopes import ScopeOfToken, WriteScopes, check_globs, scopes_of_agents
from lithos.notes.opening import (
    make_copy_merges,
    make_moves,
    open_manifest,
    open_notes,
    project_rules,
    recover_files,
    style_of,
)
from lithos.notes.resources import NoteResources, TagResources
from lithos.notes.rows_coordination import NOTE_TABLES
from lithos.notes.scan_ports import ScannedRows, kept_versions
from lithos.notes.service.browsing import Browsing, VaultFiles
from lithos.notes.service.cut_reads import CutReads
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.moving import Moving
from lithos.notes.service.pasting import Pasting
from lithos.notes.service.texts import NoteTexts, Snippets
from lithos.notes.settings import AgentsConfig, IndexConfig
from lithos.notes.state import (
    count_notes,
    look_at_folder,
    look_at_notes,
    look_at_watcher,
    measure_links,
    measure_notes,
)
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.watcher import Watcher
from lithos.notes.writing.actor_publisher import Publisher
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.applying import Applying
from lithos.notes.writing.deferred_removal import Keeper
from lithos.notes.writing.editing import Outlines
from lithos.notes.writing.ports import ChangeGate, NoteIndex, VersionRecorder, VersionStore
from lithos.notes.writing.preparation import Preparation
from lithos.server.mcp.resource_pages import Library, ResourceChanges
from lithos.server.settings import ServerConfig
from lithos.server.tools.ports import NotePorts
from lithos.text.secrets.policy import SecretPolicy


def make_records(rows: ScannedRows) -> NoteRecords:
    """Build the records of note facts from the stored rows."""
    return NoteRecords(rows.rows)


def make_publisher(
    coordinator: Coordinator,
    indexes: Sequence[NoteIndex],
    manifest: Manifest,
    records: NoteRecords,
) -> Publisher:
    """Build the actor that passes changes to the indexes and announces them in the journal."""
    return Publisher(coordinator.mailbox, indexes, manifest, Threads(), records)


def make_keeper(
    files: NoteFiles, displaced: Displaced, clock: Clock, settled: SettledClock, recorder: VersionRecorder
) -> Keeper:
    """Build the keeper, which saves bytes that a change replaces."""
    return Keeper(files, displaced, Threads(), clock, settled, recorder.look_again, lambda: settled.reached)


def make_preparation(
    catalogue: Catalogue, storage: StorageConfig, clock: Clock, files: NoteFiles
) -> Preparation:
    """Build the component that checks a change before it is written."""
    return Preparation(catalogue, storage.max_content_size_bytes, clock, make_id, lambda: files.ignored)


def make_applying(
    records: NoteRecords,
    files: NoteFiles,
    moves: Moves,
    recorder: VersionRecorder,
    journal: CoordinationStore,
    versions: VersionStore | None,
) -> Applying:
    """Build the component that writes prepared changes to the files."""
    needed: tuple[Database | VersionStore, ...] = (journal,) if versions is None else (journal, versions)
    return Applying(records, files, moves, Threads(), recorder, needed)


def rows_along(records: NoteRecords) -> ExtraRows:
    """Return the rows that the journal commits together with events."""
    return records


def known_notes(catalogue: Catalogue) -> KnownNotes:
    """Return the ids of the existing notes for the journal."""
    return catalogue


def make_scopes(config: Config, of_token: ScopeOfToken | None) -> WriteScopes:
    """Build the rules that decide which paths an agent may write to."""
    given = config.of(AgentsConfig)
    scopes = WriteScopes(
        check_globs(config.of(StorageConfig).protected),
        scopes_of_agents(given.agents),
        projects=given.projects,
    )
    return scopes if of_token is None else evolve(scopes, of_token=of_token)


def make_writer(
    preparation: Preparation,
    applying: Applying,
    publisher: Publisher,
    keeper: Keeper,
    outlines: Outlines,
    gate: ChangeGate | None,
    versions: VersionStore | None,
    scopes: WriteScopes,
    storage: StorageConfig,
) -> Writer:
    """Build the only writer of notes."""
    kept = partial(kept_versions, versions)
    writer = Writer(preparation, applying, publisher, keeper.take, outlines, gate, kept)
    writer.scopes = scopes
    writer.secrets = SecretPolicy(storage.secrets)
    return writer


def make_vanished(storage: StorageConfig) -> VanishedFiles:
    """Build the list of files that vanished while no server was running."""
    return VanishedFiles(storage.data_dir / ".lithos")


def make_guard(catalogue: Catalogue, files: NoteFiles, vanished: VanishedFiles) -> DeletionGuard:
    """Build the guard against mass deletions."""
    return DeletionGuard(catalogue, files, vanished, Threads())


def make_watcher(
    index: IndexConfig,
    server: ServerConfig,
    guard: DeletionGuard,
    writer: Writer,
    indexes: Sequence[NoteIndex],
    metrics: Metrics,
) -> Watcher:
    """Build the watcher.

    If watching is switched off, the watcher still finishes the pending work of the guard.
    """
    return Watcher(
        index.watch_mode if server.watch_files else "off",
        index.watch_debounce_ms / 1_000,
        guard,
        writer.mailbox,
        indexes,
        partial(metrics.count, "file_watcher_events"),
    )


def make_vault_files(files: NoteFiles, catalogue: Catalogue) -> VaultFiles:
    """Build the reader for files in the vault that are not notes."""
    return VaultFiles(files, catalogue, Threads(2))


def share_titles(catalogue: Catalogue) -> NoteTitles:
    """Return the note titles that the access log shows."""
    return catalogue


def make_ports(knowledge: Knowledge, catalogue: Catalogue, cut_reads: CutReads) -> NotePorts:
    """Build the ports that the tool registry uses to query notes."""
    return NotePorts(knowledge.locate, knowledge.identify, catalogue.prefix_as_spelled, cut_reads.see)


def make_changes(broadcaster: Broadcaster) -> ResourceChanges:
    """Build the component that notifies clients of changed resources."""
    return ResourceChanges(broadcaster)


async def has_note(server: Parts, thing: str) -> bool:
    """Return whether a note with this id exists."""
    return server.get(Catalogue).get(thing) is not None


NOTES = Capability(
    name="notes",
    makers=(
        FrontSignals,
        NoteThreads,
        ScannedRows,
        make_records,
        style_of,
        project_rules,
        make_moves,
        make_copy_merges,
        Catalogue,
        Lineage,
        Outlines,
        FirstLooks,
        make_publisher,
        make_keeper,
        make_preparation,
        make_applying,
        known_notes,
        rows_along,
        make_scopes,
        make_writer,
        make_vanished,
        make_guard,
        make_watcher,
        NoteTexts,
        Snippets,
        Knowledge,
        Pasting,
        CutReads,
        make_ports,
        Moving,
        Browsing,
        make_vault_files,
        TagResources,
        NoteResources,
        make_changes,
        share_titles,
        Library,
    ),
    tables=(NOTE_TABLES,),
    background=(Background(Moving, Moving.run),),
    pages=Pages(
        modules=(
            "lithos.notes.console.notes",
            "lithos.notes.console.note",
            "lithos.notes.console.pages_files",
        ),
        links=(NavigationLink(3, "Notes", "/console/notes", "n"),),
        tabs=(
            NavigationLink(1, "Notes", "/console/notes"),
            NavigationLink(3, "Deleted", "/console/notes?view=deleted"),
        ),
    ),
    resources=(TagResources, NoteResources),
    tools=("lithos.notes.tools_rows", "lithos.notes.tools"),
    holds=has_note,
    stores=(Store(-20, open_notes), Store(-10, recover_files), Store(50, open_manifest)),
    health=(
        HealthCheck("kb_directory", 1, look_at_folder),
        HealthCheck("knowledge_base", 2, look_at_notes),
        HealthCheck("watcher", 6, look_at_watcher),
    ),
    statistics=(count_notes,),
    gauges=(Gauge(20, measure_notes), Gauge(40, measure_links)),
    actors=(Observed(1, Writer), Observed(4, Publisher), Observed(7, Watcher)),
)
