"""Past sessions in the tools of notes: search, read, briefings, and the source of new notes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from lithos.events.reading.told_projects import ToldProjects
from lithos.kernel.values.principals import OWNER, Principal
from lithos.notes.service.row_kinds import SESSIONS_OFF
from lithos.notes.settings import AgentsConfig
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.model.session import session_id
from tests.servers import Lithos, refusal
from tests.sessions.served import DECISION, NOW, QUESTION, SECRET, serving_sessions
from tests.sessions.transcripts import answer, prompt

SHOP = session_id("claude-code", "shop")
LONG = session_id("claude-code", "long")
FILLER = ["bread", "tides", "violins", "moss", "lighthouses", "chess", "glaciers", "ink", "bees", "sails"]


@asynccontextmanager
async def _served(folder: Path, **more: Any) -> AsyncIterator[Lithos]:
    async with serving_sessions(folder, **more) as lithos:
        await lithos.create("Cookies", "The login cookie is set by the front door.")
        for subject in FILLER:
            await lithos.create(subject.title(), f"A page about {subject} and the login of visitors.")
        await lithos.server.searchable()
        yield lithos


@pytest.fixture
def served(tmp_path: Path) -> AbstractAsyncContextManager[Lithos]:
    return _served(tmp_path)


async def _rows(lithos: Lithos, query: str = QUESTION, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await lithos.call("lithos_search", query=query, **more))["results"]
    return found


# -- search -----------------------------------------------------------------------------------------


async def test_search_for_sessions_returns_turns(served: Lithos) -> None:
    row = (await _rows(served, kinds=["session"]))[0]
    assert row.pop("score") > 0.5
    assert row == {
        "kind": "session",
        "id": SHOP,
        "turn": 2,
        "title": "Why are customers signed out?",
        "snippet": DECISION,
        "match": "strong",
        "client": "claude-code",
        "project": "shop",
        "who": "assistant",
        "when": "2026-11-28T09:01:00.000000+00:00",
    }


async def test_search_for_sessions_can_be_limited_and_paged(served: Lithos) -> None:
    every = await _rows(served, "invoices cookie biscuits", kinds=["session"])
    assert len(every) > 2
    first = await _rows(served, "invoices cookie biscuits", kinds=["session"], limit=1)
    second = await _rows(served, "invoices cookie biscuits", kinds=["session"], limit=1, offset=1)
    assert [row["turn"] for row in (*first, *second)] == [row["turn"] for row in every[:2]]
    bakery = await _rows(served, "invoices cookie biscuits", kinds=["session"], project="bakery")
    assert {row["project"] for row in bakery} == {"bakery"}


async def test_ranks_of_notes_are_the_same_with_and_without_sessions(tmp_path: Path) -> None:
    """Behaviour 330: the whole answers are compared, with every digit of every score."""
    asked: list[dict[str, Any]] = [
        {"query": query, "limit": limit} | more
        for query in (QUESTION, "biscuits", "visitors of the lighthouse", "nothing like this")
        for limit in (1, 5, 20)
        for more in ({}, {"kinds": ["note"]}, {"mode": "fulltext"}, {"mode": "semantic"}, {"offset": 2})
    ]
    told: list[list[Any]] = []
    for is_added in (False, True):
        async with serving_sessions(tmp_path, is_added=is_added) as lithos:
            if not is_added:
                await lithos.create("Cookies", "The login cookie is set by the front door.")
                for subject in FILLER:
                    await lithos.create(subject.title(), f"A page about {subject} and the login of visitors.")
                await lithos.server.searchable()
            assert bool(await _rows(lithos, kinds=["session"])) == is_added
            told.append([await lithos.call("lithos_search", **each) for each in asked])
    assert any(each["results"] for each in told[0])
    assert json.dumps(told[0]) == json.dumps(told[1])


async def test_search_for_notes_and_sessions_keeps_the_order_of_notes(served: Lithos) -> None:
    notes = [row["id"] for row in await _rows(served, kinds=["note"], limit=20)]
    both = await _rows(served, kinds=["note", "session"], limit=5)
    assert [row["id"] for row in both[:4]] == notes[:4]
    assert [(row["id"], row["turn"]) for row in both[4:]] == [(SHOP, 2)]
    following = await _rows(served, kinds=["note", "session"], limit=5, offset=5)
    assert [row["id"] for row in following] == notes[4:9]


async def test_filters_of_notes_exclude_sessions(served: Lithos) -> None:
    for more in ({"tags": ["x"]}, {"author": "ann"}, {"path_prefix": "a/"}, {"mode": "graph"}):
        assert await _rows(served, kinds=["session"], **more) == []


async def test_search_without_added_transcripts_says_what_to_do(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path, is_added=False) as lithos:
        answered = await lithos.call("lithos_search", query=QUESTION, kinds=["session"])
        assert answered == {"results": [], "message": SESSIONS_OFF}
        assert refusal(await lithos.call("lithos_read", id=SHOP), "doc_not_found") == SESSIONS_OFF
        unknown = await lithos.call("lithos_search", query=QUESTION, kinds=["sessions"])
        assert "note, attachment and session" in refusal(unknown, "invalid_input")


# -- read -------------------------------------------------------------------------------------------


async def test_turn_is_read_with_its_neighbours(served: Lithos) -> None:
    read = await served.call("lithos_read", id=SHOP, turn=2)
    assert (read["turn"], read["turns"], read["shown"], read["project"]) == (2, 4, [1, 4], "shop")
    assert read["content"].startswith("[turn 1] user, 2026-11-28T09:00\nWhy are customers signed out?\n\n")
    assert f"[turn 2] assistant, 2026-11-28T09:01\n{DECISION}\n\n[turn 3] user" in read["content"]
    assert "next_turn" not in read


@pytest.mark.parametrize("address", [f"{SHOP}#2", f"session:{SHOP}#2", "session:shop@2026-11-28T09:30:00Z"])
async def test_turn_is_read_by_its_address(tmp_path: Path, address: str) -> None:
    async with serving_sessions(tmp_path) as lithos:
        read = await lithos.call("lithos_read", id=address)
        assert (read["id"], read["turn"]) == (SHOP, 2)


async def test_long_session_is_read_in_steps(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        said = [prompt(f"Prompt {number} {'x' * 200}", "long") + answer(f"Answer {number}", "long")
                for number in range(10)]  # fmt: skip
        (tmp_path / "transcripts" / "long.jsonl").write_text("".join(said))
        await lithos.server.get(SessionFollower).caught_up()
        seen, turn = list[int](), 3
        while turn:
            read = await lithos.call("lithos_read", id=LONG, turn=turn)
            seen += range(read["shown"][0], read["shown"][1] + 1)
            turn = read.get("next_turn", 0)
        assert sorted(set(seen)) == list(range(1, 21))
        part = await lithos.call("lithos_read", id=LONG, max_length=60)
        rest = await lithos.call("lithos_read", id=LONG, offset=part["next_offset"])
        whole = await lithos.call("lithos_read", id=LONG)
        joined = part["content"].removesuffix("...") + rest["content"]
        assert (part["truncated"], joined) == (True, whole["content"])


async def test_read_of_a_wrong_turn_says_what_exists(served: Lithos) -> None:
    beyond = refusal(await served.call("lithos_read", id=SHOP, turn=9), "doc_not_found")
    assert beyond == f"Session {SHOP} has 4 turns, so it has no turn 9."
    assert "numbered from 1" in refusal(await served.call("lithos_read", id=SHOP, turn=0), "invalid_input")
    assert "lithos_search" in refusal(await served.call("lithos_read", id="ses_0"), "doc_not_found")
    assert "ses_01#x" in refusal(await served.call("lithos_read", id="ses_01#x"), "invalid_input")


async def test_secret_in_a_prompt_is_in_no_answer(served: Lithos) -> None:
    read = await served.call("lithos_read", id=SHOP)
    found = await served.call("lithos_search", query=f"The key is {SECRET}", kinds=["session"])
    briefed = await served.call("lithos_context", query="Which key do the invoices need?")
    for told in (read, found, briefed):
        assert SECRET not in json.dumps(told)
    assert "The key is" in read["content"]


# -- reach ------------------------------------------------------------------------------------------


async def test_agent_with_a_scope_sees_no_foreign_session(tmp_path: Path) -> None:
    agents = AgentsConfig(
        agents={"baker": {"write": ("bakery/",)}}, projects={"shop/": "shop", "bakery/": "bakery"}
    )
    async with serving_sessions(tmp_path, agents=agents) as lithos:
        caller = Principal("token", "write", agent="baker")

        async def ask(tool: str, **arguments: Any) -> Any:
            return await lithos.server.tools.call(tool, {"agent_id": "baker", **arguments}, caller)

        found = await ask("lithos_search", query="cookie biscuits invoices", kinds=["session"])
        assert {row["project"] for row in found["results"]} == {"bakery"}
        assert "Unknown session" in refusal(await ask("lithos_read", id=SHOP), "doc_not_found")
        assert DECISION not in json.dumps(await ask("lithos_context", query=QUESTION))
        assert DECISION in json.dumps(await lithos.call("lithos_context", query=QUESTION))


# -- briefings --------------------------------------------------------------------------------------


async def test_briefing_quotes_the_turn_that_answers(served: Lithos) -> None:
    briefed = await served.call("lithos_context", query=QUESTION)
    head = "## Earlier sessions\n- 2026-11-28, claude-code, shop, Why are customers signed out? "
    assert f"{head}(`id={SHOP}#2`): {DECISION}\n" in briefed["text"]


@pytest.mark.parametrize(
    "more",
    [
        {"query": "How do I repaint a wooden fence?"},
        {"kinds": ["note"]},
        {"tags": ["cookies"]},
        {"project": "bakery"},
        {"sections": ["activity"]},
        {"sections": ["pinned", "notes"]},
    ],
)
async def test_briefing_has_no_sessions(served: Lithos, more: dict[str, Any]) -> None:
    briefed = await served.call("lithos_context", **{"query": QUESTION} | more)
    assert "Earlier sessions" not in briefed["text"]


async def test_sessions_take_a_fifth_of_the_budget_at_most(tmp_path: Path) -> None:
    async with _served(tmp_path) as lithos:
        long = "The login cookie expires at midnight UTC, decided for shops. " + "More words on it. " * 200
        (tmp_path / "transcripts" / "long.jsonl").write_text(prompt(long, "long"))
        await lithos.server.get(SessionFollower).caught_up()
        for budget in (200, 400, 2_000):
            briefed = await lithos.call("lithos_context", query=QUESTION, budget=budget)
            section = briefed["text"].partition("## Earlier sessions")[2].partition("\n\n")[0]
            assert briefed["tokens"] <= budget
            assert len(section) <= budget  # a token has more than five characters here


async def test_running_session_is_not_in_its_own_briefing(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        own = prompt(QUESTION, "own").replace("2026-11-28T09:00", "2026-11-29T11:59")
        (tmp_path / "transcripts" / "own.jsonl").write_text(own)
        await lithos.server.get(SessionFollower).caught_up()
        briefed = (await lithos.call("lithos_context", query=QUESTION))["text"]
        assert session_id("claude-code", "own") not in briefed
        assert session_id("claude-code", "own") in {r["id"] for r in await _rows(lithos, kinds=["session"])}


async def test_briefing_is_the_same_without_a_matching_session(tmp_path: Path) -> None:
    """Behaviour 330: the answer of a briefing has the same bytes."""
    told = []
    for is_added in (False, True):
        async with serving_sessions(tmp_path, is_added=is_added) as lithos:
            if not is_added:
                await lithos.create("Fences", "Repaint a wooden fence in May.")
                await lithos.server.searchable()
            briefed = await lithos.call("lithos_context", query="How do I repaint a wooden fence?")
            told.append((briefed["text"], briefed["tokens"], briefed["items"], briefed["dropped"]))
    assert told[0] == told[1]


# -- sources of notes -------------------------------------------------------------------------------


async def _source(lithos: Lithos, caller: Principal = OWNER, **more: Any) -> str | None:
    given = {"title": "Kept", "content": "Kept text.", "agent": "claude", **more}
    written = await lithos.server.tools.call("lithos_write", given, caller)
    assert written is not None
    read = await lithos.read(written["id"])
    found: str | None = read["metadata"].get("source")
    return found


async def test_note_names_the_session_of_its_call(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        source = await _source(lithos, evolve(OWNER, session="shop"))
        assert source == f"session:{SHOP}@2026-11-29T12:00:00Z"
        assert (await lithos.call("lithos_read", id=source))["turn"] == 4


async def test_note_names_the_session_that_a_hook_named(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        lithos.server.get(ToldProjects).tell("shop", "claude", "shop")
        assert await _source(lithos) == f"session:{SHOP}@2026-11-29T12:00:00Z"
        assert await _source(lithos, title="Other", agent="codex") is None


async def test_agent_with_two_sessions_names_the_running_one(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        for native in ("shop", "bakery"):
            lithos.server.get(ToldProjects).tell(native, "claude", native)
        assert await _source(lithos) is None
        at = (NOW - timedelta(minutes=2)).isoformat()[:16]
        line = answer("More biscuits.", "bakery").replace("2026-11-28T09:01", at)
        with (tmp_path / "transcripts" / "bakery.jsonl").open("a") as file:
            file.write(line)
        await lithos.server.get(SessionFollower).caught_up()
        found = await _source(lithos, title="Other")
        assert found == f"session:{session_id('claude-code', 'bakery')}@2026-11-29T12:00:00Z"


async def test_source_that_was_given_stays(tmp_path: Path) -> None:
    async with serving_sessions(tmp_path) as lithos:
        caller = evolve(OWNER, session="shop")
        assert await _source(lithos, caller, source_task="task-1") == "task-1"
        pasted = "---\ntitle: Mine\nsource: my-own\n---\n\nText.\n"
        assert await _source(lithos, caller, title="Mine", content=pasted) == "my-own"
        note = await lithos.create("Old", "Old text.")
        changed = {"id": note, "content": "New text.", "agent": "claude"}
        await lithos.server.tools.call("lithos_write", changed, caller)
        assert (await lithos.read(note))["metadata"]["source"] is None


@pytest.mark.parametrize("why", ["setting", "person", "unknown session"])
async def test_note_has_no_source(tmp_path: Path, why: str) -> None:
    async with serving_sessions(tmp_path, sessions={"link_notes": why != "setting"}) as lithos:
        caller = evolve(OWNER, session="unknown" if why == "unknown session" else "shop")
        assert await _source(lithos, evolve(caller, is_person=why == "person")) is None
