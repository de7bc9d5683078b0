"""Work on a data directory that no server uses, and looks at one that a server may use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import attrs
import trio

from lithos.actors.blocking import Threads
from lithos.actors.requests import PatchNote, WriteOutcome
from lithos.actors.vector_port import ChunkSizes
from lithos.app import Server, running_server
from lithos.app.clock import utc_now
from lithos.config import Config
from lithos.core.errors import LithosError, StorageFailed
from lithos.core.reconcile import GRAPH, INDICES, Failure, ScopeResult
from lithos.core.times import format_time
from lithos.services.entities import EntityExtraction, Extraction
from lithos.services.reconcile import run_scope
from lithos.services.reconcile_graph import reconcile_graph
from lithos.services.reconcile_indices import IndexSettings, Progress, reconcile_indices
from lithos.services.reconcile_provenance import reconcile_provenance
from lithos.services.salience_floor import Recalibration, preview_recalibration, recalibrate
from lithos.services.survey import Survey, survey_notes
from lithos.services.texts import NoteTexts
from lithos.stores.embedder import load_embedder
from lithos.stores.lock import OwnerLock, is_owned
from lithos.stores.lockless import REFRESH

Clock = Callable[[], datetime]
#: Seconds between two reports of progress.
LOOK = 0.2
#: Notes written at once, so that they share the syncs of the disk.
WRITERS = 16


@attrs.frozen
class ReindexResult:
    """What a reindex came to; `skipped` are files that are no notes, with the reason."""

    found: int
    indexed: int
    chunks: int
    nodes: int
    edges: int
    skipped: dict[str, str]
    failures: tuple[str, ...]


@attrs.frozen
class ExtractionResult:
    """New entities by note, and the notes that could not be written."""

    scanned: int
    extractions: tuple[Extraction, ...]
    failures: tuple[Failure, ...]


@asynccontextmanager
async def owned(data: Path, clock: Clock = utc_now) -> AsyncIterator[None]:
    """Own a data directory for the block; raises `AlreadyOwned`."""
    lock = OwnerLock(data / ".lithos" / "lock")
    blocking = Threads()
    await blocking.run(lambda: lock.acquire(format_time(clock())))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_refresh, lock, blocking)
            yield
            nursery.cancel_scope.cancel()
    finally:
        lock.release()


async def _refresh(lock: OwnerLock, blocking: Threads) -> None:
    while lock.needs_refresh:
        await blocking.run(lock.refresh)
        await trio.sleep(REFRESH)


async def reconcile(
    config: Config,
    scopes: Sequence[str],
    *,
    dry_run: bool,
    clock: Clock = utc_now,
    progress: Progress | None = None,
) -> list[ScopeResult]:
    """Repair derived state, scope by scope; a failing one does not stop the others.

    Raises `AlreadyOwned` unless `dry_run`, and `FileNotFoundError` without a folder of notes.
    """
    survey = partial(_survey, config, clock)
    if dry_run:
        surveyed = await Threads().run(survey)
        return [await _reconcile_scope(config, surveyed, scope, True, clock, None) for scope in scopes]
    async with owned(config.storage.data_dir, clock):
        surveyed = await Threads().run(survey)
        return [await _reconcile_scope(config, surveyed, scope, False, clock, progress) for scope in scopes]


def _survey(config: Config, clock: Clock) -> Survey:
    storage, fraction = config.storage, config.index.max_vanished_fraction
    return survey_notes(storage.data_dir, storage.knowledge_subdir, fraction, clock())


async def _reconcile_scope(
    config: Config, survey: Survey, scope: str, dry_run: bool, clock: Clock, progress: Progress | None
) -> ScopeResult:
    async def run() -> ScopeResult:
        if scope == INDICES:
            sizes = ChunkSizes(config.search.chunk_size, config.search.chunk_max)
            settings = IndexSettings(model=config.search.embedding_model, load=load_embedder, sizes=sizes)
            return await reconcile_indices(survey, settings, dry_run=dry_run, progress=progress)
        if scope == GRAPH:
            return await Threads().run(lambda: reconcile_graph(survey, dry_run=dry_run))
        return await Threads().run(lambda: reconcile_provenance(survey, clock(), dry_run=dry_run))

    return await run_scope(scope, run, dry_run=dry_run)


async def reindex(config: Config, *, clear: bool, progress: Progress | None = None) -> ReindexResult:
    """Bring every index in line with the notes, from nothing with `clear`. Raises `AlreadyOwned`."""
    if clear:
        config = attrs.evolve(config, index=attrs.evolve(config.index, rebuild_on_start=True))
    async with running_server(config) as server:
        async with trio.open_nursery() as nursery:
            if progress is not None:
                nursery.start_soon(_report, server, progress)
            await server.searchable()
            nursery.cancel_scope.cancel()
        return await _count(server)


async def _report(server: Server, progress: Progress) -> None:
    while True:
        target, total = server.semantic.port.target, len(server.catalogue)
        progress("vectors", min(total, len(target.vectors.stamps())) if target else 0, total)
        await trio.sleep(LOOK)


async def _count(server: Server) -> ReindexResult:
    catalogue, links = server.catalogue, server.catalogue.graph.counts()
    stats = await server.state.stats()
    indexers = (server.fulltext_indexer.failure, server.vector_indexer.failure, server.semantic.reason)
    return ReindexResult(
        found=len(catalogue) + len(catalogue.skipped),
        indexed=stats["tantivy_doc_count"],
        chunks=stats["chunks"],
        nodes=links.nodes,
        edges=links.edges,
        skipped={path: skipped.reason for path, skipped in sorted(catalogue.skipped.items())},
        failures=tuple(filter(None, indexers)),
    )


async def recalibrate_salience(
    config: Config, floor: float, *, dry_run: bool, clock: Clock = utc_now
) -> Recalibration:
    """Lift salience to the floor. Raises `AlreadyOwned` unless `dry_run`."""
    data = config.storage.data_dir
    path = data / ".lithos" / "stats.db"
    if dry_run:
        is_live = is_owned(data / ".lithos" / "lock")
        return await Threads().run(lambda: preview_recalibration(path, floor, is_live=is_live))
    if not data.is_dir():
        raise FileNotFoundError(2, "There is no data directory", str(data))
    async with owned(data, clock):
        return await Threads().run(lambda: recalibrate(path, floor, clock()))


async def extract_entities(
    config: Config, *, dry_run: bool, force: bool, clock: Clock = utc_now, progress: Progress | None = None
) -> ExtractionResult:
    """Extract the entities of all notes, with `force` of curated ones too.

    Raises `AlreadyOwned` unless `dry_run`.
    """
    if dry_run:
        survey = await Threads().run(partial(_survey, config, clock))
        texts, limit = NoteTexts(survey.files), config.lcma.entity_max_per_doc
        looking = EntityExtraction(survey.catalogue, texts, _refuse, Threads(), limit)
        ids = [entry.note.id for entry in survey.catalogue]
        return await _extract(looking, ids, True, force, progress)
    async with running_server(config, clock=clock) as server:
        ids = [entry.note.id for entry in server.catalogue]
        return await _extract(server.entities, ids, False, force, progress)


async def _refuse(_: PatchNote) -> WriteOutcome:
    raise StorageFailed("A dry run writes nothing.")


async def _extract(
    entities: EntityExtraction, ids: Sequence[str], dry_run: bool, force: bool, progress: Progress | None
) -> ExtractionResult:
    extractions: list[Extraction] = []
    failures: list[Failure] = []
    waiting, done = iter(ids), 0

    async def work() -> None:
        nonlocal done
        for note_id in waiting:
            found = await entities.look(note_id, force=force)
            try:
                if found is not None and (dry_run or await entities.store(found)):
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
