"""Transcripts that are read as a whole when they change: one JSON document, or compressed JSON lines."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, Final

from lithos.sessions.files.lines import (
    LONGEST_LINE,
    TOO_LONG,
    LineReading,
    NotReadable,
    check_encoding,
    opened_transcript,
    take_line,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Maximum number of bytes of a document, and of unpacked JSON lines.
LARGEST_DOCUMENT: Final = 16 << 20
LARGEST_UNPACKED: Final = 64 << 20
CUT: Final = f"compressed transcripts after {LARGEST_UNPACKED >> 20} MiB"


def read_document(path: str) -> LineReading:
    """Return the records of a document. Raises `OSError` and `NotReadable`."""
    with opened_transcript(path) as descriptor:
        if path.endswith(".zst"):
            return _read_packed(descriptor)
        check_encoding(descriptor)
        size = os.fstat(descriptor).st_size
        if size > LARGEST_DOCUMENT:
            raise NotReadable(
                f"The transcript has {size >> 20} MiB. Documents above {LARGEST_DOCUMENT >> 20} MiB are not "
                "read."
            )
        with open(descriptor, "rb", closefd=False) as file:
            return LineReading(size, [_parse(file.read(LARGEST_DOCUMENT))], is_done=True)


def _parse(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise NotReadable("The transcript is not valid JSON. It may be incomplete.") from None
    if not isinstance(found, dict):
        raise NotReadable("The transcript is JSON, but not an object.")
    return found


def _read_packed(descriptor: int) -> LineReading:
    reading, unpacked = LineReading(0, is_done=True), 0
    try:
        with open(descriptor, "rb", closefd=False) as file, zstd.ZstdFile(file) as stream:
            lines = io.BufferedReader(stream)
            while line := lines.readline(LONGEST_LINE + 1):
                unpacked += len(line)
                if unpacked > LARGEST_UNPACKED:
                    reading.skipped[CUT] += 1
                    break
                if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                    reading.skipped[TOO_LONG] += 1
                    while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        unpacked += len(rest)
                    continue
                take_line(reading, line)
    except (zstd.ZstdError, EOFError) as damage:
        if not reading.records:
            raise NotReadable(f"The transcript cannot be unpacked: {damage}.") from None
        reading.skipped["compressed transcripts that end too early"] += 1
    return reading
