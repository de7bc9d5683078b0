"""Text diffs as HTML lines, with changed words marked and all hidden characters named.

The diffs are for the person who approves a change (docs/spec/scopes.md §2). All text is escaped, and
invisible characters appear only by name. Both texts may have any length. Lines that are not shown are
counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen
from markupsafe import Markup

from lithos.kernel.values.graphemes import whole
from lithos.text.outline.differences import EditScriptStep, group_changes, split_lines
from lithos.text.outline.word_differences import Span, changed_words
from lithos.text.words.hidden_characters import Sign, count_names, find_signs

#: Limits of a displayed diff: number of lines, characters per line, and characters of HTML in total.
MOST_LINES: Final = 2_000
LONGEST_LINE: Final = 2_000
MOST_CHARACTERS: Final = 150_000
#: Number of characters to keep before the first changed word if a line is shortened.
LEAD: Final = 60
#: Maximum number of different special characters to name next to a diff.
MOST_NAMES: Final = 20

#: Kinds of diff lines that are not lines of either text. Below them: the HTML templates of a line.
_BESIDE: Final = ("place", "remark")
_LINE: Final = '<span class="removed"></span>\n'
_NO_BREAK: Final = "no line break at the end of the file"
_SIGN: Final = Markup("<bdi class=sign>{}</bdi>")
_ODD: Final = Markup("<bdi class=odd>{}</bdi><bdi class=sign>{}</bdi>")
_CHANGED: Final = Markup("<strong>{}</strong>")
_TEXT: Final = Markup("{}")
_CUT: Final = Markup("<i>… {} characters more</i>")
_SKIPPED: Final = Markup("<i>{} characters …</i>")


@frozen
class DiffLine:
    """One line of a diff.

    The kind of a line is `same`, `added`, `removed`, `place` (the number of the next line) or `remark`.
    """

    kind: str
    html: Markup


@frozen
class TextComparison:
    """The diff of a text: its first lines, and counts of changed lines and of added special characters.

    `left` is the number of lines that are not shown. `signs` counts each special character in all added
    lines, including lines that are not shown. `quiet` counts special characters in contexts where they are
    usual. `has_more` means that more special characters exist.
    """

    lines: Sequence[DiffLine]
    added: int
    removed: int
    left: int
    signs: Mapping[str, int]
    quiet: Mapping[str, int]
    has_more: bool

    @property
    def is_warned(self) -> bool:
        """Return whether a person must confirm the special characters in the added text."""
        return bool(self.signs) or self.has_more


def compare(
    old: str | None, new: str | None, most: int = MOST_LINES, room: int = MOST_CHARACTERS
) -> TextComparison:
    """Return the diff of two texts, limited to `most` lines and `room` characters. A missing text is None."""
    first, second = _lines_of(old, new), _lines_of(new, old)
    groups = list(group_changes(first, second))
    changes = [change for group in groups for change in group if change[0] != "equal"]
    signs, quiet, is_whole = count_names(
        line.removesuffix("\n") for _, _, _, j, j_end in changes for line in second[j:j_end]
    )
    shown: list[DiffLine] = []
    count = 0
    for kind, text, marks in _pieces(groups, first, second):
        html = _render(text, marks)
        room -= len(html) + len(_LINE)
        if count >= most or room < 0:
            break
        shown.append(DiffLine(kind, html))
        count += kind not in _BESIDE
    return TextComparison(
        lines=shown[:-1] if shown and shown[-1].kind == "place" else shown,
        added=sum(j_end - j for _, _, _, j, j_end in changes),
        removed=sum(i_end - i for _, i, i_end, _, _ in changes),
        left=sum(_length(change) for group in groups for change in group) - count,
        signs=dict(list(signs.items())[:MOST_NAMES]),
        quiet=dict(list(quiet.items())[:MOST_NAMES]),
        has_more=not is_whole or max(len(signs), len(quiet)) > MOST_NAMES,
    )


def name_all(text: object, most: int = 300) -> Markup:
    """Return a short text, such as a title or a path, on one line with special characters named."""
    whole = " ".join(str(text).split("\n"))
    return Markup("<bdi>{}</bdi>").format(_cut_line(whole, [], most))


def _lines_of(text: str | None, other: str | None) -> list[str]:
    """Return the lines of a text. If every line break of both texts has a CR, the CRs are removed."""
    texts = [each for each in (text, other) if each]
    if all(each.count("\r\n") == each.count("\n") > 0 for each in texts):
        text = text and text.replace("\r\n", "\n")
    return split_lines(text or "")


def _length(change: EditScriptStep) -> int:
    """Return the number of lines in the display of a change. Equal lines are shown once."""
    tag, i, i_end, j, j_end = change
    return i_end - i + (0 if tag == "equal" else j_end - j)


def _pieces(
    groups: Sequence[Sequence[EditScriptStep]], first: Sequence[str], second: Sequence[str]
) -> Iterator[tuple[str, str, Sequence[Span]]]:
    """Yield the kind, text and changed words of each diff line. The lines are computed lazily."""
    for group in groups:
        _, i, _, j, _ = group[0]
        if i or j:
            yield "place", f"line {j + 1:,}", ()
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                yield from (("same", line, ()) for line in first[i:i_end])
                continue
            old, new = first[i:i_end], second[j:j_end]
            marks = changed_words(old, new)
            for kind, lines, spans in (("removed", old, marks[0]), ("added", new, marks[1])):
                for line, changed in zip(lines, spans, strict=True):
                    yield kind, line, changed
                    if not line.endswith("\n"):
                        yield "remark", _NO_BREAK, ()


def _render(line: str, marks: Sequence[Span]) -> Markup:
    return _cut_line(line.removesuffix("\n"), marks, LONGEST_LINE)


def _cut_line(text: str, marks: Sequence[Span], most: int) -> Markup:
    """Return a line as HTML. A long line is shortened to the part around its first change."""
    start = 0
    if len(text) > most and marks and marks[0][0] > most - LEAD:
        start = whole(text, marks[0][0] - LEAD)
    part = text[start : whole(text, start + most, start)]
    signs = [sign for sign in find_signs(part) if not sign.is_quiet]
    parts = [_SKIPPED.format(f"{start:,}")] if start else []
    done = 0
    changed = [
        (begin - start, min(end - start, len(part))) for begin, end in marks if begin - start < len(part)
    ]
    for begin, end in _widened(changed, signs):
        parts.append(_plain(part, done, begin, signs))
        parts.append(_CHANGED.format(_plain(part, begin, end, signs)))
        done = end
    parts.append(_plain(part, done, len(part), signs))
    left = len(text) - start - len(part)
    if left:
        parts.append(_CUT.format(f"{left:,}"))
    return Markup("").join(parts)


def _widened(marks: Sequence[Span], signs: Sequence[Sign]) -> list[Span]:
    """Return the marked spans in order.

    Spans never split a named character, and adjacent spans are joined.
    """
    found: list[Span] = []
    at = 0
    for start, end in marks:
        while at < len(signs) and signs[at].end <= start:
            at += 1
        reach = at
        while reach < len(signs) and signs[reach].start < end:
            reach += 1
        inside = signs[at:reach]
        first = min([start, *(sign.start for sign in inside[:1])])
        last = max([end, *(sign.end for sign in inside[-1:])])
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _plain(text: str, start: int, end: int, signs: Sequence[Sign]) -> Markup:
    """Return part of a line as escaped HTML with special characters named.

    No special character may extend beyond the part.
    """
    parts: list[Markup] = []
    for sign in signs[bisect_left(signs, start, key=_start_of) : bisect_left(signs, end, key=_start_of)]:
        parts.append(_TEXT.format(text[start : sign.start]))
        seen = text[sign.start : sign.end]
        parts.append(_ODD.format(seen, sign.name) if sign.kind == "mixed" else _SIGN.format(sign.name))
        start = sign.end
    parts.append(_TEXT.format(text[start:end]))
    return Markup("").join(parts)


def _start_of(sign: Sign) -> int:
    return sign.start
