"""The forms of links in Markdown: wiki-links, inline links and reference links.

The module also finds the name of the target note in each form.

The note graph and the rewriting of links use the same patterns to find links (docs/spec/notes.md §7). The
patterns are applied to masked text (`literal`). The names are taken from the original text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from attrs import frozen

from lithos.text.pieces import matches_in_lines, matches_of_brackets

#: A wiki-link with its target and its display text. Brackets in the display text need not be balanced.
WIKI: Final = re.compile(
    r"\[\[([^\[\]|]++)"
    r"(?:\|((?:[^\[\]\n]++|\n(?![ \t\r]*\n)|\[(?!\[)|\](?!\]))*+))?\]\]"
)
_OPENING: Final = "]("
#: A title that follows a destination.
_TITLE: Final = (
    r"""(?:"(?:[^"\n\]]++|\](?!\()|\n(?![ \t\r]*\n))*+"|'(?:[^'\n\]]++|\](?!\()|\n(?![ \t\r]*\n))*+'"""
    r"""|\((?:[^()\n\]]++|\](?!\()|\n(?![ \t\r]*\n))*+\))"""
)
#: A destination in angle brackets. `_BARE` is a destination without blanks and with balanced parentheses.
_IN_ANGLES: Final = r"<([^<>\n\]]*+(?:\](?!\()[^<>\n\]]*+)*+)>"
_BARE: Final = r"(?:[^()\s<>\]]++|\](?!\())"
#: The destination of a Markdown inline link, from the end of the link text on.
_INLINE: Final = re.compile(
    rf"\]\([ \t]*+(?:\n[ \t]*+)?(?:{_IN_ANGLES}|({_BARE}++(?:\({_BARE}*+\){_BARE}*+)*+))"
    rf"(?:(?:[ \t]++|[ \t]*+\r?\n[ \t]*+){_TITLE})?[ \t]*+(?:\r?\n[ \t]*+)?\)"
)
#: A reference definition with its label and its target. Footnotes do not match.
_DEFINITION: Final = re.compile(
    r"^ {0,3}(?:> {0,4})*+\[(?!\^)((?:[^\[\]\\\n]|\\.){1,999})\]:[ \t]*+(?:\r?\n[ \t]*+)?"
    rf"(?:<([^<>\n]++)>|([^\s<>]\S*+))(?:[ \t]++{_TITLE})?[ \t\r]*$",
    re.MULTILINE,
)
_DEFINED: Final = "]:"
#: A use of a reference, with its text and with its label if the label differs from the text.
_USE: Final = re.compile(r"(?<![\]\\])\[((?:[^\[\]\\]|\\.)++)\](?:\[((?:[^\[\]\\]|\\.)*+)\])?(?!\()")

#: Matches an address, with or without a scheme. Paths do not match.
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|www\.")
#: Characters that end the path of a Markdown destination.
ANCHOR: Final = re.compile(r"[#?]")
SUFFIX: Final = ".md"
#: The suffix of a file that is not a note. `.png` matches, but `.2` and `. Who` do not.
_OTHER_FILE: Final = re.compile(r"\.(?:[a-z][a-z0-9]{0,9}|[A-Z][A-Z0-9]{0,9})$")
#: Prefixes of wiki-links that are relative to the folder of their note or to the notes folder.
_PLACED: Final = ("./", "../", "/")
#: Characters after which `[[0]]` or `[[:]]` is an index and not a link.
_INDEXED: Final = re.compile(r"[A-Za-z0-9_)\]]")
_INDEX: Final = re.compile(r"\d+|[\d:\s]*:[\d:\s]*|\W+")
_WORD: Final = re.compile(r"[A-Za-z]|[^\x00-\x7f]")
_NUMBERS: Final = re.compile(r"[-+.\d\s]+[,;][-+.\d\s,;]*")
#: Maximum number of characters before a Markdown destination in which the link text is searched.
_LONGEST_TEXT: Final = 1_000


@frozen
class Destination:
    """The destination of a Markdown link, `text[start:end]`. `is_raw` means that angle brackets enclose it.

    `place` is the position of the link, and `shown` is its text. Each use of a reference has a separate
    object.
    """

    start: int
    end: int
    is_raw: bool
    place: int
    shown: str


def wiki_links(masked: str) -> Iterator[re.Match[str]]:
    """Yield the wiki-links of a masked text. Group 1 is the target, group 2 is the display text."""
    for match in matches_of_brackets(WIKI, masked):
        if _is_target(match[1], masked, match.start()):
            yield match


def may_have_links(text: str) -> bool:
    """Return whether a text may have links, because it contains the characters that every link needs.

    `may_have_links` quickly excludes most texts without links.
    """
    return "[[" in text or "](" in text or _DEFINED in text


def _is_target(written: str, masked: str, start: int) -> bool:
    """Return whether brackets with this content are a link.

    Escaped brackets, indexes and lists of numbers are not links.
    """
    if start and masked[start - 1] == "\\":
        return False
    if _WORD.search(written) is not None:
        return True
    name = written.strip()
    if not name or _NUMBERS.fullmatch(name) is not None:
        return False
    return start == 0 or _INDEX.fullmatch(name) is None or _INDEXED.match(masked, start - 1) is None


