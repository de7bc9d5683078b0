"""Rewriting of links when a note is moved: finds links in a text and edits their targets.

Wiki-links and Markdown links are rewritten if their meaning or their path changes. This includes links in
properties. No other characters change. Links in code are ignored. Rewriting takes linear time, in calls that
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

#: Characters that must be encoded in a Markdown destination.
_ENCODED: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]")
_ENCODED_ALL: Final = re.compile(r"[\x00-\x20<>()\\%#?\"]|[^\x00-\x7f]+")
_ENCODED_BLANK: Final = re.compile(r"%2[089]")
_LOWER_HEX: Final = re.compile(r"%(?:[0-9][a-f]|[a-f][0-9a-f])")
#: Characters that the target of a wiki-link cannot contain.
UNLINKABLE: Final = frozenset("[]|#^\n\\")

#: Callback that returns whether there is a file at a path of the vault.
IsFile = Callable[[str], bool]
#: Callback that returns the new target of a link (None: unchanged), and whether the target is relative to the
#: root folder. The arguments are the complete path to which the link leads, and the path as written.
_Resolve: TypeAlias = Callable[[str, str], tuple[str | None, bool]]


@frozen(kw_only=True)
class Relinking:
    """The link changes that a move from `old` to `new` requires. All paths are relative to the notes folder.

    `pages` maps wiki-link targets without anchors to their new texts. A new text is never a key as well, so a
    second call does not change anything. `paths` maps old targets that contain a path to new targets. If an
    old target comes from a wiki-link, it begins with a slash.
    """

    old: str
    new: str
    pages: Mapping[str, str] = field(factory=dict)
    paths: Mapping[str, str] = field(factory=dict)

    def path_after(self, path: str) -> str | None:
        """Return the new target of a link to `path`. Return None if `path` was not moved."""
        found = self.paths.get(path) or self.paths.get(normalise("NFC", path))
        return found or (self.new if self.was_at(path.removeprefix("/")) else None)

    def was_at(self, path: str) -> bool:
        """Return whether `path` is the old path of the moved note."""
        return path == self.old or normalise("NFC", path) == normalise("NFC", self.old)


def relink(data: bytes, path: str, moved: Relinking, is_file: IsFile) -> bytes:
    """Return the bytes of the note at `path`. Its links are updated for the move.

    Raise `UnreadableNote` if the note cannot be edited.
    """
    folder = folder_of(path)
    return _relinked(data, moved, folder, folder, partial(_resolve, moved, is_file))


def relink_text(text: str, path: str, moved: Relinking, is_file: IsFile) -> list[Edit]:
    """Return the edits that update the links in a text.

    The text is from the file at `path`, for example a canvas.
    """
    folder = folder_of(path)
    return _apart(_edits(text, mask_literal(text), moved, folder, folder, partial(_resolve, moved, is_file)))


def _resolve(moved: Relinking, is_file: IsFile, joined: str, written: str) -> tuple[str | None, bool]:
    """Return the new target of a link in a note that was not moved."""
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
    return moved.new, True  # the path is relative to the notes folder, as in Obsidian


def relink_own(data: bytes, moved: Relinking, is_file: IsFile, *, only_broken: bool) -> bytes:
    """Return the bytes of the moved note with updated relative links.

    The links were written for its old path.

    With `only_broken`, links that already lead to a file are not changed, because an earlier call may have
    updated them.
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
    """Return the bytes of a note with links adapted to the folder `after`.

    The links were written for `before`.
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
    """Return the edits in order, without the edits that are inside other edits.

    For example, a wiki-link may be inside a Markdown destination.
    """
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
    """Yield the link edits of a text. `read` decodes a part of the source text."""
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
    done: set[int] = set()  # rewrite a definition only once, even if it is used several times
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
    """Return the page part of a wiki-link in the source text. Also return the new text for this part."""
    if target in moved.pages:
        return written, moved.pages[target]
    page = written.partition("#")[0]
    return page, moved.pages.get(join_lines(read(page)))


def _placed_text(page: str, before: str, after: str, resolve: _Resolve) -> str | None:
    """Return the new text of a wiki-link with a path.

    The path is relative to the folder of the note or to the notes folder.
    """
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
    """Return the destination of a Markdown link to `path` in a file in `folder`.

    The form is that of the old destination.
    """
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
