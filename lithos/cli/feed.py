"""The owner's events over its WebSocket, followed across its restarts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

import trio
from attrs import define
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
)

from lithos.cli.session import CommandFailed, Session
from lithos.stores.lock import OwnerRecord, is_owned, read_owner

PATH = "/events/ws"
#: Seconds between two looks for a server.
RETRY = 0.1
#: Seconds for a handshake, and for the goodbye.
HANDSHAKE, GOODBYE = 10.0, 2.0
RESYNC = "resync"

Record = Mapping[str, Any]
#: Handed each event and resync notice; True when that was enough.
Take = Callable[[Record], bool]


@define
class Feed:
    """Events that pass the filters, after `since`, else after the cursor of `subscriber`, else from now on.

    `types` and `tags` are comma lists.
    """

    session: Session
    types: str = ""
    tags: str = ""
    since: str | None = None
    subscriber: str | None = None

    async def follow(self, take: Take) -> None:
        """Hand over events until `take` has enough, which then is acknowledged; waits for a server.

        Raises `CommandFailed` when the server refuses.
        """
        while True:
            if await self._follow_once(take):
                return
            await trio.sleep(RETRY)

    async def _follow_once(self, take: Take) -> bool:
        """Follow one server as long as it is there; True when `take` has enough."""
        lock = self.session.config.storage.data_dir / ".lithos" / "lock"
        owner = read_owner(lock)
        if owner is None or owner.url is None:
            return False
        address = urlsplit(owner.url)
        try:
            stream = await trio.open_tcp_stream(address.hostname or "", address.port or 80)
        except OSError:
            return False
        async with stream:
            # Something else may answer where a killed server did.
            return is_owned(lock) and await self._converse(stream, owner, take)

    async def _converse(self, stream: trio.SocketStream, owner: OwnerRecord, take: Take) -> bool:
        is_done = False
        try:
            async with trio.open_nursery() as nursery:
                with trio.fail_after(HANDSHAKE):
                    socket = await self._shake_hands(nursery, stream, owner)
                is_done = await self._listen(socket, take)
                with trio.move_on_after(GOODBYE):
                    await socket.aclose()
                nursery.cancel_scope.cancel()
        except* (ConnectionClosed, trio.TooSlowError):
            await trio.lowlevel.checkpoint()  # the server has gone; there may be another one soon
        except* ConnectionRejected as group:
            _explain(group.exceptions[0], owner.url)
        return is_done

    async def _shake_hands(
        self, nursery: trio.Nursery, stream: trio.SocketStream, owner: OwnerRecord
    ) -> WebSocketConnection:
        asked = {
            "types": self.types,
            "tags": self.tags,
            "since": self.since,
            "subscriber": self.subscriber,
        }
        query = urlencode({name: value for name, value in asked.items() if value})
        token = owner.token or self.session.config.server.auth_token
        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        host = urlsplit(owner.url or "").netloc
        return await wrap_client_stream(nursery, stream, host, f"{PATH}?{query}", extra_headers=headers)

    async def _listen(self, socket: WebSocketConnection, take: Take) -> bool:
        hello = json.loads(await socket.get_message())
        if self.since is None and self.subscriber is None:
            self.since = str(hello["head"])
        while True:
            record: Record = json.loads(await socket.get_message())
            if "seq" in record:
                self.since = record["id"] if self.subscriber is None else None
            elif record["type"] != RESYNC:
                continue
            if take(record):
                with suppress(ConnectionClosed):  # then it is told again, as `at least once` allows
                    seq = record.get("seq", hello["head"])
                    await socket.send_message(json.dumps({"op": "ack", "seq": seq}))
                return True


def _explain(rejection: BaseException, url: str | None) -> None:
    """Raise `CommandFailed` with the server's words, unless asking again may help."""
    assert isinstance(rejection, ConnectionRejected)
    body = (rejection.body or b"").decode(errors="replace")
    if rejection.status_code == 503 and "disabled" not in body:
        return
    if rejection.status_code == 401:
        body = "it wants a token. Set LITHOS_AUTH_TOKEN to its server.auth_token"
    raise CommandFailed(f"The server at {url} does not tell its events: {body or rejection.status_code}.")
