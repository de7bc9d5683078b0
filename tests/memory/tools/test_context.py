"""`lithos_context` on a complete server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lithos.memory.context.context
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.notes.service.texts import NoteTexts
from tests.memory.tools.task_calls import create
from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving

KEYS = ["text", "tokens", "budget", "items", "dropped", "warnings", "cursor", "receipt_id", "degraded"]
ZEBRA = "The zebra has stripes, and at night it watches for lions."


async def brief(lithos: Lithos, query: str = "zebra stripes at night", **more: Any) -> Any:
    answer = await lithos.call("lithos_context", query=query, **more)
    assert list(answer)[: len(KEYS)] == KEYS, answer
    assert answer["tokens"] <= answer["budget"]
    return answer


def ids(answer: Any) -> list[str]:
    return [item["id"] for item in answer["items"]]


async def test_briefing_groups_excerpts_by_note_and_is_reproducible(lithos: Lithos) -> None:
    """behaviour 227"""
    note = await lithos.create("Zebras", f"## At night\n\n{ZEBRA}", path="animals")
    await lithos.create("Bread", "Salt, water, flour and time.")
    first = await brief(lithos)
    assert "### Zebras (animals/zebras.md, v1, At night)\nThe zebra has stripes" in first["text"]
    (item,) = first["items"]
    assert list(item) == ["id", "version", "section", "title", "path", "tokens", "score", "reason"]
    assert (item["id"], item["version"], item["section"], item["score"]) == (note, 1, "At night", 1.0)
    assert "zebra" in item["reason"]
    again = await brief(lithos)
    assert again["text"] == first["text"]
    assert (again["cursor"], again["degraded"]) == (first["cursor"], False)
    section = await lithos.read(note, section=item["section"])
    assert ZEBRA in section["content"]


async def test_notes_that_exceed_the_budget_are_named(lithos: Lithos) -> None:
    """behaviour 227"""
    notes = {
        await lithos.create(f"Zebra {n}", f"{ZEBRA} Herd {n} " + f"walks far to {n} rivers. " * 30)
        for n in range(12)
    }
    answer = await brief(lithos, budget=400)
    dropped = {row["id"] for row in answer["dropped"]}
    assert dropped == notes - set(ids(answer))
    assert {row["reason"] for row in answer["dropped"]} == {"no space left in the budget"}
    assert all(row["tokens"] > 100 for row in answer["dropped"])
    assert "Left out" in answer["text"]


async def test_untrusted_notes_are_named_but_not_shown(lithos: Lithos, clock: Clock) -> None:
    """behaviour 228"""
    good = await lithos.create("Good", ZEBRA)
    old = await lithos.create("Old", f"{ZEBRA} Stale.", ttl_hours=1)
    bad = await lithos.create("Bad", f"{ZEBRA} Wrong.", status="quarantined")
    clock.advance(hours=2)
    answer = await brief(lithos)
    assert ids(answer) == [good]
    named = {(row["note_id"], row["kind"]) for row in answer["warnings"]}
    assert named == {(old, "expired"), (bad, "quarantined")}
    assert "Stale." not in answer["text"]
    assert "Wrong." not in answer["text"]
    assert "Old: expired: expired at" in answer["text"]
    assert f"`id={bad}`" in answer["text"]
    assert {row["id"] for row in answer["dropped"]} == {old, bad}
    receipt = await lithos.server.get(Learning).receipt(answer["receipt_id"])
    assert receipt is not None
    assert [node.id for node in receipt.final_nodes] == [good]


async def test_private_notes_of_other_agents_are_not_mentioned(lithos: Lithos) -> None:
    mine = await lithos.create("Mine", ZEBRA, access_scope="agent_private", agent="ann")
    assert ids(await brief(lithos, agent_id="bob")) == []
    assert "Mine" not in (await brief(lithos, agent_id="bob"))["text"]
    assert ids(await brief(lithos, agent_id="ann")) == [mine]


async def test_since_cursor_limits_the_briefing_to_changes(lithos: Lithos) -> None:
    """behaviour 229"""
    await lithos.create("First", ZEBRA)
    task = await create(lithos, "Watch the zebra stripes")
    before = await brief(lithos, task_id=task)
    nothing = await brief(lithos, task_id=task, since=before["cursor"])
    assert (nothing["text"], nothing["tokens"], nothing["items"]) == ("", 0, [])
    second = await lithos.create("Second", "Zebra stripes are seen at night, says the ranger.")
    await lithos.call("lithos_finding_post", task_id=task, agent="ann", summary="They sleep standing.")
    news = await brief(lithos, task_id=task, since=nothing["cursor"])
    assert ids(news) == [second]
    assert "They sleep standing." in news["text"]
    assert "First" not in news["text"]
    last = await brief(lithos, task_id=task, since=news["cursor"])
    assert (last["text"], last["degraded"]) == ("", False)


async def test_unknown_cursor_is_reported_and_returns_everything(lithos: Lithos) -> None:
    """behaviour 229"""
    note = await lithos.create("First", ZEBRA)
    for since in ("1", "no number", "9" * 30):
        answer = await brief(lithos, since=since)
        assert ids(answer) == [note]
        assert answer["degraded"] is True
        assert answer["warnings"][0]["kind"] == "cursor"


async def test_receipt_of_a_briefing_accepts_feedback(lithos: Lithos) -> None:
    """behaviour 230"""
    cited, ignored = await lithos.create("A", ZEBRA), await lithos.create("B", "Stripes of grass.")
    task = await create(lithos, "Zebra stripes at night")
    answer = await brief(lithos, task_id=task, agent_id="ann")
    assert set(ids(answer)) >= {cited}
    done = await lithos.call(
        "lithos_task_complete", task_id=task, agent="ann", cited_nodes=[cited],
        receipt_id=answer["receipt_id"],
    )  # fmt: skip
    assert done["success"]
    stats = await lithos.call("lithos_node_stats", node_id=cited)
    assert (stats["cited_count"], stats["retrieval_count"]) == (1, 1)
    assert stats["cited_for"]
    if ignored in ids(answer):
        assert (await lithos.call("lithos_node_stats", node_id=ignored))["ignored_count"] == 1


async def test_task_text_is_used_when_the_query_is_missing(lithos: Lithos) -> None:
    note = await lithos.create("Zebras", ZEBRA)
    task = await create(lithos, "Zebra stripes", description="What do they do at night?")
    await lithos.call("lithos_task_claim", task_id=task, aspect="research", agent="ann")
    answer = await lithos.call("lithos_context", task_id=task)
    assert ids(answer) == [note]
    text = answer["text"]
    assert text.startswith("## Task: Zebra stripes\nStatus: open")
    assert "- Claimed: research, by ann" in text
    assert "What do they do at night?" in text
    only = await lithos.call("lithos_context", task_id=task, sections=["task"])
    assert "### " not in only["text"]


async def test_invalid_context_requests_are_refused(lithos: Lithos) -> None:
    call = lithos.server.tools.call
    for given in ({}, {"query": " "}, {"query": "x", "budget": 199}, {"query": "x", "budget": 20_001},
                  {"query": "x", "sections": ["all"]}):  # fmt: skip
        refusal(await call("lithos_context", given), "invalid_input")
    refusal(await call("lithos_context", {"task_id": MISSING_ID}), "task_not_found")


async def test_context_filters_equal_the_retrieve_filters(lithos: Lithos) -> None:
    a = await lithos.create("A", ZEBRA, tags=["x"], path="one")
    b = await lithos.create("B", f"{ZEBRA} Twice as many.", path="two")
    assert ids(await brief(lithos, tags=["x"])) == [a]
    assert ids(await brief(lithos, path_prefix="two/")) == [b]
    assert ids(await brief(lithos, namespace_filter=["one"])) == [a]


async def test_context_works_when_learning_is_off(tmp_path: Path) -> None:
    async with serving(tmp_path, lcma=LcmaConfig(enabled=False)) as lithos:
        note = await lithos.create("Zebras", ZEBRA)
        answer = await brief(lithos)
        assert (ids(answer), answer["receipt_id"], answer["degraded"]) == ([note], None, False)


async def test_missing_tokenizer_is_reported_and_shortens_the_briefing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 227"""

    def fail() -> Any:
        raise OSError("gone")

    monkeypatch.setattr(lithos.memory.context.context, "load_pieces", fail)
    async with serving(tmp_path) as server:
        note = await server.create("Zebras", ZEBRA)
        answer = await brief(server)
        assert (ids(answer), answer["degraded"]) == ([note], True)
        assert answer["warnings"][0]["kind"] == "tokenizer"


