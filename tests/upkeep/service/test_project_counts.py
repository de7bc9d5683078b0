"""The list of projects, as a command prints it (docs/spec/projects.md §8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.events.reading.told_projects import ToldProjects
from lithos.kernel.configuration.catalogue import Config
from lithos.server.command.session import CommandSession
from lithos.upkeep.commands_projects import projects
from tests.servers import Clock, Lithos, serving

SHOP = "github.com/acme/shop"


async def printed(lithos: Lithos, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    session = CommandSession(parse_arguments((*words, "projects")), Config())
    assert await projects(session, LocalServer(lithos.server)) == 0
    return capsys.readouterr().out


async def fill(lithos: Lithos, clock: Clock) -> None:
    async def task(metadata: dict[str, Any] | None = None) -> str:
        made = await lithos.call("lithos_task_create", title="A task", agent="ann", metadata=metadata)
        return str(made["task_id"])

    await lithos.create("Cart", metadata={"project": SHOP})
    await lithos.create("Till", metadata={"project": ["git@GitHub.com:Acme/Shop.git", "blog"]})
    clock.advance(minutes=1)
    await lithos.create("Roof", metadata={"project": "blog"})
    for number in range(3):
        await lithos.create(f"Common {number}")
    await lithos.create("Odd", metadata={"project": 7})
    done = await task({"project": SHOP})
    await task({"project": SHOP.upper()})
    await task({"project": ["wiki", "blog"]})
    await task({"project": {"a": 1}})
    await task()
    clock.advance(minutes=1)
    for session in ("s1", "s2"):
        lithos.server.get(ToldProjects).tell(session, "ann", SHOP)
    await lithos.call("lithos_task_complete", task_id=done, agent="ann")


async def test_command_lists_projects_with_their_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        await fill(lithos, clock)
        lines = (await printed(lithos, capsys)).splitlines()
        assert [line.split("  ")[0].strip() for line in lines] == [
            "project", "blog", SHOP, "wiki", "(no project)",
        ]  # fmt: skip
        assert lines[1].split() == ["blog", "2", "1", "1", "0", "2026-03-04", "05:07"]
        assert lines[2].split() == [SHOP, "2", "2", "1", "2", "2026-03-04", "05:08"]
        assert lines[3].split() == ["wiki", "0", "1", "1", "0", "2026-03-04", "05:07"]
        assert lines[4].split() == ["(no", "project)", "4", "2"]
        told = json.loads(await printed(lithos, capsys, "--json"))
        assert told["common"] == {"notes": 4, "tasks": 2}
        assert told["projects"][1] == {
            "project": SHOP, "notes": 2, "tasks": 2, "open_tasks": 1, "sessions": 2,
            "last_change": clock.text,
        }  # fmt: skip


async def test_command_says_how_to_begin_without_projects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path) as lithos:
        await lithos.create("Common")
        assert (await printed(lithos, capsys)).startswith("No note or task has a project yet.")


async def test_long_list_of_projects_is_printed_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path) as lithos:
        for number in range(4):
            names = [f"{'x' * 250} {number} {each}" for each in range(20)]
            metadata = {f"key {each}": name for each, name in enumerate(names)} | {"project": names}
            await lithos.create(f"Note {number}", metadata=metadata)
        assert len((await printed(lithos, capsys)).splitlines()) == 82
