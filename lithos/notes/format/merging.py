"""Three-way merges of notes: bodies by line, frontmatter by key (docs/spec/history.md §3).

`base` is the common origin of both sides, `mine` the version that the caller wants, and `theirs` the current
version. If only one side made a change, the result has that change. Equal changes on both sides count once.
Changes that touch or overlap are conflicts. A merge with conflicts does not have a result, so conflict
markers cannot reach a file. The line algorithm is diff3 (Khanna, Kunal, Pierce: A Formal Investigation of
Diff3, 2007).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, frozen

from lithos.kernel.values.graphemes import beginning
from lithos.notes.model.note import OWNED_KEYS, Document
from lithos.text.outline.differences import Block, match_lines

T = TypeVar("T")

#: Maximum number of characters of each text that a conflict shows.
TEXT_CUT: Final = 2_000
#: Maximum number of conflicts to return. Callers mainly need to know whether conflicts exist.
MOST_CONFLICTS: Final = 20
#: Maximum number of lines per text. Longer texts have at most five characters per line and are not compared.
#: A text of this length takes about 0.5 s.
MOST_LINES: Final = 200_000

#: Keys that never conflict, because the write itself determines their values.
_NEVER_CONFLICT: Final = frozenset(("id", "version", "updated_at", "contributors"))
_LISTS: Final = frozenset(("tags", "aliases", "derived_from_ids", "entities"))
_LF: Final = "\n"
_CRLF: Final = "\r\n"
#: Marker for a missing metadata key.
_ABSENT: Final = object()


@frozen(kw_only=True)
class Conflict:
    """A conflict: both sides changed the same key, or lines that touch or overlap.

    The conflict is in a frontmatter `key`, or in the body from a `line` of `theirs` on (1-based).
    """

    key: str | None = None
    line: int | None = None
    base: Any
    mine: Any
    theirs: Any

    def to_row(self) -> dict[str, Any]:
        """Return the conflict as JSON-compatible values. Texts are cut at `TEXT_CUT` characters."""
        place: dict[str, Any] = {"line": self.line} if self.key is None else {"key": self.key}
        return place | {"base": _shown(self.base), "mine": _shown(self.mine), "theirs": _shown(self.theirs)}


@frozen(kw_only=True)
class Merged(Generic[T]):
    """The result of a merge.

    If there are `total` conflicts, `result` is None and `conflicts` contains the first `MOST_CONFLICTS`.

    If `is_complete` is false, the texts differ too much for a complete comparison. Some overlaps are then
    larger than necessary.
    """

    result: T | None = None
    conflicts: tuple[Conflict, ...] = ()
    total: int = 0
    is_complete: bool = True


def merge_documents(base: Document, mine: Document, theirs: Document) -> Merged[Document]:
    """Merge the changes of two sides.

    Id, version, updated_at, contributors and inline tags come from `theirs`.

    Lists are merged as ordered sets. Other metadata is merged by key.
    """
    conflicts: list[Conflict] = []
    values: dict[str, Any] = {}
    for key in OWNED_KEYS:
        if key not in _NEVER_CONFLICT:
            sides = (getattr(base.note, key), getattr(mine.note, key), getattr(theirs.note, key))
            values[key] = _merge_value(key, *sides, conflicts)
    extra = _merge_extra(base.note.extra, mine.note.extra, theirs.note.extra, conflicts)
    body = merge_texts(base.content, mine.content, theirs.content)
    total = len(conflicts) + body.total
    shown = (*conflicts, *body.conflicts)[:MOST_CONFLICTS]
    if body.result is None or total:
        return Merged(conflicts=shown, total=total, is_complete=body.is_complete)
    note = evolve(theirs.note, **values, extra=extra)
    return Merged(result=evolve(theirs, note=note, content=body.result), is_complete=body.is_complete)


def metadata_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a merge-patch from `old` to `new`, or None if both are equal.

    In the merge-patch, null deletes a key.
    """
    removed = {key: None for key in old if key not in new}
    changed = {key: value for key, value in new.items() if not is_same(value, old.get(key, _ABSENT))}
    return {**removed, **changed} or None


