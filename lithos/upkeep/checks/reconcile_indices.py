"""Reports of `lithos reconcile` (docs/spec/cli-config.md §2.2), and its scope `indices`.

The scope `indices` finds and repairs inconsistencies between the search indexes and the notes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

import trio
from attrs import field, frozen

from lithos.kernel.actors.mailboxes import supervise
from lithos.kernel.actors.threads import Threads
from lithos.notes.model.plan import plan_index
from lithos.search.embedding.embedder import Embedder, EmbedderUnavailable
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.indexer import Indexer
from lithos.search.indexing.ports import FulltextPort, VectorPort, fulltext_stamp
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.files.inspection import IndexStamps, inspect_fulltext, inspect_vectors

#: Number of notes in one full-text commit. A commit of one note takes as long as a commit of many notes.
_FULLTEXT_SLICE = 1_000
#: Seconds between two checks of whether the index is complete or refuses notes.
_LOOK = 0.1
#: Maximum seconds to wait for an index. Slow machines with very many notes need hours.
_PATIENCE = 6 * 3600.0

#: Progress callback: index name, number of notes in the index, and total.
Progress = Callable[[str, int, int], None]


INDICES: Final = "indices"
GRAPH: Final = "graph"
PROVENANCE: Final = "provenance_projection"
SCOPES: Final = (INDICES, GRAPH, PROVENANCE)
#: Failure code for each scope.
FAILURE_CODES: Final[Mapping[str, str]] = {
    INDICES: "index_rebuild_failed",
    GRAPH: "graph_rebuild_failed",
    PROVENANCE: "projection_apply_failed",
}
INTERNAL_ERROR: Final = "internal_error"
NOT_ENABLED: Final = "not_enabled"
DANGLING: Final = "target_slug_not_found"


@frozen
class Action:
    """An entry of a report: a repair, a planned repair (dry run), or a difference that is only reported."""

    reason: str
    details: Mapping[str, Any] = field(factory=dict)
    #: Number of items that the action covers.
    count: int = 1

    @property
    def is_repair(self) -> bool:
        """True if the action is a repair, False if it is only reported."""
        return self.reason not in (NOT_ENABLED, DANGLING)


@frozen
class Failure:
    """A failed repair, with the reason."""

    code: str
    detail: str


@frozen(kw_only=True)
class ScopeResult:
    """The report of one scope. `scanned` is the number of checked notes."""

    scope: str
    dry_run: bool
    scanned: int = 0
    actions: tuple[Action, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def repaired(self) -> int:
        """Number of repaired items, 0 in a dry run."""
        return 0 if self.dry_run else sum(action.count for action in self.actions if action.is_repair)

    @property
    def status(self) -> Literal["ok", "noop", "partial_failure", "failed"]:
        """`ok` if something was repaired, or in a dry run could be repaired.

        `noop` means that there is nothing to repair.
        """
        if self.failures:
            return "partial_failure" if self.repaired else "failed"
        return "ok" if any(action.is_repair for action in self.actions) else "noop"

    def as_json(self) -> dict[str, Any]:
        """Return the report as the JSON object that `lithos reconcile` prints."""
        return {
            "scope": self.scope,
            "dry_run": self.dry_run,
            "supported": all(action.reason != NOT_ENABLED for action in self.actions),
            "status": self.status,
            "summary": {
                "scanned": self.scanned,
                "repaired": self.repaired,
                "failed": len(self.failures),
                "skipped": sum(action.count for action in self.actions if not action.is_repair),
            },
            "actions": [
                {"reason": action.reason, "count": action.count, **action.details} for action in self.actions
            ],
            "failures": [{"code": failure.code, "detail": failure.detail} for failure in self.failures],
        }


def find_index_faults(patient: Installed, load: Callable[[str], Embedder]) -> tuple[Action, ...]:
    """Return the differences between the indexes and the notes.

    The result is empty if the indexes are consistent. Blocks.
    """
    survey, sizes = patient.survey, patient.sizes
    entries = list(survey.catalogue)
    fulltext = inspect_fulltext(survey.data / ".tantivy")
    try:
        identity = load(patient.config.of(SearchConfig).embedding_model).identity
    except EmbedderUnavailable:
        identity = None  # without the model, only the note of each vector is known, not the passage
    vectors = inspect_vectors(survey.data / ".usearch", identity)
    kept, rules = survey.catalogue.entities, survey.catalogue.projects.rules
    wanted = {entry.serial: fulltext_stamp(entry, kept, rules) for entry in entries}
    mixed = {entry.serial: sizes.mix(entry.stamp) for entry in entries}
    lost = survey.unreadable
    return (*_faults("fulltext", fulltext, wanted, lost), *_faults("vectors", vectors, mixed, lost))


def _faults(
    name: str, found: IndexStamps, wanted: Mapping[int, int], lost: frozenset[int]
) -> Iterator[Action]:
    """Yield the differences between one index and the notes.

    Notes in `lost` may be in the index, but cannot be added to it now.
    """
    if found.reason is not None:
        yield Action(found.reason, {"index": name, "detail": found.detail})
        return
    addable = {each: stamp for each, stamp in wanted.items() if each not in lost or each in found.stamps}
    yield from index_differences(name, addable, found.stamps)


def index_differences(name: str, wanted: Mapping[int, int], held: Mapping[int, int]) -> Iterator[Action]:
    """Yield an action if the index lacks notes or has surplus notes. Both maps contain stamps by serial."""
    plan = plan_index(wanted, held)
    if plan.total:
        yield Action(
            "doc_set_mismatch", {"index": name, "missing": len(plan.add), "surplus": len(plan.remove)}
        )


async def repair_indices(
    patient: Installed, progress: Progress | None
) -> tuple[tuple[Action, ...], tuple[Failure, ...]]:
    """Find and repair inconsistencies of the indexes, then check the indexes again.

    Return the repaired inconsistencies and the remaining failures.
    """
    faults = await Threads().run(lambda: find_index_faults(patient, patient.load))
    if not faults:
        return (), ()
    reason = await _mend_indexes(patient, progress)
    left = await Threads().run(lambda: find_index_faults(patient, patient.load))
    # An index that cannot be checked counts as broken, whatever the indexer reported.
    failures = tuple(_describe(fault, reason) for fault in left)
    return tuple(fault for fault in faults if fault.details["index"] not in _names(left)), failures


def _names(faults: tuple[Action, ...]) -> set[str]:
    return {fault.details["index"] for fault in faults}


def _describe(fault: Action, reason: str | None) -> Failure:
    name = fault.details["index"]
    said = reason or "it still differs from the notes after the repair; run the command again"
    return Failure(FAILURE_CODES[INDICES], f"The index {name} could not be repaired ({fault.reason}): {said}")


async def _mend_indexes(patient: Installed, progress: Progress | None) -> str | None:
    """Update both indexes from the notes in the same way as a server does at startup.

    If an index could not be updated, return the reason.
    """
    language = patient.config.of(SearchConfig).note_language
    fulltext = await Threads().run(partial(FulltextIndex.open, patient.data / ".tantivy", language))
    try:
        return await _run_indexers(patient, fulltext, progress)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 60.0):
            await Threads().run(fulltext.close)


async def _run_indexers(patient: Installed, fulltext: FulltextIndex, progress: Progress | None) -> str | None:
    survey, sizes, model = patient.survey, patient.sizes, patient.config.of(SearchConfig).embedding_model
    embedding, directory = Threads(), survey.data / ".usearch"
    semantic = SemanticBackend(VectorPort(sizes), embedding, patient.load, directory, model)
    catalogue, files = survey.catalogue, survey.files
    port = FulltextPort(fulltext, sizes, catalogue.entities, catalogue.projects.rules)
    words = Indexer("fulltext", port, catalogue, files, Threads(), repair_slice=_FULLTEXT_SLICE)
    meaning = Indexer("vectors", semantic.port, catalogue, files, embedding)
    held: Mapping[str, Callable[[], int]] = {
        words.name: fulltext.document_count,
        meaning.name: partial(_embedded, semantic),
    }
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as background:
            for indexer in (words, meaning):
                await nursery.start(partial(supervise, indexer.mailbox, indexer.start))
                background.start_soon(indexer.converge)
            background.start_soon(semantic.load, meaning)
            reasons = [await _wait(words, words.converged, held, len(catalogue), progress)]
            reasons += [await _wait(meaning, semantic.settled.wait, held, len(catalogue), progress)]
            background.cancel_scope.cancel()
        for indexer in (words, meaning):
            indexer.mailbox.close()
    await semantic.close()
    return next(filter(None, [*reasons, semantic.reason]), None)


def _embedded(semantic: SemanticBackend) -> int:
    target = semantic.port.target
    return 0 if target is None else len(target.vectors.stamps())


async def _wait(
    indexer: Indexer,
    is_done: Callable[[], Awaitable[None]],
    held: Mapping[str, Callable[[], int]],
    total: int,
    progress: Progress | None,
) -> str | None:
    """Wait until an index contains all notes.

    If the index refuses notes or takes too long, return the reason.
    """
    begin = trio.current_time()
    while trio.current_time() < begin + _PATIENCE:
        with trio.move_on_after(_LOOK):
            await is_done()
            return None
        if indexer.failure is not None:
            return indexer.failure
        if progress is not None:
            progress(indexer.name, min(total, held[indexer.name]()), total)
    return f"not finished after {_PATIENCE:.0f} seconds"
