"""What happens in a server, for people: pages of the event journal newest first, and who holds what.

Recent events come from the ring of the broadcaster, older ones from the journal in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.core.events import Event
from lithos.core.notes.matching import has_tag
from lithos.core.tasks.model import Claim
from lithos.stores.coordination.store import CoordinationStore

#: Events that one look goes back at most, and events of one read of the journal.
LOOKED, PAGE = 5_000, 500


@frozen
class Wanted:
    """Any of `types` (all when empty), by `agent`, with `tag`; None does not filter."""

    types: frozenset[str] = frozenset()
    agent: str | None = None
    tag: str | None = None

    def passes(self, event: Event) -> bool:
        """Whether an event is wanted."""
        draft = event.draft
        return (
            (not self.types or draft.type in self.types)
            and (self.agent is None or draft.agent == self.agent)
            and (self.tag is None or has_tag(draft.tags, self.tag))
        )


@frozen
class JournalPage:
    """Events newest first. All up to `head` were looked at; `is_cut` when there may be more that fit."""

    events: tuple[Event, ...]
    head: int
    is_cut: bool


@frozen
class Holding:
    """A running claim, with the title of its task."""

    claim: Claim
    title: str


@frozen
class Holdings:
    """The claims that end first, and how many there are."""

    shown: tuple[Holding, ...]
    total: int


class Activity:
    """Reads the journal and the claims; changes nothing. Raises `DatabaseFailed`."""

    def __init__(self, broadcaster: Broadcaster, store: CoordinationStore, reading: Blocking) -> None:
        self._broadcaster = broadcaster
        self._store = store
        self._rows = store.readable_task_rows()
        self._reading = reading

    @property
    def head(self) -> int:
        """The seq of the newest event."""
        return self._broadcaster.head

    async def page(self, wanted: Wanted, most: int, after: int = 0) -> JournalPage:
        """The newest `most` events later than `after` that are wanted."""
        head, found, looked, oldest = self._broadcaster.head, list[Event](), 0, self._broadcaster.head + 1
        for event in islice(reversed(self._broadcaster.recent), LOOKED):
            looked, oldest = looked + 1, event.seq
            if event.seq <= after or len(found) == most:
                break
            if wanted.passes(event):
                found.append(event)
        while oldest - 1 > after and len(found) < most and looked < LOOKED:
            events = await self._reading.run(partial(self._store.events_before, oldest, PAGE))
            later = [event for event in events if event.seq > after]
            found += [event for event in later if wanted.passes(event)]
            looked += len(events)
            if not events or len(later) < len(events):
                return JournalPage(tuple(found[:most]), head, is_cut=len(found) > most)
            oldest = later[-1].seq
        is_cut = oldest - 1 > after and (len(found) >= most or looked >= LOOKED)
        return JournalPage(tuple(found[:most]), head, is_cut)

    async def task_titles(self, events: Iterable[Event]) -> dict[str, str]:
        """The titles of the tasks that events are about, by id."""
        ids = sorted(set(_task_ids(events)))
        return await self._reading.run(partial(self._rows.titles, ids)) if ids else {}

    async def holdings(self, now: datetime, most: int) -> Holdings:
        """The running claims."""

        def read() -> Holdings:
            claims = [claim for group in self._rows.active_claims(now).values() for claim in group]
            first = sorted(claims, key=lambda claim: (claim.expires_at, claim.fence))[:most]
            titles = self._rows.titles(sorted({claim.task_id for claim in first}))
            shown = tuple(Holding(claim, titles.get(claim.task_id, "")) for claim in first)
            return Holdings(shown, len(claims))

        return await self._reading.run(read)

    async def journal_size(self) -> tuple[int, int]:
        """How many events the journal holds, and the newest seq that retention dropped."""
        return await self._reading.run(lambda: (self._store.event_count(), self._store.pruned_through()))


def _task_ids(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        task_id = event.draft.payload.get("task_id")
        if isinstance(task_id, str):
            yield task_id


def types_named(known: Sequence[str], name: str) -> frozenset[str]:
    """The event types that a name stands for: one of them, or all of a group such as `task`."""
    return frozenset(kind for kind in known if name in (kind, kind.partition(".")[0]))
