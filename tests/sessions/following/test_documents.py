"""Following of transcripts that are not lines that grow: documents, compressed files and databases."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import apsw
import pytest

from tests.sessions.files.test_opencode import RECORDS, SESSION, make_database, make_tree, put_json
from tests.sessions.transcripts import SAMPLES, Index, following

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.autojump


@pytest.fixture(autouse=True)
def _clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))


async def agents(index: Index) -> list[tuple[str, str | None, int]]:
    await index.follower.caught_up()
    return [(each.agent, each.project, each.turns) for each in (await index.sessions.list()).sessions]


async def test_chat_of_gemini_is_followed_in_both_of_its_forms(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (SAMPLES / "gemini.jsonl").read_text().splitlines()]
    messages = [line for line in lines if "type" in line and line.get("toolCalls") != []]
    folder = tmp_path / "home" / ".gemini" / "tmp" / "gate"
    chat = folder / "chats" / "session-2026-11-28T11-00-7c9e6679.json"
    async with following(tmp_path, folders=["gemini"]) as index:
        put_json(chat, {**lines[0], "messages": messages[:2]})
        (folder / ".project_root").write_text("/srv/made-up/gate")
        assert await agents(index) == [("gemini", "gate", 2)]
        put_json(chat, {**lines[0], "messages": [messages[0], *messages[2:]]})
        assert await agents(index) == [("gemini", "gate", 3)]
        assert await index.texts() == [
            "Which port does the gateway use?",
            "I read the configuration.",
            "The gateway uses port 8443.",
        ]
        chat.unlink()
        chat.with_suffix(".jsonl").write_text((SAMPLES / "gemini.jsonl").read_text())
        assert await agents(index) == [("gemini", "gate", 3)]


async def test_archived_and_compressed_transcript_of_codex_keeps_its_session(tmp_path: Path) -> None:
    data = (SAMPLES / "codex.jsonl").read_bytes()
    path = tmp_path / "codex" / "sessions" / "2026" / "11" / "28" / "rollout-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    async with following(tmp_path, folders=["codex"]) as index:
        assert await agents(index) == [("codex", "github.com/made-up/bakery", 2)]
        before = (await index.sessions.list()).sessions[0].id
        archive = tmp_path / "codex" / "archived_sessions" / "rollout-1.jsonl.zst"
        archive.parent.mkdir()
        archive.write_bytes(zstd.compress(data))
        path.unlink()
        assert await agents(index) == [("codex", "github.com/made-up/bakery", 2)]
        assert (await index.sessions.list()).sessions[0].id == before


async def test_session_of_opencode_is_followed_in_its_files(tmp_path: Path) -> None:
    home = tmp_path / "opencode"
    make_tree(home)
    async with following(tmp_path, folders=["opencode"]) as index:
        assert await agents(index) == [("opencode", "garden", 2)]
        put_json(
            home / "storage" / "part" / "msg_02" / "prt_09.json", {"type": "text", "text": "Then the beans."}
        )
        info = {**RECORDS[1]["info"], "id": "msg_03"}
        put_json(home / "storage" / "message" / SESSION["id"] / "msg_03.json", info)
        put_json(home / "storage" / "part" / "msg_03" / "prt_10.json", {"type": "text", "text": "Thanks"})
        assert await agents(index) == [("opencode", "garden", 3)]
        assert await index.texts() == [
            "Plan the watering of the garden",
            "Water the tomatoes in the morning.\n\nThen the beans.",
            "Thanks",
        ]


async def test_session_of_opencode_is_followed_in_its_database(tmp_path: Path) -> None:
    make_database(tmp_path / "opencode").close()
    async with following(tmp_path, folders=["opencode"]) as index:
        assert await agents(index) == [("opencode", "garden", 2)]

        connection = apsw.Connection(str(tmp_path / "opencode" / "opencode.db"))
        connection.execute(
            "INSERT INTO message SELECT 'msg_03', session_id, time_created + 99999, data FROM"
            " message WHERE id='msg_01'"
        )
        part = json.dumps({"type": "text", "text": "Thanks"})
        connection.execute("INSERT INTO part VALUES('prt_10', 'msg_03', ?, ?)", (SESSION["id"], part))
        connection.execute("UPDATE session SET time_updated = time_updated + 1")
        connection.close()
        assert await agents(index) == [("opencode", "garden", 3)]
        assert (await index.texts())[-1] == "Thanks"
        (tmp_path / "opencode" / "opencode.db").unlink()
        (session,) = (await index.sessions.list()).sessions
        assert await agents(index) == [("opencode", "garden", 3)]
        assert (await index.sessions.list()).sessions[0].gone_at is not None
        assert session.gone_at is None
