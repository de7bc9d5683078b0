"""Moves of a note to another vault.

The note moves once with its history, even after a crash (behaviour 297).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryStore
from lithos.history.settings import HistoryConfig
from lithos.kernel.values.errors import (
    DocNotFound,
    Duplicate,
    Forbidden,
    InvalidInput,
    LithosError,
    PathCollision,
    SlugCollision,
    StorageFailed,
    VersionConflict,
)
from lithos.kernel.values.principals import Principal
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.settings import AgentsConfig
from lithos.vaults.service import move_plans
from lithos.vaults.service.moving import VaultMoving
from tests.servers import MISSING_ID, serving, take_up
from tests.vaults.service.pairs import AGENT, events_of, history, three_versions, vaults


async def test_moved_note_keeps_its_bytes_version_and_history(tmp_path: Path) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await pair.here.create("Links", "See [[Plan]] and [[Plan]].")
        await pair.here.create("Links too", "See [[Plan]].")
        before, data = await history(pair.here, note_id), (tmp_path / "here/plan.md").read_bytes()
        read = await pair.here.read(note_id)
        moved = await pair.move(note_id, path="projects/")
        assert (moved.outcome.path, moved.outcome.version) == ("projects/plan.md", 3)
        assert (moved.former_path, moved.versions, moved.left, moved.unresolved) == ("plan.md", 3, 0, 2)
        assert pair.files()["there/projects/plan.md"] == data
        assert not (tmp_path / "here/plan.md").exists()
        again = await pair.there.read(note_id)
        for each in (read, again):
            del each["metadata"]["namespace"]  # the namespace depends on the folder
        for key in ("id", "title", "content", "metadata"):
            assert again[key] == read[key]
        there = await history(pair.there, note_id)
        assert there[1:] == before
        assert there[0][:3] == (3, "renamed", AGENT)
        assert [row[:3] for row in await history(pair.here, note_id)] == [
            (4, "deleted", AGENT), (3, "updated", "cem"), (2, "updated", "ben"), (1, "created", "ann"),
        ]  # fmt: skip
        old = await pair.there.read(note_id, version=1)
        assert old["content"] == "first"
        assert events_of(pair.there, note_id) == ["note.created"]
        assert events_of(pair.here, note_id)[-1] == "note.deleted"
        assert await pair.there.found("third") == ["Plan"]
        assert await pair.here.found("third") == []
        await pair.there.write("Plan", "fourth", id=note_id)
        assert (await history(pair.there, note_id))[0][:3] == (4, "updated", "tester")
    async with vaults(tmp_path) as pair:
        assert pair.places(note_id) == ["there"]
        await pair.there.server.get(CatchingUp).done.wait()
        assert (await history(pair.there, note_id))[1:] == there


async def test_note_that_moves_back_has_each_version_once(tmp_path: Path) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        first = await history(pair.here, note_id)
        await pair.move(note_id)
        await pair.there.write("Plan", "fourth", id=note_id, agent="dan")
        back = VaultMoving(pair.there.server, pair.here.server, "here")
        moved = await back.move(note_id=note_id, agent=AGENT)
        assert pair.places(note_id) == ["here"]
        # The version follows all earlier versions in this vault, including the deletion.
        assert moved.outcome.version == 5
        rows = await history(pair.here, note_id)
        assert rows[-3:] == first
        assert [row[:3] for row in rows] == [
            (5, "renamed", AGENT), (4, "updated", "dan"), (4, "deleted", AGENT), (3, "renamed", AGENT),
            *(row[:3] for row in first),
        ]  # fmt: skip
        assert (await pair.here.read(note_id))["metadata"]["version"] == 5
        assert (await pair.here.read(note_id, version=4))["content"] == "fourth"
        assert (await pair.here.write("Plan", "fifth", id=note_id))["version"] == 6


async def test_file_without_an_id_keeps_bytes_and_known_id(tmp_path: Path) -> None:
    """behaviour 297: only Lithos stores id and version, as after an edit by a person."""
    text = b"# Plain\r\n\r\nNothing of ours.  \r\n"
    (tmp_path / "here").mkdir()
    (tmp_path / "here/plain.md").write_bytes(text)
    async with vaults(tmp_path) as pair:
        (note_id,) = [entry.note.id for entry in pair.here.server.get(Catalogue)]
        created = (await pair.here.read(note_id))["metadata"]["created_at"]
        text += b"More.\r\n"
        (tmp_path / "here/plain.md").write_bytes(text)
        moved = await pair.move(note_id, path="notes/other.md")
        assert moved.outcome.version == 2
        assert pair.files() == {"there/notes/other.md": text}
    async with vaults(tmp_path) as pair:
        assert pair.places(note_id) == ["there"]
        metadata = (await pair.there.read(note_id))["metadata"]
        assert (metadata["version"], metadata["created_at"]) == (2, created)


def reader(name: str = "reader") -> Principal:
    return Principal(name, "read")


REFUSALS: dict[str, tuple[type[LithosError], dict[str, Any]]] = {
    "taken path": (PathCollision, {"path": "taken.md"}),
    "taken title": (SlugCollision, {"path": "elsewhere/"}),
    "file that is no note yet": (PathCollision, {"path": "unseen.md"}),
    "path outside": (InvalidInput, {"path": "../x.md"}),
    "other version": (VersionConflict, {"expected_version": 2}),
    "no right here": (Forbidden, {"by": reader(), "by_there": Principal("writer", "write")}),
    "no right there": (Forbidden, {"by": Principal("writer", "write"), "by_there": reader()}),
    "unknown note": (DocNotFound, {"note_id": MISSING_ID}),
}


@pytest.mark.parametrize("why", REFUSALS)
async def test_refused_move_changes_nothing(tmp_path: Path, why: str) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await pair.there.create("Other", path="taken.md")
        if why == "taken title":
            await pair.there.create("Plan", "of somebody else", path="elsewhere/other.md")
        if why == "file that is no note yet":
            (tmp_path / "there/unseen.md").write_text("# Unseen\n")
        before = pair.state()
        kind, given = REFUSALS[why]
        with pytest.raises(kind):
            await pair.moving.move(**{"note_id": note_id, "agent": AGENT} | given)
        assert pair.state() == before


async def test_move_needs_permission_in_both_vaults(tmp_path: Path) -> None:
    """behaviour 297: an agent cannot move the note if either vault requires approval for the path."""
    agents = AgentsConfig(agents={AGENT: {"write": ["in/"], "propose": ["maybe/"]}})
    async with vaults(tmp_path, agents=agents) as pair:
        inside = await pair.here.create("Inside", path="in/")
        outside = await pair.here.create("Outside", path="out/")
        before = pair.state()
        by = Principal("t", "write")
        for note_id, path in ((outside, "in/outside.md"), (inside, "out/inside.md"), (inside, "maybe/x.md")):
            with pytest.raises(Forbidden):
                await pair.move(note_id, path=path, by=by)
        assert pair.state() == before
        assert (await pair.move(inside, by=by)).outcome.path == "in/Inside.md"
        assert pair.places(inside) == ["there"]


async def test_move_is_refused_when_target_has_id_with_other_bytes(tmp_path: Path) -> None:
    """behaviour 297: if the target has the same bytes at that path, only the source note is deleted."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        data = (tmp_path / "here/plan.md").read_bytes()
        (tmp_path / "there/plan.md").write_bytes(data.replace(b"third", b"3rd"))
        await take_up(pair.there, "plan.md")
        before = pair.files(), pair.here.events()
        with pytest.raises(Duplicate) as refused:
            await pair.move(note_id)
        assert refused.value.extras["duplicate_of"]["id"] == note_id
        with pytest.raises(Duplicate):
            await pair.move(note_id, path="elsewhere.md")
        assert (pair.files(), pair.here.events()) == before
        await pair.there.call("lithos_delete", id=note_id, agent="a")
        (tmp_path / "there/plan.md").write_bytes(data)
        await take_up(pair.there, "plan.md")
        moved = await pair.move(note_id)
        assert moved.versions == 0
        assert moved.left >= 2, "the third it may have found itself"
        assert pair.files() == {"there/plan.md": data}


