"""Languages of notes and queries (docs/spec/search.md §1)."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from bench.multilingual import read_set
from lithos.search.settings import Language
from lithos.text.words.function_words import _STEMMED, BY_LANGUAGE
from lithos.text.words.languages import ENGLISH, LANGUAGES, SAMPLE, language_of, language_of_query, may_have

SETS = read_set(Path(__file__).parents[2] / "search" / "languages")
NAMES = {
    "ar": "arabic", "de": "german", "el": "greek", "en": "english", "es": "spanish", "ro": "romanian",
    "ru": "russian", "tr": "turkish",
}  # fmt: skip
#: Languages whose function words tantivy knows.
SNOWBALL = (
    "danish", "dutch", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese",
    "russian", "spanish", "swedish",
)  # fmt: skip


@pytest.mark.parametrize("language", sorted(SETS))
def test_notes_of_two_sentences_show_their_language(language: str) -> None:
    """Notes in languages without a stemmer count as English. No note gets a wrong stemmer."""
    found = [language_of(f"{title}\n{text}") for title, text in SETS[language].notes]
    right = NAMES.get(language, ENGLISH)
    assert set(found) <= {right, ENGLISH}
    assert found.count(right) >= 0.75 * len(found)


@pytest.mark.parametrize("language", sorted(SETS))
def test_questions_have_their_language_or_none(language: str) -> None:
    found = [language_of_query(question) for _, question, _ in SETS[language].questions]
    assert {*found} <= {NAMES.get(language), "vietnamese" if language == "vi" else None, None}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("De verzekering voor de auto is niet betaald, want het geld was nog niet op de rekening.", "dutch"),
        (
            "Jeg har ikke betalt regningen endnu, men det skal vi gøre efter ferien, og så er det nu.",
            "danish",
        ),
        (
            "Jeg har ikke betalt regningen ennå, men det skal vi gjøre etter ferien, og så er det nå.",
            "norwegian",
        ),
        (
            "Jag har inte betalat räkningen, men det ska vi göra efter semestern och sedan är det bra.",
            "swedish",
        ),
        (
            "Nous avons payé la facture, mais les notes ne sont pas encore dans le dossier du client.",
            "french",
        ),
        (
            "Non abbiamo pagato la fattura, ma il conto della banca è stato chiuso nel mese di maggio.",
            "italian",
        ),
        ("Não pagámos a fatura, mas os dados da conta já estão com o banco e são os mesmos.", "portuguese"),
        ("A számla még nincs kifizetve, mert ez csak most jött meg, és nem volt otthon senki.", "hungarian"),
        ("Lasku on vielä maksamatta, mutta se ei ole ongelma, koska he ovat jo saaneet tiedon.", "finnish"),
        ("இந்த கட்டணம் இன்னும் செலுத்தப்படவில்லை என்று வங்கி கூறியது", "tamil"),
        ("Faktura nie jest jeszcze zapłacona, ale to się zmieni, bo pieniądze są już na koncie.", ENGLISH),
        ("Рахунок ще не оплачено, але це не так важливо, бо гроші вже є і вони чекають.", ENGLISH),
        ("این صورتحساب هنوز پرداخت نشده است و باید تا پایان ماه به بانک گزارش شود که آن را", ENGLISH),
        ("for x in die: das = is_der(und); return es[x] if not con else la", ENGLISH),
        ("Anna Müller, Jürgen Groß, Björn Åkesson", ENGLISH),
        ("Kündigung", ENGLISH),
        ("def f(a, b):\n    return a + b\n" * 50, ENGLISH),
        ("The meeting notes say that the team will use it. Das ist gut.", ENGLISH),
        ("Das Treffen war gut, und wir haben alle Punkte besprochen. The API is ready.", "german"),
        ("\ue000\U000e0fff\u0378" * 100, ENGLISH),
        ("", ENGLISH),
        ("\u0301" * 500, ENGLISH),
    ],
)
def test_language_follows_script_letters_and_function_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_only_the_beginning_of_a_note_is_read() -> None:
    german = "Die Heizung ist kalt, weil das Ventil nicht schließt. "
    assert language_of(german * 4_000) == "german"
    assert language_of("x" * SAMPLE + german * 100) == ENGLISH


def test_full_width_and_decomposed_letters_show_a_language_too() -> None:
    assert (
        language_of("Ｄｉｅ Ｈｅｉｚｕｎｇ ｉｓｔ ｋａｌｔ， ｗｅｉｌ ｄａｓ Ｖｅｎｔｉｌ ｋｌｅｍｍｔ")
        == "german"
    )
    assert language_of("Bu da\u0306g\u0306 yolu c\u0327ok uzun ve biz daha yoldayız") == "turkish"


def test_word_may_be_in_the_languages_of_its_script() -> None:
    assert may_have("german", "haus")
    assert may_have("russian", "книга")
    assert not may_have("russian", "haus")
    assert not may_have("german", "книга")
    assert may_have("arabic", "كتاب")


@pytest.mark.parametrize("language", SNOWBALL)
def test_function_words_are_stop_words_of_snowball(language: str) -> None:
    """At most eight frequent words are missing there."""
    known = TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stopword(language)).build()
    assert len(known.analyze(" ".join(_STEMMED[language].split()))) <= 8
    assert len(BY_LANGUAGE[language]) >= 35


def test_setting_offers_each_language_that_has_a_stemmer() -> None:
    assert get_args(Language) == ("auto", *LANGUAGES)
    for language in LANGUAGES:
        assert Filter.stemmer(language)
