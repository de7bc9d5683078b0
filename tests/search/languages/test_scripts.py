"""Notes of every script and of none, from the write to the briefing (behaviour 421)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.servers import Lithos, put_note, serving
from tests.text.test_scripts import UNITS, cuts_inside

#: Notes of one word or one character.
SINGLE = ("Wort", "語", "👨‍👩‍👧", "\ue000", "क्षि", "؟", "\u0301", "🇩")
#: Scripts of which a megabyte is written.
LARGE = ("conjuncts", "flags", "Thai without spaces", "Chinese without marks", "marks")


async def answers(lithos: Lithos, note_id: str, word: str) -> list[str]:
    """Return every text that a client sees of a note."""
    shown: list[str] = []
    offset: int | None = 0
    while offset is not None and len(shown) < 4:
        page = await lithos.call("lithos_read", id=note_id, max_length=211, offset=offset)
        shown.append(page["content"])
        offset = page.get("next_offset")
    for mode in ("fulltext", "semantic", "hybrid"):
        found: dict[str, Any] = await lithos.call("lithos_search", query=word, mode=mode, limit=5)
        assert "results" in found, found
        shown += [row["snippet"] for row in found["results"] if row["id"] == note_id]
    briefing = await lithos.call("lithos_context", query=word, budget=400)
    assert "text" in briefing, briefing
    return [*shown, briefing["text"]]


async def test_notes_of_all_scripts_are_written_found_and_shown_whole(tmp_path: Path) -> None:
    """behaviour 421"""
    async with serving(tmp_path) as lithos:
        for kind, (unit, word) in UNITS.items():
            content = (unit * (3_000 // len(unit) + 1)).strip()
            note_id = await lithos.create(f"Note of {kind} {unit.strip()}", content)
            for shown in await answers(lithos, note_id, word):
                assert cuts_inside(shown, content) == [], kind


async def test_notes_of_one_word_or_character_are_accepted(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        for text in SINGLE:
            note_id = await lithos.create(f"Single {text!a}", text)
            assert (await answers(lithos, note_id, text))[0].strip() == text


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
async def test_megabyte_of_one_script_is_served(tmp_path: Path, kind: str) -> None:
    """behaviour 421"""
    unit, word = UNITS[kind]
    content = (unit * (1_000_000 // len(unit.encode()))).strip()
    put_note(tmp_path, "large.md", content)
    async with serving(tmp_path) as lithos:
        listed = await lithos.call("lithos_list")
        shown = await answers(lithos, listed["items"][0]["id"], word)
    assert len(shown[0]) <= 211
    assert [cuts_inside(each, content[:4_000]) for each in shown] == [[]] * len(shown)
