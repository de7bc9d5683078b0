"""Note lineage: the sources of a note, the notes that depend on it, and the resulting warnings.

Specified in docs/spec/context.md §2.

A note depends on its `derived_from_ids`. It also depends on the targets of its typed edges `derived_from`,
`depends_on` and `refines`, unless the edge is inferred. The lineage of a note is the transitive closure of
that relation. A note is suspect if a note in its lineage is quarantined or superseded. A superseded source is
excused if the note itself, or another note in its lineage, supersedes that source, directly or by a chain.

Each answer describes the state at the time of the call, and calls do not await anything. After each change, a
backward walk (`settle`) starts at all quarantined and superseded notes and finds the notes that may be
suspect. Most notes are not suspect, and one check shows that. For each other note, a forward walk finds the
nearest cause, which is cached until the next change. A call follows at most `STEPS` edges in each direction,
which takes about two milliseconds. So before the backward walk is complete, a call does not find causes
beyond the nearest `STEPS` edges. Callers that show notes therefore await `settle` first. A known cause is
reported even if the forward walk reaches this limit first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final

import trio
from attrs import frozen

from lithos.kernel.values.findings import name_some
from lithos.kernel.values.times import format_time
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.note import Note, NoteWarning

#: Maximum number of edges that one call follows in each direction. Both directions take about two
#: milliseconds.
STEPS: Final = 2_000
#: Number of edges that are followed before the step limit is checked again.
_AT_ONCE: Final = 250
#: Maximum number of other notes named in one kind of warning.
MOST_NAMED: Final = 3
#: Maximum number of successors of one note that are searched one by one. `_MOST_ALONE` is the maximum number
#: of superseded sources that one walk checks one by one.
_MOST_NEWER: Final = 20
_MOST_ALONE: Final = 3
#: Reason why a note with Git conflict markers cannot be trusted.
_MARKED: Final = "git left a conflict in the text, between <<<<<<< and >>>>>>>; the text contains both sides"
#: Maximum number of attempts of `settle` if notes change in the meantime.
_TRIES: Final = 20


@frozen
class LineageStep:
    """A note that is one edge away in the lineage.

    `via` is `derived_from_ids` or the type of a typed edge.
    """

    id: str
    via: str


@frozen
class _Cause:
    """The nearest note that makes another note suspect."""

    id: str
    distance: int


class Lineage:
    """Answers questions about the lineage of notes from the current relations."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._relations = catalogue.relations
        self._version = -1
        self._seen_leaves = 0
        #: Maps each note with a quarantined or superseded note in its lineage to the first such note found.
        self._doubtful: dict[str, str] = {}
        self._spreading: Iterator[None] = iter(())
        self._is_settled = False
        #: The causes that were found for doubtful notes since the last change.
        self._causes: dict[str, _Cause | None] = {}

    # -- sources and dependents --------------------------------------------------------------

    def sources(self, note_id: str) -> list[LineageStep]:
        """Return the existing direct sources of a note, sorted by id."""
        entry = self._catalogue.get(note_id)
        stated = () if entry is None else entry.note.derived_from_ids
        return self._kin(note_id, stated, self._relations.typed.types_from(note_id))

    def dependents(self, note_id: str) -> list[LineageStep]:
        """Return the existing notes that depend directly on a note, sorted by id."""
        stated = self._relations.derived.of(note_id)
        return self._kin(note_id, stated, self._relations.typed.types_to(note_id))

    def _kin(
        self, note_id: str, stated: Iterable[str], typed: Iterable[tuple[str, str]]
    ) -> list[LineageStep]:
        """Return the related notes. Each note is listed once, with one relation.

        A relation stated in a note has priority over typed edges. Of several typed edges, the one with the
        alphabetically first type is used.
        """
        found = dict.fromkeys(stated, "derived_from_ids")
        for other, via in sorted(typed):
            found.setdefault(other, via)
        return [
            LineageStep(other, via)
            for other, via in sorted(found.items())
            if other != note_id and other in self._catalogue
        ]

    # -- warnings ------------------------------------------------------------------------------

    def is_suspect(self, note_id: str) -> bool:
        """Return whether this note's lineage contains a quarantined or superseded note."""
        return note_id in self._catalogue and self._cause(note_id) is not None

    def warnings(self, note_id: str, now: datetime) -> tuple[NoteWarning, ...]:
        """Return the warnings about a note, ordered by kind. The result is empty for an unknown note."""
        entry = self._catalogue.get(note_id)
        if entry is None:
            return ()
        note, relations, found = entry.note, self._relations, list[NoteWarning]()
        if note.status == "quarantined":
            reason = note.quarantine_reason or "quarantined"
            found.append(NoteWarning("quarantined", note.id, note.title, reason, 0))
        if note_id in relations.successors:
            for other in self._existing(relations.successors.of(note_id)):
                found.append(
                    NoteWarning("superseded", other, self._title(other), "superseded by this note", 1)
                )
        cause = self._cause(note_id)
        if cause is not None:
            found.append(
                NoteWarning(
                    "suspect", cause.id, self._title(cause.id), self._explain(cause.id), cause.distance
                )
            )
        if note.expires_at is not None and note.is_stale(now):
            reason = f"expired at {format_time(note.expires_at)}"
            found.append(NoteWarning("expired", note.id, note.title, reason, 0))
        if opposed := relations.typed.opposed(note_id):
            for other in self._existing(opposed):
                found.append(
                    NoteWarning("contradicted", other, self._title(other), "unresolved contradiction", 1)
                )
        if note.has_conflict_markers or note_id in self._catalogue.doubles:
            found += self._other_sides(note)
        return tuple(found)

    @property
    def has_second_files(self) -> bool:
        """Return whether any note has a second file with the same id, or a conflict copy."""
        return bool(self._catalogue.doubles)

    def copies(self, note_id: str) -> list[dict[str, Any]]:
        """Return the paths of a note's conflict copies, and whether the text of each copy differs."""
        entry = self._catalogue.get(note_id)
        if entry is None or note_id not in self._catalogue.doubles:
            return []
        copies = self._catalogue.copies_of(note_id)
        return [{"path": path, "differs": copy.digest != entry.digest} for path, copy in copies]

    def _other_sides(self, note: Note) -> Iterator[NoteWarning]:
        """Yield the warnings about files with the same id, conflict copies and Git conflicts."""
        if doubles := self._catalogue.duplicates_of(note.id):
            reason = f"another file has the same id and is not served: {name_some(doubles)}"
            yield NoteWarning("duplicated", note.id, note.title, reason, 0)
        if copies := self._catalogue.copy_paths_of(note.id):
            reason = f"two machines changed this note; the text of one machine is in {name_some(copies)}"
            yield NoteWarning("conflict_copy", note.id, note.title, reason, 0)
        if note.has_conflict_markers:
            yield NoteWarning("conflict_markers", note.id, note.title, _MARKED, 0)

    def _existing(self, ids: Collection[str]) -> list[str]:
        """Return the existing notes, without duplicates and sorted by id.

        At most as many as a warning names are returned.
        """
        return sorted(each for each in set(islice(ids, STEPS)) if each in self._catalogue)[:MOST_NAMED]

    def _title(self, note_id: str) -> str:
        entry = self._catalogue.get(note_id)
        return "" if entry is None else entry.note.title

    def _explain(self, note_id: str) -> str:
        """Return why a note cannot be trusted."""
        entry = self._catalogue.get(note_id)
        if entry is None or entry.note.status != "quarantined":
            return "depends on a superseded note"
        reason = entry.note.quarantine_reason
        return f"depends on a quarantined note: {reason}" if reason else "depends on a quarantined note"

    # -- backward walk: notes that may be suspect ----------------------------------------------------

    async def settle(self) -> None:
        """Find the notes that may be suspect, in steps of one or two milliseconds.

        If the lineage changes too often during the search, the search stops. Each later call then searches
        separately.
        """
        version, tries = -1, 0
        while tries < _TRIES:
            self._catch_up()
            if self._is_settled:
                return
            tries += version != self._version
            version = self._version
            await trio.lowlevel.checkpoint()

    def _catch_up(self) -> None:
        """Process new changes, and follow some more edges backward.

        After most changes, the backward walk starts again.
        """
        relations = self._relations
        leaves = relations.leaves[self._seen_leaves :]
        is_changed = self._version != relations.version
        if is_changed or (leaves and not self._is_settled) or len(leaves) > _AT_ONCE:
            self._version, self._seen_leaves = relations.version, len(relations.leaves)
            self._doubtful, self._causes = {}, {}
            self._spreading, self._is_settled = self._follow_back(self._doubtful), False
        elif leaves:
            self._seen_leaves = len(relations.leaves)
            for leaf in leaves:  # leaves are in change order, so sources come before their dependents
                self._see_leaf(leaf)
        if not self._is_settled:
            for _ in islice(self._spreading, STEPS // _AT_ONCE):
                pass
            self._is_settled = next(self._spreading, self) is self

    def _see_leaf(self, leaf: str) -> None:
        """Check a leaf, that is, a note without dependents.

        The leaf may be suspect if one of its sources is suspect.
        """
        relations = self._relations
        self._causes.pop(leaf, None)
        self._doubtful.pop(leaf, None)
        for source in self._rests_on(leaf):
            if source in self._catalogue:
                is_bad = source in relations.quarantined or source in relations.successors
                if is_bad or source in self._doubtful:
                    self._doubtful[leaf] = source if is_bad else self._doubtful[source]
                    return

    def _follow_back(self, doubtful: dict[str, str]) -> Iterator[None]:
        """Add all dependents of quarantined and superseded notes to `doubtful`.

        The generator yields after every `_AT_ONCE` edges.
        """
        relations, exists = self._relations, self._catalogue.__contains__
        derived, typed, steps = relations.derived, relations.typed, 0
        # A change ends this walk, so these collections do not change during the iteration.
        for cause in chain(relations.quarantined, relations.successors.keys()):
            steps += 1
            if not exists(cause):
                continue
            waiting = [cause]
            while waiting:
                note_id = waiting.pop()
                for other in chain(derived.of(note_id), typed.dependents(note_id)):
                    steps += 1
                    if other not in doubtful and exists(other):
                        doubtful[other] = cause
                        waiting.append(other)
                    if not steps % _AT_ONCE:
                        yield

    # -- forward walk: the nearest cause ------------------------------------------------------------

    def _cause(self, note_id: str) -> _Cause | None:
        """Return the nearest note that makes this note suspect."""
        relations = self._relations
        is_changed = self._version != relations.version or self._seen_leaves != len(relations.leaves)
        if is_changed or not self._is_settled:
            self._catch_up()
        if self._is_settled and note_id not in self._doubtful:
            return None
        if note_id not in self._causes:
            cause, is_final = self._walk(note_id)
            if not is_final:
                return cause
            self._causes[note_id] = cause
        return self._causes[note_id]

    def _walk(self, note_id: str) -> tuple[_Cause | None, bool]:
        """Return the nearest cause, and whether this result is valid until the next change."""
        relations, exists = self._relations, self._catalogue.__contains__
        quarantined, successors, doubtful = relations.quarantined, relations.successors, self._doubtful
        is_settled, reached, frontier = self._is_settled, {note_id}, [note_id]
        excuses = _Excuses(self, note_id)
        distance = steps = 0
        while frontier:
            distance += 1
            beside: list[str] = []
            for each in frontier:
                for source in self._rests_on(each):
                    steps += 1
                    if steps > STEPS:
                        return self._give_up(note_id, distance), is_settled
                    if source in reached:
                        continue
                    # A source cannot lead to a cause if it is neither doubtful nor a cause itself.
                    is_bad = source in quarantined or source in successors
                    if (is_bad or not is_settled or source in doubtful) and exists(source):
                        reached.add(source)
                        beside.append(source)
            for source in sorted(each for each in beside if each in quarantined or each in successors):
                if source in quarantined or source not in excuses:
                    return _Cause(source, distance), True
            frontier = beside
        return None, True

    def _give_up(self, note_id: str, distance: int) -> _Cause | None:
        """Return a known cause, which may not be the nearest one. Return None if no cause is known."""
        cause = self._doubtful.get(note_id)
        return None if cause is None or cause not in self._catalogue else _Cause(cause, distance)

    def _rests_on(self, note_id: str) -> Iterable[str]:
        entry = self._catalogue.get(note_id)
        stated = () if entry is None else entry.note.derived_from_ids
        typed = self._relations.typed.sources(note_id)
        return chain(stated, typed) if typed else stated

    def reach(self, note_id: str) -> set[str]:
        """Return the ids of the note and of the notes in its lineage. At most `STEPS` edges are followed."""
        reached, waiting, steps = {note_id}, [note_id], 0
        for each in waiting:
            for source in self._rests_on(each):
                steps += 1
                if steps > STEPS:
                    return reached
                if source not in reached and source in self._catalogue:
                    reached.add(source)
                    waiting.append(source)
        return reached

    def is_excused(self, note_id: str, source: str) -> bool | None:
        """Return whether a note, or another note in its lineage, supersedes a source.

        Return None if the source has too many successors to search them all.

        The search starts at both ends. In a dense lineage, both directions meet after a few dozen notes.
        """
        newer = list(self._relations.successors.of(source))
        for each in newer:  # successors of successors count as well
            if len(newer) > _MOST_NEWER:
                return None
            newer += [one for one in self._relations.successors.of(each) if one not in newer]
        ahead, behind, front, back, left = {note_id}, set(newer), [note_id], newer, STEPS
        if note_id in behind:
            return True
        while front and back and left > 0:
            if len(front) <= len(back):
                front, left, meets = self._widen(front, self._rests_on, ahead, behind, left)
            else:
                back, left, meets = self._widen(back, self._rested_on_by, behind, ahead, left)
            if meets:
                return True
        return False

    def _widen(
        self,
        front: Iterable[str],
        step: Callable[[str], Iterable[str]],
        near: set[str],
        far: Collection[str],
        left: int,
    ) -> tuple[list[str], int, bool]:
        """Extend the search by one level of edges.

        Return the new front, the number of remaining edges, and whether both directions have met.
        """
        found: list[str] = []
        for each in front:
            for other in step(each):
                left -= 1
                if left < 0:
                    return [], left, False
                if other not in near and other in self._catalogue:
                    near.add(other)
                    found.append(other)
                    if other in far:
                        return found, left, True
        return found, left, False

    def _rested_on_by(self, note_id: str) -> Iterable[str]:
        return chain(self._relations.derived.of(note_id), self._relations.typed.dependents(note_id))

    def replaced_by(self, ids: Iterable[str]) -> set[str]:
        """Return the notes that these notes supersede, directly or by a chain."""
        replaced, steps = set[str](), 0
        for each in ids:
            at: str | None = each
            while at is not None and (entry := self._catalogue.get(at)) is not None:
                newer, at = at, entry.note.supersedes
                if at is None or at == newer or at in replaced:
                    break
                steps += 1
                if steps > STEPS:
                    return replaced
                replaced.add(at)
        return replaced


class _Excuses:
    """The superseded notes that do not make a note suspect. They are computed only as far as needed.

    The first superseded sources are checked one by one. If there are more, one pass finds all notes that the
    lineage supersedes. So the cost of a long version chain is proportional to its length.
    """

    def __init__(self, lineage: Lineage, note_id: str) -> None:
        self._lineage = lineage
        self._note_id = note_id
        self._own: set[str] | None = None
        self._whole: set[str] | None = None
        self._alone = 0

    def __contains__(self, source: str) -> bool:
        lineage, note_id = self._lineage, self._note_id
        if self._own is None:
            self._own = lineage.replaced_by([note_id])
        if source in self._own:
            return True
        if self._whole is None and self._alone < _MOST_ALONE:
            self._alone += 1
            is_excused = lineage.is_excused(note_id, source)
            if is_excused is not None:
                return is_excused
        if self._whole is None:
            self._whole = lineage.replaced_by(lineage.reach(note_id))
        return source in self._whole
