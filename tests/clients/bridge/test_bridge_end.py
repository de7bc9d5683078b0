"""End of a bridge: by a stop, by an owner that refuses the bridge, or by a failed takeover."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from lithos.server.http.limits import STOP_GRACE
from lithos.server.mcp.bridge import serve_bridge
from lithos.server.mcp.client import OwnerRefuses
from lithos.server.mcp.link import TAKE_OVER_AFTER
from tests.server.bridging import House, owned
from tests.server.running import rpc

pytestmark = pytest.mark.autojump


@contextmanager
def pipes(monkeypatch: pytest.MonkeyPatch, *messages: object) -> Iterator[int]:
    """Replace stdin with a pipe that contains these messages and does not end.

    Yield the descriptor from which the test reads stdout.
    """
    stdin, feed = os.pipe()
    answers, stdout = os.pipe()
    os.set_blocking(answers, False)

    @contextmanager
    def claim() -> Iterator[tuple[int, int]]:
        yield stdin, stdout

    monkeypatch.setattr("lithos.server.mcp.bridge.claim_standard_streams", claim)
    os.write(feed, b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    try:
        yield answers
    finally:
        for descriptor in (stdin, feed, answers, stdout):
            os.close(descriptor)


async def test_waiting_calls_are_answered_when_a_takeover_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("the disk is on fire")

    house = House(hosting=fail)
    with pipes(monkeypatch, rpc("initialize", 1), rpc("ping", 2)) as answers:
        with pytest.raises(ExceptionGroup) as caught:
            await serve_bridge(house.trail(), trio.Event())
        told = [json.loads(line) for line in os.read(answers, 65536).splitlines()]
    assert caught.group_contains(OSError, match="on fire")
    assert [message["id"] for message in told] == [2, 1]
    assert "cannot take over" in told[1]["error"]["message"]


@pytest.mark.parametrize(("status", "told"), [(401, "LITHOS_AUTH_TOKEN"), (403, "allowed_hosts")])
async def test_bridge_ends_when_the_owner_refuses_its_token(
    status: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, _ = owned(status=status)
    with pipes(monkeypatch), pytest.raises(ExceptionGroup) as caught:
        await serve_bridge(house.trail(), trio.Event())
    assert caught.group_contains(OwnerRefuses, match=told)


async def test_stop_ends_the_bridge_and_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    house, shutdown = House(), trio.Event()
    with pipes(monkeypatch, rpc("initialize", 1)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_bridge, house.trail(), shutdown)
            await trio.sleep(TAKE_OVER_AFTER + 4)
            assert house.owner is not None
            shutdown.set()
            nursery.cancel_scope.deadline = trio.current_time() + STOP_GRACE
        assert not nursery.cancel_scope.cancelled_caught
