"""The choice between the models of the accurate tier by the languages of a vault (behaviour 420)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.multilingual import read_set
from lithos.kernel.actors.threads import Threads
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL, TransformerModel
from lithos.search.indexing import vault_languages
from lithos.search.indexing.accurate_choice import FEW, MANY, choose_model
from lithos.search.indexing.vault_languages import VaultLanguages, choose_notes
from lithos.text.words.languages import is_other_language
from tests.servers import put_note, serving

SETS = read_set(Path(__file__).parent.parent / "languages")


def installed(monkeypatch: pytest.MonkeyPatch, is_installed: bool) -> None:
    monkeypatch.setattr(TransformerModel, "is_installed", property(lambda _: is_installed))


@pytest.mark.parametrize(
    ("share", "was_multilingual", "chosen"),
    [
        (0.0, False, ENGLISH),
        (0.099, False, ENGLISH),
        (MANY, False, MULTILINGUAL),
        (1.0, False, MULTILINGUAL),
        (0.07, False, ENGLISH),
        (0.07, True, MULTILINGUAL),
        (FEW, True, MULTILINGUAL),
        (0.049, True, ENGLISH),
    ],
)
def test_tenth_of_other_languages_chooses_the_multilingual_model(
    monkeypatch: pytest.MonkeyPatch, share: float, was_multilingual: bool, chosen: TransformerModel
) -> None:
    """behaviour 420: between the two limits a vault keeps its model."""
    installed(monkeypatch, True)
    choice = choose_model("auto", share, was_multilingual=was_multilingual)
    assert choice.model is chosen
    assert choice.because == f"{share:.0%} of the notes are not English"


def test_missing_multilingual_model_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, False)
    choice = choose_model("auto", 0.5, was_multilingual=False)
    assert (choice.model, choice.lacks) == (ENGLISH, MULTILINGUAL)
    assert "50% of the notes are not English" in choice.because
    assert choice.because.endswith("To install it: pip install ./models/accurate-multi")
    assert choose_model("auto", 0.05, was_multilingual=False).lacks is None


@pytest.mark.parametrize(("wanted", "model"), [("english", ENGLISH), ("multilingual", MULTILINGUAL)])
def test_setting_overrides_the_languages(
    monkeypatch: pytest.MonkeyPatch, wanted: Any, model: TransformerModel
) -> None:
    installed(monkeypatch, False)
    choice = choose_model(wanted, 0.5, was_multilingual=False)
    assert (choice.model, choice.because) == (model, f"search.accurate_model is {wanted}")


@pytest.mark.parametrize("language", sorted(SETS))
def test_language_of_short_notes_is_recognised(language: str) -> None:
    notes = SETS[language].notes
    other = sum(is_other_language(f"{title}\n{text}") for title, text in notes)
    assert other == 0 if language == "en" else other >= 0.9 * len(notes)


@pytest.mark.parametrize(
    "text",
    ["", "12 34", "# Kubernetes\n\nkubectl get pods -n kube-system", "Zoë Müller, Łukasz Kowalski", "TODO"],
)
def test_text_of_an_unknown_language_counts_as_english(text: str) -> None:
    assert not is_other_language(text)


async def test_share_follows_changed_notes_and_reads_only_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (title, text) in enumerate(SETS["en"].notes[:3]):
        put_note(tmp_path, f"{number}.md", f"# {title}\n\n{text}\n")
    title, text = SETS["de"].notes[0]
    put_note(tmp_path, "de.md", f"# {title}\n\n{text}\n")
    async with serving(tmp_path) as lithos:
        languages = VaultLanguages(lithos.server.get(Catalogue), lithos.server.get(NoteFiles), Threads())
        assert await languages.share_of_other_languages() == 0.25
        read: list[str] = []
        real = vault_languages.load_note

        def load(files: Any, entry: Any, style: Any) -> Any:
            read.append(entry.note.title)
            return real(files, entry, style)

        monkeypatch.setattr(vault_languages, "load_note", load)
        await lithos.create("Dos", "El tren sale de la estación a las ocho y es muy puntual los lunes.")
        assert await languages.share_of_other_languages() == 0.4
        assert read == ["Dos"]


async def test_large_vault_is_judged_by_the_same_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_languages, "LOOKED_AT", 5)
    for number in range(12):
        put_note(tmp_path, f"{number}.md", f"# Note {number}\n\nText\n")
    async with serving(tmp_path) as lithos:
        entries = list(lithos.server.get(Catalogue))
        chosen = choose_notes(entries)
        assert len(chosen) == 5
        assert choose_notes(reversed(entries)) == chosen
        fewer = choose_notes(entries[:8])
        assert all(entry in fewer for entry in entries[:8] if entry in chosen)
