"""Spellings of names: two Unicode spellings are one note, and invalid file names are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
import trio

from tests.servers import VAULT, Lithos, put_note, refusal, serving

COMPOSED, DECOMPOSED = (normalize(form, "Ärger") for form in ("NFC", "NFD"))
#: Pairs of spellings of one path.
SPELLINGS = [
    (f"{COMPOSED}.md", f"{DECOMPOSED}.md"),
    (f"{DECOMPOSED}.md", f"{COMPOSED}.md"),
    ("Ann.md", "ann.md"),
    ("a/Straße.md", "A/STRASSE.md"),
    (f"{DECOMPOSED}/{COMPOSED}.md", f"{COMPOSED.lower()}/{DECOMPOSED.upper()}.md"),
]


async def put_first(lithos: Lithos, path: str) -> dict[str, Any]:
    return await lithos.write("First", "Text of the first.", path=path)


@pytest.mark.parametrize(("made", "asked"), SPELLINGS)
async def test_path_in_another_spelling_refers_to_the_same_note(
    tmp_path: Path, made: str, asked: str
) -> None:
    """behaviour 350"""
    put_note(tmp_path, made, "# First\n\nText of the first.\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path=made))["id"]
        assert (await lithos.call("lithos_read", path=asked))["id"] == note
        again = await lithos.call("lithos_write", title="Second", content="x", path=asked, agent="ann")
        assert refusal(again, "path_collision")
        assert again["existing_id"] == note
        other = await lithos.create("Third", path="elsewhere.md")
        moved = await lithos.call("lithos_note_move", id=other, path=asked, agent="ann")
        assert refusal(moved, "path_collision")
        edited = await lithos.call("lithos_note_edit", path=asked, op="append", text="More.", agent="ann")
        assert edited["path"] == made
        assert sorted(lithos.files()) == sorted([made, "elsewhere.md"])
        deleted = await lithos.call("lithos_delete", path=asked, agent="ann")
        assert deleted["success"] is True
        assert (await lithos.call("lithos_history", path=asked))["id"] == note


async def test_folder_in_another_spelling_refers_to_the_same_folder(tmp_path: Path) -> None:
    """behaviour 350"""
    put_note(tmp_path, f"Projects/{DECOMPOSED}/one.md", "# One\n")
    async with serving(tmp_path) as lithos:
        first = await lithos.write("Two", path=f"projects/{COMPOSED}")
        assert first["path"] == f"Projects/{DECOMPOSED}/two.md"
        second = await lithos.write("Three", path="PROJECTS/new/three.md")
        assert second["path"] == "Projects/new/three.md"
        moved = await lithos.call("lithos_note_move", id=second["id"], path="projects", agent="ann")
        assert moved["path"] == "Projects/three.md"
        assert (await lithos.write("Four", path=f"{DECOMPOSED}.md"))["path"] == f"{COMPOSED}.md"


async def test_note_can_be_moved_to_another_spelling_of_its_path(tmp_path: Path) -> None:
    """behaviour 350: an undo also moves the note back."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Ann", path="ann.md")
        moved = await lithos.call("lithos_note_move", id=note, path="Ann.md", agent="ann")
        assert moved["path"] == "Ann.md"
        assert lithos.files() == ["Ann.md"]


@pytest.mark.parametrize(("one", "other"), SPELLINGS[:3])
async def test_both_spellings_are_served_when_a_person_created_both(
    tmp_path: Path, one: str, other: str
) -> None:
    """behaviour 350"""
    put_note(tmp_path, one, "# One\n\nText of one.\n")
    put_note(tmp_path, other, "# Other\n\nText of the other.\n")
    async with serving(tmp_path) as lithos:
        notes = {path: await lithos.call("lithos_read", path=path) for path in (one, other)}
        assert [notes[path]["title"] for path in (one, other)] == ["One", "Other"]
        for path in (one, other):
            await lithos.call("lithos_note_edit", path=path, op="append", text=f"To {path}.", agent="ann")
        gone = await lithos.call("lithos_delete", path=other, agent="ann")
        assert gone["success"] is True
        back = await lithos.call("lithos_restore", id=notes[other]["id"], version=1, agent="ann")
        assert (back["status"], back["path"]) == ("created", other)
    for path in (one, other):
        assert "Text of" in (tmp_path / "knowledge" / path).read_text()


async def test_only_one_of_two_spellings_is_created_by_concurrent_agents(tmp_path: Path) -> None:
    """behaviour 350: the second spelling is refused even within one batch of the writer."""
    async with serving(tmp_path, storage=VAULT) as lithos:
        answers: list[Any] = []

        async def write(path: str, title: str) -> None:
            answers.append(
                await lithos.call("lithos_write", title=title, content="x", path=path, agent="ann")
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, "a/Ann.md", "One")
            nursery.start_soon(write, "A/ann.md", "Two")
            nursery.start_soon(write, "a", "ANN")
        assert sorted(answer["status"] for answer in answers) == ["created", "error", "error"]
        assert len(lithos.files()) == 1


