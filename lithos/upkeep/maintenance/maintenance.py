"""Maintenance of a data directory: repairs, indexing, entities, vanished files and stored questions.

Only three operations work while a server runs: accepting vanished files (docs/spec/lifecycle.md §6),
forgetting questions, and dry runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial

import attrs
import trio
from attrs import frozen

from lithos.kernel.actors.ownership import keep_owning
from lithos.kernel.actors.threads import Threads
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import AlreadyOwned, VaultOwned, is_owned
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed, snapshot
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Parts, utc_now
from lithos.kernel.server_ports import RunServer
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import LithosError, StorageFailed
from lithos.kernel.values.times import format_time
from lithos.memory.enrich.entities import EntityExtraction, NoteEntities
from lithos.memory.model.questions import QuestionFilter
from lithos.memory.rows.forget_orders import ForgetOrders
from lithos.memory.rows.queue import LedgerRows
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.catalogue.scan import scan_folder
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.files.lookup import is_there
from lithos.notes.files.manifest import Manifest
from lithos.notes.model.plan import VanishRule
from lithos.notes.opening import make_lock, open_notes, style_of
from lithos.notes.service.texts import NoteTexts
from lithos.notes.settings import IndexConfig
from lithos.notes.writing.messages import PatchNote, WriteOutcome
from lithos.search.embedding.embedder import load_embedder
from lithos.search.indexing.indexer import FulltextIndexer, VectorIndexer
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.whole_index import WholeIndex
from lithos.server.service_state import ServerState
from lithos.server.settings import ServerConfig
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.reconcile import reconcile as reconcile_scopes
from lithos.upkeep.checks.reconcile_indices import Failure, Progress, ScopeResult
from lithos.upkeep.checks.stored_questions import count_questions, forget_stored_questions
from lithos.upkeep.checks.validation import CheckedVault, read_note_rows

log = get_logger("lithos.maintenance")

#: Maximum seconds to wait until a server takes an approval. This is twice the specified limit.
SERVER_BOUND = 10.0
INDEX_BOUND = 600.0


@frozen
class GivenUp:
    """The vanished files. `is_taken` is True if the server or this process has accepted their deletion."""

    paths: tuple[str, ...]
    is_taken: bool


async def accept_vanished(config: Config, run_server: RunServer, *, dry_run: bool) -> GivenUp:
    """Drop vanished files from the indexes. If a server runs, the server drops them.

    Raises the errors of `run_server`.
    """
    blocking = Threads()
    files = VanishedFiles(config.of(StorageConfig).data_dir / ".lithos")
    lock = config.of(StorageConfig).data_dir / ".lithos" / "lock"
    is_live = await blocking.run(lambda: is_owned(lock))
    paths = await blocking.run(lambda: _list_kept(config, files) if is_live else _list_vanished(config))
    if dry_run or not paths:
        return GivenUp(paths, is_taken=False)
    await blocking.run(lambda: files.approve(paths))
    if not is_live:
        try:
            await _start_once(config, run_server)
        except VaultOwned:
            raise
        except AlreadyOwned:
            pass  # a server that is starting also takes the approval
        except BaseException:
            files.settle_approval()
            raise
    return GivenUp(paths, await _is_taken(files.is_approval_waiting))


async def _start_once(config: Config, run_server: RunServer) -> None:
    """Start a server that takes the approval, publishes the deletions and updates the indexes, then stop it.

    The call returns after the server has stopped.
    """
    unwatched = config.replace(attrs.evolve(config.of(ServerConfig), watch_files=False))
    async with run_server(unwatched) as server:
        with trio.move_on_after(INDEX_BOUND):
            await server.get(WholeIndex).complete()


async def _is_taken(is_waiting: Callable[[], bool]) -> bool:
    """Return whether a server takes the waiting request within `SERVER_BOUND` seconds."""
    blocking = Threads()
    with trio.move_on_after(SERVER_BOUND):
        while await blocking.run(is_waiting):  # noqa: ASYNC110 - another process takes it
            await trio.sleep(0.1)
        return True
    return False


def _list_kept(config: Config, vanished: VanishedFiles) -> tuple[str, ...]:
    """Return the paths of missing notes that are still in the indexes of the running server."""
    files = open_notes(config.of(StorageConfig))
    return tuple(path for path in sorted(vanished.kept()) if not is_there(files, path))


def _list_vanished(config: Config) -> tuple[str, ...]:
    """Return the paths of indexed notes that no longer exist."""
    storage = config.of(StorageConfig)
    private = storage.data_dir / ".lithos"
    style = style_of(storage)
    catalogue = Catalogue(NoteRecords(read_note_rows(private, is_live=False)), style)
    with snapshot(private / "manifest.db", is_live=False) as connection:
        files = open_notes(storage)
        rule = VanishRule(keep_all=True)
        result = scan_folder(files, Manifest.view(connection, style.reading), catalogue, (), utc_now(), rule)
    entries = (catalogue.get(note_id) for note_id in result.vanished)
    return tuple(sorted(entry.path for entry in entries if entry is not None))


#: Seconds between two progress reports.
LOOK = 0.2
#: Number of notes to write at once. Notes that are written together share disk syncs.
WRITERS = 16


@attrs.frozen
class ReindexResult:
    """The result of a reindex. `skipped` maps files that are not notes to the reason."""

    found: int
    indexed: int
    chunks: int
    nodes: int
    edges: int
    skipped: dict[str, str]
    failures: tuple[str, ...]


@attrs.frozen
class ExtractionResult:
    """The new entities of each note, and the notes that could not be written."""

    scanned: int
    extractions: tuple[NoteEntities, ...]
    failures: tuple[Failure, ...]


@asynccontextmanager
async def owned(storage: StorageConfig) -> AsyncIterator[None]:
    """Own a data directory and its vault while the block runs. Raises `AlreadyOwned`."""
    lock = make_lock(storage)
    await Threads().run(lambda: lock.acquire(format_time(utc_now())))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_owning, lock)
            yield
            nursery.cancel_scope.cancel()
    finally:
        lock.release()


async def reconcile(
    config: Config, scopes: Sequence[str], *, dry_run: bool, progress: Progress | None = None
) -> list[ScopeResult]:
    """Repair derived state scope by scope. If a scope fails, the next scopes still run.

    Raises `AlreadyOwned` unless `dry_run` is set, and `FileNotFoundError` if the notes folder does not exist.
    """
    async with nullcontext() if dry_run else owned(config.of(StorageConfig)):
        survey = await Threads().run(partial(_survey, config))
        patient = Installed(config=config, clock=utc_now, load=load_embedder, survey=survey)
        return await reconcile_scopes(patient, scopes, dry_run=dry_run, progress=progress)


def _survey(config: Config) -> CheckedVault:
    survey = survey_of(config, utc_now())
    try:
        with snapshot(survey.private / "stats.db", is_live=survey.is_live) as connection:
            if connection is not None:
                survey.catalogue.entities.load(LedgerRows(connection).entities())
    except (CorruptDatabase, DatabaseFailed) as failure:
        log.warning("stored entities not read", reason=str(failure))
    return survey


async def reindex(
    config: Config, run_server: RunServer, *, clear: bool, progress: Progress | None = None
) -> ReindexResult:
    """Update all indexes from the notes. With `clear`, rebuild them. The journal records the reindex.

    Raises `AlreadyOwned`.
    """
    if clear:
        config = config.replace(attrs.evolve(config.of(IndexConfig), rebuild_on_start=True))
    async with run_server(config) as server:
        async with trio.open_nursery() as nursery:
            if progress is not None:
                nursery.start_soon(_report, server, progress)
            await server.get(WholeIndex).complete_reindex()
            nursery.cancel_scope.cancel()
        return await _count(server)


async def _report(server: Parts, progress: Progress) -> None:
    while True:
        target, total = server.get(SemanticBackend).port.target, len(server.get(Catalogue))
        progress("vectors", min(total, len(target.vectors.stamps())) if target else 0, total)
        await trio.sleep(LOOK)


async def _count(server: Parts) -> ReindexResult:
    catalogue, links = server.get(Catalogue), server.get(Catalogue).graph.counts()
    stats = await server.get(ServerState).stats()
    failures = (
        server.get(FulltextIndexer).failure,
        server.get(VectorIndexer).failure,
        server.get(SemanticBackend).reason,
    )
    return ReindexResult(
        found=len(catalogue) + len(catalogue.skipped),
        indexed=stats["tantivy_doc_count"],
        chunks=stats["chunks"],
        nodes=links.nodes,
        edges=links.edges,
        skipped={path: skipped.reason for path, skipped in sorted(catalogue.skipped.items())},
        failures=tuple(filter(None, failures)),
    )


@frozen
class Forgotten:
    """The number of matching questions. `is_taken` is True if the questions were forgotten."""

    questions: int
    is_taken: bool


async def forget_questions(config: Config, wanted: QuestionFilter, *, dry_run: bool) -> Forgotten:
    """Forget remembered questions. If a server runs, it forgets them. A missing database is not created."""
    data, blocking = config.of(StorageConfig).data_dir, Threads()
    path, orders = data / ".lithos" / "stats.db", ForgetOrders(data / ".lithos")
    if not data.is_dir():
        raise FileNotFoundError(2, "The data directory does not exist", str(data))
    is_live = await blocking.run(lambda: is_owned(data / ".lithos" / "lock"))
    if dry_run or is_live:
        number = await blocking.run(lambda: count_questions(path, wanted, is_live=is_live))
        if dry_run:
            return Forgotten(number, is_taken=False)
        name = await blocking.run(lambda: orders.leave(wanted))
        return Forgotten(number, await _is_taken(lambda: orders.is_waiting(name)))
    async with owned(config.of(StorageConfig)):
        number = await blocking.run(lambda: forget_stored_questions(path, wanted, utc_now()))
    return Forgotten(number, is_taken=True)


async def extract_entities(
    config: Config,
    run_server: RunServer,
    *,
    dry_run: bool,
    force: bool,
    progress: Progress | None = None,
) -> ExtractionResult:
    """Extract the entities of all notes.

    With `force`, also replace entities that people wrote into their notes.

    Raises `AlreadyOwned` unless `dry_run` is set.
    """
    if dry_run:
        survey = await Threads().run(partial(_survey, config))
        texts = NoteTexts(survey.files, survey.catalogue)
        patch = _refuse if config.of(LcmaConfig).write_entities else None
        looking = EntityExtraction(survey.catalogue, texts, patch=patch)
        ids = [entry.note.id for entry in survey.catalogue]
        return await _extract(looking, ids, True, force, progress)
    async with run_server(config) as server:
        ids = [entry.note.id for entry in server.get(Catalogue)]
        return await _extract(server.get(EntityExtraction), ids, False, force, progress)


async def _refuse(_: PatchNote) -> WriteOutcome:
    raise StorageFailed("A dry run writes nothing.")


async def _extract(
    entities: EntityExtraction, ids: Sequence[str], dry_run: bool, force: bool, progress: Progress | None
) -> ExtractionResult:
    extractions: list[NoteEntities] = []
    failures: list[Failure] = []
    waiting, done = iter(ids), 0

    async def work() -> None:
        nonlocal done
        for note_id in waiting:
            found = await entities.look(note_id, force=force)
            try:
                is_other = found is not None and found.entities != found.before
                if found is not None and (dry_run or await entities.store(found)) and is_other:
                    extractions.append(found)
            except LithosError as refusal:
                failures.append(Failure(refusal.code, refusal.message))
            done += 1
            if progress is not None:
                progress("entities", done, len(ids))

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(work)
    extractions.sort(key=lambda found: found.path)
    return ExtractionResult(len(ids), tuple(extractions), tuple(failures))
