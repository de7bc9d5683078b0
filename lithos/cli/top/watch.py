"""Monitoring for `lithos top`: polls the server of a data directory, streams its events, reconnects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import trio
from attrs import asdict

from lithos.cli.commands.asking import how_to_serve, owner_now
from lithos.cli.commands.events import Feed, Record
from lithos.cli.session import CommandFailed, Session
from lithos.cli.top.view import Poll, View, compare, read_scrape
from lithos.core.errors import first_of
from lithos.front.bridge.client import OwnerClient, OwnerUnreachable

#: Seconds for one answer.
PATIENCE = 10.0
#: Seconds until a server that refused to tell its events is asked again.
REFUSED_PAUSE = 10.0


class Audience(Protocol):
    """The observer of a watch; its methods do not block."""

    def show(self, view: View) -> None:
        """The state now."""

    def miss(self, reason: str) -> None:
        """There is no server now, or it does not answer."""

    def tell(self, event: Record) -> None:
        """An event, or a resync notice."""

    def lack_events(self, reason: str) -> None:
        """The server refuses to tell its events."""


async def watch(session: Session, interval: float, audience: Audience) -> None:
    """Tell the audience every `interval` seconds, and each event when it comes, until cancelled."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follow_events, Feed(session), audience.tell, audience.lack_events)
        await _poll_forever(session, interval, audience)


async def _poll_forever(session: Session, interval: float, audience: Audience) -> None:
    earlier: Poll | None = None
    while True:
        due = trio.current_time() + interval
        client = owner_now(session, PATIENCE)
        try:
            if client is None:
                audience.miss(_no_server(session))
            else:
                later = await poll(client)
                audience.show(compare(earlier or later, later))
                earlier = later
        except OwnerUnreachable as failure:
            audience.miss(str(failure))
        await trio.sleep_until(due)


async def sample(session: Session, interval: float) -> dict[str, Any]:
    """A view of two polls with the events between them, None when the server does not tell them.

    Raises `CommandFailed` when there is no server and `OwnerUnreachable` when it does not answer.
    """
    client = owner_now(session, PATIENCE)
    if client is None:
        raise CommandFailed(_no_server(session))
    earlier = await poll(client)
    events: list[Record] = []
    refusals: list[str] = []
    async with trio.open_nursery() as nursery:
        feed = Feed(session, since=str(int(earlier.scrape.value("lithos_event_head_seq"))))
        nursery.start_soon(follow_events, feed, events.append, refusals.append)
        await trio.sleep(interval)
        later = await poll(client)
        nursery.cancel_scope.cancel()
    return {**asdict(compare(earlier, later)), "events": None if refusals else events}


async def follow_events(
    feed: Feed, tell: Callable[[Record], object], refuse: Callable[[str], object]
) -> None:
    """Hand over events for ever, across restarts of the server, or why it tells none."""

    def take(event: Record) -> bool:
        tell(event)
        return False

    while True:
        try:
            await feed.follow(take)
        except* CommandFailed as refusals:
            refuse(str(first_of(refusals)))
        await trio.sleep(REFUSED_PAUSE)


async def poll(client: OwnerClient) -> Poll:
    """Ask a server for everything that is shown. Raises `OwnerUnreachable`."""
    try:
        scrape = read_scrape(await client.metrics())
    except ValueError as failure:
        raise OwnerUnreachable(
            f"The server at {client.url} sent metrics that cannot be read: {failure}."
        ) from failure
    health = await client.health()
    tasks: list[dict[str, object]] = []
    if scrape.value("lithos_active_claims"):  # else asking would only add a call to what is measured
        wanted = {"status": "open", "with_claims": True}
        answer = await client.call("lithos_task_list", wanted) or {}
        tasks += answer.get("tasks", ())
        while "next_offset" in answer:
            answer = await client.call("lithos_task_list", {**wanted, "offset": answer["next_offset"]}) or {}
            tasks += answer.get("tasks", ())
    return Poll(trio.current_time(), client.url, scrape, health, tasks)


def _no_server(session: Session) -> str:
    data = session.config.storage.data_dir
    start = how_to_serve(session)
    return f"No server owns {data} now, or it is still starting. Start one with: {start}"
