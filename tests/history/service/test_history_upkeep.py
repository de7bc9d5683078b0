"""History pruning: expired versions are deleted in the background, and all other versions stay readable."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
import trio

from lithos.history.rows.store import HistoryStore, NewVersion
from lithos.history.service import retention as module
from lithos.history.service.retention import FIRST, HistoryUpkeep
from lithos.kernel.actors.threads import Inline, Threads
from lithos.notes.model.versions import DELETED, UPDATED, VersionLimits

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    store = HistoryStore.open(tmp_path / "history.db", NOW)
    yield store
    store.close()


def fill(store: HistoryStore, note_id: str, ages: list[float], *, deleted: bool = False) -> list[bytes]:
    words = [f"word{n}" for n in range(300)]
    text = " ".join(random.Random(note_id).choices(words, k=200))
    states = [f"{text} {version}".encode() for version in range(1, len(ages) + 1)]
    store.add(
        [
            NewVersion(
                note_id=note_id, version=version, at=NOW - timedelta(days=age), agent="a",
                op=DELETED if deleted and version == len(ages) else UPDATED,
                path="n.md", title="N", data=data,
            )
            for version, (age, data) in enumerate(zip(ages, states, strict=True), 1)
        ],
        is_pending=False,
    )  # fmt: skip
    return states


def make_upkeep(store: HistoryStore, blocking, **given: int) -> HistoryUpkeep:
    limits = {"keep_days": 365, "keep_versions": 200, "keep_deleted_days": 365} | given
    return HistoryUpkeep(store, blocking, blocking, lambda: NOW, VersionLimits(**limits))


@pytest.mark.autojump
async def test_old_and_surplus_versions_are_deleted_and_others_remain_readable(store):
    """behaviour 225"""
    fill(store, "gone", [1_000, 900, 400], deleted=True)
    kept = fill(store, "kept", [1_000, 400])
    old = fill(store, "old", [1_000, 900, 500, 10])
    many = fill(store, "many", [300 - n * 0.5 for n in range(260)])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(make_upkeep(store, Inline()).run)
        await trio.sleep(FIRST + 600)
        nursery.cancel_scope.cancel()
    rows, total = store.rows("many", 1_000)
    versions = [row.version for row in rows]
    assert versions == [*range(260, 59, -1), 1]
    assert total == 202
    assert all(store.content("many", version) == many[version - 1] for version in versions)
    assert [row.version for row in store.rows("old", 10)[0]] == [4, 1]
    assert [store.content("old", version) for version in (1, 4)] == [old[0], old[3]]
    assert store.rows("gone", 10) == ([], 0)
    assert [store.content("kept", version) for version in (1, 2)] == kept
    contents = store._reader.execute("SELECT COUNT(*) FROM contents").fetchall()[0][0]
    assert contents <= 202 + 49 + 4 + 2


async def test_version_read_during_pruning_is_either_complete_or_missing(store, monkeypatch):
    """A restore reads a version either with its exact bytes or not at all."""
    monkeypatch.setattr(module, "STEP", 20)
    monkeypatch.setattr(module, "PAUSE_LEAST", 0.01)
    states = fill(store, "note", [400 - n * 0.1 for n in range(300)])
    reading = Threads(2)
    wrong: list[int] = []
    seen = 0

    async def read_on() -> None:
        nonlocal seen
        draw = random.Random(1)
        while True:
            version = draw.randrange(1, 301)
            data = await reading.run(lambda version=version: store.content("note", version))
            seen += data is not None
            if data is not None and data != states[version - 1]:
                wrong.append(version)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_on)
            nursery.start_soon(read_on)
            await make_upkeep(store, Threads(), keep_days=0, keep_versions=20).look()
            nursery.cancel_scope.cancel()
    assert not wrong
    assert seen
    assert store.rows("note", 1)[1] == 22
