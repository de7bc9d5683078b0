"""Repeated kill -9 on one data directory at random moments of a mixed load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import trio
from attrs import define, field

from lithos.notes.watching.notifications import PROBE_NAME
from tests.e2e.clients import WireClient
from tests.e2e.faults import Outcome
from tests.e2e.faults.chores import Chores
from tests.e2e.faults.journal import Told, count_notes, read_journal, replay_notes
from tests.e2e.faults.outsider import Outsider
from tests.e2e.faults.rebuild import Picture, compare_with_fresh
from tests.e2e.process import Lithos, kill_while_starting, running_lithos, start_lithos
from tests.e2e.storm import Storm
from tests.e2e.vault import NOTES, make_vault, snapshot

#: Seconds between the last confirmation of a round and the kill.
LAG = 0.05


@define(eq=False)
class MixedLoad:
    """Mixed load: note writers, groups of agents with tasks and edges, and a program that edits files."""

    data: Path
    seed: int
    storm: Storm = field(init=False)
    chores: Chores = field(init=False)
    outsider: Outsider = field(init=False)
    #: Ids of the notes that existed before the first server start.
    first: dict[str, str] = field(factory=dict)
    in_flight: int = 0

    def __attrs_post_init__(self) -> None:
        self.storm = Storm(self.seed)
        self.chores = Chores(self.seed)
        self.outsider = Outsider(self.data / "knowledge", self.seed)

    async def rage(self, server: Lithos, acknowledgements: int, lag: float) -> None:
        """Load the server, and kill it soon after a number of confirmed writes."""
        notes = [promise.id for promise in self.storm.present if promise.id][-60:]
        self.storm.lag = lag
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.storm.rage, server, acknowledgements)
            nursery.start_soon(self.outsider.edit, server)
            for crew in range(self.chores.crews):
                nursery.start_soon(self.chores.work, server, crew, notes)
        self.in_flight += sum(promise.pending is not None for promise in self.storm.promises)
        self.in_flight += self.chores.pending.total()

    async def verify(self, server: Lithos) -> None:
        """Compare tools, indexes, journal and disk with all confirmed changes."""
        for promise in self.storm.promises:
            promise.settle(self.outsider.folder)
        async with WireClient.open(server.address) as client:
            outside = await self.outsider.settled(client)
            listed = {
                item["id"]: item["path"]
                for item in (await client.call("lithos_list", limit=1_000_000))["items"]
            }
            self._verify_notes(listed, set(outside.values()))
            stats = await client.settled_stats()
            assert stats["documents"] == stats["tantivy_doc_count"] == len(listed)
            # Semantic search waits until every note is embedded. From then on, no temporary file may exist.
            await client.call("lithos_search", query="token", mode="semantic")
            events = read_journal(self.data)
            self.first = self.first or {
                note: path for note, path in listed.items() if not path.startswith(("storm/", "outside/"))
            }
            assert replay_notes(events, self.first) == listed
            await self.chores.verify(client, events)
        # Temporary files of the last second are ignored, because a running replacement may still need them.
        left = {file.name for file in self.outsider.folder.rglob(".lithos*") if file.suffix != ".swap"}
        left -= {PROBE_NAME}
        assert not left, f"temporary files were left behind: {left}"

    def _verify_notes(self, listed: dict[str, str], outside: set[str]) -> None:
        present = {promise.path: promise for promise in self.storm.present}
        in_storm = {path: note for note, path in listed.items() if path.startswith("storm/")}
        assert in_storm.keys() == present.keys()
        for path, promise in present.items():
            assert promise.id in (None, in_storm[path])
            promise.id = in_storm[path]
        assert len(listed) == len(present) + len(outside) + NOTES

    def verify_told(self, events: Sequence[Told]) -> None:
        """Raise unless every change by a tool has exactly one event."""
        expected = Counter[tuple[str, str]]()
        for promise in self.storm.promises:
            expected["note.created", promise.path] = min(promise.version, 1)
            expected["note.updated", promise.path] = max(promise.version - 1, 0)
            expected["note.deleted", promise.path] = int(promise.is_deleted)
        told = count_notes(events)
        assert {key: number for key, number in told.items() if key[1].startswith("storm/")} == +expected

    async def compare_with_fresh(self, server: Lithos) -> Picture:
        """Compare the indexes with new indexes. Each current text must be found once, and no former text."""
        current = {promise.token(promise.version): promise for promise in self.storm.present}
        former = [
            promise.token(version)
            for promise in self.storm.promises
            for version in range(1, promise.version + 2)
            if promise.is_deleted or version != promise.version
        ]
        picture = await compare_with_fresh(
            server, self.data, [*current, *former], self.data.with_name(f"{self.data.name}-fresh")
        )
        wrong = [word for word, promise in current.items() if picture.found[word] != [promise.id]]
        assert not wrong, f"not found: {wrong}"
        assert not [word for word in former if picture.found[word]], "a former text is still found"
        return picture


async def kill_again_and_again(
    folder: Path, kills: int, *, seed: int = 193, told: Callable[[int], None] = lambda _: None
) -> Outcome:
    """Apply the load and kill the server repeatedly.

    Every fifth time, also kill the server during recovery.
    """
    data = folder / "data"
    vault = make_vault(data)
    before = snapshot(vault)
    load, random, again = MixedLoad(data, seed), Random(seed), 0
    for kill in range(kills):
        if kill % 5 == 1:
            kill_while_starting(data)
            again += 1
        server = start_lithos(data)
        try:
            await load.verify(server)
            if kill % 25 == 24:
                await load.compare_with_fresh(server)
            await load.rage(server, random.randrange(10, 90), random.uniform(0, LAG))
        finally:
            server.close()
        told(kill + 1)
    with running_lithos(data) as server:
        await load.verify(server)
        picture = await load.compare_with_fresh(server)
        assert server.stop() == 0
        assert "Traceback" not in server.log()
    events = read_journal(data)
    load.verify_told(events)
    after = snapshot(vault)
    assert {path: after[path] for path in before} == before
    return _describe(load, kills, again, len(events), picture)


def _describe(load: MixedLoad, kills: int, again: int, events: int, picture: Picture) -> Outcome:
    writes, chores = load.storm.acknowledged, load.chores.acknowledged
    counted = Counter(key[0] for key in chores.elements())
    assert load.in_flight > kills, "nothing was under way at the kills"
    return Outcome(
        f"{kills} kills, {again} more during recovery; {writes.total()} note writes, "
        f"{counted['task.claimed']} claims, {counted.total() - counted['task.claimed']} other changes of "
        f"tasks and edges acknowledged, {load.outsider.edits.total()} outside edits, {load.in_flight} "
        "changes under way",
        f"nothing acknowledged lost, no partial file, {events} events without gap or repetition, "
        f"no claim granted twice; {picture.counts['documents']} notes, {picture.counts['chunks']} chunks and "
        f"{picture.counts['graph_edge_count']} links equal a fresh rebuild",
    )
