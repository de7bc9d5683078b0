"""Which changes of one agent to take back, and how: a plan made of version rows; pure.

Consecutive changes of the agent to one note are one step: from the state after the last of them to that
before the first. Where that is not possible each change is a step. What a step does is decided when it is
carried out, from the versions newer by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from attrs import frozen

from lithos.core.events import ENRICH_AGENT
from lithos.core.history.versions import CREATED, DELETED, RENAMED, RESTORED, VersionRow

#: The agent whose versions take changes back, unless a person does it under another name.
UNDO_AGENT: Final = "undo"
#: What enrichment keeps up to date by itself; it is no change of anybody.
_MACHINE_MADE: Final = frozenset(("entities", "entities_extractor", "contributors", "updated_at", "version"))

#: `delete` what was created, `return` what was deleted, `revert` what was changed.
Kind = Literal["delete", "return", "revert"]


@frozen(kw_only=True)
class Step:
    """Consecutive changes of one note, newest first, and the state `before` them (None: there was none)."""

    changes: tuple[VersionRow, ...]
    before: VersionRow | None

    @property
    def last(self) -> VersionRow:
        """The newest of the changes."""
        return self.changes[0]

    @property
    def kind(self) -> Kind:
        """What taking it back means."""
        if self.last.op == DELETED:
            return "return"
        return "delete" if self.before is None or self.before.op == DELETED else "revert"

    @property
    def is_nothing(self) -> bool:
        """The note was not there before, and is not afterwards."""
        return self.last.op == DELETED and (self.before is None or self.before.op == DELETED)

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


def split_step(step: Step) -> list[Step]:
    """A step for each change, newest first."""
    befores = (*step.changes[1:], step.before)
    return [
        Step(changes=(change,), before=before) for change, before in zip(step.changes, befores, strict=True)
    ]


def plan_steps(rows: Sequence[VersionRow], is_wanted: Callable[[VersionRow], bool]) -> list[Step]:
    """The steps for one note, newest first; `rows` are its versions, newest first."""
    steps: list[Step] = []
    changes: list[VersionRow] = []
    passed: list[VersionRow] = []  # made by machine, perhaps between two changes
    for row in rows:
        if is_wanted(row):
            changes += [row]
            passed.clear()
        elif changes and is_machine_made(row):
            passed.append(row)
        elif changes:
            steps.append(Step(changes=tuple(changes), before=passed[0] if passed else row))
            changes, passed = [], []
    if changes and not passed and changes[-1].op != CREATED and len(changes) > 1:
        # What was before the oldest is not kept; the others go back to it.
        steps.append(Step(changes=tuple(changes[:-1]), before=changes.pop()))
        changes = [rows[-1]]
    if changes:
        steps.append(Step(changes=tuple(changes), before=passed[0] if passed else None))
    return steps


def is_machine_made(row: VersionRow) -> bool:
    """Enrichment wrote what it found in the text."""
    return row.agent == ENRICH_AGENT and bool(row.changed) and set(row.changed) <= _MACHINE_MADE


def since_by_others(newer: Sequence[VersionRow], by: str = UNDO_AGENT) -> VersionRow | None:
    """The newest change by somebody else among the versions after a step; `by` is whoever undoes.

    What that agent restored takes a change back; all else that it did is its own.
    """
    return next((row for row in newer if not (_takes_back(row, by) or is_machine_made(row))), None)


def is_undone(newer: Sequence[VersionRow], step: Step, by: str = UNDO_AGENT) -> bool:
    """Whether an earlier undo took a deletion or a move of this step back."""
    if step.kind == "return":
        return any(_takes_back(row, by) for row in newer)
    undone = [row for row in newer if row.agent in (UNDO_AGENT, by)]
    return any(row.op == RENAMED and step.before and row.path == step.before.path for row in undone)


def _takes_back(row: VersionRow, by: str) -> bool:
    return row.agent == UNDO_AGENT or (row.agent == by and row.op == RESTORED)
