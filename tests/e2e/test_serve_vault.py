"""Real processes that use `lithos --vault` with one vault."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.e2e.clients import WireClient, call, connected
from tests.e2e.process import run_lithos, running_lithos
from tests.e2e.stdio import HELLO, stdio_server

pytestmark = pytest.mark.slow


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "My Notes"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / "Zanzibar.md").write_text("Cloves come from here.")
    return folder


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "share"), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_vault_as_data_directory_is_refused(tmp_path: Path, vault: Path, env: dict[str, str]) -> None:
    """Behaviour 249."""
    for command in (
        ["serve", "-t", "http", "-p", "0"],
        ["stats"],
        ["validate"],
        ["backup", str(tmp_path / "b")],
    ):
        told = run_lithos("-d", vault, *command, env=env)
        assert told.returncode == 2, told.stderr
        assert f"--vault {vault}" in told.stderr
    assert sorted(path.name for path in vault.iterdir()) == [".obsidian", "Zanzibar.md"]
    doctor = run_lithos("-d", vault, "doctor", env=env)
    assert doctor.returncode == 1
    assert "--vault" in doctor.stdout


def test_data_directory_inside_a_vault_and_missing_vault_are_refused(
    tmp_path: Path, vault: Path, env: dict[str, str]
) -> None:
    missing = run_lithos("--vault", tmp_path / "gone", "stats", env=env)
    assert (missing.returncode, str(tmp_path / "gone") in missing.stderr) == (2, True)
    inside = run_lithos("--vault", vault, "-d", vault / "state", "stats", env=env)
    assert (inside.returncode, "inside the vault" in inside.stderr) == (2, True)
    assert not (tmp_path / "gone").exists()
    assert not (vault / "state").exists()


def test_commands_share_the_default_data_directory_of_a_vault(
    tmp_path: Path, vault: Path, env: dict[str, str]
) -> None:
    """Without `--data-dir`, Lithos keeps its state in the data home.

    `--vault` may precede or follow the command.
    """
    found = run_lithos("search", "cloves", "--vault", vault, "--json", env=env)
    assert [row["path"] for row in json.loads(found.stdout)["results"]] == ["Zanzibar.md"], found.stderr
    by_variable = run_lithos("--json", "stats", env=env | {"LITHOS_VAULT": str(vault)})
    data = Path(json.loads(by_variable.stdout)["data_dir"])
    assert data.parent == tmp_path / "share" / "lithos"
    assert data.name.startswith("My Notes-")
    assert (data / ".lithos" / "coordination.db").exists()
    link = tmp_path / "link"
    link.symlink_to(vault)
    by_link = run_lithos("--vault", link, "--json", "stats", env=env)
    assert Path(json.loads(by_link.stdout)["data_dir"]).name[-8:] == data.name[-8:]
    backed_up = run_lithos("--vault", vault, "backup", tmp_path / "backup", env=env)
    assert backed_up.returncode == 0, backed_up.stderr
    fresh = tmp_path / "fresh"
    restored = run_lithos("--vault", fresh, "restore", tmp_path / "backup", env=env)
    assert restored.returncode == 0, restored.stderr
    assert [path.name for path in fresh.iterdir()] == ["Zanzibar.md"]
    assert sorted(path.name for path in vault.iterdir()) == [".obsidian", "Zanzibar.md"]


async def test_second_owner_is_refused_but_a_bridge_works(
    tmp_path: Path, vault: Path, env: dict[str, str]
) -> None:
    """Behaviour 249 and docs/spec/lifecycle.md §2."""
    with running_lithos(tmp_path / "one", "--vault", str(vault), env=env) as server:
        for transport in ("http", "stdio"):
            second = run_lithos(
                "-d", tmp_path / "two", "--vault", vault, "serve", "-t", transport, "-p", "0", env=env
            )
            assert second.returncode == 4, second.stderr
            for part in (str(vault), str(server.process.pid), server.url, f"--data-dir {tmp_path / 'one'}"):
                assert part in second.stderr
        refused = run_lithos("-d", tmp_path / "two", "--vault", vault, "search", "cloves", env=env)
        assert refused.returncode == 4
        asked = run_lithos("-d", tmp_path / "one", "--vault", vault, "search", "cloves", env=env)
        assert "Zanzibar" in asked.stdout
        with (tmp_path / "errors").open("w") as errors:
            settings = env | {"LITHOS_VAULT": str(vault)}
            with stdio_server(tmp_path / "one", errors.fileno(), **settings) as bridge:
                bridge.greet()
                bridge.call(1, "lithos_read", path="Zanzibar.md")
                assert "Cloves" in bridge.answer()["result"]["structuredContent"]["content"]
        assert "bridging" in (tmp_path / "errors").read_text()
        (tmp_path / "other").mkdir()
        elsewhere = run_lithos("-d", tmp_path / "one", "--vault", tmp_path / "other", "serve", env=env)
        assert elsewhere.returncode == 4, elsewhere.stderr
        assert "does not serve" in elsewhere.stderr
        async with connected("mcp", url=server.url) as client:
            assert (await call(client, "lithos_stats"))["documents"] == 1
    assert sorted(path.name for path in vault.iterdir()) == [".obsidian", "Zanzibar.md"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_listed_during_the_scan_of_a_large_vault(
    transport: str, tmp_path: Path, vault: Path, env: dict[str, str]
) -> None:
    """Behaviour 250: the tools are listed before the first scan is complete, even on a slow machine."""
    for number in range(3_000):
        (vault / f"note {number}.md").write_text(
            f"# Note {number}\n\n" + f"word{number} text of a note\n" * 40
        )
    settings = env | {"LITHOS_VAULT": str(vault)}
    if transport == "stdio":
        with (
            (tmp_path / "errors").open("w") as errors,
            stdio_server(tmp_path / "one", errors.fileno(), **settings) as server,
        ):
            server.greet()
            server.send("tools/list", 1)
            assert server.answer()["result"]["tools"]
            server.call(2, "lithos_search", query="word7")
            first = server.answer()["result"]["structuredContent"]
            assert first["indexing"]["total"] == 3_001
            assert first["degraded"] is True
            server.call(3, "lithos_read", path="note 2999.md")
            assert "word2999" in server.answer()["result"]["structuredContent"]["content"]
            until, number = time.monotonic() + 120, 3
            while "indexing" in first and time.monotonic() < until:
                number += 1
                server.call(number, "lithos_search", query="word7", mode="fulltext")
                first = server.answer()["result"]["structuredContent"]
                time.sleep(0.05)
            assert [row["path"] for row in first["results"]] == ["note 7.md"]
        return
    with running_lithos(tmp_path / "one", env=settings) as running:
        async with WireClient.open(running.address) as client:
            hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
            status, told = await client.post(hello)
            assert (status, b"serverInfo" in told) == (200, True)
            answer = await client.call("lithos_search", query="word7")
            assert answer["indexing"]["total"] == 3_001
            written = await client.call("lithos_write", title="New", content="fresh word", agent="a")
            assert written["status"] == "created"
