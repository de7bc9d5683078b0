"""MCP resources: reading by URI, the paginated list, which changes each client is told (docs/spec/mcp.md §4).

A follower queues no events but keeps the set of URIs with a pending notification. So no change is lost to a
full queue, however slow its client: changes of one resource coalesce, and the last one is always sent.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias, TypeVar

import trio
from attrs import define, frozen

from lithos.actors.blocking import slices
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.opening import Opening
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.errors import TaskNotFound
from lithos.core.events import Event
from lithos.core.journal.agents import READ, AuditRow
from lithos.core.offers import TAGS_URI, Address, changed_by, changes_list, read_address
from lithos.core.principals import UNKNOWN_AGENT
from lithos.core.tasks.model import Task
from lithos.core.times import format_time, parse_time
from lithos.kernel.parts import Clock
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.texts import NoteTexts
from lithos.services.tasks.coordination import Coordination, TaskFilter, TaskSheet
from lithos.services.tasks.event_stream import StreamEnded

#: Seconds between two notices about the same thing.
QUIET: Final = 1.0
#: Bounds of what one client can make the server remember; whoever needs more reads `/events`.
MOST_URIS: Final = 1_000
LONGEST_URI: Final = 2_000


class TooMuchFollowed(Exception):
    """The client already follows as much as one may, or the URI is too long; the message says so."""


class Follower:
    """The subscriptions of one client. One task awaits `next_change`; others may subscribe meanwhile."""

    def __init__(self) -> None:
        #: Whether changes of the list of resources are told.
        self.wants_list = False
        #: The spellings a client knows each resource by.
        self._followed: dict[str, dict[str, None]] = {}
        self._count = 0
        #: When each untold change may be told, and when each thing was last told. `None` is the list.
        self._due: dict[str | None, float] = {}
        self._told: dict[str | None, float] = {}
        self._woken = trio.Event()
        self._has_ended = False

    def follow(self, uri: str, address: Address) -> None:
        """Subscribe to a resource, notified by the URI as the client gave it. Raises `TooMuchFollowed`."""
        spellings = self._followed.get(address.uri, {})
        if uri in spellings:
            return
        if self._count >= MOST_URIS or len(uri) > LONGEST_URI:
            raise TooMuchFollowed(
                f"A client may follow {MOST_URIS} resources of {LONGEST_URI} characters each. "
                "Unsubscribe from some, or read the events at /events."
            )
        self._followed.setdefault(address.uri, {})[uri] = None
        self._count += 1

    def unfollow(self, uri: str, address: Address) -> None:
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
        """The URI of a changed resource, or None for the list of them.

        Waits for a pending notification; at most one a second per resource. Raises `StreamEnded`.
        """
        while True:
            await trio.lowlevel.checkpoint()
            if self._has_ended:
                raise StreamEnded
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


class Changes:
    """Fans events out to the followers of all clients, without back-pressure on the publisher."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._followers: set[Follower] = set()
        self._has_ended = False
        broadcaster.watch(self)

    @property
    def count(self) -> int:
        """The number of followers."""
        return len(self._followers)

    @contextmanager
    def followed(self) -> Iterator[Follower]:
        """A follower for the block, at first without subscriptions."""
        follower = Follower()
        if self._has_ended:
            follower.end()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def see(self, event: Event) -> None:
        """Pass an event on."""
        if self._followers:
            changed = [address.uri for address in changed_by(event.draft)]
            of_list = changes_list(event.draft)
            for follower in self._followers:
                follower.see(changed, of_list=of_list)

    def end(self) -> None:
        """End every follower, also those to come."""
        self._has_ended = True
        for follower in self._followers:
            follower.end()


T = TypeVar("T")

PAGE: Final = 100
CURSOR_HELP: Final = "The cursor is none of this server's. List again without one."

#: Where something stands among those of its kind: by creation, the id decides between equals.
Place: TypeAlias = tuple[datetime, str]


class UnknownResource(Exception):
    """Nothing can be read under the URI; the message says why and what to do."""


class BadCursor(Exception):
    """The pagination cursor is invalid."""


@frozen
class NoteFile:
    """The file of a note, byte for byte."""

    data: bytes


@frozen
class Tags:
    """All tags with their number of notes, sorted by name."""

    counts: Mapping[str, int]


Content: TypeAlias = NoteFile | TaskSheet | Tags


@frozen
class ListedResource:
    """One resource of the list; `subject` is None for the tags."""

    address: Address
    subject: Entry | Task | None = None


@frozen
class ResourcePage:
    """One page of resources, and the cursor of the next page, if any."""

    resources: tuple[ListedResource, ...]
    cursor: str | None


