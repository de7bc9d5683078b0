"""`lithos_task_next`, outdated fences, strict mode, and events for ready tasks and expired claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from lithos.events.journal.coordinator import LAZY_DELAY, Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.reading.event_stream import EventFilter, EventStreams
from lithos.kernel.values.events import Event
from lithos.tasks.settings import CoordinationConfig
from tests.memory.tools.task_calls import RECORD, call, create, gate, link
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving

TOLD = ("task.ready", "task.claim_expired")


async def next_task(lithos: Lithos, agent: str = "ann", **wanted: Any) -> Any:
    return await call(lithos, "task_next", agent=agent, **wanted)


async def settle(lithos: Lithos) -> None:
    """Report the events that are due at this time. A running server does this twice a second."""
    while (due := lithos.server.get(Coordinator)._due) is not None and due <= lithos.server.get(
        Coordinator
    )._clock():
        await lithos.server.get(Coordinator).mailbox.ask(Flush())


def told(lithos: Lithos, *kinds: str) -> list[tuple[str, str]]:
    """Return type and task id of the reported events."""
    return [(kind, payload["task_id"]) for kind, payload in lithos.events() if kind in (kinds or TOLD)]


def ever_told(lithos: Lithos) -> list[tuple[str, str]]:
    """Return type and task id of all events in the data folder, including startup events."""
    drafts = [event.draft for event in lithos.server.get(Coordinator)._store.events_after(0)]
    return [(draft.type, draft.payload["task_id"]) for draft in drafts if draft.type in TOLD]


# -- choosing ---------------------------------------------------------------------------------------


async def test_task_next_returns_the_oldest_ready_task_with_its_claim(tmp_path: Path) -> None:
    """behaviour 258"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        assert await next_task(lithos) == {"task": None, "waiting": 0, "blocked": 0}
        first = await create(lithos, "first", tags=["x"])
        clock.advance(seconds=1)
        second = await create(lithos, "second")
        await create(lithos, "blocked", depends_on=[first])
        await create(lithos, "epic", task_type="epic")
        await gate(lithos)
        given = await next_task(lithos, "bob", ttl_minutes=0.5)
        assert list(given) == ["task", "fence", "expires_at", "ttl_minutes"]
        assert list(given["task"]) == [*RECORD, "claims"]
        assert (given["task"]["id"], given["task"]["tags"], given["ttl_minutes"]) == (first, ["x"], 0.5)
        claim = {"agent": "bob", "aspect": "work"}
        claim |= {"expires_at": given["expires_at"], "fence": given["fence"]}
        assert given["task"]["claims"] == [claim]
        assert lithos.events()[-1] == ("task.claimed", {"task_id": first} | claim_of(given, "bob"))
        again = await next_task(lithos, "bob")
        assert (again["task"]["id"], again["fence"] > given["fence"]) == (second, True)
        assert again["ttl_minutes"] == 60
        assert await next_task(lithos, "ann") == {"task": None, "waiting": 2, "blocked": 1}
        docs = await next_task(lithos, "ann", aspect=" Docs ")
        assert (docs["task"]["id"], [claim["aspect"] for claim in docs["task"]["claims"]]) == (
            first, ["work", "Docs"],
        )  # fmt: skip
        assert (await lithos.call("lithos_agent_info", id="ann"))["id"] == "ann"


def claim_of(given: dict[str, Any], agent: str) -> dict[str, Any]:
    return {"agent": agent, "aspect": "work", "fence": given["fence"]}


async def test_32_competing_agents_get_different_tasks(tmp_path: Path) -> None:
    """behaviour 258: no task is returned twice, blocked or held. Fences grow with each claim."""
    async with serving(tmp_path, settled=False) as lithos:
        blocker = await create(lithos, "blocker")
        blocked = [await create(lithos, "blocked", depends_on=[blocker]) for _ in range(5)]
        await call(lithos, "task_claim", task_id=blocker, aspect="Work", agent="holder")
        free = [await create(lithos, str(number)) for number in range(40)]
        given: list[tuple[int, str]] = []

        async def race(agent: str) -> None:
            answer = await next_task(lithos, agent)
            given.append((answer["fence"], answer["task"]["id"]))

        async with trio.open_nursery() as nursery:
            for number in range(32):
                nursery.start_soon(race, f"agent-{number}")
        assert sorted(task for _, task in given) == sorted(free[:32])
        assert [task for _, task in sorted(given)] == free[:32]
        claimed = [payload["fence"] for kind, payload in lithos.events() if kind == "task.claimed"]
        assert claimed == sorted(set(claimed))
        assert not {task for _, task in given} & {blocker, *blocked}