def merge_items(base: Sequence[Any], mine: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
    """Merge the changes that two sides made to a list, which is treated as a set.

    The result contains `theirs` without the items that `mine` removed, followed by the items that `mine`
    added.

    If one side is unchanged, including the order of its items, the result is the other side.
    """
    if is_same(base, mine):
        return list(theirs)
    if is_same(base, theirs):
        return list(mine)
    before, wanted = ({token_of(item) for item in side} for side in (base, mine))
    kept = [item for item in theirs if token_of(item) in wanted or token_of(item) not in before]
    present = {token_of(item) for item in kept} | before
    return kept + [item for item in mine if token_of(item) not in present]


def merge_texts(base: str, mine: str, theirs: str) -> Merged[str]:
    """Merge the changes that two sides made to a text, line by line.

    The kind of line break and the line break at the end are merged separately from the lines. So a side that
    changed only line breaks does not cause a conflict. Line breaks are LF and CRLF.
    """
    if mine in (theirs, base):
        return Merged(result=theirs)
    if theirs == base:
        return Merged(result=mine)
    if any(text.count(_LF) > MOST_LINES for text in (base, mine, theirs)):
        whole = Conflict(
            line=1,
            base=beginning(base, TEXT_CUT),
            mine=beginning(mine, TEXT_CUT),
            theirs=beginning(theirs, TEXT_CUT),
        )
        return Merged(conflicts=(whole,), total=1, is_complete=False)
    numbers: dict[str, int] = {}
    sides = [NumberedLines.of(text, numbers) for text in (base, mine, theirs)]
    return LineMerge(*sides).run()


@frozen
class NumberedLines:
    """A text split into lines.

    Equal lines have equal numbers. A last line without a line break has the break "".
    """

    numbers: Sequence[int]
    texts: Sequence[str]
    breaks: Sequence[str]

    @classmethod
    def of(cls, text: str, numbers: dict[str, int]) -> NumberedLines:
        """Split a text into numbered lines.

        `numbers` maps the lines seen so far to their numbers. New lines are added.
        """
        *whole, last = text.split(_LF)
        texts = [line.removesuffix("\r") for line in whole]
        breaks = [_CRLF if line.endswith("\r") else _LF for line in whole]
        if last:
            texts.append(last)
            breaks.append("")
        return cls([numbers.setdefault(line, len(numbers)) for line in texts], texts, breaks)

    @property
    def ends_open(self) -> bool:
        """Return whether the last line does not end with a line break."""
        return bool(self.breaks) and not self.breaks[-1]

    @property
    def kind(self) -> str | None:
        """Return the kind of line break that all lines have.

        Return None if there are several kinds or no line breaks.
        """
        found = set(self.breaks) - {""}
        return found.pop() if len(found) == 1 else None

    def beginning(self, start: int, end: int) -> str:
        """Return the text of some lines, cut to the maximum length of a conflict text."""
        shown = range(start, min(end, start + TEXT_CUT))
        return beginning("".join(self.texts[at][:TEXT_CUT] + self.breaks[at] for at in shown), TEXT_CUT)


#: A range of lines: the index of the first line, and the index after the last line.
Bounds = tuple[int, int]


class LineMerge:
    """One line-based merge of three texts."""

    def __init__(self, base: NumberedLines, mine: NumberedLines, theirs: NumberedLines) -> None:
        self._base, self._mine, self._theirs = base, mine, theirs
        self._texts: list[str] = []
        self._breaks: list[str] = []
        self._conflicts: list[Conflict] = []
        self._total = 0

    def run(self) -> Merged[str]:
        """Return the merged text, or the conflicts."""
        is_complete = self._walk()
        if self._total:
            conflicts = tuple(self._conflicts)
            return Merged(conflicts=conflicts, total=self._total, is_complete=is_complete)
        return Merged(result=self._joined(), is_complete=is_complete)

    def _walk(self) -> bool:
        """Process all lines in order. Return whether the texts were compared completely."""
        base, mine, theirs = self._base, self._mine, self._theirs
        blocks, is_whole = match_lines(base.numbers, mine.numbers)
        other_blocks, is_other_whole = match_lines(base.numbers, theirs.numbers)
        at, at_mine, at_theirs = 0, 0, 0
        for start, in_mine, in_theirs, size in self._common(blocks, other_blocks):
            self._settle((at, start), (at_mine, in_mine), (at_theirs, in_theirs))
            if not self._total:
                self._keep(start, in_mine, in_theirs, size)
            at, at_mine, at_theirs = start + size, in_mine + size, in_theirs + size
        return is_whole and is_other_whole

    def _common(self, mine: Sequence[Block], theirs: Sequence[Block]) -> Iterator[tuple[int, int, int, int]]:
        """Yield the blocks of base lines that both sides contain.

        Each block has its start in each text and its length.

        The last yielded block is empty.
        """
        number = other = 0
        while number < len(mine) and other < len(theirs):
            i, in_mine, size = mine[number]
            j, in_theirs, length = theirs[other]
            start, end = max(i, j), min(i + size, j + length)
            if start < end:
                yield start, in_mine + start - i, in_theirs + start - j, end - start
            if i + size < j + length:
                number += 1
            else:
                other += 1
        yield len(self._base.numbers), len(self._mine.numbers), len(self._theirs.numbers), 0

    def _settle(self, base: Bounds, mine: Bounds, theirs: Bounds) -> None:
        """Merge the lines between two common blocks."""
        was = self._base.numbers[slice(*base)]
        wanted, present = self._mine.numbers[slice(*mine)], self._theirs.numbers[slice(*theirs)]
        if wanted in (was, present):
            self._take(self._theirs, theirs)
        elif present == was:
            self._take(self._mine, mine)
        else:
            self._overlap(base, mine, theirs)

    def _take(self, side: NumberedLines, bounds: Bounds) -> None:
        """Copy the lines that one side has between two common blocks to the result."""
        self._texts += side.texts[slice(*bounds)]
        self._breaks += side.breaks[slice(*bounds)]

    def _overlap(self, base: Bounds, mine: Bounds, theirs: Bounds) -> None:
        """Record a conflict: both sides changed the same lines differently."""
        self._total += 1
        if len(self._conflicts) < MOST_CONFLICTS:
            self._conflicts.append(
                Conflict(
                    line=theirs[0] + 1,
                    base=self._base.beginning(*base),
                    mine=self._mine.beginning(*mine),
                    theirs=self._theirs.beginning(*theirs),
                )
            )

    def _keep(self, start: int, in_mine: int, in_theirs: int, size: int) -> None:
        """Copy a block of common lines to the result.

        If one side changed a line break, that line break is used.
        """
        self._texts += self._theirs.texts[in_theirs : in_theirs + size]
        was, wanted, present = self._base.breaks, self._mine.breaks, self._theirs.breaks
        self._breaks += (
            merge_break(was[start + n], wanted[in_mine + n], present[in_theirs + n]) for n in range(size)
        )

    def _joined(self) -> str:
        """Return the text of the merged lines."""
        base, mine, theirs = self._base, self._mine, self._theirs
        kinds = base.kind, mine.kind, theirs.kind
        one_kind = None if None in kinds else merge_break(*(kind or "" for kind in kinds))
        otherwise = one_kind or theirs.kind or next(filter(None, theirs.breaks), _LF)
        opens = base.ends_open, mine.ends_open, theirs.ends_open
        breaks = [one_kind or mark or otherwise for mark in self._breaks]
        if breaks and (opens[1] if opens[1] != opens[0] else opens[2]):
            breaks[-1] = ""
        return "".join(chain.from_iterable(zip(self._texts, breaks, strict=True)))


def merge_break(base: str, mine: str, theirs: str) -> str:
    """Return the three-way merge of a line break. If both sides changed the line break, return `theirs`."""
    return theirs if mine == base or theirs != base else mine


def _merge_value(key: str, base: Any, mine: Any, theirs: Any, conflicts: list[Conflict]) -> Any:
    """Return the merged value of an owned key. In case of a conflict, return `theirs`."""
    if is_same(mine, theirs) or is_same(mine, base):
        return theirs
    if is_same(theirs, base):
        return mine
    if key in _LISTS:
        return tuple(merge_items(base, mine, theirs))
    conflicts.append(Conflict(key=key, base=base, mine=mine, theirs=theirs))
    return theirs


def _merge_extra(
    base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any], conflicts: list[Conflict]
) -> dict[str, Any]:
    """Return the merged metadata that does not belong to Lithos, by key. The order is that of `theirs`."""
    merged: dict[str, Any] = {}
    for key in dict.fromkeys((*theirs, *mine)):
        was, wanted, present = base.get(key, _ABSENT), mine.get(key, _ABSENT), theirs.get(key, _ABSENT)
        before = [] if was is _ABSENT else was
        if isinstance(before, list) and isinstance(wanted, list) and isinstance(present, list):
            merged[key] = merge_items(before, wanted, present)
            continue
        value = _merge_value(key, was, wanted, present, conflicts)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal.

    The values 1, 1.0 and true are not equal. A missing value equals only another missing value.
    """
    if one is other:
        return True
    if one is _ABSENT or other is _ABSENT or one != other:
        return False
    return token_of(one) == token_of(other)


def token_of(value: Any) -> str:
    """Return a value as a string. Different values have different strings."""
    if isinstance(value, datetime):
        return f"time {value.timestamp()}"
    return json.dumps(value, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else dict(value)


def _shown(value: Any) -> Any:
    """Return a value in its form for callers.

    If its JSON is too long, return the beginning of the JSON as a text.
    """
    if value is _ABSENT:
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return beginning(value, TEXT_CUT)
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return json.loads(text) if len(text) <= TEXT_CUT else beginning(text, TEXT_CUT)
