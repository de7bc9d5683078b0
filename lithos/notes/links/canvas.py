"""Links on a canvas (JSON Canvas 1.0): the files that cards show, and the links in the texts of cards.

If a note is moved, only the values with affected links change. All other characters of the canvas stay the
same, because programs write canvases in different ways, and some people use version control for canvases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final

from attrs import define, field, frozen

from lithos.text.yaml.edit import Edit, apply_edits

#: Maximum size in bytes of a canvas that Lithos reads.
LARGEST: Final = 16 * 1024 * 1024
SUFFIX: Final = ".canvas"
_TOKEN: Final = re.compile(r"[ \t\r\n]*+(?:([{}\[\],:])|(\")|[^{}\[\],:\" \t\r\n]++)")
#: One character of a text in its JSON spelling.
_CHARACTER: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]"
)
_ESCAPED: Final = "\\u"


class NoCanvas(Exception):
    """The file cannot be read as a canvas. The message contains the reason."""


@frozen
class CardText:
    """A text of a card, with its position in the file without the quotes."""

    value: str
    start: int
    end: int


@define
class CanvasCard:
    """A card of a canvas, with its texts by key."""

    texts: dict[str, CardText] = field(factory=dict)

    @property
    def file(self) -> CardText | None:
        """Return the path of the file that the card shows, relative to the notes folder."""
        return self.texts.get("file") if self._kind == "file" else None

    @property
    def text(self) -> CardText | None:
        """Return the card's Markdown text."""
        return self.texts.get("text") if self._kind == "text" else None

    @property
    def _kind(self) -> str:
        kind = self.texts.get("type")
        return kind.value if kind is not None else ""


def read_canvas(data: bytes) -> tuple[str, list[CanvasCard]]:
    """Return the text of a canvas and the cards in it. Raise `NoCanvas` if it cannot be read."""
    if len(data) > LARGEST:
        raise NoCanvas(f"the canvas has more than {LARGEST} bytes")
    try:
        text = data.decode()
        bare = text.removeprefix("\ufeff")
        # Numbers are not needed, and Python refuses to parse very long numbers.
        value = json.loads(bare, parse_int=bool, parse_float=bool) if bare.strip() else {}
    except UnicodeDecodeError:
        raise NoCanvas("the canvas is not UTF-8") from None
    except RecursionError:
        raise NoCanvas("the canvas is nested too deeply") from None
    except ValueError:
        raise NoCanvas("the canvas is not valid JSON") from None
    return text, list(_cards(text)) if isinstance(value, dict) and isinstance(
        value.get("nodes"), list
    ) else []


def _cards(text: str) -> Iterator[CanvasCard]:
    """Yield the objects in the list `nodes`. `text` must be valid JSON."""
    opened: list[str] = []
    keys: list[str] = []
    card, is_key, at = CanvasCard(), False, len(text) - len(text.removeprefix("\ufeff"))
    while (token := _TOKEN.match(text, at)) is not None:
        at, mark = token.end(), token[1]
        if token[2]:
            value, at = scanstring(text, at, False)
            if is_key:
                keys[-1] = value
            elif opened == ["{", "[", "{"] and keys[0] == "nodes":
                card.texts[keys[-1]] = CardText(value, token.end(), at - 1)
            is_key = False
        elif mark in ("{", "["):
            opened.append(mark)
            keys.append("")
            is_key = mark == "{"
            card = CanvasCard() if len(opened) == 3 else card
        elif mark in ("}", "]"):
            if opened == ["{", "[", "{"] and keys[0] == "nodes":
                yield card
            opened.pop()
            keys.pop()
        elif mark == ",":
            is_key = bool(opened) and opened[-1] == "{"


def relink_canvas(
    data: bytes, file_after: Callable[[str], str | None], rewrite: Callable[[str], list[Edit]]
) -> bytes:
    """Return the bytes of a canvas after a move.

    `file_after` returns the new path of a file. `rewrite` returns the edits of a text.

    Raise `NoCanvas` if the canvas cannot be read.
    """
    text, cards = read_canvas(data)
    edits: list[Edit] = []
    for card in cards:
        if (file := card.file) is not None and (path := file_after(file.value)) is not None:
            edits += _written(text, file, [(0, len(file.value), path)])
        if (shown := card.text) is not None and (made := rewrite(shown.value)):
            edits += _written(text, shown, made)
    return apply_edits(text, edits).encode() if edits else data


def _written(text: str, part: CardText, edits: list[Edit]) -> Iterator[Edit]:
    """Convert the edits of a value to edits of the file. Unchanged parts of the value keep their spelling."""
    source = text[part.start : part.end]
    is_ascii = _ESCAPED in source and source.isascii() and not part.value.isascii()
    if "\\" in source:
        places = [match.start() for match in _CHARACTER.finditer(source)] + [len(source)]
    else:
        places = []
    for start, end, new in edits:
        begin, stop = (places[start], places[end]) if places else (start, end)
        yield part.start + begin, part.start + stop, json.dumps(new, ensure_ascii=is_ascii)[1:-1]
