"""Rewriting of links when a note moves: where they stand in a text, and what else they must say.

Wiki-links are replaced by what they mean, Markdown links by the path they lead to; every other character
stays. Code has no links. All of it takes linear time, in calls that are short enough for a worker thread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from attrs import field, frozen

from lithos.core.notes.layout import Layout, read_layout
from lithos.core.notes.links import SCHEME, join_lines
from lithos.core.notes.paths import folder_of
from lithos.core.notes.yaml_edit import Edit, apply_edits
from lithos.core.text.analysis import normalise
from lithos.core.text.markdown import mask_code
from lithos.core.text.pieces import matches_of_brackets

_WIKI: Final = re.compile(r"\[\[([^\[\]|]+)(\|[^\[\]]*)?\]\]")
_OPENING: Final = "]("
#: Where a Markdown link leads: in angle brackets, or without spaces and with closed parentheses.
_MARKDOWN: Final = re.compile(
    r"\]\([ \t]*(?:<([^<>\n]{1,4096})>|"
    r"([^()\s<>]{1,4096}(?:\([^()\s<>]{0,4096}\)[^()\s<>]{0,4096}){0,8}))"
)
_ANCHOR: Final = re.compile(r"[#?]")
#: Characters that a Markdown destination cannot have as they are.
_ENCODED: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]")

#: Whether there is a file at a path of the vault.
IsFile = Callable[[str], bool]
#: The path to which a Markdown target is to lead (None: it stays), and whether it is one from the folder of
#: all notes; of the target, and whether it begins with a slash.
_Resolve = Callable[[str, bool], tuple[str | None, bool]]


@frozen(kw_only=True)
class Relinking:
    """What a move of the file `old` to `new` changes in links, all paths relative to the notes folder.

    `pages` has the new text for what wiki-links name, before any anchor; no new text is itself a key,
    so doing it twice changes nothing. `paths` are where Markdown links lead, before and after.
    """

    old: str
    new: str
    pages: Mapping[str, str] = field(factory=dict)
    paths: Mapping[str, str] = field(factory=dict)

    def path_after(self, path: str) -> str | None:
        """Where a link leads that led to `path`; None where that did not move."""
        return self.paths.get(path) or self.paths.get(normalise("NFC", path))


def relink(data: bytes, path: str, moved: Relinking, is_file: IsFile) -> bytes:
    """The bytes of the note at `path` with its links as they have to be after the move.

    Raises `UnreadableNote`, as `relink_own` does.
    """
    folder = folder_of(path)

    def resolve(target: str, is_rooted: bool) -> tuple[str | None, bool]:
        joined = _join("" if is_rooted else folder, target)
        new = moved.path_after(joined)
        if new is None and not is_file(joined):  # a path from the folder of all notes, as Obsidian writes it
            return moved.path_after(_join("", target)), True
        return new, is_rooted

    return _relinked(data, moved, folder, resolve)


def relink_own(data: bytes, moved: Relinking, is_file: IsFile, *, only_broken: bool) -> bytes:
    """The bytes of the moved note, written at its old place, for its new one: relative links change.

    `only_broken`: it may have been done already, so what leads to a file now stays.
    """
    before, after = folder_of(moved.old), folder_of(moved.new)

    def resolve(target: str, is_rooted: bool) -> tuple[str | None, bool]:
        joined = _join("" if is_rooted else before, target)
        new = moved.path_after(joined)
        if new is None and not is_rooted and before != after and is_file(joined):
            new = joined
        if new and only_broken and is_file(_join("" if is_rooted else after, target)):
            new = None
        return new, is_rooted

    return _relinked(data, moved, after, resolve)


def _relinked(data: bytes, moved: Relinking, folder: str, resolve: _Resolve) -> bytes:
    """The bytes of a note that is read as one in `folder`, with all its links as they have to be."""
    layout = read_layout(data)
    masked = mask_code(layout.text)
    edits = [*_wiki_edits(layout, masked, moved), *_markdown_edits(layout, masked, folder, resolve)]
    return apply_edits(layout.text, edits).encode() if edits else data


def _wiki_edits(layout: Layout, masked: str, moved: Relinking) -> Iterator[Edit]:
    if not moved.pages:
        return
    for match in matches_of_brackets(_WIKI, masked):
        if match.start() < layout.body_start:
            continue
        written = layout.text[slice(*match.span(1))]
        written = written.removesuffix("\\") if match[2] else written
        target = join_lines(written)
        if target not in moved.pages:
            written = written.partition("#")[0]
            target = join_lines(written)
        new = moved.pages.get(target)
        if new is not None and new != target:
            begin = match.start(1) + len(written) - len(written.lstrip())
            yield begin, match.start(1) + len(written.rstrip()), new


def _markdown_edits(layout: Layout, masked: str, folder: str, resolve: _Resolve) -> Iterator[Edit]:
    for match in matches_of_brackets(_MARKDOWN, masked, _OPENING):
        group = 1 if match[1] else 2
        at, end = match.span(group)
        written = _ANCHOR.split(layout.text[at:end], maxsplit=1)[0].rstrip()
        if match.start() < layout.body_start or not written or SCHEME.match(written):
            continue
        target = unquote(written, errors="replace")
        path, is_rooted = resolve(target, target.startswith("/"))
        if path is not None:
            yield at, at + len(written), _destination(path, folder, target, group == 1, is_rooted=is_rooted)


def _join(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, target.lstrip("/")))


def _destination(path: str, folder: str, target: str, is_raw: bool, *, is_rooted: bool) -> str:
    """The destination of a Markdown link in `folder` to `path`, in the manner of what it was (`target`)."""
    if is_rooted:
        text = f"/{path}" if target.startswith("/") else path
    else:
        text = posixpath.relpath(path, folder or ".")
        if target.startswith("./") and not text.startswith("../"):
            text = f"./{text}"
    kept = " ()" if is_raw else ""
    return _ENCODED.sub(lambda match: match[0] if match[0] in kept else f"%{ord(match[0]):02X}", text)
