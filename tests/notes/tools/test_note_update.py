"""`lithos_note_update`: the tool changes the frontmatter and keeps the text of the note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.format.document import parse_document, rewrite_document
from lithos.notes.service import knowledge
from lithos.notes.writing.messages import PatchNote
from lithos.notes.writing.write_rules import decide_update
from lithos.server.tools.arguments import ArgumentFault
from lithos.text.yaml.nodes import UnreadableNote
from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving

NOTE_ID = "11111111-1111-4111-8111-111111111111"
BODY = (
    b"\r\n\r\n# Odd note  \r\n\r\n\r\n  indented\ttext \r\nmixed\nbreaks\r\n"
    b"[[Other]] \xe2\x80\x8b\r\n\r\n```\r\n---\r\n```\r\n \r\n"
)
ODD = (
    b"---\r\n# by hand\r\nid: " + NOTE_ID.encode() + b"\r\ntitle:   'Odd note' # quoted\r\nauthor: ann\r\n"
    b"tags: [a,   b]\r\nproject: x\r\nversion: 3\r\n---" + BODY
)


def update(lithos: Lithos, **arguments: Any) -> Any:
    return lithos.call("lithos_note_update", **{"agent": "bob"} | arguments)


def body_of(file: Path) -> bytes:
    """Return the bytes after the closing line of the frontmatter."""
    return file.read_bytes().split(b"\r\n---", 1)[1]


async def test_update_changes_frontmatter_and_keeps_the_body_bytes(tmp_path: Path) -> None:
    """behaviours 52, 175"""
    file = put_note(tmp_path, "odd.md", ODD)
    clock = Clock("2030-01-02T03:04:05.000006+00:00")
    async with serving(tmp_path, clock=clock) as lithos:
        answer = await update(
            lithos, id=NOTE_ID, tags=["c"], status="archived", metadata={"project": None, "n": 1}
        )
        expected = {"status": "updated", "id": NOTE_ID, "path": "odd.md", "version": 4, "warnings": []}
        assert list(answer.items()) == list(expected.items())
        assert body_of(file) == BODY
        assert file.read_bytes().startswith(b"---\r\n# by hand\r\nid: " + NOTE_ID.encode())
        assert b"title:   'Odd note' # quoted\r\n" in file.read_bytes()
        metadata = (await lithos.read(NOTE_ID))["metadata"]
        assert (metadata["tags"], metadata["status"], metadata["extra"]) == (["c"], "archived", {"n": 1})
        assert (metadata["author"], metadata["contributors"]) == ("ann", ["bob"])
        assert metadata["updated_at"] == clock.text
        assert lithos.events() == [("note.updated", {"id": NOTE_ID, "title": "Odd note", "path": "odd.md"})]
        assert (await lithos.call("lithos_tags"))["tags"] == {"c": 1}
        assert await lithos.found("indented") == ["Odd note"]
    async with serving(tmp_path) as lithos:
        assert (await lithos.read(NOTE_ID))["metadata"] == metadata
        assert lithos.events() == []


async def test_new_title_changes_only_the_text_of_the_heading(tmp_path: Path) -> None:
    """behaviours 11, 52"""
    file = put_note(tmp_path, "odd.md", ODD)
    async with serving(tmp_path) as lithos:
        linking = await lithos.create("Linking", "See [[New name]].")
        answer = await update(lithos, id=NOTE_ID, title=" New\nname ", agent="ann")
        assert (answer["path"], answer["version"]) == ("odd.md", 4)
        assert body_of(file) == BODY.replace(b"Odd note", b"New name")
        metadata = (await lithos.read(NOTE_ID))["metadata"]
        assert (metadata["title"], metadata["contributors"]) == ("New name", [])
        assert (metadata["tags"], metadata["extra"]) == (["a", "b"], {"project": "x"})
        assert refusal_of_slug(await lithos.call("lithos_write", title="New name", content="", agent="a"))
        assert (await lithos.create("Odd note")) != linking  # The old slug is free again.


def refusal_of_slug(answer: Any) -> bool:
    return list(answer)[3:] == ["existing_id", "slug_collision_existing_id", "warnings"] and (
        answer["code"], answer["existing_id"], answer["warnings"]
    ) == ("slug_collision", NOTE_ID, [])  # fmt: skip


async def test_new_title_in_frontmatter_leaves_the_body_unchanged(tmp_path: Path) -> None:
    """behaviour 52"""
    text = f"---\nid: {NOTE_ID}\ntitle: Old\n---\nNo heading here.\n"
    file = put_note(tmp_path, "plain.md", text)
    async with serving(tmp_path) as lithos:
        await update(lithos, id=NOTE_ID, title="New")
        assert file.read_text().endswith("\n---\nNo heading here.\n")
        assert (await lithos.read(NOTE_ID))["title"] == "New"


async def test_empty_metadata_is_ignored_and_empty_tags_clear_all_tags(lithos: Lithos) -> None:
    """behaviours 29, 39, 52"""
    note = await lithos.create("T", tags=["a"], metadata={"k": [1, {"x": None}], "l": 2})
    assert (await update(lithos, id=note, status="archived", metadata={}))["version"] == 2
    metadata = (await lithos.read(note))["metadata"]
    assert (metadata["tags"], metadata["extra"]) == (["a"], {"k": [1, {"x": None}], "l": 2})
    await update(lithos, id=note, tags=[])
    assert (await lithos.read(note))["metadata"]["tags"] == []
    await update(lithos, id=note, metadata={"k": None, "absent": None, "m": "é"})
    assert (await lithos.read(note))["metadata"]["extra"] == {"l": 2, "m": "é"}


async def test_impossible_update_is_refused_and_changes_nothing(lithos: Lithos) -> None:
    """behaviours 52, 53, 173"""
    note = await lithos.create("T")
    before, events = (lithos.knowledge / "t.md").read_bytes(), lithos.events()
    refused: list[dict[str, Any]] = [
        {},
        {"metadata": {}},
        {"expected_version": 1},
        {"metadata": {}, "expected_version": 1},
        {"title": " \n"},
        {"status": "lost"},
        {"metadata": {"tags": []}},
        {"metadata": {"version": None}},
        {"metadata": {" ": 1}},
        {"id": " ", "title": "New"},
        {"agent": "\t", "title": "New"},
    ]
    for arguments in refused:
        refusal(await update(lithos, **{"id": note, "agent": "newcomer"} | arguments), "invalid_input")
    assert (lithos.knowledge / "t.md").read_bytes() == before
    assert lithos.events() == events
    assert await lithos.call("lithos_agent_info", id="newcomer") is None


async def test_update_of_an_unknown_id_registers_the_agent(lithos: Lithos) -> None:
    """behaviours 53, 91, 127"""
    message = refusal(await update(lithos, id=MISSING_ID, title="New"), "note_not_found")
    assert MISSING_ID in message
    assert (await lithos.call("lithos_agent_info", id="bob"))["id"] == "bob"
    note = await lithos.create("T")
    await lithos.call("lithos_delete", id=note, agent="a")
    events = lithos.events()
    refusal(await update(lithos, id=note, tags=["x"]), "note_not_found")
    assert lithos.events() == events


async def test_update_with_stale_version_or_taken_slug_is_refused(lithos: Lithos) -> None:
    """behaviours 13, 34, 53"""
    note, other = await lithos.create("One"), await lithos.create("Two")
    assert (await update(lithos, id=note, tags=["x"], expected_version=1))["version"] == 2
    answer = await update(lithos, id=note, tags=["y"], expected_version="1")
    refusal(answer, "version_conflict")
    assert list(answer)[3:] == ["current_version", "current_updated_at", "warnings"]
    assert answer["current_version"] == 2
    answer = await update(lithos, id=note, title="TWO!", tags=["y"])
    refusal(answer, "slug_collision")
    assert (answer["existing_id"], answer["slug_collision_existing_id"]) == (other, other)
    read = await lithos.read(note)
    assert (read["title"], read["metadata"]["tags"], read["version"]) == ("One", ["x"], 2)
    assert (await update(lithos, id=note, title="ONE"))["version"] == 3  # The slug is the note's own.


async def test_write_outcome_can_be_returned_as_status(tmp_path: Path) -> None:
    """behaviour 165"""
    async with serving(tmp_path, server={"write_outcomes": "status"}) as lithos:
        note = await lithos.create("One")
        answer = await update(lithos, id=note, tags=["x"], expected_version=7)
        assert (answer["status"], answer["code"]) == ("version_conflict", "version_conflict")
        answer = await update(lithos, id=MISSING_ID, tags=["x"])
        assert (answer["status"], answer["code"]) == ("error", "note_not_found")


async def test_update_of_an_uneditable_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 22; issue 25, number 10: a person's edit does not cause an internal error."""
    monkeypatch.setattr(knowledge, "BUSY_PATIENCE", 0.1)
    async with serving(tmp_path) as lithos:
        note = await lithos.create("T")
        (lithos.knowledge / "t.md").write_text("---\nid: [\n---\n")
        assert "t.md" in refusal(await update(lithos, id=note, tags=["x"]), "internal_error")
        (lithos.knowledge / "t.md").unlink()
        assert "missing" in refusal(await update(lithos, id=note, tags=["x"]), "version_conflict")


