"""Splitting of a note file into byte-order mark, frontmatter, leading H1 and content, by position."""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import frozen
from frontmatter.default_handlers import YAMLHandler

from lithos.text.yaml.nodes import UnreadableNote, read_mapping

_BLANK_LINES: Final = re.compile(r"[ \t\r\n]*\n")
#: The line that ends a frontmatter. It is the `---` line, or the end of a YAML or Pandoc document (`...`),
#: which a `---` line may follow.
_END: Final = re.compile(r"^(?:---|\.\.\.[ \t]*(?:\r?\n---)?)[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t\r\n]|\Z)")
#: The first line that is neither blank nor a comment.
_FIRST_LINE: Final = re.compile(r"^[^\S\n]*([^\s#][^\n]*)", re.MULTILINE)
#: Maximum number of words before a colon in a key. More words are prose.
_KEY_WORDS: Final = 3


@frozen(kw_only=True)
class TitleHeading:
    """The leading H1: its line without the line break, and the text in that line."""

    line_start: int
    line_end: int
    start: int
    end: int


@frozen(kw_only=True)
class Layout:
    """A decoded note file. All positions are character offsets in `text`.

    If there is no frontmatter, `yaml_start`, `yaml_end` and `body_start` are the position where it would be
    inserted.
    """

    text: str
    newline: str
    has_frontmatter: bool
    yaml_start: int
    yaml_end: int
    body_start: int
    heading: TitleHeading | None
    #: True if the heading belongs to the content and the title is stored elsewhere.
    keeps_heading: bool = False

    @property
    def yaml(self) -> str:
        """The text between the `---` lines."""
        return self.text[self.yaml_start : self.yaml_end]

    @property
    def body(self) -> str:
        """The text after the frontmatter, unchanged."""
        return self.text[self.body_start :]

    @property
    def content(self) -> str:
        """The body without its leading H1 and without surrounding blank lines.

        In a CRLF file, line breaks become `\\n`.

        If `keeps_heading` is True, the H1 stays in the content.
        """
        if self.heading is None or self.keeps_heading:
            body = self.body
        else:
            before = self.text[self.body_start : self.heading.line_start]
            body = before + self.text[self.heading.line_end :]
        return trim_content(unify_breaks(body, self.newline))


def unify_breaks(text: str, newline: str) -> str:
    """Return `text` with each `newline` replaced by `\\n`."""
    return text.replace("\r\n", "\n") if newline == "\r\n" else text


def trim_content(text: str) -> str:
    """Return `text` without surrounding blank lines. The first line keeps its indentation."""
    blank = _BLANK_LINES.match(text)
    return text[blank.end() if blank else 0 :].rstrip()


def tail_of(text: str) -> str:
    """Return the white space after the last line of `text`. If `text` is blank, return an empty text."""
    kept = len(text.rstrip())
    return text[kept:] if kept else ""


def read_layout(data: bytes, *, keeps_heading: bool = False) -> Layout:
    """Split a file into its parts. A file that begins with a thematic break has no frontmatter.

    Raises `UnreadableNote` for binary data and for text that is not UTF-8.
    """
    text = _decode(data)
    start = yaml_start = yaml_end = body_start = 1 if text.startswith("\ufeff") else 0
    first_break = text.find("\n")
    if (parts := FRONTMATTER.find(text[start:])) is not None:
        yaml_start, body_start = first_break + 1, len(text) - len(parts[1])
        yaml_end = yaml_start + len(parts[0])
    return Layout(
        text=text,
        newline="\r\n" if text[max(first_break - 1, 0) : first_break] == "\r" else "\n",
        has_frontmatter=parts is not None,
        yaml_start=yaml_start,
        yaml_end=yaml_end,
        body_start=body_start,
        heading=_find_heading(text, body_start),
        keeps_heading=keeps_heading,
    )


class FrontmatterHandler(YAMLHandler):
    """python-frontmatter handler for notes.

    The handler keeps every byte of the YAML and the body, and the YAML as nodes.

    Nodes contain the position of each value, so that edits change nothing else.
    """

    # `FM_BOUNDARY` is stricter than the pattern of the library: it requires exactly three dashes and includes
    # no blank lines. `\r?\Z` matches at the end.
    FM_BOUNDARY = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)

    def find(self, text: str) -> tuple[str, str] | None:
        """Return the YAML and the body, or None if the text has no frontmatter."""
        try:
            return self.split(text) if self.detect(text) else None
        except ValueError:
            return None

    def split(self, text: str) -> tuple[str, str]:
        """Return the YAML and the body.

        Raises `ValueError` if the frontmatter has no end or is between thematic breaks.

        Unlike the library, this method also accepts `...` as the end of the frontmatter.
        """
        begin = self.FM_BOUNDARY.match(text)
        end = _END.search(text, begin.end()) if begin else None
        if begin is None or end is None:
            raise ValueError("the text has no frontmatter, or the frontmatter has no end")
        source = text[begin.end() : end.start()]
        if _is_between_rules(source):
            raise ValueError("the text is between two thematic breaks and is not frontmatter")
        return source, text[end.end() :]

    def load(self, fm: str, **_: object) -> Any:
        """Return a `YamlMapping` with limited nesting depth. Raises `UnreadableNote` like `read_mapping`."""
        return read_mapping(fm)


FRONTMATTER: Final = FrontmatterHandler()


def frontmatter_at(text: str, position: int = 0) -> int | None:
    """Return the start of a frontmatter that follows blank lines, or None if there is no frontmatter."""
    blank = _BLANK_LINES.match(text, position)
    start = blank.end() if blank else position
    at = start + text.startswith("\ufeff", start)
    return start if text.startswith("---", at) and FRONTMATTER.find(text[at:]) is not None else None


def _is_between_rules(between: str) -> bool:
    """Return whether a text is ordinary text between two thematic breaks instead of a frontmatter.

    Ordinary text is not a mapping, and unlike a malformed mapping it does not begin with a key.
    """
    first = _FIRST_LINE.search(between)
    if first is None or _begins_mapping(first[1]):
        return False
    try:
        return read_mapping(between).root is None
    except UnreadableNote:
        return True


def _begins_mapping(line: str) -> bool:
    key, colon, rest = line.partition(":")
    is_key = bool(colon) and (not rest or rest[0].isspace()) and len(key.split()) <= _KEY_WORDS
    return is_key or line.startswith(("{", "? "))


def leading_title(content: str) -> tuple[str, str] | None:
    """Return the text of the H1 that begins a content, and the text after the H1 without blank lines."""
    heading = _find_heading(content, 0)
    if heading is None or content[: heading.line_start].strip():
        return None
    rest = content[heading.line_end :]
    blank = _BLANK_LINES.match(rest)
    return content[heading.start : heading.end], rest[blank.end() if blank else 0 :]


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableNote("the file is binary (it has NUL bytes); move it out of the notes folder")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableNote(
            f"the file is not UTF-8 (byte {error.start}); save it as UTF-8 in an editor"
        ) from error


def _find_heading(text: str, position: int) -> TitleHeading | None:
    """Return the first H1 that has text. Only blank lines and other headings may precede the H1."""
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
            return TitleHeading(
                line_start=position,
                line_end=line_end,
                start=mark.end() + len(title) - len(title.lstrip()),
                end=mark.end() + len(title.rstrip()),
            )
        position = line_end
        if position == len(text):
            return None
