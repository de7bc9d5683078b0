"""Check runs over all notes: on request, in slices, and with a report that callers share for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from lithos.kernel.values.findings import Check, Issue, IssueReport
from lithos.upkeep.checks import care
from lithos.upkeep.checks.care import AGE, PAUSE, SLICE, CareRun, CareRuns, CareSubjects, about, named_of
from tests.servers import serving


@asynccontextmanager
async def rounds(
    data: Path, monkeypatch: pytest.MonkeyPatch, look: Callable[[CareRun], AsyncIterator[Issue]]
) -> AsyncIterator[CareRuns]:
    """Yield a `CareRuns` object whose only check runs over 20 notes."""
    check = Check(name="made", views=("made",), place=1, look=look)
    monkeypatch.setattr(care, "checks_of", lambda view: [check])
    async with serving(data, settled=False) as lithos, trio.open_nursery() as nursery:
        for number in range(20):
            await lithos.create(f"Note {number:02}")
        made = CareRuns("made", 4, lithos.server.get(CareSubjects))
        nursery.start_soon(made.run)
        yield made
        nursery.cancel_scope.cancel()


async def first_report(made: CareRuns) -> IssueReport:
    while (report := await made.lately()) is None:
        pass
    return report


async def test_report_counts_all_issues_but_lists_only_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(notes: CareRun) -> AsyncIterator[Issue]:
        async for entry in notes.active():
            yield about("it is a note", named_of(entry))

    async with rounds(tmp_path, monkeypatch, look) as made:
        report = await first_report(made)
    assert (report.notes, report.groups["made"].total) == (20, 20)
    assert [each.path for each in report.groups["made"].issues] == [f"note-{n:02}.md" for n in range(4)]


async def test_report_is_shared_until_it_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    async def look(notes: CareRun) -> AsyncIterator[Issue]:
        nonlocal runs
        runs += 1
        for issue in ():
            yield issue

    async with rounds(tmp_path, monkeypatch, look) as made:
        await trio.testing.wait_all_tasks_blocked()
        assert runs == 0, "nobody asked"
        for _ in range(5):
            assert (await first_report(made)).groups == {}
        await trio.testing.wait_all_tasks_blocked()
        assert runs == 1
        made._good_until -= AGE
        await made.lately()
        await trio.testing.wait_all_tasks_blocked()
        assert runs == 2


async def test_slow_check_run_lets_other_tasks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0

    async def look(notes: CareRun) -> AsyncIterator[Issue]:
        async for _ in notes.entries():
            until = care.perf_counter() + SLICE
            while care.perf_counter() < until:
                pass
        for issue in ():
            yield issue

    async with rounds(tmp_path, monkeypatch, look) as made, trio.open_nursery() as nursery:

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await trio.sleep(PAUSE / 2)
                turns += 1

        nursery.start_soon(take_turns)
        await first_report(made)
        nursery.cancel_scope.cancel()
    assert turns >= 2
