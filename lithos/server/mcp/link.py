"""HTTP client of the bridge, with keep-alive connections to the owner's `/mcp` and with failover.

There are three classes of failures: the request was never sent, it was perhaps processed, or it was refused.
If the owner does not respond for `PATIENCE` seconds, the bridge sends a ping. If the ping is not answered
within `PING_PATIENCE` seconds, every call fails that has waited for `PATIENCE` seconds. A process that hangs
therefore cannot block its clients.

`OwnerTrail` finds the owner of the data directory, or takes over as owner. The address of the owner is in the
lock file, which is read every `POLL` seconds and after a failed call. If there has been no owner for
`TAKE_OVER_AFTER` seconds, the first bridge that gets the lock becomes the owner.
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
from lithos.kernel.values.projects import PROJECT_HEADER
from lithos.server.mcp.client import OwnerRefuses
from lithos.server.mcp.messages import INTERNAL_ERROR, Request, encode_line, error_line, read_answer

trail_log = get_logger("lithos.front.bridge_trail")

POLL: Final = 0.5
TAKE_OVER_AFTER: Final = 5.0
#: Seconds that a request waits for an owner. In this time the old owner stops and the new owner starts,
#: perhaps with many notes.
OWNER_WAIT: Final = 60.0


class NoOwner(Exception):
    """No server uses the data directory. The message says what to do."""


@frozen
class Sighting:
    """Owner according to the lock file. An owner that is starting has no address yet."""

    is_owned: bool
    record: OwnerRecord | None = None


@define(eq=False)
class OwnerTrail:
    """Tracker of the current owner and of the link to it.

    `look` reads the lock file. `connect` creates a link. `take` gets the lock or raises `AlreadyOwned`.
    `host` serves the data directory in this process with that lock until its event is set.
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
        """Return a link to the current owner, and wait for it if necessary.

        Raises `NoOwner` after `OWNER_WAIT` seconds.
        """
        with trio.move_on_after(OWNER_WAIT):
            while self._lost_for_good is None:
                link = self._link
                # After an owner was killed, another process may use its address. It must not get the request.
                if link is not None and self._look() == Sighting(True, link.record):
                    return link
                self.doubt()
                await self._found.wait()
        raise NoOwner(
            self._lost_for_good
            or f"No Lithos server answered for {OWNER_WAIT:.0f} s. It may still be starting. "
            "Retry in a moment."
        )

    def doubt(self) -> None:
        """Read the lock file again soon, because the owner did not respond as expected."""
        self._doubted.set()

    def abandon(self, reason: str) -> None:
        """Make all waiting calls fail, because this data directory will have no owner."""
        self._lost_for_good = reason
        self._found.set()

    def close(self) -> None:
        """End `follow`, and with it the server in this process."""
        self._closed.set()
        self.doubt()

    async def follow(self) -> None:
        """Track the owners until `close` is called. Take over if there is no owner.

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
        """Wait for another owner. If no owner appears for `TAKE_OVER_AFTER` seconds, take over.

        If the lock belonged to a process that does not serve, such as a query, no other owner is expected and
        there is no wait.
        """
        until = trio.current_time() + (TAKE_OVER_AFTER if self._has_followed else 0)
        while not self._closed.is_set() and not self._look().is_owned:
            if trio.current_time() < until:
                await self._pause(until - trio.current_time())
                continue
            try:
                lock = await self._take()
            except VaultOwned:
                raise  # the owner uses another data directory, so there is no owner to connect to
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
#: Maximum seconds between the response in an event stream and the end of the stream.
STREAM_END: Final = 5.0
#: Seconds after which a call ends, even if the owner is alive.
CALL_LIMIT: Final = 600.0
#: Maximum number of concurrent calls to the owner. Further calls wait in a queue.
CONNECTIONS: Final = 32
#: Seconds after which an idle connection is closed. The owner closes it later, and a connection that is
#: closing must not be used.
IDLE: Final = 30.0
_PING: Final = b'{"jsonrpc":"2.0","id":"bridge","method":"ping"}'
_ENDED: Final = "the server ended before it answered"

Deliver = Callable[[bytes], Awaitable[None]]


class NeverSent(Exception):
    """The owner could not be reached. The request can be sent again safely."""


class AnswerLost(Exception):
    """The response was lost, but the owner may have processed the request. The message says why."""


class OwnerHangs(AnswerLost):
    """The owner's process exists but does not answer a ping. Another attempt would only wait again."""


class OwnerLink(trio.abc.AsyncResource):
    """Client of the server in `record`. If the record has no token, `token` is used.

    All requests come from `project`, if it is given.

    The end of its `async with` block closes the link. Running requests then end with `AnswerLost`.
    """

    def __init__(
        self,
        record: OwnerRecord,
        token: str | None,
        transport: httpx2.AsyncBaseTransport | None = None,
        project: str | None = None,
    ) -> None:
        self.record = record
        self.is_proven = False
        given = record.token or token
        headers = {
            b"content-type": b"application/json",
            b"accept": b"application/json, text/event-stream",
            **({b"authorization": f"Bearer {given}".encode()} if given else {}),
            **({PROJECT_HEADER: project.encode()} if project else {}),
        }
        limits = httpx2.Limits(
            max_connections=None, max_keepalive_connections=CONNECTIONS, keepalive_expiry=IDLE
        )
        self._client = httpx2.AsyncClient(
            base_url=record.url or "",
            headers=headers,
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
        """Forward a request and pass the messages of the reply to `deliver`, as lines.

        The response comes last.

        Return the response. Raises `NeverSent` or `AnswerLost`.
        """
        if request.is_lasting:  # a request that opens a stream does not use one of the slots
            return await self._exchange(request, headers, deliver)
        async with self._slots:
            if self._is_gone:
                raise NeverSent
            return await self._exchange(request, headers, deliver)

    async def check(self) -> None:
        """Ping the owner if calls have waited long, or if it has never responded.

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
        """Make all running calls fail, because the owner is gone."""
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
                "(server.auth_token) to the token with which the server was started."
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
                # A stream may be silent for any length of time.
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
        """Pass on the messages of an SSE response stream. The stream ends after the response."""
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
        """Return the owner's response, and the response as a line.

        An invalid body becomes an error response.
        """
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
    """Return the error message in the owner's response. Without an error message, describe the status."""
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        return f"The server answered {status} without a protocol message."
    return str(message)
