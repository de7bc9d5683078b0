"""What changed after a position of the journal, and what happened lately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.core.events import (
    ENRICHMENT,
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
)
from lithos.services.tasks.event_stream import parse_position

#: Events that are looked through; of more everything counts as changed.
MOST_EVENTS: Final = 20_000
#: Events of the journal that are looked through for recent activity.
RECENT: Final = 300
NOTE_EVENTS: Final = frozenset((NOTE_CREATED, NOTE_UPDATED, NOTE_DELETED, NOTE_RENAMED))


class Journal(Protocol):
    """The stored events."""

    def events_after(self, seq: int, limit: int | None = None) -> list[Event]:
        """The events later than `seq`, in order."""
        ...

    def newest_events(self, limit: int) -> list[Event]:
        """The newest events, in order."""
        ...

    def knows_position(self, seq: int) -> bool:
        """Whether every event after `seq` is still here."""
        ...


@frozen(kw_only=True)
class Changed:
    """The events after a position, oldest first; `trouble` says why that cannot be told."""

    events: Sequence[Event]
    trouble: str | None = None

    @property
    def notes(self) -> frozenset[str]:
        """The notes that were written; not those whose frontmatter enrichment completed."""
        return frozenset(str(event.draft.payload.get("id")) for event in self.events if is_of_note(event))

    def notes_by_enrichment(self) -> frozenset[str]:
        """The notes that enrichment wrote, which matters when it quarantined them."""
        return frozenset(
            str(event.draft.payload.get("id"))
            for event in self.events
            if event.draft.type in NOTE_EVENTS and _is_enrichment(event)
        )


def is_of_note(event: Event) -> bool:
    """Whether somebody wrote, moved or deleted a note."""
    return event.draft.type in NOTE_EVENTS and not _is_enrichment(event)


def _is_enrichment(event: Event) -> bool:
    return event.draft.origin.partition(":")[0] == ENRICHMENT


class JournalChanges:
    """Reads the journal; without one nobody can tell what changed."""

    def __init__(self, journal: Journal | None, reading: Blocking) -> None:
        """`journal`: None where `events.enabled` is false."""
        self._journal = journal
        self._reading = reading

    @property
    def is_kept(self) -> bool:
        """Whether there is a journal, and so a cursor."""
        return self._journal is not None

    async def after(self, cursor: str) -> Changed:
        """What happened after a cursor, or why all has to count as new."""
        seq, journal = parse_position(cursor), self._journal
        if journal is None:
            return Changed(events=(), trouble="no journal is kept (events.enabled is false)")
        if seq is None:
            return Changed(events=(), trouble="since is no cursor of an earlier answer")

        def look() -> list[Event] | None:
            return journal.events_after(seq, MOST_EVENTS + 1) if journal.knows_position(seq) else None

        events = await self._reading.run(look)
        if events is None:
            return Changed(events=(), trouble="the cursor is older than the journal, or of another one")
        if len(events) > MOST_EVENTS:
            return Changed(events=(), trouble=f"more than {MOST_EVENTS:,} events happened since")
        return Changed(events=events)

    async def recent(self) -> Sequence[Event]:
        """The newest events, oldest first."""
        journal = self._journal
        return () if journal is None else await self._reading.run(lambda: journal.newest_events(RECENT))
