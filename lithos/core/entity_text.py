"""A note's body as extraction sees it: prose, labels, link targets and code spans (memory spec, section 4).

Code fences, tables and reference sections are gone. Everything here takes time in proportion to the
length of the text, whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, field

from lithos.core.links import scan_links

#: Stands in cleaned text where a name must end: at the edges of links, code and removed markup.
EDGE: Final = "\x1f"
LABEL_WORDS: Final = 3

_FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})([^\n]*)")
_HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]+(.*))?")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*")
_ITEM: Final = re.compile(r"(?:(?:[-*+•]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)+")
_DELIMITER_ROW: Final = frozenset("|:- \t")
_DEFINITION: Final = re.compile(r"\[[^\[\]]+\]:\s")
_NUMBERING: Final = re.compile(r"^[\d.)\s]+")
_REFERENCES: Final = frozenset(("references", "bibliography", "citations", "works cited", "sources"))
_CODE_SPAN: Final = re.compile(r"`{1,2}([^`]+)`{1,2}")
_WIKI_LINK: Final = re.compile(r"!?\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_FOOTNOTE: Final = re.compile(r"\[\^[^\[\]]*\]")
_LINK: Final = re.compile(r"(!?)\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|&#?\w{1,10};")
_LABEL: Final = re.compile(r"[\s" + EDGE + r"]*(\*\*|__)(.+?)\1[ \t]*(:|--?(?=\s)|[–—]|$)?")
_EMPHASIS: Final = re.compile(r"\*+|~~|==|(?<!\w)_+|(?<!_)_++(?!\w)")
_DASH: Final = re.compile(r"[–—…]|\.{3,}|--+")


@define
class BodyText:
    """What a body is made of; repeated links and code spans are there as often as they are written."""

    #: Paragraphs and list items, each on one line, without markup.
    prose: list[str] = field(factory=list)
    #: Headings and bold labels, without markup.
    labels: list[str] = field(factory=list)
    links: list[str] = field(factory=list)
    code: list[str] = field(factory=list)


def read_body(body: str) -> BodyText:
    """Take a body apart."""
    text = BodyText()
    for level, block in _without_references(_blocks(_without_comments(body))):
        label = None if level else _LABEL.match(block)
        if level:
            text.labels.append(_clean(block, text))
        elif label is not None and _is_label(label):
            text.labels.append(_clean(label[2], text))
            text.prose.append(_clean(block[label.end() :], text))
        else:
            text.prose.append(_clean(block, text))
    return text


def _without_comments(body: str) -> str:
    """The text without HTML comments; one that never ends is kept."""
    parts, position = [], 0
    while (begin := body.find("<!--", position)) >= 0 and (end := body.find("-->", begin)) >= 0:
        parts.append(body[position:begin])
        position = end + 3
    return "".join([*parts, body[position:]])


def _without_references(blocks: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Leave out each reference section, to the next heading of its level or above."""
    skipped = 0
    for level, block in blocks:
        if level and (not skipped or level <= skipped):
            skipped = level if _is_reference_heading(block) else 0
        if not skipped:
            yield level, block


def _blocks(body: str) -> Iterator[tuple[int, str]]:
    """Yield (heading level, text) of headings, and (0, text) of paragraphs and list items, in order."""
    paragraph: list[str] = []
    for level, line in _plain_lines(body.split("\n")):
        is_underline = bool(level and paragraph and not line)
        heading = paragraph.pop() if is_underline else line
        item = None if level else _ITEM.match(line)
        if paragraph and (level or item or not line):
            yield 0, " ".join(paragraph)
            paragraph = []
        if level:
            yield level, heading
        elif line:
            paragraph.append(line[item.end() :] if item else line)
    if paragraph:
        yield 0, " ".join(paragraph)


def _plain_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (heading level or 0, text) of the lines outside code and tables, quote marks removed.

    An underlined heading is its text line with level 0, then an empty one with its level.
    """
    in_table = False
    previous = ""
    for number, line in _outside_fences(lines):
        text = line.strip().lstrip("> \t")
        following = lines[number + 1] if number + 1 < len(lines) else ""
        in_table = (in_table and "|" in text) or text.startswith("|") or _begins_table(text, following)
        if in_table or _DEFINITION.match(text):
            previous = ""
            yield 0, ""
            continue
        heading = _HEADING.fullmatch(text)
        if heading:
            yield len(heading[1]), (heading[2] or "").rstrip("# \t")
        elif previous and _UNDERLINE.fullmatch(text) and len(line) - len(line.lstrip()) < 4:
            yield (1 if text[0] == "=" else 2), ""
        else:
            yield 0, text
        previous = "" if heading or _ITEM.match(text) else text


def _begins_table(text: str, following: str) -> bool:
    row = following.strip()
    return "|" in text and "|" in row and "-" in row and _DELIMITER_ROW.issuperset(row)


def _outside_fences(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines outside fenced code, numbered; a fence is an empty line."""
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if closes else fence
        elif mark is not None and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            yield number, ""
        else:
            yield number, line


def _is_reference_heading(heading: str) -> bool:
    bare = _NUMBERING.sub("", heading.replace("*", "").replace("_", " "))
    return " ".join(bare.strip(" :.").casefold().split()) in _REFERENCES


def _is_label(label: re.Match[str]) -> bool:
    text = label[2].strip()
    ends = label[3] is not None or text.endswith(":")
    return ends and len(text.split()) <= LABEL_WORDS


def _clean(block: str, text: BodyText) -> str:
    """The words of a block without markup; its links and code spans are put into `text`."""

    def take_code(span: re.Match[str]) -> str:
        text.code.append(span[1].strip())
        return f" {EDGE} "

    def take_link(link: re.Match[str]) -> str:
        found = scan_links(link[0].removeprefix("!"))
        if link[0].startswith("!") or not found:
            return f" {EDGE} "
        text.links.append(found[0].target)
        return f" {EDGE} {found[0].display} {EDGE} "

    block = _WIKI_LINK.sub(take_link, _CODE_SPAN.sub(take_code, block))
    block = _LINK.sub(_link_text, _FOOTNOTE.sub("", block))
    block = _EMPHASIS.sub("", _TAG.sub(f" {EDGE} ", block))
    return _DASH.sub(f" {EDGE} ", block)


def _link_text(link: re.Match[str]) -> str:
    return f" {EDGE} " if link[1] else link[2]
