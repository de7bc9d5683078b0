"""Markdown details of notes: code positions, tags, and the visible text of titles and bodies.

All functions take linear time. No single regular expression call examines more than `PIECE` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lithos.kernel.values.limits import TITLE, cut_items
from lithos.text.pieces import PIECE, line_pieces, matches_in_lines, pieces_of_lines

#: Character that replaces each character of code. It is not a space or a bracket, and never part of a tag.
CODE_MARK: Final = "`"

#: Fence that may also be inside lists and quotes. After its opening backticks, the line contains no more
#: backticks.
_FENCE: Final = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
    r"(?:(?P<ticks>`{3,})(?P<info>[^`\n]*)|(?P<tildes>~{3,})(?P<rest>[^\n]*))$",
    re.MULTILINE,
)
#: Backticks, or the end of a paragraph. Inline code never extends beyond a paragraph.
_TICKS: Final = re.compile(r"`+|\n[ \t\r]*\n")
#: Inline code with one backtick on each side.
_SINGLE: Final = re.compile(r"(?<!\\)`(?:[^`\n]++|\n(?![ \t\r]*\n))*+`")

#: Vowel signs that belong to letters of these scripts but do not match `\w` in Python.
_SIGNS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e"
)
#: A tag, or text in which tags are not searched: headings, links, web addresses and HTML tags.
_TAG: Final = re.compile(
    r"^[ ]{0,3}\#{1,6}(?=[ \t\r\n]|\Z)[^\n]*"
    r"|\[\[[^\[\]]{0,4096}\]\]"
    r"|(?<=\])\([^()\n]*\)"
    r"|\[[^\[\]\n]{0,4096}\](?=\()"
    r"|https?://\S+"
    r"|<[A-Za-z/!][^<>\n]*>"
    rf"|(?<![^\s(,;|])\#(?P<tag>[\w/\-{_SIGNS}]+)",
    re.MULTILINE | re.VERBOSE,
)


_COLOUR: Final = re.compile(r"[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8}")
_WORD_WITH_DIGIT: Final = re.compile(r"[a-fA-F]2[a-fA-F]|2[fF][aA]")
#: One repeated letter or repeated pairs of letters, such as `fff` or `ffeedd`.
_REPEATED: Final = re.compile(r"([a-fA-F])\1+|(?:([a-fA-F])\2){3,4}")

#: Beginning of every tag. The unmasked text is searched first: without a match there are no tags, because
#: masking code adds none.
_MAY_BE_TAG: Final = re.compile(rf"\#[\w/\-{_SIGNS}]")


#: Line with which git begins or ends a conflict. A label may follow the markers.
_MARKED: Final = re.compile(r"^(?:<{7}|>{7})(?: [^\n]*|\r)?$", re.MULTILINE)


def has_conflict_markers(text: str) -> bool:
    """Return whether a text contains git conflict markers.

    The markers are `<<<<<<<` and a later `>>>>>>>`, each on its own line outside fenced code.
    """
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return False
    fences, is_open = code_fences(text), False
    start, end = next(fences, (len(text), len(text)))
    for match in matches_in_lines(_MARKED, text, 0):
        while end <= match.start() < len(text) and start < len(text):
            start, end = next(fences, (len(text), len(text)))
        if match.start() >= start:
            continue
        if match[0].startswith("<"):
            is_open = True
        elif is_open:
            return True
    return False


def mask_code(text: str) -> str:
    """Return `text` with each character of fenced or inline code replaced by `CODE_MARK`.

    Positions do not change.

    An unclosed fence extends to the end of the text. Inline code ends within its paragraph.
    """
    if "`" not in text and "~~~" not in text:
        return text
    parts: list[str] = []
    done = 0
    for start, end in code_fences(text):
        parts += _inline(text, done, start)
        parts.append(CODE_MARK * (end - start))
        done = end
    return "".join([*parts, *_inline(text, done, len(text))])


def code_fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each fenced code block. An unclosed block ends at the end of the text."""
    fence, start = "", 0
    for match in matches_in_lines(_FENCE, text, 0):
        found = match["ticks"] or match["tildes"]
        if not fence:
            fence, start = found, match.start()
        elif found.startswith(fence) and not (match["info"] or match["rest"] or "").strip():
            yield start, match.end()
            fence = ""
    if fence:
        yield start, len(text)


