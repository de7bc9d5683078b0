"""Two vaults in one process, for tests that move notes between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define

from lithos.history.rows.store import HistoryStore
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.vaults.service.moving import VaultMove, VaultMoving
from tests.servers import Lithos, serving

AGENT = "mover"


@define
class Pair:
    """Two vaults in one process."""

    here: Lithos
    there: Lithos
    root: Path
    moving: VaultMoving

    async def move(self, note_id: str, **more: Any) -> VaultMove:
        return await self.moving.move(note_id=note_id, agent=AGENT, **more)

    def files(self) -> dict[str, bytes]:
        """Return all notes of both vaults, by path below their common folder."""
        found = (path for name in ("here", "there") for path in (self.root / name).rglob("*.md"))
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def state(self) -> object:
        """Return the state that a refused move must not change."""
        stores = (each.server.get(HistoryStore) for each in (self.here, self.there))
        versions = [store.recent(limit=100) for store in stores]
        return self.files(), versions, self.here.events(), self.there.events()

    def places(self, note_id: str) -> list[str]:
        """Return the names of the vaults that contain the note."""
        sides = {"here": self.here, "there": self.there}
        return [name for name, side in sides.items() if note_id in side.server.get(Catalogue)]


@asynccontextmanager
async def vaults(root: Path, **sections: Any) -> AsyncIterator[Pair]:
    """Run two servers with separate folders."""
    for name in ("here", "there"):
        (root / name).mkdir(exist_ok=True)
    async with (
        serving(root / "data-here", storage={"vault": root / "here"}, **sections) as here,
        serving(root / "data-there", storage={"vault": root / "there"}, **sections) as there,
    ):
        yield Pair(here, there, root, VaultMoving(here.server, there.server, "there"))


async def history(side: Lithos, note_id: str) -> list[tuple[int, str, str, str]]:
    """Return version, operation, agent and time of each version of a note, newest first."""
    rows = (await side.call("lithos_history", id=note_id))["versions"]
    return [(row["version"], row["op"], row["agent"], row["at"]) for row in rows]


async def three_versions(side: Lithos) -> str:
    """Create a note that three agents write. Return its id."""
    note_id = await side.create("Plan", "first", agent="ann", tags=["a"], path="plan.md")
    for agent, content in (("ben", "second"), ("cem", "third")):
        await side.write("Plan", content, id=note_id, agent=agent)
    return note_id


def events_of(side: Lithos, note_id: str) -> list[str]:
    return [kind for kind, payload in side.events() if payload.get("id") == note_id]
