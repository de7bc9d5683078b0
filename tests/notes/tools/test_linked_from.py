"""Links to a deleted note: the answer lists them and explains how to restore it (docs/spec/tools.md §3)."""

from __future__ import annotations

from pathlib import Path

from lithos.history.settings import HistoryConfig
from tests.servers import Lithos, serving

LINKS = [f"Links {number:02}" for number in range(25)]


async def test_deletion_answer_lists_linking_notes_and_explains_the_restore(lithos: Lithos) -> None:
    """behaviour 47: if no note links to the deleted note, the answer reports only success."""
    note = await lithos.create("Target", "[[Target]] the text")
    assert "linked_from" not in await lithos.call("lithos_impact", id=note)
    for title in LINKS:
        await lithos.create(title, "[[Target]] and [[target]] again", path="links")
    preview = await lithos.call("lithos_impact", id=note)
    assert (preview["dependents"], preview["linked_from_total"]) == ([], 25)
    assert [each["title"] for each in preview["linked_from"]] == LINKS
    gone = await lithos.call("lithos_delete", id=note, agent="ann")
    assert (gone["success"], gone["linked_from_total"]) == (True, 25)
    assert gone["linked_from"] == preview["linked_from"][:20]
    first = gone["linked_from"][0]
    assert await lithos.call("lithos_delete", id=first["id"], agent="ann") == {"success": True}
    # The restore advice is correct.
    assert f"lithos_restore with id={note} and version=" in gone["restore"]
    version = int(gone["restore"].partition("version=")[2].partition(",")[0])
    assert f"`lithos restore-note {note} --version {version}`" in gone["restore"]
    back = await lithos.call("lithos_restore", id=note, version=version, agent="ann")
    assert back["status"] == "created"
    assert "the text" in (await lithos.read(note))["content"]


async def test_deletion_answer_promises_no_restore_without_history(tmp_path: Path) -> None:
    async with serving(tmp_path, history=HistoryConfig(enabled=False)) as lithos:
        note = await lithos.create("Target", "text")
        await lithos.create("Linking", "[[Target]]")
        gone = await lithos.call("lithos_delete", id=note, agent="ann")
        assert gone["linked_from_total"] == 1
        assert "no versions are kept" in gone["restore"]


async def test_deletion_answer_only_confirms_success_to_status_clients(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"write_outcomes": "status"}) as lithos:
        note = await lithos.create("Target", "text")
        linking = await lithos.create("Linking", "[[Target]] " * 40)
        assert len((await lithos.read(linking, max_length=10))["links"]) == 40
        assert await lithos.call("lithos_delete", id=note, agent="ann") == {"success": True}
