"""`/console/`: is all well, and what is happening; `/console/feed` and `/console/state` are pieces of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from attrs import frozen
from jinja2 import Environment
from markupsafe import Markup
from quart import Blueprint, Response, redirect, request

from lithos.catalogue.catalogue import Catalogue
from lithos.core.events import Event
from lithos.front.console.charts import sparkline
from lithos.front.console.console import Console
from lithos.front.console.formats import query_with
from lithos.front.console.summary import Summaries, Summary
from lithos.services.tasks.event_stream import JournalPage, Wanted
from lithos.stores.sqlite import DatabaseFailed

#: Every type of event, and what the filter calls it.
TYPES: Final[Mapping[str, str]] = {
    "note.created": "note created", "note.updated": "note updated", "note.deleted": "note deleted",
    "note.renamed": "note renamed", "task.created": "task created", "task.updated": "task updated",
    "task.claimed": "task claimed", "task.released": "claim released", "task.claim_expired": "claim expired",
    "task.ready": "task ready", "task.completed": "task completed", "task.cancelled": "task cancelled",
    "task.reopened": "task reopened", "finding.posted": "finding posted", "edge.upserted": "notes related",
    "agent.registered": "agent registered",
}  # fmt: skip
#: Groups of types that the filter offers, by the first word of their types.
GROUPS: Final[Mapping[str, str]] = {
    "note": "all of notes", "task": "all of tasks", "finding": "findings", "edge": "relations",
    "agent": "agents",
}  # fmt: skip
#: Sentences that are kept.
MOST_KEPT: Final = 1_000
#: Characters of all rows of a piece, and of one row without its sentence.
MOST_CHARACTERS, ROW_CHARACTERS = 170_000, 220
#: Characters of an agent or a tag that is filtered by.
LONGEST_FILTER: Final = 500


@frozen
class FeedFilter:
    """What the form above the feed asks for; blanks ask for everything."""

    type: str = ""
    agent: str = ""
    tag: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> FeedFilter:
        """From the query of a page; a type that does not exist counts as none."""
        kind, agent, tag = (given.get(name, "").strip()[:LONGEST_FILTER] for name in ("type", "agent", "tag"))
        return cls(kind if kind in TYPES or kind in GROUPS else "", agent, tag.removeprefix("#"))

    @property
    def wanted(self) -> Wanted:
        """The same for the journal."""
        types = frozenset(kind for kind in TYPES if self.type in (kind, kind.partition(".")[0]))
        return Wanted(types, self.agent or None, self.tag or None)

    @property
    def is_set(self) -> bool:
        """Whether anything is left out."""
        return bool(self.type or self.agent or self.tag)


@frozen
class Row:
    """One event as a row: its time is rendered with each page, the sentence only once."""

    seq: int
    at: datetime
    kind: str
    sentence: Markup


class Happenings:
    """Renders events; the last `MOST_KEPT` sentences are kept. For one thread at a time."""

    def __init__(self, environment: Environment, catalogue: Catalogue) -> None:
        self._sentence = environment.get_template("happenings.html").module.sentence  # type: ignore[attr-defined]
        self._catalogue = catalogue
        self._kept: OrderedDict[int, Markup] = OrderedDict()

    def unknown(self, events: Sequence[Event]) -> list[Event]:
        """Those whose sentence has still to be made."""
        return [event for event in events if event.seq not in self._kept]

    def rows(
        self, events: Sequence[Event], task_titles: Mapping[str, str], room: int = MOST_CHARACTERS
    ) -> Iterator[Row]:
        """The rows of events, in their order, as long as their sentences have so many characters together."""
        for event in events:
            sentence = self._kept.get(event.seq)
            if sentence is None:
                sentence = self._kept[event.seq] = self._make(event, task_titles)
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
            room -= len(sentence) + ROW_CHARACTERS
            if room < 0:
                return
            draft = event.draft
            yield Row(event.seq, draft.timestamp, draft.type.partition(".")[0], sentence)

    def _make(self, event: Event, task_titles: Mapping[str, str]) -> Markup:
        draft = event.draft
        payload = draft.payload
        ids = [payload.get(name) for name in ("id", "from_id", "to_id", "knowledge_id")]
        titles = {note_id: self._title(note_id) for note_id in ids if isinstance(note_id, str)}
        told: Markup = self._sentence(
            draft.type, draft.agent, _texts(payload), draft.tags, titles | dict(task_titles)
        )
        return Markup(" ".join(told.split()))  # noqa: S704 - what the template rendered

    def _title(self, note_id: str) -> str:
        entry = self._catalogue.get(note_id)
        return "" if entry is None else entry.note.title


def _texts(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with every value that is no text or number left out: sentences show nothing else."""
    return {name: value for name, value in payload.items() if isinstance(value, str | int | float)}


#: Events on the page when it is loaded, those of the longer page, and at most while it is open.
SHOWN, MORE_SHOWN, MOST_SHOWN = 50, 100, 200
#: Characters that they may have on the page, which holds other things too.
ROOM: Final = 100_000
#: Samples of a minute.
MINUTE: Final = 4
#: Digits of a position in the journal.
_DIGITS: Final = 18


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page and its pieces."""
    page = OverviewPage(console, Happenings(console.environment, console.parts.catalogue), Summaries(console))
    app.get("/")(page.overview)
    app.get("/feed")(page.feed)
    app.get("/state")(page.state)


@frozen
class OverviewPage:
    """The overview of one console."""

    _console: Console
    _happenings: Happenings
    _summaries: Summaries

    async def overview(self) -> Response:
        """The whole page."""
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
        """The rows of events later than `after`."""
        if "partial" not in request.args:
            return redirect(f"/console/{query_with(request.args, after=None)}".removesuffix("?"))
        given = request.args.get("after", "")
        after = int(given) if given.isascii() and given.isdigit() and len(given) <= _DIGITS else 0
        return await self._console.show(
            "feed.html", **await self._events(MOST_SHOWN if after else SHOWN, after)
        )

    async def state(self) -> Any:
        """What the page shows beside the feed."""
        if "partial" not in request.args:
            return redirect("/console/")
        return await self._console.show("state.html", **_state(await self._summaries.latest()))

    async def _events(self, most: int, after: int, room: int = MOST_CHARACTERS) -> dict[str, Any]:
        """The newest events that the form wants; without a journal why there are none."""
        activity, wanted = self._console.parts.activity, FeedFilter.of(request.args)
        context: dict[str, Any] = {"filter": wanted, "after": after, "trouble": "", "position": activity.head}
        try:
            page: JournalPage = await activity.page(wanted.wanted, most, after)
            titles = await activity.task_titles(self._happenings.unknown(page.events))
        except DatabaseFailed as failure:
            return context | {"trouble": str(failure), "rows": tuple, "count": 0, "is_cut": False}
        rows = partial(self._happenings.rows, page.events, titles, room)
        return context | {
            "rows": rows,
            "count": len(page.events),
            "position": page.head,
            "is_cut": page.is_cut,
        }


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