@define(eq=False)
class Resources:
    """Reads and lists resources; the only side effect is the access log."""

    _catalogue: Catalogue
    _coordinator: Coordinator
    _clock: Clock
    _opening: Opening
    _texts: NoteTexts
    _knowledge: Knowledge
    _coordination: Coordination

    async def find(self, uri: str) -> Address:
        """Resolve a URI to an existing resource. Raises `UnknownResource`."""
        address = _address(uri)
        if address.kind == "note":
            await self._opening.wait_known()
            self._entry(address)
        elif address.kind == "task":
            with _known_task():
                await self._coordination.get(address.id)
        return address

    async def read(self, uri: str, agent: str | None = None) -> Content:
        """The content of a resource; the access log records reads of notes, by `agent` if it is known.

        Raises `UnknownResource`.
        """
        address = _address(uri)
        if address.kind != "task":
            await self._opening.wait_known()
        if address.kind == "note":
            return await self._read_note(self._entry(address), agent or UNKNOWN_AGENT)
        if address.kind == "tags":
            return Tags(self._knowledge.tags(None))
        with _known_task():
            return await self._coordination.sheet(address.id)

    async def page(self, cursor: str | None) -> ResourcePage:
        """The tags, the notes newest first, the open tasks newest first: 100 at a time.

        Keyset pagination: a page starts after the last resource of the one before, whatever was added or
        removed meanwhile, so nothing is listed twice. Notes are listed once all are known.

        Raises `BadCursor`.
        """
        kind, after = ("tags", None) if cursor is None else _read_cursor(cursor)
        found = [ListedResource(Address("tags"))] if cursor is None else []
        if kind != "task":
            known = list(self._catalogue) if self._opening.known.is_set() else []
            notes = await _newest(known, _place_of_note, after, PAGE + 1 - len(found))
            found += [ListedResource(Address("note", entry.note.id), entry) for entry in notes]
            after = None
        if len(found) <= PAGE:
            views = await self._coordination.list_tasks(TaskFilter(status="open"), with_claims=False)
            open_tasks = [view.task for view in views]
            tasks = await _newest(open_tasks, _place_of_task, after, PAGE + 1 - len(found))
            found += [ListedResource(Address("task", task.id), task) for task in tasks]
        shown = tuple(found[:PAGE])
        return ResourcePage(shown, _write_cursor(shown[-1]) if len(found) > PAGE else None)

    def _entry(self, address: Address) -> Entry:
        entry = self._catalogue.get(address.id)
        if entry is None:
            raise UnknownResource(
                f"No note has the id {address.id[:100]!r}. Find it with lithos_search or lithos_list."
            )
        return entry

    async def _read_note(self, entry: Entry, agent: str) -> NoteFile:
        data = await self._texts.load_bytes(entry)
        if data is None:
            raise UnknownResource(
                f"The file {entry.path} of this note is missing or cannot be read. Put it back or mend it, "
                "then retry."
            )
        self._coordinator.record_access([AuditRow(agent, entry.note.id, READ, self._clock())])
        return NoteFile(data)


def _address(uri: str) -> Address:
    address = read_address(uri)
    if address is None:
        raise UnknownResource(
            f"There is no resource {uri[:100]!r}. "
            f"Use lithos://note/{{id}}, lithos://task/{{id}} or {TAGS_URI}."
        )
    return address


@contextmanager
def _known_task() -> Iterator[None]:
    try:
        yield
    except TaskNotFound as missing:
        raise UnknownResource(f"{missing.message} Find it with lithos_task_list.") from missing


def _place_of_note(entry: Entry) -> Place:
    return entry.note.created_at, entry.note.id


def _place_of_task(task: Task) -> Place:
    return task.created_at, task.id


async def _newest(
    items: Sequence[T], place: Callable[[T], Place], after: Place | None, count: int
) -> list[T]:
    """The newest items with a sort key before `after`; yields to the event loop in between."""
    newest: list[T] = []
    async for some in slices(items):
        older = (item for item in some if after is None or place(item) < after)
        newest = heapq.nlargest(count, chain(newest, older), key=place)
    return newest


def _write_cursor(last: ListedResource) -> str:
    if isinstance(last.subject, Entry):
        created_at, last_id = _place_of_note(last.subject)
    else:
        assert last.subject is not None
        created_at, last_id = _place_of_task(last.subject)
    text = json.dumps([last.address.kind, format_time(created_at), last_id])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, Place]:
    try:
        kind, created_at, last_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        if kind in ("note", "task") and isinstance(last_id, str):
            return kind, (parse_time(created_at), last_id)
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise BadCursor(CURSOR_HELP) from problem
    raise BadCursor(CURSOR_HELP)


@frozen
class Library:
    """Resources and their change notifications."""

    resources: Resources
    changes: Changes
