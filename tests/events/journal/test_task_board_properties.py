"""Claims and the task graph, compared with simple models by random commands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import takewhile
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lithos.kernel.values.errors import LithosError
from lithos.tasks.model.task import BLOCKS, PARENT_CHILD, WAITS_ON_GATE, ClaimGrant
from lithos.tasks.model.task_commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    ReleaseClaim,
    RemoveTaskEdge,
    RenewClaim,
    ReopenTask,
    UpsertTaskEdge,
)
from tests.kernel.actors.boards import Board

AGENTS = st.sampled_from(["ann", "bob", "cy"])
ASPECTS = st.sampled_from(["code", "docs"])
MINUTES = st.one_of(st.none(), st.floats(-5, 600, allow_nan=False))
SLOTS = st.integers(0, 4)


def minutes_granted(wanted: float | None) -> float:
    return 60 if wanted is None else min(wanted if wanted >= 0.1 else 1, 480)


class ClaimMachine(RuleBasedStateMachine):
    """Model of claims: owner and end of the claim on each aspect, and the highest issued fence."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Board()
        self.tasks = [self.board.create(str(number)) for number in range(2)]
        self.is_open = [True, True]
        self.held: dict[tuple[int, str], tuple[str, datetime, int]] = {}
        self.highest = 0

    def outcome(self, command: ClaimAspect | RenewClaim | ReleaseClaim) -> object:
        try:
            done = self.board.run(command)
        except LithosError as refusal:
            return refusal.code
        return done.claim if isinstance(done, ClaimGrant) else done

    @rule(slot=st.integers(0, 1), aspect=ASPECTS, agent=AGENTS, minutes=MINUTES)
    def claim(self, slot: int, aspect: str, agent: str, minutes: float | None) -> None:
        holder = self.held.get((slot, aspect))
        free = holder is None or holder[0] == agent or holder[1] <= self.board.now
        command = ClaimAspect(task_id=self.tasks[slot], aspect=aspect, agent=agent, ttl_minutes=minutes)
        result = self.outcome(command)
        if not (self.is_open[slot] and free):
            assert result == "claim_failed"
            return
        assert result.fence > self.highest  # type: ignore[attr-defined]
        self.highest = result.fence  # type: ignore[attr-defined]
        until = self.board.now + timedelta(minutes=minutes_granted(minutes))
        assert result.expires_at == until  # type: ignore[attr-defined]
        self.held[slot, aspect] = agent, until, self.highest

    @rule(slot=st.integers(0, 1), aspect=ASPECTS, agent=AGENTS, minutes=MINUTES)
    def renew(self, slot: int, aspect: str, agent: str, minutes: float | None) -> None:
        holder = self.held.get((slot, aspect))
        command = RenewClaim(task_id=self.tasks[slot], aspect=aspect, agent=agent, ttl_minutes=minutes)
        result = self.outcome(command)
        if holder is None or holder[0] != agent or holder[1] <= self.board.now:
            assert result == "claim_not_found"
            return
        assert result.fence == holder[2]  # type: ignore[attr-defined]
        until = self.board.now + timedelta(minutes=minutes_granted(minutes))
        self.held[slot, aspect] = agent, until, holder[2]

    @rule(slot=st.integers(0, 1), aspect=ASPECTS, agent=AGENTS)
    def release(self, slot: int, aspect: str, agent: str) -> None:
        holder = self.held.get((slot, aspect))
        result = self.outcome(ReleaseClaim(task_id=self.tasks[slot], aspect=aspect, agent=agent))
        if holder is None or holder[0] != agent:
            assert result == "claim_not_found"
        else:
            del self.held[slot, aspect]

    @rule(minutes=st.floats(0, 700))
    def pass_time(self, minutes: float) -> None:
        self.board.pass_time(minutes=minutes)

    @precondition(lambda self: any(self.is_open))
    @rule(slot=st.integers(0, 1), completed=st.booleans())
    def close(self, slot: int, completed: bool) -> None:
        if self.is_open[slot]:
            kind = CompleteTask if completed else CancelTask
            self.board.run(kind(task_id=self.tasks[slot], agent="ann"))
            self.is_open[slot] = False
            self.held = {key: value for key, value in self.held.items() if key[0] != slot}
        else:
            self.board.run(ReopenTask(task_id=self.tasks[slot], agent="ann"))
            self.is_open[slot] = True

    @invariant()
    def only_running_claims_show(self) -> None:
        shown = {
            (self.tasks.index(task_id), claim.aspect): (claim.agent, claim.expires_at, claim.fence)
            for task_id, claims in self.board.rows.active_claims(self.board.now).items()
            for claim in claims
        }
        assert shown == {key: value for key, value in self.held.items() if value[1] > self.board.now}


