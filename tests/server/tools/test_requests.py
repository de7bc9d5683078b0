"""`request_id`: a retry counts as the same call (behaviour 396)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model import requests as rules
from lithos.events.reading.requests import Requests
from lithos.events.rows import requests as rows
from lithos.server.tools.arguments import ArgumentFault
from tests.memory.tools.task_calls import create
from tests.servers import Clock, Lithos, refusal, serving

CREATIONS: dict[str, dict[str, Any]] = {
    "lithos_task_create": {"title": "Deploy", "agent": "ann", "tags": ["x"]},
    "lithos_task_spawn": {"title": "Deploy", "agent": "ann"},
    "lithos_finding_post": {"summary": "Same words.", "agent": "ann"},
    "lithos_write": {"title": "A plan", "content": "Text.", "agent": "ann"},
    "lithos_edge_upsert": {"type": "supports", "weight": 1, "namespace": "n", "from_id": "a", "to_id": "b"},
}


async def lose(*_: object) -> None:
    """Delete the recorded answer, as if the process was killed before it stored the answer."""


async def arguments_of(lithos: Lithos, tool: str) -> dict[str, Any]:
    given = dict(CREATIONS[tool])
    if tool in ("lithos_task_spawn", "lithos_finding_post"):
        task = await create(lithos, "Source")
        given["source_task_id" if tool == "lithos_task_spawn" else "task_id"] = task
    return given


async def made_by(lithos: Lithos) -> tuple[int, int, int, int]:
    """Return the number of tasks, findings, notes and edges."""
    tasks = (await lithos.call("lithos_task_list"))["tasks"]
    findings = [len((await lithos.call("lithos_finding_list", task_id=t["id"]))["findings"]) for t in tasks]
    edges = (await lithos.call("lithos_edge_list"))["edges"]
    return len(tasks), sum(findings), len(lithos.files()), len(edges)


@pytest.mark.parametrize("tool", CREATIONS)
async def test_retry_gets_the_same_answer_and_creates_nothing(lithos: Lithos, tool: str) -> None:
    """behaviour 396"""
    given = await arguments_of(lithos, tool)
    first = await lithos.call(tool, **given, request_id="r-1")
    before = await made_by(lithos)
    events = lithos.server.get(Coordinator).head
    for _ in range(2):
        assert await lithos.call(tool, **given, request_id=" r-1 ") == first
    assert await made_by(lithos) == before
    assert lithos.server.get(Coordinator).head == events
    assert first.get("status") != "error"


async def test_repeated_creation_without_request_id_shows_similar_objects(lithos: Lithos) -> None:
    """behaviour 396: after a lost answer, the agent can see that its call took effect."""
    given = CREATIONS["lithos_task_create"]
    first = await lithos.call("lithos_task_create", **given)
    assert first.keys() == {"task_id"}
    for tool, more in (
        ("lithos_task_create", {}),
        ("lithos_task_spawn", {"source_task_id": first["task_id"]}),
    ):
        again = await lithos.call(tool, title="Deploy", agent="ben", **more)
        assert again["similar"][-1]["id"] == first["task_id"]
        assert again["similar"][-1]["created_by"] == "ann"
        await lithos.call("lithos_task_cancel", task_id=again["task_id"], agent="ben")
    posted = {"task_id": first["task_id"], "summary": "Same words.", "agent": "ann"}
    one, two = [await lithos.call("lithos_finding_post", **posted) for _ in range(2)]
    assert [row["id"] for row in two["similar"]] == [one["finding_id"]]
    for other in ({"agent": "ben"}, {"summary": "Other words."}):
        assert (await lithos.call("lithos_finding_post", **posted | other)).keys() == {"finding_id"}


@pytest.mark.parametrize("tool", CREATIONS)
async def test_simultaneous_retries_create_only_one_object(lithos: Lithos, tool: str) -> None:
    """behaviour 396"""
    given = await arguments_of(lithos, tool)
    before = await made_by(lithos)
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await lithos.call(tool, **given, request_id="r"))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(call)
    assert answers == [answers[0]] * 8
    assert sum(await made_by(lithos)) == sum(before) + 1


@pytest.mark.parametrize("is_answer_lost", [False, True])
@pytest.mark.parametrize("tool", CREATIONS)
async def test_retry_after_a_restart_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, is_answer_lost: bool
) -> None:
    """behaviour 396:

    `is_answer_lost` means that the server was killed between the change and the stored answer.
    """
    async with serving(tmp_path) as lithos:
        given = await arguments_of(lithos, tool)
        with monkeypatch.context() as patching:
            if is_answer_lost:
                patching.setattr(Requests, "_end", lose)
            first = await lithos.call(tool, **given, request_id="r")
        before = await made_by(lithos)
    async with serving(tmp_path) as lithos:
        assert await lithos.call(tool, **given, request_id="r") == first
        assert await made_by(lithos) == before


async def test_request_id_of_another_call_is_refused(lithos: Lithos) -> None:
    """behaviour 396: the same id with another argument or tool is refused. Another agent may use the id."""
    given = CREATIONS["lithos_task_create"]
    first = await lithos.call("lithos_task_create", **given, request_id="r")
    for tool, other in (
        ("lithos_task_create", given | {"title": "Other"}),
        ("lithos_task_create", given | {"description": "more"}),
        ("lithos_write", CREATIONS["lithos_write"]),
    ):
        told = refusal(await lithos.call(tool, **other, request_id="r"), "invalid_input")
        assert "belongs to another call" in told
    for other in (given | {"agent": "ben"}, given | {"request_id": "s"}, given):
        answer = await lithos.call("lithos_task_create", **{"request_id": "r", **other})
        assert (answer == first) == (other is given)
    assert (await made_by(lithos))[0] == 3


async def test_refused_call_may_be_repeated_with_other_arguments(lithos: Lithos) -> None:
    """behaviour 396: the refused call created nothing, so its id is free again."""
    task = {"agent": "ann", "summary": "s", "request_id": "r"}
    refusal(await lithos.call("lithos_finding_post", task_id="none", **task), "task_not_found")
    there = await create(lithos)
    assert "finding_id" in await lithos.call("lithos_finding_post", task_id=there, **task)


async def test_collision_with_an_older_note_is_not_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """behaviour 396: the server refused the first call, but was killed before it could delete the id."""
    async with serving(tmp_path, clock=clock) as lithos:
        await lithos.create("A plan", "Of another.")
        clock.advance(minutes=1)
        monkeypatch.setattr(Requests, "_end", lose)
        for _ in range(2):
            answer = await lithos.call("lithos_write", **CREATIONS["lithos_write"], request_id="r")
            refusal(answer, "slug_collision")


async def test_unanswered_change_is_not_repeated_unless_it_creates_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 396: a repetition of the call would append the text twice."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("A plan", "Text.")
        edit = {"id": note, "op": "append", "text": "More.", "agent": "ann"}
        first = await lithos.call("lithos_note_edit", **edit, request_id="known")
        assert await lithos.call("lithos_note_edit", **edit, request_id="known") == first
        monkeypatch.setattr(Requests, "_end", lose)
        for tool, given in (
            ("lithos_note_edit", edit),
            ("lithos_write", {"id": note, "content": "Other.", "agent": "ben"}),
        ):
            assert (await lithos.call(tool, **given, request_id="lost"))["status"] == "updated"
            refusal(await lithos.call(tool, **given, request_id="lost"), "outcome_unknown")
        assert (await lithos.read(note))["version"] == 4


async def test_request_ids_are_deleted_by_age_and_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """behaviour 396"""
    monkeypatch.setattr(rows, "MOST_KEPT", 3)
    given = CREATIONS["lithos_task_create"]
    async with serving(tmp_path, clock=clock) as lithos:
        answers = []
        for number in range(5):
            clock.advance(seconds=1)
            answers.append(await lithos.call("lithos_task_create", **given, request_id=f"r{number}"))
        assert await lithos.call("lithos_task_create", **given, request_id="r4") == answers[4]
        assert await lithos.call("lithos_task_create", **given, request_id="r0") != answers[0]
        clock.advance(days=rules.KEPT.days, seconds=10)
        assert await lithos.call("lithos_task_create", **given, request_id="r4") != answers[4]


async def test_request_id_is_checked_and_listed_by_creating_tools(lithos: Lithos) -> None:
    """behaviour 396"""
    listed = {
        spec.name for spec in lithos.server.tools.listed() if "request_id" in spec.input_schema["properties"]
    }
    assert listed >= {"lithos_write", "lithos_task_create", "lithos_finding_post"}
    given = CREATIONS["lithos_task_create"]
    first, second = [await lithos.call("lithos_task_create", **given, request_id=" ") for _ in range(2)]
    assert first != second
    refusal(await lithos.call("lithos_task_create", **given, request_id="x" * 201), "invalid_input")
    for wrong in (7, ["r"]):
        with pytest.raises(ArgumentFault, match="'request_id' must be text"):
            await lithos.call("lithos_task_create", **given, request_id=wrong)
    with pytest.raises(ArgumentFault, match="Unknown argument 'requestId'"):
        await lithos.call("lithos_task_create", **given, requestId="r")
    assert await lithos.found("zebra", request_id="r") == []
