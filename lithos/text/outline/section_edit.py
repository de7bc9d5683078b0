"""Edits at one position in a note's body (docs/spec/history.md §2). All other characters stay unchanged.

A *block* is text between blank lines. Exactly one blank line separates an inserted block from its neighbours,
with the line break style of the file. Blank lines at the end of the file do not change. If a block continues
the list or table before it (`list_joining`), no blank line is inserted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from attrs import evolve, frozen

from lithos.kernel.values.errors import InvalidInput, TextAmbiguous, TextNotFound, VersionConflict
from lithos.text.markdown import plain_title
from lithos.text.outline.list_joining import joins_above, joins_below
from lithos.text.outline.outline import (
    TOP,
    Outline,
    Section,
    TaskItem,
    begins_with_heading,
    hash_text,
    read_changed,
    scan_tasks,
    stop_before,
)
from lithos.text.words.analysis import normalise

OPERATIONS: Final = (
    "append", "prepend", "replace", "insert_before", "insert_after", "remove", "find_replace", "check",
    "uncheck",
)  # fmt: skip
APPEND, PREPEND, REPLACE, INSERT_BEFORE, INSERT_AFTER, REMOVE, FIND_REPLACE, CHECK, UNCHECK = OPERATIONS
#: Operations that apply to the whole body if the edit names no section.
WHOLE: Final = frozenset({APPEND, PREPEND, FIND_REPLACE, CHECK, UNCHECK})
#: Operations that search for a text.
FINDING: Final = frozenset({FIND_REPLACE, CHECK, UNCHECK})
#: Maximum number of characters to search for task-list items. Parsing that many takes about 0.2 s, while
#: other writes wait.
MOST_SEARCHED: Final = 128 * 1024
#: Maximum number of characters of the searched text that an error message quotes.
_QUOTED: Final = 200

_LEADING: Final = re.compile(r"(?:[ \t]*(?:\r\n?|\n))+")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?|[ \t]*\[[ xX]\][ \t]+")


@frozen(kw_only=True)
class SectionEdit:
    """An edit of a note.

    `op` is one of `OPERATIONS`. If `section` is None, the edit applies to the whole body.
    """

    op: str
    text: str | None = None
    section: str | None = None
    find: str | None = None
    #: Expected hash of the section, or of the whole body if no section is given.
    expected_hash: str | None = None


class OtherHash(VersionConflict):
    """Raised when the hash differs from the expected hash.

    The error contains the path (None for the body), hash and text of the section.
    """

    def __init__(self, path: str | None, found: str, text: str) -> None:
        super().__init__("The section has changed since it was read.")
        self.path = path
        self.hash = found
        self.text = text


@frozen
class Edited:
    """A changed body, with the path and hash of the edited section. Both are None if the section was removed.

    If the whole body was edited, the path is None and the hash covers the body.
    """

    body: str
    section: str | None
    section_hash: str | None
    warnings: tuple[str, ...] = ()
    #: Outline of the changed body, or None if no parsing was needed.
    outline: Outline | None = None


@frozen
class _Change:
    """A replacement of characters in the body.

    `section_start` is the start of the section after the change.
    """

    start: int
    end: int
    text: str
    section_start: int | None
    warnings: tuple[str, ...] = ()

    @property
    def growth(self) -> int:
        """Return the number of characters by which the text after the change is shifted."""
        return len(self.text) - (self.end - self.start)

    def apply(self, body: str) -> str:
        """Return the body with the change applied."""
        return body[: self.start] + self.text + body[self.end :]


def check_edit(edit: SectionEdit) -> None:
    """Raise `InvalidInput` if the edit would be invalid for every note."""
    if edit.op not in OPERATIONS:
        raise InvalidInput(f"op must be one of {', '.join(OPERATIONS)}, not {edit.op[:100]!r}.")
    if edit.section is None and edit.op not in WHOLE:
        raise InvalidInput(
            f"op {edit.op} needs section: the path of a heading, as listed by lithos_read with outline=true."
        )
    if edit.op == FIND_REPLACE and edit.text is None:
        raise InvalidInput('op find_replace needs text. Use "" to delete the found text.')
    if edit.op not in FINDING and edit.op != REMOVE and not (edit.text or "").strip():
        raise InvalidInput(f"op {edit.op} needs text that is not blank. To remove a section, use op remove.")
    if edit.op in FINDING and not (edit.find or "").strip():
        what = "the exact text to find" if edit.op == FIND_REPLACE else "the text of the task-list item"
        raise InvalidInput(f"op {edit.op} needs find: {what}.")


def apply_edit(
    edit: SectionEdit, body: str, title: tuple[int, int] | None, newline: str, outline: Outline | None
) -> Edited:
    """Apply an edit that passed `check_edit`. `outline` is required if the edit names a section.

    `title` is the bounds of the title's H1. Raises `SectionNotFound`, `TextNotFound`, `TextAmbiguous`,
    `InvalidInput` (too many lines) and `OtherHash`.
    """
    origin = 0 if title is None else title[1]
    if edit.section is None:
        change = _change(edit, body, _compared(edit, body, _whole(body, origin)), origin, newline)
        changed = change.apply(body)
        return Edited(changed, None, hash_text(_text_of(changed, _whole(changed, origin))), change.warnings)
    assert outline is not None
    section = _compared(edit, body, outline.find(edit.section))
    change = _change(edit, body, section, origin, newline)
    changed = change.apply(body)
    if title is not None and title[0] >= change.end:  # the change precedes the title
        title = title[0] + change.growth, title[1] + change.growth
    after = read_changed(outline, changed, title, change.start, change.end)
    warnings = (*change.warnings, *_lost(outline, after, change))
    found = None if change.section_start is None else after.at(change.section_start, section.level)
    if found is None:
        return Edited(changed, None, None, warnings, after)
    return Edited(changed, found.path, after.hash_of(found), warnings, after)


def _whole(body: str, origin: int) -> Section:
    """Return the part of the body after the title as a section without a path."""
    return Section("", 0, origin, origin, stop_before(body, len(body), origin), len(body))


def _text_of(body: str, section: Section) -> str:
    """Return the text of the section without surrounding blank lines."""
    blank = _LEADING.match(body, section.start)
    return body[blank.end() if blank else section.start : section.stop]


def _compared(edit: SectionEdit, body: str, section: Section) -> Section:
    """Return the section. Raises `OtherHash` if its hash is not the expected one."""
    if edit.expected_hash is not None:
        text = _text_of(body, section)
        found = hash_text(text)
        if edit.expected_hash.strip().lower() != found:
            raise OtherHash(section.path or None, found, text)
    return section


def _change(edit: SectionEdit, body: str, section: Section, origin: int, newline: str) -> _Change:
    text, here, op = edit.text or "", section.start, edit.op
    if op in (APPEND, INSERT_AFTER):
        at = section.text_end if section.start == section.stop else section.stop
        joined = op == APPEND and joins_above(body[section.text_end : at], _as_block(text, newline))
        return _insert(body, at, text, newline, here, after_list=joined)
    if op == PREPEND:
        at = _blank_behind(body, section.text_end)
        joined = joins_below(_as_block(text, newline), body[at : section.stop])
        return _insert(body, section.text_end, text, newline, here, before_list=joined)
    if op == INSERT_BEFORE:
        least = origin if here >= origin else 0
        change = _insert(body, stop_before(body, here, least), text, newline, here)
        return evolve(change, section_start=here + change.growth)
    if op == REPLACE:
        return _replace(body, section, text, newline)
    if op == REMOVE:
        return _remove(body, section, origin, newline)
    return (_find_replace if op == FIND_REPLACE else _toggle)(edit, body, section, newline)


def _insert(
    body: str,
    at: int,
    text: str,
    newline: str,
    here: int | None,
    *,
    after_list: bool = False,
    before_list: bool = False,
) -> _Change:
    """Return the change that inserts a block after the text that ends at `at`.

    If `after_list` or `before_list` is set, the block continues a list or table, so no blank line separates
    them.
    """
    block = _as_block(text, newline)
    blank = _blank_behind(body, at)
    gap, is_last = body[at:blank], blank == len(body)
    before = newline * 2 if body[:at].strip("\ufeff \t\r\n") else (gap if gap and not is_last else newline)
    before = newline if after_list else before
    behind = newline if before_list else newline * 2
    if is_last:
        behind = gap if body[:at] else newline
    return _Change(at, blank, before + block + behind, here)


def _replace(body: str, section: Section, text: str, newline: str) -> _Change:
    block = _as_block(text, newline)
    if section.path == TOP and section.start == section.stop:
        return _insert(body, section.text_end, text, newline, section.start)
    start, stop, head, shift = section.start, section.stop, "", 0
    if section.level and begins_with_heading(block, section.level):
        head = _parting(body, start, block, newline)
        shift = len(head)
    elif section.level:
        start = section.text_end
        first = _blank_behind(body, start)
        head = newline * 2 if first >= stop else body[start:first]
    follows = _blank_behind(body, stop)
    if follows == len(body) or _has_blank_line(body[stop:follows]):
        return _Change(start, stop, head + block, section.start + shift)
    return _Change(start, follows, head + block + newline * 2, section.start + shift)


def _remove(body: str, section: Section, origin: int, newline: str) -> _Change:
    start = section.start
    if start == section.stop:
        return _Change(start, start, "", start)  # `(top)` is empty, so there is nothing to remove.
    before = stop_before(body, start, origin if start >= origin else 0)
    follows = _blank_behind(body, section.stop)
    if follows == len(body):  # Blank lines at the end of the file do not change.
        return _Change(before, section.stop, "", None)
    # A `#` heading may directly follow the text before it. An underlined heading would merge with a paragraph
    # before it.
    if before and not _has_blank_line(body[before:start]) and not _is_marked(body[follows : follows + 4]):
        return _Change(before, follows, newline * 2, None)
    return _Change(start, follows, "", None)


def _find_replace(edit: SectionEdit, body: str, section: Section, newline: str) -> _Change:
    pieces = body[section.start : section.end].split("\r\n")
    text, wanted = "\n".join(pieces), (edit.find or "").replace("\r\n", "\n")
    first = text.find(wanted)
    if first < 0:
        raise TextNotFound(
            f"The text {wanted[:_QUOTED]!r} does not occur {_where(edit)}. Case and blanks must "
            "match exactly. Read the section again and copy the text from there."
        )
    if text.find(wanted, first + 1) >= 0:
        count = max(2, text.count(wanted))
        raise TextAmbiguous(
            f"The text {wanted[:_QUOTED]!r} occurs {count} times {_where(edit)}. Add more of the "
            "text around it, or give the section.",
            count=count,
        )
    replacement = (edit.text or "").replace("\r\n", "\n").replace("\n", newline)
    behind_breaks = list(accumulate(len(piece) + 1 for piece in pieces))[:-1]
    begin, stop = (
        section.start + at + bisect_right(behind_breaks, at) for at in (first, first + len(wanted))
    )
    return _Change(begin, stop, replacement, section.start)


def _toggle(edit: SectionEdit, body: str, section: Section, _: str) -> _Change:
    start, end, wanted = section.start, section.end, (edit.find or "")[:_QUOTED]
    if end - start > MOST_SEARCHED:
        raise InvalidInput(
            f"Task-list items are searched for in at most {MOST_SEARCHED:,} characters, and this text "
            "is longer. Give a shorter section, or use op find_replace with the line."
        )
    found = _items_called(list(scan_tasks(body[start:end])), edit.find or "")
    if not found:
        raise TextNotFound(
            f"No task-list item {_where(edit)} has the text {wanted!r}. Copy the text from the "
            "note, without the brackets."
        )
    if len(found) > 1:
        raise TextAmbiguous(
            f"{len(found)} task-list items {_where(edit)} have the text {wanted!r}. Give the "
            "section of the item, or use find_replace with more of the text around it.",
            count=len(found),
        )
    (item,) = found
    at, is_done = start + item.mark, edit.op == CHECK
    if item.is_done == is_done:
        word = "checked" if is_done else "unchecked"
        return _Change(at, at + 1, body[at], start, (f"The item was already {word}.",))
    return _Change(at, at + 1, "x" if is_done else " ", start)


def _items_called(items: Sequence[TaskItem], given: str) -> list[TaskItem]:
    """Return the items whose text equals `given`. Exact matches are preferred to matches without markup."""
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


def _lost(before: Outline, after: Outline, change: _Change) -> tuple[str, ...]:
    """Return a warning if the change turns headings after it into other text."""
    there = {each.start - change.growth for each in after.blocks.headings}
    lost = sum(each.start not in there for each in before.blocks.headings if each.start >= change.end)
    if not lost:
        return ()
    return (
        f"{lost} headings after this place are no longer headings: the text starts a code fence, "
        "list, comment or HTML that includes them. End that block in the text.",
    )


def _as_block(text: str, newline: str) -> str:
    """Return a text without surrounding blank lines, with the line break style of the file."""
    blank = _LEADING.match(text)
    block = text[blank.end() if blank else 0 :].rstrip(" \t\r\n")
    return block.replace("\r\n", "\n").replace("\r", "\n").replace("\n", newline)


def _blank_behind(body: str, at: int) -> int:
    """Return the end of the blank lines after `at`.

    The returned position is the start of the next line of text, or the end of the body.
    """
    blank = _LEADING.match(body, at)
    end = blank.end() if blank else at
    rest = end
    while rest < len(body) and body[rest] in " \t":
        rest += 1
    return rest if rest == len(body) else end


def _has_blank_line(gap: str) -> bool:
    return len(re.findall(r"\r\n?|\n", gap)) > 1


def _is_marked(line: str) -> bool:
    return line.lstrip(" ").startswith("#")


def _parting(body: str, start: int, block: str, newline: str) -> str:
    """Return a line break if `block` begins with a setext heading directly after text.

    In all other cases, return an empty text.
    """
    before = stop_before(body, start, 0)
    if _is_marked(block[:4]) or not before or _has_blank_line(body[before:start]):
        return ""
    return newline
