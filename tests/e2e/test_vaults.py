"""Several vaults in one real process. Stdio of one vault is bridged to it, and it survives failed vaults."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.databases.lock import OwnerLock
from tests.e2e.process import LITHOS, START_BOUND, Lithos, clean_environment, read_line, run_lithos, until
from tests.e2e.stdio import StdioServer, stdio_program

pytestmark = pytest.mark.slow

NAMES = ("work", "home", "third")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Create three vaults with one note each."""
    lines = ["vaults:"]
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name} note.md").write_text(f"Basil of {name}.\n")
        lines.append(f"  {name}: {{path: {tmp_path / name}, data_dir: {tmp_path / name}-data}}")
    file = tmp_path / "vaults.yaml"
    file.write_text("\n".join(lines))
    return file


@contextmanager
def serving(config: Path) -> Iterator[Lithos]:
    """Serve all vaults on one port. Afterwards, stop the server. It must exit with 0."""
    errors = config.with_suffix(".stderr")
    with errors.open("ab") as sink:
        process = subprocess.Popen(
            [*LITHOS, "--config", str(config), "--json", "serve", "-t", "http", "-p", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            env=clean_environment(),
            cwd=config.parent,
        )
    server = Lithos(process, "", errors)
    try:
        line = read_line(process, START_BOUND)
        assert line, errors.read_text()
        server.url = json.loads(line)["url"]
        yield server
        assert server.stop() == 0
    finally:
        server.close()


@contextmanager
def stdio(config: Path, *arguments: str | Path) -> Iterator[StdioServer]:
    """Yield a stdio server for the vault that the arguments name."""
    with config.with_suffix(".bridge").open("ab") as sink:
        words = [*LITHOS, *arguments, "serve", "-t", "stdio"]
        with stdio_program(words, clean_environment(), stderr=sink.fileno(), cwd=config.parent) as server:
            server.greet()
            yield server
            server.close_input()
            assert server.rest() == b""


def structured(answer: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = answer["result"]["structuredContent"]
    return result


def states(server: Lithos) -> dict[str, str]:
    """Return the components of each vault that `/health` reports."""
    return {name: told["status"] for name, told in server.health()[1].items()}


def ways(config: Path, name: str) -> Sequence[Sequence[str | Path]]:
    """Return all command lines by which a client can name one vault."""
    folder, data = config.parent / name, config.parent / f"{name}-data"
    return (
        ("--vault", folder, "--data-dir", data),
        ("--config", config, "--vault", name),
        ("--config", config, "--vault", folder),
    )


def test_stdio_of_one_vault_connects_to_the_multi_vault_process(config: Path) -> None:
    """behaviour 296: the answers come only from that vault, with and without required tokens."""
    with serving(config) as server:
        until(lambda: states(server) == dict.fromkeys(NAMES, "ok"), server.health)
        for has_tokens in (False, True):
            for way in ways(config, "home"):
                with stdio(config, *way) as bridge:
                    bridge.call(1, "lithos_list")
                    listed = structured(bridge.answer())
                    assert [row["title"] for row in listed["items"]] == ["home note"]
                    assert "vault" not in listed
                    bridge.send("tools/list", 2)
                    tools = bridge.answer()["result"]["tools"]
                    assert len(tools) > 20
                    assert not any("vault" in tool["inputSchema"]["properties"] for tool in tools)
                    bridge.call(3, "lithos_write", title="By the bridge", content="x", agent="a")
                    made = structured(bridge.answer())
                    assert (config.parent / "home" / made["path"]).exists()
                    bridge.call(3, "lithos_delete", id=made["id"], agent="a")
                    bridge.answer()
                    bridge.call(4, "lithos_read", path="work note.md")
                    assert structured(bridge.answer())["code"] == "doc_not_found"
            token = run_lithos("--config", config, "token", "create", f"t{has_tokens}", "--vault", "work")
            assert token.returncode == 0, token.stderr
            until(lambda: server.ask("GET", "/v/work/audit")[0] == 401)


def test_process_starts_with_one_vault_and_adds_the_others(config: Path) -> None:
    """behaviour 295"""
    locks = [OwnerLock(config.parent / f"{name}-data" / ".lithos" / "lock") for name in ("home", "third")]
    for lock in locks:
        lock.acquire("now")
    try:
        with serving(config) as server:
            until(lambda: states(server)["work"] == "ok", server.health)
            assert states(server) == {"work": "ok", "home": "unavailable", "third": "unavailable"}
            assert server.health()[0] == 200
            for lock in locks:
                lock.release()
            until(lambda: states(server) == dict.fromkeys(NAMES, "ok"), server.health)
            assert server.process.poll() is None
    finally:
        for lock in locks:
            lock.release()
