"""Startup work that waits until the server has served its first client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.app.start import FIRST_CLIENT, FIRST_THINGS, Startup
from lithos.kernel.actors.front_signals import FrontSignals

pytestmark = pytest.mark.autojump


def make_started(*, is_new: bool = False) -> Any:
    """Return an argument for `_first_things`. Its server has read the notes but is not listening yet."""
    manifest = SimpleNamespace(is_new=is_new)
    return SimpleNamespace(
        _manifest=manifest,
        _front=FrontSignals(),
    )


async def seconds_waited(started: Any) -> float:
    begin = trio.current_time()
    await Startup._first_things(cast(Startup, started))
    return trio.current_time() - begin


async def test_first_client_gets_priority_once_the_server_listens() -> None:
    started = make_started()
    waited: list[float] = []

    async def wait() -> None:
        waited.append(await seconds_waited(started))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(FIRST_THINGS / 2)  # on the mock clock, the server needs this time to listen
        await wait_all_tasks_blocked()
        assert waited == []
        started._front.listens.set()
    assert waited == [pytest.approx(FIRST_THINGS / 2 + FIRST_CLIENT)]


async def test_startup_work_runs_when_the_server_never_listens() -> None:
    assert await seconds_waited(make_started()) == pytest.approx(FIRST_THINGS + FIRST_CLIENT)


async def test_new_vault_is_embedded_without_delay() -> None:
    assert await seconds_waited(make_started(is_new=True)) == 0
