"""Prompts in twelve languages: each language has as many, and questions count only where no note answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.languages import SHIPPED
from bench.multilingual import read_set
from bench.reach_languages import ABSENT, ACROSS, ALL, OTHER, OWN, WITHIN, language_parts, read_prompts


def test_each_language_of_the_notes_has_thirty_different_prompts() -> None:
    prompts = read_prompts()
    assert list(prompts) == list(read_set(SHIPPED))
    assert {(len(each), len(set(each))) for each in prompts.values()} == {(30, 30)}


def test_parts_are_each_language_its_halves_and_all_languages() -> None:
    parts = list(language_parts(["de", ALL]))
    assert [(part.language, len(part.notes.chunks)) for part in parts] == [
        ("de", 40),
        ("de", 20),
        ("de", 20),
        (ALL, 480),
    ]
    kinds = [{prompt.kind for prompt in part.prompts} for part in parts]
    assert kinds == [{WITHIN, ACROSS, OWN, OTHER}, {ABSENT}, {ABSENT}, {WITHIN, OWN}]


def test_no_note_of_a_half_answers_its_questions() -> None:
    questions = {text: str(note) for _, text, note in read_set(SHIPPED)["de"].questions}
    halves = list(language_parts(["de"]))[1:]
    for half in halves:
        documents = {chunk.doc for chunk in half.notes.chunks}
        assert documents.isdisjoint(questions[prompt.text] for prompt in half.prompts)
    assert sorted(prompt.text for half in halves for prompt in half.prompts) == sorted(questions)


def test_files_in_another_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "de.json").write_text('{"language": "de"}')
    with pytest.raises(SystemExit, match=r"de\.json is not a file of prompts"):
        read_prompts(tmp_path)
