"""`/console/care` shows notes that need attention.

`/console/copies` shows conflict copies that other machines wrote.

A copy is merged as the page showed it, with one choice for each conflict. The form contains a seal of the
shown version.
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

#: Navigation entry of the console pages about copies.
SECTION: Final = "/console/review"
#: Number of copies per page, maximum characters of a merged text (with smaller values for pages that become
#: too large), and maximum conflicts per page.
SHOWN: Final = 50
LONGEST: Final = (200_000, 60_000, 10_000)
MOST_PLACES: Final = 200
#: Navigation entry of the page Care, seconds that the page waits for a check, and rows per group (with
#: smaller values for pages that become too large).
CARE_SECTION: Final = "/console/notes"
PATIENCE: Final = 2.0
MOST_ROWS: Final = (200, 60, 20, 5)
#: Advice for people. It replaces default advice that names a tool for agents.
BY_PERSON: Final[Mapping[str, str]] = {
    "contradicted": "Decide which note is right, or settle the contradiction in another way.",
    "conflict_copies": "Merge each copy into its note.",
}
#: Number of rows that are visible while a group is folded.
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
        """Show the last report. A run starts on request, or if there is no report yet."""
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
        """Open a care task for each group without a task. Return the address of the next page."""
        done = await self._console.call("lithos_care_tasks", by=self._console.agent)
        opened = sum(task["is_new"] for task in done["tasks"])
        return f"/console/care{query_with({}, opened=str(opened), there=str(len(done['tasks']) - opened))}"


@frozen
class CopyPages:
    """The console pages about conflict copies."""

    _console: Console

    async def listed(self) -> Response:
        """Show all conflict copies, sorted by note."""
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
        """Show one copy, the merge result, and the conflicts that a person must decide."""
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
        """Merge a copy, or keep it as a separate note. Return the address of the next page."""
        return await (self.keep(form) if form.get("act") == "keep" else self.merge(form))

    async def keep(self, form: Form) -> str:
        """Turn a conflict copy permanently into a separate note. Return the address of the next page."""
        path = form.get("copy", "")
        if not path:
            raise PageRefused(
                "Nothing was changed: the form does not name a file. Start again from the page Copies."
            )
        done = await self._console.call("lithos_conflict_copy_keep", path=path)
        return f"/console/copies{query_with({}, kept=path, of=done['note_id'])}"

    async def merge(self, form: Form) -> str:
        """Merge a copy as the page showed it, with the choices from the form.

        Return the address of the next page.
        """
        path, seal = form.get("copy", ""), form.get("seal", "")
        if not path or not seal:
            raise PageRefused(
                "Nothing was merged: the form does not name a copy. Start again from the page Copies."
            )
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
