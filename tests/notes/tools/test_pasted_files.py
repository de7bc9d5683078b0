"""Frontmatter within `content`: it is read or refused, never stored as a second frontmatter (tools §3)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from lithos.server.mcp.resource_pages import Library
from tests.servers import MISSING_ID, VAULT, Clock, Lithos, put_note, refusal, serving

STYLES: Final = pytest.mark.parametrize("storage", [{}, VAULT], ids=["plain", "vault"])
#: Frontmatter keys that every write changes.
OWN: Final = ("updated_at:", "version:", "contributors:", "id:")


async def shown(lithos: Lithos, note_id: str) -> str:
    """Return the file of a note as its resource returns it."""
    library = lithos.server.get(Library)
    found = await library.resources.read(f"lithos://note/{note_id}")
    assert isinstance(found.body, bytes)
    return found.body.decode()


def without_own(text: str) -> list[str]:
    return [line for line in text.splitlines(keepends=True) if not line.startswith(OWN)]


@STYLES
async def test_frontmatter_in_new_content_is_used_as_arguments(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    """behaviour 365"""
    content = (
        "---\ntitle: Given\ntags: [alpha, beta]\naliases:\n  - Other name\nstage: review\ndue:\n"
        "confidence: 0.5\nsource: task-1\nstatus: archived\nexpires_at: 2030-01-02T03:04:05Z\n---\n\nBody.\n"
    )
    async with serving(tmp_path, storage=storage) as lithos:
        made = await lithos.call("lithos_write", content=content, agent="t")
        assert (made["status"], made["warnings"]) == ("created", [])
        read = await lithos.read(made["id"])
        told = read["metadata"]
        assert (read["title"], read["content"]) == ("Given", "Body.")
        assert (told["tags"], told["aliases"], told["confidence"]) == (["alpha", "beta"], ["Other name"], 0.5)
        assert (told["source"], told["status"]) == ("task-1", "archived")
        assert told["expires_at"].startswith("2030-01-02T03:04:05")
        assert told["extra"] == {"stage": "review", "due": None}
        assert (lithos.knowledge / made["path"]).read_text().count("---\n") == 2


async def test_arguments_take_precedence_over_frontmatter(lithos: Lithos) -> None:
    """behaviour 365"""
    content = "---\ntitle: No\ntags: [no]\nstage: no\nkept: yes it is\n---\nBody"
    made = await lithos.write("Yes", content, tags=["yes"], metadata={"stage": "yes"})
    read = await lithos.read(made["id"])
    assert (read["title"], read["metadata"]["tags"]) == ("Yes", ["yes"])
    assert read["metadata"]["extra"] == {"stage": "yes", "kept": "yes it is"}


FILES: Final = {
    "plain": "---\ntitle: A\ntags:\n- x   # why\nstage: review\ndue:\n---\n\n# A\n\n    code\n\ntext #tag\n",
    "crlf": "---\r\ntags: [a,  b]\r\nstage: 'q'\r\n---\r\n# A\r\n\r\none\r\n\r\ntwo\r\n",
    "bom": "\ufeff---\ntitle: A\nalias: Old\n---\ntext\n\n",
    "dots": "---\ntitle: A\n...\ntext",
    "none": "# A\n\ntext\n",
    "stacked": "---\ntitle: A\n---\n\n---\nstage: old\ntags: [z]\n---\n\ntext\n",
    "rules": "---\n\nSome prose.\n\n---\n\nMore.\n",
    "empty": "---\n---\ntext\n",
    "fence": "```yaml\n---\ntitle: B\n---\n```\n",
}


@STYLES
@pytest.mark.parametrize("name", FILES)
async def test_resource_text_can_be_written_back(tmp_path: Path, storage: dict[str, Any], name: str) -> None:
    """behaviour 365: the note stays the same, and its file gains only the bytes that any write adds."""
    put_note(tmp_path, "a.md", FILES[name].encode())
    async with serving(tmp_path, storage=storage) as lithos:
        first = await lithos.call("lithos_read", path="a.md")
        # The first update changes no values of the note, but adds all keys that a write adds.
        await lithos.write(id=first["id"], title=first["title"], content=first["content"])
        before = await lithos.read(first["id"])
        text = await shown(lithos, first["id"])
        answer = await lithos.call("lithos_write", id=first["id"], content=text, agent="tester")
        assert (answer["status"], answer["warnings"]) == ("updated", []), answer
        after = await lithos.read(first["id"])
        again = await shown(lithos, first["id"])
    assert (after["title"], after["content"]) == (before["title"], before["content"])
    same = {key: value for key, value in before["metadata"].items() if key not in ("version", "updated_at")}
    assert {**after["metadata"], **same} == after["metadata"]
    assert without_own(again) == without_own(text)


@STYLES
@pytest.mark.parametrize("name", FILES)
async def test_read_text_can_be_written_back(tmp_path: Path, storage: dict[str, Any], name: str) -> None:
    """behaviour 365"""
    put_note(tmp_path, "a.md", FILES[name].encode())
    async with serving(tmp_path, storage=storage) as lithos:
        first = await lithos.call("lithos_read", path="a.md")
        await lithos.write(id=first["id"], title=first["title"], content=first["content"])
        text = await shown(lithos, first["id"])
        await lithos.write(id=first["id"], title=first["title"], content=first["content"])
        assert (await lithos.read(first["id"]))["content"] == first["content"]
        assert without_own(await shown(lithos, first["id"])) == without_own(text)


async def test_changed_resource_text_changes_the_note(tmp_path: Path) -> None:
    """behaviour 365: changed frontmatter in the returned file is applied to the note."""
    put_note(tmp_path, "a.md", FILES["plain"])
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="a.md"))["id"]
        text = (await shown(lithos, note)).replace("stage: review", "stage: done").replace("# A", "# B")
        await lithos.call("lithos_write", id=note, content=text.replace("    code", "    other"), agent="t")
        read = await lithos.read(note)
    assert (read["title"], read["content"]) == ("B", "    other\n\ntext #tag")
    assert read["metadata"]["extra"]["stage"] == "done"


async def test_file_of_another_note_is_refused(lithos: Lithos) -> None:
    """behaviour 365"""
    one, other = await lithos.create("One"), await lithos.create("Other")
    text = await shown(lithos, one)
    before = await shown(lithos, other)
    answer = await lithos.call("lithos_write", id=other, content=text, agent="t")
    assert one in refusal(answer, "invalid_input")
    answer = await lithos.call("lithos_write", title="Copy", content=text, agent="t")
    assert one in refusal(answer, "invalid_input")
    assert await shown(lithos, other) == before
    made = await lithos.write("New", f"---\nid: {MISSING_ID}\nauthor: ann\n---\ntext")
    assert made["id"] != MISSING_ID
    assert "id, author" in made["warnings"][0]


async def test_file_of_an_older_version_is_a_version_conflict(lithos: Lithos) -> None:
    """behaviour 365: the frontmatter names the version of the file."""
    note = await lithos.create("One", "first")
    text = await shown(lithos, note)
    await lithos.write("One", "second", id=note)
    answer = await lithos.call("lithos_write", id=note, content=text, agent="t")
    refusal(answer, "version_conflict")
    assert answer["current_version"] == 2
    assert (await lithos.read(note))["content"] == "second"
    await lithos.write("One", text, id=note, expected_version=2)
    assert (await lithos.read(note))["content"] == "first"


@pytest.mark.parametrize("content", ["---\ntags: [a\n---\ntext", "---\na: b\n  c: d\n---\n"])
async def test_malformed_frontmatter_is_refused(lithos: Lithos, content: str) -> None:
    """behaviour 365"""
    answer = await lithos.call("lithos_write", title="T", content=content, agent="t")
    assert "Nothing was changed" in refusal(answer, "invalid_input")
    assert lithos.files() == []


@pytest.mark.parametrize(
    "content",
    [
        "---\n\nprose\n\n---\n\nmore",
        "---\ntitle: x",
        "```\n---\na: b\n---\n```",
        "    ---\n    a: b\n    ---",
        "---\n---",
    ],
)
async def test_text_resembling_frontmatter_is_stored_unchanged(lithos: Lithos, content: str) -> None:
    """behaviour 365"""
    note = await lithos.create("T", content)
    assert (await lithos.read(note))["content"] == content


async def test_new_note_without_any_title_is_refused(lithos: Lithos) -> None:
    """behaviour 365"""
    answer = await lithos.call("lithos_write", content="---\ntags: [a]\n---\ntext", agent="t")
    assert "title" in refusal(answer, "invalid_input")


@pytest.mark.parametrize(
    ("op", "text", "more"),
    [
        ("prepend", "---\nstage: x\n---\ntext", {}),
        ("append", "---\ntitle: x\ntags: [a]\n---\ntext", {}),
        ("replace", "\n---\nid: x\n---\ntext", {"section": "Part"}),
        ("find_replace", "---\nstage: x\n---\nFirst", {"find": "First"}),
    ],
)
async def test_edit_with_frontmatter_is_refused(
    lithos: Lithos, op: str, text: str, more: dict[str, str]
) -> None:
    """behaviour 365"""
    note = await lithos.create("T", "First\n\n## Part\n\nx")
    before = await shown(lithos, note)
    answer = await lithos.call("lithos_note_edit", id=note, op=op, text=text, agent="t", **more)
    assert "lithos_note_update" in refusal(answer, "invalid_input")
    assert await shown(lithos, note) == before


async def test_edit_with_horizontal_rules_is_accepted(lithos: Lithos) -> None:
    """behaviour 365"""
    note = await lithos.create("T", "First")
    text = "---\nNote: this is prose\n---\nmore"
    answer = await lithos.call("lithos_note_edit", id=note, op="append", text=text, agent="t")
    assert answer["status"] == "updated", answer


values = st.sampled_from(
    ["x", "1", "true", "2026-01-02", "'01'", "[a, b]", "{k: [1, null]}", "", "~", "|\n  t\n  u"]
)
heads = st.dictionaries(
    st.sampled_from(["stage", "due", "tags", "aliases", "alias", "kind"]), values, max_size=4
)
bodies = st.lists(
    st.sampled_from(["# T", "", "    code", "text", "---", "- a", "a: b", "...", "#tag"]), max_size=6
).map("\n".join)


@STYLES
async def test_any_file_written_back_leaves_the_note_unchanged(
    tmp_path: Path, storage: dict[str, Any]
) -> None:
    """behaviour 365: the test uses generated files."""
    async with serving(tmp_path, storage=storage, clock=Clock()) as lithos:

        @settings(max_examples=40)
        @given(heads, bodies)
        def check(head: dict[str, str], body: str) -> None:
            trio.from_thread.run(one, head, body)

        async def one(head: dict[str, str], body: str) -> None:
            lines = "".join(f"{key}: {value}\n" for key, value in head.items())
            answer = await lithos.call("lithos_write", title="G", content="x", agent="t")
            note, file = answer["id"], lithos.knowledge / answer["path"]
            try:
                text = file.read_text().replace("\n---\n", f"\n{lines}---\n", 1).removesuffix("x\n") + body
                file.write_text(text)
                first = await lithos.read(note)
                await lithos.write(id=note, title=first["title"], content=first["content"])
                before, text = await lithos.read(note), await shown(lithos, note)
                await lithos.call("lithos_write", id=note, content=text, agent="tester")
                after = await lithos.read(note)
                assert (after["title"], after["content"]) == (before["title"], before["content"])
                assert after["metadata"]["extra"] == before["metadata"]["extra"]
                assert without_own(await shown(lithos, note)) == without_own(text)
            finally:
                with suppress(FileNotFoundError):
                    await lithos.call("lithos_delete", id=note, agent="t")

        await trio.to_thread.run_sync(check)
