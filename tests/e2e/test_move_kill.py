"""Kill -9 while a note with 500 incoming links is moved.

After the restart, all links or no links follow the note.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import Lithos, running_lithos
from tests.repeats import repeats

LINKS = 500
KILLS = repeats("KILLS", 2)
PATIENCE = 60.0
SETTINGS = {
    "LITHOS_STORAGE__FRONTMATTER": "minimal",
    "LITHOS_STORAGE__TITLES": "folder",
    "LITHOS_STORAGE__FILE_NAMES": "title",
}


def text_of(number: int, place: str) -> str:
    return f"Link {number} to [[{place}/target#Part|it]] and [again](../{place}/target.md), kept  \n"


def make_vault(notes: Path) -> None:
    (notes / "place0").mkdir(parents=True)
    (notes / "linking").mkdir()
    (notes / "place0" / "target.md").write_text("Target: [first](../linking/0.md)\n")
    for number in range(LINKS):
        (notes / "linking" / f"{number}.md").write_text(text_of(number, "place0"))


def places_of(notes: Path) -> set[str]:
    """Return the targets of the links. Raise if a file is incomplete."""
    places = set()
    for number in range(LINKS):
        text = (notes / "linking" / f"{number}.md").read_text()
        place = text.partition("[[")[2].partition("/")[0]
        assert text == text_of(number, place)
        places.add(place)
    return places


async def move_and_kill(server: Lithos, note: str, place: str, lag: float) -> bool:
    """Move the note and kill the server. Return whether the move was confirmed before the kill."""
    acknowledged = [False]

    async def move() -> None:
        try:
            async with WireClient.open(server.address) as client:
                answer = await client.call("lithos_note_move", id=note, path=place, agent="a")
                if len(answer.get("rewritten", ())) != LINKS:
                    known = await client.call("lithos_list", limit=1_000)
                    targets = [row for row in known["items"] if "target" in row["path"]]
                    pytest.fail(f"{str(answer)[:500]}; {known['total']} notes, of them {targets}")
                acknowledged[0] = True
        except Gone:
            return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(move)
        await trio.sleep(lag)
        server.kill()
    return acknowledged[0]


async def settle(server: Lithos, data: Path, note: str) -> str:
    """Wait until all work that has begun is finished. Return the path of the note."""
    with trio.fail_after(PATIENCE):
        while any((data / ".lithos" / "moves").glob("*.json")):
            await trio.sleep(0.02)
        async with WireClient.open(server.address) as client:
            read = await client.call("lithos_read", id=note)
            return str(read["path"]).partition("/")[0]


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.takes(16)
@pytest.mark.deadline(300)
@pytest.mark.nightly
async def test_killed_move_is_completed_after_the_restart(tmp_path: Path) -> None:
    """behaviour 255"""
    data = tmp_path / "data"
    notes = data / "knowledge"
    make_vault(notes)
    with running_lithos(data, env=SETTINGS) as server:
        async with WireClient.open(server.address) as client:
            note = (await client.call("lithos_read", path="place0/target"))["id"]
            began, slowest = time.monotonic(), [0.0]

            async def write_beside(scope: trio.CancelScope) -> None:
                with scope:
                    async with WireClient.open(server.address) as other:
                        number = 0
                        while True:
                            start = time.monotonic()
                            await other.call("lithos_write", title=f"Beside {number}", content="x", agent="b")
                            slowest.append(time.monotonic() - start)
                            number += 1

            async with trio.open_nursery() as nursery:
                scope = trio.CancelScope()
                nursery.start_soon(write_beside, scope)
                answer = await client.call("lithos_note_move", id=note, path="place1", agent="a")
                scope.cancel()
            took = time.monotonic() - began
            assert len(answer["rewritten"]) == LINKS
            assert places_of(notes) == {"place1"}
            assert len(slowest) > 2, "no write had a turn"
        assert server.stop() == 0
    finished, place = 0, "place1"
    for number in range(KILLS):
        wanted = f"place{number + 2}"
        with running_lithos(data, env=SETTINGS) as server:
            acknowledged = await move_and_kill(server, note, wanted, 1.1 * took * (number + 1) / KILLS)
        with running_lithos(data, env=SETTINGS) as server:
            there = await settle(server, data, note)
            assert there in ((wanted,) if acknowledged else (place, wanted))
            assert places_of(notes) == {there}
            assert (notes / there / "target.md").read_text() == "Target: [first](../linking/0.md)\n"
            assert not list(notes.glob("place*/*.md"))[1:]
            async with WireClient.open(server.address) as client:
                stats = await client.call("lithos_stats")
                assert stats["unresolved_links"] == 0
            finished += there == wanted
            place = there
            assert server.stop() == 0
    print(  # noqa: T201 - for `pytest -s`
        f"{LINKS} links in {took:.2f} s; writes beside it: median {statistics.median(slowest[1:]):.3f} s, "
        f"slowest {max(slowest):.3f} s; {finished} of {KILLS} killed moves were finished"
    )
    assert finished > 0
