"""Leaf packages, which can be removed. The rest of Lithos must start and pass its tests without them.

This includes the package `sessions` (behaviour 332).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from lithos.app.capabilities import CAPABILITIES
from lithos.app.options import COMMANDS
from lithos.kernel.discovery import import_if_there
from tests.e2e.process import LITHOS, Lithos, clean_environment, run_lithos, running_lithos
from tests.e2e.stdio import StdioServer, stdio_program
from tests.house import PACKAGE
from tests.server.running import rpc

#: Packages that no other package needs, except packages that declare it (`Capability.needs`).
LEAVES: Final = (
    "proposals", "attachments", "access", "sessions", "imports", "clients", "adopt", "memory_tool",
    "vaults", "upkeep.evaluation",
)  # fmt: skip
ROOT: Final = PACKAGE.parent
#: Tests of other packages that the gate runs without each leaf.
CHOSEN: Final = (
    "tests/app/test_options.py",
    "tests/app/test_hosting.py",
    "tests/app/test_left_out.py",
    "tests/kernel/test_parts.py",
    "tests/kernel/configuration/test_config_sections.py",
    "tests/kernel/actors/test_replies.py",
    "tests/notes/console",
    "tests/server/console",
    "tests/server/tools/test_discovery.py",
    "tests/tasks/rows",
)
PAGES: Final = ("", "search", "notes", "graph", "tasks", "agents", "system", "care", "copies", "receipts")
#: Files that are not copied. The `models` folder is linked instead.
UNUSED: Final = (".git", ".venv", "*_cache", ".hypothesis", "models")
#: Timeouts for a command and for a test run, in seconds.
PATIENCE, LONG_PATIENCE = 300.0, 3_000.0


def _link(source: str, target: str) -> None:
    """Hard-link a file. If the folders are on different disks, copy the file with its times."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def copied(leaf: str, into: Path) -> Path:
    """Copy Lithos and its tests without a leaf.

    The copy omits the tests of the leaf and of every package that needs the leaf.
    """
    gone = [leaf.replace(".", "/")]
    shutil.copytree(ROOT, into, copy_function=_link, ignore=shutil.ignore_patterns(*UNUSED))
    (into / "lithos" / "models").symlink_to(PACKAGE / "models")
    shutil.rmtree(into / "lithos" / gone[0])
    for package in (*gone, *needing(leaf)):
        shutil.rmtree(into / "tests" / package)
    return into


def needing(leaf: str) -> list[str]:
    """Return the packages that need the leaf."""
    return [each.name for each in CAPABILITIES if leaf in each.needs]


