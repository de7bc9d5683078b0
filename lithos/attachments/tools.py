"""Tool answers about attachments: rows of hits, lists and reads (docs/spec/attachments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lithos.attachments.files.shelf import AttachedFile
from lithos.attachments.model.kinds import kind_of
from lithos.attachments.service.reading import AttachmentRead, AttachmentReading, image_content
from lithos.attachments.service.searching import AttachmentSearch
from lithos.attachments.settings import AttachmentsConfig, reads_attachments
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.projects import ProjectFilter
from lithos.kernel.values.times import format_time, from_nanoseconds
from lithos.notes.service.row_kinds import ATTACHMENT
from lithos.search.service.other_files import OtherHit
from lithos.server.tools.fitting import AnswerWithImage, cut_warning


class AttachmentFiles:
    """Implementation of `OtherFiles` for attachments, so that tools read and list them like notes."""

    def __init__(self, reading: AttachmentReading) -> None:
        self._reading = reading

    @property
    def is_enabled(self) -> bool:
        """Return whether the configuration enables attachments."""
        return self._reading.is_enabled

    def is_meant(self, file_id: str | None, path: str | None) -> bool:
        """Return whether a read refers to an attachment rather than to a note."""
        return self._reading.is_meant(file_id, path)

    async def read_row(
        self, file_id: str | None, path: str | None, place: str | None, offset: int, max_length: int | None
    ) -> Mapping[str, Any]:
        """Return the answer to a read. Raises `DocNotFound` and `InvalidInput`."""
        return read_row(self._reading, await self._reading.read(file_id, path, place, offset, max_length))

    def list_rows(
        self,
        path_prefix: str | None,
        name_contains: str | None,
        since: datetime | None,
        project: ProjectFilter | None,
        offset: int,
        limit: int,
    ) -> tuple[list[dict[str, Any]], int]:
        """Return one page of the matching files, sorted by path, and the total number of matches."""
        files = self._reading.listed(path_prefix, name_contains, since, project)
        return [file_row(self._reading, file) for file in files[offset : offset + limit]], len(files)


class AttachmentHits:
    """Implementation of `OtherHits` for attachments, so that their hits are listed next to notes."""

    def __init__(self, config: Config, search: AttachmentSearch, reading: AttachmentReading) -> None:
        self.is_enabled = reads_attachments(config.of(AttachmentsConfig), config.of(StorageConfig))
        self.has_any = search.has_any
        self.search = search.search
        self.beside = search.beside
        self._reading = reading

    def row(self, hit: OtherHit, score: float) -> dict[str, Any]:
        """Return the row for one matching place."""
        row: dict[str, Any] = {
            "kind": ATTACHMENT,
            "id": hit.id,
            "title": hit.name,
            "snippet": hit.snippet,
            "score": score,
            "path": hit.path,
            "place": hit.place,
        }
        if hit.page is not None:
            row["page"] = hit.page
        row |= {
            "updated_at": format_time(from_nanoseconds(hit.changed_ns)),
            "embedded_in": embedded_in(self._reading, hit.path),
        }
        return row if hit.judged is None else row | {"match": hit.judged.match}


def embedded_in(reading: AttachmentReading, path: str) -> list[dict[str, Any]]:
    """Return up to five notes that embed or link a file."""
    showing = reading.showing_at(path)
    return [{"id": entry.note.id, "title": entry.note.title, "path": entry.path} for entry in showing]


def file_row(reading: AttachmentReading, file: AttachedFile) -> dict[str, Any]:
    """Return the list item of a file: the state of its text, or the reason why it has no text."""
    updated = _time(file)
    row: dict[str, Any] = {
        "kind": ATTACHMENT,
        "id": file.id,
        "title": file.name,
        "path": file.path,
        "type": kind_of(file.path),
        "size": file.file.size,
        "updated": updated,
        "updated_at": updated,
        "parts": file.parts,
        "state": file.state,
        "embedded_in": embedded_in(reading, file.path),
    }
    return row | ({"reason": file.reason} if file.reason else {})


def read_row(reading: AttachmentReading, read: AttachmentRead) -> dict[str, Any]:
    """Return the answer of `lithos_read` for a file. An image file includes the image."""
    row = file_row(reading, read.file)
    row |= {"content": read.content, "truncated": read.next_offset is not None}
    if read.part is not None:
        row["place"] = read.part.place
        if read.part.page is not None:
            row["page"] = read.part.page
    if read.reason:
        row["reason"] = read.reason
    if read.next_offset is not None:
        row |= {"next_offset": read.next_offset, "warnings": [cut_warning(read.length)]}
    image = image_content(read)
    return row if image is None else AnswerWithImage(row, *image)


def _time(file: AttachedFile) -> str:
    return format_time(from_nanoseconds(file.file.mtime_ns))
