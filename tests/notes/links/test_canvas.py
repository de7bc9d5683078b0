"""Canvases: the cards that are read, and the characters that a rewrite changes."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.links.canvas import NoCanvas, read_canvas, relink_canvas
from lithos.text.yaml.edit import Edit

#: A canvas of another program: with escapes, spaces, a byte-order mark and unknown keys.
CANVAS = (
    '\ufeff{"edges":[{"nodes":[{"type":"file","file":"a/Plén.md"}]}],\r\n\t"nodes" : [ '
    '{"file":"a\\/Pl\\u00e9n.md","type" :"file","subpath":"#x"}, {"id":1.50e3,"type":"text",'
    '"text":"\\"[[Plén]]\\"\\n\\ud83d\\ude80 [[Pl\\u00e9n]]","more":{"type":"file","file":"a/Plén.md"}},'
    '{"type":"link","url":"a/Plén.md"},{"type":"group","text":"[[Plén]]"} ] }\n'
)  # fmt: skip


def rewrite(text: str) -> list[Edit]:
    found = [at for at in range(len(text)) if text.startswith("Plén", at)]
    return [(at, at + 4, 'Zé "1"') for at in found]


def test_canvas_rewrite_changes_only_the_changed_values() -> None:
    """behaviour 374"""
    after = relink_canvas(CANVAS.encode(), {"a/Plén.md": "b/Zé.md"}.get, rewrite).decode()
    expected = CANVAS.replace("a\\/Pl\\u00e9n.md", "b/Z\\u00e9.md").replace(
        '\\"[[Plén]]', '\\"[[Zé \\"1\\"]]'
    )
    assert after == expected.replace("[[Pl\\u00e9n]]", '[[Zé \\"1\\"]]')
    assert relink_canvas(CANVAS.encode(), lambda _: None, lambda _: []) == CANVAS.encode()


@pytest.mark.parametrize(
    "data",
    [b"{", b"\xff", b"[" * 100_000, b'{"nodes": 1} x', b'{"nodes":[' * 50_000, b" " * 17_000_000],
    ids=["cut", "bytes", "deep", "two", "deep nodes", "large"],
)  # fmt: skip
def test_unreadable_canvas_is_refused(data: bytes) -> None:
    with pytest.raises(NoCanvas):
        read_canvas(data)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"nodes":{}}', b'{"nodes":[1,[{"type":"file","file":"a"}]]}'])
def test_canvas_without_cards_has_no_links(data: bytes) -> None:
    assert read_canvas(data)[1] == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
CARDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["file", "text", "group"])},
    optional={"file": st.text(max_size=6), "text": st.text(max_size=12), "x": VALUES},
)


@given(st.lists(CARDS | VALUES, max_size=5), st.dictionaries(st.text(max_size=3), VALUES), st.booleans())
def test_scanned_cards_equal_the_cards_of_the_parsed_canvas(
    cards: list[object], more: dict[str, object], is_ascii: bool
) -> None:
    text = json.dumps({**more, "nodes": cards}, ensure_ascii=is_ascii, indent=1)
    data = text.encode("utf-8", "replace" if is_ascii else "surrogatepass")
    _, found = read_canvas(data)
    objects = [each for each in cards if isinstance(each, dict)]
    for card, known in zip(found, objects, strict=True):
        for kind, part in (("file", card.file), ("text", card.text)):
            assert (part and part.value) == (known.get(kind) if known.get("type") == kind else None)


def test_reading_a_canvas_takes_linear_time() -> None:
    data = json.dumps({"nodes": [{"type": "text", "text": "Plén \n" * 10}] * 10_000}).encode()
    began = time.process_time()
    relink_canvas(data, lambda _: None, rewrite)
    assert time.process_time() - began < 10
