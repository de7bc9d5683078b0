"""Compact briefings. They fit the budget, name sources and dates, and explain only on request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lithos.memory.briefing.compact import source_line
from lithos.search.embedding.tokenizer import load_pieces
from lithos.text.words.tokens import count_with
from tests.servers import Lithos, serving

TALK = """Ann: Where will the meeting be?

Ben: In the lighthouse of Cuxhaven, at noon, since the harbour office is closed.

Ann: See ya!
"""


@asynccontextmanager
async def briefing(tmp_path: Path, **server: Any) -> AsyncIterator[Lithos]:
    """Yield a server with a conversation, a note with a date, and twenty notes on the same subject."""
    async with serving(tmp_path, server={"answers": "compact"} | server) as lithos:
        await lithos.create("Meeting", TALK, metadata={"date": "2024-05-03"})
        await lithos.create("Harbour 2023-07-01", "The harbour office was painted green.")
        for number in range(20):
            await lithos.create(f"Harbour log {number}", f"Ship {number} came into the harbour. " * 30)
        yield lithos


def sent(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("explain", [False, True])
async def test_complete_answer_fits_the_budget(tmp_path: Path, explain: bool) -> None:
    """Behaviour 300."""
    count = count_with(load_pieces())
    async with briefing(tmp_path) as lithos:
        for budget in (200, 350, 500, 1_000, 2_000):
            for query in ("harbour ships", "where is the meeting", "xyzzy"):
                answer = await lithos.call("lithos_context", query=query, budget=budget, explain=explain)
                assert count(sent(answer)) <= budget, (budget, query)
                assert abs(answer["tokens"] - count(sent(answer))) <= 2
        large = await lithos.call("lithos_context", query="harbour ships", budget=2_000)
        assert large["tokens"] > 1_000


async def test_briefing_explanations_are_sent_only_on_request(tmp_path: Path) -> None:
    """Behaviour 302."""
    async with briefing(tmp_path) as lithos:
        plain = await lithos.call("lithos_context", query="harbour office", budget=1_000)
        assert set(plain) == {"text", "sources", "tokens", "receipt_id"}
        told = await lithos.call("lithos_context", query="harbour office", budget=1_000, explain=True)
        assert {"items", "dropped", "cursor"} <= set(told)
        assert told["items"][0]["reason"]
        since = await lithos.call("lithos_context", query="harbour", budget=500, since=told["cursor"])
        assert since["text"] == ""
        assert "sources" not in since


async def test_sources_map_each_number_to_a_note(tmp_path: Path) -> None:
    """docs/spec/context.md §1: the answer is compact."""
    async with briefing(tmp_path) as lithos:
        answer = await lithos.call("lithos_context", query="harbour ships", budget=1_000)
        for number, line in enumerate(answer["sources"], 1):
            mark, path = line.split(" ", 1)
            assert mark == f"[{number}]"
            assert f"### {mark} " in answer["text"]
            assert (await lithos.call("lithos_read", path=path))["path"] == path
        assert answer["text"].count("### [") >= len(answer["sources"])


def test_source_has_an_id_when_its_path_is_not_enough() -> None:
    """Attachments, and notes with a shortened path, are identified by their id."""
    assert source_line(3, "an-id", "a/b.md") == "[3] a/b.md"
    assert source_line(3, "an-id", "a/b.pdf", is_note=False) == "[3] an-id a/b.pdf"
    assert source_line(3, "an-id", f"{'a' * 300}.md").startswith("[3] an-id aaa")
    assert source_line(3, "an-id", "a\nb.md") == "[3] an-id a b.md"


async def test_excerpt_heading_contains_the_date_of_the_note(tmp_path: Path) -> None:
    """Behaviour 303."""
    async with briefing(tmp_path) as lithos:
        text = (await lithos.call("lithos_context", query="where is the meeting", budget=500))["text"]
        assert "### [1] Meeting (2024-05-03)" in text
        text = (await lithos.call("lithos_context", query="harbour in July 2023", budget=400))["text"]
        assert "### [1] Harbour 2023-07-01\n" in text


async def test_question_is_shown_with_its_reply(tmp_path: Path) -> None:
    """Behaviour 304."""
    async with briefing(tmp_path) as lithos:
        text = (await lithos.call("lithos_context", query="where is the meeting", budget=300))["text"]
        assert "Where will the meeting be?" in text
        assert "lighthouse of Cuxhaven" in text


@pytest.mark.parametrize(
    "server", [{"answers": "full"}, {"tools": "full"}, {"write_outcomes": "status"}], ids=str
)
async def test_full_briefing_answers_contain_every_key(tmp_path: Path, server: dict[str, str]) -> None:
    """docs/spec/context.md §1."""
    async with briefing(tmp_path, **server) as lithos:
        answer = await lithos.call("lithos_context", query="harbour", budget=500)
        assert list(answer)[:4] == ["text", "tokens", "budget", "items"]
