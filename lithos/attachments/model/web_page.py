"""Visible text of HTML pages, without markup, scripts, styles and comments.

The scanner reads the page once and never backtracks. In contrast, `html.parser` of many Python versions
becomes slow at unclosed tags and comments. The scanner only interprets tags that separate words, and it
downloads nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from lithos.attachments.model.parts import FilePart
from lithos.attachments.model.plain import Piece, decode, pack

#: Encodings that a page may declare. Other encodings of Python are slow or are not text encodings.
_ENCODINGS: Final = re.compile(
    r"(?:utf-?8|iso-8859-\d\d?|windows-125\d|koi8-[ru]|shift_jis|euc-jp|iso-2022-jp|gb2312|gbk|gb18030|big5|euc-kr)\Z",
    re.I,
)
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s{0,9}=\s{0,9}[\"']?([\w-]{1,40})", re.I)
_HEAD: Final = 2_048

_NAME: Final = re.compile(r"[a-z][^\s/>]{0,40}", re.I)
#: The end of a tag, or a quote inside which `>` does not end the tag.
_IN_TAG: Final = re.compile("[>\"']")
#: Elements whose content is not visible text, with the pattern that ends each element.
_HIDDEN: Final = {
    name: re.compile(rf"</{name}[\s/>]", re.I)
    for name in ("script", "style", "iframe", "noembed", "noframes", "template")
}
#: Elements that separate paragraphs. Below them: elements that only separate lines.
_PARAGRAPHS: Final = frozenset(
    (
        "p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "dl", "pre", "blockquote", "section",
        "article", "header", "footer", "main", "nav", "aside", "hr", "title", "figure", "form", "fieldset",
        "details",
    )
)  # fmt: skip
_LINES: Final = frozenset(
    (
        "div", "li", "tr", "dt", "dd", "br", "option", "textarea", "figcaption", "caption", "address",
        "summary", "legend", "button", "select", "label", "body",
    )
)  # fmt: skip
_CELLS: Final = frozenset(("td", "th"))
_SPACE: Final = re.compile(r"\s+")
#: Character references with more digits than Python parses.
_LONG_NUMBER: Final = re.compile("&#[0-9]{8,};?")


def read_page(data: bytes) -> Iterator[FilePart]:
    """Yield parts of the visible text, with source lines as places. Raises `NotExtractable`."""
    named = _CHARSET.search(data[:_HEAD])
    encoding = named[1].decode() if named else ""
    return pack(_Page(decode(data, encoding if _ENCODINGS.match(encoding) else "cp1252")).blocks())


class _Page:
    """The visible lines of a page, with their positions in the source."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._position = _Position(source)
        self._held = list[str]()
        self._begun = (1, 1)
        self._preformatted = 0

    def blocks(self) -> Iterator[Piece]:
        """Yield the lines. An empty line ends a paragraph."""
        for start, text, tag in _tokens(self._source):
            if text:
                yield from self._take_text(start, text)
            else:
                yield from self._take_tag(tag)
        yield from self._end_line()

    def _take_text(self, start: int, text: str) -> Iterator[Piece]:
        if not self._held:
            if text.isspace():
                return
            self._begun = self._position.at(start + len(text) - len(text.lstrip()))
        self._held.append(_unescaped(text))
        if self._preformatted and "\n" in text:
            lines = "".join(self._held).split("\n")
            line, column = self._begun
            for number, each in enumerate(lines[:-1]):
                yield line + number, 1 if number else column, each
            self._held, self._begun = lines[-1:], (line + len(lines) - 1, 1)

    def _take_tag(self, tag: str) -> Iterator[Piece]:
        name = tag.lstrip("/")
        if name in _CELLS and self._held:
            self._held.append(" ")
        elif name in _LINES or name in _PARAGRAPHS:
            yield from self._end_line()
            if name in _PARAGRAPHS:
                yield (*self._position.last, "")
        if name == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if tag.startswith("/") else 1))

    def _end_line(self) -> Iterator[Piece]:
        line = "".join(self._held)
        line = line if self._preformatted else _SPACE.sub(" ", line).strip()
        self._held = []
        if line:
            yield (*self._begun, line)


class _Position:
    """Converter from text offsets to line and character. Offsets must be passed in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self.last = (1, 1)

    def at(self, offset: int) -> tuple[int, int]:
        line = self.last[0] + self._text.count("\n", self._offset, offset)
        break_before = self._text.rfind("\n", self._offset, offset)
        column = offset - break_before if break_before >= 0 else self.last[1] + offset - self._offset
        self._offset, self.last = offset, (line, column)
        return self.last


def _tokens(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield texts with their offsets, and tag names in lower case, with `/` for end tags."""
    start = 0
    while start < len(source):
        opening = source.find("<", start)
        if opening < 0:
            opening = len(source)
        if opening > start:
            yield start, source[start:opening], ""
        start, tag = _skip_tag(source, opening)
        if tag:
            yield opening, "", tag
        elif start == opening + 1:
            yield opening, "<", ""


def _skip_tag(source: str, opening: int) -> tuple[int, str]:
    """Return the end of the markup that begins with `<`, and its tag name.

    If no markup begins there, return the end of the first character.

    Markup that is not closed extends to the end of the page, as in browsers.
    """
    if source.startswith("<!--", opening):
        return _after(source, "-->", opening + 4), ""
    if source.startswith(("<!", "<?"), opening):
        return _after(source, ">", opening + 2), ""
    is_end = source.startswith("</", opening)
    found = _NAME.match(source, opening + 1 + is_end)
    if found is None:
        return min(opening + 1, len(source)), ""
    name = found[0].lower()
    end = _end_of_tag(source, found.end())
    if not is_end and name in _HIDDEN:
        closing = _HIDDEN[name].search(source, end)
        return (len(source) if closing is None else _after(source, ">", closing.end() - 1)), name
    return end, f"/{name}" if is_end else name


def _after(source: str, sign: str, start: int) -> int:
    found = source.find(sign, start)
    return len(source) if found < 0 else found + len(sign)


def _end_of_tag(source: str, start: int) -> int:
    while (found := _IN_TAG.search(source, start)) is not None:
        start = found.end()
        if found[0] == ">":
            return start
        # A quote only counts at the beginning of an attribute value.
        before = found.start() - 1
        while source[before].isspace():
            before -= 1
        if source[before] == "=":
            start = _after(source, found[0], start)
    return len(source)


def _unescaped(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
