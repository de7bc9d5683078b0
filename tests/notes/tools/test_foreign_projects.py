"""Agents with a write scope, and projects whose folders they may not change (docs/spec/scopes.md §1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from lithos.kernel.values.principals import OWNER, Principal
from lithos.notes.settings import AgentsConfig
from tests.servers import Lithos, refusal, serving

SHOP, API = "github.com/acme/shop", "github.com/acme/api"
SETTINGS = AgentsConfig(
    agents={"ann": {"write": ("work/api/**", "mine/**")}, "prue": {"propose": ("work/shop/**",)}},
    projects={"work/shop": SHOP, "work/api": API},
)
IN_SHOP, IN_API = evolve(OWNER, project=SHOP), evolve(OWNER, project=API)


@asynccontextmanager
async def limited(tmp_path: Path) -> AsyncIterator[Lithos]:
    """Serve a vault in which `ann` may not change the folder of the project shop."""
    async with serving(tmp_path, settings=SETTINGS) as lithos:
        yield lithos


async def call(lithos: Lithos, tool: str, by: Principal = OWNER, **arguments: Any) -> Any:
    return await lithos.server.tools.call(tool, {"agent": "ann", **arguments}, by)


async def project_of(lithos: Lithos, note_id: str) -> object:
    return (await lithos.read(note_id))["metadata"].get("project")


NEW: dict[str, Any] = {"title": "N", "content": "Text.", "path": "mine"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"project": SHOP},
        {"project": "shop"},
        {"metadata": {"project": SHOP}},
        {"metadata": {"project": ["mine", "shop"]}},
        {"content": f"---\nproject: {SHOP}\n---\nText."},
    ],
)
async def test_foreign_project_of_a_new_note_is_refused(tmp_path: Path, arguments: dict[str, Any]) -> None:
    async with limited(tmp_path) as lithos:
        answer = await call(lithos, "lithos_write", **NEW | arguments)
        assert "may change none of them" in refusal(answer, "forbidden")
        assert "shop" in answer["project"]
        assert "mine/**" in answer["scope"]
        assert lithos.files() == []
        other = await call(lithos, "lithos_write", **NEW | arguments | {"agent": "ben"})
        assert other["status"] == "created", "an agent without a scope"


async def test_foreign_project_of_the_session_is_not_applied(tmp_path: Path) -> None:
    """A header must not make a call fail."""
    async with limited(tmp_path) as lithos:
        answer = await call(lithos, "lithos_write", IN_SHOP, **NEW)
        assert answer["status"] == "created"
        assert await project_of(lithos, answer["id"]) is None
        answer = await call(lithos, "lithos_write", IN_API, **NEW | {"title": "M"})
        assert await project_of(lithos, answer["id"]) == API


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("lithos_write", {"project": SHOP}),
        ("lithos_write", {"metadata": {"project": "shop"}}),
        ("lithos_note_update", {"metadata": {"project": [API, SHOP]}}),
    ],
)
async def test_update_cannot_add_foreign_project(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with limited(tmp_path) as lithos:
        note = (await call(lithos, "lithos_write", IN_API, **NEW))["id"]
        refusal(await call(lithos, tool, id=note, **arguments), "forbidden")
        assert await project_of(lithos, note) == API
        assert (await call(lithos, tool, id=note, agent="ben", **arguments))["status"] == "updated"


async def test_update_keeps_foreign_project_that_is_there(tmp_path: Path) -> None:
    """A person put the note into the agent's folder, so the agent may change its text."""
    async with limited(tmp_path) as lithos:
        note = (await call(lithos, "lithos_write", IN_SHOP, **NEW | {"agent": "ben"}))["id"]
        answer = await call(lithos, "lithos_note_edit", id=note, op="append", text="More.")
        assert answer["status"] == "updated"
        answer = await call(lithos, "lithos_write", id=note, project="shop", content="Other.")
        assert answer["status"] == "updated"
        assert await project_of(lithos, note) == SHOP
        assert (await call(lithos, "lithos_write", id=note, project=""))["status"] == "updated"
        assert await project_of(lithos, note) is None


@pytest.mark.needs("proposals")
async def test_project_is_not_foreign_where_changes_can_be_proposed(tmp_path: Path) -> None:
    async with limited(tmp_path) as lithos:
        answer = await call(
            lithos, "lithos_write", **NEW | {"agent": "prue", "path": "work/shop", "project": SHOP}
        )
        assert answer["status"] == "proposed"


async def test_tasks_of_foreign_projects_can_be_created(tmp_path: Path) -> None:
    """Write scopes are about notes, so an agent can ask others to work on a project."""
    async with limited(tmp_path) as lithos:
        answer = await call(lithos, "lithos_task_create", IN_SHOP, title="T")
        found = await lithos.call("lithos_task_get", task_id=answer["task_id"])
        assert found["task"]["metadata"] == {"project": SHOP}
