"""Agents that share tasks, compete for claims and create edges, with a record of all confirmed changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import define, field

from tests.e2e.clients import Gone, WireClient
from tests.e2e.faults.journal import Told, replay_claims
from tests.e2e.process import Lithos

#: Subject of an event. Events with equal keys are counted together.
Key = tuple[str, ...]
ASPECTS = ("code", "review")
NAMESPACE = "storm"
#: Number of newest tasks that all agents share. The agents compete for these tasks.
SHARED = 6


@define
class Weight:
    """Weight of one edge: the last confirmed value and the last requested value."""

    acknowledged: float | None = None
    asked: float | None = None


@define(eq=False)
class Chores:
    """All confirmed tasks, claims, findings and edges."""

    seed: int
    crews: int = 6
    acknowledged: Counter[Key] = field(factory=Counter)
    #: Requests that had no answer when a server died. The server may have executed them.
    pending: Counter[Key] = field(factory=Counter)
    grants: set[tuple[str, str, str, int]] = field(factory=set)
    weights: dict[tuple[str, str], Weight] = field(factory=dict)
    tasks: list[str] = field(factory=list)
    refused: int = 0
    _numbers: Counter[int] = field(factory=Counter)

    async def work(self, server: Lithos, crew: int, notes: Sequence[str]) -> None:
        """Work until the server dies. New edges connect the notes in `notes`."""
        random = Random(f"{self.seed} {crew} {self._numbers[crew]}")
        try:
            async with WireClient.open(server.address) as client:
                while True:
                    await self._do_one(client, crew, random, notes)
        except Gone:
            return

    async def _do_one(self, client: WireClient, crew: int, random: Random, notes: Sequence[str]) -> None:
        self._numbers[crew] += 1
        agent, number = f"crew{crew}", self._numbers[crew]
        kinds = ["claim", "release", "post", "complete", "create", "edge"]
        kind = random.choices(kinds, [8, 6, 2, 1, 2, 4])[0] if self.tasks else "create"
        if kind == "edge" and len(notes) > 1:
            await self._draw(client, agent, random, notes)
            return
        if kind in ("create", "edge"):
            title = f"task-{crew}-{number}"
            answer = await self._ask(client, ("task.created", title), "create", title=title, agent=agent)
            assert answer is not None
            self.tasks.append(answer["task_id"])
            return
        task, aspect = random.choice(self.tasks[-SHARED:]), random.choice(ASPECTS)
        if kind == "claim":
            key = ("task.claimed", task, aspect, agent)
            answer = await self._ask(client, key, "claim", task_id=task, aspect=aspect, agent=agent)
            if answer:
                self.grants.add((task, aspect, agent, answer["fence"]))
        elif kind == "release":
            key = ("task.released", task, aspect, agent)
            await self._ask(client, key, "release", task_id=task, aspect=aspect, agent=agent)
        elif kind == "complete":
            await self._ask(
                client, ("task.completed", task), "complete", task_id=task, agent=agent, outcome="done"
            )
        else:
            key = ("finding.posted", task, agent)
            await self._ask(
                client, key, "lithos_finding_post", task_id=task, agent=agent, summary=f"f{number}"
            )

    async def _ask(self, client: WireClient, key: Key, tool: str, **arguments: Any) -> dict[str, Any] | None:
        self.pending[key] += 1
        name = tool if tool.startswith("lithos_") else f"lithos_task_{tool}"
        answer = await client.call(name, **arguments)
        self.pending[key] -= 1
        if answer.get("status") == "error":
            assert answer["code"] in ("claim_failed", "claim_not_found", "task_not_found"), answer
            self.refused += 1
            return None
        self.acknowledged[key] += 1
        return answer

    async def _draw(self, client: WireClient, agent: str, random: Random, notes: Sequence[str]) -> None:
        """Create an edge.

        Each agent changes only the edges from its own notes, so the last weight is known.
        """
        own = [note for number, note in enumerate(notes) if f"crew{number % self.crews}" == agent]
        if not own:
            return
        ends = (random.choice(own), random.choice(notes))
        weight = self.weights.setdefault(ends, Weight())
        weight.asked = random.randrange(1, 1000) / 1000
        await self._ask(
            client, ("edge.upserted", *ends), "lithos_edge_upsert",
            from_id=ends[0], to_id=ends[1], type="supports", weight=weight.asked,
            namespace=NAMESPACE, provenance_actor=agent,
        )  # fmt: skip
        weight.acknowledged = weight.asked

    async def verify(self, client: WireClient, events: Sequence[Told]) -> None:
        """Compare journal and tools with the record. Then replace the record with the server's state."""
        told = Counter(key for event in events if (key := key_of(event)) is not None)
        for key in told.keys() | self.acknowledged.keys() | self.pending.keys():
            least, most = self.acknowledged[key], self.acknowledged[key] + self.pending[key]
            assert least <= told[key] <= most, f"{key}: {told[key]} events, promised {least} to {most}"
        self.acknowledged, self.pending = told, Counter()
        claims = [event.payload for event in events if event.type == "task.claimed"]
        grants = {(said["task_id"], said["aspect"], said["agent"], said["fence"]) for said in claims}
        assert len(grants) == len(claims), "a claim is told twice"
        assert self.grants <= grants, "a granted claim is not in the journal"
        self.grants = grants
        await self._verify_tasks(client, events)
        await self._verify_edges(client)

    async def _verify_tasks(self, client: WireClient, events: Sequence[Told]) -> None:
        rows = (await client.call("lithos_task_list", with_claims=True))["tasks"]
        assert Counter(("task.created", row["title"]) for row in rows) == Counter(
            {key: number for key, number in self.acknowledged.items() if key[0] == "task.created" and number}
        )
        self.tasks = [row["id"] for row in reversed(rows)]
        done = {key[1] for key, number in self.acknowledged.items() if key[0] == "task.completed" and number}
        assert {row["id"] for row in rows if row["status"] == "completed"} == done
        held = {
            (row["id"], claim["aspect"]): (claim["agent"], claim["fence"])
            for row in rows
            for claim in row["claims"]
        }
        assert held == replay_claims(events)
        posted = Counter(key[1] for key in self.acknowledged.elements() if key[0] == "finding.posted")
        for task in self.tasks[-SHARED:]:
            findings = (await client.call("lithos_finding_list", task_id=task))["findings"]
            assert len(findings) == posted[task], task

    async def _verify_edges(self, client: WireClient) -> None:
        edges = (await client.call("lithos_edge_list", namespace=NAMESPACE))["edges"]
        found = {(edge["from_id"], edge["to_id"]): edge["weight"] for edge in edges}
        assert len(found) == len(edges), "an edge is there twice"
        for ends, weight in self.weights.items():
            assert found.get(ends) in (weight.acknowledged, weight.asked), (ends, weight, found.get(ends))
            weight.acknowledged = weight.asked = found.get(ends)
        assert {ends for ends, weight in self.weights.items() if weight.acknowledged is not None} == set(
            found
        )


def key_of(event: Told) -> Key | None:
    """Return the subject of a task or edge event, or None for other events."""
    said = event.payload
    if event.type == "task.created":
        return (event.type, said["title"])
    if event.type in ("task.claimed", "task.released"):
        return (event.type, said["task_id"], said["aspect"], said["agent"])
    if event.type == "task.completed":
        return (event.type, said["task_id"])
    if event.type == "finding.posted":
        return (event.type, said["task_id"], said["agent"])
    if event.type == "edge.upserted" and said["namespace"] == NAMESPACE:
        return (event.type, said["from_id"], said["to_id"])
    return None
