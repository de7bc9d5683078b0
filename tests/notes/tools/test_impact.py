"""`lithos_impact`: dependents of a note, quarantine and verification tasks.

Specified in docs/spec/context.md §2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.errors import StorageFailed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.lineage import Lineage
from lithos.tasks.board import reverification
from lithos.tasks.service import impact
from tests.memory.tools.task_calls import call, create, ids
from tests.servers import MISSING_ID, VAULT, Answer, Clock, Lithos, put_note, refusal, serving

KEYS = ["id", "status", "dependents", "tasks", "readers", "task_ids", "truncated"]


async def ask(lithos: Lithos, note: str, **more: Any) -> Answer:
    """Call the tool, and check that the call succeeds."""
    answer: Answer = await lithos.call("lithos_impact", id=note, **more)
    linked = [] if "linked_from" not in answer else ["linked_from", "linked_from_total", "restore"]
    assert list(answer) == [*KEYS, *linked], answer
    return answer


async def quarantine(lithos: Lithos, note: str, reason: str = "Withdrawn.", **more: Any) -> Answer:
    return await ask(lithos, note, action="quarantine", agent="ann", reason=reason, **more)


async def rest_on(lithos: Lithos, source: str, *titles: str) -> list[str]:
    """Create notes that are derived from another note."""
    return [await lithos.create(title, derived_from_ids=[source]) for title in titles]


def state(lithos: Lithos) -> tuple[Any, ...]:
    """Return the bytes of the vault, the rows of tasks and notes, and the journal."""
    files = {name: (lithos.knowledge / name).read_bytes() for name in lithos.files()}
    reader = lithos.server.get(Coordinator)._store._reader
    tables = ("tasks", "task_edges", "findings", "claims", "citations", "note_versions", "agents", "events")
    return files, [reader.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


async def open_tasks(lithos: Lithos) -> list[dict[str, Any]]:
    """Return the open tasks, oldest first."""
    tasks: list[dict[str, Any]] = []
    while True:
        page = await call(lithos, "task_list", status="open", offset=len(tasks))
        tasks += page["tasks"]
        if "next_offset" not in page:
            return list(reversed(tasks))


async def test_impact_preview_lists_dependents_tasks_and_readers_without_changes(
    lithos: Lithos, clock: Clock
) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    near, other = await rest_on(lithos, source, "Near", "Other")
    (far,) = await rest_on(lithos, near, "Far")
    await lithos.create("Unrelated", f"It links to [[Source]] and says {source}.")
    found, cited, both = [await create(lithos, title) for title in ("Found", "Cited", "Both")]
    for task in (found, both):
        clock.advance(minutes=1)
        await call(lithos, "finding_post", task_id=task, summary="s", knowledge_id=source)
    await call(lithos, "finding_post", task_id=cited, summary="s", knowledge_id=near)
    for task in (both, cited):
        clock.advance(minutes=1)
        await call(lithos, "task_complete", task_id=task, cited_nodes=[source, source, "gone"])
    times = []
    for agent in ("ann", "ben", "ann"):
        clock.advance(minutes=1)
        times.append(clock.text)
        await lithos.read(source, agent_id=agent)
    await lithos.read(near, agent_id="cleo")
    await lithos.found("Source", agent_id="dan")
    await lithos.audit()
    before = state(lithos)
    answer = await ask(lithos, source)
    assert state(lithos) == before
    linking = answer.pop("linked_from"), answer.pop("linked_from_total"), answer.pop("restore")
    assert [row["title"] for row in linking[0]] == ["Unrelated"]
    assert answer == {
        "id": source,
        "status": "active",
        "dependents": [
            *sorted(
                (
                    {"id": note, "title": title, "path": f"{title.lower()}.md", "distance": 1,
                     "via": "derived_from_ids"}
                    for note, title in ((near, "Near"), (other, "Other"))
                ),
                key=lambda row: str(row["id"]),
            ),
            {"id": far, "title": "Far", "path": "far.md", "distance": 2, "via": "derived_from_ids"},
        ],
        "tasks": [
            {"task_id": cited, "title": "Cited", "status": "completed", "how": "cited"},
            {"task_id": both, "title": "Both", "status": "completed", "how": "finding"},
            {"task_id": found, "title": "Found", "status": "open", "how": "finding"},
        ],
        "readers": [
            {"agent": "ann", "last_read_at": times[2], "reads": 2},
            {"agent": "ben", "last_read_at": times[1], "reads": 1},
        ],
        "task_ids": [],
        "truncated": False,
    }  # fmt: skip
    again = await ask(lithos, source, action="preview", agent="nobody", reason="x")
    assert {key: again[key] for key in KEYS} == answer
    assert state(lithos) == before


async def test_impact_lists_a_read_that_is_not_stored_yet(lithos: Lithos) -> None:
    source = await lithos.create("Source")
    await lithos.read(source, agent_id="ann")
    assert [row["agent"] for row in (await ask(lithos, source))["readers"]] == ["ann"]


async def test_citations_survive_a_restart_and_are_read_from_the_journal(tmp_path: Path) -> None:
    """behaviour 232: the journal supplies the citations of tasks completed by an earlier Lithos version."""
    async with serving(tmp_path) as lithos:
        source = await lithos.create("Source")
        old = await create(lithos, "Old")
        await call(lithos, "task_complete", task_id=old, cited_nodes=[source])
        writer = lithos.server.get(Coordinator)._store._writer
        writer.execute("DROP TABLE citations; DELETE FROM meta WHERE name='completions'")
        writer.execute(
            "INSERT INTO events SELECT seq+1,type,agent,'{\"cited_nodes\": 5}',tags,timestamp,origin"
            " FROM events WHERE type='task.completed'"
        )
    async with serving(tmp_path) as lithos:
        new = await create(lithos, "New")
        await call(lithos, "task_complete", task_id=new, cited_nodes=[source])
        answer = await ask(lithos, source)
        assert [(row["task_id"], row["how"]) for row in answer["tasks"]] == [(new, "cited"), (old, "cited")]


async def test_quarantine_and_its_clearing_each_make_one_update(lithos: Lithos) -> None:
    """behaviour 232; docs/spec/context.md §2."""
    source = await lithos.create("Source", "The text.\n\nStays.")
    (near,) = await rest_on(lithos, source, "Near")
    dependent = (lithos.knowledge / "near.md").read_bytes()
    content = (await lithos.read(source))["content"]
    done = await quarantine(lithos, source, " Withdrawn. ")
    assert (done["status"], done["task_ids"]) == ("quarantined", [])
    assert [row["id"] for row in done["dependents"]] == [near]
    read = await lithos.read(source)
    assert (read["version"], read["content"]) == (2, content)
    assert read["metadata"]["status"] == "quarantined"
    assert read["metadata"]["quarantine_reason"] == "Withdrawn."
    assert "ann" in read["metadata"]["contributors"]

    assert (await quarantine(lithos, source))["status"] == "quarantined"
    assert (await lithos.read(source))["version"] == 2, "the same again is nothing new"
    await quarantine(lithos, source, "Another reason.")
    read = await lithos.read(source)
    assert (read["version"], read["metadata"]["quarantine_reason"]) == (3, "Another reason.")

    assert (await ask(lithos, source, action="clear", agent="ben"))["status"] == "active"
    read = await lithos.read(source)
    assert (read["version"], read["metadata"]["status"]) == (4, "active")
    assert "quarantine_reason" not in read["metadata"]
    before = state(lithos)[0]
    assert (await ask(lithos, source, action="clear", agent="ben"))["status"] == "active"
    assert state(lithos)[0] == before, "what is active is not written"
    assert [kind for kind, _ in lithos.events() if kind.startswith("note.")] == [
        "note.created", "note.created", "note.updated", "note.updated", "note.updated",
    ]  # fmt: skip
    versions = (await lithos.call("lithos_history", id=source))["versions"]
    assert [row["version"] for row in versions] == [4, 3, 2, 1]
    assert (lithos.knowledge / "near.md").read_bytes() == dependent
    assert {agent["id"] for agent in (await call(lithos, "agent_list"))["agents"]} >= {"ann", "ben"}


async def test_clearing_quarantine_of_an_archived_note_changes_nothing(lithos: Lithos) -> None:
    source = await lithos.create("Source", status="archived")
    assert (await ask(lithos, source, action="clear", agent="ann"))["status"] == "archived"
    assert (await lithos.read(source))["version"] == 1


async def test_open_tasks_option_creates_an_epic_and_each_task_once(lithos: Lithos, clock: Clock) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    direct = await rest_on(lithos, source, "One", "Two", "Three")
    await rest_on(lithos, direct[0], "Far")
    done = await quarantine(lithos, source, "Withdrawn by its authors.", open_tasks=True)
    epic, *tasks = await open_tasks(lithos)
    assert done["task_ids"] == [epic["id"], *(task["id"] for task in tasks)]
    assert (epic["title"], epic["task_type"]) == ("Re-verify notes that depend on Source", "epic")
    assert epic["metadata"] == {"impact_of": source, "reason": "Withdrawn by its authors."}
    assert sorted(direct) == [task["metadata"]["verify"] for task in tasks]
    assert {task["title"] for task in tasks} == {"Re-verify One", "Re-verify Two", "Re-verify Three"}
    (one,) = (task for task in tasks if task["title"] == "Re-verify One")
    for told in ("One", "one.md", direct[0], "Source", "source.md", source, "Withdrawn by its authors."):
        assert told in one["description"]
    assert {task["created_by"] for task in (epic, *tasks)} == {"ann"}
    children = await call(lithos, "task_children", task_id=epic["id"])
    assert sorted(ids(children)) == sorted(done["task_ids"][1:])
    kinds = [kind for kind, _ in lithos.events() if kind.startswith("task.")]
    assert kinds == ["task.created", *["task.created", "task.ready"] * 3]
    ready = await call(lithos, "task_ready", metadata_match={"impact_of": source})
    assert ready["total"] == 3

    before = state(lithos)
    again = await quarantine(lithos, source, "Withdrawn by its authors.", open_tasks=True)
    assert again == done
    assert state(lithos) == before


async def test_later_dependent_gets_its_task_under_the_same_epic(lithos: Lithos) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    await rest_on(lithos, source, "One")
    epic, one = (await quarantine(lithos, source, open_tasks=True))["task_ids"]
    (late,) = await rest_on(lithos, source, "Late")
    again = (await quarantine(lithos, source, open_tasks=True))["task_ids"]
    assert again[0] == epic
    assert set(again) > {epic, one}
    tasks = await open_tasks(lithos)
    assert len(tasks) == 3
    assert tasks[-1]["metadata"]["verify"] == late


async def test_verified_note_gets_a_new_task_only_for_another_reason(lithos: Lithos) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    await rest_on(lithos, source, "One", "Two")
    first = (await quarantine(lithos, source, open_tasks=True))["task_ids"]
    await call(lithos, "task_complete", task_id=first[1])
    assert (await quarantine(lithos, source, open_tasks=True))["task_ids"] == first
    other = (await quarantine(lithos, source, "Another.", open_tasks=True))["task_ids"]
    assert (other[0], other[2]) == (first[0], first[2])
    assert other[1] not in first
    for task in other:
        await call(lithos, "task_complete", task_id=task)
    new = (await quarantine(lithos, source, "Another.", open_tasks=True))["task_ids"]
    assert len({*new, *first, *other}) == 7, "with its epic a re-verification ends"


async def test_verification_tasks_are_not_recreated_after_their_epic_is_cancelled(lithos: Lithos) -> None:
    source = await lithos.create("Source")
    await rest_on(lithos, source, "One", "Two")
    epic, *tasks = (await quarantine(lithos, source, open_tasks=True))["task_ids"]
    await call(lithos, "task_cancel", task_id=epic)
    assert (await quarantine(lithos, source, open_tasks=True))["task_ids"] == tasks
    assert len(await open_tasks(lithos)) == 2


async def test_note_without_dependents_gets_no_epic(lithos: Lithos) -> None:
    source = await lithos.create("Source")
    assert (await quarantine(lithos, source, open_tasks=True))["task_ids"] == []
    assert await open_tasks(lithos) == []


async def test_concurrent_calls_create_the_tasks_only_once(lithos: Lithos) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    await rest_on(lithos, source, *(f"N{number}" for number in range(10)))
    answers: list[Answer] = []

    async def run(agent: str) -> None:
        answers.append(
            await ask(lithos, source, action="quarantine", agent=agent, reason="r", open_tasks=True)
        )

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(run, f"a{number}")
    assert len({tuple(answer["task_ids"]) for answer in answers}) == 1
    assert len(await open_tasks(lithos)) == 11


async def test_failed_task_creation_is_repaired_by_repeating_the_call(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 232: the note is quarantined, but creating its tasks fails.

    No task exists after the failed call.
    """
    source = await lithos.create("Source")
    await rest_on(lithos, source, "One", "Two")
    made = 0

    def fail(*_: Any) -> Any:
        nonlocal made
        made += 1
        if made == 2:
            raise StorageFailed("The disk is full.")
        return create_task(*_)

    create_task = reverification._task
    with monkeypatch.context() as patch:
        patch.setattr(reverification, "_task", fail)
        refused = await lithos.call(
            "lithos_impact", id=source, action="quarantine", agent="a", reason="r", open_tasks=True
        )
    refusal(refused, "internal_error")
    assert await open_tasks(lithos) == [], "all tasks are one transaction"
    assert (await lithos.read(source))["version"] == 2
    done = await ask(lithos, source, action="quarantine", agent="a", reason="r", open_tasks=True)
    assert len(done["task_ids"]) == 3
    assert (await lithos.read(source))["version"] == 2


