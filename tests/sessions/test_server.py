"""Sessions in a whole server: health, numbers, removal, and notes that are not affected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithos.kernel.values.principals import COMMAND
from lithos.sessions import capability
from lithos.sessions.following.follower import NO_MASK, SessionFollower
from lithos.sessions.rows.schema import SESSIONS
from lithos.sessions.service.sessions import Sessions
from lithos.sessions.settings import SessionsConfig
from lithos.sessions.state import look_at_sessions, report_sessions
from tests.e2e.process import run_lithos
from tests.servers import Lithos, serving
from tests.sessions.transcripts import MASK, answer, prompt


@pytest.fixture
def transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two transcripts, and let servers mask texts."""
    monkeypatch.setattr(capability, "find_mask", lambda: MASK)
    folder = tmp_path / "transcripts"
    folder.mkdir()
    (folder / "a.jsonl").write_text(prompt("Why hunter2?") + answer("A zebra grazes in the server room."))
    (folder / "b.jsonl").write_text(prompt("Another prompt", "s2") + "damaged\n")
    return folder


async def _caught_up(lithos: Lithos) -> Sessions:
    await lithos.server.get(SessionFollower).caught_up()
    return lithos.server.get(Sessions)


async def test_server_follows_configured_transcripts(tmp_path: Path, transcripts: Path) -> None:
    config = SessionsConfig(folders=(str(transcripts),))
    async with serving(tmp_path / "data", sessions=config) as lithos:
        sessions = await _caught_up(lithos)
        hit = (await sessions.search("zebra in the server room"))[0]
        assert (hit.turn.text, hit.session.title) == (
            "A zebra grazes in the server room.",
            "Why [secret: password]?",
        )
        component = look_at_sessions(sessions)
        assert component is not None
        assert component.as_json() == {
            "status": "ok", "folders": 1, "missing_folders": 0, "sessions": 2, "turns": 3, "waiting": 0,
            "with_problems": 1,
        }  # fmt: skip
        assert [(each.key, each.value) for each in report_sessions(sessions)] == [("sessions", 2)]
        assert (await lithos.call("lithos_stats"))["sessions"] == 2
        gone = await lithos.server.tools.call("lithos_session_forget", {"id": hit.id}, COMMAND)
        assert gone == {"id": hit.id, "removed": True}
        assert (await sessions.list()).total == 1
    async with serving(tmp_path / "data", sessions=config) as lithos:
        sessions = await _caught_up(lithos)
        assert [each.title for each in (await sessions.list()).sessions] == ["Another prompt"]


async def test_server_without_transcripts_reports_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        sessions = await _caught_up(lithos)
        assert look_at_sessions(sessions) is None
        assert report_sessions(sessions) == []
        assert await sessions.search("zebra") == []
        assert "sessions" not in await lithos.call("lithos_stats")
    assert not (tmp_path / ".lithos" / SESSIONS).exists()


async def test_server_without_a_mask_is_degraded(
    tmp_path: Path, transcripts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capability, "find_mask", lambda: None)
    config = SessionsConfig(folders=(str(transcripts),))
    async with serving(tmp_path / "data", sessions=config) as lithos:
        component = look_at_sessions(await _caught_up(lithos))
        assert component is not None
        assert (component.status, component.error) == ("degraded", NO_MASK)


async def test_searches_of_notes_do_not_change_while_sessions_are_indexed(
    tmp_path: Path, transcripts: Path
) -> None:
    answers = []
    for folders in ((), (str(transcripts),)):
        async with serving(tmp_path / "data", sessions=SessionsConfig(folders=folders)) as lithos:
            if not folders:
                await lithos.create("Zebras", "A zebra grazes on the savanna.")
                await lithos.create("Servers", "The server room is cold.")
            await _caught_up(lithos)
            answers.append(await lithos.call("lithos_search", query="zebra server room", explain=True))
    assert json.dumps(answers[0]) == json.dumps(answers[1])


@pytest.mark.slow
def test_commands_add_list_and_remove_folders(tmp_path: Path, transcripts: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        env = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "codex")}
        done = run_lithos("-d", tmp_path / "data", "sessions", *arguments, env=env)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    (tmp_path / "data" / "knowledge").mkdir(parents=True)
    assert run("list") == (
        0,
        "No transcripts are added. Add some with: lithos sessions add claude-code\n",
    )
    code, text = run("add", str(transcripts))
    assert code == 0
    assert f"Added {transcripts}: 2 transcripts" in text
    assert "is already added" in run("add", str(transcripts))[1]
    assert "2 transcripts" in run("list")[1]
    for name, why in (
        ("codex", "No transcripts of codex were found"),
        (str(tmp_path / "data"), "data directory"),
        (str(tmp_path), "data directory"),
    ):
        code, text = run("add", name)
        assert code == 2
        assert why in text
    assert run("remove", "claude-code")[0] == 2
    assert "No server owns" in run("remove", "ses_0123456789abcdef")[1]
    assert run("remove", str(transcripts))[0] == 0
    assert "No transcripts are added" in run("list")[1]