class GraphMachine(RuleBasedStateMachine):
    """Model of the task graph: statuses and edge sets of five tasks.

    The last of the model's five tasks is a gate. The model searches without indexes.
    """

    KINDS: ClassVar = st.sampled_from([BLOCKS, WAITS_ON_GATE, PARENT_CHILD])

    def __init__(self) -> None:
        super().__init__()
        self.board = Board()
        self.ids = [self.board.create(str(number)) for number in range(4)]
        self.ids.append(self.board.create("gate", task_type="gate", metadata={"gate_type": "human"}))
        self.status = ["open"] * 5
        self.edges: set[tuple[int, int, str]] = set()

    def reaches(self, start: int, goal: int, kinds: set[str]) -> bool:
        def after(node: int) -> set[int]:
            return {target for source, target, kind in self.edges if source == node and kind in kinds}

        return self.walks(after, {start}, goal)

    def walks(self, after: Callable[[int], set[int]], starts: set[int], goal: int) -> bool:
        seen, stack = set[int](), list(starts)
        while stack:
            node = stack.pop()
            if node == goal:
                return True
            if node not in seen:
                seen.add(node)
                stack += after(node)
        return False

    def above(self, slot: int) -> list[int]:
        found: list[int] = []
        while parents := [s for s, t, kind in self.edges if kind == PARENT_CHILD and t == slot]:
            slot = parents[0]
            found.append(slot)
        return found

    def open_above(self, slot: int) -> list[int]:
        return list(takewhile(lambda one: self.status[one] == "open", self.above(slot)))

    def before(self, slot: int) -> set[int]:
        return {source for source, waiter, kind in self.edges if waiter == slot and kind != PARENT_CHILD}

    def inherits(self, slot: int, parent: int) -> set[int]:
        """Return the tasks that a task waits for through its parent.

        The task's own children and dependents do not count.
        """
        return {
            source
            for source in self.before(parent)
            if parent not in (source, *self.above(source)) and not self.walks(self.before, {source}, slot)
        }

    def dependents(self, source: int) -> set[int]:
        """Return all tasks that wait for a task, also through a parent."""
        return {
            slot
            for slot in range(5)
            if source in self.before(slot)
            or any(source in self.inherits(slot, one) for one in self.above(slot))
        }

    def verdict(self, source: int, target: int, kind: str) -> str | None:
        if source == target:
            return "self_edge"
        if kind == WAITS_ON_GATE and source != 4:
            return "not_a_gate"
        if kind == PARENT_CHILD:
            parents = {one for one, child, edge in self.edges if child == target and edge == PARENT_CHILD}
            if parents - {source}:
                return "parent_exists"
        kinds = {PARENT_CHILD} if kind == PARENT_CHILD else {BLOCKS, WAITS_ON_GATE}
        if self.reaches(target, source, kinds):
            return "cycle"
        return "cycle" if self.ties(source, target, kind) else None

    def ties(self, source: int, target: int, kind: str) -> bool:
        """Return whether this edge would make tasks wait for one another through a parent."""
        known, self.edges = self.edges, self.edges | {(source, target, kind)}
        try:
            waiting = {target, *(slot for slot in range(5) if target in self.above(slot))}
            chain = (target, *self.above(target))
            sources = {source} if kind != PARENT_CHILD else {s for one in chain for s in self.before(one)}
            return any(self.walks(self.dependents, self.dependents(s) & waiting, s) for s in sources)
        finally:
            self.edges = known

    def held_by(self, target: int) -> set[int]:
        inherited = {source for parent in self.open_above(target) for source in self.inherits(target, parent)}
        return {one for one in self.before(target) | inherited if self.status[one] != "completed"}

    def ready(self) -> set[int]:
        return {one for one in range(4) if self.status[one] == "open" and not self.held_by(one)}

    @rule(source=SLOTS, far=SLOTS, kind=KINDS)
    def link(self, source: int, far: int, kind: str) -> None:
        command = UpsertTaskEdge(source=self.ids[source], target=self.ids[far], type=kind, agent="ann")
        expected = self.verdict(source, far, kind)
        if expected is None:
            self.board.run(command)
            self.edges.add((source, far, kind))
        else:
            assert self.board.refusal(command).code == expected

    @rule(source=SLOTS, far=SLOTS, kind=KINDS)
    def unlink(self, source: int, far: int, kind: str) -> None:
        command = RemoveTaskEdge(source=self.ids[source], target=self.ids[far], type=kind, agent="ann")
        if (source, far, kind) not in self.edges:
            assert self.board.refusal(command).code == "edge_not_found"
            return
        before = self.ready()
        self.edges.discard((source, far, kind))
        self.board.events.clear()
        self.board.run(command)
        told = {event.payload["task_id"] for event in self.board.events if event.type == "task.ready"}
        assert told == {self.ids[one] for one in self.ready() - before}

    @rule(slot=SLOTS)
    def complete(self, slot: int) -> None:
        command = CompleteTask(task_id=self.ids[slot], agent="ann")
        if self.status[slot] != "open":
            assert self.board.refusal(command).code == "task_not_found"
            return
        self.status[slot] = "completed"
        expected = {self.ids[one] for one in self.dependents(slot) & self.ready()}
        assert set(self.board.run(command)) == expected

    @rule(slot=SLOTS)
    def cancel(self, slot: int) -> None:
        command = CancelTask(task_id=self.ids[slot], agent="ann")
        if self.status[slot] == "open":
            self.board.run(command)
            self.status[slot] = "cancelled"
        else:
            assert self.board.refusal(command).code == "task_not_found"

    @rule(slot=SLOTS)
    def reopen(self, slot: int) -> None:
        command = ReopenTask(task_id=self.ids[slot], agent="ann")
        was = self.status[slot]
        if was == "open":
            assert self.board.refusal(command).code == "task_not_resolved"
            return
        self.status[slot] = "open"
        alone = {
            self.ids[one] for one in range(5) if self.status[one] == "open" and self.held_by(one) == {slot}
        }
        assert set(self.board.run(command)) == (alone if was == "completed" else set())

    @invariant()
    def readiness_agrees(self) -> None:
        graph = self.board.rows.graph_before(self.ids)
        ready = {
            slot for slot, one in enumerate(self.ids) if graph.is_ready(graph.tasks[one], self.board.now)
        }
        assert ready == self.ready()
        assert self.board.rows.ready.are_ready(self.ids) == {self.ids[slot] for slot in ready}
        for slot, one in enumerate(self.ids):
            held = {self.ids.index(blocker.task_id) for blocker in graph.blockers(one, self.board.now)}
            assert held == self.held_by(slot)


@pytest.mark.parametrize("machine", [ClaimMachine, GraphMachine])
def test_random_commands_have_the_results_of_the_model(machine: type[RuleBasedStateMachine]) -> None:
    """Behaviours 93, 95, 96, 97, 98 (claims), 109 to 114, 120, 121, 122 (graph), 192, 334."""
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=25))
