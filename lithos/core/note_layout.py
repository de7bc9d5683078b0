"""Where the parts of a note file stand: byte-order mark, frontmatter, leading H1, content."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lithos.core.yaml_nodes import UnreadableNote

_OPENING: Final = re.compile(r"---[ \t]*\r?\n")
_CLOSING: Final = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_BLANK_LINES: Final = re.compile(r"[ \t\r\n]*\n")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")


@frozen(kw_only=True)
class Heading:
    """The leading H1: its line without line break, and the text within that line."""

    line_start: int
    line_end: int
    start: int
    end: int


@frozen(kw_only=True)
class Layout:
    """A decoded note file; all positions count characters of `text`.

    Without frontmatter `yaml_start`, `yaml_end` and `body_start` are equal: where it would go.
    """

    text: str
    newline: str
    has_frontmatter: bool
    yaml_start: int
    yaml_end: int
    body_start: int
    heading: Heading | None

    @property
    def yaml(self) -> str:
        """The text between the `---` lines."""
        return self.text[self.yaml_start : self.yaml_end]

    @property
    def content(self) -> str:
        """The body without its leading H1, stripped; line breaks of a CRLF file become `\\n`."""
        if self.heading is None:
            body = self.text[self.body_start :]
        else:
            before = self.text[self.body_start : self.heading.line_start]
            body = before + self.text[self.heading.line_end :]
        return unify_breaks(body, self.newline).strip()


def unify_breaks(text: str, newline: str) -> str:
    """`text` of a file whose line breaks are `newline`, with `\\n` instead."""
    return text.replace("\r\n", "\n") if newline == "\r\n" else text


def read_layout(data: bytes) -> Layout:
    """Raises `UnreadableNote` for binary data and anything but UTF-8."""
    text = _decode(data)
    start = 1 if text.startswith("\ufeff") else 0
    opening = _OPENING.match(text, start)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    first_break = text.find("\n")
    found = opening is not None and closing is not None
    body_start = closing.end() if closing else start
    return Layout(
        text=text,
        newline="\r\n" if text[max(first_break - 1, 0) : first_break] == "\r" else "\n",
        has_frontmatter=found,
        yaml_start=opening.end() if opening and found else start,
        yaml_end=closing.start() if closing else start,
        body_start=body_start,
        heading=_find_heading(text, body_start),
    )


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableNote("the file is binary (it has NUL bytes); move it out of the notes folder")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableNote(
            f"the file is not UTF-8 (byte {error.start}); save it as UTF-8 in an editor"
        ) from error


def _find_heading(text: str, position: int) -> Heading | None:
    """The first H1 with a text; only blank lines and other headings may stand before it."""
    while True:
        blank = _BLANK_LINES.match(text, position)
        position = blank.end() if blank else position
        mark = _HEADING.match(text, position)
        if mark is None:
            return None
        line_end = text.find("\n", position)
        line_end = len(text) if line_end < 0 else line_end
        title = text[mark.end() : line_end]
        if len(mark[1]) == 1 and title.strip():
            return Heading(
                line_start=position,
                line_end=line_end,
                start=mark.end() + len(title) - len(title.lstrip()),
                end=mark.end() + len(title.rstrip()),
            )
        position = line_end
        if position == len(text):
            return None
