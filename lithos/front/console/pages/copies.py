"""`/console/copies`: what another machine wrote of notes, merged with a choice for each place.

What is merged is what was seen: the form carries the seal of what it showed.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen
from quart import Blueprint, Response, request

from lithos.core.errors import LithosError
from lithos.core.history.copy_merge import SIDES
from lithos.front.console.console import Console, Form, Refused, given_offset
from lithos.front.console.formats import query_with

#: The entry of the navigation to which these pages belong.
SECTION: Final = "/console/review"
#: Copies of one page; characters of the merged text, and places, fewer where the page would be too large.
SHOWN: Final = 50
LONGEST: Final = (200_000, 60_000, 10_000)
MOST_PLACES: Final = 200


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the list, and the page of one copy."""
    pages = CopyPages(console)
    app.get("/copies", endpoint="copies")(pages.listed)
    app.get("/copies/one", endpoint="one copy")(pages.alone)
    app.post("/copies/one", endpoint="merge copy")(console.change(pages.merge, "admin"))


@frozen
class CopyPages:
    """The pages about conflict copies."""

    _console: Console

    async def listed(self) -> Response:
        """All copies, by note."""
        copies = self._console.parts.conflict_copies.listed()
        offset = given_offset(len(copies))
        return await self._console.show(
            "copies.html",
            path=SECTION,
            copies=copies[offset : offset + SHOWN],
            total=len(copies),
            limit=SHOWN,
            offset=offset,
        )

    async def alone(self) -> Response:
        """One copy: what merging makes of it, and what has to be decided."""
        try:
            shown = await self._console.parts.conflict_copies.show(request.args.get("path", "")[:4_096])
        except LithosError as refusal:
            raise Refused(refusal.message, 404, refusal.code) from refusal
        merge = shown.merge
        text = "" if merge.pieces is None else merge.marked("the note", "the other machine")
        return await self._console.show_within(
            "copy_one.html",
            "most",
            LONGEST,
            path=SECTION,
            shown=shown,
            text=text,
            places=merge.places[:MOST_PLACES],
            has_more=len(merge.places) > MOST_PLACES,
            sides=SIDES,
        )

    async def merge(self, form: Form) -> str:
        """Merge one as it was shown, with what was chosen."""
        path, seal = form.get("copy", ""), form.get("seal", "")
        if not path or not seal:
            raise Refused("Nothing was merged: this form names no copy. Begin at the page Copies.")
        number = int(form.get("places", "0")) if form.get("places", "0").isdecimal() else 0
        keep = [form.get(f"keep-{place}", "") for place in range(min(number, MOST_PLACES))]
        if not all(keep):
            raise Refused("Nothing was merged: choose what to keep of every place.")
        given = {"path": path, "by": self._console.agent, "seal": seal}
        done = await self._console.call(
            "lithos_conflict_copy_merge", **given, **({"keep": keep} if keep else {})
        )
        told = {"merged": path, "of": done["note_id"], "version": str(done["version"])}
        return f"/console/copies{query_with({}, **told)}"
