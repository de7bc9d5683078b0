"""The sweep finds what it is for: each of these faults, put in on purpose, is found by a crash."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.actors.writing.publisher import Publisher
from lithos.stores.notes.files import NoteFiles
from lithos.stores.sqlite import Durability
from tests.crashpoints import recording
from tests.crashpoints.disk import File, Folder
from tests.crashpoints.sweep import Swept, record, sweep
from tests.repeats import first_of

pytestmark = pytest.mark.deadline(300)


async def _sweep(folder: Path, mode: str) -> Swept:
    return await sweep(await record(folder), mode, folder)


def _forget_syncs(patch: pytest.MonkeyPatch, kind: type) -> None:
    """As if the product had not asked for those of notes, or of their folders."""
    sync = recording._Calls.fsync

    def fsync(self: Any, descriptor: int) -> None:
        is_note = "/knowledge" in os.readlink(f"/proc/self/fd/{descriptor}")
        if not is_note or not isinstance(self._recorder.descriptors.get(descriptor), kind):
            sync(self, descriptor)

    patch.setattr(recording._Calls, "fsync", fsync)


@pytest.mark.slow
@pytest.mark.parametrize("mode", first_of(["power loss", "power loss, names first"], 1))
async def test_a_note_that_is_not_synced_is_found(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/lifecycle.md §3"""
    _forget_syncs(monkeypatch, File)
    (fault,) = (await _sweep(tmp_path, mode)).faults
    assert "note alpha" in fault[2].lower()


@pytest.mark.nightly
async def test_a_folder_that_is_not_synced_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/spec/lifecycle.md §3"""
    _forget_syncs(monkeypatch, Folder)
    assert (await _sweep(tmp_path, "power loss")).faults


@pytest.mark.nightly
async def test_a_database_that_is_not_synced_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/lifecycle.md §3"""
    monkeypatch.setattr(Durability.FULL, "_value_", "NORMAL")
    (fault,) = (await _sweep(tmp_path, "power loss")).faults
    assert "agent ada" in fault[2]


@pytest.mark.nightly
async def test_an_answer_before_the_journal_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 193: an event of everything that was acknowledged"""
    announce = Publisher._announce

    async def announce_later(self: Publisher, changes: Sequence[Any]) -> None:
        async def late() -> None:
            await announce(self, changes)

        if changes:
            nursery.start_soon(late)

    async with trio.open_nursery() as nursery:
        monkeypatch.setattr(Publisher, "_announce", announce_later)
        script = await record(tmp_path)
        monkeypatch.undo()
        swept = await sweep(script, "power loss", tmp_path)
    (fault,) = swept.faults
    assert "acknowledged events are gone" in fault[2]


@pytest.mark.nightly
async def test_a_file_that_is_left_behind_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/spec/lifecycle.md §1"""
    monkeypatch.setattr(NoteFiles, "recover", lambda *_: 0)
    (fault,) = (await _sweep(tmp_path, "kill")).faults
    assert "left behind" in fault[2]
