"""Files of a source: bytes in any encoding as UTF-8, lines of bounded length, folders in a fixed order."""

from __future__ import annotations

import codecs
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from attrs import frozen

from lithos.core.formats.json_items import MOST_BYTES, WINDOW

#: Bytes that tell what a file is.
HEAD: Final = 4_096
#: Folders that hold no knowledge, whatever they are in.
_PASSED_OVER: Final = frozenset(("node_modules", "__pycache__", "venv", "site-packages"))
#: A Markdown file above this is none that a person or an agent wrote.
MOST_OF_A_FILE: Final = MOST_BYTES


@frozen
class Line:
    """A line of a file: its number from 1 and its bytes; None for one that is too long."""

    number: int
    offset: int
    data: bytes | None


def read_head(path: Path, size: int = HEAD) -> bytes:
    """The first bytes of a file, in UTF-8 where they were UTF-16; b"" for what cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as file:
            data = file.read(size)
    except OSError:
        return b""
    encoding = _wide_encoding(data)
    if encoding:
        data = codecs.getincrementaldecoder(encoding)("replace").decode(data).encode("utf-8", "replace")
    return data.removeprefix(codecs.BOM_UTF8)


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16 of a text that begins so, with or without its byte-order mark; None for any other."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0] and head[2]:
        return "utf-16-le"
    if len(head) >= 4 and head[0] == head[2] == 0 and head[1] and head[3]:
        return "utf-16-be"
    return None


@contextmanager
def open_as_utf8(path: Path) -> Iterator[IO[bytes]]:
    """The file for reading, behind its byte-order mark; one in UTF-16 as a temporary copy in UTF-8.

    Raises `OSError`.
    """
    with path.open("rb") as file:
        encoding = _wide_encoding(file.read(4))
        file.seek(0)
        if encoding is None:
            if file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            decoder = codecs.getincrementaldecoder(encoding)("replace")
            while chunk := file.read(WINDOW):
                copy.write(decoder.decode(chunk).encode("utf-8", "replace"))
            copy.write(decoder.decode(b"", True).encode("utf-8", "replace"))
            copy.seek(0)
            yield copy


def read_lines(file: IO[bytes], most: int = MOST_BYTES) -> Iterator[Line]:
    """The lines that are not blank; one of more than `most` bytes is passed over, not held."""
    number, offset = 0, file.tell()
    while data := file.readline(most + 1):
        number, begin = number + 1, offset
        offset += len(data)
        if len(data) <= most or data.endswith(b"\n"):
            if data.strip():
                yield Line(number, begin, data)
            continue
        while (rest := file.readline(WINDOW)) and not rest.endswith(b"\n"):
            offset += len(rest)
        offset += len(rest)
        yield Line(number, begin, None)


def walk(root: Path, *, hidden: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    """Regular files below a folder as relative path (with `/`) and path, sorted within each folder.

    Hidden files and folders are passed over but for the folders named in `hidden`; links are not followed.
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


def read_whole(path: Path) -> bytes:
    """The bytes of a text file; raises `OSError`, and `ValueError` for one of more than 32 MB."""
    with path.open("rb") as file:
        data = file.read(MOST_OF_A_FILE + 1)
    if len(data) > MOST_OF_A_FILE:
        raise ValueError(f"it has more than {MOST_OF_A_FILE // (1024 * 1024)} MB, too much for a note")
    return data
