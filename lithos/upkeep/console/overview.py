"""`/console/`: server health and recent activity.

`/console/feed` and `/console/state` are parts of this page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from attrs import define, field, frozen
from jinja2 import Environment
from markupsafe import Markup
from quart import Blueprint, Response, redirect, request

from lithos.events.reading.event_stream import Activity, EventSelection, JournalPage
from lithos.history.service.history import NoteHistory, Span
from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.events import NOTE_CREATED, NOTE_UPDATED, Event, origin_version
from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import ENRICH_AGENT, IMPORT_AGENT, is_reserved
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.versions import HistoryFailed
from lithos.server.console.console import Console
from lithos.server.console.formats import query_with, sparkline, whole
from lithos.tasks.service.running_claims import Claims
from lithos.upkeep.console.summary import Summary, shared_summary

#: Label of each event type in the feed filter.
TYPES: Final[Mapping[str, str]] = {
    "note.created": "note created", "note.updated": "note updated", "note.deleted": "note deleted",
    "note.renamed": "note renamed", "note.conflict_copy": "conflict copy",
    "note.trimmed": "index trimmed",
    "task.created": "task created", "task.updated": "task updated",
    "task.claimed": "task claimed", "task.released": "claim released", "task.claim_expired": "claim expired",
    "task.ready": "task ready", "task.completed": "task completed", "task.cancelled": "task cancelled",
    "task.failed": "task failed", "reindex_complete": "notes indexed",
    "task.reopened": "task reopened", "finding.posted": "finding posted", "edge.upserted": "notes related",
    "agent.registered": "agent registered", "agent.archived": "agent archived",
    "proposal.created": "change proposed",
    "proposal.approved": "proposal approved", "proposal.rejected": "proposal rejected",
    "proposal.expired": "proposal expired", "proposal.withdrawn": "proposal withdrawn",
}  # fmt: skip
#: Label of each group of event types in the feed filter, by the first word of the types.
GROUPS: Final[Mapping[str, str]] = {
    "note": "all note events", "task": "all task events", "finding": "findings", "edge": "relations",
    "agent": "agents", "proposal": "all proposal events",
}  # fmt: skip
#: Types of events that Lithos causes on its own. The feed shows these events only on request.
MACHINERY: Final = frozenset(("agent.registered", "task.ready", "reindex_complete"))
MACHINES: Final = frozenset((ENRICH_AGENT,))
#: Maximum period of events in one row, and maximum number of events in it. Events of the same type and agent
#: are folded into one row.
FOLD: Final = timedelta(minutes=5)
MOST_FOLDED: Final = 50
#: Types of events for note versions. The feed counts the changed lines of these versions.
VERSIONED: Final = frozenset((NOTE_CREATED, NOTE_UPDATED))
#: Maximum number of rendered sentences to keep.
MOST_KEPT: Final = 1_000
#: Maximum characters of all rows in a part of the page, and characters of one row in addition to its
#: sentence.
MOST_CHARACTERS, ROW_CHARACTERS = 170_000, 220
#: Maximum number of characters of an agent or tag in the feed filter.
LONGEST_FILTER: Final = 500


@frozen
class FeedFilter:
    """The fields of the form above the feed.

    With blank fields, the feed shows all events except those that Lithos causes on its own.
    """

    type: str = ""
    agent: str = ""
    tag: str = ""
    machinery: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> FeedFilter:
        """Return the filter in the query of a page. Unknown event types are ignored."""
        kind, agent, tag = (given.get(name, "").strip()[:LONGEST_FILTER] for name in ("type", "agent", "tag"))
        return cls(
            kind if kind in TYPES or kind in GROUPS else "",
            agent,
            tag.removeprefix("#"),
            given.get("machinery", "")[:1],
        )

    @property
    def wanted(self) -> EventSelection:
        """The journal selection that matches this filter."""
        types = frozenset(kind for kind in TYPES if self.type in ("", kind, kind.partition(".")[0]))
        if self.machinery or self.type in MACHINERY:
            return EventSelection(types, self.agent or None, self.tag or None)
        not_by = MACHINES - {self.agent}
        return EventSelection(types - MACHINERY, self.agent or None, self.tag or None, not_by)

    @property
    def is_set(self) -> bool:
        """True if the filter has a type, an agent or a tag."""
        return bool(self.type or self.agent or self.tag)


@define
class ActivityRow:
    """A feed row for one event. Its sentence is rendered once, its time with every page.

    `undo` is the query for the page that undoes an agent's note change. `folded` are earlier rows of the same
    type and agent.
    """

    seq: int
    at: datetime
    type: str
    agent: str
    sentence: Markup
    undo: str
    folded: list[ActivityRow] = field(factory=list)

    @property
    def kind(self) -> str:
        """The kind of the event's subject, such as `note` or `task`."""
        return self.type.partition(".")[0]

    def folds(self, other: ActivityRow) -> bool:
        """Return whether an earlier row can be folded into this row."""
        is_alike = (self.type, self.agent) == (other.type, other.agent)
        return is_alike and self.at - other.at <= FOLD and len(self.folded) < MOST_FOLDED


