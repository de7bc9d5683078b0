"""Progress reports of long calls."""

from __future__ import annotations

import pytest
import trio

from lithos.kernel.actors.start_progress import progress_told, wait_telling


@pytest.mark.autojump
async def test_wait_is_reported_every_second_until_its_end() -> None:
    reports: list[tuple[float, float, str]] = []
    event = trio.Event()

    async def tell(done: float, total: float, doing: str) -> None:
        reports.append((round(done, 3), total, doing))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_set_after, event, 2.5)
        with progress_told(tell):
            await wait_telling(event, 10, "warming up")
    assert reports == [(0, 10, "warming up"), (1, 10, "warming up"), (2, 10, "warming up")]
    with progress_told(tell):
        await wait_telling(event, 10, "again")
    assert len(reports) == 3


@pytest.mark.autojump
async def test_slow_client_cannot_extend_the_wait() -> None:
    async def tell(done: float, total: float, doing: str) -> None:
        await trio.sleep_forever()

    begin = trio.current_time()
    with progress_told(tell):
        await wait_telling(trio.Event(), 10, "warming up")
    assert trio.current_time() - begin == pytest.approx(10)
    await wait_telling(trio.Event(), 3, "nobody has to listen")
    assert trio.current_time() - begin == pytest.approx(13)


async def _set_after(event: trio.Event, seconds: float) -> None:
    await trio.sleep(seconds)
    event.set()