async def test_update_tool_is_listed_after_stats_and_outside_core(tmp_path: Path) -> None:
    """behaviour 171"""
    async with serving(tmp_path, server={"tools": "full"}, settled=False) as lithos:
        listed = [spec.name for spec in lithos.server.tools.listed()]
        assert listed[listed.index("lithos_stats") + 1] == "lithos_note_update"
        (spec,) = [spec for spec in lithos.server.tools.listed() if spec.name == "lithos_note_update"]
        assert (spec.read_only, spec.destructive, spec.idempotent) == (False, True, False)
        schema = spec.input_schema
        assert schema["required"] == ["agent"]
        assert list(schema["properties"]) == [
            "id", "path", "agent", "title", "tags", "status", "metadata", "expected_version", "on_conflict",
        ]  # fmt: skip
        with pytest.raises(ArgumentFault, match="content"):
            await update(lithos, id=NOTE_ID, content="x")
    async with serving(tmp_path, server={"tools": "core"}, settled=False) as lithos:
        assert "lithos_note_update" not in [spec.name for spec in lithos.server.tools.listed()]
        refusal(await update(lithos, id=MISSING_ID, tags=[]), "note_not_found")


async def test_concurrent_text_and_frontmatter_updates_are_all_kept(lithos: Lithos) -> None:
    """behaviour 50"""
    note = await lithos.create("T", "old")
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(lambda n=number: update(lithos, id=note, metadata={f"k{n}": n}, agent=f"a{n}"))
        nursery.start_soon(lambda: lithos.write("T", "new", id=note, tags=["t"]))
    read = await lithos.read(note)
    assert (read["content"], read["version"]) == ("new", 10)
    assert read["metadata"]["extra"] == {f"k{n}": n for n in range(8)}
    assert read["metadata"]["tags"] == ["t"]


@given(
    body=st.binary(max_size=60).filter(lambda data: b"\0" not in data),
    metadata=st.dictionaries(
        st.sampled_from("klm"), st.none() | st.integers(0, 9) | st.text("é: #", max_size=4)
    ),
)
def test_update_keeps_the_bytes_of_any_body(tmp_path: Path, body: bytes, metadata: dict[str, Any]) -> None:
    """behaviours 52, 175"""
    now = Clock().now
    data = f"---\nid: {NOTE_ID}\ntitle: T\nk: 1\n---\n".encode() + body
    try:
        old = parse_document(data, "t.md", now)
    except UnreadableNote:
        return
    request = PatchNote(id=NOTE_ID, agent="bob", tags=("x",), metadata=metadata)
    decision = decide_update(request, old, "t.md", Catalogue(), now=now, content_limit=1)
    result = rewrite_document(data, "t.md", now, decision.document, replace_body=False)
    assert result.endswith(b"\n---\n" + body)
    assert parse_document(result, "t.md", now).content == old.content