def fold(rows: Iterable[ActivityRow]) -> list[ActivityRow]:
    """Fold similar rows within `FOLD` into the newest of them. `rows` must be sorted newest first."""
    found: list[ActivityRow] = []
    for row in rows:
        if found and found[-1].folds(row):
            found[-1].folded.append(row)
        else:
            found.append(row)
    return found


class EventFeed:
    """A renderer of events. It stores the last `MOST_KEPT` rendered sentences.

    The renderer is not thread-safe.
    """

    def __init__(self, environment: Environment, catalogue: Catalogue) -> None:
        self._sentence = environment.get_template("happenings.html").module.sentence  # type: ignore[attr-defined]
        self._catalogue = catalogue
        self._kept: Newest[int, Markup] = Newest(MOST_KEPT)

    def unknown(self, events: Sequence[Event]) -> list[Event]:
        """Return the events whose sentence is not rendered yet."""
        return [event for event in events if event.seq not in self._kept]

    def rows(
        self,
        events: Sequence[Event],
        task_titles: Mapping[str, str],
        room: int = MOST_CHARACTERS,
        lines: Mapping[Span, tuple[int, int]] = MappingProxyType({}),
    ) -> Iterator[ActivityRow]:
        """Yield the rows of events in order, up to `room` characters in total.

        `lines` are the numbers of lines that each version adds and removes (`NoteHistory.line_counts`).
        """
        for event in events:
            sentence = self._kept.get(event.seq)
            if sentence is None:
                sentence = self._kept[event.seq] = self._make(event, task_titles, lines)
            room -= len(sentence) + ROW_CHARACTERS
            if room < 0:
                return
            draft = event.draft
            yield ActivityRow(event.seq, draft.timestamp, draft.type, draft.agent, sentence, _undo_of(event))

    def _make(
        self,
        event: Event,
        task_titles: Mapping[str, str],
        lines: Mapping[Span, tuple[int, int]],
    ) -> Markup:
        draft = event.draft
        payload = draft.payload
        ids = [payload.get(name) for name in ("id", "from_id", "to_id", "knowledge_id")]
        entries = {note_id: self._catalogue.get(note_id) for note_id in ids if isinstance(note_id, str)}
        titles = {note_id: entry.note.title if entry else "" for note_id, entry in entries.items()}
        # Sentence templates get only texts and numbers.
        texts = {name: value for name, value in payload.items() if isinstance(value, str | int | float)}
        version = _version_of(event)
        counts = None if version is None else lines.get(_span_of(*version))
        told: Markup = self._sentence(
            draft.type, draft.agent, texts, draft.tags, titles | dict(task_titles), version, counts
        )
        return Markup(" ".join(told.split()))  # noqa: S704 - what the template rendered


def _version_of(event: Event) -> tuple[str, int] | None:
    """Return the note id and the version that an event created.

    Return None for other events and for old events.
    """
    draft = event.draft
    note_id, version = draft.payload.get("id"), origin_version(draft.origin)
    if draft.type not in VERSIONED or version is None or not isinstance(note_id, str):
        return None
    return note_id, version


def _span_of(note_id: str, version: int) -> Span:
    """Return the span from the previous version to the version of the event."""
    return note_id, version - 1, version


