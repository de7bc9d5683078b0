"""Changes to a note while it moves to another vault (behaviour 297)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.history.settings import HistoryConfig
from lithos.kernel.values.errors import DocNotFound, Duplicate, StorageFailed, VersionConflict
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import Move, Put, Remove
from lithos.vaults.service.moving import VaultMoving
from tests.vaults.service.pairs import Pair, history, three_versions, vaults


async def overtake(pair: Pair, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Run `change` once, after the target has the note and before the source deletes it."""
    delete, waiting = VaultMoving._delete, [change]

    async def overtaken(self: VaultMoving, plan: Any) -> None:
        if waiting:
            await waiting.pop()()
        await delete(self, plan)

    monkeypatch.setattr(VaultMoving, "_delete", overtaken)


@pytest.mark.parametrize("who", ["person", "agent"])
async def test_change_during_a_move_is_also_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """behaviour 297: the copy is deleted, and the changed note is moved."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)

        async def change() -> None:
            if who == "agent":
                await pair.here.write("Plan", "fourth", id=note_id, agent="dan")
            else:
                with (tmp_path / "here/plan.md").open("a") as file:
                    file.write("\nfourth\n")

        await overtake(pair, monkeypatch, change)
        await pair.move(note_id)
        assert pair.places(note_id) == ["there"]
        assert "fourth" in (await pair.there.read(note_id))["content"]
        assert list(pair.files()) == ["there/plan.md"]


async def test_change_during_a_move_conflicts_with_the_expected_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)

        async def change() -> None:
            await pair.here.write("Plan", "fourth", id=note_id)

        await overtake(pair, monkeypatch, change)
        with pytest.raises(VersionConflict) as refused:
            await pair.move(note_id, expected_version=3)
        assert refused.value.extras["current_version"] == 4
        assert pair.places(note_id) == ["here"]
        assert list(pair.files()) == ["here/plan.md"]


async def test_deletion_during_a_move_deletes_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the agent that deleted the note got a success message."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)

        async def change() -> None:
            await pair.here.call("lithos_delete", id=note_id, agent="dan")

        await overtake(pair, monkeypatch, change)
        with pytest.raises(DocNotFound):
            await pair.move(note_id)
        assert pair.files() == {}


@pytest.mark.parametrize("has_history", [True, False])
async def test_simultaneous_changes_in_both_vaults_lose_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_history: bool
) -> None:
    """behaviour 297: only a person can resolve this case, so the error names the paths of both notes."""
    async with vaults(tmp_path, history=HistoryConfig(enabled=has_history)) as pair:
        note_id = await three_versions(pair.here)

        async def change() -> None:
            await pair.here.write("Plan", "fourth here", id=note_id)
            await pair.there.write("Plan", "fourth there", id=note_id)

        await overtake(pair, monkeypatch, change)
        with pytest.raises(StorageFailed, match=r"here at plan\.md, there at plan\.md"):
            await pair.move(note_id)
        assert (await pair.here.read(note_id))["content"] == "fourth here"
        assert (await pair.there.read(note_id))["content"] == "fourth there"
        with pytest.raises(Duplicate):
            await pair.move(note_id)
        await pair.there.call("lithos_delete", id=note_id, agent="ann")
        assert (await pair.move(note_id)).outcome.path == "plan.md"
        assert (await pair.there.read(note_id))["content"] == "fourth here"


async def test_note_that_cannot_be_deleted_stays_in_the_source_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the copy in the target vault is deleted again."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        before, files = pair.files(), pair.here.server.get(NoteFiles)
        apply = type(files).apply

        def read_only(self: NoteFiles, operations: Sequence[Put | Remove | Move]) -> Sequence[object]:
            if self is files:
                return [PermissionError(13, "Permission denied")] * len(operations)
            return apply(self, operations)

        with monkeypatch.context() as patch:
            patch.setattr(type(files), "apply", read_only)
            with pytest.raises(StorageFailed, match="Permission denied"):
                await pair.move(note_id)
        assert pair.files() == before
        assert pair.places(note_id) == ["here"]
        assert [row[1] for row in await history(pair.there, note_id)][:2] == ["deleted", "renamed"]
        await pair.move(note_id)
        assert pair.places(note_id) == ["there"]


async def test_move_is_finished_after_its_caller_disconnects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        scope = trio.CancelScope()

        async def leave() -> None:
            scope.cancel()

        await overtake(pair, monkeypatch, leave)
        with scope:
            await pair.move(note_id)
        assert list(pair.files()) == ["there/plan.md"]


async def test_note_is_moved_only_once_for_simultaneous_callers(tmp_path: Path) -> None:
    """behaviour 297: one caller moves the note.

    All other callers get the error that the note does not exist.
    """
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        results: list[str] = []

        async def move(number: int) -> None:
            try:
                results.append((await pair.move(note_id, path=f"{number}.md")).outcome.path)
            except DocNotFound:
                results.append("gone")

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(move, number)
        (path,) = (each for each in results if each != "gone")
        assert list(pair.files()) == [f"there/{path}"]
        assert [row[1] for row in await history(pair.there, note_id)].count("renamed") == 1
