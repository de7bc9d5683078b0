"""Output of `lithos serve` about optional capabilities."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import trio
from attrs import define

from lithos.app.capabilities import makers
from lithos.app.options import parse_arguments
from lithos.app.serving import hosting
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import Parts, made_by
from lithos.server.command.serve_ports import Backlog, StartupNotice
from lithos.server.command.session import CommandSession

SESSION = CommandSession(parse_arguments(["serve"]), Config())


@define
class Reading:
    """A fake backlog that shrinks with each read."""

    left: int
    is_on: bool = True

    @property
    def waiting(self) -> int:
        self.left -= 1
        return self.left

    async def known(self) -> bool:
        return self.is_on


@pytest.mark.parametrize(
    ("reading", "shown"),
    [
        (None, []),
        (Reading(40, is_on=False), []),
        (Reading(3), []),
        (Reading(hosting.MANY_FILES + 1), [(done, 20) for done in range(1, 20)]),
    ],
    ids=["absent", "off", "few", "many"],
)
def test_serve_shows_progress_of_a_long_backlog(
    reading: Reading | None, shown: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int]] = []

    @contextmanager
    def draw(*_: object):  # type: ignore[no-untyped-def]
        yield lambda name, done, total: drawn.append((done, total))

    monkeypatch.setattr("lithos.server.command.progress.progress_bars", draw)
    monkeypatch.setattr(hosting, "PROGRESS", 0)
    parts = Parts((), {} if reading is None else {Backlog: reading})
    trio.run(hosting._show_backlog, SESSION, parts)
    assert drawn == shown


@pytest.mark.needs("attachments", "access")
def test_capabilities_supply_the_startup_notice_and_backlog_of_serve() -> None:
    made = {made_by(maker) for maker in makers()}
    assert {StartupNotice, Backlog} <= made
