"""Canvases, which yield the texts of their cards, groups and edges (behaviour 290)."""

from __future__ import annotations

import json

import pytest

from lithos.attachments.model.parts import FilePart, NotExtractable
from lithos.attachments.model.reading import read_canvas

CANVAS = {
    "nodes": [
        {"id": "t1", "type": "text", "text": "# Plan\nwith **force**", "x": 0, "y": -1.5e3},
        {"id": "f1", "type": "file", "file": "Notes/Plan.md", "subpath": "#Goals"},
        {"id": "l1", "type": "link", "url": "https://example.org/"},
        {"id": "g1", "type": "group", "label": "Ideas"},
        {"id": "e1", "type": "text", "text": " "},
        {"id": "g2", "type": "group"},
    ],
    "edges": [{"id": "k1", "fromNode": "t1", "toNode": "f1", "label": "leads to"}, {"id": "k2"}],
}


def told(value: object) -> list[FilePart]:
    return list(read_canvas(json.dumps(value).encode()))


def test_canvas_parts_are_cards_groups_and_edges_with_ids():
    assert told(CANVAS) == [
        FilePart("t1", "# Plan\nwith **force**"),
        FilePart("f1", "Notes/Plan.md#Goals"),
        FilePart("l1", "https://example.org/"),
        FilePart("g1", "Ideas"),
        FilePart("k1", "leads to"),
    ]


@pytest.mark.parametrize("data", [b"", b" \n", b"{}", b'{"nodes":[]}', b'\xef\xbb\xbf{"edges":null}'])
def test_empty_canvas_has_no_parts(data: bytes):
    assert list(read_canvas(data)) == []


def test_canvas_values_of_a_wrong_type_are_ignored():
    nodes = [
        7,
        None,
        [],
        {"id": 3, "type": "text", "text": "kept"},
        {"id": "x", "text": ["no"]},
        {"type": {}},
    ]
    assert told({"nodes": nodes, "edges": "none"}) == [FilePart("node 1", "kept")]


def test_cards_with_the_same_id_are_both_kept():
    nodes = [{"id": "a", "type": "text", "text": text} for text in ("one", "two")]
    assert told({"nodes": nodes}) == [FilePart("a", "one"), FilePart("a (2)", "two")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"nodes":' * 100_000, "nested too deeply"),
        (b'{"nodes":[', "not valid JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b"[]", "not an object"),
        (b"\x00", "not valid JSON"),
        (b"nope", r"not valid JSON \(line 1\)"),
    ],
)
def test_invalid_canvas_is_refused_with_reason(data: bytes, why: str):
    with pytest.raises(NotExtractable, match=why):
        list(read_canvas(data))


def test_long_numbers_in_a_canvas_are_skipped():
    huge = b"9" * 100_000
    data = b'{"nodes":[{"x":' + huge + b',"y":1e' + huge + b',"text":"here","id":"a"}]}'
    assert list(read_canvas(data)) == [FilePart("a", "here")]
