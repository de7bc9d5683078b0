"""`/console/notes`: all notes by folder, tag, name and state, and the deleted notes.

The page `/console/find` suggests notes for the quick switcher while a person types a name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, Response, redirect, request

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import normalise_project
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.note import NOTE_TYPES, STATUSES
from lithos.notes.service.browsing import NO_PROJECT, SORTS, STATES, BrowseRequest, Browsing
from lithos.server.console.console import Console, PageRefused, given, given_offset
from lithos.server.console.formats import folders_of, query_with

#: Numbers of notes on one page. Smaller numbers are used if titles and paths are very long.
LIMITS: Final = (100, 50, 25, 12, 10)
LIMIT: Final = LIMITS[0]
#: Maximum number of folders next to the list, then of tags next to the list, then of tags in one row.
MOST_FOLDERS: Final = 100
MOST_TAGS: Final = 60
#: Maximum number of projects in the filter. Long keys may fill half of the largest page.
MOST_PROJECTS: Final = 50
TAGS_OF_ROW: Final = 4
#: Maximum number of characters in a filter.
LONGEST: Final = 1_000
#: Maximum number of suggestions in the switcher, and maximum number of characters typed there.
MOST_OFFERED: Final = 10
LONGEST_TYPED: Final = 200


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/notes`, and `/find` for the suggestions of the switcher."""
    app.get("/notes")(BrowsePages(console).browse)
    app.get("/find", endpoint="find")(Switcher(console).find)


@frozen
class BrowsePages:
    """Pages that list notes."""

    _console: Console

    async def browse(self) -> Response:
        """Show the notes that match the filters in the address. Folders and tags narrow the list further."""
        if request.args.get("view") == "deleted":
            return await self._deleted()
        browsing = self._console.parts.get(Browsing)
        wanted = _read_request()
        page = await browsing.find(wanted)
        parent = wanted.path_prefix.rpartition("/")[0]
        folders = await browsing.folders(f"{parent}/" if parent else "")
        is_unnamed = bool(wanted.q) and not any(_is_called(entry, wanted.q) for entry in page.entries)
        near = await browsing.near(wanted.q) if is_unnamed and not page.total else ()
        tags, tag_total = await browsing.tags(MOST_TAGS)
        all_skipped = self._console.parts.get(Catalogue).skipped if wanted.status == "broken" else {}
        # Conflict copies have a separate page.
        skipped = {path: each for path, each in all_skipped.items() if each.copy is None}
        return await self._console.show_within(
            "notes.html",
            "limit",
            LIMITS,
            wanted=wanted,
            page=page,
            warnings=await browsing.warnings(page.entries),
            tags_of_row=TAGS_OF_ROW,
            all=len(self._console.parts.get(Catalogue)),
            folders=folders[:MOST_FOLDERS],
            more_folders=max(0, len(folders) - MOST_FOLDERS),
            steps=folders_of(parent),
            tags=tags,
            tag_total=tag_total,
            projects=browsing.projects(MOST_PROJECTS),
            statuses=(*STATUSES, *STATES),
            types=NOTE_TYPES,
            sorts=tuple(SORTS),
            is_filtered=wanted != BrowseRequest(offset=wanted.offset, sort=wanted.sort),
            is_unnamed=is_unnamed,
            near=near,
            skipped=sorted(skipped.items())[:LIMIT],
            skipped_total=len(skipped),
        )

    async def _deleted(self) -> Response:
        offset, found, no_history = given_offset(), dict[str, Any](), ""
        try:
            found = await self._console.call("lithos_history", deleted=True, limit=LIMIT, offset=offset)
        except PageRefused as refusal:
            no_history = refusal.message
        return await self._console.show(
            "notes_deleted.html", found=found, offset=offset, limit=LIMIT, no_history=no_history
        )


def _read_request() -> BrowseRequest:
    """Return the filters in the address. Ignore unknown filters."""
    tags = [
        tag.strip().lstrip("#")
        for value in request.args.getlist("tags")
        for tag in value[:LONGEST].split(",")
    ]

    def one_of(name: str, choices: Collection[str], otherwise: str = "") -> str:
        chosen = request.args.get(name, "")
        return chosen if chosen in choices else otherwise

    return BrowseRequest(
        **{key: given(key, LONGEST) for key in ("path_prefix", "author", "namespace", "q")},
        tags=tuple(tag for tag in tags if tag)[:20],
        project=_read_project(given("project", LONGEST)),
        status=one_of("status", (*STATUSES, *STATES)),
        note_type=one_of("note_type", NOTE_TYPES),
        sort=one_of("sort", SORTS, next(iter(SORTS))),
        limit=LIMIT,
        offset=given_offset(),
    )


def _read_project(text: str) -> str:
    try:
        return text if text in ("", NO_PROJECT) else normalise_project(text)
    except InvalidInput:
        return ""


def _is_called(entry: Entry, name: str) -> bool:
    stem = entry.path.rpartition("/")[2].removesuffix(".md")
    return name.casefold() in {each.casefold() for each in (entry.note.title, stem, *entry.note.aliases)}


@frozen
class Switcher:
    """The quick switcher, which finds notes by the beginning of their names."""

    _console: Console

    async def find(self) -> Any:
        """Return the best matches as links."""
        typed = " ".join(given("q", LONGEST_TYPED).split())
        if "partial" not in request.args:
            return redirect(f"/console/search{query_with({}, q=typed)}")
        wanted = BrowseRequest(q=typed, sort="path", limit=MOST_OFFERED if typed else 0)
        found = await self._console.parts.get(Browsing).find(wanted)
        return await self._console.show("find.html", entries=found.entries)
