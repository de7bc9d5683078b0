"""`/console/attachments`: text of attachments by page or place, and images of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, Response

from lithos.attachments.extraction.actor import Attaching
from lithos.attachments.model.kinds import kind_of
from lithos.attachments.service.reading import AttachmentReading
from lithos.attachments.settings import AttachmentsConfig, reads_attachments
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import LithosError
from lithos.notes.console.pages_files import LONGEST_PATH
from lithos.notes.service.knowledge import ReadNote
from lithos.server.console.console import Console, PageRefused, given, given_offset

#: Navigation entry that is highlighted on the attachment pages.
SECTION: Final = "/console/notes"
#: Number of files per list page. Below it: maximum characters of text per page, which is reduced if a page
#: becomes too large.
SHOWN: Final = 50
LONGEST: Final = (60_000, 20_000, 5_000)
#: Width of a page image in pixels.
WIDTH: Final = 900


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the attachment list, an attachment's page, page images, and the note panel."""
    pages = AttachmentPages(console)
    console.add_panel("note", pages.attached)
    app.get("/attachments", endpoint="attachments")(pages.listed)
    app.get("/attachments/<path:path>", endpoint="one attachment")(pages.alone)
    app.get("/page-pictures/<int:page>/<path:path>", endpoint="picture of a page")(pages.picture)


@frozen
class AttachmentPages:
    """The console pages for attachments."""

    _console: Console

    async def listed(self) -> Response:
        """Show all files sorted by path, with the reason for each file that could not be read."""
        wanted, kind = given("q"), given("kind")
        files = [
            file
            for file in self._console.parts.get(AttachmentReading).listed(None, wanted, None)
            if not kind or kind_of(file.path) == kind
        ]
        offset = given_offset(len(files))
        return await self._console.show(
            "attachments.html",
            path=SECTION,
            files=[(file, kind_of(file.path)) for file in files[offset : offset + SHOWN]],
            total=len(files),
            limit=SHOWN,
            offset=offset,
            is_on=reads_attachments(
                self._console.parts.get(AttachmentsConfig), self._console.parts.get(StorageConfig)
            ),
            backlog=self._console.parts.get(Attaching).backlog(),
        )

    async def alone(self, path: str) -> Response:
        """Show one file: the text of a place, or as much of the complete text as fits on a page."""
        place, offset = given("place") or None, given_offset(10_000_000)
        attachments = self._console.parts.get(AttachmentReading)
        try:
            read = await attachments.read_page(path[:LONGEST_PATH], place, offset, LONGEST[0])
        except LithosError as refusal:
            raise PageRefused(refusal.message, 404, refusal.code) from refusal
        return await self._console.show_within(
            "attachment.html",
            "most",
            LONGEST,
            path=SECTION,
            read=read,
            place=place,
            offset=offset,
            last_page=await attachments.last_page(read.file),
            showing=attachments.showing(read.file, 20),
            is_picture=read.kind == "image",
        )

    async def picture(self, page: int, path: str) -> Response:
        """Return a page of a PDF file as a PNG image."""
        try:
            data = await self._console.parts.get(AttachmentReading).draw(path[:LONGEST_PATH], page, WIDTH)
        except LithosError as refusal:
            raise PageRefused(refusal.message, 404, refusal.code) from refusal
        response = Response(data, content_type="image/png")
        response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
        response.headers["Cache-Control"] = "private, no-cache"
        return response

    async def attached(self, read: ReadNote) -> Mapping[str, Any]:
        """Return the files with text that a note embeds."""
        found = self._console.parts.get(AttachmentReading).embedded(link.target for link in read.links)
        return {"attached": found}
