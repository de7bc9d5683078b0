"""Length and size limits of tool arguments, metadata, and frontmatter that Lithos keeps in memory.

The texts of a tool call are checked. Metadata is checked after merging as well, because many small patches
may make it large (docs/spec/tools.md §1.2). Memory, the catalogue and the databases contain only a limited
part of a file's frontmatter. A file is never refused or changed because its frontmatter is larger: the rest
stays in the file, byte for byte, and tools cannot see it. These limits are wider than those of tool calls.
Any value that a tool stored can therefore be read back, and so can most values that earlier versions
accepted.
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
#: Maximum size of metadata as JSON in UTF-8 bytes.
METADATA_BYTES: Final = 64 * 1024
#: Maximum number of values in one JSON text from a caller. No valid tool arguments contain more.
JSON_VALUES: Final = 40_000
_PART: Final = 64 * 1024


class Newest(OrderedDict[K, V]):
    """A dict of at most `most` entries.

    When it is full, the entry that was set or moved to the end first is dropped.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        """Set an entry, which becomes the newest entry."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)


class Fitting(Generic[K, V]):
    """A cache with a total size of at most `room`. It drops the least recently used entry first."""

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
    """Counter for the values of a JSON text.

    It reads parts as they arrive, in a few fast passes, without parsing.

    It counts commas and opening brackets outside of strings, which are at least as many as the values. In
    invalid JSON it counts as far as a parser would read.
    """

    limit: int
    _values: int = 0
    _quotes: int = 0
    _is_escaped: bool = False

    def exceeds(self, part: bytes) -> bool:
        """Add a part, and return whether the text now has more than `limit` values."""
        # After escapes are removed, every quote begins or ends a string.
        bare = part[self._is_escaped :].replace(rb"\\", b"").replace(rb"\"", b"")
        if part:
            self._is_escaped = bare.endswith(b"\\")
        pieces = bare.split(b'"')
        outside = b"".join(pieces[self._quotes % 2 :: 2])
        self._quotes += len(pieces) - 1
        self._values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        # A string is a value or the name of a value.
        return self._values > self.limit or self._quotes > 4 * self.limit


def holds_more_values(text: bytes, limit: int) -> bool:
    """Return whether a JSON text has more than `limit` values. A text too short for that is not scanned."""
    if len(text) <= limit:
        return False
    count = ValueCount(limit)
    return any(count.exceeds(text[begin : begin + _PART]) for begin in range(0, len(text), _PART))


def check_text(name: str, value: str, limit: int) -> None:
    """Raise `InvalidInput` if `value`, the argument `name`, has more than `limit` characters."""
    if len(value) > limit:
        raise InvalidInput(
            f"{name} has {len(value):,} characters, and at most {limit:,} are accepted. Shorten "
            "it and send it again. Long text belongs in the content of a note."
        )


#: Maximum length of an author, a tag, a namespace and similar names in characters. Longer names are
#: truncated.
NAME_KEPT: Final = 1_000
#: Maximum length of an id or a web address in characters. Longer values are dropped, because a truncated one
#: would have another meaning.
ID: Final = 200
URL: Final = 8_192
#: Maximum length of a summary in characters.
SUMMARY: Final = 20_000
#: Maximum number of items in a list, and maximum number of characters in all of them together.
ITEMS: Final = 20_000
ITEMS_CHARACTERS: Final = 256_000
#: Maximum size of the frontmatter keys that Lithos does not own, as JSON in bytes. Entries that do not fit
#: are left out.
EXTRA_BYTES: Final = 256 * 1024
#: Length in characters up to which frontmatter without aliases always fits: the worst JSON escape takes six
#: bytes for one character.
_SURELY_SMALL: Final = EXTRA_BYTES // 6


def cut_name(text: str) -> str:
    """Trim a name and truncate it to `NAME_KEPT` characters. Then trim it again, as reading it back would."""
    return text.strip()[:NAME_KEPT].rstrip()


def cut_items(items: Iterable[str]) -> Iterator[str]:
    """Yield the items truncated like names, without empty items, and only as many as fit."""
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
    """Keep the entries that fit, in order. `source` is the YAML text from which they were read."""
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
    """Raise `InvalidInput` if a patch makes metadata grow beyond its limit.

    Metadata that was already larger, from an earlier version or a person's editor, may stay or shrink.
    """
    size = json_bytes(merged)
    if size > METADATA_BYTES and size > json_bytes(old):
        raise InvalidInput(
            f"metadata would have {size:,} bytes of JSON, and at most {METADATA_BYTES:,} are "
            "accepted. Set keys that are no longer needed to null, or put long text into the "
            "content of a note."
        )
