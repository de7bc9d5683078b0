"""Length and size limits: of tool arguments, of metadata, and of the frontmatter that is kept of a file.

The texts of a tool call are checked, and so is metadata after merging, as many small patches may make it
large (docs/spec/tools.md §1.2). Only a limited part of a file's frontmatter is kept in memory, the catalogue
and the databases: a file is never refused or changed for being larger. The rest stays in the file, byte for
byte, and is unknown to tools. These limits are wider than those of tool calls, so that any value a tool
stored reads back, and so do most values that earlier versions accepted.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import define

from lithos.kernel.values.errors import InvalidInput

K = TypeVar("K")
V = TypeVar("V")

#: Characters.
TITLE: Final = 1_000
NAME: Final = 200
DESCRIPTION: Final = 20_000
OUTCOME: Final = 20_000
#: UTF-8 bytes of its JSON.
METADATA_BYTES: Final = 64 * 1024
#: Maximum number of values of one JSON text of a caller: all that the limits of any tool's arguments allow.
JSON_VALUES: Final = 40_000
_PART: Final = 64 * 1024


class Newest(OrderedDict[K, V]):
    """A dict of at most `most` entries: when it is full, the entry set or moved to the end first is
    dropped.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, which is the newest then."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)


class Fitting(Generic[K, V]):
    """A cache of entries that fit into `room` together; the least recently used entry is dropped first."""

    def __init__(self, room: int, size: Callable[[V], int]) -> None:
        self._left = room
        self._size = size
        self._kept: OrderedDict[K, V] = OrderedDict()

    def _keep(self, key: K, value: V) -> None:
        self.forget(key)
        self._kept[key] = value
        self._left -= self._size(value)
        while self._left < 0:
            self.forget(next(iter(self._kept)))

    def forget(self, key: K) -> None:
        """Drop the entry of a key."""
        old = self._kept.pop(key, None)
        self._left += self._size(old) if old is not None else 0


@define
class ValueCount:
    """Counts the values of a JSON text as its parts arrive, without parsing it, in a few passes of C.

    It counts commas and opening brackets outside of strings, which are at least as many as the values. In
    invalid JSON it counts as far as a parser would get.
    """

    limit: int
    _values: int = 0
    _quotes: int = 0
    _is_escaped: bool = False

    def exceeds(self, part: bytes) -> bool:
        """Whether the text holds more than `limit` values with this part."""
        # Without escapes every quote begins or ends a string.
        bare = part[self._is_escaped :].replace(rb"\\", b"").replace(rb"\"", b"")
        if part:
            self._is_escaped = bare.endswith(b"\\")
        pieces = bare.split(b'"')
        outside = b"".join(pieces[self._quotes % 2 :: 2])
        self._quotes += len(pieces) - 1
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        # A string is a value, or the name of one.
        return self._values > self.limit or self._quotes > 4 * self.limit


def holds_more_values(text: bytes, limit: int) -> bool:
    """Return whether a JSON text holds more than `limit` values; a shorter text is not scanned."""
    if len(text) <= limit:
        return False
    count = ValueCount(limit)
    return any(count.exceeds(text[begin : begin + _PART]) for begin in range(0, len(text), _PART))


def check_text(name: str, value: str, limit: int) -> None:
    """Raise `InvalidInput` when `value`, the argument `name`, has more than `limit` characters."""
    if len(value) > limit:
        raise InvalidInput(
            f"{name} has {len(value):,} characters; at most {limit:,} are accepted. "
            "Shorten it and send it again; long text belongs in the content of a note."
        )


#: Characters of an author, a tag, a namespace and the like; the rest is truncated.
NAME_KEPT: Final = 1_000
#: Characters of an id and of a web address: part of one would be another, so a longer one is dropped.
ID: Final = 200
URL: Final = 8_192
#: Characters of a summary.
SUMMARY: Final = 20_000
#: Items of a list, and their characters together.
ITEMS: Final = 20_000
ITEMS_CHARACTERS: Final = 256_000
#: Bytes of JSON of the keys that Lithos does not own; the entries that do not fit are left out.
EXTRA_BYTES: Final = 256 * 1024
#: Without aliases no frontmatter this small can hold more: the worst escape takes six bytes for one.
_SURELY_SMALL: Final = EXTRA_BYTES // 6


def cut_name(text: str) -> str:
    """Trim and truncate to `NAME_KEPT` characters; then trim again, as it would be on reading."""
    return text.strip()[:NAME_KEPT].rstrip()


def cut_items(items: Iterable[str]) -> Iterator[str]:
    """Truncate the items as names, drop empty ones, and keep as many as fit."""
    characters = kept = 0
    for item in items:
        text = cut_name(item)
        if not text:
            continue
        characters, kept = characters + len(text), kept + 1
        if kept > ITEMS or characters > ITEMS_CHARACTERS:
            return
        yield text


def cut_extra(extra: dict[str, Any], source: str) -> dict[str, Any]:
    """Keep the entries that fit, in order; `source` is the YAML they were read from."""
    is_small = len(source) <= _SURELY_SMALL and "&" not in source
    if is_small or json_bytes(extra) <= EXTRA_BYTES:
        return extra
    kept: dict[str, Any] = {}
    left = EXTRA_BYTES
    for key, value in extra.items():
        size = json_bytes({key: value})
        if size <= left:
            kept[key] = value
            left -= size
    return kept


def json_bytes(value: Mapping[str, Any] | list[Any]) -> int:
    """Return the size of the value as JSON in UTF-8 bytes."""
    plain = value if isinstance(value, list) else dict(value)
    return len(json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def check_merged(old: Mapping[str, Any], merged: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` when a patch makes metadata grow beyond its limit.

    Metadata that was larger already, from an earlier version or a person's editor, may stay and shrink.
    """
    size = json_bytes(merged)
    if size > METADATA_BYTES and size > json_bytes(old):
        raise InvalidInput(
            f"metadata would have {size:,} bytes of JSON; at most {METADATA_BYTES:,} are accepted. "
            "Set keys that are not needed any more to null, or put long text into the content of a note."
        )
