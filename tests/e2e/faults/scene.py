"""Notes folder that a server serves, for file failure tests, with its requests and its expected state."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import trio
from attrs import define, field

from tests.e2e.clients import WireClient
from tests.e2e.faults.journal import Told, read_journal, replay_notes
from tests.e2e.process import Lithos, running_lithos

#: Maximum seconds until the server notices a change. The value is generous for a busy machine.
PATIENCE = 60.0


def note_id(number: int) -> str:
    return str(UUID(int=(0xA << 120) + number))


def note_text(number: int, word: str) -> str:
    """Return a note text with an id. A search for `word` finds it."""
    return f"---\nid: {note_id(number)}\ntags: [scene]\n---\n# Note {number}\n\nAbout {word}.\n"


@define(eq=False)
class Scene:
    """A server, and the search word of each note by path relative to `knowledge/`."""

    data: Path
    server: Lithos
    client: WireClient
    words: dict[str, str]
    first: dict[str, str] = field(init=False)
    begun: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first = {note_id(number): path for number, path in enumerate(self.words)}
        self.begun = len(read_journal(self.data))

    @property
    def folder(self) -> Path:
        return self.data / "knowledge"

    @property
    def events(self) -> list[Told]:
        """Return the events that occurred since the scene began."""
        return read_journal(self.data)[self.begun :]

    @property
    def told(self) -> Counter[str]:
        return Counter(event.type for event in self.events)

    def put(self, number: int, path: str, word: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(note_text(number, word))
        self.words[path] = word

    async def health(self, component: str) -> dict[str, Any]:
        said: dict[str, Any] = (await trio.to_thread.run_sync(self.server.health))[1][component]
        return said

    async def until_healthy(self, component: str, **expected: object) -> None:
        """Wait until a component of `/health` has all the given values."""
        with trio.move_on_after(PATIENCE):
            while not (said := await self.health(component)).items() >= expected.items():
                await trio.sleep(0.05)
            return
        raise AssertionError(f"{component}: {said}, expected {expected}")

    async def found(self, word: str) -> list[str]:
        """Return the paths of notes that a search for the word finds."""
        answer = await self.client.call("lithos_search", query=word, mode="fulltext")
        assert "degraded" not in answer, answer
        return [row["path"] for row in answer["results"]]

    async def listed(self) -> dict[str, str]:
        """Return the path of each note by its id."""
        items = (await self.client.call("lithos_list", limit=1_000_000))["items"]
        return {item["id"]: item["path"] for item in items}

    async def until_true(self) -> float:
        """Wait until lists and searches match the folder. Return the number of seconds."""
        began = time.perf_counter()
        with trio.move_on_after(PATIENCE):
            while (wrong := await self._first_wrong()) is not None:
                await trio.sleep(0.05)
            return time.perf_counter() - began
        raise AssertionError(wrong)

    async def _first_wrong(self) -> str | None:
        paths = set((await self.listed()).values())
        if paths != set(self.words):
            return f"listed or lying there, not both: {sorted(paths ^ set(self.words))[:5]}"
        for path, word in self.words.items():
            if (found := await self.found(word)) != [path]:
                return f"{word} is in {path} and found in {found}"
        return None

    async def verify(self) -> None:
        """Check that searches, lists, history and `/health` are correct."""
        await self.until_true()
        await self._until_told()
        await self.client.settled_stats()
        await self.until_healthy("index", status="ok")
        await self.until_healthy("watcher", status="ok")
        assert (await trio.to_thread.run_sync(self.server.health))[0] == 200

    async def _until_told(self) -> None:
        """Wait for the events. Lists may show an external edit before the journal contains its event."""
        with trio.move_on_after(PATIENCE):
            while (told := replay_notes(self.events, self.first)) != (listed := await self.listed()):
                await trio.sleep(0.05)
            return
        raise AssertionError(f"told, but not so: {told.items() ^ listed.items()}")

    async def is_quick(self, word: str) -> float:
        """Make another external edit.

        Return the seconds until it is found, as proof that the watcher works.
        """
        self.put(900_000, f"{word}.md", word)
        began = time.perf_counter()
        with trio.fail_after(PATIENCE):
            while not await self.found(word):
                await trio.sleep(0.02)
        return time.perf_counter() - began


@asynccontextmanager
async def scene(folder: Path, notes: int, **environment: str) -> AsyncIterator[Scene]:
    """Run a server on `notes` notes with change notifications. The server must stop without an error."""
    data = folder / "data"
    words = {f"part-{number % 5}/note-{number}.md": f"scene{number}x" for number in range(notes)}
    for number, (path, word) in enumerate(words.items()):
        (data / "knowledge" / path).parent.mkdir(parents=True, exist_ok=True)
        (data / "knowledge" / path).write_text(note_text(number, word))
    with running_lithos(data, env=environment) as server:
        async with WireClient.open(server.address) as client:
            made = Scene(data, server, client, words)
            await made.until_healthy("watcher", status="ok")
            await made.until_true()
            yield made
        assert server.stop() == 0
        assert "Traceback" not in server.log()
