"""`search` and `fetch`, for clients that support only these two tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.values.principals import Principal
from lithos.search.tools_connector import in_words
from lithos.server.http.ports import compact_json
from lithos.server.mcp.tool_calls import encode_result
from tests.servers import Lithos, serving

CONNECTOR = {"server": {"tools": "connector"}}


async def answer_of(lithos: Lithos, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer to a client: one text, which equals the structured content."""
    result = await encode_result(await lithos.server.tools.call(tool, arguments))
    (block,) = result["content"]
    assert block == {"type": "text", "text": compact_json(result["structuredContent"])}
    found: dict[str, Any] = result["structuredContent"]
    return found


async def test_connector_profile_lists_only_search_and_fetch(tmp_path: Path) -> None:
    """behaviour 277"""
    async with serving(tmp_path, **CONNECTOR) as lithos:
        assert [spec.name for spec in lithos.server.tools.listed()] == ["search", "fetch"]


async def test_connector_tools_are_listed_last_for_oauth_callers(tmp_path: Path) -> None:
    """behaviour 277"""
    server = {"public_url": "https://notes.example.org", "tools": "core"}
    async with serving(tmp_path, server=server) as lithos:
        tools = lithos.server.tools
        by_token = [spec.name for spec in tools.acting_as(Principal("ci", "read")).listed()]
        by_oauth = [
            spec.name for spec in tools.acting_as(Principal("c", "read", "c", is_connector=True)).listed()
        ]
        assert by_oauth == [*by_token, "search", "fetch"]
        note = await lithos.create("Beacon", "It shines.")
        found = await answer_of(lithos, "fetch", id=note)
        assert found["url"] == f"https://notes.example.org/console/notes/{note}"


async def test_connector_search_returns_ten_rows_and_warnings_in_words(tmp_path: Path) -> None:
    """behaviour 277"""
    async with serving(tmp_path, **CONNECTOR) as lithos:
        for number in range(12):
            await lithos.create(f"Beacon {number}", "The beacon shines at night.")
        found = await answer_of(lithos, "search", query="beacon")
        assert list(found) == ["results"]
        assert len(found["results"]) == 10
        assert {tuple(row) for row in found["results"]} == {("id", "title", "url", "text")}
        assert "shines" in found["results"][0]["text"]


async def test_long_fetched_note_explains_how_to_continue(tmp_path: Path) -> None:
    """behaviour 277: the answer stays within its size limit."""
    async with serving(tmp_path, server={"tools": "connector", "max_answer_chars": 6_000}) as lithos:
        text = " ".join(f"word{number}" for number in range(3_000))
        note = await lithos.create("Long", text)
        seen, fetched = "", note
        for _ in range(100):
            found = await answer_of(lithos, "fetch", id=fetched)
            assert len(compact_json(found)) <= 6_000
            assert (found["id"], found["title"]) == (note, "Long")
            assert {"path", "tags", "updated_at", "version"} <= found["metadata"].keys()
            part, more, rest = found["text"].partition("\n\n[There is more: fetch ")
            seen += f"{part.removesuffix('...')} "
            if not more:
                break
            fetched = rest.rstrip("]")
        assert seen.split() == text.split()


async def test_non_numeric_offset_in_id_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, **CONNECTOR) as lithos:
        note = await lithos.create()
        for wrong in ("x", "-1", "9" * 12):
            assert (await answer_of(lithos, "fetch", id=f"{note}#{wrong}"))["code"] == "invalid_input"
        assert (await answer_of(lithos, "fetch", id="nothing"))["code"] == "doc_not_found"


@pytest.mark.parametrize("kind", ["contradicted", "superseded"])
def test_warnings_are_returned_as_sentences(kind: str) -> None:
    """behaviour 277: the warnings are sentences in front of the text."""
    told = in_words([{"kind": kind, "reason": "a newer note says otherwise"}])
    assert told == f"[Warning: {kind}. a newer note says otherwise]\n"
    assert in_words(()) == ""
