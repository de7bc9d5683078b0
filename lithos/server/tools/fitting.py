"""Size limit for answers: `server.max_answer_chars` characters of JSON (docs/spec/vault.md §4).

Rows and contents are cut if the caller can continue (`truncated`, `next_offset`). Secondary lists are cut to
200 rows, and their total is added (`links_total`). If the answer is still too long, its largest values are
shortened and listed in `shortened`. Each value is measured once, and rows are measured only up to the limit.
The work therefore depends on the size of the answer and not on the size of the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from attrs import frozen
from pydantic_core import to_json

from lithos.kernel.values.graphemes import beginning
from lithos.text.snippet import cut

#: Maximum number of rows in a secondary list.
MOST_BESIDE: Final = 200
#: Number of characters reserved for the keys that report a cut.
_RESERVE: Final = 600
#: Number of characters of a text that are measured at once, and number of rows of a short answer.
_BLOCK: Final = 4_096
_ROWS_AT_ONCE: Final = 10
#: Minimum number of characters of a shortened value. If there is less space, the value is left out.
_LEAST: Final = 8
#: Maximum number of paths listed in `shortened`.
_NAMED: Final = 20

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@frozen(kw_only=True)
class CuttableAnswer:
    """Parts of a tool's answer that may be long. Each path consists of keys joined by dots.

    `rows` are lists (or one object) through which `offset` pages together. A page has at most `most` rows of
    each. `totals` says where their totals are: `all` is one `total`, `each` is a total next to each list,
    and `none` means no totals. `content` is a text that continues at `offset`. `beside` are lists that are
    cut without paging.
    """

    rows: tuple[str, ...] = ()
    most: int | None = None
    totals: str = "all"
    content: str = ""
    beside: tuple[str, ...] = ()


UNPAGED: Final = CuttableAnswer()


class AnswerWithImage(dict[str, Any]):
    """Answer with an image. Clients get it as MCP image content after the text."""

    def __init__(self, row: Mapping[str, Any], media_type: str, data: str) -> None:
        """Create the answer from its row and an image. `data` is the image in Base64."""
        super().__init__(row)
        self.media_type = media_type
        self.data = data

    def content(self) -> dict[str, Any]:
        """Return the image as an MCP content block."""
        return {"type": "image", "data": self.data, "mimeType": self.media_type}


def cut_warning(length: int) -> dict[str, Any]:
    """Return the warning that an answer contains only a part of a note.

    `length` is the length of the whole content.
    """
    return {
        "kind": "cut",
        "length": length,
        "message": f"This is a part of {length:,} characters. To read on, pass offset = "
        "next_offset. Do not write this part with lithos_write, which replaces the "
        "whole text: read all parts first, then change the note.",
    }


def fit(
    answer: Mapping[str, Any], paged: CuttableAnswer, limit: int, offset: int, *, is_skipped: bool
) -> dict[str, Any]:
    """Return the answer from `offset`, in at most `limit` characters of JSON.

    If `limit` is 0, there is no limit.

    `is_skipped` says whether the tool has already applied the offset. Values are copied before a change.
    """
    fitted = _copy(answer, (*paged.rows, *paged.beside, paged.content))
    skip = 0 if is_skipped else offset
    lists = {path: _get(fitted, path) for path in (*paged.rows, *paged.beside)}
    rows = {path: _as_rows(whole)[skip:] for path in paged.rows if (whole := lists[path]) is not None}
    _tell_totals(fitted, paged, {path: skip + len(some) for path, some in rows.items()})
    if not skip and limit and _is_small(fitted, lists.values(), limit - _RESERVE):
        return fitted
    if not limit:
        for path, some in rows.items():
            _put_rows(fitted, path, some)
        return fitted
    for path in paged.beside:
        _cut_beside(fitted, path)
    text: str | None = _get(fitted, paged.content) if paged.content else None
    for path in rows:
        _put_rows(fitted, path, [])
    if text is not None:
        _set(fitted, paged.content, "")
    room = limit - _RESERVE
    shortener = _Shortener()
    fitted = shortener.shorten_object(fitted, room // 2 if rows or text is not None else room)
    room -= size_of(fitted)
    if rows:
        _fill_rows(fitted, rows, paged.most, room, offset, shortener)
    if text is not None:
        _fill_content(fitted, paged.content, text, room, offset)
    if shortener.paths:
        fitted |= {"truncated": True, "shortened": shortener.paths}
    return fitted


def _is_small(answer: Mapping[str, Any], lists: Iterable[Any], room: int) -> bool:
    """Return True if the answer has no list to cut and certainly fits into `room` characters of JSON.

    A fast encoder estimates the size in UTF-8 bytes, in a tenth of the time. There is at least one byte per
    character. Lists are encoded a few rows at a time, so the estimate ends soon after the limit.
    """
    if any(len(value) > MOST_BESIDE for value in lists if value is not None):
        return False
    short, long = dict(answer), []
    for key, value in answer.items():
        if isinstance(value, str) and len(value) > room:
            return False
        if isinstance(value, list) and len(value) > _ROWS_AT_ONCE:
            long.append(short.pop(key))
            room -= len(key) + 4
    blocks = (rows[at : at + _ROWS_AT_ONCE] for rows in long for at in range(0, len(rows), _ROWS_AT_ONCE))
    try:
        for part in chain([short], blocks):
            room -= len(to_json(part))
            if room < 0:
                return False
    except ValueError:  # the standard encoder measures values that the fast encoder does not support
        return False
    return True


def _tell_totals(fitted: dict[str, Any], paged: CuttableAnswer, counts: Mapping[str, int]) -> None:
    if paged.totals == "all":
        for count in list(counts.values())[:1]:
            fitted.setdefault("total", count)
    elif paged.totals == "each":
        for path, count in counts.items():
            _set(fitted, f"{path}_total", count)


def cut_lists(answer: dict[str, Any], paths: Sequence[str], room: int) -> None:
    """Cut lists to `room` characters of JSON in total, and add their totals.

    Lists are filled in the order of `paths`.
    """
    for path in paths:
        whole, kept = answer.get(path, ()), 0
        while kept < len(whole) and (size := size_of(whole[kept]) + 1) <= room:
            room, kept = room - size, kept + 1
        if kept < len(whole):
            answer |= {path: whole[:kept], f"{path}_total": len(whole)}


def _cut_beside(fitted: dict[str, Any], path: str) -> None:
    whole = _get(fitted, path)
    if whole is not None and len(whole) > MOST_BESIDE:
        _set(fitted, path, whole[:MOST_BESIDE])
        _set(fitted, f"{path}_total", len(whole))


def _fill_rows(
    fitted: dict[str, Any],
    rows: Mapping[str, Sequence[Any]],
    most: int | None,
    room: int,
    offset: int,
    shortener: _Shortener,
) -> None:
    """Add as many rows of each list as there is space for. At least one row is added."""
    longest = max(map(len, rows.values()))
    page = longest if most is None else min(longest, most)
    count = used = 0
    while count < page:
        used += sum(size_of(some[count]) + 1 for some in rows.values() if count < len(some))
        if used > room:
            break
        count += 1
    if page and not count:
        count, share = 1, room // len(rows)
        rows = {
            path: [shortener.shorten(row, share - 1, path) for row in some[:1]] for path, some in rows.items()
        }
    for path, some in rows.items():
        _put_rows(fitted, path, some[:count])
    if count < longest:
        fitted |= {"truncated": True, "next_offset": offset + count}


def _fill_content(fitted: dict[str, Any], path: str, text: str, room: int, offset: int) -> None:
    """Add as much of a text as there is space for. It is cut at a paragraph."""
    shown = _longest_beginning(text, room)
    if shown == len(text):
        _set(fitted, path, text)
        return
    passage, end = cut(text, max(1, shown))
    _set(fitted, path, passage)
    holder = _holder(fitted, path)
    base = offset if holder is fitted else 0
    holder |= {"truncated": True, "next_offset": base + end}
    if holder is fitted and not any(each.get("kind") == "cut" for each in fitted.get("warnings", ())):
        fitted["warnings"] = [*fitted.get("warnings", ()), cut_warning(base + len(text))]


class _Shortener:
    """Shortener for values, which remembers the paths of the values it has changed."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def shorten(self, value: Any, room: int, path: str) -> Any:
        """Return the value in at most `room` characters of JSON. The largest parts are shortened first."""
        if isinstance(value, dict):
            return self.shorten_object(value, room, path)
        if size_of(value) <= room:
            return value
        self._name(path)
        if isinstance(value, str):
            return beginning(value, _longest_beginning(value, room - 5)) + "..."
        if not isinstance(value, list | tuple):
            return None
        kept, used = 0, 2
        while kept < len(value) and (used := used + size_of(value[kept]) + 1) <= room:
            kept += 1
        return list(value[:kept])

    def shorten_object(self, value: dict[str, Any], room: int, path: str = "") -> dict[str, Any]:
        """Shorten the members of an object until it fits into `room` characters.

        Members that are smaller than an equal share are not changed. Larger members share the remaining
        space.
        """
        if size_of(value) <= room:
            return value
        keys = {key: len(_encode(key)) + 2 for key in value}
        sizes = {key: keys[key] + size_of(member) for key, member in value.items()}
        left, count, share = room - 2, len(value), 0
        for size in sorted(sizes.values()):
            share = left // count
            if size > share:
                break
            left, count = left - size, count - 1
        result: dict[str, Any] = {}
        for key, member in value.items():
            inner = f"{path}.{key}" if path else str(key)
            if sizes[key] <= share:
                result[key] = member
            elif share - keys[key] >= _LEAST:
                result[key] = self.shorten(member, share - keys[key], inner)
            else:
                self._name(inner)
        return result

    def _name(self, path: str) -> None:
        if len(self.paths) < _NAMED:
            self.paths.append(path[:200])


