"""One Markdown file of a source with its frontmatter, whatever its encoding."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from lithos.core.formats.conversation import fence
from lithos.core.formats.texts import clean, decode, parse_moment
from lithos.core.notes.document import given_keys, parse_document
from lithos.core.notes.layout import read_layout
from lithos.core.notes.yaml_nodes import UnreadableNote
from lithos.core.times import from_nanoseconds
from lithos.stores.importing.reading import read_whole

#: Keys under which other programs have the times of a note.
_CREATED: Final = ("created", "date", "created_date", "creation_date")
_UPDATED: Final = ("modified", "updated", "last_modified", "modified_at")
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class MarkdownFile:
    """What a file says. `text` is the whole file in UTF-8 where it has frontmatter that can be read.

    `heading` is its H1, `name` the title of its frontmatter; `content` has neither.
    """

    heading: str | None
    name: str | None
    content: str
    text: bytes | None
    tags: tuple[str, ...]
    extra: dict[str, Any]
    created_at: datetime | None
    updated_at: datetime


def read_markdown(file: Path, path: str) -> MarkdownFile:
    """Read the file whose path in its source is `path`.

    Raises `OSError`, and `ValueError` with the reason.
    """
    data = _as_note(read_whole(file))
    modified = from_nanoseconds(file.stat().st_mtime_ns)
    layout = read_layout(data)
    heading = None
    if layout.heading is not None:
        heading = layout.text[layout.heading.start : layout.heading.end]
    try:
        document = parse_document(data, path, _NEVER)
        given = given_keys(data)
    except UnreadableNote:
        kept = f"{fence(layout.yaml, 'yaml')}\n\n{layout.content}"
        return MarkdownFile(
            heading=heading, name=None, content=kept.strip(), text=None, tags=(), extra={}, created_at=None,
            updated_at=modified,
        )  # fmt: skip
    note, extra = document.note, dict(document.note.extra)
    created = note.created_at if "created_at" in given else _first_time(extra, _CREATED)
    updated = note.updated_at if "updated_at" in given else _first_time(extra, _UPDATED)
    return MarkdownFile(
        heading=heading,
        name=note.title if "title" in given and heading is None else _text(extra.get("name")),
        content=document.content,
        text=data if layout.has_frontmatter else None,
        tags=note.tags,
        extra=extra,
        created_at=created,
        updated_at=updated or modified,
    )


def _as_note(data: bytes) -> bytes:
    """The bytes as they are where a note may be so, else their text in UTF-8 without NULs."""
    if b"\0" not in data:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            pass
        else:
            return data
    return clean(decode(data)).encode("utf-8", "replace")


def _first_time(extra: dict[str, Any], keys: tuple[str, ...]) -> datetime | None:
    return next((found for key in keys if (found := parse_moment(extra.get(key))) is not None), None)


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
