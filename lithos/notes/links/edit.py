"""Rewriting of links when a note moves: their places in a text, and their new targets.

Wiki-links are replaced by their meaning, or by their new path where they contain one; so are Markdown links,
also in properties. Every other character is unchanged. Code has no links. The time is linear, in calls that
are short enough for a worker thread.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Final, TypeAlias

from attrs import field, frozen

from lithos.notes.links.forms import (
    ANCHOR,
    SUFFIX,
    destinations,
    is_placed,
    join_lines,
    join_path,
    names_note,
    note_target,
    place_target,
    read_path,
    wiki_links,
    written_target,
)
from lithos.notes.links.literal import mask_literal
from lithos.notes.links.properties import Property, decode, property_edits
from lithos.notes.model.paths import folder_of
from lithos.text.markdown import mask_code
from lithos.text.words.analysis import normalise
from lithos.text.yaml.edit import Edit, apply_edits
from lithos.text.yaml.layout import read_layout

#: Characters that a Markdown destination cannot have as they are.
_ENCODED: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]")
_ENCODED_ALL: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]|[^\x00-\x7f]+")
_ENCODED_BLANK: Final = re.compile(r"%2[089]")
_LOWER_HEX: Final = re.compile(r"%(?:[0-9][a-f]|[a-f][0-9a-f])")
#: Characters that the target of a wiki-link cannot contain.
UNLINKABLE: Final = frozenset("[]|#^\n\\")

#: Whether there is a file at a path of the vault.
IsFile = Callable[[str], bool]
#: Where a link leads after a move (None: it stays), and whether it is written from the root folder on.
#: Of the path it leads to, and of the one that is written.
_Resolve: TypeAlias = Callable[[str, str], tuple[str | None, bool]]


@frozen(kw_only=True)
class Relinking:
    """The effect on links of a move of the file `old` to `new`, all paths relative to the notes folder.

    `pages` has the new text for each target of a wiki-link, before any anchor; no new text is itself a key,
    so a second run changes nothing. `paths` has the targets of links that contain a path, before and after;
    those of wiki-links begin with a slash, before.
    """

    old: str
    new: str
    pages: Mapping[str, str] = field(factory=dict)
    paths: Mapping[str, str] = field(factory=dict)

    def path_after(self, path: str) -> str | None:
        """Return the new target of a link to `path`; None if it did not move."""
        found = self.paths.get(path) or self.paths.get(normalise("NFC", path))
        return found or (self.new if self.was_at(path.removeprefix("/")) else None)

    def was_at(self, path: str) -> bool:
        """Return whether the note that moves was at a path."""
        return path == self.old or normalise("NFC", path) == normalise("NFC", self.old)


def relink(data: bytes, path: str, moved: Relinking, is_file: IsFile) -> bytes:
    """Return the bytes of the note at `path` with its links as they have to be after the move.

    Raises `UnreadableNote`, as `relink_own` does.
    """
    folder = folder_of(path)
    return _relinked(data, moved, folder, folder, partial(_resolve, moved, is_file))


def relink_text(text: str, path: str, moved: Relinking, is_file: IsFile) -> list[Edit]:
    """Return the edits that the links in a text need which is a part of the file at `path`: on a canvas."""
    folder = folder_of(path)
    return _apart(_edits(text, mask_literal(text), moved, folder, folder, partial(_resolve, moved, is_file)))


def _resolve(moved: Relinking, is_file: IsFile, joined: str, written: str) -> tuple[str | None, bool]:
    """Return the target of a link of another note."""
    is_rooted = written.startswith("/")
    new = moved.path_after(joined)
    bare = _with_suffix(posixpath.normpath(written.lstrip("/")))
    if (
        is_rooted
        or joined.startswith("/")
        or moved.was_at(joined)
        or is_file(joined)
        or not moved.was_at(bare)
    ):
        return new, is_rooted
    return moved.new, True  # a path from the folder of all notes on, as Obsidian writes it


def relink_own(data: bytes, moved: Relinking, is_file: IsFile, *, only_broken: bool) -> bytes:
    """Return the bytes of the moved note, written at its old place, for its new one: relative links change.

    `only_broken`: it may have been done already, so what leads to a file now stays.
    """
    before, after = folder_of(moved.old), folder_of(moved.new)

    def resolve(joined: str, written: str) -> tuple[str | None, bool]:
        is_rooted = written.startswith("/")
        new, bare = moved.path_after(joined), joined.removeprefix("/")
        if new is None and not is_rooted and before != after:
            new = next((each for each in (bare, bare.removesuffix(SUFFIX)) if is_file(each)), None)
        there = join_path(written, "" if is_rooted else after)
        if new and only_broken and (is_file(there) or is_file(_with_suffix(there))):
            new = None
        return new, is_rooted

    return _relinked(data, moved, before, after, resolve)


def _with_suffix(path: str) -> str:
    return path if path.endswith(SUFFIX) else path + SUFFIX


def _relinked(data: bytes, moved: Relinking, before: str, after: str, resolve: _Resolve) -> bytes:
    """Return the bytes of a note, written in the folder `before`, with its links as they have to be in
    `after`.
    """
    layout = read_layout(data)
    body = layout.body
    start = layout.body_start

    def rewrite(source: str, part: Property) -> list[Edit]:
        read = partial(decode, style=part.style)
        return _apart(_edits(source, mask_code(source), moved, before, after, resolve, read))

    edits = property_edits(layout, rewrite)
    for at, end, text in _apart(_edits(body, mask_literal(body), moved, before, after, resolve)):
        edits.append((start + at, start + end, text))
    return apply_edits(layout.text, edits).encode() if edits else data


def _apart(edits: Iterable[Edit]) -> list[Edit]:
    """The edits in order without those within another: a wiki-link may be in a Markdown destination."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=itemgetter(0)):
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


