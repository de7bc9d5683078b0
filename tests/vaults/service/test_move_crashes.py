"""Moves that a crash interrupts. Nothing is lost, and a second move finishes the work (behaviour 297)."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryStore
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import utc_now
from lithos.kernel.values.errors import Duplicate
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.applying import Applying
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.checks import Installed
from lithos.vaults.checks import check_elsewhere
from lithos.vaults.service.moving import VaultMoving
from tests.fakes import Killed
from tests.repeats import repeats
from tests.vaults.service.pairs import AGENT, Pair, history, three_versions, vaults


async def kill(*_: Any, **__: Any) -> Any:
    raise Killed


async def stop_before_deletion(pair: Pair, monkeypatch: pytest.MonkeyPatch, note_id: str) -> None:
    """Start a move, and stop it after the target vault has the note."""
    with monkeypatch.context() as patch:
        patch.setattr(VaultMoving, "_delete", kill)
        with pytest.raises(Killed):
            await pair.move(note_id)
    assert pair.places(note_id) == ["here", "there"]


async def test_crash_before_the_deletion_leaves_note_in_both_vaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: a second move finishes the first move."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        data, before = pair.files()["here/plan.md"], await history(pair.here, note_id)
        await stop_before_deletion(pair, monkeypatch, note_id)
    async with vaults(tmp_path) as pair:
        assert pair.files() == {"here/plan.md": data, "there/plan.md": data}
        await pair.there.server.get(CatchingUp).done.wait()
        assert await history(pair.here, note_id) == before
        assert (await history(pair.there, note_id))[-3:] == before
        await pair.move(note_id)
        assert pair.files() == {"there/plan.md": data}
        assert (await history(pair.there, note_id))[-3:] == before
        assert (await pair.there.read(note_id))["content"] == "third"


async def test_doctor_reports_a_note_that_is_in_two_vaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297"""

    async def look(pair: Pair) -> list[str]:
        elsewhere: dict[str, tuple[str, str]] = {}
        told = []
        for name, side in (("work", pair.here), ("home", pair.there)):
            config = side.server.get(Config)
            survey = survey_of(config, utc_now())
            patient = Installed(config=config, clock=utc_now, survey=survey, vault=name, elsewhere=elsewhere)
            told += [str(each) async for each in check_elsewhere(patient)]
        return told

    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await pair.there.create("Other")
        assert all("No note exists in more than one vault" in each for each in await look(pair))
        await stop_before_deletion(pair, monkeypatch, note_id)
        _, told = await look(pair)
        assert f"The note {note_id} is in two vaults: work at plan.md and home at plan.md." in told
        assert "Move the note again" in told
        await pair.move(note_id)
        assert all("No note exists in more than one vault" in each for each in await look(pair))


async def test_change_after_a_crash_is_included_in_the_next_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: the copy in the other vault is an earlier state of the note and is replaced."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before_deletion(pair, monkeypatch, note_id)
    with (tmp_path / "here/plan.md").open("a") as file:
        file.write("\nby a person\n")
    async with vaults(tmp_path) as pair:
        await pair.here.server.get(CatchingUp).done.wait()
        assert pair.places(note_id) == ["here", "there"]
        moved = await pair.move(note_id, path="elsewhere/")
        assert list(pair.files()) == ["there/elsewhere/plan.md"]
        assert "by a person" in (await pair.there.read(note_id))["content"]
        assert moved.outcome.version == 5, "after the deletion of what was there"


async def test_changes_in_both_vaults_after_a_crash_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 297: a person has to choose one of the two notes."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        await stop_before_deletion(pair, monkeypatch, note_id)
    for name in ("here", "there"):
        with (tmp_path / name / "plan.md").open("a") as file:
            file.write(f"\nby a person {name}\n")
    async with vaults(tmp_path) as pair:
        with pytest.raises(Duplicate):
            await pair.move(note_id)
        for name, data in pair.files().items():
            assert f"by a person {name.partition('/')[0]}".encode() in data
        await pair.here.call("lithos_delete", id=note_id, agent="ann")
        assert pair.places(note_id) == ["there"]


