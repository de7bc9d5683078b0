"""End of all open streams of a client when the client is revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, open_websocket_url

from tests.access.oauth.flow import Public, public_server
from tests.server.console.visiting import PATIENCE, form_of
from tests.server.running import rpc
from tests.server.whole import MODERN

Reader = AsyncIterator[str]
LISTEN = "subscriptions/listen"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


def bearer(tokens: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens['access_token']}"}


@asynccontextmanager
async def http_stream(public: Public, tokens: dict[str, Any], path: str) -> AsyncIterator[Reader]:
    """Open an event stream. `/events` sends only its headers until an event occurs."""
    method, body, headers = "GET", None, bearer(tokens)
    if path == "/mcp":
        method, body = "POST", rpc(LISTEN, notifications={"resourcesListChanged": True}, _meta=META)
        headers |= {"Accept": "application/json, text/event-stream", "Mcp-Method": LISTEN}
        headers["MCP-Protocol-Version"] = MODERN
    async with public.http.stream(method, path, json=body, headers=headers) as answer:
        assert answer.status_code == 200
        parts = answer.aiter_text()
        assert path == "/events" or await anext(parts)
        yield parts


async def read_to_the_end(parts: Reader) -> None:
    async for _ in parts:
        pass


async def test_revoked_client_loses_its_streams_and_other_clients_keep_theirs(tmp_path: Path) -> None:
    """behaviour 275: covers event streams, sessions, change subscriptions and WebSockets.

    `tests/access/service/test_keyring.py` tests the promised time limit on a mock clock.
    """
    async with public_server(tmp_path) as public, AsyncExitStack() as open_streams:
        others = await (await public.begin()).tokens()
        flow = await public.begin()
        tokens = await flow.tokens()
        other = await open_streams.enter_async_context(http_stream(public, others, "/events"))
        streams = [
            await open_streams.enter_async_context(http_stream(public, tokens, path))
            for path in ("/events", "/sse", "/mcp")
        ]
        url = f"{public.url.replace('http', 'ws')}/events/ws"
        headers = [(name.encode(), value.encode()) for name, value in bearer(tokens).items()]
        async with open_websocket_url(url, extra_headers=headers) as socket:
            assert "hello" in await socket.get_message()
            action, fields = form_of(
                (await public.person.get("/console/agents")).text, "/console/grants/revoke"
            )
            assert fields["name"] == "a-client-2"  # the newest client is listed first
            assert (await public.person.post(action, data=fields)).status_code == 303
            with trio.fail_after(PATIENCE):
                with pytest.raises(ConnectionClosed) as closed:
                    await socket.get_message()
                for parts in streams:
                    await read_to_the_end(parts)
            assert closed.value.reason is not None
            assert closed.value.reason.code == 1008
            await socket._stream.aclose()  # the library does not close a stream that the server closed
        assert (await public.call(tokens["access_token"])).status_code == 401
        assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
        await public.tool(others["access_token"], "lithos_write", title="T", content="C")
        with trio.fail_after(PATIENCE):
            while "note.created" not in await anext(other):
                pass
