"""`lithos_note_edit`, and the parameters `outline` and `section` of `lithos_read`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.writing import editing
from tests.servers import MISSING_ID, VAULT, Lithos, put_note, refusal, serving

TEXT = """\
Intro.

## Deploy

How.

### Rollback

Back.

## Test

- [ ] first
- [x] second

### Rollback

Never.

```
## no heading
```
"""


def refused_as(answer: Any, code: str) -> dict[str, Any]:
    """Check the error code of a refusal, and return the whole error answer."""
    assert refusal(answer, code)
    assert isinstance(answer, dict)
    return answer


async def edit(lithos: Lithos, note: str, op: str, **more: Any) -> Any:
    return await lithos.call("lithos_note_edit", id=note, op=op, agent="ed", **more)


def text_of(lithos: Lithos, path: str) -> str:
    return (lithos.knowledge / path).read_bytes().decode()


async def outline_of(lithos: Lithos, note: str) -> dict[str, Any]:
    read = await lithos.read(note, outline=True)
    return {row["section"]: row for row in read["outline"]}


async def test_outline_of_a_note_lists_its_sections(lithos: Lithos) -> None:
    """behaviour 213"""
    note = await lithos.create("Runbook", TEXT)
    read = await lithos.read(note, outline=True)
    assert read["content"] == ""
    assert "section" not in read
    rows = read["outline"]
    assert [(row["section"], row["level"]) for row in rows] == [
        ("(top)", 0),
        ("Deploy", 2),
        ("Deploy > Rollback", 3),
        ("Test", 2),
        ("Test > Rollback", 3),
    ]
    assert list(rows[0]) == ["section", "level", "chars", "hash"]
    for row in rows:
        part = await lithos.read(note, section=row["section"])
        assert (part["section"], part["section_hash"]) == (row["section"], row["hash"])
        assert len(part["content"]) == row["chars"]
        assert hashlib.sha256(part["content"].encode()).hexdigest()[:12] == row["hash"]
    assert "outline" not in part
    both = await lithos.read(note, outline=True, section="deploy")
    assert both["outline"] == rows
    assert both["content"] == "## Deploy\n\nHow.\n\n### Rollback\n\nBack."
    cut = await lithos.read(note, section="Deploy", max_length=12)
    assert cut["truncated"]
    assert both["content"].startswith(cut["content"].rstrip("."))
    rest = await lithos.read(note, section="Deploy", offset=cut["next_offset"])
    assert both["content"].endswith(rest["content"])


async def test_ambiguous_section_is_refused_with_candidates(lithos: Lithos) -> None:
    """behaviour 214"""
    note = await lithos.create("Runbook", TEXT)
    assert (await lithos.read(note, section="deploy > rollback"))["content"] == "### Rollback\n\nBack."
    before = lithos.files()
    for call in (
        lithos.call("lithos_read", id=note, section="Rollback"),
        edit(lithos, note, "append", section="Rollback", text="x"),
    ):
        refused = refused_as(await call, "section_not_found")
        assert refused["candidates"] == ["Deploy > Rollback", "Test > Rollback"]
    refused = refused_as(await edit(lithos, note, "append", section="Nothing", text="x"), "section_not_found")
    assert len(refused["candidates"]) == 5
    assert lithos.files() == before
    assert (await lithos.read(note))["version"] == 1


async def test_edit_changes_only_its_section_and_the_required_properties(lithos: Lithos) -> None:
    """behaviours 215, 220"""
    note = await lithos.create("Runbook", TEXT)
    old = text_of(lithos, "runbook.md")
    told = await edit(lithos, note, "append", section="deploy", text="More.\n")
    rows = await outline_of(lithos, note)
    assert told == {
        "status": "updated",
        "id": note,
        "path": "runbook.md",
        "version": 2,
        "section": "Deploy",
        "section_hash": rows["Deploy"]["hash"],
        "warnings": [],
    }
    new = text_of(lithos, "runbook.md")
    assert new.partition("\n---\n")[2] == old.partition("\n---\n")[2].replace("Back.\n", "Back.\n\nMore.\n")
    read = await lithos.read(note)
    assert (read["version"], read["metadata"]["contributors"]) == (2, ["ed"])
    assert lithos.events()[-1] == ("note.updated", {"id": note, "title": "Runbook", "path": "runbook.md"})
    assert (await edit(lithos, note, "check", find="first"))["version"] == 3
    assert (await edit(lithos, note, "uncheck", section="Test", find="second"))["version"] == 4
    assert "- [x] first\n- [ ] second\n" in text_of(lithos, "runbook.md")
    removed = await edit(lithos, note, "remove", section="Test > Rollback")
    assert (removed["section"], removed["section_hash"]) == (None, None)
    assert "Never." not in text_of(lithos, "runbook.md")
    replaced = await edit(lithos, note, "replace", section="Test", text="## Checks\n\nAll.")
    assert replaced["section"] == "Checks"
    assert await lithos.found("Checks") == ["Runbook"]
    whole = await edit(lithos, note, "append", text="The end.")
    content = (await lithos.read(note))["content"]
    assert content.endswith("## Checks\n\nAll.\n\nThe end.")
    assert (whole["section"], whole["section_hash"]) == (
        None,
        hashlib.sha256(content.encode()).hexdigest()[:12],
    )


async def test_edit_accepts_the_path_of_a_note(lithos: Lithos) -> None:
    await lithos.create("Runbook", TEXT)
    told = await lithos.call("lithos_note_edit", path="runbook", op="prepend", text="First.", agent="ed")
    assert told["version"] == 2
    refused_as(
        await lithos.call("lithos_note_edit", path="none", op="append", text="x", agent="e"), "doc_not_found"
    )
    refused_as(
        await lithos.call("lithos_note_edit", id=MISSING_ID, op="append", text="x", agent="e"),
        "doc_not_found",
    )
    refused_as(await lithos.call("lithos_note_edit", op="append", text="x", agent="e"), "invalid_input")


async def test_impossible_edit_changes_nothing(lithos: Lithos) -> None:
    note = await lithos.create("Runbook", TEXT)
    old = text_of(lithos, "runbook.md")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"op": "rename", "text": "x"}, "invalid_input"),
        ({"op": "replace", "text": "x"}, "invalid_input"),
        ({"op": "append", "text": ""}, "invalid_input"),
        ({"op": "find_replace", "find": "How."}, "invalid_input"),
        ({"op": "find_replace", "find": " ", "text": "x"}, "invalid_input"),
        ({"op": "check"}, "invalid_input"),
        ({"op": "find_replace", "find": "how.", "text": "x"}, "text_not_found"),
        ({"op": "find_replace", "find": "Rollback", "text": "x"}, "text_ambiguous"),
        ({"op": "check", "find": "third"}, "text_not_found"),
        ({"op": "append", "text": "x" * 2_000_000}, "content_too_large"),
        ({"op": "append", "text": "x", "expected_version": 7}, "version_conflict"),
    ]
    for fields, code in refused:
        answer = await lithos.call("lithos_note_edit", id=note, agent="ed", **fields)
        assert refusal(answer, code), fields
        if code == "text_ambiguous":
            assert answer["count"] == 2
    assert text_of(lithos, "runbook.md") == old


async def test_expected_hash_covers_only_its_section(lithos: Lithos) -> None:
    """behaviour 217"""
    note = await lithos.create("Runbook", TEXT)
    known = (await lithos.read(note, section="Deploy"))["section_hash"]
    await edit(lithos, note, "append", section="Test", text="Elsewhere.")
    first = await edit(lithos, note, "append", section="Deploy", text="Mine.", expected_hash=known)
    assert first["version"] == 3
    refused = refused_as(
        await edit(lithos, note, "replace", section="Deploy", text="Gone.", expected_hash=known),
        "version_conflict",
    )
    part = await lithos.read(note, section="Deploy")
    assert refused["current_version"] == 3
    assert refused["current_hash"] == part["section_hash"] == first["section_hash"]
    assert refused["current_text"] == part["content"]
    assert refused["warnings"] == []
    again = await edit(
        lithos, note, "replace", section="Deploy", text="New.", expected_hash=refused["current_hash"]
    )
    assert again["version"] == 4


async def append_together(tmp_path: Path, section: str | None, texts: int) -> None:
    """Let 16 agents append to one note.

    Check that the note contains each text once and that no version is returned twice.
    """
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Shared", "## Log\n\nBegin.\n\n## Other\n\nKept.")
        versions: list[int] = []

        async def append(agent: int) -> None:
            for number in range(texts):
                told = await edit(lithos, note, "append", section=section, text=f"Text {agent}.{number}.")
                assert told["status"] == "updated", told
                versions.append(told["version"])

        async with trio.open_nursery() as nursery:
            for agent in range(16):
                nursery.start_soon(append, agent)
        assert sorted(versions) == list(range(2, 2 + 16 * texts))
        content = (await lithos.read(note))["content"]
        for agent in range(16):
            places = [content.index(f"Text {agent}.{number}.") for number in range(texts)]
            assert places == sorted(places)
        assert content.count("Text ") == 16 * texts
        assert content.count("Kept.") == content.count("Begin.") == 1


@pytest.mark.parametrize("section", ["Log", None])
async def test_concurrent_appends_of_sixteen_agents_are_all_kept(tmp_path: Path, section: str | None) -> None:
    """behaviour 216"""
    await append_together(tmp_path, section, 4)


@pytest.mark.slow
async def test_fifty_appends_by_each_of_sixteen_agents_are_kept(tmp_path: Path) -> None:
    """behaviour 216"""
    await append_together(tmp_path, "Log", 50)


async def test_edit_keeps_the_text_that_a_person_saved(lithos: Lithos) -> None:
    """behaviour 219"""
    note = await lithos.create("Runbook", TEXT)
    file = lithos.knowledge / "runbook.md"
    file.write_text(file.read_text() + "\nBy a person.\n")
    refused = refused_as(
        await edit(lithos, note, "append", section="Deploy", text="x", expected_version=1), "version_conflict"
    )
    assert refused["current_version"] == 2
    told = await edit(lithos, note, "append", section="Deploy", text="By an agent.")
    assert told["version"] == 3
    content = (await lithos.read(note))["content"]
    assert "By a person." in content
    assert "Back.\n\nBy an agent.\n\n## Test" in content


FOREIGN_NOTE = (
    "---\ntags:   [a,  b] # kept\nodd: {x: 1}\n---\nIntro e\u0301 👩‍👩‍👧\n\n"
    "Setext\n------\n\n\ttab code\n\n> [!tip] Callout\n> text[^1]\n\n[^1]: note\n\n## Two\n\nEnd"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
async def test_edit_keeps_every_other_byte_of_a_foreign_file(tmp_path: Path, newline: str, mark: str) -> None:
    """behaviour 215"""
    text = mark + FOREIGN_NOTE.replace("\n", newline)
    put_note(tmp_path, "a.md", text)
    async with serving(tmp_path, storage=VAULT) as lithos:
        told = await lithos.call(
            "lithos_note_edit", path="a.md", agent="ed", op="append", section="setext", text="New\nlines."
        )
        assert told["section"] == "Setext", told
        new = text_of(lithos, "a.md")
        head, body = text.split(f"{newline}---{newline}", 1)
        assert new.startswith(head)
        place = f"[^1]: note{newline * 2}"
        assert body.count(place) == 1
        assert new.endswith(
            f"{newline}---{newline}" + body.replace(place, f"{place}New{newline}lines.{newline * 2}")
        ), (new, body)


async def test_edit_that_would_become_the_title_is_refused(tmp_path: Path) -> None:
    put_note(tmp_path, "a.md", "---\ntitle: Mine\n---\ntext\n")
    async with serving(tmp_path) as lithos:
        refused = refused_as(
            await lithos.call("lithos_note_edit", path="a.md", agent="ed", op="prepend", text="# Other"),
            "invalid_input",
        )
        assert "title" in refused["message"]
        assert "# Other" not in text_of(lithos, "a.md")


async def test_long_note_is_parsed_outside_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "PARSED_BY_WRITER", 100)
    reads: list[int] = []
    plain = editing.Outlines.read

    def read(self: editing.Outlines, layout: Any) -> Any:
        reads.append(1)
        return plain(self, layout)

    monkeypatch.setattr(editing.Outlines, "read", read)
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Runbook", TEXT)
        assert (await edit(lithos, note, "append", section="Deploy", text="One."))["version"] == 2
        assert len(reads) == 1
        # The writer already knows the outline of its own result.
        assert (await edit(lithos, note, "append", section="Deploy", text="Two."))["version"] == 3
        assert len(reads) == 1
        file = lithos.knowledge / "runbook.md"
        file.write_text(file.read_text() + "\nBy a person.\n")
        assert (await edit(lithos, note, "append", section="Deploy", text="Three."))["version"] == 5
        assert len(reads) == 2


async def test_long_outline_is_cut_with_a_hint(lithos: Lithos) -> None:
    note = await lithos.create("Long", "\n".join(f"## Section {number}" for number in range(500)))
    read = await lithos.call("lithos_read", id=note, outline=True)
    assert read["outline_total"] == 500
    assert len(read["outline"]) == 200
    assert len(json.dumps(read)) < 100_000
