"""Event cursors. They only move forward, are shared by name, durable, and visible once acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from lithos.events.journal.messages import AppendEvents
from lithos.events.reading.agents import Cursors
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.events import EventDraft
from tests.fakes import START
from tests.kernel.actors.desks import CoordinatorDesk

pytestmark = pytest.mark.autojump
DRAFT = EventDraft(type="note.created", agent="a", payload={}, timestamp=START)


class Desk(CoordinatorDesk):
    """A desk with the event cursors of its subscribers."""

    def open(self) -> None:
        super().open()
        self.cursors = Cursors(self.mailbox, self.store, Inline())

    async def publish(self) -> int:
        seq: int = await self.mailbox.ask(AppendEvents((DRAFT,)))
        return seq


async def test_new_cursor_starts_at_the_head_and_is_stored_immediately(tmp_path: Path) -> None:
    """behaviour 188"""
    async with Desk.at(tmp_path / "c.db") as desk:
        head = desk.coordinator.head
        assert await desk.cursors.find("ada") is None
        assert await desk.cursors.start("ada") == head
        assert desk.store.cursor("ada") == head
        await desk.publish()
        assert await desk.cursors.start("ada") == head
        assert await desk.cursors.start("bob") == head + 1


async def test_cursor_moves_only_forward_and_survives_a_restart(tmp_path: Path) -> None:
    """behaviour 188"""
    async with Desk.at(tmp_path / "c.db") as desk:
        for seq in (7, 5):
            desk.cursors.acknowledge("ada", seq)
            await desk.cursors.store("ada")
            assert desk.store.cursor("ada") == 7
        await desk.cursors.store("nobody")
        assert desk.store.cursor("nobody") is None
    async with Desk.at(tmp_path / "c.db") as desk:
        assert await desk.cursors.start("ada") == 7


async def test_acknowledgement_is_visible_before_it_is_stored(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        desk.cursors.acknowledge("ada", 9)
        desk.cursors.acknowledge("ada", 8)
        assert await desk.cursors.find("ada") == 9
        assert desk.store.cursor("ada") is None


async def test_cancelled_write_loses_no_acknowledgement(tmp_path: Path) -> None:
    """behaviour 188: a client that acknowledges an event and disconnects cancels the running write."""
    async with Desk.at(tmp_path / "c.db") as desk:
        head = await desk.cursors.start("ada")
        desk.cursors.acknowledge("ada", head + 9)
        with trio.CancelScope() as leaving:
            leaving.cancel()
            await desk.cursors.store("ada")
        assert leaving.cancelled_caught
        assert desk.store.cursor("ada") == head
        assert await desk.cursors.find("ada") == head + 9
        await desk.cursors.store("ada")
        assert desk.store.cursor("ada") == head + 9


async def test_full_disk_refuses_new_cursors_but_loses_no_old_cursor(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        head = await desk.cursors.start("ada")
        desk.failing = True
        desk.cursors.acknowledge("ada", head + 5)
        await desk.cursors.store("ada")
        assert await desk.cursors.start("ada") == head
        with pytest.raises(StorageFailed):
            await desk.cursors.start("bob")


async def test_stopping_server_refuses_a_new_cursor_name(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        desk.coordinator.mailbox.close()
        with pytest.raises(StorageFailed, match="Retry"):
            await desk.cursors.start("ada")
        desk.cursors.acknowledge("ada", 5)
        await desk.cursors.store("ada")