async def test_impact_lists_are_cut_at_200_with_a_hint(tmp_path: Path) -> None:
    """behaviour 232"""
    for number in range(205):
        front = f"id: {number + 1:08}-0000-4000-8000-000000000000\nderived_from_ids: [{MISSING_ID}]"
        put_note(tmp_path, f"d/{number}.md", f"---\n{front}\n---\nx\n")
    put_note(tmp_path, "source.md", f"---\nid: {MISSING_ID}\n---\n# Source\n")
    async with serving(tmp_path) as lithos:
        await rest_on(lithos, "00000001-0000-4000-8000-000000000000", "Far")
        far = await rest_on(lithos, "00000002-0000-4000-8000-000000000000", "Very far")
        await lithos.read(MISSING_ID)
        answer = await ask(lithos, MISSING_ID)
        assert [row["path"] for row in answer["dependents"]] == [f"d/{number}.md" for number in range(200)]
        assert answer["truncated"]
        done = await quarantine(lithos, MISSING_ID, open_tasks=True)
        tasks = await open_tasks(lithos)
        assert len(tasks) == 201, "200 tasks and their epic"
        assert done["task_ids"] == [task["id"] for task in tasks[:200]]
        assert done["truncated"]
        assert await quarantine(lithos, MISSING_ID, open_tasks=True) == done
        assert len(await open_tasks(lithos)) == 201
        for task in tasks[1:11]:
            await call(lithos, "task_complete", task_id=task["id"])
        await quarantine(lithos, MISSING_ID, open_tasks=True)
        verified = {task["metadata"].get("verify") for task in await open_tasks(lithos)}
        assert len(verified) == 196, "the rest came up: 205 less ten that are done, and the epic"
        assert far[0] not in verified


