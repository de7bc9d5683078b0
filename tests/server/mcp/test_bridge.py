"""Stdio client whose calls a bridge forwards to the owner process and, after its end, to the next owner."""

from __future__ import annotations

import pytest
import trio

from lithos.server.http.limits import STOP_FLUSH, STOP_GRACE
from lithos.server.mcp.link import CONNECTIONS, OWNER_WAIT, PATIENCE, PING_PATIENCE, TAKE_OVER_AFTER
from tests.server.bridging import VERSION, FakeOwner, House, bridged, owned

pytestmark = pytest.mark.autojump

ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


async def test_bridge_forwards_requests_with_the_agreed_protocol_version() -> None:
    """behaviour 195"""
    house, owner = owned()
    async with bridged(house, greet=False) as client:
        await client.ask(1, "initialize", protocolVersion=VERSION)
        await client.call(2)  # the client does not wait for the answer before its next request
        await client.ask(3, "ping")
        assert (await client.answer(2))["result"] == {"by": 7}
        assert (await client.answer(1))["result"]["protocolVersion"] == VERSION
        assert (await client.answer(3))["result"] == {}
    assert [message["method"] for message in owner.asked] == ["initialize", "tools/call"]
    assert [headers.get("mcp-protocol-version") for headers in owner.headers] == [None, VERSION]
    assert len(client.answers) == 3


async def test_bridge_sends_a_message_envelope_with_its_headers() -> None:
    house, owner = owned()
    async with bridged(house, greet=False) as client:
        await client.ask(1, "tools/call", name="wörter", arguments={}, _meta=ENVELOPE)
        await client.ask(2, "server/discover", _meta=ENVELOPE)
        await client.answer(1)
        await client.answer(2)
    first, second = owner.headers
    assert first["mcp-protocol-version"] == second["mcp-protocol-version"] == "2026-07-28"
    assert (first["mcp-method"], first["mcp-name"]) == ("tools/call", "=?base64?d8O2cnRlcg==?=")
    assert second["mcp-method"] == "server/discover"
    assert "mcp-name" not in second


async def test_call_with_a_lost_answer_gets_an_error_without_retry() -> None:
    """behaviour 196"""
    house, owner = owned()
    next_owner = FakeOwner(8)
    async with bridged(house) as client:
        await client.call(1, "wait")
        await client.ask(2, "tools/list")
        await trio.sleep(1)
        house.kill()
        house.install(next_owner)
        assert await client.reason(1) == "outcome_unknown"
        assert "before you repeat" in (await client.answer(1))["error"]["message"]
        assert (await client.answer(2))["result"] == {"by": 8}  # the bridge may repeat a read-only call
        await client.call(3)
        assert (await client.answer(3))["result"] == {"by": 8}
    assert owner.names() == ["wait"]
    assert next_owner.names() == ["echo"]


async def test_unsent_call_waits_for_the_next_owner() -> None:
    """behaviour 196"""
    house, owner = owned()
    async with bridged(house) as client:
        owner.dead.set()  # the process that ends still has the lock
        await client.call(1)
        await trio.sleep(3)
        assert not [message for message in client.answers if message["id"] == 1]
        house.install(FakeOwner(8))
        assert (await client.answer(1))["result"] == {"by": 8}
        assert client.answers[-1]["id"] == 1
    assert not house.taken_at


async def test_bridge_takes_over_after_five_seconds_without_an_owner() -> None:
    """behaviour 196"""
    house, _ = owned()
    async with bridged(house) as client:
        house.kill()
        began = trio.current_time()
        await client.call(1)
        assert (await client.answer(1))["result"] == {"by": 1000}
        assert TAKE_OVER_AFTER <= house.taken_at[0] - began <= TAKE_OVER_AFTER + 1
        await client.call(2)
        assert (await client.answer(2))["result"] == {"by": 1000}
        assert house.owner is not None
        versions = [headers["mcp-protocol-version"] for headers in house.owner.headers]
        assert versions == [VERSION] * 2  # the session keeps the agreed protocol version


async def test_idle_bridge_takes_over_when_no_owner_exists() -> None:
    house, _ = owned()
    async with bridged(house):
        house.kill()
        await trio.sleep(TAKE_OVER_AFTER + 4)
        assert house.owner is not None
        assert house.owner.pid == 1000


async def test_only_one_bridge_takes_over_and_serves_the_others() -> None:
    """behaviour 196"""
    house, _ = owned()
    async with bridged(house) as first, bridged(house) as second, bridged(house) as third:
        house.kill()
        for client in (first, second, third):
            await client.call(1)
        for client in (first, second, third):
            assert (await client.answer(1))["result"] == {"by": 1000}
    assert len(house.taken_at) == 1