async def test_note_deleted_while_it_is_read_is_omitted(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = await lithos.create("Stays", ZEBRA)
    goes = await lithos.create("Goes", f"{ZEBRA} Soon it is gone.")
    versioned = NoteTexts.versioned

    async def delete_first(self: NoteTexts, entries: Any) -> Any:
        found = await versioned(self, entries)
        return [None if entry.note.id == goes else one for entry, one in zip(entries, found, strict=True)]

    monkeypatch.setattr(NoteTexts, "versioned", delete_first)
    assert ids(await brief(lithos)) == [stays]


async def test_externally_changed_note_is_shown_with_its_version(tmp_path: Path) -> None:
    put_note(tmp_path, "zebra.md", f"# Zebra\n\n{ZEBRA}\n")
    async with serving(tmp_path) as lithos:
        path = lithos.knowledge / "zebra.md"
        path.write_text(path.read_text().replace("lions", "LIONS"))
        (item,) = (await brief(lithos))["items"]
        assert "LIONS" in (await brief(lithos))["text"]
        assert (await lithos.read(item["id"]))["version"] == item["version"] == 2


async def test_activity_shows_notes_and_findings_on_the_query(lithos: Lithos) -> None:
    note = await lithos.create("Zebras", ZEBRA, agent="ann")
    await lithos.create("Bread", "Salt.", agent="bob")
    task = await create(lithos, "Other task")
    await lithos.call("lithos_finding_post", task_id=task, agent="cy", summary="zebra stripes found at night")
    text = (await brief(lithos))["text"]
    assert "## Recent changes" in text
    assert f"note created by ann: Zebras (`id={note}`)" in text
    assert "finding by cy: zebra stripes found at night" in text
    assert "bob" not in text
