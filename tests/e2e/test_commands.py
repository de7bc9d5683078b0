"""Query commands, with and without a running server.

Without a server, all commands but one run in this process, because loading the models is slow.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from lithos.app.main import main
from tests.app.program import Program, make_program
from tests.e2e.process import (
    LITHOS,
    WHOLE_AND_STATIC,
    clean_environment,
    run_lithos,
    running_lithos,
    wait_until_well,
)
from tests.e2e.vault import NOTES, make_vault, snapshot

HEAVY = ("apsw", "mcp", "model2vec", "numpy", "pydantic", "quart", "tantivy", "trio", "usearch", "yaml")
STATS = ("Documents:", "Search chunks:", "Graph nodes:", "Graph edges:", "Tags:", "Agents:", "Active tasks:")


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("commands") / "data"
    make_vault(data)
    return data


@pytest.fixture(scope="module", params=["beside a server", "alone"])
def place(request: pytest.FixtureRequest, vault: Path) -> Iterator[str]:
    """Run each test twice: with a running server and without a server."""
    if request.param == "alone":
        yield request.param
        return
    with running_lithos(vault) as server:
        wait_until_well(server)
        yield request.param


program = pytest.fixture(make_program)


@frozen
class Commands:
    """A runner for commands on the vault.

    With a server it starts processes. Without one it runs in this process.
    """

    data: Path
    alone: Program | None

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        if self.alone is None:
            done = run_lithos("-d", self.data, *arguments)
            return done.returncode, done.stdout, done.stderr
        ended = self.alone.run(*arguments)
        return ended.code, ended.out, ended.err

    def ask(self, *arguments: str) -> str:
        """Run a command. It must exit with 0 and print nothing on stderr. Return its stdout."""
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return out

    def ask_json(self, *arguments: str) -> dict[str, object]:
        """Run a command with `--json`, like `ask`.

        Return the JSON document in its stdout. It must be on one line.
        """
        printed = self.ask(*arguments, "--json")
        assert printed.count("\n") == 1
        answer = json.loads(printed)
        assert isinstance(answer, dict)
        return answer


@pytest.fixture
def asking(place: str, vault: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Commands:
    program.data = vault
    for name, value in WHOLE_AND_STATIC.items():
        monkeypatch.setenv(name, value)
    return Commands(vault, program if place == "alone" else None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "query", "title", "label"),
    [
        ((), "zanzibar", "From Windows", "(score: "),
        ((), "consensus between replicas that keep one log", "Raft", "(score: "),
        (("--fulltext",), "東京", "東京大学", "(score: "),
        (("--semantic",), "replicated log consensus leader", "Raft", "(similarity: "),
        (("--hybrid",), "cafe", "Café culture", "(score: "),
    ],
)
def test_search_finds_notes_in_every_mode(
    mode: tuple[str, ...], query: str, title: str, label: str, asking: Commands
) -> None:
    """behaviours 197, 209"""
    rows = asking.ask_json("search", query, *mode)["results"]
    assert isinstance(rows, list)
    assert title in [row["title"] for row in rows]
    printed = asking.ask("search", query, *mode, "-n", "1").splitlines()
    assert len(printed) == 3
    assert printed[0].startswith("1. ")
    assert label in printed[0]
    assert printed[1].startswith("   Path: ")


@pytest.mark.slow
def test_search_without_results_prints_a_message(asking: Commands) -> None:
    assert asking.ask("search", "xylophonist") == "No results found.\n"
    assert asking.ask_json("search", "xylophonist")["results"] == []


@pytest.mark.slow
def test_stats_command_counts_the_notes(asking: Commands) -> None:
    """behaviours 140, 209"""
    printed = asking.ask("stats")
    assert printed.startswith("Lithos Statistics\n")
    assert all(name in printed for name in STATS)
    answer = asking.ask_json("stats")
    assert (answer["documents"], answer["data_dir"]) == (NOTES, str(asking.data))
    assert answer["index_drift_detected"] is False


@pytest.mark.slow
def test_inspect_command_shows_health_agents_and_notes(asking: Commands) -> None:
    """behaviours 161, 209"""
    assert asking.ask("inspect", "health").startswith("Health: ok\n")
    assert asking.ask_json("inspect", "health")["status"] == "ok"
    assert isinstance(asking.ask_json("inspect", "agents")["agents"], list)
    assert asking.ask("inspect", "agents")
    shown = asking.ask("inspect", "doc", "notes/windows")
    assert "notes/windows.md" in shown
    assert "Line one" not in shown
    assert "Line one about zanzibar." in asking.ask("inspect", "doc", "notes/windows.md", "--content")
    note = asking.ask_json("inspect", "doc", "notes/windows.md")
    assert "content" not in note
    assert asking.ask_json("inspect", "doc", str(note["id"]), "--content")["title"] == "From Windows"


@pytest.mark.slow
def test_search_command_uses_hybrid_search_by_default(asking: Commands) -> None:
    words = "consensus between replicas that keep one log"
    assert asking.ask_json("search", words) == asking.ask_json("search", words, "--hybrid")
    assert asking.ask_json("search", words) != asking.ask_json("search", words, "--fulltext")


@pytest.mark.slow
def test_inspect_doc_accepts_a_title(asking: Commands) -> None:
    by_title = asking.ask_json("inspect", "doc", "from WINDOWS")
    assert by_title["id"] == asking.ask_json("inspect", "doc", "notes/windows.md")["id"]
    code, _, err = asking.run("inspect", "doc", "Windows")  # a part of the title does not identify the note
    assert code == 1
    assert "title" in err


@pytest.mark.slow
def test_missing_note_exits_with_1_and_says_what_to_do(asking: Commands) -> None:
    code, out, err = asking.run("--json", "inspect", "doc", "no/such/note")
    assert (code, out) == (1, "")
    assert "no/such/note" in err
    assert "lithos_list" in err


@pytest.mark.slow
def test_closed_output_pipe_prints_no_error(asking: Commands) -> None:
    command = [*LITHOS, "-d", str(asking.data), "inspect", "doc", "Reading list.md", "--content"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(30) == 1


@pytest.mark.slow
def test_query_commands_do_not_change_any_file(asking: Commands) -> None:
    """behaviour 176"""
    folder = asking.data / "knowledge"
    before = snapshot(folder)
    asking.ask("search", "raft", "--hybrid")
    assert snapshot(folder) == before


@pytest.mark.slow
def test_health_command_exits_with_1_when_a_component_is_degraded(tmp_path: Path) -> None:
    """behaviours 161, 183"""
    make_vault(tmp_path / "data")
    env = {"LITHOS_SEARCH__EMBEDDING_MODEL": str(tmp_path / "no-such-model")}
    degraded = run_lithos("-d", tmp_path / "data", "inspect", "health", "--json", env=env)
    assert degraded.returncode == 1
    model = json.loads(degraded.stdout)["components"]["embedding_model"]
    assert model["status"] == "degraded"
    assert model["error"]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["stats"], ["search", "x"], ["inspect", "health"]])
def test_missing_data_directory_is_reported_and_not_created(command: list[str], tmp_path: Path) -> None:
    missing = run_lithos("-d", tmp_path / "nowhere", *command, "--json")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert str(tmp_path / "nowhere") in missing.stderr
    assert "--data-dir" in missing.stderr
    assert not (tmp_path / "nowhere").exists()


def test_wrong_command_line_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("", "fly", "search", "search x --semantic --hybrid"):
        with pytest.raises(SystemExit) as ended:
            main(typed.split())
        printed = capsys.readouterr()
        assert (ended.value.code, printed.out) == (2, "")
        assert "usage: lithos" in printed.err


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_no_slow_modules(option: str) -> None:
    program = (
        "import atexit, sys\n"
        "from lithos.app.main import main\n"
        f"heavy = {HEAVY!r}\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        f"main([{option!r}])\n"
    )
    shown = subprocess.run(
        [LITHOS[0], "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "[]\n")
    assert "lithos" in shown.stdout
