"""Edits of one place of a note's body (docs/spec/history.md §2): every character elsewhere stays.

A *block* is text between blank lines. Where an edit puts a block beside others there is exactly one blank
line between them, in the line break of the file; the blank lines at the end of the file stay as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from lithos.core.errors import InvalidInput, TextAmbiguous, TextNotFound, VersionConflict
from lithos.core.history.outline import (
    TOP,
    Outline,
    Section,
    TaskItem,
    begins_with_heading,
    hash_text,
    read_changed,
    scan_tasks,
)
from lithos.core.text.analysis import normalise
from lithos.core.text.markdown import plain_title

APPEND: Final = "append"
PREPEND: Final = "prepend"
REPLACE: Final = "replace"
INSERT_BEFORE: Final = "insert_before"
INSERT_AFTER: Final = "insert_after"
REMOVE: Final = "remove"
FIND_REPLACE: Final = "find_replace"
CHECK: Final = "check"
UNCHECK: Final = "uncheck"
OPERATIONS: Final = (
    APPEND,
    PREPEND,
    REPLACE,
    INSERT_BEFORE,
    INSERT_AFTER,
    REMOVE,
    FIND_REPLACE,
    CHECK,
    UNCHECK,
)
#: Those that take the whole body where no section is given.
WHOLE: Final = frozenset({APPEND, PREPEND, FIND_REPLACE, CHECK, UNCHECK})
#: Those that take no text.
TEXTLESS: Final = frozenset({REMOVE, CHECK, UNCHECK})
#: Those that look for something.
FINDING: Final = frozenset({FIND_REPLACE, CHECK, UNCHECK})
#: Characters in which task-list items are looked for, by a parser in the way of other writes: some 0.2 s.
MOST_SEARCHED: Final = 128 * 1024
#: Characters that a refusal quotes of what was to be found.
_QUOTED: Final = 200

_LEADING: Final = re.compile(r"(?:[ \t]*(?:\r\n?|\n))+")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?|[ \t]*\[[ xX]\][ \t]+")


@frozen(kw_only=True)
class SectionEdit:
    """What to change: `op` is one of `OPERATIONS`; `section` None is the whole body."""

    op: str
    text: str | None = None
    section: str | None = None
    find: str | None = None
    #: The hash that the section, or the whole body, must have.
    expected_hash: str | None = None


@frozen
class Place:
    """A section as an edit found it: its path (None: the whole body), hash and text."""

    path: str | None
    hash: str
    text: str


class OtherHash(VersionConflict):
    """The section has not the hash that was expected; `place` is what it is."""

    def __init__(self, place: Place) -> None:
        super().__init__("The section has changed since it was read.")
        self.place = place


@frozen
class Edited:
    """A changed body; the path and hash of the section afterwards, None where it is gone."""

    body: str
    section: str | None
    section_hash: str | None
    warnings: tuple[str, ...] = ()
    #: None where nothing had to be parsed.
    outline: Outline | None = None


@frozen
class _Change:
    """Characters of the body that give way to a text; `section_start` is where the section begins then."""

    start: int
    end: int
    text: str
    section_start: int | None
    warnings: tuple[str, ...] = ()


def check_edit(edit: SectionEdit) -> None:
    """Raises `InvalidInput` for an edit that can be carried out on no note."""
    if edit.op not in OPERATIONS:
        raise InvalidInput(f"op must be one of {', '.join(OPERATIONS)}; not {edit.op[:100]!r}.")
    if edit.section is None and edit.op not in WHOLE:
        raise InvalidInput(
            f"op {edit.op} needs section: the path of a heading, as lithos_read with outline=true lists them."
        )
    if edit.op == FIND_REPLACE and edit.text is None:
        raise InvalidInput('op find_replace needs text, which may be "" to take find away.')
    if edit.op not in TEXTLESS and edit.op != FIND_REPLACE and not (edit.text or "").strip():
        raise InvalidInput(
            f"op {edit.op} needs text that is not blank. To take a section away use op remove."
        )
    if edit.op in FINDING and not (edit.find or "").strip():
        what = "the exact text to look for" if edit.op == FIND_REPLACE else "the text of the task-list item"
        raise InvalidInput(f"op {edit.op} needs find: {what}.")


def needs_outline(edit: SectionEdit) -> bool:
    """Whether the edit depends on what is a heading."""
    return edit.section is not None


def apply_edit(
    edit: SectionEdit, body: str, title: tuple[int, int] | None, newline: str, outline: Outline | None
) -> Edited:
    """The body after an edit that `check_edit` accepts; `outline` is that of the body, where it needs one.

    `title`: where the H1 with the title is. Raises `SectionNotFound`, `TextNotFound`, `TextAmbiguous`,
    `InvalidInput` (too many lines) and `OtherHash`.
    """
    if edit.section is not None:
        assert outline is not None
        return _edit_section(edit, body, newline, outline)
    origin = 0 if title is None else title[1]
    place = _whole(body, origin)
    _compare(edit, place)
    change = _change_whole(edit, body, origin, newline)
    changed = body[: change.start] + change.text + body[change.end :]
    return Edited(changed, None, _whole(changed, origin).hash, change.warnings)


def _edit_section(edit: SectionEdit, body: str, newline: str, outline: Outline) -> Edited:
    section = outline.find(edit.section or "")
    text = outline.text_of(section)
    _compare(edit, Place(section.path, hash_text(text), text))
    change = _change_section(edit, body, section, outline.origin, newline)
    changed = body[: change.start] + change.text + body[change.end :]
    moved = _moved_title(outline.title, change)
    after = read_changed(outline, changed, moved, change.start, change.end)
    warnings = (*change.warnings, *_lost(outline, after, change, section))
    found = None if change.section_start is None else after.at(change.section_start, section.level)
    if found is None:
        return Edited(changed, None, None, warnings, after)
    return Edited(changed, found.path, after.hash_of(found), warnings, after)


def _moved_title(title: tuple[int, int] | None, change: _Change) -> tuple[int, int] | None:
    """The title after a change; one before it, as headings may stand there, moves it."""
    if title is None or title[0] < change.end:
        return title
    return title[0] + _growth(change), title[1] + _growth(change)


def _compare(edit: SectionEdit, place: Place) -> None:
    if edit.expected_hash is not None and edit.expected_hash.strip().lower() != place.hash:
        raise OtherHash(place)


def _whole(body: str, origin: int) -> Place:
    text = body[origin:].rstrip(" \t\r\n")
    start = origin + len(text)
    while start < len(body) and body[start] in " \t":
        start += 1
    blank = _LEADING.match(body, origin)
    text = body[max(origin, blank.end() if blank else 0) : start]
    return Place(None, hash_text(text), text)


def _change_whole(edit: SectionEdit, body: str, origin: int, newline: str) -> _Change:
    if edit.op == APPEND:
        stop = _stop_before(body, len(body), origin)
        return _insert(body, stop, edit.text or "", newline, None)
    if edit.op == PREPEND:
        return _insert(body, origin, edit.text or "", newline, None)
    if edit.op == FIND_REPLACE:
        return _find_replace(edit, body, origin, len(body), newline, None)
    return _toggle(edit, body, origin, len(body), None)


def _change_section(edit: SectionEdit, body: str, section: Section, origin: int, newline: str) -> _Change:
    text, here = edit.text or "", section.start
    if edit.op in (APPEND, INSERT_AFTER):
        at = section.text_end if section.start == section.stop else section.stop
        return _insert(body, at, text, newline, here)
    if edit.op == PREPEND:
        return _insert(body, section.text_end, text, newline, here)
    if edit.op == INSERT_BEFORE:
        least = origin if here >= origin else 0
        change = _insert(body, _stop_before(body, here, least), text, newline, here)
        return _Change(change.start, change.end, change.text, here + _growth(change), change.warnings)
    if edit.op == REPLACE:
        return _replace(body, section, text, newline)
    if edit.op == REMOVE:
        return _remove(body, section, origin, newline)
    if edit.op == FIND_REPLACE:
        return _find_replace(edit, body, here, section.end, newline, here)
    return _toggle(edit, body, here, section.end, here)


def _growth(change: _Change) -> int:
    return len(change.text) - (change.end - change.start)


def _insert(body: str, at: int, text: str, newline: str, here: int | None) -> _Change:
    """A block behind the text that ends at `at`, before what follows."""
    block = _as_block(text, newline)
    blank = _blank_behind(body, at)
    gap, is_last = body[at:blank], blank == len(body)
    before = newline * 2 if body[:at].strip("\ufeff \t\r\n") else (gap if gap and not is_last else newline)
    behind = newline * 2
    if is_last:
        behind = gap if body[:at] else newline
    return _Change(at, blank, before + block + behind, here)


def _replace(body: str, section: Section, text: str, newline: str) -> _Change:
    block = _as_block(text, newline)
    if section.path == TOP and section.start == section.stop:
        return _insert(body, section.text_end, text, newline, section.start)
    if section.level and begins_with_heading(block, section.level):
        start, head = section.start, _parting(body, section.start, block, newline)
    elif section.level:
        start = section.text_end
        first = _blank_behind(body, start)
        head = newline * 2 if first >= section.stop else body[start:first]
    else:
        start, head = section.start, ""
    stop = section.stop
    gap = body[stop : _blank_behind(body, stop)]
    is_last = stop + len(gap) == len(body)
    if is_last or _has_blank_line(gap):
        return _Change(start, stop, head + block, section.start + _heading_shift(start, section, head))
    return _Change(
        start,
        stop + len(gap),
        head + block + newline * 2,
        section.start + _heading_shift(start, section, head),
    )


def _heading_shift(start: int, section: Section, head: str) -> int:
    return len(head) if start == section.start else 0


def _remove(body: str, section: Section, origin: int, newline: str) -> _Change:
    start = section.start
    if start == section.stop:
        return _Change(start, start, "", start)  # an empty (top)
    before = _stop_before(body, start, origin if start >= origin else 0)
    follows = _blank_behind(body, section.stop)
    if follows == len(body):  # what ends the file now ends it then
        return _Change(before, section.stop, "", None)
    # A heading with `#` may stand where this one did, an underlined one would join a paragraph before it.
    if before and not _has_blank_line(body[before:start]) and not _is_marked(body[follows : follows + 4]):
        return _Change(before, follows, newline * 2, None)
    return _Change(start, follows, "", None)


def _find_replace(
    edit: SectionEdit, body: str, start: int, end: int, newline: str, here: int | None
) -> _Change:
    part = _Unified(body[start:end])
    wanted = (edit.find or "").replace("\r\n", "\n")
    first = part.text.find(wanted)
    if first < 0:
        raise TextNotFound(
            f"The text {wanted[:_QUOTED]!r} does not occur {_where(edit)}. It is looked for exactly, with "
            "case and blanks: read the section again and copy it from there."
        )
    if part.text.find(wanted, first + 1) >= 0:
        count = max(2, part.text.count(wanted))
        raise TextAmbiguous(
            f"The text {wanted[:_QUOTED]!r} occurs {count} times {_where(edit)}. Give more of the "
            "text around it, or the section.",
            count=count,
        )
    replacement = (edit.text or "").replace("\r\n", "\n").replace("\n", newline)
    begin, stop = part.original(first), part.original(first + len(wanted))
    return _Change(start + begin, start + stop, replacement, here)


def _toggle(edit: SectionEdit, body: str, start: int, end: int, here: int | None) -> _Change:
    if end - start > MOST_SEARCHED:
        raise InvalidInput(
            f"There are more than {MOST_SEARCHED:,} characters to look for task-list items in. Give "
            "a shorter section, or use op find_replace with the line."
        )
    items = list(scan_tasks(body[start:end]))
    found = _items_called(items, edit.find or "")
    if not found:
        raise TextNotFound(
            f"No task-list item {_where(edit)} has the text {(edit.find or '')[:_QUOTED]!r}. Copy it from "
            "the note, without the brackets."
        )
    if len(found) > 1:
        raise TextAmbiguous(
            f"{len(found)} task-list items {_where(edit)} have the text {(edit.find or '')[:_QUOTED]!r}. "
            "Give the section of the one meant, or use find_replace with more of the text around it.",
            count=len(found),
        )
    (item,) = found
    at, is_done = start + item.mark, edit.op == CHECK
    if item.is_done == is_done:
        word = "checked" if is_done else "unchecked"
        return _Change(at, at + 1, body[at], here, (f"The item was {word} already.",))
    return _Change(at, at + 1, "x" if is_done else " ", here)


def _items_called(items: Sequence[TaskItem], given: str) -> list[TaskItem]:
    """The items with this text: as it is written, or else without markup."""
    wanted = " ".join(given.split())
    bare = " ".join(_ITEM.sub("", given, count=1).split()) if _ITEM.match(given) else wanted
    for name in dict.fromkeys((wanted, bare)):
        exact = [each for each in items if each.text == name]
        if exact:
            return exact
    return [each for each in items if _shown(each.text) in (_shown(wanted), _shown(bare))]


def _shown(text: str) -> str:
    return normalise("NFC", plain_title(text))


def _where(edit: SectionEdit) -> str:
    return "in the note" if edit.section is None else "in the section"


def _lost(before: Outline, after: Outline, change: _Change, section: Section) -> tuple[str, ...]:
    """A warning when headings outside the change are none any more."""
    grown, there = _growth(change), {each.start for each in after.blocks.headings}
    lost = sum(each.start + grown not in there for each in before.blocks.headings if each.start >= change.end)
    if not lost:
        return ()
    return (
        f"{lost} headings behind this place are no longer headings: they are in a code fence, a list, a "
        "comment or HTML that the text begins. End it there.",
    )


def _as_block(text: str, newline: str) -> str:
    """A text without blank lines around it, with the line breaks of the file."""
    blank = _LEADING.match(text)
    block = text[blank.end() if blank else 0 :].rstrip(" \t\r\n")
    return block.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)


class _Unified:
    """A text with `\\n` for `\\r\\n`, which is found again in the original."""

    def __init__(self, text: str) -> None:
        pieces = text.split("\r\n")
        self.text = "\n".join(pieces)
        self._breaks: list[int] = []
        at = -1
        for piece in pieces[:-1]:
            at += len(piece) + 1
            self._breaks.append(at)

    def original(self, position: int) -> int:
        """Where a position of the text is in the original."""
        return position + bisect_left(self._breaks, position)


def _blank_behind(body: str, at: int) -> int:
    """Where the blank lines behind a text end: the next line with text, or the end."""
    blank = _LEADING.match(body, at)
    end = blank.end() if blank else at
    rest = end
    while rest < len(body) and body[rest] in " \t":
        rest += 1
    return rest if rest == len(body) else end


def _stop_before(body: str, at: int, least: int) -> int:
    """Where the last text before a position ends, not before `least`."""
    stop = at
    while stop > least and body[stop - 1] in " \t\r\n":
        stop -= 1
    while stop < at and body[stop] in " \t":
        stop += 1
    return stop


def _has_blank_line(gap: str) -> bool:
    return len(re.findall(r"\r\n?|\n", gap)) > 1


def _is_marked(line: str) -> bool:
    return line.lstrip(" ").startswith("#")


def _parting(body: str, start: int, block: str, newline: str) -> str:
    """What must stand before a block at `start`: nothing, or another line break before a setext heading."""
    before = _stop_before(body, start, 0)
    if _is_marked(block[:4]) or not before or _has_blank_line(body[before:start]):
        return ""
    return newline
