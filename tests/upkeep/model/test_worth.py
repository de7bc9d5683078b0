"""Note usage counts, which are made from reported events (behaviour 289)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from lithos.memory.model.memory import RetrievalRecord
from lithos.tasks.model.task import Citation
from lithos.upkeep.model.worth import NOTHING, Counts, Tally, Worth, ordered

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = NOON.date()
HOUR = timedelta(hours=1)


def ask(
    hours: float,
    *notes: str,
    agent: str = "ben",
    question: str = "q",
    task: str | None = None,
    **more: object,
) -> RetrievalRecord:
    given = {"tokens": None, "is_followup": False} | more
    return RetrievalRecord(NOON + hours * HOUR, agent, question, task, notes, **given)  # type: ignore[arg-type]


def tally(
    *asked: RetrievalRecord, cited: tuple[Citation, ...] = (), since: date = DAY
) -> dict[tuple[date, str], Counts]:
    made = Tally(since)
    for each in cited:
        made.cite(each, taken_over=False)
    made.ask(asked)
    return made.counts


def cite(note: str, hours: float, task: str = "t", agent: str = "ann") -> Citation:
    return Citation(task, note, agent, NOON + hours * HOUR)


def test_earlier_citation_counts_among_first_three_for_the_same_question() -> None:
    """behaviour 289"""
    asked = (
        ask(0, "a", "b", "c", "d", task="t"),
        ask(2, "x", "y", "d"),  # third
        ask(3, "x", "y", "z", "d"),  # fourth
        ask(4, "d", question="another"),
    )
    counts = tally(*asked, cited=(cite("d", 1), cite("elsewhere", 1)))
    assert counts[DAY, "ben"] == Counts(retrievals=4, asked_again=2, cited_before=2, found_again=1)
    assert counts[DAY, "ann"] == Counts(notes_cited=2)


def test_later_citations_and_citations_of_other_tasks_do_not_count() -> None:
    asked = (ask(0, "a", task="t"), ask(1, "a"), ask(3, "a"))
    assert tally(*asked, cited=(cite("a", 2),))[DAY, "ben"] == Counts(
        retrievals=3, asked_again=2, cited_before=1, found_again=1
    )
    assert tally(*asked, cited=(cite("a", 0.5, task="other"),))[DAY, "ben"].cited_before == 0


def test_repeated_questions_are_counted_even_without_results() -> None:
    asked = (ask(0, "a"), ask(1), ask(2, is_followup=True, tokens=0), ask(3, "a", tokens=120))
    expected = Counts(briefings=2, retrievals=2, tokens=120, asked_again=2, found_nothing=1)
    assert tally(*asked)[DAY, "ben"] == expected


def test_earlier_days_are_used_but_not_counted() -> None:
    counts = tally(ask(-30, "a", task="t"), ask(1, "a"), cited=(cite("a", -20),))
    assert counts == {(DAY, "ben"): Counts(retrievals=1, asked_again=1, cited_before=1, found_again=1)}


def test_sums_cover_all_days_and_list_the_busiest_agent_first() -> None:
    later = DAY + timedelta(days=1)
    counts = {
        (DAY, "ann"): Counts(searches=1, tokens=5),
        (later, "ann"): Counts(briefings=1),
        (DAY, "ben"): Counts(retrievals=3),
    }
    worth = Worth(since=DAY, until=later, rows=tuple(ordered(counts)))
    assert [(day, agent) for day, agent, _ in worth.rows] == [(later, "ann"), (DAY, "ann"), (DAY, "ben")]
    assert dict(worth.by_agent()) == {
        "ben": Counts(retrievals=3),
        "ann": Counts(searches=1, tokens=5, briefings=1),
    }
    assert list(worth.by_agent()) == ["ben", "ann"]
    assert worth.total == Counts(searches=1, tokens=5, briefings=1, retrievals=3)
    assert Worth(since=DAY, until=DAY, rows=()).total == NOTHING
