"""What tools say of the files beside the notes: rows of hits, lists and reads (docs/spec/attachments.md)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from lithos.core.attachments.kinds import kind_of
from lithos.core.attachments.mixing import Standing
from lithos.core.errors import InvalidInput
from lithos.core.times import format_time, from_nanoseconds
from lithos.kernel.parts import Parts
from lithos.services.attachments.reading import AttachmentRead, AttachmentReading, image_content
from lithos.services.attachments.searching import ATTACHMENT, KINDS, NOTE, AttachmentHit, mix_rows
from lithos.services.search.search import Hit
from lithos.stores.attachments.shelf import AttachedFile
from lithos.tools.contract.fitting import Pictured, cut_warning

#: Of the parameter `kinds`.
KINDS_TOLD = "note, attachment (PDF, ...); default both."
ATTACHMENTS_OFF = "Attachments are not read here: attachments.enabled is off. Set it and restart the server."


def read_kinds(given: Sequence[str] | None, default: Sequence[str] = KINDS) -> frozenset[str]:
    """Which kinds of rows are wanted; raises `InvalidInput` for a word that is none."""
    for kind in given or ():
        if kind not in KINDS:
            raise InvalidInput(f"kinds may contain {NOTE} and {ATTACHMENT}; not {kind[:100]!r}.")
    return frozenset(given or default)


def read_place(page: int, place: str | None) -> str:
    """The place of a page; raises `InvalidInput` for another place beside it, and for a page below 1."""
    if place is not None and place != str(page):
        raise InvalidInput("Give page or place, not both.")
    if page < 1:
        raise InvalidInput(f"page must be 1 or more, not {page}.")
    return str(page)


def hit_row(using: Parts, hit: AttachmentHit, score: float) -> dict[str, Any]:
    """One place of a file that was found."""
    row: dict[str, Any] = {
        "kind": ATTACHMENT,
        "id": hit.file.id,
        "title": hit.file.name,
        "snippet": hit.snippet,
        "score": score,
        "path": hit.file.path,
        "place": hit.part.place,
    }
    if hit.part.page is not None:
        row["page"] = hit.part.page
    row |= {"updated_at": _time(hit.file), "embedded_in": embedded_in(using, hit.file)}
    return row if hit.judged is None else row | {"match": hit.judged.match}


def embedded_in(using: Parts, file: AttachedFile) -> list[dict[str, Any]]:
    """Up to five notes that embed or link a file."""
    showing = using.get(AttachmentReading).showing(file)
    return [{"id": entry.note.id, "title": entry.note.title, "path": entry.path} for entry in showing]


def file_row(using: Parts, file: AttachedFile) -> dict[str, Any]:
    """One item of a list: what was read of a file, or why not."""
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
        "embedded_in": embedded_in(using, file),
    }
    return row | ({"reason": file.reason} if file.reason else {})


def read_row(using: Parts, read: AttachmentRead) -> dict[str, Any]:
    """The answer of `lithos_read` for a file; with an image it carries that."""
    row = file_row(using, read.file)
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
    return row if image is None else Pictured(row, *image)


def mix_hits(
    using: Parts,
    rows: Sequence[dict[str, Any]],
    standings: Sequence[Standing],
    hits: Sequence[AttachmentHit],
    limit: int,
) -> list[dict[str, Any]]:
    """Rows of notes, and of hits among them; a drawing that is shown as a note is not shown again."""
    others = _not_shown(hits, {row["path"] for row in rows})
    return [
        hit_row(using, row, score) if isinstance(row, AttachmentHit) else row
        for row, score in mix_rows(rows, standings, others, limit)
    ]


def skipped(shown: Sequence[Hit], hits: Sequence[AttachmentHit], limit: int, offset: int) -> int:
    """How many notes stand before an offset; `shown` are the notes of the first page without hits."""
    others = _not_shown(hits, {hit.entry.path for hit in shown})
    first = mix_rows(shown, standings_of(shown), others, limit)
    return max(0, offset - sum(isinstance(row, AttachmentHit) for row, _ in first))


def standings_of(hits: Sequence[Hit]) -> list[Standing]:
    """What is known of notes for a mixing."""
    return [Standing(None if hit.judged is None else hit.judged.chance, hit.score) for hit in hits]


def _not_shown(hits: Sequence[AttachmentHit], paths: Set[str]) -> list[AttachmentHit]:
    return [hit for hit in hits if hit.file.path not in paths]


def _time(file: AttachedFile) -> str:
    return format_time(from_nanoseconds(file.file.mtime_ns))
