"""Compact answers without values that carry no information (docs/spec/tools.md §1.7).

Null, empty and false values are left out. Default values and repetitions are left out too. Times are cut to
seconds, and scores are rounded to three digits. Each tool declares its exceptions as a `CompactForm`. Values
that a person or an agent has stored never change. These are texts, and the objects under the keys `STORED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from lithos.server.tools.fitting import size_of

#: Keys whose values were stored by callers. These values are returned unchanged.
STORED: Final = frozenset({"metadata", "extra", "evidence", "summaries", "tags", "frontmatter_error"})
#: Keys whose numbers Lithos has computed. They are rounded to three digits.
SCORES: Final = frozenset({"score", "similarity", "salience", "usage_score", "probability", "temperature"})
#: Pairs of keys. If both keys of a pair have the same value, only the second key is sent.
TWINS: Final[Mapping[str, str]] = MappingProxyType({
    "id": "edge_id", "display": "target", "updated": "updated_at", "results": "edges",
    "chroma_chunk_count": "chunks", "chroma_last_updated": "vector_last_updated",
    "slug_collision_existing_id": "existing_id",
})  # fmt: skip
#: Length of a time with microseconds, and length of its part that is sent.
_TIME, _SENT = len("2026-01-02T03:04:05.000006+00:00"), len("2026-01-02T03:04:05")
#: Minimum size of a row in characters of JSON. The maximum number of rows in an answer is calculated from it.
_LEAST_ROW: Final = 40


#: Function that returns the compact form of an object. Its second argument is the object that contains the
#: first.
CompactObject = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def _keys(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(keys)


@frozen(kw_only=True)
class CompactForm:
    """Compact form of a tool's answer. A key has the same effect at every level of the answer.

    * `always`: keys that are sent even if the value is empty, false or null.
    * `asked`: for each argument, the keys that are sent only if this argument is given.
    * `unsaid`: keys that are never sent.
    * `defaults`: for each key, the value that is not sent.
    * `exact`: keys of times that are sent with microseconds, because clients send them back as arguments.
    * `room`: for each secondary list, its maximum size in characters of JSON. At least one row is kept.
    * `own`: for each key, a function that makes the object compact. It also gets the object that contains it.
    """

    always: frozenset[str] = field(default=(), converter=_keys)
    asked: Mapping[str, tuple[str, ...]] = field(factory=dict)
    unsaid: frozenset[str] = field(default=(), converter=_keys)
    defaults: Mapping[str, Any] = field(factory=dict)
    exact: frozenset[str] = field(default=(), converter=_keys)
    room: Mapping[str, int] = field(factory=dict)
    own: Mapping[str, CompactObject] = field(factory=dict)

    def left_out(self, given: object) -> frozenset[str]:
        """Return the keys that are left out of the answer to a call with these arguments."""
        if not self.asked:
            return self.unsaid
        unasked = (keys for name, keys in self.asked.items() if not getattr(given, name, None))
        return self.unsaid.union(*unasked)


PLAIN: Final = CompactForm()


def compact(
    answer: Mapping[str, Any], sparing: CompactForm, given: object, *, limit: int = 0, skip: int = 0
) -> dict[str, Any]:
    """Return an answer without values that carry no information. `given` contains the arguments of the call.

    In each list, the first `skip` rows are not converted. Of the rows after them, at most as many are
    converted as can fit into `limit` characters. If `limit` is 0, all are converted.
    """
    end = skip + limit // _LEAST_ROW if limit else None
    made = _Compacting(sparing, sparing.left_out(given), slice(skip, end)).object(answer)
    for key, room in sparing.room.items():
        _cut(made, key, room)
    return made


def compact_refusal(refusal: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error envelope without its empty values."""
    return {key: value for key, value in refusal.items() if not is_nothing(value)}


def drop_plain_totals(fitted: dict[str, Any], paths: Iterable[str]) -> None:
    """Delete the totals of lists that are sent in full. A path in `paths` consists of one or two keys."""
    for path in paths:
        outer, _, key = path.rpartition(".")
        holder = fitted.get(outer) if outer else fitted
        if isinstance(holder, dict) and holder.get(f"{key}_total") == len(holder.get(key, ())):
            del holder[f"{key}_total"]


def is_nothing(value: object) -> bool:
    """Return whether a value is None, or an empty text, list or object."""
    return value is None or (isinstance(value, str | Sequence | Mapping) and not value)


def _cut(answer: dict[str, Any], key: str, room: int) -> None:
    """Cut a list to `room` characters of JSON and add its total. At least one row is kept."""
    whole, kept = answer.get(key, ()), 0
    while kept < len(whole) and ((size := size_of(whole[kept]) + 1) <= room or not kept):
        room, kept = room - size, kept + 1
    if kept < len(whole):
        answer |= {key: whole[:kept], f"{key}_total": len(whole)}


@frozen
class _Compacting:
    """Converter that returns compact copies of the objects in one answer. The originals never change."""

    _sparing: CompactForm
    _left: frozenset[str]
    _span: slice

    def object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        left, always, defaults = self._left, self._sparing.always, self._sparing.defaults
        made: dict[str, Any] = {}
        for key, item in value.items():
            if key in left or (key in TWINS and value.get(TWINS[key]) == item):
                continue
            said = self._said(key, item, value) if type(item) in _CHANGED else item
            says_nothing = said is None or said is False or (type(said) in _EMPTIED and not said)
            if key in always or not (says_nothing or defaults.get(key) == said):
                made[key] = said
        return made

    def _said(self, key: str, item: Any, beside: Mapping[str, Any]) -> Any:
        if type(item) is str:
            is_time = len(item) == _TIME and key.endswith("_at") and key not in self._sparing.exact
            return to_seconds(item) if is_time else item
        if type(item) is float:
            return round(item, 3) if key in SCORES else item
        if not item:
            return item
        if (compact_object := self._sparing.own.get(key)) is not None:
            return compact_object(item, beside)
        if key in STORED:
            return item
        return self.object(item) if type(item) is dict else self._rows(item)

    def _rows(self, rows: list[Any]) -> list[Any]:
        if type(rows[0]) is not dict:
            return rows
        made, span = list(rows), self._span
        made[span] = [
            self.object(row) if type(row) is dict else row for row in islice(rows, span.start, span.stop)
        ]
        return made


#: Types of values that may be changed or left out in a compact answer.
_CHANGED: Final = frozenset({str, float, dict, list})
_EMPTIED: Final = frozenset({str, dict, list, tuple})


def to_seconds(text: str) -> str:
    """Return a time in Lithos's format without microseconds. Any other text is returned unchanged."""
    is_time = text.endswith("+00:00") and text[_SENT] == "."
    return f"{text[:_SENT]}Z" if is_time else text


def short_time(key: str, item: Any) -> Any:
    """Return a time without microseconds if its key ends in `_at`. Any other value is returned unchanged."""
    is_time = type(item) is str and len(item) == _TIME and key.endswith("_at")
    return to_seconds(item) if is_time else item
