"""A move to another vault that a crash interrupted: one vault has the note then (behaviour 297)."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.actors.writing.applying import Applying
from lithos.services.vaults.moving import VaultMoving, pending_targets
from lithos.stores.history.store import HistoryStore
from lithos.stores.notes.displaced import VaultMoves
from tests.repeats import repeats
from tests.services.vaults.pairs import AGENT, Pair, history, three_versions, vaults

STEPS = ("write", "delete", "remove")


class Killed(BaseException):
    """The process ends here."""


async def kill(*_: Any, **__: Any) -> Any:
    raise Killed


async def stop_before(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, step: str, note_id: str, **more: Any
) -> None:
    """Begin a move that is stopped before a step of it."""
    with monkeypatch.context() as patch:
        if step == "remove":
            delete = VaultMoving._delete

            async def delete_then_die(*given: Any) -> None:
                await delete(*given)
                raise Killed

            patch.setattr(VaultMoving, "_delete", delete_then_die)
        else:
            patch.setattr(VaultMoving, f"_{step}", kill)
        with pytest.raises(Killed):
            await pair.move(note_id, **more)
    assert await pending_targets(pair.here.server) == ("there",)


@pytest.mark.parametrize("step", STEPS)
async def test_a_crash_before_a_step_leaves_one_note_with_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        data, before = pair.files()["here/plan.md"], await history(pair.here, note_id)
        await stop_before(pair, monkeypatch, step, note_id)
    async with vaults(tmp_path) as pair:
        assert await pending_targets(pair.here.server) == ("there",)
        assert await pair.moving.resume() == 0
        assert await pending_targets(pair.here.server) == ()
        place = "here" if step == "write" else "there"
        assert pair.places(note_id) == [place]
        assert pair.files() == {f"{place}/plan.md": data}
        side = pair.here if place == "here" else pair.there
        assert (await history(side, note_id))[-3:] == before
        assert (await side.read(note_id))["content"] == "third"
    async with vaults(tmp_path) as pair:
        assert await pair.moving.resume() == 0
        assert pair.files() == {f"{place}/plan.md": data}


async def test_what_a_person_changed_after_the_crash_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: what was written there is taken back, and the note stays here as it is."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before(pair, monkeypatch, "delete", note_id)
        assert pair.places(note_id) == ["here", "there"]
    with (tmp_path / "here/plan.md").open("a") as file:
        file.write("\nby a person\n")
    async with vaults(tmp_path) as pair:
        assert await pair.moving.resume() == 0
        assert pair.places(note_id) == ["here"]
        assert list(pair.files()) == ["here/plan.md"]
        assert "by a person" in (await pair.here.read(note_id))["content"]
        moved = await pair.move(note_id)
        assert pair.places(note_id) == ["there"]
        assert "by a person" in (await pair.there.read(note_id))["content"]
        assert moved.outcome.version == 5, "after the deletion of what was taken back"


async def test_what_a_person_changed_there_after_the_crash_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297"""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before(pair, monkeypatch, "delete", note_id)
    with (tmp_path / "there/plan.md").open("a") as file:
        file.write("\nby a person\n")
    (tmp_path / "there/plan.md").rename(tmp_path / "there/renamed.md")
    async with vaults(tmp_path) as pair:
        assert await pair.moving.resume() == 0
        assert list(pair.files()) == ["there/renamed.md"]
        assert "by a person" in (await pair.there.read(note_id))["content"]


async def test_a_move_that_was_begun_is_settled_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: another target is refused meanwhile."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before(pair, monkeypatch, "write", note_id, path="one.md")
        other = VaultMoving(pair.here.server, pair.there.server, "other")
        with pytest.raises(Exception, match="another vault already"):
            await other.move(note_id=note_id, agent=AGENT)
        assert (await pair.move(note_id, path="two.md")).versions == 3
        assert list(pair.files()) == ["there/two.md"]


async def move_until(root: Path, monkeypatch: pytest.MonkeyPatch, moment: str, note_id: str) -> None:
    """Move a note until the other vault's writer is at a moment; both vaults end there."""
    async with vaults(root) as pair:
        applying = pair.there.server.actors.writer._applying
        if moment == "before the versions":
            monkeypatch.setattr(applying.recorder, "record", kill)
        elif moment == "after the versions":
            monkeypatch.setattr(Applying, "_apply_at_once", kill)
        else:
            monkeypatch.setattr(applying.recorder, "settle", kill)
        await pair.move(note_id)


