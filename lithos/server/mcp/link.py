"""HTTP client of the bridge: keep-alive connections to one owner's `/mcp`, and failover.

Failures have three classes: never sent, perhaps processed, refused. An owner that has not responded for
`PATIENCE` seconds gets a health check (ping). Without a reply within `PING_PATIENCE` seconds, every call that
has waited as long fails. A stopped process therefore cannot hang its clients.

`OwnerTrail` finds the owner of the data directory, or takes over. The lock file has the owner's address; it
is polled every `POLL` seconds and whenever a call fails. If there is no owner for `TAKE_OVER_AFTER` seconds,
the first bridge that acquires the lock replaces it.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import httpx2
import trio
from attrs import define, field, frozen

from lithos.kernel.databases.lock import AlreadyOwned, OwnerLock, OwnerRecord, VaultOwned
from lithos.kernel.log import get_logger
from lithos.server.mcp.client import OwnerRefuses
from lithos.server.mcp.messages import INTERNAL_ERROR, Request, encode_line, error_line, read_answer

trail_log = get_logger("lithos.front.bridge_trail")

POLL: Final = 0.5
TAKE_OVER_AFTER: Final = 5.0
#: Seconds that a request waits for an owner: the old owner must stop, and the new one may start with many
#: notes.
OWNER_WAIT: Final = 60.0


class NoOwner(Exception):
    """No server runs on the data directory; the message says what to do."""


@frozen
class Sighting:
    """The owner as read from the lock file. A starting owner has no address yet."""

    is_owned: bool
    record: OwnerRecord | None = None


@define(eq=False)
class OwnerTrail:
    """Tracker of the current owner and of the link to it.

    `look` reads the lock. `connect` creates a link. `take` gets the lock or raises `AlreadyOwned`. `host`
    serves the data directory in this process with that lock until the event is set.
    """

    _look: Callable[[], Sighting]
    _connect: Callable[[OwnerRecord], OwnerLink]
    _take: Callable[[], Awaitable[OwnerLock]]
    _host: Callable[[OwnerLock, trio.Event], Awaitable[None]]
    _link: OwnerLink | None = None
    _found: trio.Event = field(factory=trio.Event)
    _doubted: trio.Event = field(factory=trio.Event)
    _closed: trio.Event = field(factory=trio.Event)
    _has_followed: bool = False
    _lost_for_good: str | None = None

    async def link(self) -> OwnerLink:
        """Wait for a link to a present owner. Raises `NoOwner` after `OWNER_WAIT` seconds."""
        with trio.move_on_after(OWNER_WAIT):
            while self._lost_for_good is None:
                link = self._link
                # Another process may answer at the address of a killed owner, and must not get the request.
                if link is not None and self._look() == Sighting(True, link.record):
                    return link
                self.doubt()
                await self._found.wait()
        raise NoOwner(
            self._lost_for_good
            or f"No Lithos server answered for {OWNER_WAIT:.0f} s (it may be starting). Retry in a moment."
        )

    def doubt(self) -> None:
        """Poll the lock again soon, because the owner did not respond as expected."""
        self._doubted.set()

    def abandon(self, reason: str) -> None:
        """Fail all waiting calls, because this data directory will get no owner."""
        self._lost_for_good = reason
        self._found.set()

    def close(self) -> None:
        """Let `follow` end, and with it the server in this process."""
        self._closed.set()
        self.doubt()

    async def follow(self) -> None:
        """Track owners and take over if no owner is left, until `close`.

        Raises `OwnerRefuses` or the error of `host`.
        """
        async with trio.open_nursery() as nursery:
            while not self._closed.is_set():
                sighting = self._look()
                if sighting.is_owned:
                    await self._follow_one(sighting)
                else:
                    await self._wait_for_next(nursery)

    async def _follow_one(self, sighting: Sighting) -> None:
        """Use this owner until the lock file changes."""
        record = sighting.record
        if record is None or record.url is None:
            await self._pause()
            return
        self._has_followed = True
        trail_log.info("bridge connected", pid=record.pid, url=record.url)
        async with self._connect(record) as link:
            self._link = link
            try:
                while not self._closed.is_set() and self._look() == sighting:
                    self._found.set()
                    self._found = trio.Event()
                    await link.check()
                    await self._pause()
            finally:
                self._link = None
        trail_log.info("owner gone", pid=record.pid)

    async def _wait_for_next(self, nursery: trio.Nursery) -> None:
        """Wait for another owner, and take over if no owner appears for `TAKE_OVER_AFTER` seconds.

        A process that held the lock without serving, such as a query, has no successor to wait for.
        """
        until = trio.current_time() + (TAKE_OVER_AFTER if self._has_followed else 0)
        while not self._closed.is_set() and not self._look().is_owned:
            if trio.current_time() < until:
                await self._pause(until - trio.current_time())
                continue
            try:
                lock = await self._take()
            except VaultOwned:
                raise  # owned by another data directory: there is no owner to bridge to
            except AlreadyOwned:
                await self._pause()
                return
            trail_log.info("owner takeover started")
            nursery.start_soon(self._host, lock, self._closed)
            return

    async def _pause(self, longest: float = POLL) -> None:
        with trio.move_on_after(min(POLL, longest)):
            await self._doubted.wait()
        if self._doubted.is_set():
            self._doubted = trio.Event()


log = get_logger("lithos.front.bridge_link")

PATIENCE: Final = 10.0
PING_PATIENCE: Final = 10.0
CONNECT_PATIENCE: Final = 5.0
#: Seconds from the answer in an event stream to the end of that stream.
STREAM_END: Final = 5.0
#: Seconds after which a call ends even if its owner is alive.
CALL_LIMIT: Final = 600.0
#: Maximum number of concurrent calls to the owner; further calls wait in a queue.
CONNECTIONS: Final = 32
#: Seconds until an idle connection is closed, before the owner closes it: a closing connection must not be
#: used.
IDLE: Final = 30.0
_PING: Final = b'{"jsonrpc":"2.0","id":"bridge","method":"ping"}'
_ENDED: Final = "the server ended before it answered"

Deliver = Callable[[bytes], Awaitable[None]]


class NeverSent(Exception):
    """The owner was not reached; the request is safe to retry."""


class AnswerLost(Exception):
    """The owner may have processed the request, but its response was lost; the message says why."""


class OwnerHangs(AnswerLost):
    """The owner's process lives but fails the health check, so a retry would only wait again."""


