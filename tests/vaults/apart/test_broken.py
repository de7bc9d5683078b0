"""Broken vault. It is reported, does not stop other vaults, and is served again after its repair."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import frozen

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.databases.database import DatabaseLost
from lithos.kernel.databases.lock import OwnerLock
from lithos.notes.writing.actor_writer import Writer
from tests.vaults.apart.hosting import Hosted, body_of, config_of, hosting, let_in, put, status_of

NAMES: Final = ("work", "home", "third")
TOKEN: Final = "token-of-all"


def set_up(root: Path) -> dict[str, Any]:
    """Create three vaults that one token may use."""
    for name in NAMES:
        put(root / name, {f"{name}.md": f"# {name}\n\nBasil of {name}.\n"})
        let_in(root / f"{name}-data", TOKEN)
    return {name: config_of(root / name, root / f"{name}-data") for name in NAMES}


@contextmanager
def garbage(root: Path) -> Any:
    """Replace the vault's coordination database with an invalid file."""
    database = root / "home-data" / ".lithos" / "coordination.db"
    database.write_bytes(b"garbage " * 1000)
    yield
    for file in database.parent.glob("coordination.db*"):
        file.unlink()


@contextmanager
def folder_gone(root: Path) -> Any:
    """Remove the vault's folder."""
    (root / "home").rename(root / "elsewhere")
    yield
    (root / "elsewhere").rename(root / "home")


@contextmanager
def locked(root: Path) -> Any:
    """Lock the vault's data directory, as another server would."""
    lock = OwnerLock(root / "home-data" / ".lithos" / "lock")
    lock.acquire("now")
    yield
    lock.release()


@frozen
class Trouble:
    """Defect of a vault, and a word in the reason that the server reports."""

    breaking: Callable[[Path], AbstractContextManager[None]]
    told: str


TROUBLES: Final = {
    "its database is garbage": Trouble(garbage, "coordination.db"),
    "its folder is gone": Trouble(folder_gone, "There is no folder"),
    "another server has it": Trouble(locked, "process"),
}


async def titles(hosted: Hosted) -> list[str]:
    """Return the note titles of all vaults that answer."""
    answer = await hosted.ask("/mcp", TOKEN, "lithos_list", vault="*")
    return sorted(row["title"] for row in answer["items"])


async def check_others(hosted: Hosted, told: str) -> None:
    """Assert that every view reports the broken vault with its reason, and that other vaults still answer."""
    for tool, more in (
        ("lithos_list", {}), ("lithos_search", {"query": "basil"}), ("lithos_retrieve", {"query": "basil"}),
        ("lithos_context", {"query": "basil"}), ("lithos_tags", {}), ("lithos_stats", {}),
        ("lithos_task_list", {}),
        ("lithos_task_next", {"agent": "ann"}),
    ):  # fmt: skip
        answer = await hosted.ask("/mcp", TOKEN, tool, vault="*", **more)
        assert list(answer["failed_vaults"]) == ["home"], (tool, answer)
        assert told in answer["failed_vaults"]["home"]
        assert answer["degraded"] is True
    assert await titles(hosted) == ["third", "work"]
    alone = await hosted.ask("/mcp", TOKEN, "lithos_list", vault="home")
    assert (alone["status"], alone["code"]) == ("error", "vault_unavailable")
    assert told in alone["message"]
    written = await hosted.ask(
        "/mcp", TOKEN, "lithos_write", title="New", content="x", agent="ann", vault="work"
    )
    assert (written["status"], written["vault"]) == ("created", "work")
    await hosted.ask("/mcp", TOKEN, "lithos_delete", id=written["id"], agent="ann")
    door = await hosted.exchange("/v/home/audit", TOKEN)
    assert status_of(door) == 503
    assert told.encode() in body_of(door)
    assert status_of(await hosted.exchange("/v/third/audit", TOKEN)) == 200
    health = await hosted.exchange("/health", TOKEN)
    assert status_of(health) == 200
    assert told.encode() in body_of(health)


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES.keys())
async def test_broken_vault_is_reported_without_stopping_other_vaults(
    tmp_path: Path, trouble: Trouble
) -> None:
    """behaviour 295"""
    configs = set_up(tmp_path)
    async with hosting(configs):
        pass  # In the first run, every vault works. The defect comes later.
    with trouble.breaking(tmp_path):
        async with hosting(configs, settled=False) as hosted:
            await hosted.served("work", "third")
            await hosted.until(lambda: bool(hosted.vaults.hosted["home"].vault.reason))
            await check_others(hosted, trouble.told)


async def test_vault_is_served_again_after_its_repair(tmp_path: Path) -> None:
    """behaviour 295: the running process opens the vault again after every kind of defect."""
    configs = set_up(tmp_path)
    async with hosting(configs):
        pass
    for trouble in TROUBLES.values():
        breaking = trouble.breaking(tmp_path)
        breaking.__enter__()
        async with hosting(configs, settled=False) as hosted:
            await hosted.served("work", "third")
            home = hosted.vaults.hosted["home"]
            await hosted.until(lambda home=home: bool(home.vault.reason))  # type: ignore[misc]
            assert home.state == "unavailable"
            breaking.__exit__(None, None, None)
            await hosted.served()
            assert home.vault.reason == ""
            assert await titles(hosted) == ["home", "third", "work"]
            answer = await hosted.ask("/mcp", TOKEN, "lithos_list", vault="*")
            assert "failed_vaults" not in answer


@pytest.mark.slow
async def test_vault_is_opened_again_when_its_actor_has_failed(tmp_path: Path) -> None:
    """behaviour 295: an exception that repeatedly ends one vault's actor does not end other vaults."""
    async with hosting(set_up(tmp_path)) as hosted:
        broken, others = hosted.server("home"), [hosted.server(name) for name in ("work", "third")]
        for _ in range(5):
            try:
                await broken.get(Writer).mailbox.ask(object())  # type: ignore[arg-type]
            except (ActorDown, ShuttingDown):
                continue
        await hosted.until(lambda: hosted.vaults.hosted["home"].server is not broken)
        assert [hosted.server(name) for name in ("work", "third")] == others
        await hosted.served()
        assert hosted.server("home") is not broken
        assert await titles(hosted) == ["home", "third", "work"]


async def test_server_stops_at_once_while_vault_waits_for_retry(tmp_path: Path) -> None:
    """behaviour 295: the process runs while at least one vault is served. It ends on a signal."""
    configs = set_up(tmp_path)
    with locked(tmp_path):
        async with hosting(configs, settled=False) as hosted:
            await hosted.served("work")
            await hosted.until(lambda: bool(hosted.vaults.hosted["home"].vault.reason))
            with trio.fail_after(60):
                assert status_of(await hosted.exchange("/v/work/audit", TOKEN)) == 200


async def test_process_exit_fails_when_one_vault_loses_its_database(tmp_path: Path) -> None:
    """docs/spec/lifecycle.md §2"""
    with pytest.RaisesGroup(DatabaseLost, flatten_subgroups=True):
        async with hosting(set_up(tmp_path)):
            (tmp_path / "home-data" / ".lithos" / "coordination.db").unlink()
