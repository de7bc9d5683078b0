"""Titles of all kinds: stored as given, turned into slugs, changed (notes spec, sections 2 and 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers import refusal, serving


async def test_a_new_title_moves_the_slug_but_not_the_file(tmp_path: Path) -> None:
    """behaviour 11"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Old title")
        answer = await lithos.write("New title", id=note, path="elsewhere")
        assert answer["path"] == "old-title.md"
        assert (await lithos.read(note))["title"] == "New title"
        refusal(
            await lithos.call("lithos_write", title="New Title!", content="x", agent="a"), "slug_collision"
        )
        free = await lithos.write("Old title", path="other")
        assert free["path"] == "other/old-title.md"


async def test_the_title_may_go_back_to_what_the_index_knows(tmp_path: Path) -> None:
    """A title edited by hand and not noticed yet is no collision with oneself."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("As indexed")
        file = lithos.knowledge / "as-indexed.md"
        file.write_text(file.read_text().replace("# As indexed", "# By hand"))
        assert (await lithos.write("As indexed", id=note))["version"] == 2


@pytest.mark.parametrize(
    ("title", "stored", "path"),
    [
        ("#", "#", None),
        ("# Not a heading", "# Not a heading", "not-a-heading.md"),
        ("C #", "C #", "c.md"),
        ("  spaced   out  ", "spaced   out", "spaced-out.md"),
        ("two\nlines\r\n and more", "two lines and more", "two-lines-and-more.md"),
        ("🚀🔥", "🚀🔥", "rocketfire.md"),
        ("שלום עולם", "שלום עולם", None),
        ("\u202eevil\u202c", "\u202eevil\u202c", "evil.md"),
        ("!!!", "!!!", None),
        ("---", "---", None),
        ("key: value", "key: value", "key-value.md"),
        ("Привет мир", "Привет мир", "privet-mir.md"),
        ("x" * 10_000, "x" * 10_000, "x" * 120 + ".md"),
        ("[[link]] `code` *em* \\n", "[[link]] `code` *em* \\n", "link-code-em-n.md"),
        ("\x01\x7f control", "\x01\x7f control", "control.md"),
    ],
)
async def test_any_title_is_stored_as_given(
    tmp_path: Path, title: str, stored: str, path: str | None
) -> None:
    async with serving(tmp_path) as lithos:
        answer = await lithos.write(title, "# Own heading\n\ntext")
        if path is not None:
            assert answer["path"] == path
        if title in ("#", "!!!", "---"):
            assert answer["path"] == f"note-{answer['id'][:8]}.md"
        read = await lithos.read(answer["id"])
        assert (read["title"], read["content"]) == (stored, "# Own heading\n\ntext")
        again = await lithos.write(title, "new", id=answer["id"])
        assert again["version"] == 2
    async with serving(tmp_path) as lithos:
        assert await lithos.listed() == [stored]


@pytest.mark.parametrize("title", ["", "   ", "\n\t", "\u3000"])
async def test_a_blank_title_is_refused(tmp_path: Path, title: str) -> None:
    """behaviour 173"""
    async with serving(tmp_path) as lithos:
        assert "title" in refusal(
            await lithos.call("lithos_write", title=title, content="x", agent="a"), "invalid_input"
        )
        assert lithos.files() == []
        assert await lithos.call("lithos_agent_info", id="a") is None
