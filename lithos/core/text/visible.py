"""What a reader of a note sees: text without comments, images, badges, link targets and HTML tags.

Snippets are cut from it, so that an address or a comment is never shown as an answer. This is no Markdown
parser: in code such marks are taken out as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lithos.core.text.pieces import PIECE, pieces_of_lines

#: The inside of `(target)`; what opens another link ends it, so that no text is looked at twice.
_TARGET: Final = r"\([^()\[\n]*(?:\([^()\[\n]*\)[^()\[\n]*)*\)"
_IMAGE: Final = rf"!\[[^\[\]\n]*\](?:{_TARGET}|\[[^\[\]\n]*\])?"
_TAGS: Final = (
    "a|abbr|article|b|big|blockquote|br|center|code|dd|del|details|div|dl|dt|em|figure|figcaption|font|h[1-6]|"
    "hr|i|iframe|img|ins|kbd|li|mark|ol|p|picture|pre|s|section|small|source|span|strong|sub|summary|sup|table|"
    "tbody|td|th|thead|tr|u|ul|video"
)
#: Alternatives that begin with a fixed character: the regular expression engine skips to these.
_MARKUP: Final = re.compile(
    rf"""
      !\[\[[^\[\]\n]*\]\]                                     # an embedded file
    | \[{_IMAGE}\](?:{_TARGET}|\[[^\[\]\n]*\])?               # a badge: an image that is a link
    | {_IMAGE}
    | \[\[(?:[^\[\]|\n]*\|)?(?P<wiki>[^\[\]\n]*)\]\]
    | \[(?P<link>(?:[^\[\]\n]|\[[^\[\]\n]*\])*)\](?:{_TARGET}|:[ \t]*(?:https?:|<|/)[^\n]*)
    | </?(?:(?i:{_TAGS})(?:[\s/][^<>]{{0,2000}})?|https?:[^<>\s]*)>
    """,
    re.VERBOSE,
)
_MARKS: Final = re.compile(r"[\[<]")
_COMMENTS: Final = (("<!--", "-->"), ("%%", "%%"))
_TITLE: Final = re.compile(r"\s*#[ \t][^\n]*(?:\n|$)")
_FRONTMATTER: Final = "---"


def visible_text(content: str) -> str:
    """The text of a note's body as it reads, without its title line; linear in its length."""
    for opening, closing in _COMMENTS:
        if opening in content:
            content = "".join(_without(content, opening, closing))
    if content.startswith(_FRONTMATTER + "\n"):  # frontmatter that could not be read
        end = content.find("\n" + _FRONTMATTER + "\n", len(_FRONTMATTER), PIECE)
        content = content if end < 0 else content[end + len(_FRONTMATTER) + 2 :]
    title = _TITLE.match(content, 0, PIECE)
    if title is not None:
        content = content[title.end() :]
    if _MARKS.search(content) is None:
        return content
    return "".join([_MARKUP.sub(r"\g<wiki>\g<link>", piece) for piece in pieces_of_lines(content)])


def _without(text: str, opening: str, closing: str) -> Iterator[str]:
    """The parts of a text outside comments; one that is not closed is none."""
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        yield text[position:start]
        position = end + len(closing)
    yield text[position:]