async def test_task_next_filters_by_project_tags_metadata_and_task(tmp_path: Path) -> None:
    """behaviour 258"""
    async with serving(tmp_path, settled=False) as lithos:
        await create(lithos, "other", metadata={"project": "p2"}, tags=["a"])
        listed = await create(lithos, "listed", metadata={"project": ["p1", 'ä"']}, tags=["a", "b"])
        plain = await create(lithos, "plain", metadata={"project": "p1", "n": 1}, tags=["b"])
        waits = await create(lithos, "waits", metadata={"project": "p1"}, depends_on=[plain])
        for wanted, expected in (
            ({"project": "p1", "tags": ["a", "b"]}, listed),
            ({"metadata_match": {"n": 1}}, plain),
            ({"project": 'ä"', "aspect": "second"}, listed),
            ({"task_id": plain, "aspect": "third"}, plain),
        ):
            assert (await next_task(lithos, **wanted))["task"]["id"] == expected
        for wanted, waiting, blocked in (
            ({"project": "p1"}, 2, 1),
            ({"project": "p3"}, 0, 0),
            ({"metadata_match": {"n": True}}, 0, 0),
            ({"task_id": plain}, 1, 0),
            ({"task_id": waits}, 0, 1),
            ({"task_id": MISSING_ID}, 0, 0),
            ({"task_id": await create(lithos, task_type="epic")}, 0, 0),
        ):
            answer = await next_task(lithos, **wanted)
            assert answer == {"task": None, "waiting": waiting, "blocked": blocked}, wanted
        bad = {"agent": "ann", "metadata_match": {"k": None}}
        assert "metadata_match" in refusal(await lithos.call("lithos_task_next", **bad), "invalid_input")


