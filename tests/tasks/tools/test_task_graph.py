"""Readiness, blockers, gates, edges, children, spawning and reopening, as clients see them."""

from __future__ import annotations

from typing import Any

from lithos.events.journal.coordinator import Coordinator
from tests.memory.tools.task_calls import RECORD, call, create, gate, ids, link, record
from tests.servers import MISSING_ID, Clock, Lithos, refusal


async def ready(lithos: Lithos, **filters: Any) -> list[str]:
    return ids(await call(lithos, "task_ready", **filters))


async def blockers(lithos: Lithos, task: str) -> list[dict[str, Any]]:
    """Return the reasons why a task waits. Return [] if the task is not in the blocked list."""
    tasks = (await call(lithos, "task_blocked", limit=1000))["tasks"]
    found: list[dict[str, Any]] = next((row["blockers"] for row in tasks if row["id"] == task), [])
    return found


async def complete(lithos: Lithos, task: str, **more: Any) -> list[str]:
    unblocked: list[str] = (await call(lithos, "task_complete", task_id=task, **more))["unblocked"]
    return unblocked


async def test_task_is_ready_once_all_predecessors_are_completed(lithos: Lithos) -> None:
    """behaviours 109, 110, 120"""
    one, two = await create(lithos, "one"), await create(lithos, "two")
    last = await create(lithos, "last", depends_on=[one, two])
    assert await ready(lithos) == [two, one]
    shown = (await call(lithos, "task_blocked"))["tasks"]
    assert [list(row) for row in shown] == [[*RECORD, "blockers"]]
    assert [list(row) for row in shown[0]["blockers"]] == [
        ["kind", "task_id", "type", "status", "message"]
    ] * 2
    for row, (task, title) in zip(shown[0]["blockers"], ((one, "one"), (two, "two")), strict=True):
        assert (row["kind"], row["task_id"], row["type"], row["status"]) == (
            "task", task, "blocks", "open",
        )  # fmt: skip
        assert title in row["message"]
    assert await complete(lithos, one) == []
    assert await ready(lithos) == [two]
    assert await complete(lithos, two) == [last]
    assert await ready(lithos) == [last]
    assert await call(lithos, "task_blocked") == {"tasks": [], "total": 0}


async def test_cancelled_predecessor_needs_intervention(lithos: Lithos) -> None:
    """behaviour 109"""
    before, waiting = await create(lithos), await gate(lithos)
    task = await create(lithos, depends_on=[before])
    await link(lithos, waiting, task, "waits_on_gate")
    for closed in (before, waiting):
        await call(lithos, "task_cancel", task_id=closed)
    assert await ready(lithos) == []
    rows = await blockers(lithos, task)
    assert [(row["kind"], row["task_id"], row["type"], row["status"]) for row in rows] == [
        ("blocker_unsatisfiable", before, "blocks", "cancelled"),
        ("blocker_unsatisfiable", waiting, "waits_on_gate", "cancelled"),
    ]
    assert all("intervention" in row["message"] for row in rows)


async def test_completion_lists_only_direct_open_dependents_that_are_plain_tasks(lithos: Lithos) -> None:
    """behaviours 113, 115, 120"""
    done = await create(lithos)
    direct = await create(lithos, depends_on=[done])
    await create(lithos, depends_on=[direct])
    await create(lithos, task_type="epic", depends_on=[done])
    cancelled = await create(lithos, depends_on=[done])
    await call(lithos, "task_cancel", task_id=cancelled)
    await create(lithos, parent_task_id=done)
    await call(lithos, "task_spawn", source_task_id=done, title="S")
    other = await create(lithos, depends_on=[done])
    assert await complete(lithos, done) == [direct, other]


async def test_gate_opens_by_completion(lithos: Lithos) -> None:
    """behaviours 115, 117, 120"""
    for kind in ("human", "ci", "pr", "external_task"):
        waiting, task = await gate(lithos, gate_type=kind), await create(lithos)
        assert await link(lithos, waiting, task, "waits_on_gate") == {"success": True}
        (row,) = await blockers(lithos, task)
        assert (row["kind"], row["type"], row["status"]) == ("gate", "waits_on_gate", "open")
        assert kind in row["message"]
        assert await ready(lithos) == []
        assert await complete(lithos, waiting) == [task]
        assert await ready(lithos) == [task]
        await complete(lithos, task)


