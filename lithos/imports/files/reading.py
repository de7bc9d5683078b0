"""Helpers for reading source files: lines of limited length, and folders in a fixed order.

The module also reads Markdown files with frontmatter in any encoding, and dates in all forms that sources
use: ISO 8601 with or without a zone, plain dates, and Unix times in any unit.
"""

from __future__ import annotations

import codecs
import math
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from attrs import frozen

from lithos.imports.model.conversation import fence
from lithos.imports.model.json_items import MOST_BYTES, WINDOW
from lithos.imports.model.texts import clean, decode, of_epoch, parse_moment
from lithos.kernel.values.times import from_nanoseconds, parse_time
from lithos.notes.format.document import given_keys, parse_document
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote

#: Keys that other programs use for the creation time of a note.
_CREATED: Final = ("created", "date", "created_date", "creation_date")
_UPDATED: Final = ("modified", "updated", "last_modified", "modified_at")
_NEVER: Final = datetime(1, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class MarkdownFile:
    """Content of a Markdown file. `text` is the complete file in UTF-8 if its frontmatter is readable.

    `heading` is the text of the H1, and `name` is the title in the frontmatter. `content` contains neither of
    them.
    """

    heading: str | None
    name: str | None
    content: str
    text: bytes | None
    tags: tuple[str, ...]
    extra: dict[str, Any]
    created_at: datetime | None
    updated_at: datetime

    @property
    def whole(self) -> str:
        """Return the text to import. Its hash shows whether the file was changed."""
        return (self.text or self.content.encode("utf-8", "replace")).decode("utf-8", "replace")


def read_markdown(file: Path, path: str) -> MarkdownFile:
    """Read a Markdown file. `path` is its path in the source.

    Raises `OSError`, or `ValueError` with the reason.
    """
    data = _as_note(_read_whole(file))
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
    """Return the bytes if they can be a note. Otherwise return their text in UTF-8 without NULs."""
    if b"\0" not in data:
        with suppress(UnicodeDecodeError):
            data.decode("utf-8")
            return data
    return clean(decode(data)).encode("utf-8", "replace")


def _first_time(extra: dict[str, Any], keys: tuple[str, ...]) -> datetime | None:
    return next((found for key in keys if (found := parse_moment(extra.get(key))) is not None), None)


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def read_moment(value: Any) -> datetime | None:
    """Return a value as a time, in UTC if it has no zone. Return None if the value is not a readable time."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_number(float(value))
    if not isinstance(value, str):
        return None
    text = value.strip()
    with suppress(ValueError):
        number = float(text) if len(text) > 8 or "." in text else math.nan  # 20240115 is a date
        if math.isfinite(number):
            return _of_number(number) if text.isascii() else None
    with suppress(ValueError, OverflowError):
        return parse_time(text)
    return None


def _of_number(number: float) -> datetime | None:
    return of_epoch(number) if math.isfinite(number) and number > 0 else None


#: Number of bytes to read for recognising the kind of a file.
HEAD: Final = 4_096
#: Folders without knowledge. They are skipped at any depth.
_PASSED_OVER: Final = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))
#: Maximum number of bytes in a Markdown file. People and agents do not write larger files.
MOST_OF_A_FILE: Final = MOST_BYTES


@frozen
class FileLine:
    """One line of a file: its number (from 1), and its bytes, or None if the line is too long."""

    number: int
    offset: int
    data: bytes | None


def read_head(path: Path, size: int = HEAD) -> bytes:
    """Return the first `size` bytes after the byte-order mark, or b"" if the file is unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as file:
            data = file.read(size)
    except OSError:
        return b""
    return data.removeprefix(codecs.BOM_UTF8)


def read_lines(file: IO[bytes], most: int = MOST_BYTES) -> Iterator[FileLine]:
    """Yield all lines that are not blank.

    A line with more than `most` bytes is yielded with `data` None and is never held in memory.
    """
    number, offset = 0, file.tell()
    while data := file.readline(most + 1):
        number, begin = number + 1, offset
        offset += len(data)
        if len(data) <= most or data.endswith(b"\n"):
            if data.strip():
                yield FileLine(number, begin, data)
            continue
        while (rest := file.readline(WINDOW)) and not rest.endswith(b"\n"):
            offset += len(rest)
        offset += len(rest)
        yield FileLine(number, begin, None)


def walk(root: Path, *, hidden: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    """Yield the path of each regular file below a folder: relative (with `/`) and absolute.

    Files are sorted by name within each folder. Hidden files and folders are skipped, except for the folders
    in `hidden`. Symlinks are not followed.
    """
    stack = [("", root)]
    while stack:
        prefix, folder = stack.pop()
        inner: list[tuple[str, Path]] = []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") and entry.name not in hidden:
                continue
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = entry.is_file(follow_symlinks=False)
            except OSError:
                continue
            if is_folder and entry.name not in _PASSED_OVER:
                inner.append((f"{prefix}{entry.name}/", Path(entry.path)))
            elif is_file:
                yield prefix + entry.name, Path(entry.path)
        stack += reversed(inner)


def _read_whole(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MOST_OF_A_FILE + 1)
    if len(data) > MOST_OF_A_FILE:
        raise ValueError(f"the file has more than {MOST_OF_A_FILE // (1024 * 1024)} MB, too much for a note")
    return data
