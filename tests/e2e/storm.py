"""Many writers that record confirmations, and the state that must survive a crash."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import trio
from attrs import define, field

from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import Lithos

FOLDER = "storm"


@define(eq=False)
class Promise:
    """State of one note: the confirmed version (0 for none), and the version being written at the crash."""

    agent: int
    number: int
    id: str | None = None
    version: int = 0
    is_deleted: bool = False
    #: Request that had no answer when the server died. It is a version, or "deleted".
    pending: int | str | None = None

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.stem}.md"

    @property
    def stem(self) -> str:
        return f"note-{self.agent}-{self.number}"

    def token(self, version: int) -> str:
        return f"q{self.agent}w{self.number}v{version}z"

    def content(self, version: int) -> str:
        filler = f"Line of version {version} by {self.agent}.\n" * (1 + (self.number * 7) % 40)
        return f"Token {self.token(version)}.\n\n{filler}".strip()

    def settle(self, folder: Path) -> None:
        """Compare the note with the disk after a crash, and adopt the state on the disk."""
        file = folder / self.path
        found = file.read_text() if file.exists() else None
        allowed: dict[int | str, str | None] = {self.version: self.content(self.version)}
        if self.version == 0 or self.is_deleted:
            allowed = {self.version: None}
        if self.pending is not None:
            allowed[self.pending] = None if self.pending == "deleted" else self.content(int(self.pending))
        for version, content in allowed.items():
            if found is None if content is None else found is not None and found.endswith(f"\n\n{content}\n"):
                self.is_deleted = self.is_deleted or version == "deleted"
                self.version = self.version if isinstance(version, str) else version
                self.pending = None
                return
        raise AssertionError(f"{self.path} is neither of {allowed}: {found!r}")


@define(eq=False)
class Storm:
    """All confirmed states, and the number of confirmed changes."""

    seed: int
    writers: int = 16
    promises: list[Promise] = field(factory=list)
    acknowledged: Counter[str] = field(factory=Counter)
    #: Seconds between the last confirmation and the kill.
    lag: float = 0.0

    @property
    def present(self) -> list[Promise]:
        return [promise for promise in self.promises if promise.version and not promise.is_deleted]

    async def rage(self, server: Lithos, acknowledgements: int) -> None:
        """Write from many clients. Kill the server after a number of confirmations."""
        until = self.acknowledged.total() + acknowledgements
        async with trio.open_nursery() as nursery:
            for agent in range(self.writers):
                nursery.start_soon(self._write, server, agent, until)

    async def _write(self, server: Lithos, agent: int, until: int) -> None:
        random = Random(f"{self.seed} {agent} {len(self.promises)}")
        try:
            async with WireClient.open(server.address) as client:
                while True:
                    await self._change(client, agent, random)
                    if self.acknowledged.total() >= until:
                        await trio.sleep(self.lag)
                        server.process.kill()
        except Gone:
            return

    async def _change(self, client: WireClient, agent: int, random: Random) -> None:
        mine = [promise for promise in self.present if promise.agent == agent]
        kind = random.choices(["create", "update", "delete"], [5, 3, 2])[0] if mine else "create"
        if kind == "create":
            numbers = [promise.number for promise in self.promises if promise.agent == agent]
            promise = Promise(agent, max(numbers, default=-1) + 1)
            self.promises.append(promise)
        else:
            promise = random.choice(mine)
        if kind == "delete":
            promise.pending = "deleted"
            answer = await client.call("lithos_delete", id=promise.id, agent=f"a{agent}")
            assert answer.get("success") is True, answer  # the answer may also list links to the note
            promise.is_deleted = True
        else:
            await self._put(client, promise)
        promise.pending = None
        self.acknowledged[kind] += 1

    async def _put(self, client: WireClient, promise: Promise) -> None:
        promise.pending = version = promise.version + 1
        arguments = {"title": promise.stem, "content": promise.content(version), "agent": f"a{promise.agent}"}
        if promise.id is None:
            answer = await client.call("lithos_write", path=FOLDER, **arguments)
        else:
            answer = await client.call("lithos_write", id=promise.id, **arguments)
        assert answer["status"] == ("updated" if version > 1 else "created"), answer
        assert (answer["path"], answer["version"]) == (promise.path, version)
        promise.id, promise.version = answer["id"], version