async def test_timer_gate_opens_by_time(lithos: Lithos, clock: Clock) -> None:
    """behaviours 117, 120"""
    timer = await gate(lithos, gate_type="timer", ready_at="2026-01-01T01:00:00Z")
    early = await gate(lithos, gate_type="timer", ready_at="2026-01-01T05:00:00Z")
    one, two, by_block = [await create(lithos, name) for name in ("one", "two", "by_block")]
    for source, task in ((timer, one), (early, two)):
        await link(lithos, source, task, "waits_on_gate")
    await link(lithos, timer, by_block, "blocks")
    (row,) = await blockers(lithos, one)
    assert row["kind"] == "gate"
    assert "2026-01-01T01:00:00+00:00" in row["message"]
    clock.advance(minutes=59, seconds=59)
    assert await ready(lithos) == []
    clock.advance(seconds=1)
    assert await ready(lithos) == [one]
    (row,) = await blockers(lithos, by_block)  # a `blocks` edge of a timer waits for completion
    assert (row["kind"], row["type"]) == ("task", "blocks")
    assert await complete(lithos, early) == [two]
    await call(lithos, "task_cancel", task_id=timer)  # A timer cancelled after its time is not satisfied.
    (row,) = await blockers(lithos, one)
    assert row["kind"] == "blocker_unsatisfiable"


async def test_gate_with_damaged_metadata_blocks_its_tasks(lithos: Lithos) -> None:
    """behaviour 117"""
    store = lithos.server.get(Coordinator)._store
    for metadata in ("{}", "nonsense", '{"gate_type":"timer"}', '{"gate_type":"timer","ready_at":"x"}'):
        waiting, task = await gate(lithos), await create(lithos)
        await link(lithos, waiting, task, "waits_on_gate")
        with store.transaction():
            store._writer.execute("UPDATE tasks SET metadata=? WHERE id=?", (metadata, waiting))
        (row,) = await blockers(lithos, task)
        assert row["kind"] == "gate", metadata
        await call(lithos, "task_update", task_id=waiting, title="Still to be renamed")
        assert await complete(lithos, waiting) == [task]


async def test_epics_and_gates_are_neither_ready_nor_blocked(lithos: Lithos) -> None:
    """behaviour 115"""
    task = await create(lithos)
    waiting = await gate(lithos)
    await link(lithos, task, waiting)
    await create(lithos, task_type="epic", depends_on=[task])
    await create(lithos, task_type="epic")
    assert await ready(lithos) == [task]
    assert await call(lithos, "task_blocked") == {"tasks": [], "total": 0}


async def test_parent_and_discovery_edges_never_block(lithos: Lithos) -> None:
    """behaviour 113"""
    one, two, three = [await create(lithos, str(n)) for n in range(3)]
    await link(lithos, one, two, "parent_child")
    await link(lithos, one, three, "discovered_from")
    await link(lithos, three, one, "discovered_from")  # informational edges may form cycles
    assert await ready(lithos) == [three, two, one]


async def test_cycles_of_blocks_edges_and_gates_are_refused(lithos: Lithos) -> None:
    """behaviour 111"""
    one, two, three = [await create(lithos, str(n)) for n in range(3)]
    waiting = await gate(lithos)
    await link(lithos, one, two)
    answer = await link(lithos, two, one)
    assert f"{one} -> {two} -> {one}" in refusal(answer, "cycle")
    await link(lithos, two, three)
    assert refusal(await link(lithos, three, one), "cycle")
    await link(lithos, three, waiting)
    assert refusal(await link(lithos, waiting, one, "waits_on_gate"), "cycle")
    assert refusal(await link(lithos, waiting, one), "cycle")
    assert (await link(lithos, waiting, await create(lithos), "waits_on_gate"))["success"]
    assert (await link(lithos, three, one, "parent_child"))["success"]  # parent edges have their own rule
    assert len((await call(lithos, "task_edge_list", task_id=one))["edges"]) == 2


async def test_child_has_only_one_parent_and_cannot_be_its_ancestor(lithos: Lithos) -> None:
    """behaviour 112"""
    one, two, three = [await create(lithos, str(n)) for n in range(3)]
    assert (await link(lithos, one, two, "parent_child"))["success"]
    assert (await link(lithos, one, two, "parent_child", metadata={"k": 1}))["success"]
    assert one in refusal(await link(lithos, three, two, "parent_child"), "parent_exists")
    assert (await link(lithos, two, three, "parent_child"))["success"]
    assert refusal(await link(lithos, three, one, "parent_child"), "cycle")
    assert (await link(lithos, three, one))["success"]


