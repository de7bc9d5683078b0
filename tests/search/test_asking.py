"""Choice of the server for a query command."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LOCAL
from lithos.search.commands_queries import run_stats
from lithos.server.command.session import CommandFailed, load_session


def test_command_requires_a_running_server_when_local_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    session = load_session(parse_arguments(["-d", str(tmp_path), "stats"]))
    with pytest.raises(
        CommandFailed, match=r"No server owns .* Start a server with: lithos -d .* serve -t http"
    ):
        run_stats(session)


def test_command_uses_a_local_server_when_none_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "one.md").write_text("# One\n")
    session = load_session(evolve(parse_arguments(["-d", str(tmp_path), "--json", "stats"]), local=LOCAL))
    assert run_stats(session) == 0
    assert '"documents": 1' in capsys.readouterr().out
