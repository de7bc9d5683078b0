"""The doctor check for sessions."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.sessions.checks import check_sessions
from lithos.sessions.files.added_folders import ADDED, find_folder, write_added
from lithos.sessions.rows.schema import SESSIONS
from tests.sessions.transcripts import NOW, following, prompt


@frozen
class Patient:
    """An installation without a running server."""

    data: Path
    config: Any
    is_live: bool = False
    is_outside: bool = True
    survey: Any = None
    owner: Any = None

    @property
    def private(self) -> Path:
        return self.data / ".lithos"

    @staticmethod
    def clock() -> datetime:
        return NOW


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path, Config(storage=StorageConfig(data_dir=tmp_path)))


@pytest.mark.autojump
async def test_doctor_reports_folders_and_transcripts_that_cannot_be_read(patient: Patient) -> None:
    """Behaviour 331: `doctor` says what could not be read."""
    async with following(patient.data, private=patient.private, folders=()) as index:
        index.put("a.jsonl", prompt("Hello"), "damaged\n")
        added = [find_folder(str(index.folder), {}), find_folder(str(patient.data / "missing"), {})]
        write_added(patient.private, added)
        await index.follower.caught_up()
    found = [(each.status, each.cause) for each in check_sessions(patient)]
    assert found == [
        ("warn", f"The transcripts of {patient.data}/missing cannot be read ({patient.data}/missing: No such"
                 " file or directory)."),
        ("warn", f"Transcripts that were read only in part: 1, such as {patient.data}/in/a.jsonl (Not read: 1"
                 " damaged lines.)"),
        ("ok", "Sessions that are indexed: 1, from 2 added folders."),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "told"), [(ADDED, "is damaged"), (SESSIONS, "cannot be read")])
def test_doctor_reports_damaged_files(patient: Patient, name: str, told: str) -> None:
    patient.private.mkdir()
    (patient.private / name).write_bytes(b"damaged" * 1_000)
    (finding,) = check_sessions(patient)
    assert finding.status == "warn"
    assert told in finding.cause
    assert finding.way_out
