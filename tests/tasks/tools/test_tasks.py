"""Creation, change, closing and listing of tasks, and findings. Every answer key is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from tests.memory.tools.task_calls import RECORD, call, create, gate, ids, record
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving


async def test_new_task_has_the_given_values(tmp_path: Path) -> None:
    """behaviours 51, 107"""
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        plain = await create(lithos)
        expected = {
            "id": plain, "title": "T", "description": None, "status": "open", "task_type": "task",
            "created_by": "ann", "created_at": clock.text, "resolved_at": None, "tags": [], "metadata": {},
            "outcome": None,
        }  # fmt: skip
        assert await record(lithos, plain) == expected
        full = await create(
            lithos,
            "Größe 测试",
            description="long\ntext",
            tags=["a:b", "c d"],
            metadata={"project": "p", "n": [1, {"x": None}], "a.b'; DROP TABLE tasks; --": True},
            task_type="epic",
            depends_on=[plain, plain],
            parent_task_id=plain,
            agent="bob",
        )
        shown = await record(lithos, full)
        assert (shown["title"], shown["description"]) == ("Größe 测试", "long\ntext")
        assert (shown["tags"], shown["task_type"], shown["created_by"]) == (["a:b", "c d"], "epic", "bob")
        assert shown["metadata"] == {
            "project": "p",
            "n": [1, {"x": None}],
            "a.b'; DROP TABLE tasks; --": True,
        }
        edges = (await call(lithos, "task_edge_list", task_id=full))["edges"]
        assert [(e["from_task_id"], e["type"], e["created_by"]) for e in edges] == [
            (plain, "blocks", "bob"), (plain, "parent_child", "bob"),
        ]  # fmt: skip
        events = lithos.events()
    async with serving(tmp_path, clock=clock) as lithos:
        assert await record(lithos, full) == shown
        assert lithos.events() == []
    assert [event for event, _ in events] == ["task.created", "task.ready", "task.created"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"title": " "}, "invalid_input"),
    ({"agent": "\n"}, "invalid_input"),
    ({"task_type": "story"}, "invalid_task_type"),
    ({"metadata": {"depends_on": ["x"]}}, "invalid_metadata_key"),
    ({"metadata": {"depends_on": None}}, "invalid_metadata_key"),
    ({"metadata": {"blocked_on": None}}, "invalid_metadata_key"),
    ({"depends_on": [MISSING_ID]}, "task_not_found"),
    ({"depends_on": [""]}, "task_not_found"),
    ({"parent_task_id": MISSING_ID}, "task_not_found"),
    ({"task_type": "gate"}, "invalid_input"),
    ({"task_type": "gate", "metadata": {"gate_type": "moon"}}, "invalid_input"),
    ({"task_type": "gate", "metadata": {"gate_type": ["human"]}}, "invalid_input"),
    ({"task_type": "gate", "metadata": {"gate_type": "timer"}}, "invalid_input"),
    ({"task_type": "gate", "metadata": {"gate_type": "timer", "ready_at": "soon"}}, "invalid_input"),
    ({"task_type": "gate", "metadata": {"gate_type": "timer", "ready_at": 5}}, "invalid_input"),
]


async def test_refused_creation_stores_no_task_and_no_event(lithos: Lithos) -> None:
    """behaviours 116, 119, 127, 173"""
    kept = await create(lithos, "kept")
    before = lithos.events()
    for arguments, code in REFUSED:
        given = {"title": "T", "agent": "ann"} | arguments
        if "depends_on" in arguments:
            given["depends_on"] = [kept, *arguments["depends_on"]]
        answer = await lithos.call("lithos_task_create", **given)
        assert refusal(answer, code), arguments
        assert list(answer) == ["status", "code", "message"]
    assert ids(await call(lithos, "task_list")) == [kept]
    assert (await call(lithos, "task_edge_list", task_id=kept))["edges"] == []
    assert lithos.events() == before


async def test_gates_of_every_kind_can_be_created(lithos: Lithos) -> None:
    """behaviour 116"""
    for kind in ("human", "ci", "pr", "external_task"):
        made = await gate(lithos, gate_type=kind, note="x")
        assert (await record(lithos, made))["metadata"] == {"gate_type": kind, "note": "x"}


async def test_timer_time_is_stored_in_utc_with_whole_seconds(lithos: Lithos, clock: Clock) -> None:
    """behaviour 116"""
    made = await gate(lithos, gate_type="timer", ready_at="2030-01-01T10:00:00.987654+02:00")
    assert (await record(lithos, made))["metadata"]["ready_at"] == "2030-01-01T08:00:00+00:00"
    await call(lithos, "task_update", task_id=made, metadata={"ready_at": "2031-01-01 00:00"})
    assert (await record(lithos, made))["metadata"]["ready_at"] == "2031-01-01T00:00:00+00:00"


async def test_update_changes_only_the_given_fields(lithos: Lithos, clock: Clock) -> None:
    """behaviours 29, 105"""
    task = await create(lithos, description="d", tags=["a"], metadata={"k": 1, "l": {"m": 1}})
    old = await record(lithos, task)

    async def update(**fields: Any) -> dict[str, Any]:
        answer = await call(lithos, "task_update", task_id=task, agent="bob", **fields)
        expected = [("success", True), ("message", f"Task {task} updated")]
        assert list(answer.items()) == expected
        return await record(lithos, task)

    assert await update(title="New") == old | {"title": "New"}
    assert (await update(description=""))["description"] == ""
    assert (await update(tags=["b", "c"]))["tags"] == ["b", "c"]
    assert (await update(tags=[]))["tags"] == []
    assert (await update(metadata={"l": {"n": 2}, "k": None, "new": [1]}))["metadata"] == {
        "l": {"n": 2}, "new": [1],
    }  # fmt: skip
    events = lithos.events()
    assert events[2:] == [("task.updated", {"task_id": task})] * 5
    assert (await update(metadata={}))["metadata"] == {"l": {"n": 2}, "new": [1]}
    assert lithos.events() == events
    assert (await update(metadata={}, title="Both"))["title"] == "Both"
    assert len(lithos.events()) == len(events) + 1


async def test_refused_update_changes_and_announces_nothing(lithos: Lithos) -> None:
    """behaviours 104, 119, 127"""
    task = await create(lithos)
    old, events = await record(lithos, task), lithos.events()
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "invalid_input"),
        ({"task_id": MISSING_ID}, "invalid_input"),
        ({"title": " "}, "invalid_input"),
        ({"task_id": MISSING_ID, "title": "New"}, "task_not_found"),
        ({"task_id": MISSING_ID, "metadata": {}}, "task_not_found"),
        ({"metadata": {"depends_on": None}}, "invalid_metadata_key"),
        ({"metadata": {"blocked_on": []}, "title": "New"}, "invalid_metadata_key"),
        ({"agent": " ", "title": "New"}, "invalid_input"),
    ]
    for arguments, code in refused:
        answer = await lithos.call("lithos_task_update", **{"task_id": task, "agent": "ann"} | arguments)
        assert refusal(answer, code), arguments
    assert await record(lithos, task) == old
    assert lithos.events() == events


async def test_parallel_updates_of_different_keys_are_all_kept(lithos: Lithos, clock: Clock) -> None:
    """behaviour 105"""
    task = await create(lithos)
    async with trio.open_nursery() as nursery:
        for number in range(40):
            patch = {f"k{number}": number}
            nursery.start_soon(lambda patch=patch: call(lithos, "task_update", task_id=task, metadata=patch))
    assert (await record(lithos, task))["metadata"] == {f"k{n}": n for n in range(40)}
    assert len(lithos.events()) == 42


async def test_update_that_would_make_a_gate_invalid_is_refused(lithos: Lithos, clock: Clock) -> None:
    """behaviour 116"""
    human = await gate(lithos)
    timer = await gate(lithos, gate_type="timer", ready_at="2030-01-01")
    for task, patch in (
        (human, {"gate_type": None}),
        (human, {"gate_type": "timer"}),
        (human, {"gate_type": 1}),
        (timer, {"ready_at": None}),
        (timer, {"ready_at": "later"}),
    ):
        old = await record(lithos, task)
        answer = await lithos.call("lithos_task_update", task_id=task, agent="ann", metadata=patch)
        assert refusal(answer, "invalid_input")
        assert await record(lithos, task) == old
    await call(lithos, "task_update", task_id=timer, metadata={"gate_type": "ci", "ready_at": None})
    await call(lithos, "task_update", task_id=human, title="Renamed")
    assert (await record(lithos, timer))["metadata"] == {"gate_type": "ci"}


async def test_closed_task_accepts_only_metadata_updates(lithos: Lithos, clock: Clock) -> None:
    """behaviour 167"""
    for close in ("task_complete", "task_cancel"):
        task = await create(lithos, metadata={"k": 1})
        await call(lithos, close, task_id=task)
        await call(lithos, "task_update", task_id=task, metadata={"k": 2})
        await call(lithos, "task_update", task_id=task, metadata={})
        closed, events = await record(lithos, task), lithos.events()
        assert closed["metadata"] == {"k": 2}
        for fields in ({"title": "New"}, {"description": "d"}, {"tags": []}):
            answer = await lithos.call(
                "lithos_task_update", task_id=task, agent="ann", metadata={"k": 3}, **fields
            )
            assert "lithos_task_reopen" in refusal(answer, "task_not_found")
        assert await record(lithos, task) == closed
        assert lithos.events() == events


async def test_task_can_be_completed_or_cancelled_only_once(lithos: Lithos, clock: Clock) -> None:
    """behaviours 98, 99"""
    done, dropped = await create(lithos), await create(lithos)
    clock.advance(minutes=5)
    answer = await call(lithos, "task_complete", task_id=done, outcome="it works")
    assert list(answer.items()) == [("success", True), ("unblocked", [])]
    answer = await call(lithos, "task_cancel", task_id=dropped, reason="no longer needed")
    assert list(answer.items()) == [("success", True)]
    shown = await record(lithos, done)
    assert (shown["status"], shown["resolved_at"], shown["outcome"]) == (
        "completed", clock.text, "it works",
    )  # fmt: skip
    shown = await record(lithos, dropped)
    assert (shown["status"], shown["resolved_at"], shown["outcome"]) == ("cancelled", clock.text, None)
    events = lithos.events()
    clock.advance(minutes=5)
    for task in (done, dropped, MISSING_ID):
        for close in ("lithos_task_complete", "lithos_task_cancel"):
            assert refusal(await lithos.call(close, task_id=task, agent="ann"), "task_not_found")
    assert lithos.events() == events
    assert await record(lithos, dropped) == shown


async def test_unknown_receipt_leaves_the_task_open(lithos: Lithos, clock: Clock) -> None:
    """behaviour 151"""
    task = await create(lithos)
    events = lithos.events()
    for feedback in ({"cited_nodes": []}, {"misleading_nodes": [MISSING_ID]}):
        answer = await lithos.call(
            "lithos_task_complete", task_id=task, agent="bob", receipt_id="r", **feedback
        )
        assert refusal(answer, "receipt_not_found")
    assert (await record(lithos, task))["status"] == "open"
    assert lithos.events() == events
    assert (await lithos.call("lithos_agent_info", id="bob"))["id"] == "bob"
    await call(lithos, "task_complete", task_id=task, receipt_id="r")  # it has no effect without feedback
    assert (await record(lithos, task))["status"] == "completed"


async def test_task_list_filters_are_combined(lithos: Lithos, clock: Clock) -> None:
    """behaviours 54, 100"""
    names = {}
    for name, agent, tags, kind in (
        ("a", "ann", ["x", "y"], "task"),
        ("b", "bob", ["x"], "epic"),
        ("c", "ann", ["x:1", "y z"], "task"),
    ):
        names[await create(lithos, name, agent=agent, tags=tags, task_type=kind)] = name
        clock.advance(hours=1)

    async def found(**filters: Any) -> str:
        return "".join(names[task] for task in ids(await call(lithos, "task_list", **filters)))

    assert await found() == "cba"
    assert await found(created_by="ann") == "ca"
    assert await found(created_by="an") == ""
    assert await found(tags=["x", "y"]) == "a"
    assert await found(tags=["y z", "x:1"]) == "c"
    assert await found(tags=[]) == "cba"
    assert await found(task_type="epic") == "b"
    assert await found(since="2026-01-01T01:00:00") == "cb"
    assert await found(since="2026-01-01T03:00:00.000001+02:00") == "c"
    assert (
        await found(created_by="ann", tags=["x"], since="2025-01-01", status="open", task_type="task") == "a"
    )
    (first,) = [task for task, name in names.items() if name == "a"]
    await call(lithos, "task_complete", task_id=first)
    assert await found(status="open") == "cb"
    assert await found(status="completed") == "a"
    assert await found(status="cancelled") == ""
    for bad in ({"since": "soon"}, {"resolved_since": "now"}, {"status": "done"}, {"task_type": "story"}):
        assert refusal(await lithos.call("lithos_task_list", **bad), "invalid_input")


async def test_resolved_since_filter_returns_tasks_closed_since_that_time(
    lithos: Lithos, clock: Clock
) -> None:
    """behaviour 102"""
    done, dropped, _, again = [await create(lithos, str(n)) for n in range(4)]
    await call(lithos, "task_complete", task_id=again)
    await call(lithos, "task_complete", task_id=done)
    clock.advance(hours=1)
    await call(lithos, "task_cancel", task_id=dropped)
    await call(lithos, "task_reopen", task_id=again)
    answer = await call(lithos, "task_list", resolved_since="2026-01-01T00:00:00Z")
    assert ids(answer) == [dropped, done]
    assert ids(await call(lithos, "task_list", resolved_since="2026-01-01T00:00:01Z")) == [dropped]
    assert ids(await call(lithos, "task_list", resolved_since="2026-01-01T01:00:00.000001")) == []


async def test_claims_are_listed_only_on_request(lithos: Lithos, clock: Clock) -> None:
    """behaviours 96, 101, 103, 107"""
    claimed, free = await create(lithos), await create(lithos)
    first = await call(lithos, "task_claim", task_id=claimed, aspect="code", ttl_minutes=1)
    second = await call(lithos, "task_claim", task_id=claimed, aspect="docs", agent="bob")
    for answer in (await call(lithos, "task_list"), await call(lithos, "task_list", with_claims=False)):
        assert [list(task) for task in answer["tasks"]] == [RECORD] * 2
    expected = [
        {"agent": "ann", "aspect": "code", "expires_at": first["expires_at"], "fence": first["fence"]},
        {"agent": "bob", "aspect": "docs", "expires_at": second["expires_at"], "fence": second["fence"]},
    ]
    for answer in (
        await call(lithos, "task_list", with_claims=True),
        await call(lithos, "task_status"),
        await call(lithos, "task_ready"),
    ):
        assert [list(task) for task in answer["tasks"]] == [[*RECORD, "claims"]] * 2
        assert list(answer["tasks"][1]["claims"][0]) == ["agent", "aspect", "expires_at", "fence"]
        assert [task["claims"] for task in answer["tasks"]] == [[], expected]
    clock.advance(minutes=1)
    (status,) = (await call(lithos, "task_status", task_id=claimed))["tasks"]
    assert status == await record(lithos, claimed) | {"claims": expected[1:]}
    (status,) = (await call(lithos, "task_status", task_id=free))["tasks"]
    assert status["claims"] == []
    assert await call(lithos, "task_status", task_id=MISSING_ID) == {"tasks": [], "total": 0}


async def test_status_without_a_task_id_lists_exactly_the_open_tasks(lithos: Lithos, clock: Clock) -> None:
    """behaviour 168"""
    one, two, three = [await create(lithos, str(n)) for n in range(3)]
    four = await gate(lithos)
    await call(lithos, "task_complete", task_id=one)
    await call(lithos, "task_cancel", task_id=three)
    assert ids(await call(lithos, "task_status")) == [four, two]
    assert ids(await call(lithos, "task_status", task_id=one)) == [one]


async def test_unknown_task_error_has_the_specified_text(lithos: Lithos, clock: Clock) -> None:
    """behaviour 107"""
    answer = await lithos.call("lithos_task_get", task_id="nope")
    expected = {"status": "error", "code": "task_not_found", "message": "Task 'nope' not found."}
    assert list(answer.items()) == list(expected.items())


async def test_metadata_match_distinguishes_types_and_treats_keys_as_data(
    lithos: Lithos, clock: Clock
) -> None:
    """behaviours 71, 108"""
    evil = "k') OR 1=1 --"
    tasks = {
        await create(lithos, metadata=metadata): name
        for name, metadata in (
            ("true", {"k": True}), ("one", {"k": 1}), ("text", {"k": "1"}), ("list", {"k": [1, "a"]}),
            ("object", {"k": {"1": 1}}), ("evil", {evil: "x", "k": 2}), ("none", {}),
        )
    }  # fmt: skip

    async def found(**match: Any) -> set[str]:
        return {tasks[task] for task in ids(await call(lithos, "task_list", metadata_match=match))}

    assert await found(k=True) == {"true"}
    assert await found(k=1) == {"one", "list"}
    assert await found(k=1.0) == {"one", "list"}
    assert await found(k="1") == {"text"}
    assert await found(k="a") == {"list"}
    assert await found(k=False) == set()
    assert await found(**{evil: "x"}) == {"evil"}
    assert await found(**{evil: "x", "k": 2}) == {"evil"}
    assert await found(**{evil: "x", "k": 3}) == set()
    assert await found(**{"k') OR ('1'='1": "x"}) == set()
    assert await found() == set(tasks.values())
    for tool in ("task_list", "task_ready", "task_blocked"):
        for bad in ({"k": None}, {"k": []}, {"k": {}}, {"": 1}, {" ": 1}):
            answer = await lithos.call(f"lithos_{tool}", metadata_match=bad)
            assert refusal(answer, "invalid_input")


async def test_findings_are_posted_and_listed_oldest_first(tmp_path: Path) -> None:
    """behaviours 51, 106, 169"""
    clock = Clock("2026-01-01T00:00:00+00:00")
    async with serving(tmp_path, clock=clock) as lithos:
        task, other = await create(lithos), await create(lithos)
        posted = []
        for number in range(3):
            answer = await call(
                lithos, "finding_post", task_id=task, agent=f"a{number}", summary=f"s{number}",
                **({"knowledge_id": "n"} if number else {}),
            )  # fmt: skip
            assert next(iter(answer)) == "finding_id"
            posted.append(answer["finding_id"])
            clock.advance(minutes=1)
        await call(lithos, "task_complete", task_id=task)
        posted.append((await call(lithos, "finding_post", task_id=task, summary="late"))["finding_id"])
        findings = (await call(lithos, "finding_list", task_id=task))["findings"]
        assert [finding["id"] for finding in findings] == posted
        first = {
            "id": posted[0], "agent": "a0", "summary": "s0", "knowledge_id": None,
            "created_at": "2026-01-01T00:00:00.000000+00:00",
        }  # fmt: skip
        assert list(findings[0].items()) == list(first.items())
        assert [finding["knowledge_id"] for finding in findings] == [None, "n", "n", None]

        async def since(text: str) -> list[str]:
            answer = await call(lithos, "finding_list", task_id=task, since=text)
            return [finding["id"] for finding in answer["findings"]]

        assert await since("2026-01-01T00:00:00Z") == posted[1:]
        assert await since("2026-01-01T01:59:59.999999+02:00") == posted
        assert await since("2026-01-01T00:03:00") == []
        assert refusal(await lithos.call("lithos_finding_list", task_id=task, since="x"), "invalid_input")
        assert await call(lithos, "finding_list", task_id=other) == {"findings": [], "total": 0}
        assert await call(lithos, "finding_list", task_id=MISSING_ID) == {"findings": [], "total": 0}
        events = lithos.events()
        answer = await lithos.call("lithos_finding_post", task_id=MISSING_ID, agent="ann", summary="x")
        assert refusal(answer, "task_not_found")
        answer = await lithos.call("lithos_finding_post", task_id=task, agent="ann", summary=" ")
        assert refusal(answer, "invalid_input")
        assert lithos.events() == events
    async with serving(tmp_path, clock=clock) as lithos:
        assert (await call(lithos, "finding_list", task_id=task))["findings"] == findings