async def move_until(root: Path, monkeypatch: pytest.MonkeyPatch, moment: str, note_id: str) -> None:
    """Move a note until the target's writer reaches the given moment. Then stop both vaults."""
    async with vaults(root) as pair:
        applying = pair.there.server.get(Writer)._applying
        if moment == "before the versions":
            monkeypatch.setattr(applying.recorder, "record", kill)
        elif moment == "after the versions":
            monkeypatch.setattr(Applying, "_apply_at_once", kill)
        else:
            monkeypatch.setattr(applying.recorder, "settle", kill)
        await pair.move(note_id)


@pytest.mark.parametrize("moment", ["before the versions", "after the versions", "after the file"])
async def test_note_and_versions_stay_together_when_target_writer_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """behaviour 297: versions are stored before the file. If the file is missing, no version remains."""
    async with vaults(tmp_path) as pair:
        note_id = await three_versions(pair.here)
        before = await history(pair.here, note_id)
    with pytest.raises(BaseExceptionGroup) as ended:
        await move_until(tmp_path, monkeypatch, moment, note_id)
    assert ended.group_contains(Killed, depth=None)
    monkeypatch.undo()
    async with vaults(tmp_path) as pair:
        is_there = moment == "after the file"
        assert pair.places(note_id) == (["here", "there"] if is_there else ["here"])
        await pair.there.server.get(CatchingUp).done.wait()
        store = pair.there.server.get(HistoryStore)
        assert isinstance(store, HistoryStore)
        if not is_there:
            assert store.rows(note_id, 10) == ([], 0)
        else:
            rows = await history(pair.there, note_id)
            assert (rows[0][:3], rows[1:]) == ((3, "renamed", AGENT), before)


VERSIONS = 4
KILLS = repeats("KILLS", 3)
#: Maximum seconds until the kill. A move takes about 10 ms.
LONGEST_LAG = 0.06
NOTES = 6 * KILLS
PATIENCE = 120.0


@pytest.mark.slow
async def test_kill_at_any_moment_does_not_lose_a_note(tmp_path: Path) -> None:
    """behaviour 297: kill -9 hits the process while it moves notes one by one."""
    ids: dict[str, bytes] = {}
    for number in range(NOTES):
        (tmp_path / "here").mkdir(exist_ok=True)
        (tmp_path / f"here/plain{number}.md").write_text(f"Nothing of ours in {number}.\n")
    async with vaults(tmp_path) as pair:
        for entry in list(pair.here.server.get(Catalogue)):
            for version in range(2, VERSIONS + 1):
                text = f"version {version} of {entry.path}"
                await pair.here.write(entry.note.title, text, id=entry.note.id, agent=f"agent{version}")
            ids[entry.note.id] = (tmp_path / "here" / entry.path).read_bytes()
    lags = random.Random(297)
    for _ in range(KILLS):
        moved = await move_and_kill(tmp_path, lags.uniform(0, LONGEST_LAG))
        async with vaults(tmp_path) as pair:
            await pair.there.server.get(CatchingUp).done.wait()
            assert set(pair.files().values()) == set(ids.values())
            for note_id in ids:
                if pair.places(note_id) == ["here", "there"]:
                    await pair.move(note_id)
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
    """Kill a process `lag` seconds after its first move.

    Return the ids of the notes whose move was confirmed.
    """
    command = [sys.executable, "-m", "tests.vaults.service.mover", str(root)]
    with trio.fail_after(PATIENCE), subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert await trio.to_thread.run_sync(process.stdout.readline) == "begin\n"
            await trio.sleep(lag)
        finally:
            process.kill()
        rest = await trio.to_thread.run_sync(process.stdout.read)
    return {line.rstrip("\n") for line in rest.splitlines(keepends=True) if line.endswith("\n")}
