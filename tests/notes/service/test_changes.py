"""Resource notifications: recipients and frequency (behaviour 205)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio

from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.values.events import Event, EventDraft
from lithos.server.mcp.resource_pages import (
    MOST_URIS,
    ChangesEnded,
    Follower,
    ResourceChanges,
    TooMuchFollowed,
)
from lithos.server.tools.resource_uris import TAGS_URI, ResourceAddress
from tests.fakes import START

NOTE = ResourceAddress("note", "n")


@contextmanager
def following(*addresses: ResourceAddress) -> Iterator[tuple[Broadcaster, Follower]]:
    broadcaster = Broadcaster(ring=5, queue=5)
    with ResourceChanges(broadcaster).followed() as follower:
        for address in addresses:
            follower.follow(address.uri, address)
        yield broadcaster, follower


def publish(broadcaster: Broadcaster, *kinds: str, id: str = "n") -> None:
    payload = {"id": id, "task_id": id}
    drafts = [EventDraft(type=kind, agent="a", payload=payload, timestamp=START) for kind in kinds]
    broadcaster.publish([Event(seq=broadcaster.head + 1 + n, draft=draft) for n, draft in enumerate(drafts)])


async def told(follower: Follower, within: float) -> list[tuple[float, str | None]]:
    """Return the notifications received within `within` seconds, with their times."""
    begin, found = trio.current_time(), []
    with trio.move_on_after(within):
        while True:
            found.append((0.0, await follower.next_change()))
            found[-1] = (round(trio.current_time() - begin, 3), found[-1][1])
    return found


@pytest.mark.autojump
async def test_change_is_notified_immediately_and_repeated_changes_once_a_second() -> None:
    """behaviour 205: each URI has at most one notification per second, and the last change is never lost."""
    with following(NOTE) as (broadcaster, follower):
        publish(broadcaster, "note.updated")
        assert await told(follower, 0.5) == [(0.0, NOTE.uri)]
        publish(broadcaster, *["note.updated"] * 500)
        assert await told(follower, 5) == [(0.5, NOTE.uri)]
        publish(broadcaster, "note.updated")
        assert await told(follower, 5) == [(0.0, NOTE.uri)]


@pytest.mark.autojump
async def test_steady_stream_of_changes_is_notified_once_a_second() -> None:
    """behaviour 205"""

    async def change() -> None:
        for _ in range(35):
            publish(broadcaster, "note.updated")
            await trio.sleep(0.1)

    with following(NOTE) as (broadcaster, follower):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change)
            assert await told(follower, 9) == [(n, NOTE.uri) for n in (0.0, 1.0, 2.0, 3.0, 4.0)]


@pytest.mark.autojump
async def test_each_resource_has_its_own_notification_interval() -> None:
    task, tags = ResourceAddress("task", "n"), ResourceAddress("tags")
    with following(NOTE, task, tags) as (broadcaster, follower):
        publish(broadcaster, "note.renamed", "task.claimed")
        publish(broadcaster, "note.updated", "finding.posted", id="another")
        assert {uri for _, uri in await told(follower, 0.1)} == {NOTE.uri, task.uri, TAGS_URI}
        follower.unfollow(NOTE.uri, NOTE)
        publish(broadcaster, "note.updated", "note.created", "agent.registered")
        assert await told(follower, 5) == [(0.9, TAGS_URI)]


@pytest.mark.autojump
async def test_only_list_subscribers_are_notified_of_a_list_change() -> None:
    with following(NOTE) as (broadcaster, follower):
        publish(broadcaster, "note.created", "task.completed")
        assert await told(follower, 5) == []
        follower.wants_list = True
        publish(broadcaster, "note.updated")
        assert await told(follower, 5) == [(0.0, NOTE.uri)]
        publish(broadcaster, "note.deleted", "task.reopened", id="another")
        assert await told(follower, 5) == [(0.0, None)]


@pytest.mark.autojump
async def test_client_is_notified_under_the_uri_it_subscribed_to() -> None:
    odd = ResourceAddress("note", "ü /%")
    with following(odd) as (broadcaster, follower):
        follower.follow("lithos://note/ü%20/%25", odd)
        publish(broadcaster, "note.updated", id="ü /%")
        assert {uri for _, uri in await told(follower, 5)} == {odd.uri, "lithos://note/ü%20/%25"}


async def test_number_of_subscriptions_per_client_is_limited() -> None:
    with following() as (_, follower):
        for number in range(MOST_URIS):
            address = ResourceAddress("note", str(number))
            follower.follow(address.uri, address)
        with pytest.raises(TooMuchFollowed, match="1000 resources"):
            follower.follow(NOTE.uri, NOTE)
        follower.unfollow(address.uri, address)
        follower.unfollow(address.uri, address)
        follower.follow(NOTE.uri, NOTE)
        with pytest.raises(TooMuchFollowed):
            follower.follow(address.uri, address)
        follower.unfollow(NOTE.uri, NOTE)
        long = ResourceAddress("note", "x" * 5_000)
        with pytest.raises(TooMuchFollowed):
            follower.follow(long.uri, long)


async def test_closing_the_broadcaster_ends_current_and_later_followers() -> None:
    broadcaster = Broadcaster(ring=5, queue=5)
    changes = ResourceChanges(broadcaster)
    with changes.followed() as early:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_await_end, early)
            await trio.testing.wait_all_tasks_blocked()
            broadcaster.close()
        with changes.followed() as late:
            await _await_end(late)
    assert changes.count == 0


async def _await_end(follower: Follower) -> None:
    with pytest.raises(ChangesEnded):
        await follower.next_change()
