"""Choice of the next task compared with a full scan, internal marks, outdated rows, and backlogs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lithos.kernel.values.errors import LithosError
from lithos.tasks.board import readiness, task_choice
from lithos.tasks.model.task import BLOCKS, WAITS_ON_GATE, aspect_key
from lithos.tasks.model.task_commands import (
    CancelTask,
    ClaimAspect,
    CompleteTask,
    NextTask,
    ReleaseClaim,
    RenewClaim,
    ReopenTask,
    UpdateTask,
    UpsertTaskEdge,
)
from tests.kernel.actors.boards import START, Board

SLOTS = st.integers(0, 30)
AGENTS = st.sampled_from(["ann", "bob"])
ASPECTS = st.sampled_from(["work", " WORK ", "docs"])
PROJECTS = st.sampled_from([None, "p", 'q"ä'])
MINUTES = st.sampled_from([0.1, 1, 30])


class ChoiceMachine(RuleBasedStateMachine):
    """State machine whose model checks every task, edge and claim completely."""

    def __init__(self) -> None:
        super().__init__()
        self.board = Board()
        self.ids: list[str] = []
        self.fence = 0
        self.renewals = Counter[int]()

    def pick(self, slot: int) -> str | None:
        return self.ids[slot % len(self.ids)] if self.ids else None

    def naive(self, wanted: NextTask) -> str | None:
        """Return the oldest matching task, which a full scan finds."""
        rows, now = self.board.rows, self.board.now
        graph = rows.graph_before(self.ids)
        claims = rows.active_claims(now)
        # The sort is stable, so tasks with equal creation times stay in creation order.
        for task_id in sorted(self.ids, key=lambda each: graph.tasks[each].created_at):
            task = graph.tasks[task_id]
            held = {aspect_key(claim.aspect) for claim in claims.get(task_id, ())}
            if (
                graph.is_ready(task, now)
                and wanted.passes(task.tags, task.metadata)
                and aspect_key(wanted.aspect) not in held
                and wanted.task_id in (None, task_id)
            ):
                return task_id
        return None

    def settle(self) -> None:
        """Report all due events at once. The model does not support partial reports."""
        while (due := self.board.board.readiness.next_due(self.board.now)) and due <= self.board.now:
            self.board.sweep()

    @rule(project=PROJECTS, before=SLOTS, waits=st.booleans(), tags=st.sampled_from([(), ("x",)]))
    def create(self, project: str | None, before: int, waits: bool, tags: tuple[str, ...]) -> None:
        first = self.pick(before)
        depends_on = (first,) if waits and first is not None else ()
        metadata = {} if project is None else {"project": project}
        self.ids.append(self.board.create(metadata=metadata, depends_on=depends_on, tags=tags))
        self.board.pass_time(microseconds=before % 2)

    @rule(seconds=st.integers(-5, 100), before=SLOTS)
    def create_timer(self, seconds: int, before: int) -> None:
        """Create a timer gate and let an existing task wait for the gate."""
        waiter = self.pick(before)
        opens = (START if seconds < 0 else self.board.now).timestamp() + seconds
        ready_at = START.fromtimestamp(opens, START.tzinfo).isoformat()
        gate = self.board.create(task_type="gate", metadata={"gate_type": "timer", "ready_at": ready_at})
        if waiter is not None:
            self.board.run(UpsertTaskEdge(source=gate, target=waiter, type=WAITS_ON_GATE, agent="a"))

    @rule(agent=AGENTS, aspect=ASPECTS, project=PROJECTS, tags=st.sampled_from([(), ("x",)]), minutes=MINUTES)
    def next(
        self, agent: str, aspect: str, project: str | None, tags: tuple[str, ...], minutes: float
    ) -> None:
        self.settle()
        wanted = NextTask(agent=agent, aspect=aspect, project=project, tags=tags, ttl_minutes=minutes)
        expected = self.naive(wanted)
        given = self.board.run(wanted)
        assert (None if given is None else given.task.id) == expected
        if given is not None:
            assert given.grant.claim.fence > self.fence
            self.fence = given.grant.claim.fence

    @rule(slot=SLOTS, agent=AGENTS)
    def next_of_one(self, slot: int, agent: str) -> None:
        self.settle()
        wanted = NextTask(agent=agent, task_id=self.pick(slot) or "none")
        expected = self.naive(wanted)
        given = self.board.run(wanted)
        assert (None if given is None else given.task.id) == expected

    @rule(slot=SLOTS, agent=AGENTS, kind=st.sampled_from([ClaimAspect, RenewClaim, ReleaseClaim]))
    def use(self, slot: int, agent: str, kind: Any) -> None:
        if task_id := self.pick(slot):
            done = self.attempt(kind(task_id=task_id, aspect="work", agent=agent))
            if kind is RenewClaim and done is not None:
                self.renewals[done.claim.fence] += 1

    @rule(slot=SLOTS, kind=st.sampled_from([CompleteTask, CancelTask, ReopenTask]))
    def close(self, slot: int, kind: Any) -> None:
        if task_id := self.pick(slot):
            self.attempt(kind(task_id=task_id, agent="a"))

    @rule(slot=SLOTS, project=PROJECTS)
    def change(self, slot: int, project: str | None) -> None:
        if task_id := self.pick(slot):
            self.attempt(UpdateTask(task_id=task_id, agent="a", metadata={"project": project}))

    @rule(slot=SLOTS, other=SLOTS)
    def link(self, slot: int, other: int) -> None:
        source, target = self.pick(slot), self.pick(other)
        if source is not None and target is not None:
            self.attempt(UpsertTaskEdge(source=source, target=target, type=BLOCKS, agent="a"))

    @rule(seconds=st.sampled_from([-40, 1, 7, 61, 4_000]))
    def pass_time(self, seconds: int) -> None:
        """Move the clock forward or back."""
        self.board.pass_time(seconds=seconds)

    def attempt(self, command: Any) -> Any:
        """Run a command. Return its answer, or None if the command is refused."""
        try:
            return self.board.run(command)
        except LithosError:
            return None

    @invariant()
    def a_claim_is_told_as_expired_once(self) -> None:
        """Check that each claim expires only once.

        A claim may expire again if it is renewed after the clock was set back.
        """
        kinds = ("task.claim_expired",)
        told = Counter(event.payload["fence"] for event in self.board.events if event.type in kinds)
        assert max((told - self.renewals).values(), default=1) == 1


def test_random_boards_choose_the_same_task_as_a_full_scan() -> None:
    """behaviour 258: the boards went through random claims, releases, blockers, changes and clock jumps."""
    run_state_machine_as_test(ChoiceMachine, settings=settings(stateful_step_count=40))


def steps(board: Board, wanted: NextTask) -> int:
    """Return the cost of a choice in SQLite virtual machine steps, which are equal on all computers."""
    counted = 0

    def count() -> bool:
        nonlocal counted
        counted += 1
        return False

    board.connection.set_progress_handler(count, 10)
    given = board.run(wanted)
    board.connection.set_progress_handler(None)
    assert given is not None
    return counted


@pytest.mark.parametrize("project", [None, "p"])
def test_task_choice_costs_the_same_after_hundreds_of_held_tasks(project: str | None) -> None:
    """behaviour 258: a choice continues after the task that was chosen last.

    A check of each held task would double the steps.
    """
    board = Board()
    for number in range(500):
        board.create(str(number), metadata={"project": "p" if number % 2 else "other"})
    wanted = NextTask(agent="a", project=project)
    early = max(steps(board, wanted) for _ in range(5))
    for _ in range(200):
        board.run(wanted)
    late = max(steps(board, wanted) for _ in range(5))
    assert late <= 1.2 * early


def test_marks_are_limited_and_discarded_after_a_failed_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_choice, "KINDS", 3)
    board = Board()
    task = board.create(metadata={"project": "4"})
    for number in range(5):
        board.run(NextTask(agent="a", project=str(number)))
        assert len(board.board._marks._places) <= 3
    assert board.run(NextTask(agent="a", project="4")) is None
    board.connection.execute("DELETE FROM claims")  # simulates a transaction that was rolled back
    assert board.run(NextTask(agent="a", project="4")) is None
    board.board.readiness.forget()
    given = board.run(NextTask(agent="a", project="4"))
    assert given.task.id == task


def test_task_without_free_aspects_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithos.tasks.board.task_board.ASPECTS", 1)
    board = Board()
    full, free = board.create("full"), board.create("free")
    board.run(ClaimAspect(task_id=full, aspect="docs", agent="a"))
    assert board.run(NextTask(agent="a")).task.id == free
    assert board.run(NextTask(agent="a")) is None
    assert board.run(NextTask(agent="a", task_id=full)) is None


def test_clock_setback_closes_timers_and_offers_no_held_task() -> None:
    """behaviours 258, 260"""
    board = Board()
    opens = START.replace(minute=5).isoformat()
    gate = board.create(task_type="gate", metadata={"gate_type": "timer", "ready_at": opens})
    task = board.create()
    other = board.create()
    board.run(UpsertTaskEdge(source=gate, target=task, type=WAITS_ON_GATE, agent="a"))
    assert board.run(NextTask(agent="a", ttl_minutes=6)).task.id == other
    board.pass_time(minutes=7)
    board.sweep()
    kinds = [event.type for event in board.events][-2:]
    assert kinds == ["task.claim_expired", "task.ready"]
    board.pass_time(minutes=-4)
    told = len(board.events)
    assert board.run(NextTask(agent="b")) is None
    board.pass_time(minutes=3)
    assert board.run(NextTask(agent="b")).task.id == task
    assert [event.type for event in board.events[told:]] == ["task.ready", "task.claimed"]
    board.pass_time(minutes=1)
    assert board.run(NextTask(agent="b")).task.id == other


def test_many_expiries_are_reported_in_parts_but_takeovers_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """behaviour 260"""
    monkeypatch.setattr(readiness, "AT_ONCE", 3)
    board = Board()
    tasks = [board.create(str(number)) for number in range(10)]
    for task in tasks:
        board.run(ClaimAspect(task_id=task, aspect="x", agent="a", ttl_minutes=1))
    board.pass_time(minutes=1)
    board.events.clear()
    board.run(ClaimAspect(task_id=tasks[9], aspect=" X", agent="b"))
    assert len(told := expired(board)) == 4
    assert told[-1] == tasks[9]
    while (due := board.board.readiness.next_due(board.now)) is not None and due <= board.now:
        before = len(board.events)
        board.sweep()
        assert len(board.events) - before <= 3
    assert sorted(expired(board)) == sorted(tasks)


def test_expired_claim_is_reported_before_its_task_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """behaviour 260"""
    monkeypatch.setattr(readiness, "AT_ONCE", 1)
    board = Board()
    first, second, third = (board.create(str(number)) for number in range(3))
    for task in (first, second, third):
        board.run(ClaimAspect(task_id=task, aspect="x", agent="a", ttl_minutes=1))
    board.pass_time(minutes=1)
    board.events.clear()
    board.run(CompleteTask(task_id=third, agent="a"))
    assert [(event.type, event.payload["task_id"]) for event in board.events] == [
        ("task.claim_expired", first), ("task.claim_expired", third), ("task.completed", third),
    ]  # fmt: skip
    board.sweep()
    assert expired(board) == [first, third, second]


def expired(board: Board) -> list[str]:
    return [event.payload["task_id"] for event in board.events if event.type == "task.claim_expired"]
