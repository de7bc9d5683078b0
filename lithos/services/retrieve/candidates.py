"""Candidates of a retrieval: access control (the gate; docs/spec/memory.md §1), merging and ranking.

The ranking weighs the scores of the scouts, the note type, the salience and the usage of each candidate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import attrs
import trio
from attrs import define, field, frozen

from lithos.actors.blocking import Blocking, slices
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.catalogue.facets import FacetFilter
from lithos.core.learning.match import Judged
from lithos.core.learning.memory import INITIAL_SALIENCE, NodeStats
from lithos.core.learning.ranking import (
    Candidate,
    Ranked,
    RerankWeights,
    Scaled,
    Traits,
    final_score,
    ground_scores,
    merge,
    promising,
    rank,
)
from lithos.core.learning.salience import UsageSettings, usage_score
from lithos.core.notes.matching import has_tags
from lithos.core.notes.model import NoteWarning
from lithos.core.text.snippet import Terms
from lithos.stores.indexes.fulltext_schema import Filters
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

#: The reason of a warning whose cause is not named.
_VEILED: Final = "because of a note that you may not see"


@frozen(kw_only=True)
class Gate:
    """Access control and filters of one retrieval; `namespaces` None means any."""

    namespaces: frozenset[str] | None = None
    task_id: str | None = None
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    #: Only these notes; None: any.
    among: frozenset[str] | None = None
    #: For who names quarantined notes and does not show them.
    shows_quarantined: bool = False
    #: There are no filters of tags and paths, which spares most checks of most notes.
    _is_open: bool = field(init=False)
    #: Every note passes that is active and shared.
    _is_wide: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_is_open", self.filters == Filters())
        object.__setattr__(self, "_is_wide", not self.is_narrow)

    @property
    def is_narrow(self) -> bool:
        """True when the gate is selective: most notes probably do not pass."""
        return self.namespaces is not None or self.among is not None or not self._is_open

    def shows(self, entry: Entry) -> bool:
        """Access control: true when the caller may see the note, whatever its tags and path."""
        if entry.note.status == "quarantined" and not self.shows_quarantined:
            return False
        if self.among is not None and entry.note.id not in self.among:
            return False
        return self._may_know(entry)

    def _may_know(self, entry: Entry) -> bool:
        """The same, but for the trust in the note."""
        note = entry.note
        if self.namespaces is not None and entry.namespace not in self.namespaces:
            return False
        if note.access_scope == "task":
            return self.task_id is not None and self.task_id == note.source
        if note.access_scope == "agent_private":
            return self.agent_id is not None and self.agent_id == note.author
        return True

    def veil(self, warning: NoteWarning, cause: Entry | None) -> NoteWarning | None:
        """The warning as this asker may be told it; a `cause` that it may not see is not named.

        A contradiction with such a note is not told at all, as `contradictions` does not.
        """
        if cause is None or self._may_know(cause):
            return warning
        if warning.kind == "contradicted":
            return None
        return attrs.evolve(warning, id="", title="", reason=_VEILED)

    def passes(self, entry: Entry) -> bool:
        """True when the caller may see the note and it matches the filters."""
        note = entry.note
        if self._is_wide and note.status == "active" and note.access_scope == "shared":
            return True
        return self.shows(entry) and (self._is_open or self._fits(entry))

    def _fits(self, entry: Entry) -> bool:
        wanted = self.filters
        return has_tags(entry.note.all_tags, wanted.tags) and (
            wanted.path_prefix is None or entry.path.startswith(wanted.path_prefix)
        )

    async def admit(self, catalogue: Catalogue) -> list[Entry]:
        """All notes that pass, in the order of first indexing."""
        admitted: list[Entry] = []
        if self.among is not None:
            async for each in slices(_entries(catalogue, self.among)):
                admitted += filter(self.passes, each)
            return admitted
        wanted = FacetFilter(
            tags=self.filters.tags, path_prefix=self.filters.path_prefix, namespaces=self.namespaces
        )
        async for some in slices(catalogue.page(wanted).serials):
            admitted += filter(self.passes, catalogue.at_serials(some))
        return admitted


def _entries(catalogue: Catalogue, ids: Collection[str]) -> list[Entry]:
    found = (catalogue.get(note_id) for note_id in ids)
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.serial)


log = get_logger("lithos.retrieve")

#: Up to so many candidates are merged on the event loop, which takes a millisecond or two.
INLINE: Final = 3_000
#: Notes that are scored in one turn of the event loop.
SCORED: Final = 1_000
STATS_DEADLINE: Final = 5.0
#: The default traits of a note that was never retrieved, besides its type.
_UNUSED: Final = Traits(note_type="other", salience=INITIAL_SALIENCE, usage=0.0)


class Statistics(Protocol):
    """The statistics of notes: salience, usage, feedback."""

    async def stats(self, node_ids: Iterable[str]) -> Mapping[str, NodeStats]:
        """The stored rows of these notes."""


@frozen
class Chosen:
    """One note of an answer, with the scouts that found it; its traits where the ranking had to know them."""

    id: str
    score: float
    reasons: tuple[str, ...]
    scouts: frozenset[str]
    traits: Traits | None = None


@frozen(kw_only=True)
class Selection:
    """The notes of an answer, best first, of so many that were `considered`.

    `seeds` are those the answer was widened from, `chunks` the chunk to show by serial, where one is known;
    not `complete` when statistics could not be read.
    """

    notes: Sequence[Chosen]
    considered: int
    seeds: tuple[Entry, ...]
    chunks: Mapping[int, int]
    complete: bool
    #: What snippets are built around; none: the words of the query, all alike.
    terms: Terms = Terms()
    #: How well they match by serial, all others are weak; None where the rows say nothing of it.
    matches: Mapping[int, Judged] | None = None


@frozen
class Standing:
    """The final ranking; not `complete` when no statistics could be read."""

    ranked: Sequence[Ranked]
    complete: bool


@define
class Ranking:
    """Merges the candidates of all scouts and ranks them; no turn of the event loop is long."""

    _catalogue: Catalogue
    _statistics: Statistics
    _weights: RerankWeights
    _usage: UsageSettings
    _working: Blocking

    async def merge(self, found: Mapping[str, Sequence[Candidate]]) -> Mapping[str, Scaled]:
        """The candidate pool: one entry per note, with the scaled scores of the scouts that found it."""
        if sum(map(len, found.values())) <= INLINE:
            return merge(found)
        return await self._working.run(lambda: merge(found))

    async def rank(self, pool: Mapping[str, Scaled], most: int, now: datetime) -> Standing:
        """The top `most` of the pool by final score, without notes that no longer exist."""
        stats = await self.read_stats(pool)
        known, grounds = stats or {}, await self._ground(pool)
        await trio.lowlevel.checkpoint()
        saliences = {note_id: row.salience for note_id, row in known.items()}
        chosen = promising(grounds, saliences, _UNUSED, self._weights, most)
        scored: list[Ranked] = []
        async for some in slices(chosen, SCORED):
            for note_id in some:
                entry = self._catalogue.get(note_id)
                if entry is not None:
                    traits = self.traits(entry.note.note_type, known.get(note_id), now)
                    score = final_score(grounds[note_id], traits, self._weights)
                    scored.append(Ranked(note_id, score, pool[note_id], traits))
        return Standing(rank(scored, most), complete=stats is not None)

    async def _ground(self, pool: Mapping[str, Scaled]) -> dict[str, float]:
        """The partial scores that need no statistics (scouts, type prior) of the notes that still exist."""
        get = self._catalogue.get
        grounds: dict[str, float] = {}
        async for some in slices(list(pool), SCORED):
            types = {note_id: entry.note.note_type for note_id in some if (entry := get(note_id)) is not None}
            grounds |= ground_scores(pool, types, self._weights)
        return grounds

    def traits(self, note_type: str, stats: NodeStats | None, now: datetime) -> Traits:
        """The traits of a note of this type; without statistics those of one that was never used."""
        if stats is None:
            return Traits(note_type=note_type, salience=_UNUSED.salience, usage=_UNUSED.usage)
        usage = usage_score(stats, now, self._usage)
        return Traits(note_type=note_type, salience=stats.salience, usage=usage)

    async def read_stats(self, note_ids: Collection[str]) -> Mapping[str, NodeStats] | None:
        """The stored statistics; None when they cannot be read: then every note gets the default traits."""
        if not note_ids:
            return {}
        try:
            with trio.fail_after(STATS_DEADLINE):
                return await self._statistics.stats(note_ids)
        except (DatabaseFailed, OSError, trio.TooSlowError) as failure:
            log.warning("statistics not read", reason=repr(failure))
            return None
