"""The text of a file that needs no library: all kinds but PDF, and images, which have none."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.core.attachments.canvas import read_canvas
from lithos.core.attachments.drawing import read_drawing
from lithos.core.attachments.kinds import Kind
from lithos.core.attachments.parts import Part
from lithos.core.attachments.plain import read_text
from lithos.core.attachments.web_page import read_page


def read_parts(kind: Kind, name: str, data: bytes) -> Iterator[Part]:
    """The parts of a file in their order, read as far as they are asked for.

    Raises `NotExtractable` at once or, for what is damaged further on, after some parts.
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
            raise ValueError(f"{kind} is not read here")