async def test_edges_are_checked_in_the_specified_order(lithos: Lithos) -> None:
    """behaviours 114, 118, 127"""
    one, two = await create(lithos), await create(lithos)
    await link(lithos, one, two)
    await link(lithos, one, two, "parent_child")
    waiting = await gate(lithos)
    await link(lithos, two, waiting)
    events = lithos.events()
    assert "blocks" in refusal(await link(lithos, one, one, "follows"), "invalid_edge_type")
    assert refusal(await link(lithos, MISSING_ID, MISSING_ID), "self_edge")
    assert refusal(await link(lithos, MISSING_ID, one, "waits_on_gate"), "task_not_found")
    assert refusal(await link(lithos, one, MISSING_ID), "task_not_found")
    assert refusal(await link(lithos, two, one, "waits_on_gate"), "not_a_gate")
    assert refusal(await link(lithos, waiting, two, "parent_child"), "parent_exists")
    assert refusal(await link(lithos, waiting, one, "waits_on_gate"), "cycle")
    for name in ("from_task_id", "to_task_id", "type", "agent"):
        assert name in refusal(await link(lithos, one, two, **{name: " "}), "invalid_input")
    assert lithos.events() == events
    listed = (await call(lithos, "task_edge_list", task_id=two))["edges"]
    assert len(listed) == 3


async def test_edges_are_listed_from_the_perspective_of_the_task(lithos: Lithos, clock: Clock) -> None:
    """behaviours 114, 127"""
    one, two, three = [await create(lithos, str(n)) for n in range(3)]
    events = lithos.events()
    await link(lithos, one, two, metadata={"why": [1]}, agent="bob")
    made = clock.text
    await link(lithos, two, three)
    await link(lithos, three, two, "discovered_from")
    clock.advance(hours=1)
    await link(lithos, one, two, metadata={"new": 1}, agent="cy")  # this call replaces only the metadata
    assert lithos.events() == events
    expected = {
        "from_task_id": one, "to_task_id": two, "type": "blocks", "direction": "outgoing",
        "metadata": {"new": 1}, "created_by": "bob", "created_at": made,
    }  # fmt: skip
    (edge,) = (await call(lithos, "task_edge_list", task_id=one))["edges"]
    assert list(edge.items()) == list(expected.items())

    async def seen(**filters: Any) -> list[tuple[str, str]]:
        answer = await call(lithos, "task_edge_list", task_id=two, **filters)
        assert list(answer) == ["edges", "total"]
        return [(row["direction"], row["type"]) for row in answer["edges"]]

    assert await seen() == [
        ("outgoing", "blocks"), ("incoming", "blocks"), ("incoming", "discovered_from"),
    ]  # fmt: skip
    assert await seen(direction="incoming") == [("incoming", "blocks"), ("incoming", "discovered_from")]
    assert await seen(direction="outgoing", types=["discovered_from"]) == []
    assert await seen(types=["discovered_from"]) == [("incoming", "discovered_from")]
    assert await seen(types=[]) == await seen()
    await link(lithos, one, two)
    (edge,) = (await call(lithos, "task_edge_list", task_id=one))["edges"]
    assert edge["metadata"] == {}
    answer = await lithos.call("lithos_task_edge_list", task_id=one, direction="up")
    assert refusal(answer, "invalid_input")
    assert await call(lithos, "task_edge_list", task_id=MISSING_ID) == {"edges": [], "total": 0}


async def test_removed_edge_no_longer_blocks_its_task(lithos: Lithos) -> None:
    """behaviour 334: the event and the removal are one commit."""
    one, epic = await create(lithos, "One"), await create(lithos, "Epic", task_type="epic")
    waits = await gate(lithos, "Gate")
    last = await create(lithos, "Last", depends_on=[one], parent_task_id=epic)
    await link(lithos, waits, last, "waits_on_gate")

    async def unlink(source: str, target: str, kind: str) -> Any:
        edge = {"from_task_id": source, "to_task_id": target, "type": kind}
        return await lithos.call("lithos_task_edge_delete", **edge, agent="ann")

    def told() -> list[str]:
        return [event["task_id"] for kind, event in lithos.events() if kind == "task.ready"]

    assert "blocks" in refusal(await unlink(one, last, "x"), "invalid_edge_type")
    for wrong in ((last, one, "blocks"), (one, last, "parent_child"), (MISSING_ID, last, "blocks")):
        assert "lithos_task_edge_list" in refusal(await unlink(*wrong), "edge_not_found")
    answer = await unlink(one, last, "blocks")
    assert list(answer.items()) == [
        ("success", True), ("from_task_id", one), ("from_title", "One"), ("to_task_id", last),
        ("to_title", "Last"), ("type", "blocks"),
    ]  # fmt: skip
    refusal(await unlink(one, last, "blocks"), "edge_not_found")
    assert (await ready(lithos), told()) == ([one], [one])
    await unlink(waits, last, "waits_on_gate")
    assert (await ready(lithos), told()) == ([last, one], [one, last])
    assert ids(await call(lithos, "task_children", task_id=epic)) == [last]
    await unlink(epic, last, "parent_child")
    assert ids(await call(lithos, "task_children", task_id=epic)) == []
    assert (await call(lithos, "task_edge_list", task_id=last))["edges"] == []


