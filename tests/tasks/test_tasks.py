"""Task board, task page, and changes by people (docs/spec/console.md §2)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lithos.events.journal.coordinator import Coordinator
from tests.server.console.injections import HOSTILE
from tests.server.console.pages import check
from tests.server.console.visiting import Visitor, form_of, visiting
from tests.servers import MISSING_ID, Clock


async def create(person: Visitor, title: str = "A task", **more: Any) -> str:
    answer = await person.lithos.call("lithos_task_create", **{"title": title, "agent": "planner"} | more)
    assert "task_id" in answer, answer
    return str(answer["task_id"])


async def status_of(person: Visitor, task: str) -> str:
    return str((await person.lithos.call("lithos_task_get", task_id=task))["task"]["status"])


def columns_of(html: str) -> dict[str, int]:
    """Return the count of each board column. The keys are the ids of the headings."""
    found = re.findall(r'<h2 id="column-(\w+)"[^>]*>[^<]*<span class="count">([\d,]+)</span>', html)
    return {name: int(count.replace(",", "")) for name, count in found}


async def test_board_shows_ready_tasks_waiting_tasks_and_claim_holders(tmp_path: Path) -> None:
    """behaviour 235: every page renders, even in an empty vault."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        assert "There are no tasks yet." in (await person.look("/console/tasks")).text
        for path, status in (
            ("new", 200),
            ("?column=done", 200),
            (MISSING_ID, 404),
            ("?column=nothing", 404),
        ):
            page = await person.look(f"/console/tasks/{path}".replace("/?", "?"), status)
            assert ("Unknown task id" in page.text) is (path == MISSING_ID)
        epic = await create(person, "The epic", task_type="epic")
        first = await create(
            person, "First", tags=["infra"], metadata={"project": "atlas"}, parent_task_id=epic
        )
        second = await create(person, "Second", depends_on=[first], metadata={"project": "atlas"})
        gate = await create(person, "Approval", task_type="gate", metadata={"gate_type": "human"})
        await call(
            "lithos_task_edge_upsert", from_task_id=gate, to_task_id=second, type="waits_on_gate", agent="p"
        )
        held = await create(person, "Held", agent="other")
        await call("lithos_task_claim", task_id=held, aspect="code", agent="worker")
        done = await create(person, "Done thing")
        await call("lithos_task_complete", task_id=done, agent="worker", outcome="All well")

        html = await person.page("/console/tasks")
        check(html)
        assert columns_of(html) == {
            "ready": 1, "claimed": 1, "blocked": 1, "done": 1, "gates": 1, "epics": 1,
        }  # fmt: skip
        assert "fence" not in html, "it is for agents; the page of the task has it"
        blocked = html[html.index('id="column-blocked"') : html.index('id="column-done"')]
        assert re.findall(r"<bdi>(First|Approval)</bdi>", blocked) == ["First", "Approval"]
        assert "0 of 1 done" in html
        assert "1 waiting task" in html
        ready = {task["title"] for task in (await call("lithos_task_ready"))["tasks"]}
        assert ready == {"First", "Held"}  # ready tasks are in two columns of the board

        for query, expected in (
            ("project=atlas", {"ready": 1, "claimed": 0, "blocked": 1, "done": 0}),
            ("tags=infra", {"ready": 1, "claimed": 0, "blocked": 0, "done": 0}),
            ("agent=worker", {"ready": 0, "claimed": 1, "blocked": 0, "done": 0}),
            ("agent=planner", {"ready": 1, "claimed": 0, "blocked": 1, "done": 1}),
        ):
            counts = columns_of(await person.page(f"/console/tasks?{query}"))
            assert {name: counts[name] for name in expected} == expected, query