def shown_by(match: re.Match[str], text: str) -> str:
    """Return the display text of a wiki-link, or "". The final bracket of the link may be after the match."""
    if match[2] is None:
        return ""
    shown = text[slice(*match.span(2))]
    is_open = shown.count("[") > shown.count("]") and text.startswith("]", match.end())
    return join_lines(f"{shown}]" if is_open else shown)


def written_target(match: re.Match[str], text: str) -> str:
    """Return the target of a wiki-link, spelled as in the source.

    In a table, the link's vertical bar has a backslash before it, which is removed.
    """
    written = text[slice(*match.span(1))]
    return written.removesuffix("\\") if match[2] is not None else written


def is_placed(target: str) -> bool:
    """Return whether a wiki-link names a location, as in `../x/Note`, `./Note` or `/x/Note`."""
    return target.startswith(_PLACED)


def place_target(target: str, folder: str) -> str:
    """Return the target of a wiki-link that names a location. The link is in a note in `folder`.

    The result is relative to the notes folder, with a leading slash.
    """
    page, mark, anchor = target.partition("#")
    start = "" if page.startswith("/") else folder
    return f"/{posixpath.normpath(posixpath.join(start, page.strip().lstrip('/')))}{mark}{anchor}"


def destinations(text: str, masked: str) -> list[Destination]:
    """Return the Markdown links of a text in order.

    Each use of a reference counts as a link. A definition without a use also counts as a link.
    """
    found = list(_inline(text, masked)) if _OPENING in masked else []
    if _DEFINED in masked:
        found += _referenced(text, masked)
        found.sort(key=lambda each: each.place)
    return found


def _inline(text: str, masked: str) -> Iterator[Destination]:
    for match in matches_of_brackets(_INLINE, masked, _OPENING):
        opening = masked.rfind("[", max(match.start() - _LONGEST_TEXT, 0), match.start())
        if opening < 0 or (opening and masked[opening - 1] == "\\"):
            continue
        shown = join_lines(text[opening + 1 : match.start()].partition("](")[0])
        group = 2 if match[1] is None else 1
        yield Destination(*match.span(group), group == 1, match.start(), shown)


def _referenced(text: str, masked: str) -> Iterator[Destination]:
    defined: dict[str, re.Match[str]] = {}
    own: set[int] = set()
    for match in matches_in_lines(_DEFINITION, masked, 0):
        defined.setdefault(_label(text[slice(*match.span(1))]), match)  # the first definition has priority
        own.add(match.start(1) - 1)
    if not defined:
        return
    used: set[str] = set()
    for use in matches_of_brackets(_USE, masked, "["):
        if use.start() in own:
            continue
        label = _label(text[slice(*use.span(2 if use[2] else 1))])
        if label in defined:
            used.add(label)
            yield _defined(defined[label], use.start(), join_lines(text[slice(*use.span(1))]))
    for label, match in defined.items():
        # A definition whose target is a Markdown file counts as a link even without a use. A line like
        # `[Done]: yesterday` does not.
        if label not in used and _path_in(text[slice(*match.span(2 if match[2] else 3))]).endswith(SUFFIX):
            yield _defined(match, match.start(), text[slice(*match.span(1))].strip())


def _defined(match: re.Match[str], place: int, shown: str) -> Destination:
    group = 2 if match[2] else 3
    return Destination(*match.span(group), group == 2, place, shown)


def _label(text: str) -> str:
    return " ".join(text.casefold().split())


def _path_in(written: str) -> str:
    return ANCHOR.split(written, maxsplit=1)[0].strip()


def read_path(written: str) -> str:
    """Return the path in a Markdown destination, without the anchor. Return "" for an address or a folder."""
    path = _path_in(written)
    if SCHEME.match(path) or path.endswith("/"):
        return ""
    return unquote(path, errors="replace") if "%" in path else path


def names_note(path: str) -> bool:
    """Return whether a path in a destination can be the path of a note, such as `Note.md` or `Note`."""
    name = path.rpartition("/")[2]
    return name.endswith(SUFFIX) or (name not in ("", ".", "..") and _OTHER_FILE.search(name) is None)


def join_path(path: str, folder: str) -> str:
    """Return the path of a destination, relative to the notes folder.

    The destination is in a note in `folder`.

    A path outside the notes folder begins with `../`.
    """
    start = "" if path.startswith("/") else folder
    return posixpath.normpath(posixpath.join(start, path.lstrip("/")))


def note_target(written: str, folder: str) -> str:
    """Return the path of the note to which a destination leads. Return "" if it does not lead to a note."""
    path = read_path(written)
    if not path or not names_note(path):
        return ""
    joined = join_path(path, folder)
    while joined.startswith("../"):  # the path is outside the notes folder, so use only the file name
        joined = joined[3:]
    return joined if joined.endswith(SUFFIX) else joined + SUFFIX


def join_lines(text: str) -> str:
    """Return the text without surrounding blanks. Line breaks are replaced by spaces."""
    if "\n" not in text:
        return text.strip()
    return " ".join(filter(None, (line.strip() for line in text.split("\n"))))
