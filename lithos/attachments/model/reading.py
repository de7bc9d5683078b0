"""Text of the kinds that need no library: all kinds except PDF files and images.

The text of a canvas (JSON Canvas 1.0) consists of the texts of cards, groups and edges, and the targets of
file cards and link cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lithos.attachments.model.drawing import read_drawing
from lithos.attachments.model.foreign_json import objects_of, read_object, text_of
from lithos.attachments.model.kinds import FileKind
from lithos.attachments.model.parts import FilePart, Places, clean
from lithos.attachments.model.plain import read_text
from lithos.attachments.model.web_page import read_page


def read_parts(kind: FileKind, name: str, data: bytes) -> Iterator[FilePart]:
    """Yield the parts of a file in order. The file is read only as far as the caller iterates.

    Raises `NotExtractable` at the beginning, or after some parts if a later part is damaged.
    """
    match kind:
        case "canvas":
            return read_canvas(data)
        case "drawing":
            return read_drawing(name, data)
        case "text":
            return read_text(data)
        case "html":
            return read_page(data)
        case "pdf" | "image":
            raise ValueError(f"files of the kind {kind} cannot be read by this function")


def read_canvas(data: bytes) -> Iterator[FilePart]:
    """Yield a part for each card and edge with text, with its id as place. Raises `NotExtractable`."""
    canvas = read_object(data, "the canvas")
    places = Places()
    for kind in ("node", "edge"):
        for number, each in enumerate(objects_of(canvas, f"{kind}s"), 1):
            if text := clean(_card_text(each) if kind == "node" else text_of(each, "label")):
                yield FilePart(places.name(each.get("id"), f"{kind} {number}"), text)


def _card_text(card: dict[str, Any]) -> str:
    match card.get("type"):
        case "file":
            return text_of(card, "file") + text_of(card, "subpath")
        case "link":
            return text_of(card, "url")
        case "group":
            return text_of(card, "label")
        case _:  # also types of future versions, if they have text
            return text_of(card, "text", "label")