@pytest.fixture(params=LEAVES)
def leaf(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def rest(leaf: str, tmp_path: Path) -> Iterator[Path]:
    """Yield a large copy of Lithos without the leaf, and delete the copy afterwards."""
    yield copied(leaf, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy")


def run_in(rest: Path, leaf: str, *arguments: str, patience: float = PATIENCE) -> str:
    """Run Python in the copy and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(rest), "WITHOUT": " ".join([leaf, *needing(leaf)])}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=rest,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-4_000:]
    return done.stdout


def lithos_of(rest: Path, *arguments: str | Path) -> str:
    """Run a command in the copy and return its output. The command may report an error but must not crash."""
    done = run_lithos(*arguments, env={"PYTHONPATH": str(rest)}, cwd=rest)
    assert done.returncode in (0, 1, 2), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def call_of(server: Lithos, tool: str, **arguments: object) -> dict[str, Any]:
    """Call a tool through MCP and return its answer."""
    request = json.dumps(rpc("tools/call", name=tool, arguments=arguments))
    status, text = server.ask("POST", "/mcp", request, MCP_Protocol_Version="2025-06-18")
    assert status == 200, text
    return dict(json.loads(text)["result"]["structuredContent"])


@pytest.mark.slow
@pytest.mark.takes(6)
def test_server_without_a_leaf_package_works_over_http(rest: Path, tmp_path: Path) -> None:
    """docs/spec/cli-config.md §1"""
    data = tmp_path / "data"
    with running_lithos(data, env={"PYTHONPATH": str(rest)}) as server:
        note = call_of(server, "lithos_write", title="Zebras", content="Stripes.", agent="a")["id"]
        (row,) = call_of(server, "lithos_search", query="zebra stripes")["results"]
        assert row["id"] == note
        task = call_of(server, "lithos_task_create", title="Count", agent="a")["task_id"]
        claimed = call_of(server, "lithos_task_claim", task_id=task, aspect="herd", agent="a")
        assert claimed["success"] is True
        for page in (*PAGES, f"notes/{note}", f"tasks/{task}"):
            status, text = server.ask("GET", f"/console/{page}")
            assert status == 200, (page, text)
        assert "Traceback" not in server.log()
    assert lithos_of(rest, "-d", data, "backup", tmp_path / "backup")
    assert (tmp_path / "backup" / "knowledge" / "zebras.md").is_file()
    assert lithos_of(rest, "-d", data, "doctor").endswith(" 0 fail\n")


def write_over(server: StdioServer, number: int, note: dict[str, str]) -> dict[str, Any]:
    server.call(number, "lithos_write", **note)
    answer: dict[str, Any] = server.answer()["result"]["structuredContent"]
    return answer


@pytest.mark.slow
@pytest.mark.takes(6)
def test_multi_vault_server_works_without_leaf_or_names_the_package(
    rest: Path, leaf: str, tmp_path: Path
) -> None:
    """docs/spec/cli-config.md §1"""
    options: list[str | Path] = []
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
        options += ["--vault", f"{name}={tmp_path / name}"]
    if leaf in ("vaults", "access"):
        told = lithos_of(rest, *options, "serve")
        assert (
            f"Several vaults cannot be served. The package lithos.{leaf} is not part of this installation. "
            "Name one vault, or install Lithos with it."
        ) in told
        return
    environment = clean_environment({"PYTHONPATH": str(rest)})
    with stdio_program([*LITHOS, *options, "serve"], environment, cwd=rest) as server:
        server.greet()
        # Until a vault is open, calls to it are refused.
        note = {"title": "Zebras", "content": "Stripes.", "agent": "a", "vault": "home"}
        answers = (write_over(server, number, note) for number in count(1))
        answer = next(each for each in answers if each.get("code") != "vault_unavailable")
        server.close_input()
        server.rest()
    assert answer["status"] == "created", answer


@pytest.mark.slow
@pytest.mark.takes(2)
def test_commands_of_a_missing_leaf_package_do_not_exist(rest: Path, leaf: str) -> None:
    told = {*re.findall(r"^ {4}([a-z-]+)", lithos_of(rest, "--help"), re.MULTILINE)}
    declared = import_if_there(f"lithos.{leaf}", "commands")
    own = set() if declared is None else {command.name for command in declared.COMMANDS}
    assert told == {*COMMANDS} - own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaf", "setting", "told"),
    [
        ("access", {"LITHOS_SERVER__PUBLIC_URL": "https://a.example"}, "Remote clients cannot get access."),
        ("access", {}, "The named tokens in"),
    ],
    indirect=["leaf"],
)
def test_server_refuses_to_start_when_access_is_missing(
    rest: Path, tmp_path: Path, setting: dict[str, str], told: str
) -> None:
    """docs/spec/cli-config.md §1: a server without the access package would admit all callers."""
    private = tmp_path / "data" / ".lithos"
    private.mkdir(parents=True)
    if not setting:
        (private / "tokens.json").write_text('{"tokens": []}')
    done = run_lithos(
        "-d", tmp_path / "data", "serve", "-t", "http", env={"PYTHONPATH": str(rest), **setting}, cwd=rest
    )
    assert done.returncode == 2
    assert told in done.stderr
    assert "lithos.access is not part of this installation" in done.stderr


@pytest.mark.slow
@pytest.mark.takes(12)
def test_chosen_tests_pass_without_a_leaf_package(rest: Path, leaf: str) -> None:
    run_in(rest, leaf, "-m", "pytest", "-p", "tests.without", "-n", "0", *CHOSEN)


@pytest.mark.slow
@pytest.mark.nightly
def test_all_fast_tests_pass_without_a_leaf_package(rest: Path, leaf: str) -> None:
    run_in(rest, leaf, "-m", "pytest", "-p", "tests.without", patience=LONG_PATIENCE)
