"""Behaviours 256 and 257 on complete servers: answers within the size limit, and useful snippets."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.writing.actor_writer import Writer
from tests.memory.tools.task_calls import create
from tests.servers import Clock, Lithos, put_note, refusal, serving, take_up

log = logging.getLogger(__name__)
LIMIT = 40_000
PARAGRAPH = (
    "The striped zebra grazes on the savanna and looks out for lions; it runs when one comes near.\n\n"
)


def size(answer: Any) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def make_vault(data: Path, notes: int = 6_000) -> None:
    """Create a note of 400,000 characters, a note with 6,000 links, and one note for each link.

    Of the linked notes, 300 link to the second note by its path.
    """
    long = "".join(f"## Part {n}\n\n{PARAGRAPH}" for n in range(400_000 // (len(PARAGRAPH) + 14)))
    put_note(data, "long.md", f"# Long\n\n{long.ljust(400_000, 'z')}")
    put_note(data, "linking.md", "# Linking\n\n" + "\n".join(f"- [[zebra {n}]]" for n in range(6_000)))
    for number in range(notes):
        by_path = "[there](../linking.md)" if number < 300 else ""
        put_note(data, f"n/{number}.md", f"# zebra {number}\n\nA zebra. [[Linking]] #zebra {by_path}\n")


async def biggest(lithos: Lithos) -> dict[str, int]:
    """Call every tool without limits.

    Return the size of the largest answer of each tool in JSON characters.
    """
    call, seen = lithos.server.tools.call, dict[str, int]()

    async def ask(name: str, /, **arguments: Any) -> Any:
        answer = await call(f"lithos_{name}", arguments)
        seen[f"lithos_{name}"] = max(seen.get(f"lithos_{name}", 0), size(answer))
        return answer

    linking = (await ask("read", path="linking", max_length=0))["id"]
    long = await ask("read", title="long", max_length=0)
    assert long["truncated"]
    await ask("write", title="W", content="w", agent="ann", metadata={"k": "v" * 60_000})
    many = [f"{number} {'t' * 100}" for number in range(1_000)]
    heavy = await ask("write", title="Heavy", content="zebra", agent="ann", tags=many, derived_from_ids=[])
    await ask("read", id=heavy["id"])
    for mode in ("hybrid", "fulltext", "semantic", "graph"):
        await ask("search", query="zebra", mode=mode, limit=50, seed_ids=[linking] if mode == "graph" else [])
    await ask("search", query="zebra", mode="hybrid", limit=50, tags=many[:5])
    await ask("retrieve", query="zebra", limit=50, surface_conflicts=True)
    await ask("context", query="zebra")
    await ask("list", limit=100_000)
    await ask("cache_lookup", query="Long", max_length=0, source_url=None)
    await ask("related", id=linking, depth=3)
    await ask("tags")
    for number in range(300):
        await ask("edge_upsert", from_id=linking, to_id=f"x{number}", type="supports", weight=1,
                  namespace="n", evidence={"quote": "q" * 400})  # fmt: skip
        if number < 150:
            await ask("agent_register", id=f"agent {number}", metadata={"k": "v" * 500})
    await ask("edge_list")
    await ask("related", id=linking)
    await ask("agent_list")
    await ask("agent_register", id="big", metadata={"k": "v" * 60_000})
    await ask("agent_info", id="big")
    await ask("agent_archive", id="big", agent="ann")
    hub = await create(lithos, "Hub", description="d" * 20_000, metadata={"k": "v" * 60_000})
    epic = await create(lithos, "Epic", task_type="epic")
    for number in range(250):
        await ask("task_create", title=f"T{number}", agent="ann", description="d" * 300, depends_on=[hub],
                  parent_task_id=epic)  # fmt: skip
        await ask("finding_post", task_id=hub, agent="ann", summary="s" * 1_000)
    for name in ("list", "status", "ready"):
        await ask(f"task_{name}")
    await ask("task_ready", limit=1_000)
    await ask("task_blocked", limit=1_000)
    await ask("task_children", task_id=epic)
    await ask("task_edge_list", task_id=hub)
    await ask("task_get", task_id=hub)
    await ask("finding_list", task_id=hub)
    spawned = await ask("task_spawn", source_task_id=hub, title="S", agent="ann")
    given = await ask("task_next", agent="ann", task_id=hub)
    assert given["task"]["id"] == hub
    await ask("task_claim", task_id=hub, aspect="a", agent="ann")
    await ask("task_renew", task_id=hub, aspect="a", agent="ann")
    await ask("task_release", task_id=hub, aspect="a", agent="ann")
    await ask("task_update", task_id=hub, agent="ann", tags=["x"])
    await ask("task_edge_upsert", from_task_id=hub, to_task_id=spawned["task_id"], type="blocks", agent="ann")
    done = await ask("task_complete", task_id=hub, agent="ann", outcome="o" * 20_000)
    assert (len(done["unblocked"]), done["unblocked_total"]) == (200, 251)
    again = await ask("task_reopen", task_id=hub, agent="ann")
    assert again["reblocked_total"] == 251
    await ask("task_edge_delete", from_task_id=hub, to_task_id=spawned["task_id"], type="blocks", agent="ann")
    await ask("task_cancel", task_id=hub, agent="ann")
    await ask("node_stats", node_id=linking)
    await ask("stats")
    await ask("note_update", id=linking, agent="ann", metadata={"k": "v" * 60_000})
    sections = "".join(f"## {number} {'s' * 300}\n\ntext\n\n" for number in range(400))
    await ask("write", id=heavy["id"], agent="ann", content=sections)
    await ask("read", id=heavy["id"], outline=True)
    await ask("note_edit", id=heavy["id"], agent="ann", op="append", section="s", text="x")
    await ask("note_edit", id=heavy["id"], agent="ann", op="append", text="y" * 60_000, expected_hash="0")
    for number in range(30):
        await ask("note_edit", id=heavy["id"], agent="ann", op="append", text=f"{number} {'z' * 5_000}")
    await ask("history", id=heavy["id"], limit=1_000)
    await ask("history", id=heavy["id"], diff="1..3")
    await ask("history", changed_by="ann", limit=1_000)
    await ask("restore", id=heavy["id"], version=1, agent="ann")
    for number in range(210):
        await ask("write", title=f"Resting {number} {'t' * 900}", content="r", agent="ann",
                  derived_from_ids=[heavy["id"]])  # fmt: skip
    hit = await ask("impact", id=heavy["id"], action="quarantine", agent="ann", reason="r" * 1_000,
                    open_tasks=True)  # fmt: skip
    assert hit["truncated"]
    assert len(hit["task_ids"]) == 200
    rest = await ask("impact", id=heavy["id"], offset=hit["next_offset"])
    assert rest["dependents"][0]["id"] not in {row["id"] for row in hit["dependents"]}
    await ask("read", id=linking)
    moved = await ask("note_move", id=linking, path="elsewhere", agent="ann")
    assert (len(moved["rewritten"]), moved["rewritten_total"]) == (200, 300)
    edge = (await call("lithos_edge_list", {}))["edges"][0]["edge_id"]
    await ask("conflict_resolve", edge_id=edge, resolution="merged", resolver="ann")
    await ask("links", id=linking, depth=3)
    await ask("semantic", query="zebra", limit=50)
    await ask("provenance", id=linking)
    lithos.server.get(Writer).scopes = WriteScopes(agents={"bot": Scope((), ("**",))})
    changed = (lithos.knowledge / "long.md").read_text().replace("zebra", "z")
    proposed = await ask("write", id=long["id"], agent="bot", content=changed)
    for number in range(99):
        await ask("write", title=f"Proposed {number} {'t' * 900}", content="p", agent="bot")
    page = await ask("proposals", proposed_by="bot", limit=1_000)
    assert page["total"] == 100
    await ask("proposals", id=proposed["proposal_id"])
    await ask("proposal_decide", id=proposed["proposal_id"], decision="reject", by="ann", reason="r" * 1_000)
    await ask("proposal_withdraw", id=page["proposals"][0]["id"], agent="bot")
    for number in range(100):
        name = f"long.sync-conflict-20260304-{number:06}-ABCDEFG.md"
        (lithos.knowledge / name).write_text(changed if number else changed + "\nMore.\n")
        await take_up(lithos, name)
    listed = await ask("conflict_copies", limit=1_000)
    assert listed["total"] == 100
    await ask("conflict_copies", path=listed["copies"][0]["path"])
    await ask("conflict_copy_merge", path=listed["copies"][0]["path"], by="ann")
    await ask("conflict_copy_keep", path=listed["copies"][1]["path"])
    for number in range(100):
        await lithos.server.tools.call(
            "lithos_read", {"id": long["id"], "agent_id": f"reader {number} {'r' * 150}"}
        )
    assert len((await ask("worth", days=366))["rows"]) > 50
    care = await ask("care")
    while care["status"] == "looking":
        care = await ask("care")
    assert care["rows"]
    await ask("care_tasks", by="ann")
    for number in range(300):
        await ask("task_create", title="t", agent="ann", metadata={"project": f"{number} {'p' * 280}"})
    await ask("projects")
    if "lithos_session_forget" in lithos.server.tools._by_name:
        await ask("session_show", id="ses_0000000000000000")
        await ask("session_forget", id="ses_0000000000000000")
    await ask("delete", id=linking, agent="ann")
    return seen


@pytest.mark.slow
async def test_every_tool_answer_stays_within_the_size_limit(tmp_path: Path) -> None:
    """behaviour 256"""
    make_vault(tmp_path)
    server = {"tools": "full", "legacy_tools": True}
    async with serving(tmp_path, server=server) as lithos:
        seen = await biggest(lithos)
        assert seen.keys() == lithos.server.tools._by_name.keys()
    log.info("largest answers, in characters: %s", json.dumps(seen))
    assert max(seen.values()) <= LIMIT


async def test_long_note_can_be_read_in_parts(tmp_path: Path) -> None:
    """behaviour 256"""
    make_vault(tmp_path, notes=0)
    async with serving(tmp_path) as lithos:
        first = await lithos.call("lithos_read", title=" LONG ", max_length=0)
        assert size(first) <= LIMIT
        assert first["truncated"] is True
        (warning,) = first["warnings"]
        assert (warning["kind"], warning["length"]) == ("cut", 400_000)
        assert "offset" in warning["message"]
        parts, page, begin = list[str](), first, 0
        while "next_offset" in page:
            parts.append(page["content"][: page["next_offset"] - begin])
            begin = page["next_offset"]
            page = await lithos.read(first["id"], offset=begin)
        whole = "".join([*parts, page["content"]])
        assert len(whole) == 400_000
        assert whole[first["next_offset"] :].startswith("\n\n")
        assert whole.startswith("## Part 0")
        assert whole.endswith("zzz")
        short = await lithos.read(first["id"], max_length=100, offset=200)
        assert (short["truncated"], short["next_offset"] > 200, short["warnings"][0]["length"]) == (
            True, True, 400_000
        )  # fmt: skip
        beyond = await lithos.read(first["id"], offset=10**9)
        assert (beyond["content"], beyond["truncated"]) == ("", False)
        linking = await lithos.call("lithos_read", path="linking.md")
        assert (len(linking["links"]), linking["links_total"]) == (200, 6_000)
        hit = await lithos.call("lithos_cache_lookup", query="Long", source_url=None, min_confidence=0)
        assert hit["document"] is None or len(hit["document"]["content"]) <= 4_000
        refusal(await lithos.call("lithos_read", id=first["id"], offset=-1), "invalid_input")


async def test_clients_with_status_outcomes_get_uncut_answers(tmp_path: Path) -> None:
    """docs/spec/vault.md §4: these clients set `write_outcomes: status`."""
    make_vault(tmp_path, notes=0)
    async with serving(tmp_path, server={"write_outcomes": "status"}) as lithos:
        read = await lithos.call("lithos_read", title="Long")
        assert (len(read["content"]), read["truncated"]) == (400_000, False)
        assert len((await lithos.call("lithos_read", title="Linking"))["links"]) == 6_000
    async with serving(tmp_path, server={"max_answer_chars": 5_000}) as lithos:
        assert size(await lithos.call("lithos_read", title="Linking")) <= 5_000


async def test_unique_title_is_accepted_in_place_of_an_id(tmp_path: Path) -> None:
    """docs/spec/vault.md §4"""
    put_note(tmp_path, "a/log.md", "---\ntitle: Log\n---\none\n")
    put_note(tmp_path, "b/log.md", "---\ntitle: log\n---\ntwo\n")
    async with serving(tmp_path) as lithos:
        await lithos.create("Only one", "x")
        assert (await lithos.call("lithos_read", title="only ONE"))["title"] == "Only one"
        message = refusal(await lithos.call("lithos_read", title="Log"), "invalid_input")
        assert "'a/log.md'" in message
        assert "lithos_search" in refusal(await lithos.call("lithos_read", title="None"), "doc_not_found")


async def test_next_rows_can_be_read_with_offset(tmp_path: Path) -> None:
    """docs/spec/vault.md §4: every tool that lists rows accepts `offset`."""
    async with serving(tmp_path, server={"tools": "full"}, clock=Clock()) as lithos:
        for number in range(7):
            await lithos.create(f"Zebra {number}", f"zebra {'stripes ' * number}")
            await create(lithos, f"Task {number}")
        for tool, key, more in (
            ("search", "results", {"query": "zebra", "mode": "hybrid"}),
            ("search", "results", {"query": "zebra", "mode": "fulltext"}),
            ("search", "results", {"query": "zebra", "mode": "semantic", "threshold": 0}),
            ("retrieve", "results", {"query": "zebra"}),
            ("list", "items", {}),
            ("task_list", "tasks", {}),
            ("task_ready", "tasks", {}),
        ):
            whole = (await lithos.call(f"lithos_{tool}", **more))[key]
            assert len(whole) == 7, tool
            later = (await lithos.call(f"lithos_{tool}", **more, offset=3))[key]
            assert [row["id"] for row in later] == [row["id"] for row in whole[3:]], (tool, more)
        page = await lithos.call("lithos_task_ready", limit=2, offset=4)
        assert (len(page["tasks"]), page["total"]) == (2, 7)
        message = refusal(await lithos.call("lithos_search", query="zebra", offset=5_000), "invalid_input")
        assert "1,000" in message


async def test_rows_are_sorted_by_score_and_contain_the_key_match(lithos: Lithos) -> None:
    """behaviour 257"""
    for number in range(12):
        await lithos.create(f"N{number}", f"zebra stripes {'filler ' * number} herd [[N{(number + 1) % 12}]]")
    for tool, more in (
        ("search", {"mode": "hybrid"}),
        ("search", {"mode": "fulltext"}),
        ("search", {"mode": "semantic"}),
        ("search", {"mode": "graph"}),
        ("retrieve", {}),
    ):
        rows = (await lithos.call(f"lithos_{tool}", query="zebra herd", limit=12, **more))["results"]
        assert rows
        scores = [row["score"] for row in rows]
        assert scores == sorted(scores, reverse=True), (tool, more)
        assert all(row["match"] in ("strong", "fair", "weak") for row in rows), (tool, more)
        nonsense = await lithos.call(f"lithos_{tool}", query="qwxzv plonk", limit=12, **more)
        assert {row["match"] for row in nonsense["results"]} <= {"weak"}


async def test_snippets_contain_the_answering_passage(lithos: Lithos) -> None:
    """behaviour 257"""
    badge = "[![build](https://img.org/zebra.svg)](https://ci.org)\n\n%% zebra comment %%\n<!-- zebra -->\n\n"
    note = await lithos.create(
        "Zebra", badge + "Welcome.\n\n" + "filler words " * 60 + "\n\nThe zebra has stripes against flies."
    )
    other = await lithos.create("Zebra herds", badge + "Animals on the savanna live in groups of ten.")
    for mode in ("hybrid", "fulltext", "semantic", "graph"):
        rows = (await lithos.call("lithos_search", query="why stripes zebra", mode=mode))["results"]
        snippets = {row["id"]: row["snippet"] for row in rows}
        if mode != "semantic":
            assert "stripes against flies" in snippets[note], mode
        if other in snippets:
            assert "live in groups" in snippets[other], mode
        for snippet in snippets.values():
            assert "comment" not in snippet
            assert "svg" not in snippet


async def test_query_syntax_error_names_position_and_alternative(lithos: Lithos) -> None:
    """docs/spec/vault.md §4"""
    await lithos.create("Zebra", "zebra")
    for query, position, reason in (
        ('zebra "herd', 7, "quotation mark"), ("(zebra", 1, "parenthesis"), ("zebra)", 6, "parenthesis"),
        ("+zebra AND", 11, "word is missing"), ("x nope:zebra", 3, "unknown field 'nope'"),
        ("  -", 3, "word"),
    ):  # fmt: skip
        answer = await lithos.call("lithos_search", query=query, mode="fulltext")
        assert list(answer) == ["results", "message"]
        assert answer["results"] == []
        assert f"at character {position}:" in answer["message"], answer
        assert reason in answer["message"]
        assert "mode=hybrid" in answer["message"]
        listed = await lithos.call("lithos_list", content_query=query)
        assert (listed["items"], listed["total"]) == ([], 0)
        assert f"at character {position}:" in listed["message"]
