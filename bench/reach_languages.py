"""The hook at the prompt in twelve languages: a part of `bench.reach`.

The notes of each language are a vault of its own, and `all` is one vault with the notes of all languages.
Related prompts are the questions of `tests/search/languages`: `within` in the language of the notes, and
`across` in English (for English notes in all other languages).

Unrelated prompts are everyday tasks and talk (`tests/search/languages/prompts`): `own` in the language of the
notes and `other` in all others. `absent` has the questions about each half of the notes, asked to a vault
with the other half. The subjects of these questions are as near as those of notes and questions ever are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from bench.judged import Chunk, Collection
from bench.languages import SHIPPED, across
from bench.multilingual import LanguageSet, collection_of, read_set
from bench.reach_prompts import Prompt

PROMPTS: Final = SHIPPED / "prompts"
#: The vault with the notes of all languages.
ALL: Final = "all"
WITHIN, ACROSS, OWN, OTHER, ABSENT = "within", "across", "own", "other", "absent"
#: Kinds of prompts that a note answers.
RELATED: Final = (WITHIN, ACROSS)


@frozen
class LanguagePart:
    """Notes of a language, and prompts to them."""

    language: str
    notes: Collection
    prompts: Sequence[Prompt]


def read_prompts(folder: Path = PROMPTS) -> dict[str, list[str]]:
    """Read the unrelated prompts by language. Raises `SystemExit` for a file that is not in the format."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found[content["language"]] = [str(each) for each in content["prompts"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SystemExit(f"{path} is not a file of prompts: {error!r}.") from error
    return found


def language_parts(only: Sequence[str] = ()) -> Iterator[LanguagePart]:
    """Yield the whole vault of each language with all prompts, its halves, and the vault of all languages."""
    sets, prompts = read_set(SHIPPED), read_prompts()
    for language, notes in sets.items():
        if not only or language in only:
            yield LanguagePart(language, collection_of(notes, {}), _prompts(language, sets, prompts))
            yield from _halves(notes)
    if not only or ALL in only:
        yield _together(sets, prompts)


def _prompts(
    language: str, sets: Mapping[str, LanguageSet], prompts: Mapping[str, Sequence[str]]
) -> list[Prompt]:
    asked = {WITHIN: [sets[language]], ACROSS: list(across(sets, language, []).values())}
    related = [
        Prompt(kind, text, frozenset({str(note)}))
        for kind, each in asked.items()
        for questions in each
        for _, text, note in questions.questions
    ]
    unrelated = [
        Prompt(OWN if other == language else OTHER, text) for other in prompts for text in prompts[other]
    ]
    return [*related, *unrelated]


def _halves(notes: LanguageSet) -> Iterator[LanguagePart]:
    whole = collection_of(notes, {})
    for half in (0, 1):
        chunks = tuple(each for each in whole.chunks if int(each.doc) % 2 == half)
        absent = [Prompt(ABSENT, text) for _, text, note in notes.questions if note % 2 != half]
        yield LanguagePart(
            notes.language, Collection(f"languages-{notes.language}-half{half}", chunks, ()), absent
        )


def _together(sets: Mapping[str, LanguageSet], prompts: Mapping[str, Sequence[str]]) -> LanguagePart:
    """Return the vault of all languages. A note in another language answers a question too."""
    chunks: list[Chunk] = []
    for language, each in sets.items():
        notes = collection_of(each, {}).chunks
        chunks += [evolve(note, path=f"{language}/{note.doc}.md") for note in notes]
    asked = [
        Prompt(WITHIN, text, frozenset({str(note)}))
        for each in sets.values()
        for _, text, note in each.questions
    ]
    unrelated = [Prompt(OWN, text) for each in prompts.values() for text in each]
    return LanguagePart(ALL, Collection("languages-all", tuple(chunks), ()), [*asked, *unrelated])
