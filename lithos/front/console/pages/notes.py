"""`/console/notes`: all notes by folder, tag, name and state, and those that are deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from quart import Blueprint, Response, request

from lithos.catalogue.catalogue import Entry
from lithos.core.notes.model import NOTE_TYPES, STATUSES, NoteWarning
from lithos.front.console.console import Console, Refused
from lithos.services.notes.browsing import SORTS, STATES, BrowsePage, BrowseRequest

#: Notes of one page, and the fewest of one whose rows are very long.
LIMIT: Final = 100
_FEWEST: Final = 10
#: Bytes of a page.
LARGEST: Final = 200_000
#: Folders and tags that stand beside the list, and tags of one row.
MOST_FOLDERS: Final = 100
MOST_TAGS: Final = 60
TAGS_OF_ROW: Final = 4
#: Characters of a filter.
LONGEST: Final = 1_000
_LARGEST_OFFSET: Final = 10_000_000


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/notes`."""
    app.get("/notes")(BrowsePages(console).browse)


@frozen
class Row:
    """One note of the list."""

    id: str
    title: str
    path: str
    status: str
    author: str
    updated_at: Any
    tags: Sequence[str]
    more_tags: int
    is_expired: bool
    is_suspect: bool
    why: str
    #: The line and the reason of a frontmatter that cannot be read.
    problem: str


@frozen
class BrowsePages:
    """Lists of notes."""

    _console: Console

    async def browse(self) -> Response:
        """Notes that pass the filters of the address, with the folders and tags among which to go on."""
        if request.args.get("view") == "deleted":
            return await self._deleted()
        browsing = self._console.parts.browsing
        wanted = _read_request()
        page = await browsing.find(wanted)
        parent = wanted.path_prefix.rpartition("/")[0]
        folders = await browsing.folders(f"{parent}/" if parent else "")
        is_unnamed = bool(wanted.q) and not any(_is_called(entry, wanted.q) for entry in page.entries)
        near = await browsing.near(wanted.q) if is_unnamed and not page.total else ()
        rows = _rows(page, await browsing.warnings(page.entries))
        tags, tag_total = await browsing.tags(MOST_TAGS)
        context: dict[str, Any] = {
            "wanted": wanted,
            "page": page,
            "all": len(self._console.parts.catalogue),
            "folders": folders[:MOST_FOLDERS],
            "more_folders": max(0, len(folders) - MOST_FOLDERS),
            "steps": _steps(parent),
            "tags": tags,
            "tag_total": tag_total,
            "statuses": (*STATUSES, *STATES),
            "types": NOTE_TYPES,
            "sorts": tuple(SORTS),
            "is_filtered": wanted != BrowseRequest(offset=wanted.offset, sort=wanted.sort),
            "is_unnamed": is_unnamed,
            "near": near,
            **self._skipped(wanted),
        }
        shown = min(LIMIT, wanted.limit)
        while True:
            response = await self._console.show("notes.html", rows=rows[:shown], limit=shown, **context)
            if (response.content_length or 0) <= LARGEST or shown <= _FEWEST:
                return response
            shown = max(_FEWEST, shown // 2)  # titles and paths of a thousand characters each

    def _skipped(self, wanted: BrowseRequest) -> dict[str, Any]:
        """The files that are no notes, and why, beside those of which the frontmatter cannot be read."""
        files = self._console.parts.catalogue.skipped if wanted.status == "broken" else {}
        return {"skipped": sorted(files.items())[:LIMIT], "skipped_total": len(files)}

    async def _deleted(self) -> Response:
        offset, rows, total, no_history = _offset(), list[Mapping[str, Any]](), 0, ""
        try:
            found = await self._console.call("lithos_history", deleted=True, limit=LIMIT, offset=offset)
            rows, total = found["versions"], found["total"]
        except Refused as refusal:
            no_history = refusal.message
        return await self._console.show(
            "notes_deleted.html", rows=rows, total=total, offset=offset, limit=LIMIT, no_history=no_history
        )


def _read_request() -> BrowseRequest:
    """The filters of the address; what is unknown among them counts as not given."""
    args = request.args
    given = {key: args.get(key, "").strip()[:LONGEST] for key in ("path_prefix", "author", "namespace", "q")}
    tags = [tag.strip().lstrip("#") for value in args.getlist("tags") for tag in value[:LONGEST].split(",")]
    wanted = BrowseRequest(
        **given, tags=tuple(tag for tag in tags if tag)[:20], offset=_offset(), limit=LIMIT
    )
    status, kind, sort = args.get("status", ""), args.get("note_type", ""), args.get("sort", "")
    return evolve(
        wanted,
        status=status if status in STATUSES or status in STATES else "",
        note_type=kind if kind in NOTE_TYPES else "",
        sort=sort if sort in SORTS else wanted.sort,
    )


def _offset() -> int:
    text = request.args.get("offset", "")
    return min(int(text), _LARGEST_OFFSET) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _is_called(entry: Entry, name: str) -> bool:
    stem = entry.path.rpartition("/")[2].removesuffix(".md")
    return name.casefold() in {each.casefold() for each in (entry.note.title, stem, *entry.note.aliases)}


def _steps(parent: str) -> list[tuple[str, str]]:
    """The folders down to one, with the prefix of each."""
    parts = parent.split("/")[:20] if parent else []
    return [(part, "/".join(parts[: place + 1]) + "/") for place, part in enumerate(parts) if part]


def _rows(page: BrowsePage, warnings: Mapping[str, Sequence[NoteWarning]]) -> list[Row]:
    rows: list[Row] = []
    for entry in page.entries:
        note = entry.note
        by_kind = {warning.kind: warning for warning in warnings.get(note.id, ())}
        suspect = by_kind.get("suspect")
        rows.append(
            Row(
                id=note.id,
                title=note.title,
                path=entry.path,
                status=note.status,
                author=note.author,
                updated_at=note.updated_at,
                tags=note.all_tags[:TAGS_OF_ROW],
                more_tags=max(0, len(note.all_tags) - TAGS_OF_ROW),
                is_expired="expired" in by_kind,
                is_suspect=suspect is not None,
                why=suspect.reason[:200] if suspect is not None else "",
                problem=note.frontmatter_problem or "",
            )
        )
    return rows
