"""`/console/`: is all well, and what is happening; `/console/feed` and `/console/state` are pieces of it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, Response, redirect, request

from lithos.front.console.charts import sparkline
from lithos.front.console.console import Console
from lithos.front.console.formats import query_with
from lithos.front.console.happenings import GROUPS, MOST_CHARACTERS, TYPES, FeedFilter, Happenings
from lithos.front.console.summary import Summaries, Summary
from lithos.services.tasks.activity import JournalPage
from lithos.stores.sqlite import DatabaseFailed

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
