"""Sessions of a process with several vaults: each belongs to the vault whose folder has its transcript."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.model.session import session_id
from lithos.sessions.settings import SessionsConfig
from tests.sessions.transcripts import prompt
from tests.vaults.apart.hosting import config_of, hosting, put

pytestmark = pytest.mark.needs("vaults")
TOKEN = ""


async def test_sessions_of_all_vaults_are_found_and_read(tmp_path: Path) -> None:
    configs = {}
    for name, said in (("work", "The boiler at work is red."), ("home", "The boiler at home is green.")):
        put(tmp_path / name, {"readme.md": "# Readme\n\nA boiler.\n"})
        folder = tmp_path / f"{name}-transcripts"
        folder.mkdir()
        (folder / "one.jsonl").write_text(prompt(said, name))
        sessions = SessionsConfig(folders=(str(folder),))
        configs[name] = config_of(tmp_path / name, tmp_path / f"{name}-data", sessions=sessions)
    async with hosting(configs) as hosted:
        for name in configs:
            await hosted.server(name).get(SessionFollower).caught_up()
        found = await hosted.ask(
            "/mcp", TOKEN, "lithos_search", query="boiler colour", kinds=["session"], vault="*"
        )
        assert {(row["vault"], row["id"]) for row in found["results"]} == {
            (name, session_id("claude-code", name)) for name in configs
        }
        read = await hosted.ask("/mcp", TOKEN, "lithos_read", id=session_id("claude-code", "home"))
        assert "is green" in read["content"]
        mixed = await hosted.ask(
            "/mcp", TOKEN, "lithos_search", query="boiler", kinds=["note", "session"], vault="*"
        )
        assert "alone, or name one vault" in mixed["message"]
