"""One note: sixteen agents append, four edit sections, a program saves it like an editor, and a kill."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from lithos.stores.history.store import HistoryStore
from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import Lithos, start_lithos

APPENDERS, EDITORS = 16, 4
#: Seconds between two saves of the editor.
SAVE_EVERY = 0.5
#: Seconds for which the last save may wait for being taken up.
TAKEN_UP = 60.0
#: What each half of the storm does at least, however busy the machine is: appended, replaced, saved.
LEAST = (26, 6, 6)
TITLE = "Shared"
PERSON = "## Person\n\n"
PARTS = "".join(f"## Part {number}\n\nempty\n\n" for number in range(EDITORS))
BODY = f"## Log\n\nbegins\n\n{PERSON}nothing yet\n\n{PARTS}"


@define(eq=False)
class Storm:
    """One data directory, its server, and what everybody was told is safe."""

    data: Path
    seconds: float
    note: str = ""
    path: Path = Path()
    appended: list[str] = field(factory=list)
    replaced: list[str] = field(factory=list)
    saved: list[str] = field(factory=list)
    _is_over: bool = False

    async def run(self) -> set[str]:
        """What is lost in a storm with kill -9 in its middle, once the server has taken up what is left."""
        self.data.mkdir(parents=True, exist_ok=True)
        server = await trio.to_thread.run_sync(start_lithos, self.data)
        try:
            async with WireClient.open(server.address) as client:
                made = await client.call("lithos_write", title=TITLE, content=BODY, agent="maker")
                self.note, self.path = made["id"], self.data / "knowledge" / made["path"]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._save)
                await self._half(server)
                await trio.to_thread.run_sync(server.kill)
                server.close()
                server = await trio.to_thread.run_sync(start_lithos, self.data)
                await self._half(server)
                self._is_over = True
            await self._settle(server)
            assert await trio.to_thread.run_sync(server.stop) == 0
        finally:
            server.close()
        return await trio.to_thread.run_sync(self._lost)

    @property
    def done(self) -> tuple[int, int, int]:
        return len(self.appended), len(self.replaced), len(self.saved)

    async def _half(self, server: Lithos) -> None:
        wanted = [done + least for done, least in zip(self.done, LEAST, strict=True)]
        async with trio.open_nursery() as nursery:
            for number in range(APPENDERS):
                nursery.start_soon(self._work, server, f"appender-{number}", None)
            for number in range(EDITORS):
                nursery.start_soon(self._work, server, f"editor-{number}", f"Part {number}")
            await trio.sleep(self.seconds / 2)
            with trio.move_on_after(60):
                while any(done < least for done, least in zip(self.done, wanted, strict=True)):
                    await trio.sleep(0.1)
            nursery.cancel_scope.cancel()

    async def _work(self, server: Lithos, agent: str, part: str | None) -> None:
        """Append to the log, or replace the text of one section, again and again."""
        number = 0
        while True:
            try:
                async with WireClient.open(server.address) as client:
                    while True:
                        number += 1
                        text = f"{agent} {time.monotonic_ns()} {number}."
                        await self._edit(client, agent, part, text)
            except Gone:
                await trio.sleep(0.05)

    async def _edit(self, client: WireClient, agent: str, part: str | None, text: str) -> None:
        where: dict[str, Any] = (
            {"op": "append", "section": "Log"} if part is None else {"op": "replace", "section": part}
        )
        answer = await client.call("lithos_note_edit", id=self.note, agent=agent, text=text, **where)
        if answer.get("status") == "updated":
            (self.appended if part is None else self.replaced).append(text)
        else:  # the person's editor has the file: nothing was changed, and it says so
            assert "Nothing was changed" in answer["message"], answer

    async def _save(self) -> None:
        """Read the file, add a line, write it beside and rename: what is written between is overwritten."""
        number = 0
        while not self._is_over:
            await trio.sleep(SAVE_EVERY)
            number += 1
            text = f"person {number}."
            old = self.path.read_text(encoding="utf-8")
            staged = self.path.with_name(".editor.tmp")
            staged.write_text(old.replace(PERSON, f"{PERSON}{text}\n\n", 1), encoding="utf-8")
            os.replace(staged, self.path)
            self.saved.append(text)

    async def _settle(self, server: Lithos) -> None:
        """Wait until the last save was taken up: it is in the note, and the newest version is the file."""
        async with WireClient.open(server.address) as client:
            with trio.fail_after(TAKEN_UP):
                while True:
                    read = await client.call("lithos_read", id=self.note, agent="judge")
                    kept = await client.call("lithos_history", id=self.note, limit=1)
                    if kept["versions"] and kept["versions"][0]["version"] == read["version"]:
                        return
                    await trio.sleep(0.1)

    def _lost(self) -> set[str]:
        """What was acknowledged or saved and is neither in the note nor in any version of it."""
        end = self.path.read_text(encoding="utf-8")
        missing = {text for text in (*self.appended, *self.replaced, *self.saved) if text not in end}
        for content in self._versions():
            missing -= {text for text in missing if text in content}
        return missing

    def _versions(self) -> Iterator[str]:
        store = HistoryStore.open(self.data / ".lithos" / "history.db", datetime.now(UTC))
        try:
            rows, total = store.rows(self.note, 1_000_000)
            assert len(rows) == total
            for row in rows:
                content = store.content(self.note, row.version)
                assert content is not None, row
                yield content.decode()
        finally:
            store.close()


@pytest.mark.slow
@pytest.mark.deadline(180)
async def test_no_text_of_anybody_is_lost_at_one_note(tmp_path: Path) -> None:
    """behaviours 216, 219 and 226: agents that append and edit, a person who saves, and a kill in between."""
    storm = Storm(tmp_path / "data", 12.0)
    lost = await storm.run()
    assert not lost, sorted(lost)[:5]
    assert all(done > 10 for done in storm.done)
    assert len(storm.appended) > 50
