"""Looks through all notes for what wants care (docs/spec/copies.md §5); opens tasks for it if asked.

What only needs the catalogue is looked at in short slices on the event loop; texts, vectors and names are for
a thread of low priority, a few notes at a time, so that nobody waits for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from heapq import nlargest
from typing import Final

import numpy as np
import trio
from attrs import define, field, frozen

from lithos.actors.actors import Actors
from lithos.actors.blocking import BackgroundThread, Blocking
from lithos.actors.indexing.semantic import SemanticUnavailable
from lithos.catalogue.catalogue import Entry
from lithos.core.care import (
    BROKEN,
    CONTRADICTED,
    COPIES,
    DEAD_LINKS,
    DUPLICATES,
    EXPIRED,
    GROUPS,
    MARKERS,
    STUB_WORDS,
    STUBS,
    SUSPECT,
    UNLINKED,
    UNUSED,
    CareReport,
    CareRow,
    Clusters,
    Found,
    LikelyNotes,
    Named,
    words_of,
)
from lithos.core.notes.links import file_alias
from lithos.core.notes.model import WarningKind
from lithos.core.tasks.commands import CreateTask
from lithos.core.text.hidden import hide, without_hidden
from lithos.core.text.likeness import LOOKED_AT, STRONG, Pairs, Templates, likeness, word_pairs
from lithos.core.text.markdown import visible_text
from lithos.services.notes.concerns import in_slices, named_of
from lithos.services.notes.texts import NoteTexts
from lithos.services.search.duplicates import read_bodies
from lithos.services.tasks.coordination import Coordination, TaskFilter
from lithos.stores.indexes.vectors import VectorIndex
from lithos.stores.sqlite import DatabaseFailed

#: Notes of one call of the thread, and seconds of one slice on the event loop.
AT_ONCE: Final = 20
SLICE: Final = 0.002
#: Passages of a note that are looked for beside its mean, the notes asked for of each, and those compared.
PASSAGES: Final = 3
NEAREST: Final = 8
CLOSEST: Final = 5
#: Notes of a cluster that stands before larger ones.
FEW: Final = 3
#: Notes of which the nearest are looked for: those changed last.
COMPARED: Final = 30_000
#: Targets that lead nowhere of which it is looked for what they mean.
LINKS: Final = 2_000
#: Bytes of a file that may be a stub.
STUB_BYTES: Final = 2_000
#: Accesses that are read at once.
PAGE: Final = 20_000
#: What a task of a group is found by.
METADATA_KEY: Final = "care"
_WARNED: Final[Mapping[WarningKind, str]] = {
    "expired": EXPIRED, "contradicted": CONTRADICTED, "suspect": SUSPECT, "conflict_copy": COPIES,
    "conflict_markers": MARKERS,
}  # fmt: skip


@frozen
class OpenedTask:
    """The task of a group; `is_new` is False for one that was there already."""

    group: str
    task_id: str
    is_new: bool


@define(eq=False)
class Care:
    """Looks when it is asked; a look that was asked for goes on when its asker leaves."""

    _actors: Actors
    _texts: NoteTexts
    _coordination: Coordination
    _days: int
    _thread: Blocking = field(factory=lambda: BackgroundThread("care"))
    #: What the last look found.
    last: CareReport | None = field(default=None, init=False)
    _wanted: trio.Event = field(factory=trio.Event, init=False)
    #: Set when the look that is asked for, or going on, has ended.
    _ended: trio.Event = field(factory=trio.Event, init=False)
    _turn: trio.Lock = field(factory=trio.Lock, init=False)

    async def run(self) -> None:
        """Look whenever somebody asked; until cancelled."""
        while True:
            await self._wanted.wait()
            self.last = await self._look()
            ended, self._ended, self._wanted = self._ended, trio.Event(), trio.Event()
            ended.set()

    async def report(self, patience: float) -> CareReport | None:
        """What a look finds that begins now, or goes on; None when it takes longer than so many seconds."""
        ended = self._ended
        self._wanted.set()
        with trio.move_on_after(patience):
            await ended.wait()
            return self.last
        return None

    async def open_tasks(self, report: CareReport, agent: str) -> list[OpenedTask]:
        """A task for each group that has something, unless one is open, or the last was of the same rows."""
        async with self._turn:
            return [await self._open_task(report, group, agent) for group in report.totals]

    async def _open_task(self, report: CareReport, group: str, agent: str) -> OpenedTask:
        digest = _digest(report.rows[group])
        mine = await self._coordination.list_tasks(
            TaskFilter(metadata_match={METADATA_KEY: group}), with_claims=False
        )
        for view in mine:
            if view.task.status == "open" or view.task.metadata.get("rows") == digest:
                return OpenedTask(group, view.task.id, is_new=False)
        title, todo = GROUPS[group]
        lines = [f"{todo} `lithos care` has all {report.totals[group]:,}.", ""]
        lines += [f"* {_told(row)}" for row in report.rows[group][:50]]
        command = CreateTask(
            title=f"Care for notes: {title.lower()}",
            description="\n".join(lines)[:8_000],
            tags=("care",),
            metadata={METADATA_KEY: group, "rows": digest},
            agent=agent,
        )
        return OpenedTask(group, await self._coordination.run(command), is_new=True)

    # -- one look ----------------------------------------------------------------------------------

    async def _look(self) -> CareReport:
        actors, found, troubles = self._actors, Found(), list[str]()
        await actors.opening.wait_known()
        await actors.lineage.settle()
        now = actors.clock()
        while not actors.catalogue.graph.settle(1):
            await trio.lowlevel.checkpoint()
        ids = [entry.note.id for entry in actors.catalogue]
        used = await self._used(now, troubles)
        small: list[Entry] = []
        async for entry in self._entries(ids):
            self._look_at(entry, now, used, found)
            if entry.note.status == "active" and entry.state.size <= STUB_BYTES:
                small.append(entry)
        self._add_unread(found)
        await self._find_stubs(small, found)
        await self._find_dead_links(ids, found)
        await self._find_duplicates(ids, found, troubles)
        return found.report(now, len(ids), troubles)

    def _entries(self, ids: Sequence[str]) -> AsyncIterator[Entry]:
        return in_slices(self._actors.catalogue, ids, SLICE)

    def _look_at(self, entry: Entry, now: datetime, used: frozenset[str] | None, found: Found) -> None:
        """What the catalogue knows of one note."""
        note, named = entry.note, named_of(entry)
        if note.frontmatter_problem is not None:
            found.add(BROKEN, CareRow(notes=(named,), why=note.frontmatter_problem))
        for warning in self._actors.lineage.warnings(note.id, now):
            group = _WARNED.get(warning.kind)
            if group is None or (group == CONTRADICTED and warning.id < note.id):
                continue  # of two notes that contradict each other one is told
            about = self._actors.catalogue.get(warning.id) if warning.id != note.id else None
            notes = (named,) if about is None else (named, named_of(about))
            found.add(group, CareRow(notes=notes, why=warning.reason))
        if note.status != "active":
            return
        links = self._actors.catalogue.graph.links
        if not any(map(len, links.neighbours(note.id))) and not note.derived_from_ids:
            found.add(UNLINKED, CareRow(notes=(named,), why="no note links to it, and it links to none"))
        if used is not None and note.id not in used and note.updated_at < now - timedelta(days=self._days):
            why = f"not changed since {note.updated_at:%Y-%m-%d}, and neither read nor cited since"
            found.add(UNUSED, CareRow(notes=(named,), why=why))

    def _add_unread(self, found: Found) -> None:
        """The files that are not served, but for conflict copies and others that have a note's id."""
        skipped = self._actors.catalogue.skipped
        for path, about in sorted(skipped.items()):
            if about.note_id is None:
                named = Named(None, path.rpartition("/")[2].removesuffix(".md"), path)
                found.add(BROKEN, CareRow(notes=(named,), why=about.reason))

    async def _used(self, now: datetime, troubles: list[str]) -> frozenset[str] | None:
        """The notes that were read, cited or of use within the days that count."""
        since, used = now - timedelta(days=self._days), set[str]()
        store, reading = self._actors.stores.coordination, self._actors.coordination_reading
        try:
            place = 0
            while True:
                at = place
                read, place = await reading.run(partial(store.read_after, at, since, PAGE))
                used |= read
                if place == at:
                    break
            used |= await reading.run(lambda: store.readable_task_rows().impact.cited_since(since))
        except DatabaseFailed as failure:
            troubles.append(f"What was used cannot be told: {failure}")
            return None
        return frozenset(used)

    async def _find_stubs(self, small: Sequence[Entry], found: Found) -> None:
        for start in range(0, len(small), AT_ONCE):
            some = small[start : start + AT_ONCE]
            texts = await self._thread.run(partial(read_bodies, self._actors.stores.files, some))
            for entry, text in zip(some, texts, strict=True):
                number = None if text is None else len(words_of(visible_text(text)))
                if number is not None and number < STUB_WORDS:
                    why = f"{number} words" if number else "no text"
                    found.add(STUBS, CareRow(notes=(named_of(entry),), why=why))

    async def _find_dead_links(self, ids: Sequence[str], found: Found) -> None:
        graph, catalogue = self._actors.catalogue.graph, self._actors.catalogue
        broken = sorted(graph.broken_targets())
        if not broken:
            return
        likely = LikelyNotes()
        async for entry in self._entries(ids):
            likely.add(named_of(entry), (entry.note.title, file_alias(entry.path), *entry.note.aliases))
        rows: list[CareRow] = []
        for target in broken[:LINKS]:
            known = (catalogue.get(each) for each in graph.writers_of(target))
            writers = sorted(filter(None, known), key=lambda entry: entry.path)
            meant = await self._thread.run(partial(likely.find, target))
            hint = "" if meant is None else f"; {meant.path} may be meant"
            why = f"[[{target[:200]}]] leads nowhere{hint}"
            notes = tuple(map(named_of, writers[:10]))
            rows.append(CareRow(notes=notes, why=why, link=target, likely=meant))
        # Those first that are easily corrected, and of these those that most notes have.
        for row in sorted(rows, key=lambda row: (row.likely is None, -len(row.notes))):
            found.add(DEAD_LINKS, row)
        found.count(DEAD_LINKS, len(broken) - len(rows))

    # -- near duplicates ---------------------------------------------------------------------------

    async def _find_duplicates(self, ids: Sequence[str], found: Found, troubles: list[str]) -> None:
        catalogue = self._actors.catalogue
        try:
            vectors = self._actors.semantic.static_vectors()
        except SemanticUnavailable as problem:
            troubles.append(f"Near duplicates were not looked for: {problem}")
            return
        entries = [entry async for entry in self._entries(ids) if entry.note.status == "active"]
        entries.sort(key=lambda entry: entry.note.updated_at, reverse=True)
        if len(entries) > COMPARED:
            troubles.append(f"Near duplicates were looked for of the {COMPARED:,} notes changed last.")
        pairs: list[tuple[Entry, Entry]] = []
        for start in range(0, min(len(entries), COMPARED), AT_ONCE):
            some = entries[start : start + AT_ONCE]
            near = await self._thread.run(partial(_nearest, vectors, some))
            for entry, serials in zip(some, near, strict=True):
                for other in map(catalogue.at_serial, serials):
                    if other is not None and _may_repeat(entry, other):
                        pairs.append((entry, other))
        shares = await self._shares(pairs)
        clusters = Clusters()
        for first, second in shares:
            clusters.join(first, second)
        best: dict[str, float] = {}
        for pair, share in shares.items():
            best |= {each: max(share, best.get(each, 0.0)) for each in pair}
        groups = [(max(map(best.__getitem__, group)), group) for group in clusters.groups()]
        # Two notes that say the same are merged in a minute; many are rather a list of something.
        for share, group in sorted(groups, key=lambda row: (len(row[1]) > FEW, -row[0], row[1])):
            notes = [named_of(known) for each in group if (known := catalogue.get(each)) is not None]
            why = f"they share up to {share:.0%} of their neighbouring words"
            found.add(DUPLICATES, CareRow(notes=tuple(notes[:20]), why=why))

    async def _shares(self, pairs: Sequence[tuple[Entry, Entry]]) -> dict[tuple[str, str], float]:
        """The pairs that share enough, by their ids."""
        wanted = {entry.note.id: entry for pair in pairs for entry in pair}
        known: dict[str, Pairs] = {}
        entries = list(wanted.values())
        for start in range(0, len(entries), AT_ONCE):
            some = entries[start : start + AT_ONCE]
            await self._texts.frames.learn(some)
            known |= await self._thread.run(partial(self._word_pairs, some))
        found: dict[tuple[str, str], float] = {}
        for start in range(0, len(pairs), 10 * AT_ONCE):
            part = pairs[start : start + 10 * AT_ONCE]
            found |= await self._thread.run(partial(_compare, part, known))
        return await self._without_templates(found, known)

    async def _without_templates(
        self, alike: Mapping[tuple[str, str], float], known: Mapping[str, Pairs]
    ) -> dict[tuple[str, str], float]:
        """Those pairs that still share enough without what a template gave them, wherever its notes are."""
        if not alike:
            return {}
        templates = await self._thread.run(partial(_templates_of, alike, known))
        rows, found = list(alike), dict[tuple[str, str], float]()
        for start in range(0, len(rows), 10 * AT_ONCE):
            part = rows[start : start + 10 * AT_ONCE]
            found |= await self._thread.run(partial(_compare_without, part, known, templates))
        return found

    def _word_pairs(self, entries: Sequence[Entry]) -> dict[str, Pairs]:
        """The pairs of words of notes without what their folders share. Blocks."""
        known: dict[str, Pairs] = {}
        for entry, text in zip(entries, read_bodies(self._actors.stores.files, entries), strict=True):
            if text is not None:
                frame = self._texts.frames.of(entry)
                known[entry.note.id] = word_pairs(without_hidden(hide(text[:LOOKED_AT], frame)))
        return known


