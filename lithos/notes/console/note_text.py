"""The part of a note's text for one page. A short text is shown completely, a long text in parts.

A part begins at a block and ends before a block, preferably before a heading. If a part would need too much
HTML (such as a thousand footnotes in ten lines), a smaller part is shown. The functions may take a tenth of a
second, so they run in a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen
from markupsafe import Markup, escape

from lithos.kernel.values.graphemes import beginning
from lithos.notes.console.markdown import Parsed, block_starts, parse_markdown

#: Maximum number of characters of a text that a page shows at once.
LONGEST: Final = 40_000
#: Maximum HTML size of one text in bytes. A page may have 200 kB including its other parts.
MOST_HTML: Final = 120_000
#: Number of characters that are shown as plain text if even a part of this length needs too much HTML.
_SMALLEST: Final = 1_000
#: Maximum number of outline entries.
MOST_HEADINGS: Final = 150
#: Maximum number of characters of a heading in an outline.
LONGEST_HEADING: Final = 120
#: An ATX heading with its marks and its text.
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


@frozen
class Jump:
    """An entry of the outline, with its target and whether the target is on the current page."""

    level: int
    text: str
    href: str
    is_here: bool = True


@frozen
class ParsedPart:
    """A parsed part of a text. `start` and `end` are character positions in the whole text.

    `finish` needs the notes to which `parsed.targets` refer.
    """

    parsed: Parsed
    start: int
    end: int


@frozen
class RenderedPart:
    """A part of a text as HTML, with its outline.

    `before` and `after` are the starts of the adjacent parts, if any.
    """

    html: Markup
    outline: Sequence[Jump]
    start: int
    end: int
    length: int
    before: int | None
    after: int | None
    more_headings: int = 0


def draft(text: str, path: str, start: int, most: int = LONGEST) -> ParsedPart:
    """Parse the part of a text that begins at `start` and has at most `most` characters."""
    start = max(0, min(start, len(text)))
    window = text[start : start + most]
    if start + most < len(text):
        window = window[: _end_of(window)]
    return ParsedPart(parse_markdown(window, path), start, start + len(window))


def _end_of(window: str) -> int:
    """Return the end of a part.

    A part ends before the last heading in its second half, or before its last block.
    """
    lines = [0, *(match.end() for match in re.finditer("\n", window))]
    places = [(lines[line], is_heading) for line, is_heading in block_starts(window) if 0 < line < len(lines)]
    headings = [place for place, is_heading in places if is_heading and place > len(window) / 2]
    if headings:
        return headings[-1]
    blocks = [place for place, _ in places if place > len(window) / 4]
    if blocks:
        return blocks[-1]
    return window.rfind("\n", len(window) // 2) + 1 or len(window)


def finish(text: str, path: str, made: ParsedPart, found: Mapping[str, str | None]) -> RenderedPart:
    """Return the HTML of a part. If the HTML would be too large, the part is shortened."""
    html, most = made.parsed.render(found), made.end - made.start
    while len(html.encode()) > MOST_HTML:
        most //= 2
        if most < _SMALLEST:
            return _plain(text, made.start)
        made = draft(text, path, made.start, most)
        html = made.parsed.render(found)
    is_whole = made.start == 0 and made.end == len(text)
    jumps = (
        [Jump(entry.level, _brief(entry.text), f"#{entry.anchor}") for entry in made.parsed.outline]
        if is_whole
        else _outline_of(text, made.start, made.end)
    )
    return _shown(html, jumps, made.start, made.end, text)


def _plain(text: str, start: int) -> RenderedPart:
    end = min(len(text), start + _SMALLEST)
    html = Markup("<pre>{}</pre>").format(escape(text[start:end]))
    return _shown(html, _outline_of(text, start, end), start, end, text)


def _shown(html: Markup, jumps: Sequence[Jump], start: int, end: int, text: str) -> RenderedPart:
    headings = [place for place, _, _ in scan_headings(text)] if start else []
    earlier = [place for place in headings if start - LONGEST <= place < start]
    before = None if not start else earlier[0] if earlier else max(0, start - LONGEST)
    return RenderedPart(
        html=html,
        outline=jumps[:MOST_HEADINGS],
        start=start,
        end=end,
        length=len(text),
        before=before,
        after=end if end < len(text) else None,
        more_headings=max(0, len(jumps) - MOST_HEADINGS),
    )


def _outline_of(text: str, start: int, end: int) -> list[Jump]:
    return [
        Jump(level, _brief(name), f"?from={place}#text", start <= place < end)
        for place, level, name in scan_headings(text)
    ]


def _brief(name: str) -> str:
    plain = re.sub(r"\[\[([^\[\]|]*\|)?([^\[\]|]*)\]\]|[*`]", r"\2", name[: 4 * LONGEST_HEADING])
    return beginning(plain, LONGEST_HEADING) or "(untitled)"


def scan_headings(text: str) -> list[tuple[int, int, str]]:
    """Return the ATX headings (`#`) of a text outside fenced code, with their offsets, levels and texts."""
    found: list[tuple[int, int, str]] = []
    place, fence = 0, ""
    for line in text.split("\n"):
        if fence or line.lstrip(" ")[:1] in ("#", "`", "~"):
            opening = _FENCE.match(line)
            if fence:
                if opening is not None and opening[1].startswith(fence) and not line.strip(" `~"):
                    fence = ""
            elif opening is not None:
                fence = opening[1]
            elif heading := _HEADING.match(line[:1_000]):
                found.append((place, len(heading[1]), heading[2]))
        place += len(line) + 1
    return found


def place_of(text: str, section: str) -> int | None:
    """Return the start position of a section, found by its path (`Deploy > Rollback`).

    Only the last name of the path is compared with the headings.
    """
    wanted = section.rpartition(">")[2].strip().casefold()
    for place, _, name in scan_headings(text):
        if name.casefold() == wanted:
            return place
    return None