def size_of(value: Any) -> int:
    """Return the size of a value in characters of JSON. A long text is measured in pieces."""
    if isinstance(value, str) and len(value) > _BLOCK:
        return 2 + sum(len(_encode(value[at : at + _BLOCK])) - 2 for at in range(0, len(value), _BLOCK))
    return len(_encode(value))


def _longest_beginning(text: str, room: int) -> int:
    """Return how many characters of a text have a JSON form of at most `room` characters.

    The quotes are not counted.
    """
    used = at = 0
    most = min(len(text), max(0, room))
    while at < most:
        block = text[at : min(at + _BLOCK, most)]
        size = len(_encode(block)) - 2
        if used + size > room:
            for character in block:
                used += len(_encode(character)) - 2
                if used > room:
                    return at
                at += 1
        used += size
        at += len(block)
    return most


def _as_rows(whole: Any) -> Sequence[Any]:
    return list(whole.items()) if isinstance(whole, dict) else whole


def _put_rows(fitted: dict[str, Any], path: str, rows: Sequence[Any]) -> None:
    is_object = isinstance(_get(fitted, path), dict)
    _set(fitted, path, dict(rows) if is_object else list(rows))


def _copy(answer: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return a copy of the answer. The objects on the given paths are copied too."""
    copied = dict(answer)
    for first in {path.split(".")[0] for path in paths if "." in path}:
        if isinstance(copied.get(first), dict):
            copied[first] = dict(copied[first])
    return copied


def _holder(fitted: dict[str, Any], path: str) -> dict[str, Any]:
    *outer, _ = path.split(".")
    return fitted[outer[0]] if outer else fitted


def _get(fitted: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of one or two keys, or None if the value is missing."""
    outer, _, key = path.rpartition(".")
    holder = fitted.get(outer) if outer else fitted
    return holder.get(key) if isinstance(holder, dict) else None


def _set(fitted: dict[str, Any], path: str, value: Any) -> None:
    outer, _, key = path.rpartition(".")
    (fitted[outer] if outer else fitted)[key] = value
