"""The vault's canvases, whose links are updated when a note is moved (docs/spec/vault.md §3).

All functions block.

Canvases are read only when a note is moved, so that other calls do not pay for them. A canvas is exchanged
like a note's file, so changes that another program saves in the meantime are kept.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from functools import partial

from attrs import frozen

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge, Put
from lithos.notes.links.canvas import LARGEST, SUFFIX, NoCanvas, read_canvas, relink_canvas
from lithos.notes.links.edit import Relinking, relink_text
from lithos.notes.links.links import scan_targets


@frozen
class CanvasLinks:
    """The links on a canvas: the files shown on its cards, and the link targets in the cards' texts.

    For an unreadable canvas that contains the name of the moved note, `files` and `targets` are empty, and
    `reason` is set.
    """

    path: str
    files: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()
    reason: str = ""


def find_canvases(files: NoteFiles, paths: Iterable[str], names: Collection[str]) -> Iterator[CanvasLinks]:
    """Yield the canvases among `paths` that may contain a link with one of `names`, in path order."""
    for path in sorted(each for each in paths if each.endswith(SUFFIX)):
        if files.ignored and files.ignored.covers(path):
            continue
        try:
            if os.path.getsize(os.path.join(files.root, path)) > LARGEST:
                yield CanvasLinks(path, reason=f"the canvas has more than {LARGEST} bytes")
                continue
            data = files.read(path).data
        except (OSError, OutsideKnowledge):
            continue  # the canvas was deleted, or is outside the vault
        if _may_name(data, names):
            yield _links_of(path, data)


def _may_name(data: bytes, names: Collection[str]) -> bool:
    """Return whether a canvas may contain one of these names.

    A canvas with escaped characters may contain any name.
    """
    if b"\\u" in data or b"%" in data or not all(map(str.isascii, names)):
        return True
    text = data.lower()
    return any(name.lower().encode() in text for name in names)


def _links_of(path: str, data: bytes) -> CanvasLinks:
    try:
        _, cards = read_canvas(data)
    except NoCanvas as failure:
        return CanvasLinks(path, reason=str(failure))
    shown = frozenset(card.file.value for card in cards if card.file is not None)
    texts = [card.text.value for card in cards if card.text is not None]
    return CanvasLinks(path, shown, tuple(target for text in texts for target in scan_targets(text, path)))


def rewrite_canvas(files: NoteFiles, path: str, moved: Relinking) -> bool:
    """Update the links on the canvas at `path` after a move. Return False if no link changes.

    Raises `NoCanvas` (also for a symbolic link), `FileBusy`, `FileChanged`, `OutsideKnowledge` and `OSError`.
    """
    if os.path.islink(os.path.join(files.root, path)):
        raise NoCanvas("the canvas is a symbolic link")
    source = files.read_quiet(path)
    data = relink_canvas(
        source.data,
        lambda shown: moved.new if moved.was_at(shown) else None,
        partial(relink_text, path=path, moved=moved, is_file=files.is_file),
    )
    if data == source.data:
        return False
    (result,) = files.apply([Put(path, data, source.digest)])
    if isinstance(result, Exception):
        raise result
    return True
