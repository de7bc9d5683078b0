"""`/console/find`: the notes that a person may mean who begins to type a name, for the quick switcher."""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import nsmallest
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, redirect, request

from lithos.actors.blocking import slices
from lithos.catalogue.catalogue import Entry
from lithos.front.console.console import Console, given
from lithos.front.console.formats import query_with

#: Notes that are offered.
MOST: Final = 10
LONGEST: Final = 200
#: Notes that are compared in one turn of the event loop.
_AT_ONCE: Final = 500


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the list."""
    app.get("/find", endpoint="find")(Switcher(console).find)


@frozen
class Typed:
    """The beginning of a name: `starts` finds it where a word begins, in a text in small letters."""

    text: str
    starts: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> Typed:
        """What a person typed, with single blanks."""
        folded = " ".join(text.casefold().split())
        return cls(folded, re.compile(rf"(?<![^\W_]){re.escape(folded)}"))

    def nearness(self, entry: Entry) -> tuple[int, int, str] | None:
        """How near a note is, nearest least; None where no name of it has a word that begins so.

        The title before an alias before the path, a whole name before its beginning before one of its words.
        """
        found = min(self._places(entry), default=None)
        return None if found is None else (found, len(entry.note.title), entry.path)

    def _places(self, entry: Entry) -> Iterator[int]:
        names = ((entry.note.title,), entry.note.aliases, (entry.path.removesuffix(".md"),))
        for kind, of_kind in enumerate(names):
            for name in map(str.casefold, of_kind):
                if name == self.text:
                    yield kind
                elif name.startswith(self.text):
                    yield 3 + kind
                elif self.starts.search(name):
                    yield 6 + kind


@frozen
class Switcher:
    """Finds notes by the beginning of their names."""

    _console: Console

    async def find(self) -> Any:
        """The nearest notes, as links."""
        if "partial" not in request.args:
            return redirect(f"/console/search{query_with({}, q=given('q', LONGEST))}")
        typed, catalogue = Typed.of(given("q", LONGEST)), self._console.parts.catalogue
        near: list[tuple[tuple[int, int, str], Entry]] = []
        async for some in slices(catalogue.serials() if typed.text else (), _AT_ONCE):
            ranked = [(rank, one) for one in catalogue.at_serials(some) if (rank := typed.nearness(one))]
            near = nsmallest(MOST, [*near, *ranked], key=lambda pair: pair[0])
        return await self._console.show("find.html", entries=[entry for _, entry in near])
