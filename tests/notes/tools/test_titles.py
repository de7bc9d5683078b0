"""Titles of all kinds: storage, conversion into slugs, and changes (docs/spec/notes.md §2 and §6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.notes.catalogue.catalogue import Catalogue
from tests.servers import Lithos, put_note, refusal, serving


async def test_new_title_changes_the_slug_but_not_the_file_name(lithos: Lithos) -> None:
    """behaviour 11"""
    note = await lithos.create("Old title")
    answer = await lithos.write("New title", id=note, path="elsewhere")
    assert answer["path"] == "old-title.md"
    assert (await lithos.read(note))["title"] == "New title"
    refusal(await lithos.call("lithos_write", title="New Title!", content="x", agent="a"), "slug_collision")
    free = await lithos.write("Old title", path="other")
    assert free["path"] == "other/old-title.md"


async def test_title_may_be_changed_back_to_the_indexed_title(lithos: Lithos) -> None:
    """A manually edited title that is not indexed yet does not collide with its own note."""
    note = await lithos.create("As indexed")
    file = lithos.knowledge / "as-indexed.md"
    file.write_text(file.read_text().replace("# As indexed", "# By hand"))
    assert (await lithos.write("As indexed", id=note))["version"] == 3


TITLES = [
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
    ("x" * 1_000, "x" * 1_000, "x" * 120 + ".md"),
    ("[[link]] `code` *em* \\n", "link code em \\n", "link-code-em-n.md"),
    ("\x01\x7f control", "\x01\x7f control", "control.md"),
]


async def test_title_is_stored_unchanged_apart_from_markup(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        for title, stored, path in TITLES:
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
        assert await lithos.listed() == [stored for _, stored, _ in TITLES]


async def test_blank_title_is_refused(lithos: Lithos) -> None:
    """behaviour 173"""
    for title in ("", "   ", "\n\t", "\u3000"):
        answer = await lithos.call("lithos_write", title=title, content="x", agent="a")
        assert "title" in refusal(answer, "invalid_input")
    assert lithos.files() == []
    assert await lithos.call("lithos_agent_info", id="a") is None


async def test_title_is_limited_to_a_thousand_characters(lithos: Lithos) -> None:
    """tools §1.2: a longer title is refused with ERR(invalid_input), the limit and the next step."""
    note = await lithos.create("A note")
    task = (await lithos.call("lithos_task_create", title="A task", agent="ann"))["task_id"]
    for tool, more in (
        ("lithos_note_update", {"id": note}),
        ("lithos_write", {"content": "text", "path": "other.md"}),
        ("lithos_task_create", {}),
        ("lithos_task_update", {"task_id": task}),
        ("lithos_task_spawn", {"source_task_id": task}),
    ):
        for title in ("x" * 1_001, "x" + " " * 40_000 + "x", "\u0301" * 200_000):
            message = refusal(await lithos.call(tool, title=title, agent="ann", **more), "invalid_input")
            assert "at most 1,000" in message
            assert "Shorten" in message
        answer = await lithos.call(tool, title=f"{tool:y<1000}", agent="ann", **more)
        assert answer.get("status") != "error", answer


@pytest.mark.parametrize("head", ["# {}\n\ntext\n", "---\ntitle: {}\n---\ntext\n"])
async def test_title_in_a_file_may_exceed_the_limit(tmp_path: Path, head: str) -> None:
    """notes §4, §6: the note is indexed, its slug is cut, and the bytes of its file stay the same."""
    title = " ".join(["word"] * 20_000)
    file = put_note(tmp_path, "long.md", head.format(title))
    async with serving(tmp_path, server={"max_answer_chars": 0}) as lithos:
        read = await lithos.call("lithos_read", path="long.md")
        assert (read["title"], read["content"]) == (title, "text")
        assert await lithos.found("text") == [title]
        entry = next(iter(lithos.server.get(Catalogue)))
        assert entry.slug == ("word-" * 40)[:120]
        answer = await lithos.call("lithos_note_update", id=read["id"], agent="ann", tags=["new"])
        assert answer["status"] == "updated"
        assert title in file.read_text()