async def test_calls_are_answered_when_the_owner_hangs() -> None:
    house, owner = owned()
    async with bridged(house) as client:
        owner.hangs = True
        began = trio.current_time()
        await client.call(1)
        assert await client.reason(1) == "outcome_unknown"
        assert trio.current_time() - began <= PATIENCE + PING_PATIENCE + 2
        owner.hangs = False
        await client.call(2)
        assert (await client.answer(2))["result"] == {"by": 7}


async def test_bridge_waits_for_a_long_call_of_a_running_owner() -> None:
    house, _ = owned()
    async with bridged(house) as client:
        await client.call(1, "sleep", seconds=10 * PATIENCE)
        assert (await client.answer(1))["result"] == {"by": 7}


async def test_cancelled_call_gets_no_answer_and_ends_at_the_owner() -> None:
    house, owner = owned()
    async with bridged(house) as client:
        await client.call(1, "wait")
        await trio.sleep(1)
        assert owner.at_once == 1
        await client.cancel(1)
        await client.call(2)
        await client.answer(2)
        assert owner.at_once == 0
        owner.release.set()
    assert [message["id"] for message in client.answers] == [0, 2]


async def test_pending_calls_finish_or_fail_after_the_input_ends() -> None:
    house, _ = owned()
    async with bridged(house) as client:
        await client.call(1, "sleep", seconds=STOP_GRACE - 1)
        await client.call(2, "wait")
        await client.call(3)
        ending = trio.current_time()
    assert trio.current_time() - ending <= STOP_GRACE + 3 * STOP_FLUSH
    assert (await client.answer(1))["result"] == {"by": 7}
    assert (await client.answer(3))["result"] == {"by": 7}
    assert await client.reason(2) == "outcome_unknown"


async def test_bridge_takes_over_soon_after_a_command_releases_the_lock() -> None:
    house = House(starting=True)
    async with bridged(house, greet=False) as client:
        await client.ask(1, "initialize")
        await trio.sleep(2)
        house.starting = False
        began = trio.current_time()
        assert (await client.answer(1))["result"]["by"] == 1000
        assert house.taken_at[0] - began < 1


async def test_bridge_waits_for_an_owner_for_a_limited_time() -> None:
    house = House(starting=True)
    async with bridged(house, greet=False) as client:
        began = trio.current_time()
        await client.ask(1, "initialize")
        assert await client.reason(1) == "not_sent"
        assert trio.current_time() - began == pytest.approx(OWNER_WAIT, abs=1)


async def test_bridge_limits_the_number_of_simultaneous_requests() -> None:
    house, owner = owned()
    async with bridged(house) as client:
        for number in range(1, 301):
            await client.call(number, "sleep", seconds=1)
        for number in range(1, 301):
            assert "result" in await client.answer(number)
    assert owner.most_at_once <= CONNECTIONS + 1  # the heartbeat uses one additional connection


async def test_subscription_continues_with_the_next_owner() -> None:
    house, _ = owned()
    async with bridged(house, greet=False) as client:
        await client.ask(1, "subscriptions/listen", _meta=ENVELOPE)
        await trio.sleep(1)
        assert [message.get("method") for message in client.answers] == ["notifications/x"]
        await trio.sleep(700)  # the time limit for calls does not apply to subscriptions
        house.kill()
        next_owner = FakeOwner(8)
        house.install(next_owner)
        await trio.sleep(2)
        assert [message.get("method") for message in client.answers] == ["notifications/x"] * 2
        next_owner.release.set()
        assert (await client.answer(1))["result"] == {"by": 8}


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"<html>hello</html>", "without a protocol message"),
        (200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"odd"}}', "odd"),
        (413, b'{"error":"body_too_large","message":"Send less at once"}', "Send less at once"),
        (401, b'{"error":"unauthorized"}', "LITHOS_AUTH_TOKEN"),
        (503, b'{"error":"stopping"}', "is unknown"),
    ],
)
async def test_invalid_owner_answer_becomes_a_protocol_error(status: int, body: bytes, told: str) -> None:
    house, owner = owned()
    async with bridged(house) as client:
        owner.status, owner.body = status, body
        await client.call(1)
        assert told in (await client.answer(1))["error"]["message"]


@pytest.mark.parametrize(
    "line", ["", "no JSON", "[]", "1", '{"id":1}', '{"method":"x","id":null}', "[" * 9999]
)
async def test_bridge_skips_an_unreadable_line(line: str) -> None:
    house, owner = owned()
    async with bridged(house) as client:
        await client.lines.send(line + "\n")
        await client.call(1)
        await client.answer(1)
    assert owner.names() == ["echo"]
    assert len(client.answers) == 2
