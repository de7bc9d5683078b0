"""Real servers whose lock file is removed or replaced during operation.

Only one server may run, and bridges must find it.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.databases.lock import read_owner
from tests.e2e.clients import call, connected
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, run_lithos, running_lithos, until
from tests.kernel.databases.test_lock_removed import Damage, remove, replace_by_copy, replace_by_empty

pytestmark = pytest.mark.slow

#: Ways to lose the lock file. tests/stores tests the other ways ten times each, and also an owner process
#: that does not serve.
FILE = [remove, replace_by_copy, replace_by_empty]


def ownership(server: Lithos) -> dict[str, Any]:
    return dict(server.health()[1]["ownership"])


def await_trouble(server: Lithos) -> str:
    until(lambda: ownership(server)["status"] != "ok")
    told = ownership(server)
    assert told["status"] == "degraded"
    return str(told["error"])


def assert_refused(data: Path) -> str:
    second = run_lithos("-d", data, "serve", "-t", "http", "-p", "0")
    assert second.returncode == 4, second.stderr
    assert "Traceback" not in second.stderr
    return str(second.stderr)


def test_commands_and_backups_work_while_an_owner_holds_the_database(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_lithos(data) as server:
        call_tool(server, "lithos_write", title="A note", content="Some text.", agent="ada")
        assert "A note" in run_lithos("-d", data, "search", "text").stdout
        copied = run_lithos("-d", data, "backup", tmp_path / "copy")
        assert copied.returncode == 0, copied.stderr
        assert ownership(server) == {"status": "ok"}


@pytest.mark.deadline(150)
async def test_owner_rewrites_a_lost_lock_and_bridges_find_it(tmp_path: Path) -> None:
    """docs/spec/lifecycle.md §2: all ways are tested in parallel, as each waits for the owner's check."""
    with ExitStack() as stack:
        servers: dict[Damage, tuple[Path, Lithos, Any]] = {}
        for damage in FILE:
            data = tmp_path / damage.__name__
            server = stack.enter_context(running_lithos(data))
            servers[damage] = data, server, read_owner(data / ".lithos" / "lock")
        for damage, (data, _, _) in servers.items():
            damage(data / ".lithos" / "lock")
        for data, server, record in servers.values():
            assert_refused(data)
            until(lambda data=data, record=record: read_owner(data / ".lithos" / "lock") == record)  # type: ignore[misc]
            assert str(server.process.pid) in assert_refused(data)
            assert ownership(server) == {"status": "ok"}
        data, server, _ = servers[remove]
        async with connected("stdio", data=data) as client:
            await call(client, "lithos_write", title="Bridged", content="Text.", agent="ada")
        assert call_tool(server, "lithos_stats")["documents"] == 1


def test_server_with_a_removed_database_exits_with_instructions(tmp_path: Path) -> None:
    """docs/spec/lifecycle.md §2"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        (data / ".lithos" / "coordination.db").unlink()
        refused = call_tool(server, "lithos_write", title="A note", content="Some text.", agent="ada")
        assert "restore a backup" in refused["message"]
        assert not list((data / "knowledge").glob("*.md"))
        assert "restore a backup" in await_trouble(server)
        assert server.stop() == 1
    assert "restore a backup" in server.log()
    assert "Traceback" not in server.log()
