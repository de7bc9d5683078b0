"""Parsers for texts, names and dates of other programs, in all encodings and forms."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import NAME, TITLE
from lithos.kernel.values.times import EPOCH, parse_time
from lithos.text.markdown import one_line

#: Maximum number of characters in a text that may be a date.
_LONGEST_DATE: Final = 64
_DATE_FORMATS: Final = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d", "%Y-%m-%d %H:%M:%S %Z", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M",
    "%d.%m.%Y", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y %I:%M %p", "%B %d, %Y at %I:%M %p",
)  # fmt: skip
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REPLACED: Final = "\ufffd"
_NOT_WORD: Final = re.compile(r"[^\w]+")
_SPACE: Final = re.compile(r"\s+")
#: Relation names of other programs, with the corresponding names in Lithos.
_RELATIONS: Final = {"relates_to": "related_to", "related": "related_to", "is_related_to": "related_to"}
_UNNAMED: Final = "related_to"
#: Lower bounds and divisors that distinguish nano-, micro- and milliseconds from seconds, largest first.
_EPOCH_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def decode(data: bytes) -> str:
    """Decode bytes as UTF-8, as UTF-16 with a byte-order mark, or otherwise as Windows-1252.

    Windows-1252 contains all printable Latin-1 characters. Decoding never fails: undefined bytes become
    U+FFFD.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def clean(text: str) -> str:
    """Return `text` in the form of a note: no NULs, lone surrogates as U+FFFD, line breaks as `\\n`."""
    if "\0" in text:
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else _SURROGATE.sub(_REPLACED, text)


def clean_line(value: Any, limit: int = TITLE) -> str:
    """Return a text as one line of at most `limit` characters. Return "" if the value is not a text."""
    if not isinstance(value, str):
        return ""
    return beginning(one_line(clean(value[: 8 * limit])), limit).rstrip()


def parse_moment(value: Any) -> datetime | None:
    """Parse a Unix time (seconds to nanoseconds), an ISO 8601, RFC 2822 or common date. Return UTC.

    Return None if the value is not a date.

    A time without a zone is taken as UTC.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return of_epoch(value)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_DATE:
        return None
    text = value.strip()
    for read in (parse_time, lambda number: of_epoch(float(number)), _other_date, _mail_date):
        try:
            found = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if found is not None:
            return found
    return None


def of_epoch(number: float) -> datetime | None:
    """Convert a Unix time to a datetime. The size of the number shows its unit (seconds to nanoseconds)."""
    try:
        seconds = float(number)
        for least, divisor in _EPOCH_UNITS:
            if abs(seconds) >= least:
                seconds /= divisor
                break
        return EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def _mail_date(text: str) -> datetime | None:
    moment = parsedate_to_datetime(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _other_date(text: str) -> datetime | None:
    for pattern in _DATE_FORMATS:
        try:
            return datetime.strptime(text, pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def relation_type(text: str) -> str:
    """Return the edge type for a relation: lower case, words joined by `_`, at most `NAME` characters.

    `Relates to` becomes `related_to`, which is an edge type of Lithos. A name without letters also becomes
    `related_to`.
    """
    name = _NOT_WORD.sub("_", clean(text[: 2 * NAME]).strip().lower()).strip("_")
    name = beginning(name, NAME).rstrip("_")
    return _RELATIONS.get(name, name) or _UNNAMED


def tag_of(text: str) -> str:
    """Return a name as a tag without white space, leading `#` and brackets, or "" if nothing remains."""
    name = _SPACE.sub("-", clean(text[: 2 * NAME]).strip().lstrip("#").strip())
    return beginning(name.strip("[](){},;:\"'").strip("-"), NAME)


def tags_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names as unique, non-empty tags."""
    return tuple(dict.fromkeys(tag for name in names if (tag := tag_of(name))))


def digest(parts: Iterable[str]) -> str:
    """Return a hexadecimal hash of several texts.

    Moving characters from one text to the next changes the hash.
    """
    found = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()[:32]