def _edits(
    text: str,
    masked: str,
    moved: Relinking,
    before: str,
    after: str,
    resolve: _Resolve,
    read: Callable[[str], str] = str,
) -> Iterator[Edit]:
    """Yield the edits of one text; `read` makes what a part of it says of how it is written."""
    for match in wiki_links(masked):
        written = written_target(match, text)
        target = join_lines(read(written))
        if is_placed(target):
            page = written.partition("#")[0]
            new = _placed_text(join_lines(read(page)), before, after, resolve)
        else:
            page, new = _page_text(written, target, moved, read)
        if new is not None and new != join_lines(read(page)):
            begin = match.start(1) + len(page) - len(page.lstrip())
            yield begin, match.start(1) + len(page.rstrip()), new
    done: set[int] = set()  # a definition is rewritten once, however often it is used
    for each in destinations(text, masked):
        written = ANCHOR.split(text[each.start : each.end], maxsplit=1)[0].rstrip()
        begin, written = each.start + len(written) - len(written.lstrip()), written.lstrip()
        new = None if begin in done else _new_destination(read(written), each.is_raw, before, after, resolve)
        done.add(begin)
        if new is not None and new != written:
            yield begin, begin + len(written), new


def _page_text(
    written: str, target: str, moved: Relinking, read: Callable[[str], str]
) -> tuple[str, str | None]:
    """Return the page that a wiki-link names as it is written, and its new text."""
    if target in moved.pages:
        return written, moved.pages[target]
    page = written.partition("#")[0]
    return page, moved.pages.get(join_lines(read(page)))


def _placed_text(page: str, before: str, after: str, resolve: _Resolve) -> str | None:
    """Return the new text of a wiki-link with a path: relative, or from the folder of all notes on."""
    path, is_rooted = resolve(_with_suffix(place_target(page, before)), page)
    if path is None:
        return None
    text = f"/{path}" if is_rooted else posixpath.relpath(path, after or ".")
    if not page.endswith(SUFFIX):
        text = text.removesuffix(SUFFIX)
    if not is_rooted and not text.startswith("../"):
        text = f"./{text}"
    return None if UNLINKABLE & set(text) else text


def _new_destination(written: str, is_raw: bool, before: str, after: str, resolve: _Resolve) -> str | None:
    target = read_path(written)
    if not target:
        return None
    joined = note_target(written, before) or join_path(target, before)
    path, is_rooted = resolve(joined, target)
    if path is None:
        return None
    if names_note(target) and not target.endswith(SUFFIX):
        path = path.removesuffix(SUFFIX)
    return _destination(path, after, written, target, is_raw, is_rooted=is_rooted)


def _destination(path: str, folder: str, written: str, target: str, is_raw: bool, *, is_rooted: bool) -> str:
    """Return the destination of a Markdown link in `folder` to `path`, in the manner of what it was."""
    if is_rooted:
        text = f"/{path}" if target.startswith("/") else path
    else:
        text = posixpath.relpath(path, folder or ".")
        if target.startswith("./") and not text.startswith("../"):
            text = f"./{text}"
    kept = " ()" if is_raw and _ENCODED_BLANK.search(written) is None else ""
    encoded = _ENCODED_ALL if "%" in written and written.isascii() and not target.isascii() else _ENCODED
    is_lower = _LOWER_HEX.search(written) is not None
    return encoded.sub(lambda match: _percent(match[0], kept, is_lower=is_lower), text)


def _percent(text: str, kept: str, *, is_lower: bool) -> str:
    if text in kept:
        return text
    digits = "".join(f"%{byte:02X}" for byte in text.encode())
    return digits.lower() if is_lower else digits
