"""The commands `lithos wait` and `lithos events`, which read events over the server's WebSocket.

If the server restarts, the commands reconnect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
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

from lithos.events.reading.event_stream import PAGE, EventFilter, Resync, parse_position
from lithos.events.rows.store import CoordinationStore
from lithos.events.streams.frames import event_record, resync_record
from lithos.kernel.databases.lock import OwnerRecord, is_owned, read_owner
from lithos.kernel.values.ids import prefix_of
from lithos.server.command.output import print_json
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.settings import ServerConfig

PATH = "/events/ws"
#: Seconds between two attempts to find a server.
RETRY = 0.1
#: Maximum seconds for a WebSocket handshake, and for closing a connection.
HANDSHAKE, GOODBYE = 10.0, 2.0
RESYNC = "resync"

Record = Mapping[str, Any]
#: Callback for each event and each resync notice. It returns True when no more events are needed.
Take = Callable[[Record], bool]


@define
class Feed:
    """The events that pass the filters of a command.

    The events start after `since` if given, else after the cursor of `subscriber`, else with the next event.

    `types` and `tags` are comma-separated lists.
    """

    session: CommandSession
    types: str = ""
    tags: str = ""
    since: str | None = None
    subscriber: str | None = None

    async def follow(self, take: Take) -> None:
        """Pass events to `take` until it returns True, then acknowledge them.

        If no server runs, wait for one. If the connection ends, reconnect.

        Raises `CommandFailed` if the server refuses the connection.
        """
        while True:
            if await self._follow_once(take):
                return
            await trio.sleep(RETRY)

    async def _follow_once(self, take: Take) -> bool:
        """Follow one server while it runs. Return True when `take` needs no more events."""
        lock = self.session.private / "lock"
        owner = read_owner(lock)
        if owner is None or owner.url is None:
            return False
        address = urlsplit(owner.url)
        try:
            stream = await trio.open_tcp_stream(address.hostname or "", address.port or 80)
        except OSError:
            return False
        async with stream:
            # If a server was killed, another program may now answer at its address.
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
            await trio.lowlevel.checkpoint()  # The server has ended, but another may start soon.
        except* ConnectionRejected as group:
            _explain(group.exceptions[0], owner.url)
        return is_done

    async def _shake_hands(
        self, nursery: trio.Nursery, stream: trio.SocketStream, owner: OwnerRecord
    ) -> WebSocketConnection:
        names = ("types", "tags", "since", "subscriber")
        query = urlencode({name: value for name in names if (value := getattr(self, name))})
        token = owner.token or self.session.config.of(ServerConfig).auth_token
        headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
        address = urlsplit(owner.url or "")
        path = f"{address.path.rstrip('/')}{PATH}?{query}"
        return await wrap_client_stream(nursery, stream, address.netloc, path, extra_headers=headers)

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
                # If the connection is closed, the server sends the event again (`at least once`).
                with suppress(ConnectionClosed):
                    seq = record.get("seq", hello["head"])
                    await socket.send_message(json.dumps({"op": "ack", "seq": seq}))
                return True


def _explain(rejection: BaseException, url: str | None) -> None:
    """Raise `CommandFailed` with the server's error message. If a retry may help, return instead."""
    assert isinstance(rejection, ConnectionRejected)
    body = (rejection.body or b"").decode(errors="replace")
    if rejection.status_code == 503 and "disabled" not in body:
        return
    if rejection.status_code == 401:
        body = "it requires a token. Set LITHOS_AUTH_TOKEN to the server.auth_token of the server"
    raise CommandFailed(f"The server at {url} did not return its events: {body or rejection.status_code}.")


TIMED_OUT = 3


def run_wait(session: CommandSession) -> int:
    """Print the first matching event and return 0, or 3 after the timeout."""
    return trio.run(_wait, session)


def run_events(session: CommandSession) -> int:
    """Print one event per line until enough events are printed or no more follow. Return 0."""
    follows = session.typed.get("follow", True)
    if follows and is_owned(session.private / "lock"):
        trio.run(_feed(session).follow, _printing(session.typed.get("limit")))
        return 0
    return _print_journal(session)


async def _wait(session: CommandSession) -> int:
    typed = session.typed
    task = typed.get("task")

    def take(record: Record) -> bool:
        matches = record["type"] == RESYNC or task is None or _is_named(record, task)
        if matches:
            print_json(record)
        return matches

    with trio.move_on_after(typed.get("timeout", float("inf"))) as patience:
        await _feed(session).follow(take)
    return TIMED_OUT if patience.cancelled_caught else 0


def _is_named(record: Record, task: str) -> bool:
    """Return whether an event is about the task with this id, or with an id that begins with this text."""
    found = str(record["payload"].get("task_id") or "")
    prefix = prefix_of(task)
    return found == task or (bool(found) and prefix is not None and found.startswith(prefix))


def _printing(most: int | None) -> Take:
    """Return a callback that prints records until `most` events are printed."""
    left = most

    def take(record: Record) -> bool:
        nonlocal left
        print_json(record)
        if left is not None and record["type"] != RESYNC:
            left -= 1
        return left == 0

    return take


def _feed(session: CommandSession) -> Feed:
    typed = session.typed
    return Feed(
        session, typed.get("types", ""), typed.get("tags", ""), typed.get("since"), typed.get("cursor")
    )


def _print_journal(session: CommandSession) -> int:
    typed = session.typed
    path = session.private / "coordination.db"
    wanted = EventFilter.of(typed.get("types", "").split(","), typed.get("tags", "").split(","))
    any(map(_printing(typed.get("limit")), _read_journal(path, typed.get("since"), wanted)))
    return 0


def _read_journal(path: Path, since: str | None, wanted: EventFilter) -> Iterator[dict[str, Any]]:
    """Yield the journal's events after `since`. Without `since`, yield all events.

    If the position `since` is unknown, yield a resync notice.
    """
    if not path.is_file():
        raise CommandFailed(
            f"There are no events: {path} is missing. Set --data-dir to the data directory, or "
            "start a server there first."
        )
    store = CoordinationStore.open_read_only(path)
    try:
        position = 0 if since is None else parse_position(since)
        if since is not None and (position is None or not store.knows_position(position)):
            yield resync_record(Resync(since))
            return
        while page := store.events_after(position or 0, PAGE):
            position = page[-1].seq
            yield from (event_record(event) for event in page if wanted.passes(event))
    finally:
        store.close()
