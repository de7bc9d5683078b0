"""Weak copy names, which people also use for their own files.

Files with a weak copy name are notes unless a proof makes them copies (docs/spec/copies.md §1).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.history.recording.backfill import CatchingUp
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.format.document import derive_id
from tests.history.service.test_conflict_copies import OWN_ID, WEAK, paths
from tests.notes.service.test_copy_merging import copies
from tests.servers import Lithos, put_note, serving, until

LINES = [f"Sentence {number} of the page, as it was." for number in range(10)]
#: Edits of the same page on two machines.
HERE = ["Sentence 0, changed here.", *LINES[1:]]
THERE = [*LINES[:9], "Sentence 9, changed there."]
TEMPLATE = ["## Who", "Met at a conference.", "## Work", "Writes about tools.", "## Links", *LINES]
WATCHED = {"watch_files": True}


def body(lines: list[str]) -> str:
    return "\n\n".join(lines) + "\n"


async def settled(lithos: Lithos, *wanted: str) -> None:
    """Wait until exactly the notes at these paths exist."""
    with trio.fail_after(30):
        while sorted(await paths(lithos)) != sorted(wanted):
            await trio.sleep(0.01)


async def changed(lithos: Lithos, path: str, lines: list[str]) -> None:
    """Change a note in the way of a person, and wait until the server has indexed the change."""
    put_note(lithos.data, path, body(lines))
    entry = lithos.server.get(Catalogue).at_path(path)
    assert entry is not None
    await until(lambda: lithos.server.get(Catalogue).get(entry.note.id).digest != entry.digest)


async def with_earlier_version(lithos: Lithos, path: str = "plan.md") -> None:
    """Create a note, and keep an earlier version in the history."""
    put_note(lithos.data, path, body(LINES))
    await until(lambda: lithos.server.get(Catalogue).at_path(path) is not None)
    await changed(lithos, path, HERE)


@pytest.mark.parametrize("name", WEAK)
async def test_line_of_an_earlier_version_makes_a_file_a_copy(tmp_path: Path, name: str) -> None:
    """behaviour 340"""
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos)
        put_note(tmp_path, name, body(THERE))
        assert await copies(lithos) == [name]
        assert await paths(lithos) == ["plan.md"]
    async with serving(tmp_path, server=WATCHED) as lithos:
        assert await copies(lithos) == [name]
        assert await paths(lithos) == ["plan.md"]


PAIRS = ("ann-obsidian.md", "ann 2.md", "ann (1).md", "ann-Berlin.md")


@pytest.mark.parametrize("folder", ["", "people/"])
async def test_pages_from_one_template_are_notes(tmp_path: Path, folder: str) -> None:
    """behaviour 340: the pages are notes at the first start, after edits and after each restart."""
    names = [f"{folder}{name}" for name in ("ann.md", *PAIRS, "2026-11-27.md", "2026-11-27-ben.md")]
    for name in names:
        put_note(tmp_path, name, body([*TEMPLATE, f"This is {name}."]))
    for number in range(3):
        async with serving(tmp_path, server=WATCHED) as lithos:
            await lithos.server.get(CatchingUp).done.wait()
            assert sorted(await paths(lithos)) == sorted(names)
            await changed(lithos, names[0], [*TEMPLATE[:2], f"Edit {number}.", *TEMPLATE[4:], "This is ann."])
            await changed(lithos, names[1], [*TEMPLATE, f"Edit {number} of the other."])
            await settled(lithos, *names)
            rows = (await lithos.call("lithos_search", query="template sentence page"))["results"]
            assert not any("warnings" in row for row in rows)
    assert sorted(each.name for each in (tmp_path / "knowledge" / folder).glob("*.md")) == sorted(
        name.removeprefix(folder) for name in names
    )


@pytest.mark.parametrize("explained_by", ["a note", "an old version of a note", "a template"])
async def test_line_from_a_template_makes_no_file_a_copy(tmp_path: Path, explained_by: str) -> None:
    """behaviour 340: the note was filled in, while the new page still has the template's lines."""
    filled = [*TEMPLATE[:1], "Met on a train.", *TEMPLATE[2:]]
    served = ["ann.md"]
    if explained_by == "a template":
        put_note(tmp_path, "templates/Person.md", body(TEMPLATE))
        served.append("templates/Person.md")
    else:
        put_note(tmp_path, "ben.md", body([*TEMPLATE, "He is from Bern."]))
        served.append("ben.md")
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        put_note(tmp_path, "ann.md", body(TEMPLATE))
        await settled(lithos, *served)
        await changed(lithos, "ann.md", filled)
        if explained_by == "an old version of a note":
            await changed(lithos, "ben.md", [*TEMPLATE[:1], "Met in Bern.", *TEMPLATE[2:]])
        put_note(tmp_path, "ann-obsidian.md", body(TEMPLATE))
        await settled(lithos, *served, "ann-obsidian.md")


