"""`/console/files/PATH`: displays pictures of the vault and serves other files as downloads."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from quart import Blueprint, Response, redirect
from quart.wrappers.response import ResponseBody

from lithos.notes.files.lookup import Attachment
from lithos.notes.service.browsing import VaultFiles
from lithos.server.console.console import Console, PageRefused

#: Picture types that browsers show. SVG is excluded, because it can contain scripts.
IMAGES: Final = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "avif": "image/avif",
}
#: Maximum size of a served file in bytes.
LARGEST: Final = 100 * 1024 * 1024
#: Maximum time in seconds for sending a file.
PATIENCE: Final = 600
#: Maximum number of characters in a path.
LONGEST_PATH: Final = 4_096


def add_routes(console: Console, app: Blueprint) -> None:
    """Add `/files/PATH`."""
    app.get("/files/<path:path>")(FilePages(console).file)


@frozen
class FilePages:
    """Pages that serve files of the vault."""

    _console: Console

    async def file(self, path: str) -> Any:
        """Serve one file.

        If the address has only a file name, redirect to the file with that name in any folder.
        """
        files = self._console.parts.get(VaultFiles)
        attachment = found = None
        if len(path) <= LONGEST_PATH:
            attachment = await files.open(path)
            found = await files.named(path) if attachment is None else None
        if attachment is None:
            if found is not None and found != path:
                return redirect("/console/files/" + quote(found, safe="/"), 302)
            raise PageRefused(
                "The file does not exist in the vault, or it is not shown: hidden files, ignored "
                "files and files outside the vault are never shown. Check the link in the note.",
                404,
            )
        if attachment.size > LARGEST:
            attachment.file.close()
            raise PageRefused(
                f"This file has {attachment.size:,} bytes, but the console serves at most "
                f"{LARGEST:,} bytes. Open the file in the vault folder.",
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
    """The bytes of an open file, up to the announced size. Worker threads read the file."""

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
