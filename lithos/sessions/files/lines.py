"""Reading of JSON lines from where the last read ended, in bounded memory.

A line is complete if it ends with a line break, or if it is a whole JSON object at the end of the file. A cut
last line is read once its rest is there. `Marks` recognise the bytes that were read before, so that a file
that was replaced, cut or rewritten is read from its beginning.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from attrs import define, field

#: Maximum number of bytes of a line. Longer lines, such as pasted images, are skipped.
LONGEST_LINE: Final = 4 << 20
#: Number of bytes that one call of `read_records` reads, apart from the last line.
AT_ONCE: Final = 1 << 20
#: Number of bytes at both ends of the part that was read from which the marks are computed.
_MARKED: Final = 256

TOO_LONG: Final = f"lines of more than {LONGEST_LINE >> 20} MiB"
DAMAGED: Final = "damaged lines"
NOT_UTF8: Final = "lines with bytes that are not UTF-8, which are shown as �"
NO_OBJECT: Final = "lines that are not a JSON object"


class NotReadable(Exception):
    """Error for a transcript that cannot be read at all. The message is a sentence that says why."""


@contextmanager
def opened_transcript(path: str) -> Iterator[int]:
    """Open a transcript for reading only. Links are not followed. Raises `OSError` and `NotReadable`."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotReadable("The transcript is not a regular file.")
        yield descriptor
    finally:
        os.close(descriptor)


@define(eq=False)  # bounded: the records of about `AT_ONCE` bytes, or of one document
class LineReading:
    """A read of some lines: the records, the end of the part that was read, and what was skipped.

    `is_done` is True at the end of the file. `rest` is the number of bytes of a cut last line.
    """

    offset: int
    records: list[dict[str, Any]] = field(factory=list)
    skipped: Counter[str] = field(factory=Counter)
    is_done: bool = False
    rest: int = 0


def marks_at(descriptor: int, offset: int) -> tuple[str, ...]:
    """Return the marks of the part before an offset: digests of its first and last bytes."""
    if not offset:
        return ()
    first = os.pread(descriptor, min(_MARKED, offset), 0)
    last = os.pread(descriptor, min(_MARKED, offset), max(0, offset - _MARKED))
    return (str(offset), _digest(first), _digest(last))


def has_marks(descriptor: int, marks: tuple[str, ...]) -> bool:
    """Return whether a file still begins with the part that has these marks."""
    return not marks or marks_at(descriptor, int(marks[0])) == marks


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def check_encoding(descriptor: int) -> None:
    """Raise `NotReadable` if a file begins like UTF-16 or UTF-32."""
    begin = os.pread(descriptor, 4, 0)
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")) or begin[:2] in (b"\0{", b"{\0"):
        raise NotReadable("The transcript is UTF-16 or UTF-32. Only UTF-8 is read.")


def read_records(descriptor: int, offset: int) -> LineReading:
    """Read about `AT_ONCE` bytes of complete lines from an offset."""
    reading = LineReading(offset)
    data = os.pread(descriptor, AT_ONCE, offset)
    while b"\n" not in data and len(data) < LONGEST_LINE:
        more = os.pread(descriptor, AT_ONCE, offset + len(data))
        if not more:
            return _read_end(reading, data)
        data += more
    end = data.rfind(b"\n") + 1
    if not end:
        return _skip_line(descriptor, reading, len(data))
    for line in data[:end].split(b"\n"):
        take_line(reading, line)
    reading.offset += end
    reading.is_done = len(os.pread(descriptor, 1, reading.offset)) == 0
    return reading


def _read_end(reading: LineReading, data: bytes) -> LineReading:
    """Take the last line if it is a whole object. Otherwise its rest will follow."""
    reading.is_done = True
    if not data.strip():
        reading.offset += len(data)
        return reading
    whole = LineReading(0)
    take_line(whole, data)
    if whole.records:
        reading.records += whole.records
        reading.skipped += whole.skipped
        reading.offset += len(data)
    else:
        reading.rest = len(data)
    return reading


def _skip_line(descriptor: int, reading: LineReading, known: int) -> LineReading:
    """Move behind a line that is too long. Nothing of it is kept in memory.

    If the line has no end yet, the offset stays, so that the line is counted once.
    """
    at = reading.offset + known
    while data := os.pread(descriptor, AT_ONCE, at):
        end = data.find(b"\n") + 1
        if end:
            reading.offset = at + end
            reading.skipped[TOO_LONG] += 1
            return reading
        at += len(data)
    reading.is_done, reading.rest = True, at - reading.offset
    return reading


def take_line(reading: LineReading, line: bytes) -> None:
    """Add the record of a line, or count why it is skipped."""
    line = line.strip()
    if not line:
        return
    if len(line) > LONGEST_LINE:
        reading.skipped[TOO_LONG] += 1
        return
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = line.decode("utf-8", "replace")
        reading.skipped[NOT_UTF8] += 1
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        reading.skipped[DAMAGED] += 1
        return
    if isinstance(record, dict):
        reading.records.append(record)
    else:
        reading.skipped[NO_OBJECT] += 1
