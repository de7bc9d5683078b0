"""A person edits what an agent has read: the agent's write is refused, whatever happens in between."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import running_lithos, start_lithos
from tests.servers import refusal

pytestmark = pytest.mark.slow

ROUNDS = 100
KILLS = 2
NOTES = 10
#: Everything that a start makes anew.
REBUILDABLE = (".lithos/manifest.db", ".lithos/manifest.db-wal", ".lithos/manifest.db-shm")
REBUILDABLE_FOLDERS = (".tantivy", ".usearch")


async def create(client: WireClient, number: int) -> str:
    made = await client.call("lithos_write", title=f"Note {number}", content="Text.", agent="a")
    assert made["version"] == 1
    return str(made["id"])


async def write(client: WireClient, note_id: str, number: int, expected: int) -> dict[str, object]:
    return await client.call(
        "lithos_write",
        id=note_id,
        title=f"Note {number}",
        content="What the agent made of it.",
        agent="a",
        expected_version=expected,
    )


def append(data: Path, number: int, words: str) -> Path:
    """Save as an editor does that adds at the end."""
    file = data / "knowledge" / f"note-{number}.md"
    with file.open("a") as opened:
        opened.write(f"\n{words}\n")
    return file


async def listed(client: WireClient) -> dict[str, int]:
    answer = await client.call("lithos_list", limit=1_000)
    return {row["id"]: row["version"] for row in answer["items"]}


@pytest.mark.deadline(60)
@pytest.mark.nightly
async def test_an_edit_between_read_and_write_is_never_overwritten(tmp_path: Path) -> None:
    """behaviour 269, before the watcher noticed and after: 100 times each"""
    data = tmp_path / "data"
    with running_lithos(data, env={"LITHOS_INDEX__WATCH_DEBOUNCE_MS": "50"}) as server:
        async with WireClient.open(server.address) as client:
            for number in range(ROUNDS):
                note_id = await create(client, number)
                assert (await client.call("lithos_read", id=note_id))["version"] == 1
                file = append(data, number, "by hand")
                answer = await write(client, note_id, number, 1)
                assert "2" in refusal(answer, "version_conflict")
                assert answer["current_version"] == 2
                assert "by hand" in file.read_text()
            known = await listed(client)
            with trio.fail_after(60):
                while set(known.values()) != {2}:
                    await trio.sleep(0.05)
                    known = await listed(client)
            assert len(known) == ROUNDS
            by_number = {
                int(row["title"].removeprefix("Note ")): row["id"]
                for row in (await client.call("lithos_list", limit=1_000))["items"]
            }
            for number in range(ROUNDS):
                answer = await write(client, by_number[number], number, 1)
                assert answer["current_version"] == 2
                assert "by hand" in (data / "knowledge" / f"note-{number}.md").read_text()
            merged = await write(client, by_number[0], 0, 2)
            assert (merged["status"], merged["version"]) == ("updated", 3)


@pytest.mark.deadline(60)
async def test_a_version_that_was_shown_is_given_to_no_later_edit_after_a_kill(tmp_path: Path) -> None:
    """behaviour 269: also where every rebuildable path is lost with it"""
    data = tmp_path / "data"
    env = {"LITHOS_SERVER__WATCH_FILES": "false", "LITHOS_LCMA__ENABLED": "false"}
    ids: list[str] = []
    for kill in range(KILLS):
        server = start_lithos(data, env=env)
        try:
            async with WireClient.open(server.address) as client:
                if not ids:
                    ids = [await create(client, number) for number in range(NOTES)]
                for number, note_id in enumerate(ids):
                    append(data, number, f"edit {kill} by hand")
                    seen = (await client.call("lithos_read", id=note_id))["version"]
                    assert seen == 2 + 2 * kill
            server.kill()
        finally:
            server.close()
        for path in REBUILDABLE:
            (data / path).unlink(missing_ok=True)
        for path in REBUILDABLE_FOLDERS:
            shutil.rmtree(data / path, ignore_errors=True)
        for number in range(NOTES):
            append(data, number, f"edit {kill} after the kill")
    with running_lithos(data, env=env) as last:
        async with WireClient.open(last.address) as client:
            assert await listed(client) == dict.fromkeys(ids, 1 + 2 * KILLS)
            for number, note_id in enumerate(ids):
                answer = await write(client, note_id, number, 2 * KILLS)
                assert answer["current_version"] == 1 + 2 * KILLS
                assert (await write(client, note_id, number, 1 + 2 * KILLS))["version"] == 2 + 2 * KILLS
