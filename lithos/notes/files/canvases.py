"""The vault's canvases. Their links are updated when a note is moved (docs/spec/vault.md §3).

All functions block.

Canvases are read only when a note is moved, so other calls do not read them. A canvas is exchanged like a
note file, so changes that another program saves in the meantime are not lost.
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
    """The links on a canvas. These are the files shown on cards, and the link targets in the texts of cards.

    If a canvas is unreadable and contains the name of the moved note, `files` and `targets` are empty and
    `reason` is set.
    """

    path: str
    files: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()
    reason: str = ""


def find_canvases(files: NoteFiles, paths: Iterable[str], names: Collection[str]) -> Iterator[CanvasLinks]:
    """Yield the canvases among `paths` that may contain a link with one of `names`.

    Canvases are sorted by path.
    """
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

    The result is also true if the canvas contains escaped characters, because these can spell any name.
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

    Raise `NoCanvas` (also for a symbolic link), `FileBusy`, `FileChanged`, `OutsideKnowledge` or `OSError`.
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
