"""Markdown that can be pasted as it is: nothing that a note says can look like the frame around it.

Headings inside an excerpt become bold lines, fenced code that an excerpt cuts is opened or closed again, and
titles and paths are shown on one line of bounded length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from lithos.core.text.markdown import code_fences

#: Characters of a title, of a path and of a section in a line of the frame.
TITLE_SHOWN: Final = 120
PATH_SHOWN: Final = 240
SECTION_SHOWN: Final = 120
#: Stands where passages of a section are left out.
GAP: Final = "\n\n[…]\n\n"

_HEADING: Final = re.compile(r"^([ \t>]{0,16})(#{1,6})(?:[ \t]+([^\n]*?))?[ \t]*$", re.MULTILINE)
_UNDERLINE: Final = re.compile(r"(?<=[^\n])\n {0,3}(?:=+|-+)[ \t]*(?=\n|\Z)")
_CLOSING: Final = re.compile(r"[ \t]+#+$")
_TICKS: Final = re.compile(r"`{3,}|~{3,}")
_INFO: Final = re.compile(r"[\w+-]{0,20}")
#: What would end a line, or a `code` mark, of the frame.
_BREAKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str, most: int) -> str:
    """A text on one line, without what cannot be seen, and its middle left out where it is long."""
    text = _BREAKS.sub(" ", text[: 4 * most] if len(text) > 4 * most else text).strip()
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half].rstrip()}…{text[-half:].lstrip()}"


def header(title: str, path: str, version: int, section: str) -> str:
    """The line that an excerpt stands under; of a long section path only the innermost names are shown."""
    names = section.split(" > ")
    while len(names) > 1 and len(" > ".join(names)) > SECTION_SHOWN:
        names = names[1:]
    return (
        f"### {one_line(title, TITLE_SHOWN)} ({one_line(path, PATH_SHOWN)}, v{version}, "
        f"{one_line(' > '.join(names), SECTION_SHOWN)})"
    )


def render_spans(content: str, spans: Sequence[tuple[int, int]], fences: Sequence[tuple[int, int]]) -> str:
    """Parts of a note in their order; `fences` are where its fenced code is (`code_fences`)."""
    return GAP.join(demote(_mended(content, start, end, fences)) for start, end in spans)


def _mended(content: str, start: int, end: int, fences: Sequence[tuple[int, int]]) -> str:
    """`content[start:end]` with the fences that it cuts opened and closed again."""
    text = content[start:end]
    for number in range(bisect_right(fences, start, key=itemgetter(1)), len(fences)):
        begin, stop = fences[number]
        if begin >= end:
            break
        mark = _TICKS.search(content, begin, min(stop, begin + 200))
        if mark is None:
            continue
        if begin < start < stop:
            info = _INFO.match(content, mark.end())
            text = f"{mark[0][:20]}{info[0] if info else ''}\n{text}"
        is_closed = content[start:end].rstrip().endswith(mark[0][:3]) and stop <= end
        if not is_closed and (stop > end or stop == len(content)):
            text = f"{text}\n{mark[0][:20]}"
    return text


def demote(text: str) -> str:
    """The text with its headings, outside fenced code, as bold lines."""
    if "#" not in text and "\n-" not in text and "\n=" not in text and "\n " not in text:
        return text
    return "".join(_demoted(text))


def _demoted(text: str) -> Iterator[str]:
    done = 0
    for start, end in code_fences(text):
        yield _flatten(text[done:start])
        yield text[start:end]
        done = end
    yield _flatten(text[done:])


def _flatten(text: str) -> str:
    return _HEADING.sub(_bold, _UNDERLINE.sub("", text))


def _bold(found: re.Match[str]) -> str:
    words = _CLOSING.sub("", found[3] or "").strip().strip("#").strip()
    return f"{found[1]}**{words}**" if words else found[1].rstrip()
