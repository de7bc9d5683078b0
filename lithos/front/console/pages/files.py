"""`/console/files/PATH`: pictures of the vault as they are, every other file as a download.

`/console/attachments`: the text of these files by page or place, and pictures of pages.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from quart import Blueprint, Response, redirect
from quart.wrappers.response import ResponseBody

from lithos.actors.attaching.attaching import Attaching
from lithos.core.attachments.kinds import kind_of
from lithos.core.errors import LithosError
from lithos.front.console.console import Console, Refused, given, given_offset
from lithos.services.attachments.reading import AttachmentReading
from lithos.services.notes.browsing import VaultFiles
from lithos.stores.notes.lookup import Attachment

#: Pictures that browsers show, and that hold no script (SVG does).
IMAGES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
}
#: Bytes of a file that is served.
LARGEST: Final = 100 * 1024 * 1024
#: Seconds for a file to be fetched.
PATIENCE: Final = 600
#: Characters of a path.
LONGEST_PATH: Final = 4_096
#: The entry of the navigation to which the pages of attachments belong.
SECTION: Final = "/console/notes"
#: Files of one page; characters of text on one page, fewer where it would be too large.
SHOWN: Final = 50
LONGEST: Final = (60_000, 20_000, 5_000)
#: Pixels of the picture of a page.
WIDTH: Final = 900


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/files/PATH`, the list of attachments, the page of one, and the picture of one page."""
    app.get("/files/<path:path>")(FilePages(console).file)
    pages = AttachmentPages(console)
    app.get("/attachments", endpoint="attachments")(pages.listed)
    app.get("/attachments/<path:path>", endpoint="one attachment")(pages.alone)
    app.get("/page-pictures/<int:page>/<path:path>", endpoint="picture of a page")(pages.picture)


@frozen
class FilePages:
    """Files of the vault."""

    _console: Console

    async def file(self, path: str) -> Any:
        """One file; a name without its folder leads to the file that has it."""
        files = self._console.parts.get(VaultFiles)
        attachment = found = None
        if len(path) <= LONGEST_PATH:
            attachment = await files.open(path)
            found = await files.named(path) if attachment is None else None
        if attachment is None:
            if found is not None and found != path:
                return redirect("/console/files/" + quote(found, safe="/"), 302)
            raise Refused(
                "There is no such file in the vault, or it is one that is not shown: hidden and ignored "
                "files, and what a symbolic link reaches outside. Look at the link in the note.",
                404,
            )
        if attachment.size > LARGEST:
            attachment.file.close()
            raise Refused(
                f"This file has {attachment.size:,} bytes; the console serves at most {LARGEST:,}. Open it "
                "in the vault's folder.",
                413,
            )
        return _respond(attachment, files)


def _respond(attachment: Attachment, files: VaultFiles) -> Response:
    suffix = attachment.name.rpartition(".")[2].lower()
    kind = IMAGES.get(suffix) if "." in attachment.name else None
    body = _FileBody(attachment, files)
    response = Response(body, content_type=kind or "application/octet-stream")
    response.timeout = PATIENCE
    response.content_length = attachment.size
    name = quote(attachment.name, safe="")
    response.headers["Content-Disposition"] = f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{name}"
    response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    response.headers["Cache-Control"] = "private, no-cache"
    return response


class _FileBody(ResponseBody):
    """The bytes of an open file as far as its size was told, read in worker threads."""

    def __init__(self, attachment: Attachment, files: VaultFiles) -> None:
        self._attachment = attachment
        self._files = files
        self._left = attachment.size

    async def __aenter__(self) -> _FileBody:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._attachment.file.close()

    def __aiter__(self) -> _FileBody:
        return self

    async def __anext__(self) -> bytes:
        data = await self._files.read(self._attachment) if self._left else b""
        if not data:
            raise StopAsyncIteration
        data = data[: self._left]
        self._left -= len(data)
        return data


@frozen
class AttachmentPages:
    """The pages about attachments."""

    _console: Console

    async def listed(self) -> Response:
        """All files by path, with what could not be read and why."""
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
            is_on=self._console.parts.get(AttachmentReading).is_enabled,
            backlog=self._console.parts.get(Attaching).backlog(),
        )

    async def alone(self, path: str) -> Response:
        """One file: the text of a place, or all of it as far as a page has room."""
        place, offset = given("place") or None, given_offset(10_000_000)
        attachments = self._console.parts.get(AttachmentReading)
        try:
            read = await attachments.read_page(path[:LONGEST_PATH], place, offset, LONGEST[0])
        except LithosError as refusal:
            raise Refused(refusal.message, 404, refusal.code) from refusal
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
        """A page of a PDF file as PNG."""
        try:
            data = await self._console.parts.get(AttachmentReading).draw(path[:LONGEST_PATH], page, WIDTH)
        except LithosError as refusal:
            raise Refused(refusal.message, 404, refusal.code) from refusal
        response = Response(data, content_type="image/png")
        response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
        response.headers["Cache-Control"] = "private, no-cache"
        return response
