"""`/console/care`: notes that need attention. `/console/copies`: conflict copies written by other machines.

A copy is merged with a choice for each place, as it was seen: the form carries the seal of what it showed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen
from quart import Blueprint, Response, request

from lithos.history.model.copy_merge import SIDES
from lithos.history.service.conflict_copies import ConflictCopies
from lithos.kernel.values.errors import LithosError
from lithos.server.console.console import Console, Form, PageRefused, given_offset
from lithos.server.console.formats import query_with
from lithos.upkeep.checks.care import Care

#: The entry of the navigation to which these pages belong.
SECTION: Final = "/console/review"
#: Copies of one page; characters of the merged text, and places, fewer where the page would be too large.
SHOWN: Final = 50
LONGEST: Final = (200_000, 60_000, 10_000)
MOST_PLACES: Final = 200
#: The menu entry of the page Care; seconds that a page waits for a check, and rows of one group that it
#: shows.
CARE_SECTION: Final = "/console/notes"
PATIENCE: Final = 2.0
MOST_ROWS: Final = (200, 60, 20, 5)
#: The page where a person handles a group for which agents use a tool.
BY_PERSON: Final[Mapping[str, str]] = {
    "contradicted": "Decide which note is right, or how to settle the contradiction.",
    "conflict_copies": "Merge them into their notes.",
}
#: Rows of a group that are shown before the rest is unfolded.
UNFOLDED: Final = 5


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page Care, the list of copies, and the page of one copy."""
    care = CarePage(console)
    app.get("/care", endpoint="care")(care.show)
    app.post("/care", endpoint="care tasks")(console.change(care.open_tasks, "admin"))
    pages = CopyPages(console)
    app.get("/copies", endpoint="copies")(pages.listed)
    app.get("/copies/one", endpoint="one copy")(pages.alone)
    app.post("/copies/one", endpoint="merge copy")(console.change(pages.decide, "admin"))


@frozen
class CarePage:
    """The page Care."""

    _console: Console

    async def show(self) -> Response:
        """Show the last report; start a run if there is no report yet, or on request."""
        care = self._console.parts.get(Care)
        report = None if "look" in request.args else care.last
        report = report or await care.report(PATIENCE)
        return await self._console.show_within(
            "care.html",
            "most",
            MOST_ROWS,
            path=CARE_SECTION,
            report=report,
            todo=BY_PERSON,
            unfolded=UNFOLDED,
        )

    async def open_tasks(self, form: Form) -> str:
        """Open a task for each group without a task."""
        done = await self._console.call("lithos_care_tasks", by=self._console.agent)
        opened = sum(task["is_new"] for task in done["tasks"])
        return f"/console/care{query_with({}, opened=str(opened), there=str(len(done['tasks']) - opened))}"


@frozen
class CopyPages:
    """The pages about conflict copies."""

    _console: Console

    async def listed(self) -> Response:
        """All copies, by note."""
        copies = self._console.parts.get(ConflictCopies).listed()
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
        """One copy: the result of merging it, and the conflicts to decide."""
        try:
            shown = await self._console.parts.get(ConflictCopies).show(request.args.get("path", "")[:4_096])
        except LithosError as refusal:
            raise PageRefused(refusal.message, 404, refusal.code) from refusal
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

    async def decide(self, form: Form) -> str:
        """Merge one, or keep it as a note."""
        return await (self.keep(form) if form.get("act") == "keep" else self.merge(form))

    async def keep(self, form: Form) -> str:
        """Make a conflict copy a note of its own, for good."""
        path = form.get("copy", "")
        if not path:
            raise PageRefused("Nothing was changed: this form names no file. Start from the page Copies.")
        done = await self._console.call("lithos_conflict_copy_keep", path=path)
        return f"/console/copies{query_with({}, kept=path, of=done['note_id'])}"

    async def merge(self, form: Form) -> str:
        """Merge one as it was shown, with what was chosen."""
        path, seal = form.get("copy", ""), form.get("seal", "")
        if not path or not seal:
            raise PageRefused("Nothing was merged: this form names no copy. Start from the page Copies.")
        number = int(form.get("places", "0")) if form.get("places", "0").isdecimal() else 0
        keep = [form.get(f"keep-{place}", "") for place in range(min(number, MOST_PLACES))]
        if not all(keep):
            raise PageRefused("Nothing was merged: choose a version for every conflict.")
        given = {"path": path, "by": self._console.agent, "seal": seal}
        done = await self._console.call(
            "lithos_conflict_copy_merge", **given, **({"keep": keep} if keep else {})
        )
        told = {"merged": path, "of": done["note_id"], "version": str(done["version"])}
        return f"/console/copies{query_with({}, **told)}"
