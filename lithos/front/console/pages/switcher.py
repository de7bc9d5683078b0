"""`/console/find`: the notes that a person may mean who begins to type a name, for the quick switcher."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen
from quart import Blueprint, redirect, request

from lithos.front.console.console import Console, given
from lithos.front.console.formats import query_with
from lithos.services.notes.browsing import BrowseRequest

#: Notes that are offered.
MOST: Final = 10
LONGEST: Final = 200


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the list."""
    app.get("/find", endpoint="find")(Switcher(console).find)


@frozen
class Switcher:
    """Finds notes by the beginning of their names."""

    _console: Console

    async def find(self) -> Any:
        """The nearest notes, as links."""
        typed = " ".join(given("q", LONGEST).split())
        if "partial" not in request.args:
            return redirect(f"/console/search{query_with({}, q=typed)}")
        wanted = BrowseRequest(q=typed, sort="path", limit=MOST if typed else 0)
        found = await self._console.parts.browsing.find(wanted)
        return await self._console.show("find.html", entries=found.entries)
