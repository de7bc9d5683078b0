"""Undo plans: changes that form one step, and the state that the step restores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lithos.history.model.undo import UndoStep, is_undone, plan_steps, since_by_others
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.notes.model.versions import VersionRow

START = datetime(2026, 3, 4, tzinfo=UTC)


def rows_of(*told: str) -> list[VersionRow]:
    """Return the versions 1, 2, … of one note, newest first.

    The specifications have the form `agent op [path]` and are oldest first.
    """
    rows = []
    for number, text in enumerate(told, 1):
        agent, op, *path = text.split()
        rows.append(
            VersionRow(
                note_id="n", version=number, at=START + timedelta(minutes=number), agent=agent, op=op,
                path=path[0] if path else "a.md", title="A", digest=f"d{number}", size=1,
                changed=("entities",) if agent == ENRICH_AGENT else ("body",),
            )
        )  # fmt: skip
    return rows[::-1]


def planned(*told: str) -> list[tuple[str, list[int], int | None]]:
    """Return (kind, versions, version to restore) for each step of an undo of the agent `bad`."""
    steps = plan_steps(rows_of(*told), lambda row: row.agent == "bad")
    return [
        (step.kind, [each.version for each in step.changes], step.before and step.before.version)
        for step in steps
    ]


def test_consecutive_changes_form_one_step_and_steps_are_newest_first() -> None:
    assert planned("ann created", "bad updated", "bad updated", "bob updated", "bad updated") == [
        ("revert", [5], 4),
        ("revert", [3, 2], 1),
    ]


def test_undo_deletes_created_notes_and_restores_deleted_notes() -> None:
    assert planned("bad created", "bad updated") == [("delete", [2, 1], None)]
    assert planned("ann created", "bad updated", "bad deleted") == [("return", [3, 2], 1)]
    assert planned("ann created", "ann deleted", "bad restored") == [("delete", [3], 2)]
    (step,) = plan_steps(rows_of("bad created", "bad deleted"), lambda row: True)
    assert step.is_nothing


def test_enrichment_between_changes_does_not_split_a_step() -> None:
    enriched = f"{ENRICH_AGENT} updated"
    assert planned("ann created", enriched, "bad updated", enriched, "bad updated", enriched) == [
        ("revert", [5, 3], 2)
    ]
    assert planned("bad created", enriched, "bad updated") == [("delete", [3, 1], None)]


def test_undo_step_reports_that_its_former_state_was_pruned() -> None:
    later, first = plan_steps(rows_of("bad updated", "bad updated", "bad updated"), lambda row: True)
    assert first.is_pruned
    assert not later.is_pruned
    assert ([row.version for row in later.changes], later.before) == ([3, 2], first.last)
    (whole,) = plan_steps(rows_of("bad created", "bad updated"), lambda row: True)
    assert not whole.is_pruned


def test_undo_of_a_move_moves_the_note_back() -> None:
    (step,) = plan_steps(rows_of("ann created", "bad renamed b.md"), lambda row: row.agent == "bad")
    assert step.moves
    newer = rows_of("undo renamed a.md")
    assert is_undone(newer, step)
    assert not is_undone(rows_of("ann renamed a.md"), step)


def test_undo_and_enrichment_do_not_count_as_other_agents() -> None:
    assert since_by_others(rows_of("undo restored", f"{ENRICH_AGENT} updated")) is None
    other = since_by_others(rows_of("ann updated", "undo restored"))
    assert other is not None
    assert other.agent == "ann"


def test_restored_note_counts_as_undone() -> None:
    step = UndoStep(changes=tuple(rows_of("bad deleted")), before=rows_of("ann created")[0])
    assert is_undone(rows_of("undo restored", "ann deleted"), step)
    assert not is_undone(rows_of("ann restored", "ann deleted"), step)


def test_only_restores_by_a_person_count_as_undo() -> None:
    """An undo by a person recognises the person's own restores as well as restores by the agent `undo`."""
    (step,) = plan_steps(rows_of("bad created"), lambda row: True)
    for newer, other in (
        (("bad created", "undo restored"), None),
        (("bad created", "ann restored"), None),
        (("bad created", "ann updated"), 2),
        (("bad created", "bob restored"), 2),
    ):
        found = since_by_others(rows_of(*newer)[:-1], "ann")
        assert (found and found.version) == other, newer
    (step,) = plan_steps(rows_of("ann created", "bad deleted"), lambda row: row.agent == "bad")
    restored = rows_of("ann created", "bad deleted", "ann restored", "ann deleted")[:-2]
    assert is_undone(restored, step, "ann")
    assert not is_undone(restored, step)
    (step,) = plan_steps(rows_of("ann created", "bad renamed b.md"), lambda row: row.agent == "bad")
    moved = rows_of("ann created", "bad renamed b.md", "ann renamed a.md")[:-2]
    assert is_undone(moved, step, "ann")
    assert not is_undone(moved, step)