def _nearest(vectors: VectorIndex, entries: Sequence[Entry]) -> list[list[int]]:
    found: list[list[int]] = []
    for entry in entries:
        own = vectors.passages_of(entry.serial, PASSAGES)
        near = {hit.serial for hits in vectors.nearest_by_mean(own, NEAREST) for hit in hits}
        close = vectors.closeness(own, near - {entry.serial})
        found.append(nlargest(CLOSEST, close, key=close.__getitem__))
    return found


def _may_repeat(one: Entry, other: Entry) -> bool:
    """Whether two notes could be duplicates that nobody has settled yet."""
    mine, its = one.note, other.note
    is_settled = its.id in (mine.supersedes, *mine.derived_from_ids) or mine.id in (
        its.supersedes,
        *its.derived_from_ids,
    )
    return its.status == "active" and not is_settled


def _compare(
    pairs: Sequence[tuple[Entry, Entry]], known: Mapping[str, Pairs]
) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for one, other in pairs:
        first, second = sorted((one.note.id, other.note.id))
        if (first, second) in found or first not in known or second not in known:
            continue
        share = likeness(known[first], known[second])
        if share >= STRONG:
            found[first, second] = share
    return found


def _templates_of(alike: Collection[tuple[str, str]], known: Mapping[str, Pairs]) -> Templates:
    """Which notes have what pairs of notes share."""
    shared = (np.intersect1d(known[one], known[other], assume_unique=True) for one, other in alike)
    return Templates.of(known, np.unique(np.concatenate(list(shared))))


def _compare_without(
    pairs: Sequence[tuple[str, str]], known: Mapping[str, Pairs], templates: Templates
) -> dict[tuple[str, str], float]:
    """The pairs that share enough without their template, with that share."""
    shares = {(one, other): templates.likeness(known[one], known[other]) for one, other in pairs}
    return {pair: share for pair, share in shares.items() if share >= STRONG}


def _told(row: CareRow) -> str:
    """A row in one line."""
    return f"{', '.join(note.path for note in row.notes[:5])}: {row.why}"


def _digest(rows: Sequence[CareRow]) -> str:
    told = "\n".join(sorted(f"{[note.id for note in row.notes]} {row.link}" for row in rows))
    return hashlib.sha256(told.encode()).hexdigest()[:16]