async def test_copied_page_stays_a_note_when_the_first_page_changes(tmp_path: Path) -> None:
    """behaviour 340: while the server runs, after a restart and after the loss of the manifest."""
    names = ["Apollo.md", "Apollo 2.md"]
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        for name in names:
            put_note(tmp_path, name, body(LINES))
            await until(lambda name=name: lithos.server.get(Catalogue).at_path(name) is not None)
        await changed(lithos, "Apollo.md", HERE)
        await changed(lithos, "Apollo 2.md", THERE)
        await settled(lithos, *names)
    put_note(tmp_path, "Apollo 2.md", body([*LINES[:9], "Changed while no server ran."]))
    async with serving(tmp_path) as lithos:
        await settled(lithos, *names)
    (tmp_path / ".lithos" / "manifest.db").unlink()
    async with serving(tmp_path) as lithos:
        await settled(lithos, *names)


async def test_renamed_page_stays_a_note_when_its_name_is_reused(tmp_path: Path) -> None:
    """behaviour 340: last week's page is renamed, and this week's page begins under its old name."""
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos, "Week.md")
        (lithos.knowledge / "Week.md").rename(lithos.knowledge / "Week 2.md")
        await settled(lithos, "Week 2.md")
        put_note(tmp_path, "Week.md", body(LINES))
        await settled(lithos, "Week.md", "Week 2.md")
    (tmp_path / "knowledge" / "Week.md").rename(tmp_path / "knowledge" / "Week 3.md")
    put_note(tmp_path, "Week.md", body(HERE))
    async with serving(tmp_path) as lithos:
        await settled(lithos, "Week.md", "Week 2.md", "Week 3.md")


@pytest.mark.parametrize("name", ["plan 2.md", "plan.sync-conflict-20260304-050607-ABCDEFG.md"])
async def test_frontmatter_can_declare_a_file_a_separate_note(tmp_path: Path, name: str) -> None:
    """behaviour 341"""
    text = "---\nconflict_copy: false\n---\n" + body(THERE)
    put_note(tmp_path, "plan.md", body(LINES))
    put_note(tmp_path, name, text)
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await settled(lithos, "plan.md", name)
        await changed(lithos, "plan.md", HERE)
        put_note(tmp_path, name, body(THERE))
        if name.startswith("plan.sync"):
            assert await copies(lithos) == [name], "it does not say so any more"
        put_note(tmp_path, name, text)
        await settled(lithos, "plan.md", name)
    assert (tmp_path / "knowledge" / name).read_text() == text


# -- copies of copies ------------------------------------------------------------------------------


@pytest.mark.parametrize("with_id", [False, True])
async def test_copy_of_a_copy_belongs_to_the_note(tmp_path: Path, with_id: bool) -> None:
    """behaviour 342"""
    head = f"---\nid: {OWN_ID}\n---\n" if with_id else ""
    first = "plan.sync-conflict-20260304-050607-ABCDEFG.md"
    names = [first, first.replace(".md", ".sync-conflict-20260305-050607-ABCDEFG.md")]
    put_note(tmp_path, "plan.md", head + body(LINES))
    for name in names:
        put_note(tmp_path, name, head + body(THERE))
    for _ in range(2):
        async with serving(tmp_path, server=WATCHED) as lithos:
            assert await copies(lithos, 2) == sorted(names)
            assert await paths(lithos) == ["plan.md"]


async def test_weakly_named_copy_of_a_copy_belongs_to_the_note(tmp_path: Path) -> None:
    """behaviour 342: both files appear at once, either while the server runs or before the next start."""
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos, "Plan.md")
        put_note(tmp_path, "Plan 2.md", body(THERE))
        await copies(lithos)
        put_note(tmp_path, "Plan 2 2.md", body([*THERE[:5], "And again.", *THERE[6:]]))
        await copies(lithos, 2)
        for name in ("Plan-HOST 2.md", "Plan-HOST.md"):
            put_note(tmp_path, name, body(THERE))
        await copies(lithos, 4)
        assert await paths(lithos) == ["Plan.md"]
    async with serving(tmp_path) as lithos:
        await copies(lithos, 4)
        assert await paths(lithos) == ["Plan.md"]


# -- ids -------------------------------------------------------------------------------------------

SYNCED = "plan.sync-conflict-20260304-050607-ABCDEFG.md"
NAMED = f"---\nid: {derive_id('plan.md')}\n---\n" + body(THERE)


