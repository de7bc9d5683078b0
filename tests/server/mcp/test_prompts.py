"""Prompts in all protocol versions (behaviours 204, 206)."""

from __future__ import annotations

from lithos.server.mcp.server import INSTRUCTIONS
from lithos.server.mcp.trigger import TRIGGER
from tests.server.whole import VERSIONS, SseSession, whole_server


async def test_prompts_are_listed_and_rendered(tmp_path) -> None:
    """behaviours 204, 206"""
    async with whole_server(tmp_path) as whole:
        for version in VERSIONS:
            listed = (await whole.result(version, "prompts/list"))["prompts"]
            assert {
                row["name"]: [(a["name"], a["required"]) for a in row["arguments"]] for row in listed
            } == {
                "research-first": [("topic", True), ("max_age_hours", False)],
                "handoff": [("task_id", True), ("agent", True)],
            }
            topic = {"topic": "日本"}
            got = await whole.result(version, "prompts/get", name="research-first", arguments=topic)
            (message,) = got["messages"]
            assert (message["role"], message["content"]["type"]) == ("user", "text")
            assert message["content"]["text"].startswith("Find out: 日本\n")
            for name, arguments in (("nothing", {}), ("handoff", {"task_id": "t"})):
                error = await whole.error(version, "prompts/get", name=name, arguments=arguments)
                assert error["code"] == -32602
                assert name in error["message"]


async def test_prompts_are_available_in_sessions(tmp_path) -> None:
    """behaviour 206"""
    async with whole_server(tmp_path) as whole, SseSession.open(whole) as session:
        assert (await session.greet("2024-11-05"))["prompts"] == {"listChanged": False}
        arguments = {"task_id": "t-1", "agent": "ada"}
        answer = await session.ask("prompts/get", name="handoff", arguments=arguments)
        assert 'task_id="t-1"' in answer["result"]["messages"][0]["content"]["text"]


def test_instructions_are_short_and_explain_search_write_and_claim() -> None:
    """docs/spec/mcp.md: clients may cut the text, so it begins with the moment in which to call Lithos"""
    assert len(INSTRUCTIONS) < 2_000
    assert INSTRUCTIONS.startswith(f"{TRIGGER}: ")
    assert "filters nothing" in INSTRUCTIONS
    for tool in ("context", "cache_lookup", "retrieve", "search", "write", "task_claim", "task_complete"):
        assert f"lithos_{tool}" in INSTRUCTIONS
