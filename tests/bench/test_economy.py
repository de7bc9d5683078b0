"""What answers cost the agent does not grow unnoticed (`bench/economy.json`)."""

from __future__ import annotations

import json

import pytest

from bench.economy import KEPT, is_shown, measure_kept, note_characters, worse
from bench.grep import Grep
from bench.judged import Chunk

BEFORE = {"search 10": {"characters": 1_000.0, "of_notes": 80.0}, "within 4000": {"evidence": 50.0}}


def test_figures_within_the_margin_pass() -> None:
    now = {"search 10": {"characters": 1_019.0, "of_notes": 79.0}, "within 4000": {"evidence": 49.0}}
    assert worse(now, BEFORE) == []
    assert worse(BEFORE | {"more": {"characters": 1.0}}, BEFORE) == []


def test_worse_figures_are_named() -> None:
    now = {"search 10": {"characters": 1_021.0, "of_notes": 78.0}}
    assert [each.split(" ")[0:3] for each in worse(now, BEFORE)] == [
        ["search", "10:", "characters"],
        ["search", "10:", "of_notes"],
        ["within", "4000:", "evidence"],
    ]


def test_only_text_of_notes_counts_as_such() -> None:
    answer = {"text": 'a "b"', "sources": ["[1] x.md"], "results": [{"id": "1", "snippet": "abc"}]}
    assert note_characters(answer) == len('a \\"b\\"') + 3


def test_evidence_is_shown_when_every_sentence_is() -> None:
    said = ["one two three four five six", "a short one"]
    assert is_shown(said, "Well: one two three four five six. A short one.") is False
    assert is_shown(said[:1], "Well: one two three four five six.")
    assert not is_shown(said[:1], "one two three four five")


def test_grep_shows_lines_around_the_best_within_the_limit() -> None:
    text = "\n".join(["one", "two", "the rare word", "four", "five", "six"])
    grep = Grep.over([Chunk("a", "a", text, "A", "a.md"), Chunk("b", "b", "nothing", "B", "b.md")])
    assert grep.find("rare", 100) == "a.md\n2: one\n3: two\n4: the rare word\n5: four\n6: five"
    assert grep.find("rare", 10) == "a.md\n2: on"


@pytest.mark.slow
def test_answers_cost_no_more_than_is_kept() -> None:
    """Renew the figures on purpose with `python -m bench.economy --keep`."""
    assert worse(measure_kept(), json.loads(KEPT.read_text(encoding="utf-8"))) == []
