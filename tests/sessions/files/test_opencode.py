"""Sessions of opencode in JSON files and in its database, which must not change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from lithos.sessions.files.added_folders import AddedFolder
from lithos.sessions.files.lines import NotReadable
from lithos.sessions.files.opencode import read_opencode, survey_added
from tests.sessions.transcripts import SAMPLES

RECORDS: list[dict[str, Any]] = [
    json.loads(line) for line in (SAMPLES / "opencode.jsonl").read_text().splitlines()
]
ROOT = Path(__file__).parents[3]
SESSION = RECORDS[0]["session"]


def make_tree(home: Path) -> None:
    storage = home / "storage"
    put_json(storage / "session" / "a1b2c3" / f"{SESSION['id']}.json", SESSION)
    for record in RECORDS[1:]:
        info = record["info"]
        put_json(storage / "message" / SESSION["id"] / f"{info['id']}.json", info)
        for part in record["parts"]:
            put_json(storage / "part" / info["id"] / f"{part['id']}.json", part)


def put_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def make_database(home: Path) -> apsw.Connection:
    home.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(home / "opencode.db"))
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute(
        "CREATE TABLE session(id TEXT PRIMARY KEY, directory TEXT, parent_id TEXT, time_updated INTEGER);"
        "CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)"
    )
    connection.execute(
        "INSERT INTO session VALUES(?,?,NULL,?)", (SESSION["id"], SESSION["directory"], 1795690060000)
    )
    for record in RECORDS[1:]:
        info = record["info"]
        data = {key: value for key, value in info.items() if key not in ("id", "sessionID")}
        connection.execute(
            "INSERT INTO message VALUES(?,?,?,?)",
            (info["id"], SESSION["id"], info["time"]["created"], json.dumps(data)),
        )
        for part in record["parts"]:
            connection.execute(
                "INSERT INTO part VALUES(?,?,?,?)", (part["id"], info["id"], SESSION["id"], json.dumps(part))
            )
    return connection


def texts(home: Path) -> list[list[str]]:
    """Return the types of the parts of each message, as the survey and the reader find them."""
    survey = survey_added(AddedFolder("opencode", "opencode", (home,)))
    assert survey.problem == ""
    (found,) = survey.found
    records = read_opencode(found.path, found.kind).records
    assert records[0]["session"]["directory"] == "/srv/made-up/garden"
    return [[part["type"] for part in record["parts"]] for record in records[1:]]


EXPECTED = [[part["type"] for part in record["parts"]] for record in RECORDS[1:]]


def files_of(home: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in home.iterdir()}


def test_json_files_are_read_in_order(tmp_path: Path) -> None:
    make_tree(tmp_path)
    assert texts(tmp_path) == EXPECTED


def test_closed_database_is_read_without_a_trace(tmp_path: Path) -> None:
    """Behaviour 328: a closed database, next to which SQLite would create files."""
    make_database(tmp_path).close()
    before = files_of(tmp_path)
    assert texts(tmp_path) == EXPECTED
    assert files_of(tmp_path) == before


def test_database_with_a_writer_is_read_without_a_trace(tmp_path: Path) -> None:
    """Behaviour 328: the newest commits are only in the WAL, and the shared memory is not written."""
    script = (
        "import sys; from pathlib import Path; from tests.sessions.files.test_opencode import make_database\n"
        f"connection = make_database(Path({str(tmp_path)!r})); print(1, flush=True); sys.stdin.read()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, cwd=ROOT) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"1\n"
        before = files_of(tmp_path)
        assert len(before) == 3
        assert texts(tmp_path) == EXPECTED
        assert files_of(tmp_path) == before
        writer.stdin.close()


def test_database_of_a_killed_writer_is_read_without_a_trace(tmp_path: Path) -> None:
    """Behaviour 328: the last commits are only in the WAL, which reading in place would move."""
    connection = make_database(tmp_path / "live")
    killed = tmp_path / "killed"
    killed.mkdir()
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copyfile(tmp_path / "live" / name, killed / name)
    connection.close()
    before = files_of(killed)
    assert texts(killed) == EXPECTED
    assert files_of(killed) == before


def test_session_in_both_forms_counts_once(tmp_path: Path) -> None:
    make_tree(tmp_path)
    make_database(tmp_path).close()
    assert texts(tmp_path) == EXPECTED


def test_damaged_files_are_skipped_and_counted(tmp_path: Path) -> None:
    make_tree(tmp_path)
    (tmp_path / "storage" / "part" / "msg_01" / "prt_01.json").write_text("{")
    (found,) = survey_added(AddedFolder("opencode", "opencode", (tmp_path,))).found
    reading = read_opencode(found.path, found.kind)
    assert dict(reading.skipped) == {"damaged messages": 1}
    assert len(reading.records) == 3


def test_damaged_database_is_a_problem_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_bytes(b"no database" * 1_000)
    survey = survey_added(AddedFolder("opencode", "opencode", (tmp_path,)))
    assert "opencode.db" in survey.problem
    with pytest.raises(NotReadable):
        read_opencode(f"{tmp_path / 'opencode.db'}#ses_1", "opencode-db")
    assert os.listdir(tmp_path) == ["opencode.db"]
