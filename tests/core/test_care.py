"""Rules of care that need nothing but values (behaviour 288)."""

from __future__ import annotations

from datetime import UTC, datetime

from lithos.core.care import (
    DEAD_LINKS,
    GROUPS,
    MOST_ROWS,
    STUBS,
    CareRow,
    Clusters,
    Found,
    LikelyNotes,
    Named,
)

NOW = datetime(2026, 3, 4, tzinfo=UTC)


def named(title: str) -> Named:
    return Named(title.lower(), title, f"{title.lower()}.md")


def test_what_is_joined_to_anything_of_a_group_belongs_to_it() -> None:
    clusters = Clusters()
    for one, other in (("c", "b"), ("x", "y"), ("b", "a"), ("d", "c"), ("a", "d")):
        clusters.join(one, other)
    assert clusters.groups() == [("a", "b", "c", "d"), ("x", "y")]
    assert Clusters().groups() == []


def test_a_chain_of_joins_is_no_deep_recursion() -> None:
    clusters = Clusters()
    for number in range(5_000, 0, -1):
        clusters.join(f"{number:05}", f"{number - 1:05}")
    assert [len(group) for group in clusters.groups()] == [5_001]


def test_the_note_that_a_link_probably_means_is_spelled_much_like_it() -> None:
    likely = LikelyNotes()
    for title in ("Wind stations", "Database backup", "Ferry times", "Ferry tickets"):
        likely.add(named(title), (title,))
    likely.add(named("Pump"), ("Pump", "cellar pump"))
    found = {
        target: None if (note := likely.find(target)) is None else note.title
        for target in (
            "wind-station",
            "ops/Databse backup.md",
            "ferry time#monday",
            "Cellar pumps",
            "Roof",
            "",
        )
    }
    assert found == {
        "wind-station": "Wind stations", "ops/Databse backup.md": "Database backup",
        "ferry time#monday": "Ferry times", "Cellar pumps": "Pump", "Roof": None, "": None,
    }  # fmt: skip


def test_all_rows_are_counted_and_the_first_are_told() -> None:
    found = Found()
    for number in range(MOST_ROWS + 3):
        found.add(STUBS, CareRow(notes=(named(f"N{number}"),), why="2 words"))
    found.add(DEAD_LINKS, CareRow(notes=(), why="nowhere", link="x"))
    found.count(DEAD_LINKS, 4)
    report = found.report(NOW, 9, ["a trouble"])
    assert dict(report.totals) == {DEAD_LINKS: 5, STUBS: MOST_ROWS + 3}
    assert [len(rows) for rows in report.rows.values()] == [1, MOST_ROWS]
    assert list(report.totals) == [group for group in GROUPS if group in report.totals]
