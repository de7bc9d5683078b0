"""Outline of a note's body: its CommonMark headings, and the sections that they begin.

markdown-it-py decides which lines are headings. Only headings outside lists and quotes begin sections.
Positions are character offsets in the body, which is the text after the frontmatter. Parsing takes linear
time in the length of the body.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput, SectionNotFound
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.limits import TITLE
from lithos.text.chunk import scan_headings
from lithos.text.markdown import plain_title
from lithos.text.words.analysis import normalise
from lithos.text.yaml.layout import Layout

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

#: Name of the section before the first heading.
TOP: Final = "(top)"
#: Name in a path for a heading without text.
UNTITLED: Final = "(untitled)"
JOINT: Final = " > "
#: Maximum number of paths that an error lists.
CANDIDATES: Final = 20
#: Number of hexadecimal digits in the hash of a section.
HASH_DIGITS: Final = 12
#: Maximum number of lines to parse. A line of a list or table takes 20 microseconds and a line of an endless
#: quote 70, so the worst case takes some seconds.
MOST_LINES: Final = 100_000
#: Maximum nesting depth, of which each list uses two levels. Deeper content of an item is read as plain
#: paragraphs. Beyond a limit of the parser, the rest of the body would be skipped.
DEEPEST: Final = 20
#: Number of blocks before a change that are parsed again. These include the changed block and a block that it
#: may join. The text before them may be a link definition. A link definition is not a block, and its title
#: may continue in the next lines.
_AROUND: Final = 3

_BREAK: Final = re.compile(r"\r\n?|\n")
_TEXT: Final = re.compile(r"[^ \t\r\n]")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_MARKS: Final = re.compile(r"^#{1,6}[ \t]+")
_TASK: Final = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+\[([ xX])\](?=[ \t])")


@frozen
class Heading:
    """A heading: start of its first line, end of the text in its last line, level (1-6) and text."""

    start: int
    text_end: int
    level: int
    name: str


@frozen
class TaskItem:
    """A task-list item: position of the character between its brackets, and its text on one line."""

    mark: int
    is_done: bool
    text: str


@frozen
class Blocks:
    """Parse result of a body: its headings, and the start of each outermost block."""

    headings: tuple[Heading, ...]
    starts: tuple[int, ...]


@frozen
class Section:
    """A section of a note's body.

    `start`: start of the section's heading. For `(top)`, the start of the first line of text, or the position
    where it would be inserted. `text_end`: end of the text in the heading's last line. For `(top)`, end of
    the text in the title line. `stop`: end of the section's last non-blank line, without the line break.
    `end`: start of the next section that is not a subsection.
    """

    path: str
    level: int
    start: int
    text_end: int
    stop: int
    end: int


@cache
def _parser() -> MarkdownIt:
    """Return a CommonMark block parser. The parser keeps no state between texts, so threads may share it."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a twentieth of a start, and for few calls
    from markdown_it.rules_block import blockquote, list_block  # noqa: PLC0415

    class Markdown(MarkdownIt):
        """A parser that ignores link targets, which do not matter here and are sometimes slow to check."""

        def normalizeLink(self, url: str) -> str:  # noqa: N802
            return url

        def validateLink(self, url: str) -> bool:  # noqa: N802
            return True

    def shallow(rule: Callable[[StateBlock, int, int, bool], bool]) -> Callable[..., bool]:
        def read(state: StateBlock, start: int, end: int, silent: bool) -> bool:
            return (silent or state.level < DEEPEST) and rule(state, start, end, silent)

        return read

    parser = Markdown("commonmark", {"maxNesting": 2 * DEEPEST})
    others = ["paragraph", "reference"]
    parser.block.ruler.at("list", shallow(list_block), {"alt": [*others, "blockquote"]})
    parser.block.ruler.at("blockquote", shallow(blockquote), {"alt": [*others, "blockquote", "list"]})
    return parser