async def test_move_is_refused_when_the_target_is_not_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the disk of the target vault is full."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        before = pair.state()

        files = pair.there.server.get(NoteFiles)
        with monkeypatch.context() as patch:
            patch.setattr(
                type(files),
                "apply",
                lambda self, operations: [OSError(28, "No space left")] * len(operations),
            )
            with pytest.raises(StorageFailed, match="No space left"):
                await pair.move(note_id)
        assert pair.state() == before
        assert pair.places(note_id) == ["here"]
        await pair.move(note_id)
        assert pair.places(note_id) == ["there"]


async def test_versions_stay_in_the_source_when_target_has_no_history(tmp_path: Path) -> None:
    """behaviour 297"""
    root = tmp_path
    for name in ("here", "there"):
        (root / name).mkdir()
    off = HistoryConfig(enabled=False)
    async with (
        serving(root / "data-here", storage={"vault": root / "here"}) as here,
        serving(root / "data-there", storage={"vault": root / "there"}, history=off) as there,
    ):
        note_id = await three_versions(here)
        moved = await VaultMoving(here.server, there.server, "there").move(note_id=note_id, agent=AGENT)
        assert moved.versions == 0
        assert moved.left >= 2, "the third it may have found itself"
        assert len(await history(here, note_id)) == 4
        back = await VaultMoving(there.server, here.server, "here").move(note_id=note_id, agent=AGENT)
        assert (back.versions, back.left, back.outcome.version) == (0, 0, 5)
        assert note_id in here.server.get(Catalogue)


async def test_versions_above_the_size_limit_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the newest versions are moved."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        sizes = [row.size for row in pair.here.server.get(HistoryStore).rows(note_id, 3)[0]]
        monkeypatch.setattr(move_plans, "MOST_CARRIED", sizes[0] + sizes[1])
        moved = await pair.move(note_id)
        assert (moved.versions, moved.left) == (2, 1)
        assert [row[:2] for row in await history(pair.there, note_id)] == [
            (3, "renamed"), (3, "updated"), (2, "updated"),
        ]  # fmt: skip
