"""Rewriting of links when a note moves: where they stand in a text, and what else they must say.

Wiki-links are replaced by what they mean, Markdown links by the path they lead to; every other character
stays. Code has no links. All of it takes linear time, in calls that are short enough for a worker thread.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from attrs import field, frozen

from lithos.core.notes.layout import read_layout
from lithos.core.notes.paths import folder_of
from lithos.core.text.analysis import normalise
from lithos.core.text.markdown import code_fences
from lithos.core.text.pieces import PIECE, matches_of_brackets

_WIKI: Final = re.compile(r"\[\[([^\[\]|]+)(\|[^\[\]]*)?\]\]")
#: Where a Markdown link leads: in angle brackets, or without spaces and with closed parentheses.
_MARKDOWN: Final = re.compile(
    r"\]\([ \t]*(?:<([^<>\n]{1,4096})>|"
    r"([^()\s<>]{1,4096}(?:\([^()\s<>]{0,4096}\)[^()\s<>]{0,4096}){0,8}))"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_ANCHOR: Final = re.compile(r"[#?]")
#: Backticks, and the end of a paragraph, beyond which no inline code goes.
_TICKS: Final = re.compile(r"`+|\n[ \t\r]*\n")
#: Characters that a Markdown destination cannot have as they are.
_ENCODED: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]")
_SUFFIX: Final = ".md"

#: Whether there is a file at a path of the vault.
IsFile = Callable[[str], bool]


@frozen(kw_only=True)
class Relinking:
    """What a move of the file `old` to `new` changes in links, all paths relative to the notes folder.

    `pages` has the new text for what wiki-links name, before any anchor; no new text is itself a key,
    so doing it twice changes nothing. `paths` are where Markdown links lead, before and after.
    """

    old: str
    new: str
    pages: Mapping[str, str] = field(factory=dict)
    paths: Mapping[str, str] = field(factory=dict)


@frozen
class Edit:
    """Characters from `start` to `end` of a text, and what to put there."""

    start: int
    end: int
    text: str


def relink(data: bytes, path: str, moved: Relinking, is_file: IsFile) -> bytes:
    """The bytes of the note at `path` with its links as they have to be after the move.

    Raises `UnreadableNote`, as `relink_own` does.
    """
    return _apply(data, lambda text, start: _other_edits(text, start, path, moved, is_file))


def relink_own(data: bytes, moved: Relinking, is_file: IsFile, *, only_broken: bool) -> bytes:
    """The bytes of the moved note, written at its old place, for its new one: relative links change.

    `only_broken`: it may have been done already, so what leads to a file now stays.
    """
    return _apply(data, lambda text, start: _own_edits(text, start, moved, is_file, only_broken=only_broken))


def _apply(data: bytes, find: Callable[[str, int], Iterator[Edit]]) -> bytes:
    layout = read_layout(data)
    edits = sorted(find(layout.text, layout.body_start), key=lambda edit: edit.start)
    if not edits:
        return data
    parts: list[str] = []
    done = 0
    for edit in edits:
        parts += (layout.text[done : edit.start], edit.text)
        done = edit.end
    return "".join([*parts, layout.text[done:]]).encode()


def _other_edits(text: str, start: int, path: str, moved: Relinking, is_file: IsFile) -> Iterator[Edit]:
    code = code_spans(text)
    yield from _wiki_edits(text, start, code, moved)
    folder = folder_of(path)
    for at, written, is_raw in _markdown_links(text, start, code):
        target = unquote(written, errors="replace")
        is_rooted = target.startswith("/")
        joined = _join("" if is_rooted else folder, target)
        new = _moved_to(joined, moved)
        if new is None and not is_file(joined):  # a path from the folder of all notes, as Obsidian writes it
            is_rooted, new = True, _moved_to(_join("", target), moved)
        if new is not None:
            yield Edit(at, at + len(written), _destination(new, folder, target, is_raw, is_rooted=is_rooted))


def _own_edits(
    text: str, start: int, moved: Relinking, is_file: IsFile, *, only_broken: bool
) -> Iterator[Edit]:
    code = code_spans(text)
    yield from _wiki_edits(text, start, code, moved)
    before, after = folder_of(moved.old), folder_of(moved.new)
    for at, written, is_raw in _markdown_links(text, start, code):
        target = unquote(written, errors="replace")
        is_rooted = target.startswith("/")
        joined = _join("" if is_rooted else before, target)
        new = _moved_to(joined, moved)
        if new is None and (is_rooted or before == after or not is_file(joined)):
            continue
        if only_broken and is_file(_join("" if is_rooted else after, target)):
            continue
        final = joined if new is None else new
        yield Edit(at, at + len(written), _destination(final, after, target, is_raw, is_rooted=is_rooted))


def _moved_to(path: str, moved: Relinking) -> str | None:
    return moved.paths.get(path) or moved.paths.get(normalise("NFC", path))


def _join(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, target.lstrip("/")))


def _destination(path: str, folder: str, target: str, is_raw: bool, *, is_rooted: bool) -> str:
    """The destination of a Markdown link in `folder` to `path`, in the manner of what it was (`target`)."""
    if is_rooted:
        text = f"/{path}" if target.startswith("/") else path
    else:
        text = posixpath.relpath(path, folder or ".")
        if target.startswith("./") and not text.startswith("../"):
            text = f"./{text}"
    kept = " ()" if is_raw else ""
    return _ENCODED.sub(lambda match: match[0] if match[0] in kept else f"%{ord(match[0]):02X}", text)


def _wiki_edits(text: str, start: int, code: Sequence[tuple[int, int]], moved: Relinking) -> Iterator[Edit]:
    if not moved.pages:
        return
    for match in matches_of_brackets(_WIKI, text):
        if match.start() < start or _is_within(match.start(), code):
            continue
        written = match[1].removesuffix("\\") if match[2] else match[1]
        target = join_lines(written)
        if target not in moved.pages:
            written = written.partition("#")[0]
            target = join_lines(written)
        new = moved.pages.get(target)
        if new is not None and new != target:
            begin = match.start(1) + len(written) - len(written.lstrip())
            yield Edit(begin, match.start(1) + len(written.rstrip()), new)


def join_lines(text: str) -> str:
    """The text without blanks around it; a line break counts as a space."""
    return " ".join(filter(None, (line.strip() for line in text.split("\n"))))


def _markdown_links(
    text: str, start: int, code: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, str, bool]]:
    """Where each relative destination begins, its text before any anchor, and whether it is in `<>`."""
    while start < len(text):
        stop = _end_of_piece(text, start)
        for match in _MARKDOWN.finditer(text, start, stop):
            group = 1 if match[1] else 2
            written = _ANCHOR.split(match[group], maxsplit=1)[0].rstrip()
            if written and not _SCHEME.match(written) and not _is_within(match.start(), code):
                yield match.start(group), written, group == 1
        start = stop


def _end_of_piece(text: str, start: int) -> int:
    stop = start + PIECE
    if stop >= len(text):
        return len(text)
    cut = text.rfind("\n", start, stop) + 1 or text.rfind("](", start, stop)
    return cut if cut > start else stop


def code_spans(text: str) -> list[tuple[int, int]]:
    """Where code is, fenced or inline, in order; an open fence reaches to the end."""
    spans: list[tuple[int, int]] = []
    done = 0
    for start, end in code_fences(text):
        spans += _inline_code(text, done, start)
        spans.append((start, end))
        done = end
    return spans + list(_inline_code(text, done, len(text)))


def _inline_code(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """From backticks to the next ones of the same number in the paragraph."""
    if text.find("`", start, end) < 0:
        return
    runs: list[tuple[int, int]] = []
    while start < end:
        stop = min(_end_of_piece(text, start), end)
        runs += (match.span() for match in _TICKS.finditer(text, start, stop))
        start = stop
    partners: list[int] = [0] * len(runs)
    following: dict[int, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        begin, after = runs[number]
        if text[begin] == "\n":
            following.clear()
            continue
        is_escaped = begin > 0 and text[begin - 1] == "\\"
        partners[number] = 0 if is_escaped else following.get(after - begin, 0)
        following[after - begin] = number
    number = 0
    while number < len(runs):
        partner = partners[number]
        if partner:
            yield runs[number][0], runs[partner][1]
        number = max(number, partner) + 1


def _is_within(position: int, spans: Sequence[tuple[int, int]]) -> bool:
    number = bisect_right(spans, (position, len(spans) and spans[-1][1] + 1)) - 1
    return number >= 0 and spans[number][0] <= position < spans[number][1]
