"""Chunks, snippets and truncation of texts of every script and of none (behaviour 421)."""

from __future__ import annotations

import pytest
from apsw.unicode import grapheme_next_break

from lithos.text.chunk import chunk_text
from lithos.text.snippet import Terms, find_passage, truncate

#: A unit of each kind of text, and a word that a search finds.
UNITS = {
    "mixed languages": (
        "The train leaves at 7. 火车七点出发。 ट्रेन सात बजे है। รถไฟออกเจ็ดโมง القطار؟ ",
        "train",
    ),
    "code": ("for (;;) { x[i] = f(\"क्षि\", '👨‍👩‍👧'); }\n", "x"),
    "numbers": ("3.1415 ２０２６／０３／０５ ١٢٣ १२३ ๑๒๓ 1️⃣ ", "3.1415"),
    "names": ("Łódź O'Brien 李小龍 Nguyễn Þór ", "Brien"),
    "right to left with Latin": ("هذا commit من GitHub للمستودع، ثم שלום world؟ ", "commit"),
    "half and full width": ("ｶﾞｷﾞ ＡＢＣ ａｂｃ １２３｡ﾊﾟﾋﾟ。", "abc"),
    "private use and unassigned": ("\ue000\uf8ff \u0378\U000e0fff\U0010fffd word ", "word"),
    "marks": ("e\u0301\u0323o\u0308 n\u0303 ", "e\u0301\u0323o\u0308"),
    "Hangul letters": ("\u1112\u1161\u11ab\u1100\u1173\u11af 한글 ", "한글"),
    "emoji": ("👍🏽 👨‍👩‍👧 ❤️‍🔥 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪🇫🇷 ok ", "ok"),
    "flags": ("🇩🇪🇫🇷🇯🇵", "🇯🇵"),
    "conjuncts": ("क्ष्मि", "क्ष्मि"),
    "Thai without spaces": ("ที่นี่น้ำ", "ที่นี่"),
    "Chinese without marks": ("汽车保险每年", "保险"),
}


def ends_of(text: str) -> set[int]:
    ends, at = {0}, 0
    while at < len(text):
        at = grapheme_next_break(text, at)
        ends.add(at)
    return ends


def cuts_inside(shown: str, source: str) -> list[str]:
    """Return the lines of an answer that begin or end inside a grapheme of the source."""
    ends, wrong = ends_of(source), []
    for line in shown.split("\n"):
        part = line.strip().removeprefix("...").removesuffix("...").removesuffix("…").strip()
        at = source.find(part)
        if part and at >= 0 and not {at, at + len(part)} <= ends:
            wrong.append(part)
    return wrong


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("size", [30, 477, 6_000])
def test_no_chunk_snippet_or_truncation_cuts_a_grapheme(kind: str, size: int) -> None:
    """behaviour 421"""
    unit, word = UNITS[kind]
    text = unit * (size // len(unit) + 1)
    for chunk in chunk_text("", text):
        assert cuts_inside(chunk.text, text) == []
        assert cuts_inside(find_passage(chunk.text, Terms.of(word, {})).text, chunk.text) == []
    assert cuts_inside(find_passage(text, Terms.of(word, {})).text, text) == []
    for most in range(16, min(len(text), 120)):
        assert cuts_inside(truncate(text, most)[0], text) == []
