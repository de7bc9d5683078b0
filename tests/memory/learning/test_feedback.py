"""Task feedback, which is learned only once, even if the process ends halfway or the feedback is repeated."""

from __future__ import annotations

import attrs
import pytest

from lithos.memory.model.memory import ApplyFeedback, AskedQuestion, ForgetLessons
from lithos.memory.model.questions import LoadQuestions
from lithos.notes.model.edges import EdgeFilter
from tests.fakes import Killed
from tests.kernel.actors.memories import EDGE, nodes, weights

pytestmark = pytest.mark.autojump

QUESTION = AskedQuestion(text="q", digest="d", codes=bytes([100, 0]), embedder="e", theta=0.6)
LESSON = ApplyFeedback(
    task_id="t",
    id="l1",
    cited=("a", "b"),
    misleading=("m",),
    ignored=("i",),
    namespaces={"a": "n", "b": "n"},
    question=QUESTION,
    sketches={"a": b"sketch"},
)


def happened(desk) -> tuple[float, float, int, int, int]:
    """Return two edge weights (a - b, m - z) and three counts (a cited, m misleading, i ignored)."""
    edges, stats = weights(desk), nodes(desk)
    return (
        edges["ab"],
        edges["mz"],
        stats["a"].cited_count if "a" in stats else 0,
        stats["m"].misleading_count if "m" in stats else 0,
        stats["i"].ignored_count if "i" in stats else 0,
    )


async def prepare(desk) -> None:
    """Create the edges a - b and m - z with weight 0.5."""
    for first, second in ("ab", "mz"):
        await desk.ask(attrs.evolve(EDGE, from_id=first, to_id=second, type="related_to"))


def remembered(desk) -> list[tuple[str, float, float]]:
    """Return note id, `a` and `b` of every entry.

    Assert that the matrix in memory has the same number of entries.
    """
    rows = desk.stats.reading.questions
    entries = [entry for note in sorted(rows.notes()) for entry in rows.of_note(note, 9)]
    assert len(desk.stats.remembered) == len(entries)
    return [(entry.note_id, entry.a, entry.b) for entry in entries]


@pytest.mark.parametrize("where", ["failure", "instead_of_commit", "after_commit"])
@pytest.mark.parametrize("store", ["edges_switch", "stats_switch"])
async def test_interrupted_feedback_is_completed_and_counted_only_once(desk, store, where):
    """behaviours 153, 267"""
    async with desk.killed():
        await prepare(desk)
        await desk.ask(LoadQuestions("e", 2))
        setattr(getattr(desk, store), where, Killed())
        await desk.ask(LESSON)
    edges_were_committed = where == "after_commit" or (store, where) == ("stats_switch", "instead_of_commit")
    assert weights(desk) == ({"ab": 0.53, "mz": 0.45} if edges_were_committed else {"ab": 0.5, "mz": 0.5})
    async with desk.running():
        await desk.ask(LoadQuestions("e", 2))
        for _ in range(2):
            assert await desk.ask(LESSON) == ()
            assert happened(desk) == (0.53, 0.45, 1, 1, 1)
            assert remembered(desk) == [("a", 1, 0), ("b", 1, 0)]
            assert desk.stats.reading.questions.sketch("a") == b"sketch"


async def test_repeated_feedback_still_reports_misleading_notes(desk):
    """behaviour 153"""
    async with desk.running():
        for number in (1, 2, 3):
            answer = await desk.ask(attrs.evolve(LESSON, id=f"l{number}"))
        assert answer == ("m",)
        assert await desk.ask(attrs.evolve(LESSON, id="l3")) == ("m",)
        assert nodes(desk)["m"].misleading_count == 3


async def test_forgotten_lessons_are_deleted_from_both_databases(desk):
    async with desk.running():
        await prepare(desk)
        for number in (1, 2):
            await desk.ask(attrs.evolve(LESSON, id=f"l{number}"))
        await desk.ask(ForgetLessons(("l1",)))
        assert desk.stats.reading.ledgers.lessons() == ["l2"]
        ((left,),) = desk.edges._connections[1].execute("SELECT id FROM applied_lessons").fetchall()
        assert left == "l2"
        assert len(desk.edges.edges(EdgeFilter())) == 2
