"""The project of a call in receipts and in the access log (docs/spec/projects.md §7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from attrs import evolve

from lithos.events.journal.coordinator import Coordinator
from lithos.events.reading.agents import AccessLog
from lithos.kernel.values.principals import OWNER, Principal
from lithos.memory.retrieve.feedback import Learning
from tests.servers import Lithos, serving

SHOP = "github.com/acme/shop"
IN_SHOP = evolve(OWNER, project=SHOP)


async def projects_of_accesses(lithos: Lithos) -> list[object]:
    """Return the project of each entry in the access log, oldest first."""
    found = await lithos.server.get(AccessLog).entries(agent=None, doc=None, after=None, limit=100)
    return [each.get("project", "nothing") for each in reversed(found)]


async def ask(lithos: Lithos, by: Principal, tool: str, **arguments: Any) -> Any:
    return await lithos.server.tools.call(tool, {"agent_id": "ann", **arguments}, by)


async def test_accesses_have_project_of_call(lithos: Lithos) -> None:
    note = await lithos.create("Alpha", "Alpha text.")
    for by in (IN_SHOP, OWNER):
        await ask(lithos, by, "lithos_read", id=note)
        await ask(lithos, by, "lithos_search", query="alpha")
    assert await projects_of_accesses(lithos) == [SHOP, SHOP, "nothing", "nothing"]


@pytest.mark.parametrize("tool", ["lithos_retrieve", "lithos_context"])
async def test_receipts_have_project_of_call(lithos: Lithos, tool: str) -> None:
    await lithos.create("Alpha", "Alpha text.")
    found = []
    for by in (IN_SHOP, OWNER):
        receipt_id = (await ask(lithos, by, tool, query="alpha"))["receipt_id"]
        receipt = await lithos.server.get(Learning).receipt(receipt_id)
        assert receipt is not None
        found.append(receipt.project)
    assert found == [SHOP, None]


async def test_older_files_get_the_columns(tmp_path: Path) -> None:
    """Rows of an older version have no project, and are kept."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Alpha", "Alpha text.")
        await lithos.read(note)
        old = (await ask(lithos, OWNER, "lithos_retrieve", query="alpha"))["receipt_id"]
        await lithos.audit()
    for name, table in (("coordination.db", "access_log"), ("stats.db", "receipts")):
        (path,) = tmp_path.rglob(name)
        connection = apsw.Connection(str(path))
        connection.execute(f"ALTER TABLE {table} DROP COLUMN project")
        connection.close()
    async with serving(tmp_path) as lithos:
        assert set(await projects_of_accesses(lithos)) == {"nothing"}
        kept = await lithos.server.get(Learning).receipt(old)
        assert kept is not None
        assert kept.project is None
        await ask(lithos, IN_SHOP, "lithos_read", id=note)
        assert (await projects_of_accesses(lithos))[-1] == SHOP
        assert lithos.server.get(Coordinator).reads_of(note) == 2