async def test_waiting_tasks_are_counted_again_after_a_change(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        task = await create(lithos, metadata={"project": "p"})
        await create(lithos, metadata={"project": "p"}, depends_on=[task])
        await next_task(lithos)
        for _ in range(2):
            answer = await next_task(lithos, project="p")
            assert (answer["waiting"], answer["blocked"]) == (1, 1)
        await create(lithos, metadata={"project": "p"}, depends_on=[task])
        answer = await next_task(lithos, project="p")
        assert (answer["waiting"], answer["blocked"]) == (1, 2)


# -- fences -----------------------------------------------------------------------------------------

FENCED: list[tuple[str, dict[str, Any]]] = [
    ("task_renew", {"aspect": "work"}),
    ("task_release", {"aspect": "work"}),
    ("finding_post", {"summary": "s"}),
    ("task_complete", {}),
]


async def test_error_for_an_outdated_fence_names_the_holder(tmp_path: Path) -> None:
    """behaviour 259"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        for tool, more in FENCED:
            wanted = {"task_id": await create(lithos)}
            stale = (await next_task(lithos, "ann", ttl_minutes=1, **wanted))["fence"]
            clock.advance(minutes=1)
            given = {"agent": "ann", "fence": stale} | wanted | more
            answer = await lithos.call(f"lithos_{tool}", **given)
            assert "no agent" in refusal(answer, "stale_fence"), tool
            assert list(answer.items())[3:] == [("held_by", None), ("expires_at", None)]
            taken = await next_task(lithos, "bob", **wanted)
            events = lithos.events()
            answer = await lithos.call(f"lithos_{tool}", **given)
            assert "bob" in refusal(answer, "stale_fence"), tool
            assert list(answer.items())[3:] == [("held_by", "bob"), ("expires_at", taken["expires_at"])]
            assert lithos.events() == events
            await call(lithos, tool, **given | {"agent": "bob", "fence": taken["fence"]})


async def test_any_active_fence_is_valid_and_closed_tasks_ignore_fences(tmp_path: Path) -> None:
    """behaviour 259: the fence of every active claim on the task is valid.

    Fences are not checked for a closed task.
    """
    async with serving(tmp_path, settled=False) as lithos:
        task = await create(lithos)
        docs = (await call(lithos, "task_claim", task_id=task, aspect="docs"))["fence"]
        await call(lithos, "task_claim", task_id=task, aspect="code", agent="bob")
        await call(lithos, "finding_post", task_id=task, summary="s", fence=docs)
        given = {"task_id": task, "agent": "ann", "aspect": "none", "fence": 1}
        stale = await lithos.call("lithos_task_renew", **given)
        assert refusal(stale, "stale_fence")  # this check is made before the check for claim_not_found
        assert stale["held_by"] is None
        missing = await lithos.call("lithos_task_renew", **given | {"fence": docs})
        assert refusal(missing, "claim_not_found")
        stale = await lithos.call("lithos_task_complete", task_id=task, agent="ann", fence=1)
        assert (refusal(stale, "stale_fence") != "", stale["held_by"]) == (True, "bob")
        await call(lithos, "task_complete", task_id=task, fence=docs)
        await call(lithos, "finding_post", task_id=task, summary="late", fence=1)
        again = await lithos.call("lithos_task_complete", task_id=task, agent="ann", fence=1)
        assert refusal(again, "task_not_found")
        for tool in ("lithos_task_renew", "lithos_task_release"):
            for task_id in (task, MISSING_ID):
                answer = await lithos.call(tool, **given | {"task_id": task_id})
                assert refusal(answer, "claim_not_found")


# -- strict mode ------------------------------------------------------------------------------------


async def test_blocked_and_held_tasks_are_allowed_without_strict_mode(tmp_path: Path) -> None:
    """behaviour 259"""
    async with serving(tmp_path, settled=False) as lithos:
        task = await create(lithos, "after", depends_on=[await create(lithos, "before")])
        await call(lithos, "task_claim", task_id=task, aspect="x", agent="bob")
        await call(lithos, "task_complete", task_id=task, agent="ann")


async def test_strict_mode_refuses_blocked_claims_and_completion_of_held_tasks(
    tmp_path: Path,
) -> None:
    """behaviour 259: an agent may complete a task that it has claimed or that no other agent has claimed."""
    clock, settings = Clock(), CoordinationConfig(strict=True)
    async with serving(tmp_path, clock=clock, coordination=settings, settled=False) as lithos:
        before = await create(lithos, "before")
        task = await create(lithos, "after", depends_on=[before])
        answer = await lithos.call("lithos_task_claim", task_id=task, aspect="x", agent="ann")
        assert "before" in refusal(answer, "claim_failed")
        assert list(answer)[3:] == ["reason", "blockers"]
        assert answer["reason"] == "blocked"
        assert answer["blockers"] == (await call(lithos, "task_blocked"))["tasks"][0]["blockers"]
        await call(lithos, "task_claim", task_id=await gate(lithos), aspect="x")
        await call(lithos, "task_complete", task_id=before)
        await call(lithos, "task_claim", task_id=task, aspect="x")

        task = await create(lithos)
        held = await call(lithos, "task_claim", task_id=task, aspect="x", agent="bob", ttl_minutes=1)
        answer = await lithos.call("lithos_task_complete", task_id=task, agent="ann")
        assert "bob" in refusal(answer, "claim_failed")
        assert list(answer.items())[3:] == [
            ("reason", "held"), ("held_by", "bob"), ("expires_at", held["expires_at"]),
        ]  # fmt: skip
        await call(lithos, "task_claim", task_id=task, aspect="y", agent="ann")
        await call(lithos, "task_complete", task_id=task, agent="ann")
        other = await create(lithos)
        await call(lithos, "task_claim", task_id=other, aspect="x", agent="bob", ttl_minutes=1)
        clock.advance(minutes=1)
        await call(lithos, "task_complete", task_id=other, agent="ann")


# -- events -----------------------------------------------------------------------------------------


async def test_expired_claim_is_reported_although_no_client_calls(tmp_path: Path) -> None:
    """behaviour 260: the coordinator checks often enough to report the expiry within two seconds."""
    assert LAZY_DELAY <= 1
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        task = await create(lithos, tags=["x"])
        fence = (await next_task(lithos, ttl_minutes=0.1))["fence"]
        stream = await lithos.server.get(EventStreams).open(None, EventFilter(types=("task.claim_expired",)))
        clock.advance(seconds=6)
        event = await stream.receive()
        assert isinstance(event, Event)
        assert list(event.draft.payload.items()) == [
            ("task_id", task), ("agent", "ann"), ("aspect", "work"), ("fence", fence),
        ]  # fmt: skip
        assert (event.draft.agent, event.draft.tags) == ("ann", ("x",))
        stream.close()


async def test_each_expiry_is_reported_only_once_across_restarts(tmp_path: Path) -> None:
    """behaviour 260: covers an expiry while no server was running."""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        first, second = await create(lithos), await create(lithos)
        await next_task(lithos, ttl_minutes=1)
        await next_task(lithos, ttl_minutes=5)
        clock.advance(minutes=1)
        await settle(lithos)
        assert told(lithos, "task.claim_expired") == [("task.claim_expired", first)]
    clock.advance(minutes=10)
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await settle(lithos)
        due = [("task.claim_expired", task) for task in (first, second)]
        assert ever_told(lithos)[2:] == due
        assert (await next_task(lithos))["task"]["id"] == first
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await settle(lithos)
        assert ever_told(lithos)[2:] == due


async def test_renewed_released_and_finished_claims_do_not_expire(tmp_path: Path) -> None:
    """behaviour 260"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        renewed, released, finished, cancelled = [await create(lithos, title) for title in "abcd"]
        for _ in range(4):
            await next_task(lithos, ttl_minutes=1)
        clock.advance(seconds=59)
        await call(lithos, "task_renew", task_id=renewed, aspect="work", ttl_minutes=2)
        await call(lithos, "task_release", task_id=released, aspect="work")
        await call(lithos, "task_complete", task_id=finished)
        await call(lithos, "task_cancel", task_id=cancelled)
        clock.advance(seconds=61)
        await settle(lithos)
        assert told(lithos, "task.claim_expired") == []
        clock.advance(minutes=1)
        await settle(lithos)
        assert told(lithos, "task.claim_expired") == [("task.claim_expired", renewed)]


async def test_ready_event_follows_creation_or_the_end_of_all_blockers(tmp_path: Path) -> None:
    """behaviour 260"""
    async with serving(tmp_path, settled=False) as lithos:
        one, two = await create(lithos, "one"), await create(lithos, "two")
        both = await create(lithos, "both", depends_on=[one, two], tags=["x"])
        epic = await create(lithos, "epic", task_type="epic")
        after_epic = await create(lithos, "after", depends_on=[epic])
        spawned = (await call(lithos, "task_spawn", source_task_id=one, title="s"))["task_id"]
        assert told(lithos) == [("task.ready", task) for task in (one, two, spawned)]
        await call(lithos, "task_complete", task_id=one)
        assert len(told(lithos)) == 3
        await call(lithos, "task_complete", task_id=two, agent="bob")
        event = lithos.server.get(Coordinator)._store.events_after(lithos.first_seq)[-1].draft
        assert (event.type, dict(event.payload)) == ("task.ready", {"task_id": both, "title": "both"})
        assert (event.agent, event.tags) == ("bob", ("x",))
        await call(lithos, "task_complete", task_id=epic)
        assert told(lithos)[-1] == ("task.ready", after_epic)
        count = len(told(lithos))
        await call(lithos, "task_reopen", task_id=two)
        assert (await next_task(lithos))["task"]["id"] == two
        assert len(told(lithos)) == count
        await call(lithos, "task_complete", task_id=two)
        assert told(lithos)[count:] == [("task.ready", both)]
        await call(lithos, "task_cancel", task_id=await create(lithos))
        assert len(told(lithos)) == count + 2


async def test_ready_event_is_sent_for_timers_opened_without_a_server(tmp_path: Path) -> None:
    """behaviour 260: the agent `timer` reports each task once. A cancelled timer never opens."""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        waiting = list[str]()
        for minute in (6, 7, 8):
            timer = await gate(lithos, gate_type="timer", ready_at=f"2026-03-04T05:0{minute}:30Z")
            waiting.append(await create(lithos, str(minute)))
            await link(lithos, timer, waiting[-1], "waits_on_gate")
        await call(lithos, "task_cancel", task_id=timer)
        assert len(told(lithos)) == 3  # each task was ready until it was linked to its predecessor
        assert (await next_task(lithos))["blocked"] == 3
        clock.advance(seconds=30)
        # The choice reads the clock itself. It does not need an earlier event.
        assert (await next_task(lithos))["task"]["id"] == waiting[0]
        assert told(lithos)[3:] == [("task.ready", waiting[0])]
        drafts = [
            event.draft for event in lithos.server.get(Coordinator)._store.events_after(lithos.first_seq)
        ]
        assert [draft.agent for draft in drafts if draft.type == "task.ready"][3:] == ["timer"]
    clock.advance(minutes=10)
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await settle(lithos)
        assert ever_told(lithos)[3:] == [("task.ready", waiting[0]), ("task.ready", waiting[1])]
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await settle(lithos)
        assert len(ever_told(lithos)) == 5


async def test_timer_moved_to_the_past_opens_at_once(tmp_path: Path) -> None:
    """behaviour 260"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        timer = await gate(lithos, gate_type="timer", ready_at="2027-01-01")
        task = await create(lithos)
        await link(lithos, timer, task, "waits_on_gate")
        assert (await next_task(lithos))["blocked"] == 1
        await call(lithos, "task_update", task_id=timer, metadata={"ready_at": "2026-01-01"})
        assert told(lithos)[1:] == [("task.ready", task)]
        await call(lithos, "task_update", task_id=timer, metadata={"ready_at": "2027-01-01"})
        assert (await next_task(lithos))["blocked"] == 1


async def test_task_and_finding_events_contain_tags_and_an_excerpt(
    tmp_path: Path,
) -> None:
    """behaviour 260"""
    async with serving(tmp_path, settled=False) as lithos:
        task = await create(lithos, tags=["x", "y"])
        await call(lithos, "task_claim", task_id=task, aspect="a")
        await call(lithos, "task_release", task_id=task, aspect="a")
        await call(lithos, "finding_post", task_id=task, summary="ä" * 301)
        await call(lithos, "task_update", task_id=task, tags=["z"])
        await call(lithos, "task_cancel", task_id=task)
        await call(lithos, "task_reopen", task_id=task)
        await call(lithos, "task_complete", task_id=task)
        drafts = [
            event.draft for event in lithos.server.get(Coordinator)._store.events_after(lithos.first_seq)
        ]
        assert [draft.tags for draft in drafts] == [("x", "y")] * 5 + [("z",)] * 4
        (finding,) = [draft.payload for draft in drafts if draft.type == "finding.posted"]
        assert finding["summary"] == "ä" * 300


# -- failed attempts --------------------------------------------------------------------------------


async def fail(lithos: Lithos, given: Any, output: str) -> Any:
    return await lithos.call(
        "lithos_task_release", task_id=given["task"]["id"], aspect="work", agent="ann",
        fence=given["fence"], failed=output,
    )  # fmt: skip


async def test_failing_task_is_retried_after_growing_pauses_and_finally_fails(tmp_path: Path) -> None:
    """Behaviour 404."""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        task = await create(lithos, "flaky")
        after = await create(lithos, "after", depends_on=[task])
        for attempt, minutes in ((1, 1), (2, 2)):
            given = await next_task(lithos)
            failed = await fail(lithos, given, f"boom {attempt}")
            assert (failed["attempts"], failed["status"]) == (attempt, "open")
            clock.advance(minutes=minutes, seconds=-1)
            await settle(lithos)
            assert await next_task(lithos, "bob") == {"task": None, "waiting": 1, "blocked": 1}
            refusal(await fail(lithos, given, "late"), "stale_fence")
            clock.advance(seconds=1)
            await settle(lithos)
            assert told(lithos, "task.claim_expired")[-1] == ("task.claim_expired", task)
        last = await fail(lithos, await next_task(lithos), "boom 3")
        assert (last["attempts"], last["status"], last["retry_at"]) == (3, "failed", None)
        record = (await call(lithos, "task_get", task_id=task))["task"]
        assert (record["status"], record["outcome"]) == ("failed", "boom 3")
        assert told(lithos, "task.failed") == [("task.failed", task)]
        (blocked,) = (await call(lithos, "task_blocked"))["tasks"]
        assert (blocked["id"], blocked["blockers"][0]["kind"]) == (after, "blocker_unsatisfiable")
        findings = (await call(lithos, "finding_list", task_id=task))["findings"]
        assert [one["summary"] for one in findings] == [
            f"[Failed] attempt {n} of 3: boom {n}" for n in (1, 2, 3)
        ]

        await call(lithos, "task_reopen", task_id=task, agent="ann")
        assert (await fail(lithos, await next_task(lithos), "boom"))["attempts"] == 1


async def test_retry_pause_of_a_failed_task_survives_a_restart(tmp_path: Path) -> None:
    """Behaviour 404."""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await create(lithos, "flaky")
        await fail(lithos, await next_task(lithos), "boom")
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        assert (await next_task(lithos, "bob"))["task"] is None
        clock.advance(minutes=1)
        await settle(lithos)
        assert (await next_task(lithos, "bob"))["task"]["metadata"] == {"failed_attempts": 1}
