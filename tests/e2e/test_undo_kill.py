"""Kill -9 during `lithos undo` and during restores.

Repeated commands must end in the same state as one command.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio

from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import LITHOS, clean_environment, run_lithos, running_lithos
from tests.repeats import first_of, repeats

pytestmark = pytest.mark.slow
NOTES = 40
KILLS = repeats("KILLS", 3)


def text_of(number: int) -> str:
    return f"Note {number}.\n\n" + "Words that stay. " * 40


async def make_notes(client: WireClient) -> dict[str, str]:
    """Create notes that `bot` changed before and after another agent.

    Return the texts without the changes by `bot`.
    """
    wanted = {}
    for number in range(NOTES):
        made = await client.call("lithos_write", title=f"N{number}", content=text_of(number), agent="ann")
        for agent, words in (("bot", "Bot one."), ("ann", "Ann."), ("bot", "Bot two.")):
            op = "prepend" if agent == "ann" else "append"
            await client.call("lithos_note_edit", id=made["id"], op=op, text=words, agent=agent)
        wanted[made["id"]] = f"Ann.\n\n{text_of(number).strip()}"
    return wanted


async def contents(client: WireClient, ids: dict[str, Any]) -> dict[str, str]:
    return {each: (await client.call("lithos_read", id=each))["content"].strip() for each in ids}


async def history(client: WireClient, note: str) -> list[dict[str, Any]]:
    return list((await client.call("lithos_history", id=note, limit=100))["versions"])


@pytest.mark.takes(40)
@pytest.mark.deadline(400)
@pytest.mark.parametrize("is_served", first_of([True, False], 0, 1))
async def test_undo_with_repeated_kills_ends_like_undo_without_kills(tmp_path: Path, is_served: bool) -> None:
    """Behaviour 412: kill -9 hits the command, and also the server that it calls."""
    data, random = tmp_path / "data", Random(7)
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            wanted = await make_notes(client)
    command = [*LITHOS, "-d", str(data), "undo", "--agent", "bot"]
    died, undone = 0, list[int]()
    for number in range(KILLS):
        with (
            running_lithos(data) if is_served else nullcontext() as server,
            subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment()
            ) as process,
        ):
            await trio.to_thread.run_sync(time.sleep, 0.4 + random.random() * 1.2)
            (process if server is None or number % 2 == 0 else server).kill()
            died += await trio.to_thread.run_sync(process.wait, 60) != 0
        texts = [path.read_text() for path in (data / "knowledge").glob("*.md")]
        assert all("Ann." in text and text_of(0)[10:].strip() in text for text in texts)
        undone.append(sum("Bot" not in text for text in texts))
    assert died
    print(f"{died} of {KILLS} died; of {NOTES} notes were undone after each: {undone}")  # noqa: T201
    with running_lithos(data) as server:
        for _ in range(2):
            done = await trio.to_thread.run_sync(lambda: run_lithos("-d", data, "undo", "--agent", "bot"))
            assert done.returncode == 0, done.stderr
        async with WireClient.open(server.address) as client:
            assert await contents(client, wanted) == wanted
            for note in wanted:
                rows = await history(client, note)
                assert len({row["version"] for row in rows}) == len(rows)
                assert sum(row["agent"] == "undo" for row in rows) <= 2, rows


@pytest.mark.takes(30)
@pytest.mark.deadline(400)
async def test_restores_killed_at_any_moment_are_complete_or_absent(tmp_path: Path) -> None:
    """Behaviour 412: covers existing and deleted notes. Confirmed changes are kept."""
    data, random = tmp_path / "data", Random(8)
    wanted: dict[str, str] = {}
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            for number in range(NOTES):
                made = await client.call(
                    "lithos_write", title=f"N{number}", content=text_of(number), agent="ann"
                )
                wanted[made["id"]] = text_of(number).strip()
                await client.call("lithos_note_edit", id=made["id"], op="append", text="More.", agent="bot")
                if number % 2:
                    await client.call("lithos_delete", id=made["id"], agent="bot")
    acknowledged: set[str] = set()

    async def restore(address: tuple[str, int]) -> None:
        try:
            async with WireClient.open(address) as client:
                for note in wanted:
                    if note not in acknowledged:
                        answer = await client.call("lithos_restore", id=note, version=1, agent="ann")
                        assert answer["status"] != "error", answer
                        acknowledged.add(note)
        except Gone:
            return

    for _ in range(KILLS):
        with running_lithos(data) as server:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(restore, server.address)
                await trio.sleep(random.random() * 0.4)
                server.kill()
        for path in (data / "knowledge").glob("*.md"):
            body = path.read_text()
            assert body.rstrip().endswith(("stay.", "More.")), (path, body)
        assert len(list((data / "knowledge").rglob("*.md"))) >= NOTES // 2
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            assert await contents(client, dict.fromkeys(acknowledged)) == {
                each: wanted[each] for each in acknowledged
            }
        await restore(server.address)
        async with WireClient.open(server.address) as client:
            assert await contents(client, wanted) == wanted
            for note in wanted:
                rows = await history(client, note)
                assert len({row["version"] for row in rows}) == len(rows)