async def test_ready_and_blocked_lists_are_filtered_before_the_limit(lithos: Lithos) -> None:
    """behaviour 123"""
    tagged = await create(lithos, tags=["x", "y"], metadata={"project": "p", "n": 1})
    before = await create(lithos)
    held = await create(lithos, tags=["x"], metadata={"project": "p"}, depends_on=[before])
    plain = [await create(lithos, str(n)) for n in range(3)]
    assert await ready(lithos, limit=2) == plain[:0:-1]
    assert await ready(lithos, limit=1, tags=["x"]) == [tagged]
    assert await ready(lithos, tags=["x", "z"]) == []
    assert await ready(lithos, project="p") == [tagged]
    assert await ready(lithos, project="q") == []
    assert await ready(lithos, project="p", metadata_match={"n": 1}, tags=["y"]) == [tagged]
    assert await ready(lithos, metadata_match={"n": True}) == []
    await call(lithos, "task_claim", task_id=tagged, aspect="code")
    assert await ready(lithos, tags=["x"]) == [tagged]  # a claim never removes a task from the list
    (row,) = (await call(lithos, "task_ready", tags=["x"], with_claims=False))["tasks"]
    assert list(row) == RECORD
    assert ids(await call(lithos, "task_blocked", project="p", tags=["x"], limit=1)) == [held]
    assert ids(await call(lithos, "task_blocked", project="q")) == []
    for tool in ("lithos_task_ready", "lithos_task_blocked"):
        for limit in (0, -1):
            assert "limit" in refusal(await lithos.call(tool, limit=limit), "invalid_input")


async def test_descendants_below_closed_tasks_are_listed(lithos: Lithos) -> None:
    """behaviour 124"""
    epic = await create(lithos, task_type="epic")
    first, second = [await create(lithos, str(n), parent_task_id=epic) for n in range(2)]
    deep = await create(lithos, "deep", parent_task_id=first)
    last = await create(lithos, "last", parent_task_id=second)
    third = await create(lithos, "third", parent_task_id=epic)
    deepest = await create(lithos, "deepest", parent_task_id=deep)
    await complete(lithos, first)
    await call(lithos, "task_cancel", task_id=last)

    async def children(task: str = epic, **flags: bool) -> list[str]:
        return ids(await call(lithos, "task_children", task_id=task, **flags))

    assert await children() == [second, third]
    assert await children(include_closed=True) == [first, second, third]
    assert await children(recursive=True) == [second, third, deep, deepest]
    everything = [first, second, third, deep, last, deepest]
    assert await children(recursive=True, include_closed=True) == everything
    assert await children(first) == [deep]
    assert await children(deepest, recursive=True) == []
    assert await children(MISSING_ID) == []
    answer = await call(lithos, "task_children", task_id=epic)
    assert [list(row) for row in answer["tasks"]] == [RECORD] * 2


async def test_spawned_task_inherits_missing_values(lithos: Lithos) -> None:
    """behaviour 125"""
    context = {"priority": 1, "parallelizable": False, "phase": [2]}
    source = await create(
        lithos, "Source", tags=["a", "b"], metadata={"project": "p", "other": 1} | context, task_type="epic"
    )
    events = lithos.events()

    async def spawn(**fields: Any) -> dict[str, Any]:
        answer = await call(lithos, "task_spawn", source_task_id=source, title="New", agent="bob", **fields)
        assert next(iter(answer)) == "task_id"
        return await record(lithos, answer["task_id"])

    shown = await spawn(description="d")
    assert (shown["title"], shown["description"], shown["task_type"]) == ("New", "d", "task")
    assert (shown["tags"], shown["created_by"], shown["status"]) == (["a", "b"], "bob", "open")
    assert shown["metadata"] == {"project": "p"} | context
    assert lithos.events()[len(events) :] == [
        (kind, {"task_id": shown["id"], "title": "New"}) for kind in ("task.created", "task.ready")
    ]
    (edge,) = (await call(lithos, "task_edge_list", task_id=shown["id"]))["edges"]
    assert (edge["from_task_id"], edge["type"], edge["direction"]) == (
        source, "discovered_from", "incoming",
    )  # fmt: skip
    shown = await spawn(metadata={"project": "q", "phase": None, "x": 1}, inherit_tags=False)
    assert (shown["tags"], shown["metadata"]) == (
        [], {"project": "q", "priority": 1, "parallelizable": False, "x": 1},
    )  # fmt: skip
    assert (await spawn(inherit_project=False))["metadata"] == context
    assert (await spawn(inherit_context=False))["metadata"] == {"project": "p"}
    waiting = await spawn(relation_type="blocks")
    (row,) = await blockers(lithos, waiting["id"])
    assert row["task_id"] == source
    assert await complete(lithos, source) == [waiting["id"]]
    assert (await spawn())["tags"] == ["a", "b"]  # a closed source task also works


