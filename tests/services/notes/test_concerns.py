"""Notes that somebody should look at: counted by kind, the first named, looked for only when asked."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import trio
import trio.testing

from lithos.core.notes.model import NoteWarning
from lithos.services.notes import concerns as concerns_module
from lithos.services.notes.concerns import AGE, Concerns
from tests.servers import serving


async def test_notes_are_counted_by_kind_and_the_first_are_named(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        ids = [await lithos.create(f"Note {number}") for number in range(30)]

        def warnings_of(note_id: str, now: datetime) -> tuple[NoteWarning, ...]:
            place = ids.index(note_id)
            expired = NoteWarning("expired", note_id, "", "over", 0)
            suspect = NoteWarning("suspect", ids[0], "Note 0", "it is quarantined", 1)
            return (suspect, suspect, expired) if place % 2 else ()

        concerns = Concerns(lithos.server.catalogue, warnings_of, lithos.server.clock, named=4)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(concerns.run)
            while (report := await concerns.report()) is None:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
        assert report.totals == {"suspect": 15, "expired": 15}
        assert [each.notes[0].title for each in report.rows["suspect"]] == [
            "Note 1",
            "Note 3",
            "Note 5",
            "Note 7",
        ]
        assert report.rows["suspect"][0].why == "it is quarantined"


async def test_a_look_is_told_again_until_it_is_too_old(tmp_path: Path) -> None:
    looks = 0

    async with serving(tmp_path, settled=False) as lithos:
        await lithos.create("A note")

        def warnings_of(note_id: str, now: datetime) -> tuple[NoteWarning, ...]:
            nonlocal looks
            looks += 1
            return ()

        concerns = Concerns(lithos.server.catalogue, warnings_of, lithos.server.clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(concerns.run)
            await trio.testing.wait_all_tasks_blocked()
            assert looks == 0  # nobody asked
            while await concerns.report() is None:
                await trio.sleep(0.01)
            for _ in range(5):
                assert await concerns.report() is not None
            await trio.testing.wait_all_tasks_blocked()
            assert looks == 1
            concerns._good_until -= AGE
            await concerns.report()
            await trio.testing.wait_all_tasks_blocked()
            assert looks == 2
            nursery.cancel_scope.cancel()


async def test_a_look_lets_others_run(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        for number in range(20):
            await lithos.create(f"Note {number}")

        def slow(note_id: str, now: datetime) -> tuple[NoteWarning, ...]:
            until = concerns_module.perf_counter() + concerns_module.SLICE
            while concerns_module.perf_counter() < until:
                pass
            return ()

        concerns, turns = Concerns(lithos.server.catalogue, slow, lithos.server.clock), 0

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await trio.sleep(concerns_module.PAUSE / 2)
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(concerns.run)
            nursery.start_soon(take_turns)
            while await concerns.report() is None:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert turns >= 2