async def test_titles_are_compared_in_any_unicode_form(tmp_path: Path) -> None:
    """behaviour 351"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create(f"About {DECOMPOSED}", path="about.md")
        assert (await lithos.call("lithos_read", title=f"about {COMPOSED}"))["id"] == note
        assert await lithos.listed(title_contains=COMPOSED) == [f"About {DECOMPOSED}"]


async def test_unicode_forms_of_an_agent_id_are_one_agent(tmp_path: Path) -> None:
    """behaviour 351"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("A note", agent=DECOMPOSED)
        await lithos.call("lithos_note_edit", id=note, op="append", text="x", agent=COMPOSED)
        read = await lithos.read(note)
        assert (read["metadata"]["author"], read["metadata"]["contributors"]) == (COMPOSED, [])
        rows = (await lithos.call("lithos_history", changed_by=DECOMPOSED))["versions"]
        assert {row["agent"] for row in rows} == {COMPOSED}


DEVICES = ["CON", "aux", "Nul.txt", "COM1", "lpt\u00b9", "PRN ", "con.", "CONIN$"]


@pytest.mark.parametrize("title", DEVICES)
@pytest.mark.parametrize("storage", [{}, VAULT], ids=["slugs", "titles"])
async def test_title_never_creates_a_device_file_name(
    tmp_path: Path, title: str, storage: dict[str, Any]
) -> None:
    """behaviour 352"""
    async with serving(tmp_path, storage=storage) as lithos:
        answer = await lithos.write(title)
        base = answer["path"].partition(".")[0].strip().lower()
        assert base not in {"con", "aux", "nul", "com1", "lpt\u00b9", "prn", "conin$"}
        assert (await lithos.read(answer["id"]))["title"] == title.strip()


BAD = ["aux.md", "a/CON.md", "NUL.txt.md", "con/a.md", "x./a.md", "x /a.md", "lpt\u00b2.md", "Com9 .md"]


@pytest.mark.parametrize("path", BAD)
async def test_path_with_a_device_name_is_refused(tmp_path: Path, path: str) -> None:
    """behaviour 352"""
    async with serving(tmp_path) as lithos:
        answer = await lithos.call("lithos_write", title="One", content="x", path=path, agent="ann")
        assert "every disk" in refusal(answer, "invalid_input")
        note = await lithos.create("Two")
        answer = await lithos.call("lithos_note_move", id=note, path=path, agent="ann")
        assert "every disk" in refusal(answer, "invalid_input")
        assert lithos.files() == ["two.md"]


async def test_existing_file_with_a_device_name_is_served(tmp_path: Path) -> None:
    """behaviour 352: the note is read, edited, deleted and restored, and its folder accepts new notes."""
    put_note(tmp_path, "aux.md", "# Aux\n\nText.\n")
    put_note(tmp_path, "con./a.md", "# A\n\nText.\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="aux.md"))["id"]
        await lithos.call("lithos_note_edit", id=note, op="append", text="More.", agent="ann")
        assert (await lithos.call("lithos_delete", id=note, agent="ann"))["success"] is True
        back = await lithos.call("lithos_restore", id=note, version=2, agent="ann")
        assert back["path"] == "aux.md"
        assert (await lithos.write("B", path="con."))["path"] == "con./b.md"


async def test_filters_match_folders_and_namespaces_in_each_spelling(tmp_path: Path) -> None:
    """behaviours 350 and 351."""
    put_note(tmp_path, f"{DECOMPOSED}/Sub/one.md", "# One\n\nWords of it.\n")
    async with serving(tmp_path) as lithos:
        for folder in (f"{DECOMPOSED}/Sub/", f"{COMPOSED.lower()}/sub/", f"{COMPOSED}/Sub/on"):
            assert await lithos.listed(path_prefix=folder) == ["One"]
            assert await lithos.found("words", path_prefix=folder) == ["One"]
        assert await lithos.listed(path_prefix=f"{COMPOSED}/other/") == []
        for form in (COMPOSED, DECOMPOSED):
            found = await lithos.call("lithos_retrieve", query="words", namespace_filter=[f"{form}/Sub"])
            assert [row["title"] for row in found["results"]] == ["One"]


@pytest.mark.parametrize("has_id", [True, False], ids=["tool", "person"])
@pytest.mark.parametrize(("one", "other"), SPELLINGS[:3])
async def test_second_spelling_created_by_a_person_is_served(
    tmp_path: Path, one: str, other: str, has_id: bool
) -> None:
    """behaviour 350: both notes are served while the server runs and after its restart."""
    if not has_id:
        put_note(tmp_path, one, "# First\n\nText of the first.\n")
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        made = (await lithos.write("First", "Text of the first.", path=one))["path"] if has_id else one
        twin = other if made == one else one
        put_note(tmp_path, twin, "# Other\n\nText of the other.\n")
        with trio.fail_after(30):
            while "Other" not in await lithos.listed():
                await trio.sleep(0.05)
        ids = {path: (await lithos.call("lithos_read", path=path))["id"] for path in (made, twin)}
        assert len(set(ids.values())) == 2
    async with serving(tmp_path) as lithos:
        for path, note_id in ids.items():
            assert (await lithos.call("lithos_read", path=path))["id"] == note_id
