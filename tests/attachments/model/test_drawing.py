"""Drawings, plain and compressed, which yield the texts of their elements (behaviour 290)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.attachments.model.drawing import read_drawing
from lithos.attachments.model.lz_string import BadCompression, TooLarge, decompress
from lithos.attachments.model.parts import FilePart, NotExtractable
from tests.attachments.model.lz_codes import compress, of_codes

SCENE = {
    "type": "excalidraw",
    "elements": [
        {
            "id": "aaaaaaaa",
            "type": "text",
            "text": "see\nPlan",
            "originalText": "see Plan",
            "rawText": "see [[Plan]]",
        },
        {"id": "bbbbbbbb", "type": "text", "text": "two\nlines", "originalText": "two lines"},
        {"id": "cccccccc", "type": "text", "text": "gone", "isDeleted": True},
        {"id": "dddddddd", "type": "frame", "name": "Sketches"},
        {"id": "eeeeeeee", "type": "rectangle"},
        {"id": "ffffffff", "type": "text", "text": 7},
    ],
}
OF_SCENE = [
    FilePart("aaaaaaaa", "see [[Plan]]"),
    FilePart("bbbbbbbb", "two lines"),
    FilePart("dddddddd", "Sketches"),
]
SECTION = """---
excalidraw-plugin: parsed
---
==⚠  Switch to EXCALIDRAW VIEW ==

%%
# Excalidraw Data

## Text Elements
see [[Plan|the plan]] ^aaaaaaaa

two
lines ^bbbbbbbb

# a text like a heading ^gggggggg

## Embedded Files
0123456789abcdef: [[image.png]]

%%
"""


def in_lines(text: str) -> str:
    return "\n\n".join(text[at : at + 256] for at in range(0, len(text), 256))


def markdown(fence: str, body: str, section: str = SECTION, heading: str = "## Drawing") -> bytes:
    return f"{section}{heading}\n```{fence}\n{body}\n```\n%%".encode()


def test_excalidraw_drawing_yields_texts_and_frames():
    assert list(read_drawing("a.excalidraw", json.dumps(SCENE).encode())) == OF_SCENE
    assert list(read_drawing("A.EXCALIDRAW", b"")) == []


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_obsidian_plugin_drawing_yields_each_text_once(is_packed: bool, line_end: str):
    scene = json.dumps(SCENE, indent=1)
    data = markdown("compressed-json", in_lines(compress(scene))) if is_packed else markdown("json", scene)
    assert list(read_drawing("a.excalidraw.md", data.replace(b"\n", line_end.encode()))) == [
        FilePart("aaaaaaaa", "see [[Plan|the plan]]"),
        FilePart("bbbbbbbb", "two\nlines"),
        FilePart("gggggggg", "# a text like a heading"),
        FilePart("dddddddd", "Sketches"),
    ]


def test_older_plugin_drawing_with_level_one_headings_is_read():
    section = "# Text Elements\nfirst ^aaaaaaaa\n\n%%\n"
    data = markdown("json", json.dumps(SCENE), section, "# Drawing")
    assert list(read_drawing("a.excalidraw.md", data)) == [FilePart("aaaaaaaa", "first"), *OF_SCENE[1:]]


def test_drawing_texts_come_from_scene_or_text_section():
    assert list(read_drawing("a.excalidraw.md", markdown("json", json.dumps(SCENE), ""))) == OF_SCENE
    assert [part.place for part in read_drawing("a.excalidraw.md", SECTION.encode())] == [
        "aaaaaaaa", "bbbbbbbb", "gggggggg",
    ]  # fmt: skip
    assert list(read_drawing("a.excalidraw.md", b"just a note")) == []


@pytest.mark.parametrize(
    ("fence", "body", "why"),
    [
        ("compressed-json", "!!!", "damaged"),
        ("compressed-json", compress(json.dumps(SCENE))[:200], "damaged"),
        ("compressed-json", of_codes("a", [500]), "damaged"),
        ("compressed-json", of_codes("a", range(4, 6_000)), "more than 8 MB"),
        ("compressed-json", compress("nope"), "not valid JSON"),
        ("json", "[" * 200_000, "nested too deeply"),
    ],
)
def test_drawing_with_damaged_scene_yields_its_texts_before_refusal(fence: str, body: str, why: str):
    parts = read_drawing("a.excalidraw.md", markdown(fence, body))
    assert [next(parts).place for _ in range(3)] == ["aaaaaaaa", "bbbbbbbb", "gggggggg"]
    with pytest.raises(NotExtractable, match=why):
        next(parts)


def test_drawing_compressed_by_another_program_is_read():
    """The data comes from `compressToBase64` of lzstring 1.0 from PyPI."""
    assert decompress("BYUwNmD2A0AEoRvcVYBOBvAf2gagloHlRQA=", 100) == "hello, hello, hello äöü € 語"
    assert decompress("BYUwNmD2Q===", 100) == "hello"
    assert decompress("Q===", 100) == ""


@given(
    st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",))) | st.text("ab", max_size=2_000)
)
def test_drawing_text_is_unchanged_after_compression(text: str):
    assert decompress(compress(text), len(text)) == text


def test_compression_bombs_stop_and_truncated_streams_are_refused():
    bomb = of_codes("a", range(4, 3_000))
    with pytest.raises(TooLarge):
        decompress(bomb, 4_000_000)
    for damaged in ("", "/", bomb[:900], bomb + "!", "===="):
        with pytest.raises(BadCompression):
            decompress(damaged, 10_000_000)
