"""Cancellation at any moment. No confirmed change may be lost, and no event may be sent twice."""

from __future__ import annotations

import os
from collections import Counter

import pytest
import trio

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.values.errors import LithosError, StorageFailed
from tests.fakes import FakeIndex
from tests.kernel.actors.house import House

pytestmark = pytest.mark.autojump


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path)
    house.settle(house.scan())
    yield house
    house.close()


class Client:
    """A client that changes its own notes and records the confirmed changes."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name
        self.alive: dict[str, int] = {}
        self.deleted: set[str] = set()

    async def work(self) -> None:
        first = await self.house.create(f"{self.name} first")
        self.alive[first.id] = first.version
        updated = await self.house.update(first.id, f"{self.name} first", "changed")
        self.alive[first.id] = updated.version
        second = await self.house.create(f"{self.name} second")
        self.alive[second.id] = second.version
        del self.alive[second.id]  # from here on, the deletion is in progress and will be confirmed
        await self.house.delete(second.id)
        self.deleted.add(second.id)


def check_files(house: House, clients: list[Client]) -> None:
    """Check that confirmed changes are on the disk and that no file is half-written."""
    entries = {entry.note.id: entry for entry in house.catalogue}
    for client in clients:
        for note_id, version in client.alive.items():
            assert entries[note_id].note.version >= version
        assert not client.deleted & set(entries)
    assert house.catalogue.skipped == {}
    foreign: list[bytes] = []  # replaced files are kept for a moment, and all of them are ours
    house.files.recover(lambda _, data: foreign.append(data))
    assert not foreign
    assert not [name for name in os.listdir(house.files.root) if name.startswith(".")]


def check_events(house: House) -> None:
    """Check that each committed change has one event, and that each history ends with its file's content."""
    history: dict[str, list[str]] = {}
    for event in house.store.events_after(0):
        history.setdefault(str(event.draft.payload["id"]), []).append(event.draft.type)
    for note_id, kinds in history.items():
        assert Counter(kinds)["note.created"] == 1, kinds
        assert Counter(kinds)["note.updated"] <= 1, kinds
        assert (kinds[-1] == "note.deleted") == (note_id not in house.catalogue), kinds
    assert set(history) >= {entry.note.id for entry in house.catalogue}
    for entry in house.catalogue:
        assert len(history[entry.note.id]) in (entry.note.version, 1)


#: Moments at which a run is cancelled. The fast test tries only a few of them.
MOMENTS = [*range(40), *range(40, 120, 3)]
FEW = MOMENTS[::5]


@pytest.mark.parametrize(
    "steps", [step if step in FEW else pytest.param(step, marks=pytest.mark.nightly) for step in MOMENTS]
)
async def test_cancelled_server_restarts_with_all_confirmed_changes(house, steps):
    """behaviour 187"""
    clients = [Client(house, name) for name in ("one", "two")]
    with trio.CancelScope() as scope:
        async with house.running() as nursery:
            for client in clients:
                nursery.start_soon(client.work)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    house.settle(house.restart())
    check_files(house, clients)
    check_events(house)
    assert house.restart().events == ()


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
async def test_callers_cancelled_at_any_moment_leave_a_consistent_server(house, steps):
    clients = [Client(house, name) for name in ("one", "two", "three")]
    async with house.running():
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as callers:
                for client in clients:
                    callers.start_soon(client.work)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await trio.sleep(10)
        assert house.is_consistent()
        check_files(house, clients)
        check_events(house)
        assert (await house.create("Afterwards")).status == "created"
    assert house.restart().events == ()


async def test_stop_finishes_accepted_requests_and_refuses_later_ones(house):
    clients = [Client(house, str(n)) for n in range(5)]
    refused: list[type[Exception]] = []

    async def work(client: Client) -> None:
        try:
            await client.work()
        except (ShuttingDown, LithosError, ActorDown) as refusal:
            refused.append(type(refusal))

    async with trio.open_nursery() as callers, house.running():
        for client in clients:
            callers.start_soon(work, client)
        for _ in range(30):
            await trio.lowlevel.checkpoint()
    assert set(refused) <= {ShuttingDown}, "refused means: not applied"
    check_files(house, clients)
    check_events(house)
    assert house.restart().events == ()


ACTORS = ("writer", "publisher", "coordinator", "index0", "index1")


@pytest.mark.parametrize("name", ACTORS)
async def test_every_actor_survives_a_crash_during_a_batch(house, monkeypatch, name):
    """The caller may get the answer that the outcome is unknown. The next request must work."""
    targets = {
        "writer": (house.preparation, "prepare_creation"),
        "publisher": (house.manifest, "store"),
        "coordinator": (house.store, "append_events"),
        "index0": (FakeIndex, "apply"),
        "index1": (FakeIndex, "apply"),
    }
    owner, function = targets[name]
    real, crashes = getattr(owner, function), [1]
    index = house.indexes[int(name[-1])] if name.startswith("index") else None

    def crash_once(*arguments):
        if crashes and any(arguments) and index in (None, arguments[0]):
            crashes.pop()
            raise RuntimeError("a bug")
        return real(*arguments)

    async with house.running():
        for indexer in house.indexers:
            await indexer.converged()
        monkeypatch.setattr(owner, function, crash_once)
        try:
            await house.create("First")
        except (ActorDown, StorageFailed):
            assert index is None, "one index is enough"
        await trio.sleep(1)  # the manifest is updated a little later
        assert not crashes
        assert (await house.create("Second")).status == "created"
        await trio.sleep(60)
    restarts = {
        mailbox.name: mailbox.stats.restarts
        for mailbox in (
            house.writer.mailbox,
            house.publisher.mailbox,
            house.coordinator.mailbox,
            *(indexer.mailbox for indexer in house.indexers),
        )
    }
    assert restarts[name] == 1
    house.settle(house.restart())
    check_events(house)
    assert house.catalogue.at_path("second.md")


async def test_server_ends_when_an_actor_keeps_crashing(house, monkeypatch):
    def crash(*_):
        raise RuntimeError("a bug that stays")

    monkeypatch.setattr(house.preparation, "prepare_creation", crash)
    ended = False

    async def pester() -> None:
        while True:
            try:
                await house.create("X")
            except (ActorDown, ShuttingDown):
                continue

    try:
        async with house.running() as nursery:
            nursery.start_soon(pester)
            await trio.sleep_forever()
    except BaseExceptionGroup as group:
        ended = "writer crashed 4 times" in str(group.exceptions)
    assert ended