async def test_long_list_of_readers_is_cut_to_the_newest_readers(lithos: Lithos, clock: Clock) -> None:
    source = await lithos.create("Source")
    for number in range(201):
        clock.advance(seconds=1)
        await lithos.read(source, agent_id=f"a{number}")
    answer = await ask(lithos, source)
    assert [row["agent"] for row in answer["readers"]] == [f"a{number}" for number in range(200, 0, -1)]
    assert answer["truncated"]


async def test_long_list_of_tasks_is_cut_to_the_newest_tasks(lithos: Lithos, clock: Clock) -> None:
    source = await lithos.create("Source")
    made = []
    for number in range(201):
        clock.advance(seconds=1)
        made.append(await create(lithos, str(number)))
        if number % 2:
            await call(lithos, "task_complete", task_id=made[-1], cited_nodes=[source])
        else:
            await call(lithos, "finding_post", task_id=made[-1], summary="s", knowledge_id=source)
    answer = await ask(lithos, source)
    assert [row["task_id"] for row in answer["tasks"]] == made[:0:-1]
    assert [row["how"] for row in answer["tasks"][:2]] == ["finding", "cited"]
    assert answer["truncated"]


async def test_impact_lists_each_dependent_once_in_a_cycle(lithos: Lithos) -> None:
    """behaviour 232"""
    first = await lithos.create("First")
    (second,) = await rest_on(lithos, first, "Second")
    (third,) = await rest_on(lithos, second, "Third")
    await lithos.write("First", id=first, derived_from_ids=[third])
    answer = await ask(lithos, second)
    assert [(row["id"], row["distance"]) for row in answer["dependents"]] == [(third, 1), (first, 2)]


