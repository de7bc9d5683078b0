"""Canvases, Excalidraw drawings, and files of lines, as the programs that make them write them."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.attachments_facts import Teller
from tests.core.attachments.lz_codes import compress

#: Characters of one line of a compressed drawing.
_PACKED_LINE = 256


def identifier(teller: Teller, length: int, signs: str = "0123456789abcdef") -> str:
    return "".join(teller.rng.choices(signs, k=length))


def canvas(teller: Teller, cards: Mapping[str, str], file: str, group: str) -> str:
    """A canvas of text cards by id, a group around some, a card of a file, one of a link, labelled edges."""
    nodes: list[dict[str, Any]] = [
        {"id": identifier(teller, 16), "type": "group", "label": group, **_box(0, 900, 700)},
        {"id": identifier(teller, 16), "type": "file", "file": file, **_box(1, 400, 500)},
        {
            "id": identifier(teller, 16),
            "type": "link",
            "url": "https://example.org/board",
            **_box(2, 400, 300),
        },
    ]
    nodes += [
        {"id": card, "type": "text", "text": text, **_box(place, 320, 160)}
        for place, (card, text) in enumerate(cards.items(), 3)
    ]
    labels = ("leads to", "see", "blocks")
    edges = [
        {
            "id": identifier(teller, 16),
            "fromNode": first,
            "toNode": second,
            "label": teller.pick(labels),
        }
        for first, second in pairwise(cards)
    ]
    return json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False, indent="\t")


def _box(place: int, width: int, height: int) -> dict[str, int]:
    return {"x": 400 * (place % 4), "y": 240 * (place // 4), "width": width, "height": height}


def scene(elements: Mapping[str, str]) -> str:
    """The JSON of a drawing of texts by element id, each in a rectangle, broken into short lines."""
    drawn: list[dict[str, Any]] = []
    for place, (element, text) in enumerate(elements.items()):
        box = _box(place, 300, 120)
        frame = {
            "id": f"box{place}",
            "type": "rectangle",
            "isDeleted": False,
            "strokeColor": "#1e1e1e",
            **box,
        }
        told = {
            "id": element,
            "type": "text",
            "isDeleted": False,
            "text": _broken(text),
            "originalText": text,
            "fontSize": 16,
            "fontFamily": 1,
            "containerId": f"box{place}",
            **box,
        }
        drawn += [frame, told]
    whole = {
        "type": "excalidraw",
        "version": 2,
        "source": "https://example.org",
        "elements": drawn,
        "appState": {"viewBackgroundColor": "#ffffff"},
        "files": {},
    }
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _broken(text: str, most: int = 34) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def drawing_note(elements: Mapping[str, str], *, packed: bool) -> str:
    """A drawing as Obsidian's plugin keeps it: a note with the texts and the scene, `packed` or as JSON."""
    texts = "\n\n".join(f"{text} ^{element}" for element, text in elements.items())
    if packed:
        code = compress(scene(elements))
        lines = [code[at : at + _PACKED_LINE] for at in range(0, len(code), _PACKED_LINE)]
        block = "```compressed-json\n" + "\n\n".join(lines) + "\n```"
    else:
        block = f"```json\n{scene(elements)}\n```"
    return (
        "---\n\nexcalidraw-plugin: parsed\ntags: [excalidraw]\n\n---\n"
        "==⚠  Switch to EXCALIDRAW VIEW in the MORE OPTIONS menu of this document. ⚠==\n\n\n"
        f"# Excalidraw Data\n\n## Text Elements\n{texts}\n\n%%\n## Drawing\n{block}\n%%"
    )


def table_text(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Comma-separated values, the names of the columns in the first line."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return written.getvalue()


def web_page(title: str, lines: Sequence[str]) -> str:
    """A page saved from the web, a paragraph to a line; the first of `lines` stands in line 8."""
    head = [
        "<!doctype html>",
        f"<html><head><meta charset='utf-8'><title>{html.escape(title)}</title>",
        "<style>p { margin: 1em }</style>",
        "<script>var tracking = 'notice period boiler inspection';</script>",
        "</head><body>",
        "<nav><a href='/'>Home</a> <a href='/imprint'>Imprint</a></nav>",
        f"<h1>{html.escape(title)}</h1>",
    ]
    body = [f"<p>{html.escape(line)}</p>" for line in lines]
    return "\n".join((*head, *body, "</body></html>", ""))


#: The line of the first paragraph of `web_page`.
FIRST_PARAGRAPH = 8
