"""Kill -9 in the middle of everything, again and again, on one data directory."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient, call, connected
from tests.e2e.process import Lithos, kill_while_starting, running_lithos, start_lithos
from tests.e2e.storm import Storm
from tests.e2e.vault import NOTES, make_vault, snapshot

KILLS = 20


async def verify(server: Lithos, storm: Storm, folder: Path) -> None:
    """Compare what the server, its indexes and the disk say with what was promised."""
    for promise in storm.promises:
        promise.settle(folder)
    present = {promise.path: promise for promise in storm.present}
    async with connected("mcp", url=server.url) as client:
        listed = (await call(client, "lithos_list", limit=1_000_000))["items"]
        in_storm = {row["path"]: row["id"] for row in listed if row["path"].startswith("storm/")}
        assert set(in_storm) == set(present)
        for path, promise in present.items():
            assert promise.id in (None, in_storm[path])
            promise.id = in_storm[path]
        stats = await call(client, "lithos_stats")
        assert stats["index_drift_detected"] is False
        assert stats["documents"] == stats["tantivy_doc_count"] == len(present) + NOTES
        # The search by meaning waits until every note is embedded; then nothing may be left over either.
        await call(client, "lithos_search", query="token", mode="semantic")
    assert not list(folder.rglob(".lithos*"))
    on_disk = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {path for path in on_disk if path.startswith("storm/")} == set(present)


async def find_all(server: Lithos, storm: Storm) -> None:
    """Search every version there ever was: exactly the present ones are found."""

    async def search(agent: int) -> None:
        async with WireClient.open(server.address) as client:
            for promise in storm.promises:
                if promise.agent != agent:
                    continue
                for version in range(1, promise.version + 2):
                    answer = await client.call("lithos_search", query=promise.token(version), mode="fulltext")
                    found = [row["id"] for row in answer["results"]]
                    is_current = version == promise.version and not promise.is_deleted
                    assert found == ([promise.id] if is_current else []), (promise, version)

    async with trio.open_nursery() as nursery:
        for agent in range(storm.writers):
            nursery.start_soon(search, agent)


def journalled_changes(data: Path) -> tuple[Counter[tuple[str, str]], list[int]]:
    """How often each change of each path is in the journal, and all seqs in stored order."""
    with sqlite3.connect(f"file:{data}/.lithos/coordination.db?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT type, json_extract(payload, '$.path') FROM events WHERE type LIKE 'note.%'"
        ).fetchall()
        seqs = [seq for (seq,) in database.execute("SELECT seq FROM events ORDER BY rowid")]
    database.close()
    return Counter((kind, path) for kind, path in rows), seqs


@pytest.mark.slow
@pytest.mark.deadline(200)
async def test_twenty_kills_in_a_storm_of_writes_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """behaviours 176, 187, 193"""
    data = tmp_path / "data"
    folder = make_vault(data)
    before = snapshot(folder)
    storm = Storm(seed=193)
    in_flight = 0
    for kill in range(KILLS):
        if kill % 5 == 4:  # a second kill, somewhere in the recovery from the first
            kill_while_starting(data)
        server = start_lithos(data)
        try:
            await verify(server, storm, folder)
            await storm.rage(server, acknowledgements=20 + 13 * kill % 97)
            in_flight += sum(promise.pending is not None for promise in storm.promises)
        finally:
            server.close()
    with running_lithos(data) as server:
        await verify(server, storm, folder)
        await find_all(server, storm)
        assert server.stop() == 0
        assert "Traceback" not in server.log()
    expected = Counter[tuple[str, str]]()
    for promise in storm.promises:
        expected[("note.created", promise.path)] = min(promise.version, 1)
        expected[("note.updated", promise.path)] = max(promise.version - 1, 0)
        expected[("note.deleted", promise.path)] = int(promise.is_deleted)
    journalled, seqs = journalled_changes(data)
    assert journalled == expected
    assert seqs == sorted(set(seqs))
    after = snapshot(folder)
    assert {path: after[path] for path in before} == before
    counts = f"{dict(storm.acknowledged)} acknowledged, {in_flight} under way, {journalled.total()} events"
    print(f"{KILLS} kills: {counts}, {len(storm.present)} notes left")  # noqa: T201 - for `pytest -s`
    assert in_flight > KILLS
