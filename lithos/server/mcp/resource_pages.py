"""MCP resources: reading by URI, paginated list and change notifications (docs/spec/mcp.md §4).

The package that owns a kind of resource, such as notes, provides a `ResourceKind`. It finds, lists and reads
these resources.

A follower has no queue of events. It stores the set of URIs with a pending notification, so several changes
of one resource become one notification, and the last change is always sent. A slow client therefore never
loses a change because a queue is full.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import trio
from attrs import frozen

from lithos.kernel.actors.threads import slices
from lithos.kernel.values.events import Event
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.times import format_time, parse_time
from lithos.server.tools.resource_uris import (
    TAGS_URI,
    ResourceAddress,
    changed_by,
    changes_list,
    read_address,
)

#: Minimum number of seconds between two notifications about the same resource.
QUIET: Final = 1.0
#: Limits on the stored state of one client. Clients that need more use `/events`.
MOST_URIS: Final = 1_000
LONGEST_URI: Final = 2_000


class TooMuchFollowed(Exception):
    """The client already follows the maximum number of resources, or the URI is too long.

    The message contains both limits.
    """


class ChangesEnded(Exception):
    """The server is stopping and reports no further changes."""


class Follower:
    """Subscriptions of one client. One task waits in `next_change` while other tasks may subscribe."""

    def __init__(self) -> None:
        #: Whether changes of the resource list are reported.
        self.wants_list = False
        #: URIs by which the client follows each resource, in the client's own spelling.
        self._followed: dict[str, dict[str, None]] = {}
        self._count = 0
        #: Time when each pending change may be reported, and time when each change was last reported. `None`
        #: is the resource list.
        self._due: dict[str | None, float] = {}
        self._told: dict[str | None, float] = {}
        self._woken = trio.Event()
        self._has_ended = False

    def follow(self, uri: str, address: ResourceAddress) -> None:
        """Subscribe to a resource. Notifications contain the client's own `uri`. Raises `TooMuchFollowed`."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            return
        if self._count >= MOST_URIS or len(uri) > LONGEST_URI:
            raise TooMuchFollowed(
                f"A client may follow {MOST_URIS} resources with URIs of at most {LONGEST_URI} "
                "characters. Unsubscribe from some, or read the events at /events."
            )
        self._followed.setdefault(address.uri, {})[uri] = None
        self._count += 1

    def unfollow(self, uri: str, address: ResourceAddress) -> None:
        """Unsubscribe from a resource. Does nothing if the client does not follow it."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            del spellings[uri]
            self._count -= 1
            self._due.pop(uri, None)
            self._told.pop(uri, None)
        if not spellings:
            self._followed.pop(address.uri, None)

    def see(self, changed: Sequence[str], *, of_list: bool) -> None:
        """Record changes that must be reported. `changed` contains URIs in the spelling of Lithos."""
        for listed in changed:
            for uri in self._followed.get(listed, ()):
                self._mark(uri)
        if of_list and self.wants_list:
            self._mark(None)

    def end(self) -> None:
        """End the subscriptions of this client."""
        self._has_ended = True
        self._wake()

    async def next_change(self) -> str | None:
        """Return the URI of a changed resource. The result is None if the resource list has changed.

        Waits for a pending notification. Returns at most one per second and resource. Raises `ChangesEnded`.
        """
        while True:
            await trio.lowlevel.checkpoint()
            if self._has_ended:
                raise ChangesEnded
            first = min(self._due, key=self._due.__getitem__, default=None)
            when = self._due.get(first, float("inf"))
            now = trio.current_time()
            if when <= now:
                del self._due[first]
                self._told[first] = now
                return first
            with trio.move_on_at(when):
                await self._woken.wait()

    def _mark(self, thing: str | None) -> None:
        if thing not in self._due:
            self._due[thing] = max(trio.current_time(), self._told.get(thing, float("-inf")) + QUIET)
            self._wake()

    def _wake(self) -> None:
        self._woken.set()
        self._woken = trio.Event()


class Watched(Protocol):
    """Source of events that can be watched. It passes every event on to its watchers."""

    def watch(self, watcher: ResourceChanges, /) -> None: ...


class ResourceChanges:
    """Distribution of events to the followers of all clients. It never slows down the publisher."""

    def __init__(self, broadcaster: Watched) -> None:
        self._followers: set[Follower] = set()
        self._has_ended = False
        broadcaster.watch(self)

    @property
    def count(self) -> int:
        """Return the number of followers."""
        return len(self._followers)

    @contextmanager
    def followed(self) -> Iterator[Follower]:
        """Yield a new follower for the block. It has no subscriptions yet."""
        follower = Follower()
        if self._has_ended:
            follower.end()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def see(self, event: Event) -> None:
        """Report an event to all followers."""
        if self._followers:
            changed = [address.uri for address in changed_by(event.draft)]
            of_list = changes_list(event.draft)
            for follower in self._followers:
                follower.see(changed, of_list=of_list)

    def end(self) -> None:
        """End all followers. Later followers end immediately."""
        self._has_ended = True
        for follower in self._followers:
            follower.end()


T = TypeVar("T")

PAGE: Final = 100
CURSOR_HELP: Final = "The cursor is not from this server. List again without a cursor."
MARKDOWN: Final = "text/markdown"
JSON: Final = "application/json"

#: Position of a resource in its list. It consists of the creation time and the id.
ListPosition: TypeAlias = tuple[datetime, str]


class UnknownResource(Exception):
    """No resource can be read at the URI. The message says why and what to do."""


class BadCursor(Exception):
    """The pagination cursor is invalid."""


@frozen
class Content:
    """Content of a resource: the bytes of a file, or an object to encode as JSON."""

    mime_type: str
    body: bytes | Mapping[str, Any]


@frozen
class ListedResource:
    """Entry of the resource list. `told` contains the fields that clients get, except the URI.

    `place` is None if the resource is the only resource of its kind.
    """

    address: ResourceAddress
    told: Mapping[str, Any]
    place: ListPosition | None = None


@frozen
class ResourcePage:
    """One page of the resource list. `cursor` leads to the next page, or is None."""

    resources: tuple[ListedResource, ...]
    cursor: str | None


class ResourceKind(Protocol):
    """Interface for one kind of resource. The package that owns the resources implements it."""

    @property
    def kind(self) -> str:
        """Return the name of this kind, as used in resource addresses."""

    @property
    def template(self) -> Mapping[str, str] | None:
        """Return a URI template with a placeholder for the id.

        The result is None if there is only one resource of this kind.
        """

    async def find(self, id: str) -> None:
        """Check that a resource exists. Raises `UnknownResource`."""

    async def read(self, id: str, agent: str) -> Content:
        """Return the content of a resource for `agent`. Raises `UnknownResource`."""

    async def newest(self, after: ListPosition | None, count: int) -> list[ListedResource]:
        """Return at most `count` resources that come after `after` in the list, newest first."""


class Resources:
    """Reader for the resources and their list. The only side effect of a read is an access log entry."""

    def __init__(self, kinds: Sequence[ResourceKind]) -> None:
        """Create the reader. The list has the order of `kinds`."""
        self.kinds = {each.kind: each for each in kinds}

    async def find(self, uri: str) -> ResourceAddress:
        """Return the address of an existing resource. Raises `UnknownResource`."""
        address, kind = self._meant(uri)
        await kind.find(address.id)
        return address

    async def read(self, uri: str, agent: str | None = None) -> Content:
        """Return the content of a resource.

        The access log records reads of notes, with `agent` if it is known.

        Raises `UnknownResource`.
        """
        address, kind = self._meant(uri)
        return await kind.read(address.id, agent or UNKNOWN_AGENT)

    async def page(self, cursor: str | None) -> ResourcePage:
        """Return one page of 100 resources: the tags, then the newest notes, then the newest open tasks.

        A page begins after the last resource of the previous page (keyset pagination). No resource is
        therefore listed twice, even if others are added or removed in between. Notes are listed only after
        all notes are known.

        Raises `BadCursor`.
        """
        kinds, after = list(self.kinds), None
        if cursor is not None:
            first, after = self._read_cursor(cursor)
            kinds = kinds[kinds.index(first) :]
        found: list[ListedResource] = []
        for kind in kinds:
            if len(found) <= PAGE:
                found += await self.kinds[kind].newest(after, PAGE + 1 - len(found))
                after = None
        shown = tuple(found[:PAGE])
        return ResourcePage(shown, _write_cursor(shown[-1]) if len(found) > PAGE else None)

    def _meant(self, uri: str) -> tuple[ResourceAddress, ResourceKind]:
        address = read_address(uri)
        if address is None or address.kind not in self.kinds:
            raise UnknownResource(
                f"Unknown resource {uri[:100]!r}. Use lithos://note/{{id}}, lithos://task/{{id}} "
                f"or {TAGS_URI}."
            )
        return address, self.kinds[address.kind]

    def _read_cursor(self, cursor: str) -> tuple[str, ListPosition]:
        try:
            kind, created_at, last_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
            if kind in self.kinds and self.kinds[kind].template is not None and isinstance(last_id, str):
                return kind, (parse_time(created_at), last_id)
        except (ValueError, TypeError, AttributeError, RecursionError) as problem:
            raise BadCursor(CURSOR_HELP) from problem
        raise BadCursor(CURSOR_HELP)


async def find_newest(
    items: Sequence[T], place: Callable[[T], ListPosition], after: ListPosition | None, count: int
) -> list[T]:
    """Return the newest `count` items whose sort key is less than `after`. Other tasks may run in between."""
    newest: list[T] = []
    async for some in slices(items):
        older = (item for item in some if after is None or place(item) < after)
        newest = heapq.nlargest(count, chain(newest, older), key=place)
    return newest


def _write_cursor(last: ListedResource) -> str:
    assert last.place is not None
    created_at, last_id = last.place
    text = json.dumps([last.address.kind, format_time(created_at), last_id])
    return base64.urlsafe_b64encode(text.encode()).decode()


@frozen
class Library:
    """Resources of a server, and notifications about their changes."""

    resources: Resources
    changes: ResourceChanges
