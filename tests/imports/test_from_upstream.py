"""Data directory of an upstream Lithos, served in place without loss or rewriting of data."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.servers import put_note, serving

NOTE = "11111111-1111-4111-8111-111111111111"
TEXT = f"---\nid: {NOTE}\ntitle: Kept\nauthor: ada\nowner_key: 007  # theirs\n---\n\n# Kept\n\nzanzibar\n"
CREATED = "2025-01-02T03:04:05"
#: Older file as docs/spec/coordination.md §1 describes it. It has `completed_at`, but no task kinds and
#: fences.
SCRIPT = f"""
CREATE TABLE agents(id TEXT PRIMARY KEY, first_seen_at TEXT, last_seen_at TEXT, theirs TEXT);
CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, description TEXT, status TEXT, created_by TEXT,
    created_at TEXT, completed_at TEXT, tags TEXT, metadata TEXT, theirs TEXT);
CREATE TABLE claims(id INTEGER PRIMARY KEY, task_id TEXT, agent TEXT, aspect TEXT, claimed_at TEXT,
    expires_at TEXT, UNIQUE(task_id, aspect));
CREATE TABLE findings(id TEXT PRIMARY KEY, task_id TEXT, agent TEXT, summary TEXT, knowledge_id TEXT,
    created_at TEXT);
CREATE TABLE access_log(id INTEGER PRIMARY KEY, doc_id TEXT, operation TEXT, timestamp TEXT, agent_id TEXT);
CREATE TABLE their_table(a TEXT);
INSERT INTO agents VALUES('ada','{CREATED}','{CREATED}','x');
INSERT INTO tasks VALUES('t1','First','','completed','ada','{CREATED}','{CREATED}','["a"]','{{}}','y');
INSERT INTO tasks VALUES('t2','Second','','open','ada','{CREATED}',NULL,'[]',
    '{{"depends_on":["t3","gone"]}}','z');
INSERT INTO tasks VALUES('t3','Third','','open','ada','{CREATED}',NULL,'[]','not json','w');
INSERT INTO claims VALUES(1,'t3','ada','work','{CREATED}','2999-01-01T00:00:00');
INSERT INTO findings VALUES('f1','t3','ada','Seen.','{NOTE}','{CREATED}');
INSERT INTO access_log VALUES(1,'{NOTE}','read','{CREATED}','ada');
INSERT INTO their_table VALUES('kept');
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    put_note(tmp_path, "kept.md", TEXT)
    (tmp_path / ".chroma").mkdir()
    (tmp_path / ".chroma" / "chroma.sqlite3").write_bytes(b"vectors")
    (tmp_path / ".graph").mkdir()
    (tmp_path / ".graph" / "graph.pickle").write_bytes(b"\x80\x04never loaded")
    run(tmp_path / "coordination.db", SCRIPT)
    return tmp_path


def run(path: Path, script: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def rows(path: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def test_upstream_directory_is_complete_after_the_first_and_second_start(data: Path) -> None:
    """behaviour 242"""
    for _ in range(2):  # the second start has nothing to migrate
        async with serving(data, server={"write_outcomes": "status"}) as lithos:
            note = await lithos.call("lithos_read", id=NOTE)
            assert "zanzibar" in note["content"]
            assert (await lithos.call("lithos_search", query="zanzibar"))["results"][0]["id"] == NOTE
            tasks = (await lithos.call("lithos_task_list", with_claims=True))["tasks"]
            by_id = {task["id"]: task for task in tasks}
            assert {task["title"] for task in tasks} == {"First", "Second", "Third"}
            assert by_id["t1"]["resolved_at"].startswith(CREATED)
            (claim,) = by_id["t3"]["claims"]
            assert (claim["agent"], claim["aspect"]) == ("ada", "work")
            blocked = (await lithos.call("lithos_task_blocked"))["tasks"]
            assert [(task["id"], task["blockers"][0]["task_id"]) for task in blocked] == [("t2", "t3")]
            (finding,) = (await lithos.call("lithos_finding_list", task_id="t3"))["findings"]
            assert (finding["summary"], finding["knowledge_id"]) == ("Seen.", NOTE)
            assert "ada" in [agent["id"] for agent in (await lithos.call("lithos_agent_list"))["agents"]]
    database = data / ".lithos" / "coordination.db"
    assert not (data / "coordination.db").exists()
    assert rows(database, "SELECT theirs FROM tasks ORDER BY id") == [("y",), ("z",), ("w",)]
    assert rows(database, "SELECT metadata FROM tasks WHERE id='t3'") == [("not json",)]
    assert rows(database, "SELECT theirs FROM agents WHERE id='ada'") == [("x",)]
    assert rows(database, "SELECT a FROM their_table") == [("kept",)]
    assert rows(database, f"SELECT COUNT(*) FROM access_log WHERE doc_id='{NOTE}' AND agent_id='ada'") == [
        (1,)
    ]
    assert (data / "knowledge" / "kept.md").read_text() == TEXT
    assert (data / ".chroma" / "chroma.sqlite3").read_bytes() == b"vectors"
    assert (data / ".graph" / "graph.pickle").read_bytes() == b"\x80\x04never loaded"


async def test_upstream_clients_get_the_write_outcome_as_status(data: Path) -> None:
    """behaviour 165"""
    async with serving(data, server={"write_outcomes": "status"}) as lithos:
        stale = await lithos.call(
            "lithos_write", id=NOTE, title="Kept", content="Other.", agent="ada", expected_version=9
        )
        assert stale["status"] == "version_conflict"
        refused = await lithos.call("lithos_read", id="22222222-2222-4222-8222-222222222222")
        assert refused["status"] == "error"