async def test_refused_spawn_creates_nothing(lithos: Lithos) -> None:
    """behaviours 119, 125, 127"""
    source = await create(lithos)
    events = lithos.events()
    given = {"source_task_id": source, "title": "New", "agent": "ann"}
    for change, code in (
        ({"relation_type": "parent_child"}, "invalid_relation_type"),
        ({"relation_type": "x", "source_task_id": MISSING_ID}, "invalid_relation_type"),
        ({"source_task_id": MISSING_ID}, "task_not_found"),
        ({"metadata": {"depends_on": None}}, "invalid_metadata_key"),
        ({"metadata": {"blocked_on": ["x"]}}, "invalid_metadata_key"),
        ({"title": " "}, "invalid_input"),
    ):
        assert refusal(await lithos.call("lithos_task_spawn", **given | change), code)
    assert ids(await call(lithos, "task_list")) == [source]
    assert lithos.events() == events


async def test_reopened_task_blocks_its_dependents_again(lithos: Lithos, clock: Clock) -> None:
    """behaviours 121, 122"""
    task, other = await create(lithos, metadata={"k": 1}, tags=["x"]), await create(lithos)
    sole = await create(lithos, depends_on=[task])
    epic = await create(lithos, depends_on=[task], task_type="epic")
    await create(lithos, depends_on=[task, other])
    closed = await create(lithos, depends_on=[task])
    await call(lithos, "task_cancel", task_id=closed)
    created = await record(lithos, task)
    await complete(lithos, task, outcome="well: done")
    clock.advance(hours=1)
    told = len(lithos.events())
    answer = await call(lithos, "task_reopen", task_id=task, agent="bob")
    assert list(answer.items()) == [("success", True), ("reblocked", [sole, epic])]
    assert await record(lithos, task) == created
    assert sole not in await ready(lithos)
    (finding,) = (await call(lithos, "finding_list", task_id=task))["findings"]
    assert finding["summary"] == "[Reopened] task reopened (was completed); prior outcome: well: done"
    assert (finding["agent"], finding["knowledge_id"], finding["created_at"]) == ("bob", None, clock.text)
    assert len(lithos.events()) == told + 1
    answer = await lithos.call("lithos_task_reopen", task_id=task, agent="bob")
    assert refusal(answer, "task_not_resolved")
    answer = await lithos.call("lithos_task_reopen", task_id=MISSING_ID, agent="bob")
    assert refusal(answer, "task_not_found")
    assert len((await call(lithos, "finding_list", task_id=task))["findings"]) == 1
    assert len(lithos.events()) == told + 1


async def test_reopened_cancelled_task_blocks_no_further_tasks(lithos: Lithos) -> None:
    """behaviours 121, 122"""
    task = await create(lithos)
    waiting = await create(lithos, depends_on=[task])
    await call(lithos, "task_cancel", task_id=task, reason="r")
    assert (await call(lithos, "task_reopen", task_id=task))["reblocked"] == []
    (finding,) = (await call(lithos, "finding_list", task_id=task))["findings"]
    assert finding["summary"] == "[Reopened] task reopened (was cancelled)"
    (row,) = await blockers(lithos, waiting)
    assert (row["kind"], row["status"]) == ("task", "open")
    assert await complete(lithos, task) == [waiting]


async def test_reopened_gate_blocks_again_unless_its_time_has_come(lithos: Lithos) -> None:
    """behaviours 117, 121"""
    human = await gate(lithos)
    past = await gate(lithos, gate_type="timer", ready_at="2025-01-01")
    one, two = await create(lithos), await create(lithos)
    await link(lithos, human, one, "waits_on_gate")
    await link(lithos, past, two, "waits_on_gate")
    for waiting, task, reblocked in ((human, one, [one]), (past, two, [])):
        assert await complete(lithos, waiting) == [task]
        assert (await call(lithos, "task_reopen", task_id=waiting))["reblocked"] == reblocked
    assert await ready(lithos) == [two]