async def test_dependent_deleted_during_the_walk_causes_no_error(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    near, other = sorted(await rest_on(lithos, source, "Near", "Other"))
    (far,) = await rest_on(lithos, near, "Far")
    walked = trio.Event()
    look = Lineage.dependents
    wait = trio.lowlevel.checkpoint

    def dependents(self: Lineage, note_id: str) -> Any:
        if note_id == near:
            walked.set()
        return look(self, note_id)

    async def pause() -> None:
        if walked.is_set():
            await lithos.call("lithos_delete", id=other, agent="a")
            walked.__init__()  # type: ignore[misc]
        await wait()

    monkeypatch.setattr(Lineage, "dependents", dependents)
    monkeypatch.setattr(impact, "SLICE", 1)
    monkeypatch.setattr(impact.trio.lowlevel, "checkpoint", pause)
    answer = await ask(lithos, source)
    assert [row["id"] for row in answer["dependents"]] == [near, far]


async def test_invalid_impact_calls_are_refused_and_change_nothing(lithos: Lithos) -> None:
    """behaviour 232"""
    source = await lithos.create("Source")
    before = state(lithos)
    for arguments, told in (
        ({"action": "burn"}, "preview, quarantine, clear"),
        ({"action": "quarantine", "reason": "r"}, "agent"),
        ({"action": "quarantine", "agent": "a"}, "reason"),
        ({"action": "quarantine", "agent": "a", "reason": " "}, "reason"),
        ({"action": "quarantine", "agent": "a", "reason": "r" * 1_001}, "reason"),
        ({"action": "clear"}, "agent"),
        ({"open_tasks": True}, "open_tasks"),
        ({"action": "clear", "agent": "a", "open_tasks": True}, "open_tasks"),
    ):
        answer = await lithos.call("lithos_impact", id=source, **arguments)
        assert told in refusal(answer, "invalid_input"), arguments
    assert state(lithos) == before
    for more in ({}, {"action": "clear"}, {"action": "quarantine", "reason": "r", "open_tasks": True}):
        answer = await lithos.call("lithos_impact", id=MISSING_ID, agent="late", **more)
        assert "lithos_search" in refusal(answer, "doc_not_found")
    agents = [agent["id"] for agent in (await call(lithos, "agent_list"))["agents"]]
    assert "late" in agents, "who acts is known even if it fails"


async def test_note_with_unreadable_frontmatter_is_refused_and_unchanged(tmp_path: Path) -> None:
    broken = "---\ntitle: [\n---\ntext\n"
    put_note(tmp_path, "broken.md", broken)
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = (await lithos.call("lithos_read", path="broken"))["id"]
        for more in ({"action": "clear"}, {"action": "quarantine", "reason": "r"}):
            answer = await lithos.call("lithos_impact", id=note, agent="a", **more)
            assert "broken.md" in refusal(answer, "invalid_input")
        assert (lithos.knowledge / "broken.md").read_text() == broken


async def test_note_deleted_before_its_update_is_reported_as_not_found(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await lithos.create("Source")
    entry = lithos.server.get(Catalogue).get(source)
    await lithos.call("lithos_delete", id=source, agent="a")
    get = lithos.server.get(Catalogue).get
    stale = [entry]

    def find(note_id: str) -> Any:
        return stale.pop() if note_id == source and stale else get(note_id)

    monkeypatch.setattr(lithos.server.get(Catalogue), "get", find)
    answer = await lithos.call("lithos_impact", id=source, action="quarantine", agent="a", reason="r")
    refusal(answer, "doc_not_found")
