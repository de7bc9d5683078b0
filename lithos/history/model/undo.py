"""Which changes of one agent to take back, and how: a plan made of version rows; pure.

Consecutive changes of the agent to one note are one step: from the state after the last of them to that
before the first, unless that would need a path or another unique value which one of its other notes had in
between: so steps of several notes interleave as their changes did. Where a step is not possible each of its
changes is one. What a step does is decided when it is carried out, from the versions newer by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.values.principals import ENRICH_AGENT, UNDO_AGENT
from lithos.notes.model.paths import slug_of
from lithos.notes.model.versions import ADDRESS, CREATED, DELETED, RENAMED, RESTORED, VersionRow

#: What enrichment keeps up to date by itself; it is no change of anybody.
_MACHINE_MADE: Final = frozenset(("entities", "entities_extractor", "contributors", "updated_at", "version"))

#: `delete` what was created, `return` what was deleted, `revert` what was changed.
UndoKind = Literal["delete", "return", "revert"]


@frozen(kw_only=True)
class UndoStep:
    """Consecutive changes of one note, newest first, and the state `before` them (None: there was none)."""

    changes: tuple[VersionRow, ...]
    before: VersionRow | None

    @property
    def former(self) -> VersionRow | None:
        """The version before, where the note was there then."""
        return None if self.before is None or self.before.op == DELETED else self.before

    @property
    def last(self) -> VersionRow:
        """The newest of the changes."""
        return self.changes[0]

    @property
    def kind(self) -> UndoKind:
        """What taking it back means."""
        if self.last.op == DELETED:
            return "return"
        return "delete" if self.former is None else "revert"

    @property
    def is_nothing(self) -> bool:
        """The note was not there before, and is not afterwards."""
        return self.last.op == DELETED and self.former is None

    @property
    def is_pruned(self) -> bool:
        """The state before is not kept any more."""
        return self.before is None and self.changes[-1].op != CREATED

    @property
    def moves(self) -> bool:
        """The note was moved, so that it is to go back as well."""
        return self.before is not None and self.before.path != self.last.path

    @property
    def writes(self) -> bool:
        """The bytes differ."""
        return self.before is not None and self.before.digest != self.last.digest


def split_step(step: UndoStep) -> list[UndoStep]:
    """A step for each change, newest first."""
    befores = (*step.changes[1:], step.before)
    return [
        UndoStep(changes=(change,), before=before)
        for change, before in zip(step.changes, befores, strict=True)
    ]


def plan_steps(rows: Sequence[VersionRow], is_wanted: Callable[[VersionRow], bool]) -> list[UndoStep]:
    """The steps for one note, newest first; `rows` are its versions, newest first."""
    steps: list[UndoStep] = []
    changes: list[VersionRow] = []
    passed: list[VersionRow] = []  # made by machine, perhaps between two changes
    for row in rows:
        if is_wanted(row):
            changes += [row]
            passed.clear()
        elif changes and is_machine_made(row):
            passed.append(row)
        elif changes:
            steps.append(UndoStep(changes=tuple(changes), before=passed[0] if passed else row))
            changes, passed = [], []
    if changes and not passed and changes[-1].op != CREATED and len(changes) > 1:
        # What was before the oldest is not kept; the others go back to it.
        steps.append(UndoStep(changes=tuple(changes[:-1]), before=changes.pop()))
        changes = [rows[-1]]
    if changes:
        steps.append(UndoStep(changes=tuple(changes), before=passed[0] if passed else None))
    return steps


def interleave(steps: Iterable[UndoStep], newest_first: Mapping[VersionRow, int]) -> list[UndoStep]:
    """The steps of all notes in the order in which to carry them out, cut where they have to be.

    `newest_first` has the place of each change among those of all notes. The steps of a note come newest
    first, and that order holds whatever the places say.
    """
    parts: list[tuple[int, UndoStep, UndoStep]] = []
    reached: dict[str, int] = {}
    for step in steps:
        # What ends without the note needs nothing: it is done at once.
        for part in split_step(step) if step.former is not None else [step]:
            note_id = part.last.note_id
            reached[note_id] = max(newest_first.get(part.last, 0), reached.get(note_id, 0))
            parts.append((reached[note_id], part, step))
    parts.sort(key=lambda part: part[0])
    joined: dict[int, list[UndoStep]] = {}
    groups: dict[int, int] = {}  # of each step the number of its part that may still grow
    uses = _Uses()
    for number, (_, part, step) in enumerate(parts):
        group = groups.get(id(step))
        if group is None or uses.any_since(group, part):
            groups[id(step)] = group = number
        joined.setdefault(group, []).append(part)
        uses.add(number, part)
    return [
        UndoStep(changes=tuple(change for part in group for change in part.changes), before=group[-1].before)
        for group in joined.values()
    ]


class _Uses:
    """Which notes came to a path, title or address or left it, by the numbers of the changes."""

    def __init__(self) -> None:
        #: The last two notes of each, the later one first.
        self._last: dict[str, tuple[tuple[int, str], ...]] = {}

    def add(self, number: int, part: UndoStep) -> None:
        """Note what a change frees and takes."""
        note_id = part.last.note_id
        for value in _values_of(part.last) ^ _values_of(part.former) | _address_of(part):
            others = [use for use in self._last.get(value, ()) if use[1] != note_id]
            self._last[value] = ((number, note_id), *others[:1])

    def any_since(self, number: int, part: UndoStep) -> bool:
        """Whether another note had since what this one needs to go back."""
        needed = _values_of(part.former) - _values_of(part.last)
        if part.former is not None:
            needed |= _address_of(part)
        uses = (use for value in needed for use in self._last.get(value, ()))
        return any(at > number and note_id != part.last.note_id for at, note_id in uses)


def _values_of(row: VersionRow | None) -> frozenset[str]:
    """What a note has for itself: its path, and its title as names of files are made of it."""
    if row is None or row.op == DELETED:
        return frozenset()
    return frozenset((f"path {row.path}", f"title {slug_of(row.title, row.note_id)}"))


def _address_of(part: UndoStep) -> frozenset[str]:
    """Stands for any `source_url`, where that of the note may come or go: rows do not say which it is."""
    is_it = part.kind != "revert" or any(ADDRESS in change.changed for change in part.changes)
    return frozenset(("address",)) if is_it else frozenset()


def is_machine_made(row: VersionRow) -> bool:
    """Enrichment wrote what it found in the text."""
    return row.agent == ENRICH_AGENT and bool(row.changed) and set(row.changed) <= _MACHINE_MADE


def since_by_others(newer: Sequence[VersionRow], by: str = UNDO_AGENT) -> VersionRow | None:
    """The newest change by somebody else among the versions after a step; `by` is whoever undoes.

    What that agent restored takes a change back; all else that it did is its own.
    """
    return next((row for row in newer if not (takes_back(row, by) or is_machine_made(row))), None)


def is_undone(newer: Sequence[VersionRow], step: UndoStep, by: str = UNDO_AGENT) -> bool:
    """Whether an earlier undo took a creation, a deletion or a move of this step back."""
    if step.kind != "revert":
        gone = step.kind == "delete"
        return any(takes_back(row, by) and (row.op == DELETED or not gone) for row in newer)
    undone = [row for row in newer if row.is_undo or row.agent in (UNDO_AGENT, by)]
    return any(row.op == RENAMED and step.before and row.path == step.before.path for row in undone)


def takes_back(row: VersionRow, by: str = UNDO_AGENT) -> bool:
    """Whether a version takes a change back.

    Versions that older programs made do not say so: of the agent `undo`, whose name any agent could have
    then, what only brings earlier states back is believed.
    """
    if row.is_undo or (row.op == RESTORED and row.agent == by):
        return True
    return row.agent == UNDO_AGENT and row.op in (RESTORED, RENAMED)
