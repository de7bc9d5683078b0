"""Effects of `access_scope`, as SECURITY.md and the specification describe them (behaviour 395)."""

from __future__ import annotations

from pathlib import Path

from tests.servers import Lithos

ROOT = Path(__file__).parents[3]


async def test_access_scope_hides_notes_from_suggestions_without_locking_them(lithos: Lithos) -> None:
    """behaviour 395"""
    await lithos.create("Mine", "the quetzal secret", agent="ann", access_scope="agent_private")
    for agent, offered in (("ann", ["Mine"]), ("ben", [])):
        retrieved = await lithos.call("lithos_retrieve", query="quetzal", agent_id=agent)
        assert [row["title"] for row in retrieved["results"]] == offered
        briefing = await lithos.call("lithos_context", query="quetzal", agent_id=agent)
        assert ("quetzal secret" in str(briefing)) == bool(offered)
        found = await lithos.call("lithos_search", query="quetzal", agent_id=agent)
        assert [row["title"] for row in found["results"]] == ["Mine"]
        assert "secret" in (await lithos.call("lithos_read", path="mine.md", agent_id=agent))["content"]
    assert await lithos.listed() == ["Mine"]


def test_documentation_says_that_access_scope_is_not_a_lock() -> None:
    """behaviour 395"""
    for page, words in (("SECURITY.md", "not access control"), ("docs/spec/search.md", "not access control")):
        assert words in " ".join((ROOT / page).read_text(encoding="utf-8").split()), page
