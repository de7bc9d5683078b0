"""Notes and questions in several languages, as collections within a language and across two languages.

A set is a folder with one `LANGUAGE.json` per language: `{"language": "de", "notes": [{"title", "text"}],
"questions": [{"text", "note": INDEX}]}`. Notes with the same index say the same in every language. Questions
across languages therefore know their answers. XQuAD has the same structure: its paragraphs are the notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from bench.judged import TITLE, Chunk, Collection, JudgedQuery

#: The language of the questions about notes in other languages, and of the notes for their questions.
ENGLISH = "en"


@frozen
class LanguageSet:
    """The notes (title, text) and the questions (id, text, index of the note) of one language."""

    language: str
    notes: tuple[tuple[str, str], ...]
    questions: tuple[tuple[str, str, int], ...]


def read_set(folder: Path) -> dict[str, LanguageSet]:
    """Read a set by language. Raises `SystemExit` for a file that is not in the format."""
    return _read(sorted(folder.glob("*.json")), folder, _own)


def read_xquad(folder: Path) -> dict[str, LanguageSet]:
    """Read the files `xquad.LANGUAGE.json` by language. Raises `SystemExit` as `read_set` does."""
    return _read(sorted(folder.glob("xquad.*.json")), folder, _squad)


def _read(paths: Sequence[Path], folder: Path, parse: Any) -> dict[str, LanguageSet]:
    if not paths:
        raise SystemExit(f"{folder} has no language files. Name the folder that contains them.")
    sets: dict[str, LanguageSet] = {}
    for path in paths:
        try:
            found = parse(path, json.loads(path.read_text(encoding="utf-8")))
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"{path} is not a language file: {error!r}.") from error
        wrong = [text for _, text, note in found.questions if not 0 <= note < len(found.notes)]
        if wrong:
            raise SystemExit(f"{path}: the question {wrong[0]!r} names a note that does not exist.")
        sets[found.language] = found
    return sets


def _own(path: Path, content: Mapping[str, Any]) -> LanguageSet:
    return LanguageSet(
        content["language"],
        tuple((note["title"], note["text"]) for note in content["notes"]),
        tuple(
            (f"{path.stem}-{number}", question["text"], int(question["note"]))
            for number, question in enumerate(content["questions"])
        ),
    )


def _squad(path: Path, content: Mapping[str, Any]) -> LanguageSet:
    paragraphs = [each for article in content["data"] for each in article["paragraphs"]]
    return LanguageSet(
        path.name.split(".")[1],
        tuple((TITLE, paragraph["context"]) for paragraph in paragraphs),
        tuple(
            (asked["id"], asked["question"], number)
            for number, paragraph in enumerate(paragraphs)
            for asked in paragraph["qas"]
        ),
    )


def collection_of(notes: LanguageSet, asked: Mapping[str, LanguageSet]) -> Collection:
    """Return the notes of one language with questions in some languages.

    The kind of a question is its key in `asked`.
    """
    return Collection(
        f"languages-{notes.language}",
        tuple(
            Chunk(f"{notes.language}-{number}", str(number), text, title)
            for number, (title, text) in enumerate(notes.notes)
        ),
        tuple(
            JudgedQuery(f"{kind}:{question}", text, kind, {str(note): 1})
            for kind, each in asked.items()
            for question, text, note in each.questions
        ),
    )


def mixed_collection(sets: Mapping[str, LanguageSet]) -> Collection:
    """Return the notes of all languages in one vault, with the questions of all languages.

    Notes that say the same in several languages are one document, because each of them answers.
    """
    return Collection(
        "languages-mixed",
        tuple(
            Chunk(f"{each.language}-{number}", str(number), text, title)
            for each in sets.values()
            for number, (title, text) in enumerate(each.notes)
        ),
        tuple(
            JudgedQuery(f"{each.language}:{question}", text, each.language, {str(note): 1})
            for each in sets.values()
            for question, text, note in each.questions
        ),
    )