async def test_long_column_is_cut_and_shown_in_pages(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        for number in range(130):
            await create(
                person, f"Task {number:03} " + "x" * 300, tags=[f"tag-{n}-{'y' * 60}" for n in range(9)]
            )
        html = await person.page("/console/tasks")
        check(html)
        assert columns_of(html)["ready"] == 130
        assert 'href="?column=ready">All 130</a>' in html
        alone = await person.look("/console/tasks?column=ready")
        assert len(alone.all(class_="task-card")) == 100
        rest = await person.look("/console/tasks?column=ready&offset=100")
        assert len(rest.all(class_="task-card")) == 30
        assert "Task 000" in rest.text


async def test_task_page_shows_blockers_claim_holders_and_findings(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        note = await person.lithos.create("Known note", agent="worker")
        before = await create(person, "Before")
        task = await create(
            person, "The task", description="See **this**, [[Known note]].", depends_on=[before]
        )
        after = await create(person, "After", depends_on=[task])
        await create(person, "Long after", depends_on=[after])
        await call("lithos_task_claim", task_id=task, aspect="code", agent="worker")
        await call(
            "lithos_finding_post", task_id=task, agent="worker", summary="Found *it*", knowledge_id=note
        )
        html = await person.page(f"/console/tasks/{task}")
        check(html)
        assert "<strong>this</strong>" in html
        assert f'href="/console/notes/{note}"' in html
        assert "<em>it</em>" in html
        assert "Waits for &#39;Before&#39; to be completed." in html
        assert html.index(">Before<") < html.index("Waiting tasks") < html.index(">Long after<")
        for told in ("created the task", "claimed", "reported", "fence"):
            assert told in html

        await call("lithos_task_complete", task_id=before, agent="worker")
        await call("lithos_task_complete", task_id=task, agent="worker", cited_nodes=[note])
        html = await person.page(f"/console/tasks/{task}")
        cited = html[html.index("Notes cited on completion") :]
        assert "Known note" in cited[: cited.index("</section>")]
        assert "/cancel" not in html


async def test_many_findings_are_paged_and_long_findings_have_own_pages(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        task = await create(person)
        long = "word " * 3_000 + "the end"
        posted = await call("lithos_finding_post", task_id=task, agent="w", summary=long)
        for number in range(55):
            await call("lithos_finding_post", task_id=task, agent="w", summary=f"Finding {number}")
        html = await person.page(f"/console/tasks/{task}")
        check(html)
        findings = html.partition('<ol class="findings"')[2].partition("</ol>")[0]
        assert findings.count("<li") == 50
        assert "Finding 54" in findings
        rest = await person.page(f"/console/tasks/{task}?offset=50")
        assert "the end" not in rest
        assert "The whole finding" in rest
        assert "the end" in await person.page(f"/console/tasks/{task}?finding={posted['finding_id']}")


async def test_form_that_is_sent_repeatedly_creates_only_one_task(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.submit("/console/identity", agent="Ann")
        action, fields = form_of(await person.page("/console/tasks/new"))
        fields |= {"title": "Look at it", "description": "All of it.", "task_type": "task"}
        fields |= {"tags": "one, two,", "project": "atlas"}
        shown = [check(one.text).text for one in await person.press(action, **fields)]
        assert sum("The task was created." in one for one in shown) == 1  # the message is shown only once
        (task,) = (await person.lithos.call("lithos_task_list"))["tasks"]
        assert (task["title"], task["created_by"], task["tags"]) == ("Look at it", "Ann", ["one", "two"])
        assert task["metadata"] == {"project": "atlas"}


async def test_refused_form_is_shown_again_with_its_input(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        shown = await person.submit(
            "/console/tasks/new", title="A gate", description="Typed with care.", task_type="gate",
            gate_type="timer", ready_at="tomorrow",
        )  # fmt: skip
        assert "The task was not created" in shown.text
        assert "metadata.ready_at" in shown.text
        assert "Typed with care." in shown.text
        assert not (await person.lithos.call("lithos_task_list"))["tasks"]
        path = str(shown.url).removeprefix(person.url)
        again = await person.submit(
            path, title="A gate", task_type="gate", gate_type="timer", ready_at="2030-01-01T00:00:00Z"
        )
        assert "The task was created." in again.text


async def test_cancellation_shows_its_consequences_and_happens_once(tmp_path: Path) -> None:
    """behaviour 239: the page shows the consequences first.

    The change happens once, under the person's name.
    """
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        await person.submit("/console/identity", agent="Ann")
        epic = await create(person, "Epic")
        task = await create(person, "Doomed", parent_task_id=epic)
        other = await create(person, "Another")
        await create(person, "Direct", depends_on=[task, other])
        direct = (await call("lithos_task_list"))["tasks"][0]["id"]
        await create(person, "Behind", depends_on=[direct])
        await create(person, "Child", parent_task_id=task)
        await call("lithos_task_claim", task_id=task, aspect="code", agent="worker")

        html = await person.page(f"/console/tasks/{task}/cancel")
        told = check(html).told
        assert "Direct can never start; it also waits for “Another”" in told
        assert "Behind" in told
        assert "worker holds “code”, claimed just now" in told
        assert "Child" in told
        assert await status_of(person, task) == "open"

        action, fields = form_of(html)
        answers = await person.press(action, **(fields | {"reason": "No time"}))
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert await status_of(person, task) == "cancelled"
        store = person.lithos.server.get(Coordinator)._store
        events = [
            e.draft for e in store.events_after(person.lithos.first_seq) if e.draft.type == "task.cancelled"
        ]
        assert [(one.agent, one.payload["agent"], one.payload["reason"]) for one in events] == [
            ("Ann", "Ann", "No time")
        ]
        assert "cancelled the task" in await person.page(f"/console/tasks/{task}")
        assert (await person.get(f"/console/tasks/{task}/cancel")).status_code == 409
        blocked = await person.page(f"/console/tasks/{direct}")
        assert "This task can never start" in blocked
        assert "intervention is needed" in blocked


async def test_change_is_refused_when_the_shown_consequences_are_outdated(tmp_path: Path) -> None:
    """behaviour 239: the change has the shown consequences, or it is not made."""
    async with visiting(tmp_path) as person:
        task = await create(person, "Doomed")
        action, fields = form_of(await person.page(f"/console/tasks/{task}/cancel"))
        await create(person, "New dependent", depends_on=[task])
        refused = await person.post(action, **fields)
        assert refused.status_code == 409
        assert "Nothing was changed" in refused.text
        assert await status_of(person, task) == "open"

        action, fields = form_of(await person.page(f"/console/tasks/{task}/cancel"))
        await person.lithos.call("lithos_task_complete", task_id=task, agent="worker")
        refused = await person.post(action, **fields)
        assert refused.status_code == 409
        assert "already completed" in refused.text
        assert await status_of(person, task) == "completed"


async def test_person_resolves_a_gate(tmp_path: Path) -> None:
    """behaviour 239: the change has the person's name."""
    async with visiting(tmp_path) as person:
        await person.submit("/console/identity", agent="Ann")
        gate = await create(person, "Approval", task_type="gate", metadata={"gate_type": "human"})
        other = await create(person, "Other")
        free, held = await create(person, "Free"), await create(person, "Held", depends_on=[other])
        for task in (free, held):
            await person.lithos.call(
                "lithos_task_edge_upsert", from_task_id=gate, to_task_id=task, type="waits_on_gate", agent="p"
            )
        html = await person.page(f"/console/tasks/{gate}/resolve")
        told = check(html).told
        assert "Tasks that can start Free task" in told
        assert "Held still waits for “Other”" in told
        shown = await person.submit(f"/console/tasks/{gate}/resolve", outcome="Agreed on Monday")
        assert "The gate was resolved. 1 task can start now." in shown.text
        assert "Agreed on Monday" in shown.text
        completed = [payload for kind, payload in person.lithos.events() if kind == "task.completed"]
        assert [(one["agent"], one["outcome"]) for one in completed] == [("Ann", "Agreed on Monday")]
        refused = await person.get(f"/console/tasks/{free}/resolve")
        assert refused.status_code == 400
        assert "not a gate" in refused.text


async def test_person_releases_the_claim_of_an_agent(tmp_path: Path) -> None:
    """behaviour 239: the change has the person's name. It also names the former holder of the claim."""
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        call = person.lithos.call
        await person.submit("/console/identity", agent="Ann")
        task = await create(person)
        first = await call("lithos_task_claim", task_id=task, aspect="Code review", agent="worker")
        clock.advance(minutes=7)
        path = f"/console/tasks/{task}/release?aspect=code+review"
        html = await person.page(path)
        told = check(html).told
        assert "worker holds “Code review” since 7 min ago, and until 2026-03-04 06:06 UTC" in told
        assert f"(fence {first['fence']})" in told

        action, fields = form_of(html)
        for wrong in ({"fence": "x"}, {"fence": "9" * 40}, {"agent": ""}):
            assert (await person.post(action, **(fields | wrong))).status_code == 400
        assert (await person.post(action, **(fields | {"agent": "nobody"}))).status_code == 409
        held = (await call("lithos_task_status", task_id=task))["tasks"][0]["claims"]
        assert [claim["agent"] for claim in held] == ["worker"]
        again = await call("lithos_task_claim", task_id=task, aspect="Code review", agent="worker")
        refused = await person.post(action, **fields)
        assert refused.status_code == 409
        assert "Nothing was released" in refused.text

        shown = await person.submit(path)
        assert "worker no longer holds the aspect." in shown.text
        assert "No agent holds a claim." in shown.text
        told = check(shown.text).told
        assert "Ann released the claim of worker" in told
        store = person.lithos.server.get(Coordinator)._store
        (event,) = [
            e.draft for e in store.events_after(person.lithos.first_seq) if e.draft.type == "task.released"
        ]
        assert (event.agent, event.payload) == (
            "Ann", {"task_id": task, "agent": "worker", "aspect": "Code review"},
        )  # fmt: skip
        late = await call(
            "lithos_task_renew", task_id=task, aspect="code review", agent="worker", fence=again["fence"]
        )
        assert late["code"] in ("stale_fence", "claim_not_found")
        assert (await person.get(path)).status_code == 409


@pytest.mark.slow
async def test_agent_texts_do_not_run_scripts_on_task_pages(tmp_path: Path) -> None:
    """behaviour 236: texts, tags, agent names and findings appear as plain text on task pages."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        for text in HOSTILE:
            blocker = await create(
                person, text, task_type="gate", metadata={"gate_type": "human", text: text}
            )
            more = {
                "agent": text,
                "description": text,
                "tags": [text],
                "metadata": {"project": text, "x": [text]},
            }
            task = await create(person, text, **more)
            edge = {"from_task_id": blocker, "to_task_id": task, "type": "waits_on_gate"}
            await call("lithos_task_edge_upsert", **edge, agent=text)
            assert (await call("lithos_task_claim", task_id=task, aspect=text, agent=text))["success"]
            await call("lithos_finding_post", task_id=task, agent=text, summary=text)
            done = await create(person, text, parent_task_id=task)
            await call("lithos_task_complete", task_id=done, agent=text, outcome=text, cited_nodes=[text])
            for path in (f"{task}", f"{done}", f"{task}/cancel", f"{blocker}/resolve"):
                page = await person.look(f"/console/tasks/{path}")
                assert "pwned" in page.text, path
                assert "7 * 7" not in text or "{{ 7 * 7 }}" in page.text, path
            await person.look(f"/console/tasks/{task}/release?{urlencode({'aspect': text})}")
            await person.look(
                f"/console/tasks?{urlencode(dict.fromkeys(('project', 'tags', 'agent'), text))}"
            )
        for query in ("", "?column=claimed", "?column=done"):
            shown = (await person.look(f"/console/tasks{query}")).text
            assert shown.count("pwned") >= len(HOSTILE), query