class Outline:
    """The sections of one body in document order, with methods to find and hash sections."""

    def __init__(self, body: str, title: tuple[int, int] | None, blocks: Blocks) -> None:
        """Create the outline. `title` is the bounds of the H1 that contains the note's title, or None."""
        self.body = body
        self.blocks = blocks
        self.title = title
        #: End of the title's text, or 0 if there is no title. The content begins after this position.
        self.origin = 0 if title is None else title[1]
        self.sections = _make_sections(body, title, blocks.headings)

    def listed(self) -> Sequence[Section]:
        """Return the sections to list. An empty `(top)` is left out."""
        return [each for each in self.sections if each.path != TOP or each.start < each.stop]

    def find(self, given: str) -> Section:
        """Return the section with the given path.

        The end of a path suffices if only one section matches. Case is ignored.

        Raises `SectionNotFound` with `candidates` if no section or several sections match.
        """
        wanted = " ".join(given.split())
        for each in self.sections:
            if each.path == wanted:
                return each
        for key in dict.fromkeys((_key(wanted), _key(_MARKS.sub("", wanted)))):
            found = [each for each in self.sections if _key(each.path) == key]
            found = found or [each for each in self.sections if _key(each.path).endswith(_key(JOINT) + key)]
            if len(found) == 1:
                return found[0]
            if found:
                raise SectionNotFound(
                    f"{len(found)} sections match {given[:200]!r}. Give the full path of "
                    "one of them: see candidates.",
                    candidates=[each.path for each in found[:CANDIDATES]],
                )
        raise SectionNotFound(
            f"Unknown section {given[:200]!r}. Use a path of candidates, or read the note with outline=true.",
            candidates=[each.path for each in self._nearest(_key(wanted))],
        )

    def _nearest(self, key: str) -> Sequence[Section]:
        """Return the sections with similar names first.

        If no section has a similar name, return the sections in document order.
        """
        words = set(key.split())
        like = [each for each in self.sections if key in _key(each.path)]
        like += [each for each in self.sections if words & set(_key(each.path).split())]
        return list(dict.fromkeys([*like, *self.listed()]))[:CANDIDATES]

    def at(self, start: int, level: int) -> Section | None:
        """Return the section that begins at a position, or None. Level 0 selects `(top)`."""
        for each in self.sections:
            if each.level == level and (level == 0 or each.start == start):
                return each
        return None

    def text_of(self, section: Section) -> str:
        """Return the section's text including its heading, without surrounding blank lines."""
        return self.body[section.start : section.stop]

    def hash_of(self, section: Section) -> str:
        """Return the hash of the section's text."""
        return hash_text(self.text_of(section))