@pytest.mark.parametrize("moment", ["before the versions", "after the versions", "after the file"])
async def test_a_crash_of_the_other_vaults_writer_keeps_note_and_versions_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """behaviour 297: the versions are there before the file, and none of them stays without it."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        before = await history(pair.here, note_id)
    with pytest.raises(BaseExceptionGroup) as ended:
        await move_until(tmp_path, monkeypatch, moment, note_id)
    assert ended.group_contains(Killed, depth=None)
    monkeypatch.undo()
    async with vaults(tmp_path) as pair:
        assert await pending_targets(pair.here.server) == ("there",)
        assert await pair.moving.resume() == 0
        place = "there" if moment == "after the file" else "here"
        assert pair.places(note_id) == [place]
        await pair.there.server.actors.catching_up.done.wait()
        store = pair.there.server.actors.stores.history
        assert isinstance(store, HistoryStore)
        if place == "here":
            assert store.rows(note_id, 10) == ([], 0)
        else:
            rows = await history(pair.there, note_id)
            assert (rows[0][:3], rows[1:]) == ((3, "renamed", AGENT), before)


VERSIONS = 4
KILLS = repeats("KILLS", 3)
#: A move takes some 10 ms.
LONGEST_LAG = 0.06
NOTES = 6 * KILLS
PATIENCE = 120.0


@pytest.mark.slow
async def test_a_kill_at_any_moment_leaves_each_note_in_one_vault(tmp_path: Path) -> None:
    """behaviour 297: kill -9 while one note after the other moves."""
    ids: dict[str, bytes] = {}
    for number in range(NOTES):
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / f"here/plain{number}.md").write_text(f"Nothing of ours in {number}.\n")
    async with vaults(tmp_path) as pair:
        for entry in list(pair.here.server.catalogue):
            for version in range(2, VERSIONS + 1):
                text = f"version {version} of {entry.path}"
                await pair.here.write(entry.note.title, text, id=entry.note.id, agent=f"agent{version}")
            ids[entry.note.id] = (tmp_path / "here" / entry.path).read_bytes()
    lags = random.Random(297)
    for _ in range(KILLS):
        moved = await move_and_kill(tmp_path, lags.uniform(0, LONGEST_LAG))
        async with vaults(tmp_path) as pair:
            assert await pair.moving.resume() == 0
            assert await pending_targets(pair.here.server) == ()
            await pair.there.server.actors.catching_up.done.wait()
            assert set(pair.files().values()) == set(ids.values())
            assert len(pair.files()) == NOTES
            for note_id in ids:
                (place,) = pair.places(note_id)
                assert place == "there" or note_id not in moved, "what was acknowledged is there"
                side = pair.here if place == "here" else pair.there
                rows = await history(side, note_id)
                assert [row[0] for row in rows if row[1] in ("created", "updated")] == [4, 3, 2, 1]
                assert [row[1] for row in rows].count("renamed") == (place == "there")
                assert "deleted" not in [row[1] for row in rows]


async def move_and_kill(root: Path, lag: float) -> set[str]:
    """Have a process move notes until it is killed, some time after its first; the ids it acknowledged."""
    command = [sys.executable, "-m", "tests.services.vaults.mover", str(root)]
    with trio.fail_after(PATIENCE), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert await trio.to_thread.run_sync(process.stdout.readline) == "begin\n"
            await trio.sleep(lag)
        finally:
            process.kill()
        rest = await trio.to_thread.run_sync(process.stdout.read)
    return {line.rstrip("\n") for line in rest.splitlines(keepends=True) if line.endswith("\n")}


async def test_a_record_that_cannot_be_read_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the note stays where it is, and can be moved."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before(pair, monkeypatch, "delete", note_id)
        (record,) = (tmp_path / "data-here/.lithos/vault-moves").glob("*.json")
        record.write_text("{")
        assert VaultMoves(tmp_path / "data-here/.lithos").pending() == []
        assert record.with_suffix(".unreadable").exists()
        await pair.move(note_id)
        assert list(pair.files()) == ["there/plan.md"]
