"""Full-text search in the language of each note (docs/spec/search.md §1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import read_marker
from lithos.text.snippet import Terms, mark_matches
from tests.kernel.databases.fulltext_entries import entry, found

GERMAN = "Die Kündigungen für die Häuser sind nicht angekommen, weil das Krankenhaus umgezogen ist."
ENGLISH = "The houses were cancelled, and the team will answer all open questions about them."
RUSSIAN = "Мы читали эти книги, но не было времени, чтобы это обсудить."
TURKISH = "Bu kitaplarımız çok eski ve daha sonra değişecek ama kapağı için bir şey yok."
ARABIC = "هذه المكتبات التي في المدينة كانت مغلقة ثم فتحت الأبواب بعد ذلك."
SPANISH = "Las canciones que los niños cantaban en el parque son muy antiguas y no se olvidan."


@pytest.fixture
def index(tmp_path: Path) -> Iterator[FulltextIndex]:
    opened = FulltextIndex.open(tmp_path / ".tantivy")
    texts = (GERMAN, ENGLISH, RUSSIAN, TURKISH, ARABIC, SPANISH)
    opened.apply([entry(number, text, passages=(text,)) for number, text in enumerate(texts, 1)], [])
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("query", "serial"),
    [
        ("Kündigung", 1), ("kundigung", 1), ("KÜNDIGUNGEN", 1), ("Ku\u0308ndigung", 1), ("Haus", 1),
        ("wann ist die Kündigung für das Haus", 1), ('"Kündigung für die Haus"', 1), ("+Kündigung", 1),
        ("body:Kündigung", 1), ("cancelling", 2), ("house", 2), ("книга", 3), ("книгами", 3),
        ("kitap", 4), ("kitaplarimiz", 4), ("مكتبة", 5), ("المكتبه", 5), ("canción", 6), ("cancion", 6),
        ("ＣＡＮＣＩＯＮ", 6),
    ],
)  # fmt: skip
def test_words_are_found_in_other_forms_and_without_marks(
    index: FulltextIndex, query: str, serial: int
) -> None:
    """behaviour 319: in a vault with six languages."""
    assert found(index, query)[0] == serial


def test_parts_of_four_letters_find_compounds_if_a_note_has_them(index: FulltextIndex) -> None:
    """behaviour 319: `Haus` is a word of note 1. `Amts` is in a long word too, but is a word of no note."""
    texts = (
        "Das Gästehaus ist neu, und wir sind nicht da.",
        "Der Amtsrichter ist nicht da, und das ist gut.",
    )
    index.apply([entry(number, text, passages=(text,)) for number, text in enumerate(texts, 7)], [])
    assert found(index, "Haus") == [1]  # The long word has nine letters.
    text = "Das Bauernhaus ist neu, und wir sind nicht da."
    index.apply([entry(9, text, passages=(text,))], [])
    assert found(index, "Haus") == [1, 9]
    assert found(index, "Amts") == []
    text = "The greenhouse, the lighthouses and the storehouse are not new."
    index.apply([entry(10, text, passages=(text,)), entry(11, "the hous of the new team")], [])
    assert sorted(found(index, "hous")) == [2, 11]  # No compounds of English notes.


def test_excluded_words_exclude_their_other_forms(index: FulltextIndex) -> None:
    assert found(index, "+angekommen -Kündigung") == []
    assert found(index, "+angekommen -Tomate") == [1]


def test_matches_are_marked_in_other_forms(index: FulltextIndex) -> None:
    """behaviour 319."""
    terms = Terms.of("Kündigung", index.idf(index.content_stems("Kündigung")), index.word_forms("Kündigung"))
    assert [part for part, is_match in mark_matches(GERMAN, terms) if is_match] == ["Kündigungen"]
    assert not index.word_forms("cancelled").stems


def test_lead_coverage_uses_the_stems_of_the_language(index: FulltextIndex) -> None:
    idf = index.idf(index.content_stems("die Kündigung für das Haus"))
    assert set(idf) == {"kundig", "haus"}
    assert index.coverage(idf, [1])[1].share == pytest.approx(1.0)


def test_languages_survive_a_restart(tmp_path: Path) -> None:
    """behaviour 319: no note is read again."""
    for _ in range(2):
        index = FulltextIndex.open(tmp_path / ".tantivy")
        if index.was_rebuilt:
            index.apply([entry(1, GERMAN, passages=(GERMAN,))], [])
        assert found(index, "Kündigung") == found(index, "kranken") == [1]
        index.close()
    assert not index.was_rebuilt


def test_another_language_of_all_notes_empties_the_index(tmp_path: Path) -> None:
    """behaviour 319: `search.language`. A note in another language is stemmed like all notes."""
    directory = tmp_path / ".tantivy"
    FulltextIndex.open(directory).close()
    index = FulltextIndex.open(directory, "german")
    assert "L7" in str(index.rebuild_reason)
    index.apply([entry(1, "Kündigungen")], [])
    assert found(index, "Kündigung") == [1]
    index.close()
    assert read_marker(directory) == "L7 german"
    assert not FulltextIndex.open(directory, "german").was_rebuilt
    sound = FulltextIndex.open_sound(directory)
    assert list(sound.stamps()) == [1]
    english = FulltextIndex.open(directory, "english")
    english.apply([entry(1, GERMAN)], [])
    assert found(english, "Kündigung") == []


def test_english_notes_score_the_same_next_to_other_languages(tmp_path: Path) -> None:
    """Queries that are clearly English ignore stems of other languages for words that English notes have."""
    index = FulltextIndex.open(tmp_path / ".tantivy")
    index.apply([entry(1, ENGLISH), entry(2, "Will the team answer the question?")], [])
    before = index.content_stems("will the team answer questions about houses")
    index.apply([entry(3, GERMAN)], [])
    assert index.content_stems("will the team answer questions about houses") == before
    index.close()


def test_words_of_a_rare_language_are_found(tmp_path: Path) -> None:
    """One of 300 notes is German. Its words are found as no English note has them."""
    index = FulltextIndex.open(tmp_path / ".tantivy")
    index.apply([entry(number, ENGLISH) for number in range(2, 301)] + [entry(1, GERMAN)], [])
    assert found(index, "Kündigung") == [1]
    assert found(index, "Häuser")[0] == 1
    index.close()


@pytest.mark.parametrize(
    "text",
    [
        "\ue000\U000f0000 " * 200, "\u0378\U000e0fff " * 200, "דוח Report 2024 שלום " * 50,
        "ﾃﾞｰﾀﾍﾞｰｽ Ｄａｔａｂａｓｅ " * 50, "и" * 100_000, "ü" * 100_000,
        "\u202eabc\u202c der die das und ist " * 50,
    ],
)  # fmt: skip
def test_unusual_texts_are_indexed(index: FulltextIndex, text: str) -> None:
    index.apply([entry(20, f"{text} needle")], [])
    assert found(index, "needle") == [20]
    index.content_stems(text)
    index.word_forms(text)
