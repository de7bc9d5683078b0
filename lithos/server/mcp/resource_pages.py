"""MCP resources: reading by URI, the paginated list, change notifications (docs/spec/mcp.md §4).

The package that owns a kind of resources, such as notes, provides a `ResourceKind`, which finds, lists and
reads them.

A follower queues no events but keeps the set of URIs with a pending notification. Changes of one resource
coalesce, and the last change is always sent. A slow client therefore never loses a change to a full queue.
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

#: Seconds between two notifications about the same resource.
QUIET: Final = 1.0
#: Limits on the state kept for one client. Clients that need more use `/events`.
MOST_URIS: Final = 1_000
LONGEST_URI: Final = 2_000


class TooMuchFollowed(Exception):
    """The client follows the maximum number of resources, or the URI is too long.

    The message names both limits.
    """


class ChangesEnded(Exception):
    """The server stops and reports no further changes."""


class Follower:
    """Subscriptions of one client. One task awaits `next_change` while other tasks may subscribe."""

    def __init__(self) -> None:
        #: Whether changes of the list of resources are reported.
        self.wants_list = False
        #: The URI spellings by which the client follows each resource.
        self._followed: dict[str, dict[str, None]] = {}
        self._count = 0
        #: When each pending change may be reported, and when each was last reported. `None` is the list.
        self._due: dict[str | None, float] = {}
        self._told: dict[str | None, float] = {}
        self._woken = trio.Event()
        self._has_ended = False

    def follow(self, uri: str, address: ResourceAddress) -> None:
        """Subscribe to a resource; notifications use the client's own `uri`. Raises `TooMuchFollowed`."""
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
        """Unsubscribe from a resource; idempotent."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            del spellings[uri]
            self._count -= 1
            self._due.pop(uri, None)
            self._told.pop(uri, None)
        if not spellings:
            self._followed.pop(address.uri, None)

    def see(self, changed: Sequence[str], *, of_list: bool) -> None:
        """Mark changed resources as pending notifications; `changed` are URIs as Lithos lists them."""
        for listed in changed:
            for uri in self._followed.get(listed, ()):
                self._mark(uri)
        if of_list and self.wants_list:
            self._mark(None)

    def end(self) -> None:
        """End the subscription."""
        self._has_ended = True
        self._wake()

    async def next_change(self) -> str | None:
        """Return the URI of a changed resource, or None for the list of resources.

        Waits for a pending notification; returns at most one a second per resource. Raises `ChangesEnded`.
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
    """Source of events that passes every event on to its watchers."""

    def watch(self, watcher: ResourceChanges, /) -> None: ...


class ResourceChanges:
    """Fan-out of events to the followers of all clients, which never slows the publisher down."""

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
        """Yield a follower for the block, at first without subscriptions."""
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
        """End all followers, current and future."""
        self._has_ended = True
        for follower in self._followers:
            follower.end()


T = TypeVar("T")

PAGE: Final = 100
CURSOR_HELP: Final = "The cursor is not from this server. List again without a cursor."
MARKDOWN: Final = "text/markdown"
JSON: Final = "application/json"

#: Position of a resource in its list: by creation time, then by id.
ListPosition: TypeAlias = tuple[datetime, str]


class UnknownResource(Exception):
    """No resource can be read at the URI; the message says why and what to do."""


class BadCursor(Exception):
    """The pagination cursor is invalid."""


@frozen
class Content:
    """Content of a resource: the bytes of a file, or an object for JSON."""

    mime_type: str
    body: bytes | Mapping[str, Any]


@frozen
class ListedResource:
    """A listed resource; `told` holds its fields for clients, without the URI.

    `place` is None for a resource that is the only one of its kind.
    """

    address: ResourceAddress
    told: Mapping[str, Any]
    place: ListPosition | None = None


@frozen
class ResourcePage:
    """One page of resources, and the cursor of the next page, if any."""

    resources: tuple[ListedResource, ...]
    cursor: str | None


class ResourceKind(Protocol):
    """One kind of resources, which its owning package finds, lists and reads."""

    @property
    def kind(self) -> str:
        """Return the name of this kind in resource addresses."""

    @property
    def template(self) -> Mapping[str, str] | None:
        """Return how clients form a URI from an id, or None if the kind has only one resource."""

    async def find(self, id: str) -> None:
        """Check that the resource exists. Raises `UnknownResource` otherwise."""

    async def read(self, id: str, agent: str) -> Content:
        """Return a resource's content for `agent`. Raises `UnknownResource`."""

    async def newest(self, after: ListPosition | None, count: int) -> list[ListedResource]:
        """Return at most `count` resources older than `after`, newest first."""


class Resources:
    """Reader and list of resources; the only side effect is the access log."""

    def __init__(self, kinds: Sequence[ResourceKind]) -> None:
        """Create the reader; the list shows the `kinds` in this order."""
        self.kinds = {each.kind: each for each in kinds}

    async def find(self, uri: str) -> ResourceAddress:
        """Resolve a URI to an existing resource. Raises `UnknownResource`."""
        address, kind = self._meant(uri)
        await kind.find(address.id)
        return address

    async def read(self, uri: str, agent: str | None = None) -> Content:
        """Return the content of a resource; the access log records reads of notes, with `agent` if known.

        Raises `UnknownResource`.
        """
        address, kind = self._meant(uri)
        return await kind.read(address.id, agent or UNKNOWN_AGENT)

    async def page(self, cursor: str | None) -> ResourcePage:
        """Return one page of 100: the tags, then notes newest first, then open tasks newest first.

        Keyset pagination: a page starts after the last resource of the previous page. Additions and removals
        in the meantime therefore list no resource twice. Notes are listed once all notes are known.

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
    """Return the newest items with a sort key before `after`, yielding to the event loop in between."""
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
    """Resources and their change notifications."""

    resources: Resources
    changes: ResourceChanges