def _undo_of(event: Event) -> str:
    """Return the query for the page that undoes an agent's note change.

    Return "" for all other events, and for the operator's own changes.
    """
    draft = event.draft
    note_id = draft.payload.get("id")
    is_own = is_reserved(draft.agent) and draft.agent != IMPORT_AGENT
    if not draft.type.startswith("note.") or is_own or not isinstance(note_id, str):
        return ""
    version = _version_of(event)
    return query_with({}, agent=draft.agent, note=note_id, version=version and version[1])


#: Number of events on a newly loaded page, number of events on the longer page, and maximum number of events
#: while the page stays open.
SHOWN, MORE_SHOWN, MOST_SHOWN = 50, 100, 200
#: Maximum number of characters of all events on the page.
ROOM: Final = 100_000
#: Number of samples per minute.
MINUTE: Final = 4


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the overview page and its parts."""
    page = OverviewPage(
        console, EventFeed(console.environment, console.parts.get(Catalogue)), shared_summary(console)
    )
    app.get("/")(page.overview)
    app.get("/feed")(page.feed)
    app.get("/state")(page.state)


@frozen
class OverviewPage:
    """The overview page of the console."""

    _console: Console
    _happenings: EventFeed
    _summaries: Shared[Summary]

    async def overview(self) -> Response:
        """Show the complete page."""
        most = MORE_SHOWN if request.args.get("shown") == str(MORE_SHOWN) else SHOWN
        summary = await self._summaries.latest()
        return await self._console.show(
            "overview.html",
            types=TYPES,
            groups=GROUPS,
            shown=most,
            more_shown=MORE_SHOWN,
            most_shown=MOST_SHOWN,
            **await self._events(most, 0, ROOM),
            **_state(summary),
        )

    async def feed(self) -> Any:
        """Show the rows of events later than `after`."""
        if "partial" not in request.args:
            return redirect(f"/console/{query_with(request.args, after=None)}".removesuffix("?"))
        after = whole(request.args.get("after"), 18) or 0
        return await self._console.show(
            "feed.html", **await self._events(MOST_SHOWN if after else SHOWN, after)
        )

    async def state(self) -> Any:
        """Show the parts of the page next to the feed."""
        if "partial" not in request.args:
            return redirect("/console/")
        return await self._console.show("state.html", **_state(await self._summaries.latest()))

    async def _events(self, most: int, after: int, room: int = MOST_CHARACTERS) -> dict[str, Any]:
        """Return the newest events that match the filter form.

        If the journal cannot be read, return the reason.
        """
        activity, wanted = self._console.parts.get(Activity), FeedFilter.of(request.args)
        context: dict[str, Any] = {"filter": wanted, "after": after, "trouble": "", "position": activity.head}
        try:
            page: JournalPage = await activity.page(wanted.wanted, most, after)
            unknown = self._happenings.unknown(page.events)
            titles = await self._console.parts.get(Claims).task_titles(unknown)
            lines = await self._lines([_span_of(*one) for event in unknown if (one := _version_of(event))])
        except DatabaseFailed as failure:
            return context | {"trouble": str(failure), "rows": tuple, "count": 0, "is_cut": False}
        count = len(page.events)

        def rows() -> list[ActivityRow]:
            return fold(self._happenings.rows(page.events, titles, room, lines))

        return context | {"rows": rows, "count": count, "position": page.head, "is_cut": page.is_cut}

    async def _lines(self, versions: Sequence[Span]) -> Mapping[Span, tuple[int, int]]:
        """Return the numbers of changed lines for each span of versions.

        The result is empty if the history cannot be read. The headline of the page reports this error.
        """
        try:
            return await self._console.parts.get(NoteHistory).line_counts(versions)
        except HistoryFailed:
            return {}


def _state(summary: Summary) -> dict[str, Any]:
    samples = summary.samples
    minute = samples[-MINUTE:]
    seconds = sum(each.seconds for each in minute)
    return {
        "summary": summary,
        "health": summary.health,
        "writes": sum(each.writes for each in minute) * 60 / seconds if seconds else None,
        "searches": sum(each.searches for each in minute) * 60 / seconds if seconds else None,
        "writing": sparkline([each.a_minute(each.writes) for each in samples]),
        "searching": sparkline([each.a_minute(each.searches) for each in samples]),
    }
