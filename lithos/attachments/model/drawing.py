"""Excalidraw drawings, saved by Excalidraw or by Obsidian's plugin: texts and frame names.

`.excalidraw` files are JSON. `.excalidraw.md` files are Markdown: the section `Text Elements` has the texts,
each followed by `^id`, and the section `Drawing` has the JSON, usually compressed. The first section has
links in their original form, so texts that are in both sections are read from the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lithos.attachments.model.foreign_json import objects_of, read_object, text_of
from lithos.attachments.model.lz_string import BadCompression, TooLarge, decompress
from lithos.attachments.model.parts import FilePart, NotExtractable, Places, clean

#: Maximum length of a decompressed drawing in characters.
MOST_UNPACKED: Final = 8 * 1024 * 1024
_HEADING: Final = re.compile(r"#{1,6} +([^#\n]+?) *\Z")
#: The id after a text. Ids of the plugin have 8 characters, ids of Excalidraw have 21.
_ID: Final = re.compile(r"\^([A-Za-z0-9_-]{1,64})\Z")
_FENCES: Final = ("```json", "```compressed-json")


def read_drawing(name: str, data: bytes) -> Iterator[FilePart]:
    """Yield a part for each text and named frame, with its element id as place. Raises `NotExtractable`."""
    if not name.lower().endswith(".md"):
        return _of_scene(read_object(data, "the drawing"), Places(), set())
    try:
        return _of_markdown(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise NotExtractable("the drawing is not UTF-8 text") from None


def _of_scene(scene: dict[str, Any], places: Places, known: set[str]) -> Iterator[FilePart]:
    for number, element in enumerate(objects_of(scene, "elements"), 1):
        given = element.get("id")
        if element.get("isDeleted") is True or (isinstance(given, str) and given in known):
            continue
        match element.get("type"):
            case "text":
                # Prefer the raw text, because `text` has extra line breaks to fit into its shape.
                text = text_of(element, "rawText", "originalText", "text")
            case "frame" | "magicframe":
                text = text_of(element, "name")
            case _:
                continue
        if text := clean(text):
            yield FilePart(places.name(given, f"element {number}"), text)


def _of_markdown(text: str) -> Iterator[FilePart]:
    places, known = Places(), set[str]()
    for place, told in _section(text):
        known.add(place)
        if told := clean(told):
            yield FilePart(places.name(place, ""), told)
    packed = _scene_text(text)
    if packed is not None:
        yield from _of_scene(read_object(packed, "the drawing"), places, known)


def _section(text: str) -> Iterator[tuple[str, str]]:
    """Yield the id and text of each element in the section `Text Elements`."""
    is_inside, lines = False, list[str]()
    for line in _lines(text):
        if (heading := _HEADING.match(line)) and heading[1].casefold() in _SECTIONS:
            is_inside, lines = heading[1].casefold() == "text elements", []
        elif is_inside and line.startswith(("%%", *_FENCES)):
            is_inside = False
        elif is_inside:
            found = _ID.search(line)
            if found is None:
                lines.append(line)
            else:
                yield found[1], "\n".join((*lines, line[: found.start()]))
                lines = []


#: Headings that the plugin writes. Any other line that begins with `#` is part of a text.
_SECTIONS: Final = frozenset(
    ("text elements", "element links", "embedded files", "drawing", "excalidraw data")
)


def _scene_text(text: str) -> str | None:
    """Return the JSON of a drawing, or None if the file only contains texts."""
    opened = ""
    lines = list[str]()
    for line in _lines(text):
        if not opened:
            opened = line.rstrip() if line.rstrip() in _FENCES else ""
        elif line.startswith("```"):
            break
        else:
            lines.append(line)
    if opened != "```compressed-json":
        return "\n".join(lines) if opened else None
    try:
        return decompress("".join(lines), MOST_UNPACKED)
    except BadCompression:
        raise NotExtractable("its compressed drawing is damaged") from None
    except TooLarge:
        raise NotExtractable(f"its compressed drawing has more than {MOST_UNPACKED >> 20} MB") from None


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].removesuffix("\r")
        start = end + 1