def _inline(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the text between two fences, with inline code masked.

    Inline code ends at the next backticks of the same number.
    """
    if text.find("``", start, end) >= 0:
        yield from _inline_of_many(text, start, end)
        return
    for begin, stop in line_pieces(text, start, end, keeps=""):
        yield _SINGLE.sub(lambda found: CODE_MARK * len(found[0]), text[begin:stop])


def _inline_of_many(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the same as `_inline`, for text in which some inline code is enclosed by several backticks."""
    runs = [
        match.span()
        for begin, stop in line_pieces(text, start, end, keeps=CODE_MARK)
        for match in _TICKS.finditer(text, begin, stop)
    ]
    # The end of the next equally long run in the paragraph, by the start of a run of backticks.
    ends: dict[int, int] = {}
    following: dict[int, int] = {}
    for begin, stop in reversed(runs):
        if text[begin] == "\n":
            following.clear()
            continue
        if stop - begin in following and not (begin and text[begin - 1] == "\\"):
            ends[begin] = following[stop - begin]
        following[stop - begin] = stop
    done = start
    for begin, _ in runs:
        if begin >= done and begin in ends:
            yield text[done:begin]
            yield CODE_MARK * (ends[begin] - begin)
            done = ends[begin]
    yield text[done:end]


def scan_tags(content: str) -> tuple[str, ...]:
    """Return the `#tags` of a text in order and without duplicates, by the rules of Obsidian.

    A tag consists of letters, digits, `_`, `-` and `/`, and at least one character is not a digit. It follows
    a space or an opening bracket. Tags in code, headings, links and web addresses are ignored. Colours are
    not tags.
    """
    if "#" not in content or (len(content) <= PIECE and _MAY_BE_TAG.search(content) is None):
        return ()
    masked = mask_code(content)
    found: dict[str, None] = {}
    for start, stop in line_pieces(masked, 0, len(masked), keeps=""):
        for match in _TAG.finditer(masked, start, stop):
            tag = match["tag"]
            if tag and not (tag := tag.rstrip("/")).isdigit() and not _is_colour(tag):
                found[tag] = None
    return tuple(cut_items(found))


def _is_colour(tag: str) -> bool:
    """Return whether a tag is a CSS colour.

    A tag without digits (`face`, `decade`) is usually a word, and so is `b2b`.
    """
    if _COLOUR.fullmatch(tag) is None or _WORD_WITH_DIGIT.fullmatch(tag) is not None:
        return False
    return not tag.isalpha() or _REPEATED.fullmatch(tag) is not None


#: Characters after which `[[0]]` is an index instead of a link.
_INDEXED: Final = re.compile(r"[A-Za-z0-9_)\]]")
_LINKED: Final = re.compile(r"!?\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_LINK: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*(?:\([^()]*\)[^()]*)*\)")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
#: Emphasis marks around text that neither begins nor ends with a space. Names such as `__init__` are
#: excluded.
_EMPHASIS: Final = re.compile(
    r"(?<![\w\\*])(\*{1,3})(?![\s*])([^*]*[^\s*\\])\1(?![\w*])"
    r"|(?<![\w\\_])(_{1,3})(?![\s_])(?!(?<=__)[a-z][a-z0-9_]*__(?!\w))([^_]*(?:(?<=\w)_(?=\w)[^_]*)*[^\s_\\])\3(?![\w_])"
    r"|(?<![\\~])(~~)(?![\s~])([^~]*[^\s~\\])\5(?!~)"
    r"|(?<![\\=])(==)(?![\s=])([^=]*[^\s=\\])\7(?!=)"
)


def plain_title(text: str) -> str:
    """Return a title without markup. Emphasis, code marks, links and images are replaced by their text.

    `[[dataview|Dataview]]` becomes `Dataview`. Stripping the result again does not change it. A title that
    consists only of markup stays unchanged, and so does a title of more than `TITLE` characters.
    """
    if len(text) > TITLE or not any(mark in text for mark in "[`*_~="):
        return text
    before, plain = "", " ".join(text.split())
    spaced = plain
    while plain != before:
        before = plain
        plain = _LINKED.sub(_shown, plain)
        plain = _LINK.sub(r"\1", plain)
        plain = _CODE.sub(lambda match: match[2].strip() or match[2], plain)
        plain = _EMPHASIS.sub(lambda match: match[2] or match[4] or match[6] or match[8], plain)
        plain = " ".join(plain.split())
    return text if plain in ("", spaced) else plain


def _shown(link: re.Match[str]) -> str:
    """Return the text that a wiki-link shows. An index like `a[[0]]` is not a link."""
    if link[1].isdigit() and _INDEXED.match(link.string, max(link.start() - 1, 0)) is not None:
        return link[0]
    return (link[2] or "").strip() or link[1].strip()


#: The `(target)` of a link. It must not contain the opening bracket of another link, so that no text is
#: scanned twice.
_TARGET: Final = r"\([^()\[\n]*(?:\([^()\[\n]*\)[^()\[\n]*)*\)"
_IMAGE: Final = rf"!\[[^\[\]\n]*\](?:{_TARGET}|\[[^\[\]\n]*\])?"
_TAGS: Final = (
    "a|abbr|article|b|big|blockquote|br|center|code|dd|del|details|div|dl|dt|em|figure|figcaption|font|h[1-6]|"
    "hr|i|iframe|img|ins|kbd|li|mark|ol|p|picture|pre|s|section|small|source|span|strong|sub|summary|sup|table|"
    "tbody|td|th|thead|tr|u|ul|video"
)
#: Each alternative begins with a fixed character, so that the regular expression engine can skip to it.
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
    """Return the visible text of a note's body, without its title line. Takes linear time.

    Comments, images, badges, link targets and HTML tags are removed. Snippets are cut from the result, so
    they never show an address or a comment as an answer. Such markup is also removed from code, except for
    comments.
    """
    if ("%%" in content or "<!--" in content) and (hidden := comments(content)):
        bounds = [0, *(place for span in hidden for place in span), len(content)]
        content = "".join(content[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2))
    if content.startswith(_FRONTMATTER + "\n"):  # The frontmatter was not parsed, so remove it.
        end = content.find("\n" + _FRONTMATTER + "\n", len(_FRONTMATTER), PIECE)
        content = content if end < 0 else content[end + len(_FRONTMATTER) + 2 :]
    title = _TITLE.match(content, 0, PIECE)
    if title is not None:
        content = content[title.end() :]
    return strip_markup(content)


def strip_markup(text: str) -> str:
    """Return the text without images, badges, link targets and HTML tags."""
    if _MARKS.search(text) is None:
        return text
    return "".join([_MARKUP.sub(r"\g<wiki>\g<link>", piece) for piece in pieces_of_lines(text)])


_IMAGE_SUFFIX: Final = r"\.(?i:png|jpe?g|gif|webp|svg|avif|bmp|ico|tiff?)"
_IMAGES: Final = re.compile(
    rf"""
      !\[\[[^\[\]|\#\n]*{_IMAGE_SUFFIX}[ ]*(?:\#[^\[\]|\n]*)?(?:\|(?P<shown>[^\[\]\n]*))?\]\]
    | \[!\[(?P<badge>[^\[\]\n]*)\](?:{_TARGET}|\[[^\[\]\n]*\])?\](?:{_TARGET}|\[[^\[\]\n]*\])?
    | !\[(?P<alt>[^\[\]\n]*)\](?:{_TARGET}|\[[^\[\]\n]*\])
    | ^[ ]{{0,3}}\[[^\[\]\n]+\]:[ \t]*<?[^\s<>]{{0,1000}}?
      (?:{_IMAGE_SUFFIX}(?![\w/.-])|\bbadges?\b|\bshields\.io\b)[^\n]*
    | (?:<a\s[^<>]{{0,2000}}>\s{{0,9}})?<img\s[^<>]{{0,2000}}>
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Rest of an image and its address, if the beginning of a passage cuts the image in two.
_REST_OF_IMAGE: Final = re.compile(rf"\A[^\[\]\n]{{0,300}}\]{_TARGET}(?:\]{_TARGET})?")
_SIZE: Final = re.compile(r"[0-9]+(?:x[0-9]+)?")


def strip_images(text: str) -> str:
    """Return the text with images and badges replaced by their words. Addresses and file names are removed.

    Targets of other links stay in the text, because they are searched too.
    """
    if not any(mark in text for mark in ("![", "]:", "<img")):
        return text
    return "".join([_IMAGES.sub(_told_by_image, piece) for piece in pieces_of_lines(text)])


def strip_passage(text: str) -> str:
    """Return the result of `strip_images` for a part of a text, which may begin inside an image."""
    rest = _REST_OF_IMAGE.match(text) if "](" in text else None
    return strip_images(text[rest.end() :] if rest else text)


def _told_by_image(image: re.Match[str]) -> str:
    told = image["shown"] or image["badge"] or image["alt"] or ""
    return "" if _SIZE.fullmatch(told.strip()) else told


def comments(text: str) -> list[tuple[int, int]]:
    """Return start and end of each comment (`%%...%%` or HTML) outside fenced code, in order.

    Nested comments are ignored.

    An unclosed comment is ignored.
    """
    fences = list(code_fences(text)) if "```" in text or "~~~" in text else []
    found = [span for marks in _COMMENTS for span in _between(text, *marks, fences)]
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _between(
    text: str, opening: str, closing: str, fences: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    position = number = 0
    while (start := text.find(opening, position)) >= 0:
        while number < len(fences) and fences[number][1] <= start:
            number += 1
        if number < len(fences) and fences[number][0] <= start:
            position = fences[number][1]
            continue
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        position = end + len(closing)
        yield start, position


def one_line(text: str) -> str:
    """Return the trimmed text on one line.

    Each line break and the white space around it become one space.
    """
    return " ".join(filter(None, map(str.strip, text.splitlines())))


def clean_title(text: str) -> str:
    """Return a title on one line, without markup."""
    return plain_title(one_line(text))