def hash_text(text: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 hash of the text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def title_of(layout: Layout) -> tuple[int, int] | None:
    """Return the bounds of the title's H1 in a file's body: start of the H1, and end of its text.

    Return None if there is no title.
    """
    heading = layout.heading
    if heading is None or layout.keeps_heading:
        return None
    end = heading.line_end
    if layout.text[end - 1] == "\r":
        end -= 1
    return heading.line_start - layout.body_start, end - layout.body_start


def read_outline(body: str, title: tuple[int, int] | None = None) -> Outline:
    """Return the outline of a body. Raises `InvalidInput` for more than `MOST_LINES` lines."""
    return Outline(body, title, _read_blocks(body))


def scan_outline(body: str) -> Outline:
    """Return the outline of a body, using only its `#` headings.

    Reading only `#` headings takes a fraction of the time of `read_outline`.

    The outline equals that of `read_outline` if no heading is underlined and no `#` line is in a comment or a
    list.
    """
    found = (
        (start, body.find("\n", start), level, _plain(text)) for start, level, text in scan_headings(body)
    )
    headings = tuple(
        Heading(start, len(body) if end < 0 else end, level, name or UNTITLED)
        for start, end, level, name in found
    )
    return Outline(body, None, Blocks(headings, ()))


def read_changed(old: Outline, body: str, title: tuple[int, int] | None, start: int, end: int) -> Outline:
    """Return the outline of a changed body.

    `start` and `end` are the bounds of the change in the body of `old`.

    Only a few blocks around the change are parsed, because a block does not depend on the text before its
    first line. Raises `InvalidInput` like `read_outline`.
    """
    starts, grown = old.blocks.starts, len(body) - len(old.body)
    first = max(bisect_left(starts, start) - _AROUND, 0)
    begin = starts[first] if first else 0
    last = bisect_left(starts, end)
    while True:
        # If a block begins at the same position in both bodies, all blocks after it are unchanged.
        joint = starts[last] if last < len(starts) else None
        stop = starts[last + 1] if last + 1 < len(starts) else len(old.body)
        found = _read_blocks(body[begin : stop + grown])
        if joint is None or joint + grown - begin in found.starts:
            break
        last = len(starts)
    keep = len(body) if joint is None else joint + grown
    blocks = Blocks(
        (
            *(each for each in old.blocks.headings if each.start < begin),
            *(each for each in _moved(found.headings, begin) if each.start < keep),
            *_moved(
                [each for each in old.blocks.headings if joint is not None and each.start >= joint], grown
            ),
        ),
        (
            *starts[:first],
            *(each + begin for each in found.starts if each + begin < keep),
            *(each + grown for each in starts[last:]),
        ),
    )
    return Outline(body, title, blocks)


def begins_with_heading(text: str, level: int) -> bool:
    """Return whether the first block of a text is a heading of this level."""
    paragraph = re.split(r"\n[ \t\r]*\n", text, maxsplit=1)[0]
    if paragraph.count("\n") > TITLE:
        return False
    headings = _read_blocks(paragraph).headings
    return bool(headings) and headings[0].level == level and not paragraph[: headings[0].start].strip()


def _moved(headings: Sequence[Heading], by: int) -> Iterator[Heading]:
    return (Heading(each.start + by, each.text_end + by, each.level, each.name) for each in headings)


def _lines_of(body: str) -> list[int]:
    """Return the start of each line, and the length of the text."""
    starts = [0, *(found.end() for found in _BREAK.finditer(body)), len(body)]
    if len(starts) > MOST_LINES:
        raise InvalidInput(
            f"The note has more than {MOST_LINES:,} lines, which is too many to find sections. "
            "Leave out section and outline, or split the note into several notes."
        )
    return starts


def _tokens_of(body: str) -> list[Token]:
    tokens: list[Token] = []
    environment: dict[str, Any] = {}
    parser = _parser()
    parser.block.parse(_BREAK.sub("\n", body) if "\r" in body else body, parser, environment, tokens)
    return tokens


def _read_blocks(body: str) -> Blocks:
    lines = _lines_of(body)
    tokens = _tokens_of(body)
    headings: list[Heading] = []
    starts: list[int] = []
    for number, token in enumerate(tokens):
        if token.level or token.nesting < 0 or token.map is None:
            continue
        begin = lines[token.map[0]]
        starts.append(begin)
        if token.type == "heading_open":
            end = body[begin : lines[token.map[1]]].rstrip("\r\n")
            name = _plain(tokens[number + 1].content)
            headings.append(Heading(begin, begin + len(end), int(token.tag[1:]), name or UNTITLED))
    return Blocks(tuple(headings), tuple(starts))


def scan_tasks(body: str) -> Iterator[TaskItem]:
    """Yield the task-list items of a body or section.

    Items in lists and quotes are included. Items in code are not.
    """
    if "[" not in body:
        return
    lines = _lines_of(body)
    tokens = _tokens_of(body)
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type != "list_item_open" or paragraph.type != "paragraph_open":
            continue
        if not item.map or not paragraph.map or item.map[0] != paragraph.map[0]:
            continue
        text = inline.content
        found = _TASK.match(body, lines[item.map[0]], lines[item.map[0] + 1])
        if found is not None and text[:1] == "[" and text[2:3] == "]" and text[3:4] in (" ", "\t"):
            yield TaskItem(found.start(1), text[1] != " ", " ".join(text[4:].split()))


def _plain(text: str) -> str:
    """Return a heading's text on one line without markup, cut to `TITLE` characters."""
    line = " ".join(plain_title(" ".join(text.split())).split())
    return " ".join(beginning(_ESCAPED.sub(r"\1", line), TITLE).split())


def _key(text: str) -> str:
    return normalise("NFC", text).casefold()


def _make_sections(body: str, title: tuple[int, int] | None, found: Sequence[Heading]) -> tuple[Section, ...]:
    """Return `(top)` and one section per heading.

    The title does not begin a section, but it ends the sections before it.
    """
    origin = 0 if title is None else title[1]
    headings = [each for each in found if title is None or each.start != title[0]]
    first = bisect_left([each.start for each in headings], origin)
    names, ends = _nested(headings, first, len(body))
    sections = [_top(body, origin, headings[first].start if first < len(headings) else len(body))]
    for path, each, after in zip(_number([TOP, *names])[1:], headings, ends, strict=True):
        end = title[0] if title is not None and each.start < title[0] < after else after
        stop = stop_before(body, end, each.text_end)
        sections.append(Section(path, each.level, each.start, each.text_end, stop, end))
    return tuple(sorted(sections, key=lambda each: (each.start, each.level)))


def _nested(headings: Sequence[Heading], first: int, length: int) -> tuple[list[str], list[int]]:
    """Return the path of each heading and the end of its section. Equal paths are not numbered yet.

    A section ends at the next heading of the same or a higher level. Headings before index `first` precede
    the note's title. No path combines headings from before and after the title.
    """
    names, ends, outer = list[str](), [length] * len(headings), list[int]()
    for number, each in enumerate(headings):
        while outer and headings[outer[-1]].level >= each.level:
            ends[outer.pop()] = each.start
        outer.append(number)
        names.append(JOINT.join(headings[one].name for one in outer if (one < first) == (number < first)))
    return names, ends


def _top(body: str, origin: int, end: int) -> Section:
    first = _TEXT.search(body, origin, end)
    if first is None:
        return Section(TOP, 0, end, origin, end, end)
    start = max(body.rfind("\n", origin, first.start()), body.rfind("\r", origin, first.start())) + 1
    start = max(start, origin)
    return Section(TOP, 0, start, origin, stop_before(body, end, start), end)


def stop_before(body: str, at: int, least: int) -> int:
    """Return the end of the last text before `at`, but at least `least`.

    Blanks that follow on the same line are included.
    """
    stop = at
    while stop > least and body[stop - 1] in " \t\r\n":
        stop -= 1
    while stop < at and body[stop] in " \t":
        stop += 1
    return stop


def _number(paths: Sequence[str]) -> list[str]:
    """Return unique paths: the second of two equal paths gets ` (2)`, the third ` (3)`."""
    taken, seen = set(paths), Counter[str]()
    numbered: list[str] = []
    for path in paths:
        seen[path] += 1
        name = path
        if seen[path] > 1:
            while (name := f"{path} ({seen[path]})") in taken:
                seen[path] += 1
            taken.add(name)
        numbered.append(name)
    return numbered