async def expect_note(lithos: Lithos, name: str = SYNCED, **note: Any) -> None:
    """Check that plan.md has its derived id although the file contains no id, and that `name` is its copy."""
    assert await copies(lithos) == [name]
    await settled(lithos, "plan.md")
    read = await lithos.call("lithos_read", path="plan.md")
    assert read["id"] == derive_id("plan.md")
    assert read["content"].startswith(note.get("begins", LINES[0]))
    assert name in str(read["conflict_copies"])


@pytest.mark.parametrize("name", [SYNCED, "plan 2.md", "plan-obsidian.md"])
async def test_file_with_derived_id_is_a_copy_at_first_start(tmp_path: Path, name: str) -> None:
    """behaviour 343"""
    put_note(tmp_path, name, NAMED)
    put_note(tmp_path, "plan.md", body(LINES))
    for _ in range(2):
        async with serving(tmp_path, server=WATCHED) as lithos:
            await expect_note(lithos, name)
    (tmp_path / ".lithos" / "manifest.db").unlink()
    async with serving(tmp_path, server=WATCHED) as lithos:
        await expect_note(lithos, name)


@pytest.mark.parametrize("name", [SYNCED, "plan 2.md"])
async def test_file_arriving_with_a_derived_id_is_a_copy(tmp_path: Path, name: str) -> None:
    """behaviour 343: the file may arrive while the server is running or stopped, also before a restart."""
    put_note(tmp_path, "plan.md", body(LINES))
    async with serving(tmp_path, server=WATCHED) as lithos:
        await settled(lithos, "plan.md")
        put_note(tmp_path, name, NAMED)
        await expect_note(lithos, name)
        await changed(lithos, "plan.md", HERE)
        await expect_note(lithos, name, begins=HERE[0])
    async with serving(tmp_path, server=WATCHED) as lithos:
        await expect_note(lithos, name, begins=HERE[0])
    (tmp_path / "knowledge" / name).unlink()
    async with serving(tmp_path) as lithos:
        assert await copies(lithos, 0) == []
    put_note(tmp_path, name, NAMED)
    async with serving(tmp_path) as lithos:
        await expect_note(lithos, name, begins=HERE[0])


async def test_note_without_id_gets_its_id_from_an_earlier_copy(tmp_path: Path) -> None:
    """behaviour 343"""
    async with serving(tmp_path, server=WATCHED) as lithos:
        put_note(tmp_path, SYNCED, NAMED)
        await settled(lithos, SYNCED)
        put_note(tmp_path, "plan.md", body(LINES))
        await expect_note(lithos)
    async with serving(tmp_path) as lithos:
        await expect_note(lithos)


async def test_note_added_while_server_is_stopped_gets_id_from_copy(tmp_path: Path) -> None:
    """behaviour 343"""
    put_note(tmp_path, SYNCED, NAMED)
    async with serving(tmp_path) as lithos:
        await settled(lithos, SYNCED)
    put_note(tmp_path, "plan.md", body(LINES))
    async with serving(tmp_path) as lithos:
        await expect_note(lithos)


async def test_note_keeps_its_id_when_file_without_id_replaces_it(tmp_path: Path) -> None:
    """behaviour 343: the other machine's file gets the name, and the local file becomes the copy."""
    put_note(tmp_path, "plan.md", f"---\nid: {OWN_ID}\n---\n" + body(LINES))
    async with serving(tmp_path, server=WATCHED) as lithos:
        (lithos.knowledge / "plan.md").rename(lithos.knowledge / SYNCED)
        put_note(tmp_path, "plan.md", body(THERE))
        assert await copies(lithos) == [SYNCED]
        await settled(lithos, "plan.md")
        assert (await lithos.call("lithos_read", path="plan.md"))["id"] == OWN_ID
    async with serving(tmp_path) as lithos:
        assert await copies(lithos) == [SYNCED]
        assert (await lithos.call("lithos_read", path="plan.md"))["id"] == OWN_ID


async def test_renamed_note_keeps_its_id_when_its_name_is_reused(tmp_path: Path) -> None:
    """behaviour 343: a person renamed the note, so there is no conflict."""
    named = f"---\nid: {derive_id('week.md')}\n---\n"
    put_note(tmp_path, "week.md", named + body(LINES))
    async with serving(tmp_path) as lithos:
        await settled(lithos, "week.md")
    (tmp_path / "knowledge" / "week.md").rename(tmp_path / "knowledge" / "week-old.md")
    put_note(tmp_path, "week.md", body(["A new week."]))
    async with serving(tmp_path, server=WATCHED) as lithos:
        await settled(lithos, "week.md", "week-old.md")
        assert (await lithos.call("lithos_read", path="week-old.md"))["id"] == derive_id("week.md")
        (lithos.knowledge / "week-old.md").rename(lithos.knowledge / "week-older.md")
        await settled(lithos, "week.md", "week-older.md")
