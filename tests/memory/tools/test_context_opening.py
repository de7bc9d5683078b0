"""Briefings at the start of a session: pinned notes, open tasks, and what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.search.embedding.tokenizer import load_pieces
from lithos.text.words.tokens import count_with
from tests.servers import Clock, Lithos, refusal, serving

OPENING = ["pinned", "work", "warnings", "notes", "activity"]
RULES = "Run the tests before each commit.\n\n## Push\n\nNobody pushes to main."


async def opening(lithos: Lithos, **more: Any) -> Any:
    answer = await lithos.call("lithos_context", **{"sections": OPENING, "budget": 800} | more)
    assert answer["tokens"] <= answer["budget"], answer
    return answer


async def create_task(lithos: Lithos, title: str, **more: Any) -> str:
    answer = await lithos.call("lithos_task_create", title=title, agent="ben", **more)
    return str(answer["task_id"])


async def test_opening_shows_pinned_notes_open_tasks_and_newest_notes(lithos: Lithos, clock: Clock) -> None:
    """docs/spec/context.md §1: no query is needed, and the parts have this order."""
    await lithos.create("Rules", RULES, tags=["pinned"])
    await lithos.create("Old", "The lamp was repaired.")
    clock.advance(hours=1)
    await lithos.create("New", "The harbour is closed at night.")
    task = await create_task(lithos, "Paint the lighthouse")
    text = (await opening(lithos))["text"]
    parts = ("## Pinned", "### Rules (rules.md)", "## Open tasks", task, "## Notes", "### New", "### Old")
    assert [text.index(each) for each in parts] == sorted(text.index(each) for each in parts)
    assert text.count("Run the tests before each commit.") == 1
    assert "Nobody pushes" not in text
    assert "nearness" not in str((await opening(lithos))["items"])


async def test_default_sections_contain_neither_pinned_notes_nor_tasks(lithos: Lithos) -> None:
    await lithos.create("Rules", RULES, tags=["pinned"])
    await create_task(lithos, "Run the tests")
    answer = await lithos.call("lithos_context", query="who runs the tests before a commit")
    assert "## Pinned" not in answer["text"]
    assert "## Open tasks" not in answer["text"]
    assert {item["title"] for item in answer["items"]} == {"Rules"}
    call: Any = lithos.server.tools.call
    refusal(await call("lithos_context", {"sections": ["notes"]}), "invalid_input")


async def test_pinned_paragraph_is_not_repeated_among_the_passages(lithos: Lithos) -> None:
    await lithos.create("Rules", RULES, tags=["pinned"])
    text = (await opening(lithos, query="who pushes to main and runs the tests before a commit"))["text"]
    assert text.count("Run the tests before each commit.") == 1
    assert text.index("## Pinned") < text.index("## Notes") < text.index("Nobody pushes to main.")


async def test_pinned_summary_replaces_the_first_paragraph(lithos: Lithos) -> None:
    await lithos.create("Rules", RULES, tags=["pinned"], summaries={"short": "Test, then commit."})
    text = (await opening(lithos, query="run the tests before each commit"))["text"]
    assert "### Rules (rules.md)\nTest, then commit." in text
    assert "Run the tests before each commit." in text.partition("## Notes")[2]


async def test_pinned_list_is_shown_with_the_line_above_it(lithos: Lithos) -> None:
    await lithos.create("Deploy", "Before a deploy:\n\n- Tag it\n- Wait\n\nThen go.", tags=["pinned"])
    text = (await opening(lithos))["text"]
    assert "Before a deploy:\n\n- Tag it\n- Wait" in text
    assert "Then go." not in text


async def test_many_pinned_notes_are_counted_in_the_order_of_their_paths(lithos: Lithos) -> None:
    for number in range(30):
        await lithos.create(f"Rule {number:02}", f"Rule {number} says: {'wait ' * 60}", tags=["pinned"])
    text = (await opening(lithos))["text"].partition("\n\n## Notes")[0]
    shown = [line for line in text.splitlines() if line.startswith("### ")]
    assert 1 < len(shown) < 6
    assert shown == [f"### Rule {number:02} (rule-{number:02}.md)" for number in range(len(shown))]
    assert text.endswith(f"and {30 - len(shown)} more: lithos_list with tags pinned")


async def test_untrusted_pinned_notes_are_named_but_not_shown(lithos: Lithos, clock: Clock) -> None:
    old = await lithos.create("Rules", "Commit on Fridays.", tags=["pinned"], ttl_hours=1)
    await lithos.create("Secret", "For ben only.", tags=["pinned"], agent="ben", access_scope="agent_private")
    clock.advance(hours=2)
    answer = await opening(lithos, agent_id="ann", query="lighthouse")
    assert "Commit on Fridays." not in answer["text"]
    assert "For ben only." not in answer["text"]
    assert [(row["note_id"], row["kind"]) for row in answer["warnings"]] == [(old, "expired")]


async def test_open_tasks_begin_with_the_claims_of_the_agent(lithos: Lithos) -> None:
    titles = ("Free", "Held by ben", "Mine", "Before", "Waiting")
    tasks = {title: await create_task(lithos, title) for title in titles[:4]}
    tasks["Waiting"] = await create_task(lithos, "Waiting", depends_on=[tasks["Before"]])
    await lithos.call("lithos_task_claim", task_id=tasks["Held by ben"], aspect="work", agent="ben")
    await lithos.call("lithos_task_claim", task_id=tasks["Mine"], aspect="docs", agent="ann")
    text = (await opening(lithos, agent_id="ann", sections=["work"]))["text"]
    lines = text.splitlines()[1:]
    shown = [line[2:].partition(":")[0] for line in lines]
    assert shown == [
        "Mine",
        "Held by ben",
        "Free",
        "Before",
        "Waiting",
    ]
    assert "you hold docs until" in lines[0]
    assert "ben holds work until" in lines[1]
    assert ": free (`" in lines[2]
    assert "blocked by Before" in lines[4]


async def test_further_open_tasks_are_only_counted(lithos: Lithos) -> None:
    for number in range(20):
        await create_task(lithos, f"Task {number}")
    text = (await opening(lithos, sections=["work"], budget=4_000))["text"]
    lines = text.splitlines()[1:]
    assert len(lines) == 13
    assert lines[0].startswith("- Task 0: free")
    assert lines[-1] == "- and 8 more: lithos_task_list"


async def test_second_session_gets_the_opening_and_only_the_news(lithos: Lithos) -> None:
    """docs/spec/context.md §1: a new session knows nothing, so pinned notes and tasks are repeated."""
    await lithos.create("Rules", RULES, tags=["pinned"])
    await lithos.create("Old", "The lamp was repaired.")
    task = await create_task(lithos, "Paint the lighthouse")
    done = await create_task(lithos, "Buy the paint")
    since = (await opening(lithos))["cursor"]
    again = await opening(lithos, since=since)
    assert "## Pinned" in again["text"]
    assert "## Notes" not in again["text"]
    await lithos.create("New", "The harbour is closed at night.", agent="cara")
    await lithos.call("lithos_finding_post", task_id=task, agent="cara", summary="The red is too dark.")
    await lithos.call("lithos_task_complete", task_id=done, agent="ben")
    text = (await opening(lithos, since=since))["text"]
    assert "note created by cara: New (`new.md`)" in text
    assert "finding by cara: The red is too dark." in text
    assert "task completed by ben: Buy the paint" in text
    assert text.index("## Open tasks") < text.index("## Recent changes") < text.index("## Notes")
    assert "The harbour is closed at night." in text
    assert "The lamp was repaired." not in text


async def test_opening_of_an_empty_vault_is_empty(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"answers": "compact"}) as lithos:
        answer = await lithos.call("lithos_context", sections=OPENING, budget=800)
        assert (answer["text"], set(answer)) == ("", {"text", "tokens"})


@pytest.mark.parametrize("answers", ["compact", "full"])
async def test_opening_never_exceeds_the_budget(tmp_path: Path, answers: str) -> None:
    """Behaviour 300."""
    count = count_with(load_pieces())
    async with serving(tmp_path, server={"answers": answers}) as lithos:
        for number in range(8):
            await lithos.create(
                f"Rule {number}", f"Rule {number}: `x_{number}` " + "süß 日本 " * 40, tags=["pinned"]
            )
            await lithos.create(f"Log {number}", f"Ship {number} came into the harbour. " * 30)
            await create_task(lithos, f"Unload ship {number} " * 9)
        task = await create_task(lithos, "Count the ships", description="In the harbour. " * 200)
        for budget in (200, 300, 500, 800, 2_000):
            for more in ({}, {"query": "ships in the harbour"}, {"task_id": task}):
                given = {"sections": ["task", *OPENING], "budget": budget, "cursor": True} | more
                answer = await lithos.call("lithos_context", **given)
                sent = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
                assert count(sent if answers == "compact" else answer["text"]) <= budget, (budget, more)
                assert "## Pinned" in answer["text"]
