"""Length and size limits of tool arguments, of metadata, and of frontmatter in memory.

The texts of a tool call are checked. Metadata is checked again after merging, because many small patches may
make it large (docs/spec/tools.md §1.2). Only a limited part of a file's frontmatter is stored in memory, the
catalogue and the databases. A file with larger frontmatter is never refused or changed: the rest stays in the
file, byte for byte, and tools cannot see it. These limits are higher than the limits of tool calls. Any value
that a tool stored can therefore be read back, and so can most values that earlier versions accepted.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from attrs import define

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.graphemes import beginning

K = TypeVar("K")
V = TypeVar("V")

#: Characters.
TITLE: Final = 1_000
NAME: Final = 200
DESCRIPTION: Final = 20_000
OUTCOME: Final = 20_000
#: Maximum size of metadata as JSON in UTF-8 bytes.
METADATA_BYTES: Final = 64 * 1024
#: Maximum number of values in one JSON text from a caller. No valid tool arguments contain more.
JSON_VALUES: Final = 40_000
_PART: Final = 64 * 1024


class Newest(OrderedDict[K, V]):
    """A dict with at most `most` entries.

    If a `Newest` is full, it drops the entry that was set or moved to the end first.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry and make it the newest entry."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)


class Fitting(Generic[K, V]):
    """A cache with a total size of at most `room`. It drops the least recently used entries first."""

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
        """Remove the entry of a key."""
        old = self._kept.pop(key, None)
        self._left += self._size(old) if old is not None else 0


@define
class ValueCount:
    """A counter for the values in a JSON text.

    The counter accepts the text in parts as they arrive, and scans each part in a few fast passes without
    parsing.

    The counter counts commas and opening brackets outside of strings. The number of these characters is at
    least the number of values. In invalid JSON, it counts as far as a parser would read.
    """

    limit: int
    _values: int = 0
    _quotes: int = 0
    _is_escaped: bool = False

    def exceeds(self, part: bytes) -> bool:
        """Add a part of the text. Return whether the text now has more than `limit` values."""
        # Without escapes, every quote begins or ends a string.
        bare = part[self._is_escaped :].replace(rb"\\", b"").replace(rb"\"", b"")
        if part:
            self._is_escaped = bare.endswith(b"\\")
        pieces = bare.split(b'"')
        outside = b"".join(pieces[self._quotes % 2 :: 2])
        self._quotes += len(pieces) - 1
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        # A string is either a value or the name of a value.
        return self._values > self.limit or self._quotes > 4 * self.limit


def holds_more_values(text: bytes, limit: int) -> bool:
    """Return whether a JSON text has more than `limit` values.

    A text that is too short for them is not scanned.
    """
    if len(text) <= limit:
        return False
    count = ValueCount(limit)
    return any(count.exceeds(text[begin : begin + _PART]) for begin in range(0, len(text), _PART))


def check_text(name: str, value: str, limit: int) -> None:
    """Raise `InvalidInput` if the argument `name` has a `value` with more than `limit` characters."""
    if len(value) > limit:
        raise InvalidInput(
            f"{name} has {len(value):,} characters, and at most {limit:,} are accepted. Shorten "
            "it and send it again. Long text belongs in the content of a note."
        )


#: Maximum characters of an author, a tag, a namespace and similar names. Longer names are truncated.
NAME_KEPT: Final = 1_000
#: Maximum characters of an id or a web address. Longer values are dropped, because a truncated value would
#: mean something else.
ID: Final = 200
URL: Final = 8_192
#: Maximum characters of a summary.
SUMMARY: Final = 20_000
#: Maximum number of items in a list, and maximum number of characters of all its items together.
ITEMS: Final = 20_000
ITEMS_CHARACTERS: Final = 256_000
#: Maximum size in bytes, as JSON, of the frontmatter keys that Lithos does not own. Entries that do not fit
#: are left out.
EXTRA_BYTES: Final = 256 * 1024
#: Number of characters up to which frontmatter without aliases always fits. The longest JSON escape takes six
#: bytes per character.
_SURELY_SMALL: Final = EXTRA_BYTES // 6


def cut_name(text: str) -> str:
    """Trim a name and truncate it to `NAME_KEPT` characters. Trim it again, because reading it back would."""
    return beginning(text.strip(), NAME_KEPT).rstrip()


def cut_items(items: Iterable[str]) -> Iterator[str]:
    """Yield the items, truncated like names.

    Empty items are left out, and so are items that exceed the limits.
    """
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
    """Return the entries that fit, in order. `source` is the YAML text from which they were read."""
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
    """Raise `InvalidInput` if a patch makes metadata larger than its limit.

    Metadata that already exceeds the limit, from an earlier version or a person's editor, may stay or shrink.
    """
    size = json_bytes(merged)
    if size > METADATA_BYTES and size > json_bytes(old):
        raise InvalidInput(
            f"metadata would have {size:,} bytes of JSON, and at most {METADATA_BYTES:,} are "
            "accepted. Set keys that are no longer needed to null, or put long text into the "
            "content of a note."
        )
