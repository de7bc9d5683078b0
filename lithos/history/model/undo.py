"""Undo plans: which changes of an agent to undo, and how. The plans are computed from version rows only.

Consecutive changes by the agent to one note form one step. It leads from the state after the last change back
to the state before the first. A step is split if it needs a path or another unique value that another note of
the agent had in between. The steps of several notes are therefore interleaved as their changes were. If a
step is not possible, each of its changes becomes a separate step. The action of a step is chosen when the
step is executed, because newer versions may exist by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.values.principals import ENRICH_AGENT, UNDO_AGENT
from lithos.notes.model.paths import slug_of
from lithos.notes.model.versions import ADDRESS, CREATED, DELETED, RENAMED, RESTORED, VersionRow

#: Fields that enrichment updates automatically. Such an update does not count as an agent's change.
_MACHINE_MADE: Final = frozenset(("entities", "entities_extractor", "contributors", "updated_at", "version"))

#: Actions of a step: `delete` a created note, `return` a deleted note, or `revert` a changed note.
UndoKind = Literal["delete", "return", "revert"]


@frozen(kw_only=True)
class UndoStep:
    """Consecutive changes of one note, newest first, and the state `before` them.

    `before` is None if the note did not exist.
    """

    changes: tuple[VersionRow, ...]
    before: VersionRow | None

    @property
    def former(self) -> VersionRow | None:
        """The version before the step, or None if the note did not exist."""
        return None if self.before is None or self.before.op == DELETED else self.before

    @property
    def last(self) -> VersionRow:
        """The newest change in the step."""
        return self.changes[0]

    @property
    def kind(self) -> UndoKind:
        """The action that undoes the step."""
        if self.last.op == DELETED:
            return "return"
        return "delete" if self.former is None else "revert"

    @property
    def is_nothing(self) -> bool:
        """Whether the note did not exist before the step and does not exist after it."""
        return self.last.op == DELETED and self.former is None

    @property
    def is_pruned(self) -> bool:
        """Whether the state before the step is no longer kept."""
        return self.before is None and self.changes[-1].op != CREATED

    @property
    def moves(self) -> bool:
        """Whether the step moved the note, so that the undo must move it back."""
        return self.before is not None and self.before.path != self.last.path

    @property
    def writes(self) -> bool:
        """Whether the step changed the content of the note's file."""
        return self.before is not None and self.before.digest != self.last.digest


def split_step(step: UndoStep) -> list[UndoStep]:
    """Split a step into one step for each change, newest first."""
    befores = (*step.changes[1:], step.before)
    return [
        UndoStep(changes=(change,), before=before)
        for change, before in zip(step.changes, befores, strict=True)
    ]


def plan_steps(rows: Sequence[VersionRow], is_wanted: Callable[[VersionRow], bool]) -> list[UndoStep]:
    """Return the steps for one note, newest first. `rows` has the versions of the note, newest first."""
    steps: list[UndoStep] = []
    changes: list[VersionRow] = []
    passed: list[VersionRow] = []  # Machine-made versions, which may be between two changes of the agent.
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
        # The state before the oldest change is not kept. The later changes are therefore reverted to the
        # oldest change.
        steps.append(UndoStep(changes=tuple(changes[:-1]), before=changes.pop()))
        changes = [rows[-1]]
    if changes:
        steps.append(UndoStep(changes=tuple(changes), before=passed[0] if passed else None))
    return steps


def interleave(steps: Iterable[UndoStep], newest_first: Mapping[VersionRow, int]) -> list[UndoStep]:
    """Return the steps of all notes in execution order, split where necessary.

    `newest_first` returns the position of each change among the changes of all notes. The steps of one note
    are passed newest first and stay in that order, even if the positions differ.
    """
    parts: list[tuple[int, UndoStep, UndoStep]] = []
    reached: dict[str, int] = {}
    for step in steps:
        # If the note does not exist after a step is undone, the undo needs no free values. The whole step is
        # then undone at once.
        for part in split_step(step) if step.former is not None else [step]:
            note_id = part.last.note_id
            reached[note_id] = max(newest_first.get(part.last, 0), reached.get(note_id, 0))
            parts.append((reached[note_id], part, step))
    parts.sort(key=lambda part: part[0])
    joined: dict[int, list[UndoStep]] = {}
    groups: dict[int, int] = {}  # For each step, the index of the part to which changes may still be added.
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
    """The notes that got or freed a path, title or address, with the numbers of their changes."""

    def __init__(self) -> None:
        #: The last two notes that had each path, title or address. The later note is first.
        self._last: dict[str, tuple[tuple[int, str], ...]] = {}

    def add(self, number: int, part: UndoStep) -> None:
        """Record the values that a change frees or needs."""
        note_id = part.last.note_id
        for value in _values_of(part.last) ^ _values_of(part.former) | _address_of(part):
            others = [use for use in self._last.get(value, ()) if use[1] != note_id]
            self._last[value] = ((number, note_id), *others[:1])

    def any_since(self, number: int, part: UndoStep) -> bool:
        """Return whether another note has since had a value that is needed to undo this part."""
        needed = _values_of(part.former) - _values_of(part.last)
        if part.former is not None:
            needed |= _address_of(part)
        uses = (use for value in needed for use in self._last.get(value, ()))
        return any(at > number and note_id != part.last.note_id for at, note_id in uses)


def _values_of(row: VersionRow | None) -> frozenset[str]:
    """Return the unique values of a note: its path, and the file name made from its title."""
    if row is None or row.op == DELETED:
        return frozenset()
    return frozenset((f"path {row.path}", f"title {slug_of(row.title, row.note_id)}"))


def _address_of(part: UndoStep) -> frozenset[str]:
    """Return a placeholder for `source_url` if the step may add or remove it.

    Rows do not store the address.
    """
    is_it = part.kind != "revert" or any(ADDRESS in change.changed for change in part.changes)
    return frozenset(("address",)) if is_it else frozenset()


def is_machine_made(row: VersionRow) -> bool:
    """Return whether enrichment created the version by storing entities found in the text."""
    return row.agent == ENRICH_AGENT and bool(row.changed) and set(row.changed) <= _MACHINE_MADE


def since_by_others(newer: Sequence[VersionRow], by: str = UNDO_AGENT) -> VersionRow | None:
    """Return the newest change by another agent in the versions after a step.

    `by` is the agent that performs the undo.

    Restores by `by` count as undo. All other changes by `by` count like changes by other agents.
    """
    return next((row for row in newer if not (takes_back(row, by) or is_machine_made(row))), None)


def is_undone(newer: Sequence[VersionRow], step: UndoStep, by: str = UNDO_AGENT) -> bool:
    """Return whether an earlier undo already reversed the creation, deletion or move in this step."""
    if step.kind != "revert":
        gone = step.kind == "delete"
        return any(takes_back(row, by) and (row.op == DELETED or not gone) for row in newer)
    undone = [row for row in newer if row.is_undo or row.agent in (UNDO_AGENT, by)]
    return any(row.op == RENAMED and step.before and row.path == step.before.path for row in undone)


def takes_back(row: VersionRow, by: str = UNDO_AGENT) -> bool:
    """Return whether a version was made to undo a change.

    Older Lithos releases do not record that a version undoes a change. Any agent could use the name `undo`
    then. For the agent `undo`, only versions that restore an earlier state or path count.
    """
    if row.is_undo or (row.op == RESTORED and row.agent == by):
        return True
    return row.agent == UNDO_AGENT and row.op in (RESTORED, RENAMED)
