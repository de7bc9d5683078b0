"""Placeholders of files that exist only in the cloud (docs/spec/lifecycle.md §6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.catalogue.catalogue import Catalogue
from tests.notes.service.test_watching import _fast, watching
from tests.servers import put_note, refusal, serving, until

__all__ = ["_fast"]

PLACEHOLDERS = pytest.mark.parametrize(
    "name",
    [".{}.icloud", "{}.nextcloud", "{}.owncloud", "{}.cloud"],
    ids=["icloud", "nextcloud", "owncloud", "odrive"],
)


def take_off(data: Path, path: str, name: str) -> Path:
    """Replace a file with a placeholder, and return the path of the placeholder."""
    file = data / "knowledge" / path
    placeholder = file.with_name(name.format(file.name))
    file.unlink(missing_ok=True)
    placeholder.parent.mkdir(parents=True, exist_ok=True)
    placeholder.write_bytes(b"bplist00")
    return placeholder


@PLACEHOLDERS
async def test_note_is_not_created_at_the_path_of_a_placeholder(tmp_path: Path, name: str) -> None:
    """behaviour 368: neither a creation nor a move nor a restore creates a note at this path."""
    take_off(tmp_path, "a/Plan.md", name)
    async with serving(tmp_path) as lithos:
        given: dict[str, Any] = {"title": "X", "content": "new", "agent": "t"}
        answer = await lithos.call("lithos_write", path="a/Plan.md", **given)
        assert "cloud" in refusal(answer, "path_collision")
        made = await lithos.write("Other", "text")
        answer = await lithos.call("lithos_note_move", id=made["id"], path="a/Plan.md", agent="t")
        assert "cloud" in refusal(answer, "path_collision")
        gone = await lithos.write("Gone", "text", path="b/Gone.md")
        await lithos.call("lithos_delete", id=gone["id"], agent="t")
        take_off(tmp_path, "b/Gone.md", name)
        answer = await lithos.call("lithos_restore", id=gone["id"], version=1, agent="t")
        assert "cloud" in refusal(answer, "path_collision")
    assert not (tmp_path / "knowledge/a/Plan.md").exists()
    assert not (tmp_path / "knowledge/b/Gone.md").exists()


@PLACEHOLDERS
async def test_note_remains_while_its_file_is_only_in_the_cloud(tmp_path: Path, name: str) -> None:
    """behaviour 368: there is no event and no version.

    Changes and deletion of the note are refused, also after a restart.
    """
    put_note(tmp_path, "Keep.md", "# Keep\n\ntext\n")
    async with serving(tmp_path) as lithos:
        made = await lithos.write("Plan", "striped zebra", path="Plan.md")
    text = (tmp_path / "knowledge/Plan.md").read_bytes()
    placeholder = take_off(tmp_path, "Plan.md", name)
    async with serving(tmp_path) as lithos:
        assert await lithos.listed() == ["Keep", "Plan"]
        assert [kind for kind, _ in lithos.events()] == []
        for tool, more in (
            ("lithos_write", {"content": "new"}),
            ("lithos_note_update", {"tags": ["a"]}),
            ("lithos_note_edit", {"op": "append", "text": "new"}),
            ("lithos_delete", {}),
        ):
            answer = await lithos.call(tool, id=made["id"], agent="t", **more)
            assert "cloud" in refusal(answer, "internal_error"), tool
        assert "cloud" in refusal(await lithos.call("lithos_read", id=made["id"]), "doc_not_found")
        history = await lithos.call("lithos_history", id=made["id"])
        assert [each["op"] for each in history["versions"]] == ["created"]
    placeholder.unlink()
    (tmp_path / "knowledge/Plan.md").write_bytes(text)
    async with serving(tmp_path) as lithos:
        assert (await lithos.read(made["id"]))["content"] == "striped zebra"
        assert (await lithos.read(made["id"]))["version"] == 1


async def test_watcher_does_not_treat_a_placeholder_as_a_deletion(tmp_path: Path) -> None:
    """behaviour 368"""
    async with watching(tmp_path) as lithos:
        made = await lithos.write("Plan", "text", path="Plan.md")
        other = await lithos.write("Other", "text", path="Other.md")
        text = (lithos.knowledge / "Plan.md").read_bytes()
        placeholder = take_off(tmp_path, "Plan.md", ".{}.icloud")
        (lithos.knowledge / "Other.md").unlink()
        catalogue = lithos.server.get(Catalogue)
        await until(lambda: catalogue.get(other["id"]) is None)
        assert made["id"] in catalogue
        placeholder.unlink()
        (lithos.knowledge / "Plan.md").write_bytes(text + b"more\n")
        with trio.fail_after(60):
            while "more" not in (await lithos.call("lithos_read", id=made["id"])).get("content", ""):
                await trio.sleep(0.01)
        await until(lambda: any(kind == "note.deleted" for kind, _ in lithos.events()))
        gone = [payload["path"] for kind, payload in lithos.events() if kind == "note.deleted"]
        assert gone == ["Other.md"]


async def test_placeholder_next_to_its_file_is_ignored(tmp_path: Path) -> None:
    """behaviour 368: an outdated placeholder does not prevent changes to the note."""
    async with serving(tmp_path) as lithos:
        made = await lithos.write("Plan", "text", path="Plan.md")
        (lithos.knowledge / ".Plan.md.icloud").write_bytes(b"")
        assert (await lithos.write("Plan", "new", id=made["id"]))["status"] == "updated"
        await lithos.call("lithos_note_move", id=made["id"], path="Else.md", agent="t")
        assert lithos.files() == [".Plan.md.icloud", "Else.md"]