class OwnerLink(trio.abc.AsyncResource):
    """Client of the server in `record`; `token` is used if the record has no token.

    Leaving its `async with` closes the link and ends running requests with `AnswerLost`.
    """

    def __init__(
        self, record: OwnerRecord, token: str | None, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self.record = record
        self.is_proven = False
        given = record.token or token
        authorization = {"authorization": f"Bearer {given}"} if given else {}
        limits = httpx2.Limits(
            max_connections=None, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE
        )
        self._client = httpx2.AsyncClient(
            base_url=record.url or "",
            headers={
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                **authorization,
            },
            timeout=httpx2.Timeout(None, connect=CONNECT_PATIENCE),
            transport=transport or httpx2.AsyncHTTPTransport(verify=False, trust_env=False, limits=limits),
            trust_env=False,
        )
        self._slots = trio.CapacityLimiter(CONNECTIONS)
        self._waiting: dict[trio.CancelScope, float] = {}
        self._asked = trio.current_time()
        self._is_gone = False

    async def aclose(self) -> None:
        """End the running requests and close the connections."""
        self.give_up()
        await self._client.aclose()

    async def send(self, request: Request, headers: Mapping[str, str], deliver: Deliver) -> dict[str, Any]:
        """Forward a request and deliver the reply messages as lines. The response itself comes last.

        Returns the response. Raises `NeverSent` or `AnswerLost`.
        """
        if request.is_lasting:  # a lasting request does not take a place in the queue
            return await self._exchange(request, headers, deliver)
        async with self._slots:
            if self._is_gone:
                raise NeverSent
            return await self._exchange(request, headers, deliver)

    async def check(self) -> None:
        """Check the owner's health when calls wait long, or before its first response.

        Raises `OwnerRefuses` if the owner requires another token.
        """
        now = trio.current_time()
        is_slow = any(now - since >= PATIENCE for since in self._waiting.values())
        if self.is_proven and not (is_slow and now - self._asked >= PATIENCE):
            return
        self._asked = now
        if await self._ping() or not is_slow:
            return
        log.warning("owner unresponsive", pid=self.record.pid, url=self.record.url)
        for scope, since in tuple(self._waiting.items()):
            if now - since >= PATIENCE:
                scope.cancel()

    def give_up(self) -> None:
        """Fail every running call, because the owner has gone."""
        self._is_gone = True
        for scope in tuple(self._waiting):
            scope.cancel()

    async def _ping(self) -> bool:
        with trio.move_on_after(PING_PATIENCE):
            try:
                response = await self._client.post("/mcp", content=_PING)
            except httpx2.TransportError:
                return False
            if response.status_code in (401, 403):
                raise OwnerRefuses(self._refusal(response.status_code))
            self.is_proven = True
            return True
        return False

    def _refusal(self, status: int) -> str:
        owner = f"The server of process {self.record.pid} at {self.record.url} owns the data directory and"
        if status == 401:
            return (
                f"{owner} refuses the token of this process. Set LITHOS_AUTH_TOKEN "
                "(server.auth_token) to the token that the server was started with."
            )
        return (
            f"{owner} does not accept this host name. Add the host name to "
            "server.allowed_hosts of that server."
        )

    async def _exchange(
        self, request: Request, headers: Mapping[str, str], deliver: Deliver
    ) -> dict[str, Any]:
        with trio.CancelScope() as scope:
            self._waiting[scope] = trio.current_time()
            try:
                return await self._post(scope, request, headers, deliver)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as failure:
                raise NeverSent from failure
            except httpx2.TransportError as failure:
                raise AnswerLost(_ENDED) from failure
            finally:
                self._waiting.pop(scope, None)
        if self._is_gone:
            raise AnswerLost(_ENDED)
        raise OwnerHangs("the server does not respond")

    async def _post(
        self, scope: trio.CancelScope, request: Request, headers: Mapping[str, str], deliver: Deliver
    ) -> dict[str, Any]:
        scope.deadline = trio.current_time() + CALL_LIMIT
        async with self._client.stream("POST", "/mcp", content=request.body, headers=headers) as response:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                # A stream may be silent for any time.
                self._waiting[scope] = scope.deadline = math.inf
                return await self._follow(scope, response, request, deliver)
            answer, line = self._translate(request, response.status_code, await response.aread())
            self._waiting.pop(scope, None)
        self.is_proven = True
        await deliver(line)
        return answer

    async def _follow(
        self, scope: trio.CancelScope, response: httpx2.Response, request: Request, deliver: Deliver
    ) -> dict[str, Any]:
        """Deliver the messages of an SSE response stream, which ends after the response."""
        answer: dict[str, Any] | None = None
        async for data in _events(response.aiter_lines()):
            message = read_answer(data.encode())
            if message is None:
                continue
            await deliver(encode_line(message))
            if "method" not in message and message.get("id") == request.id:
                answer = message
                scope.deadline = trio.current_time() + STREAM_END
        if answer is None:
            raise AnswerLost("the server ended the stream")
        return answer

    def _translate(self, request: Request, status: int, content: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the owner's response and its line. An invalid body becomes an error response."""
        answer = read_answer(content)
        if answer is not None and "method" not in answer:
            if answer.get("id") == request.id:
                return answer, content.replace(b"\n", b" ").replace(b"\r", b" ").rstrip() + b"\n"
            answer = {**answer, "id": request.id}
            return answer, encode_line(answer)
        if status == 503:
            raise AnswerLost("the server stopped before it answered")
        text = self._refusal(status) if status in (401, 403) else _told_by(status, content)
        line = error_line(request.id, text, "refused", INTERNAL_ERROR)
        return json.loads(line), line


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the data of server-sent events."""
    data: list[str] = []
    async for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _told_by(status: int, content: bytes) -> str:
    """Return the error message in the owner's response, or a message about the status."""
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        return f"The server answered {status} without a protocol message."
    return str(message)
