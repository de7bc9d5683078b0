"""Compounds (long words that contain other words): detection, search and limits."""

from __future__ import annotations

from lithos.search.ranking.compounds import LONGEST_COMPOUND, MOST_FOUND, MOST_KNOWN, Compounds, long_words

GERMAN = "kraftfahrzeughaftpflichtversicherung"


def test_compound_is_found_by_any_of_its_parts() -> None:
    """behaviour 384"""
    compounds = Compounds()
    compounds.add([GERMAN, "transaction", "ziekenhuisverzekering"])
    for part in ("kraftfahrzeug", "haftpflicht", "haftpflichtversicherung", "versicherung", "versicherungen"):
        assert compounds.holding(part) == [GERMAN]
    assert compounds.holding("ziekenhuis") == ["ziekenhuisverzekering"]
    assert compounds.holding("action") == ["transaction"]


def test_short_parts_endings_and_whole_words_find_no_compounds() -> None:
    compounds = Compounds()
    compounds.add(long_words(["unauthorised", GERMAN, "short", "a1b2c3d4e5f6", "x" * (LONGEST_COMPOUND + 1)]))
    assert compounds.holding("authorised") == []  # `un` is not a word.
    assert compounds.holding("haft") == []
    assert compounds.holding(GERMAN) == []
    assert compounds.holding("a1b2c3") == compounds.holding("xxxxxx") == compounds.holding("") == []


def test_numbers_of_known_and_found_compounds_are_limited() -> None:
    compounds = Compounds()
    compounds.add(f"haftpflicht{chr(97 + i // 26) * 3}{chr(97 + i % 26) * 3}" for i in range(200))
    assert len(compounds.holding("haftpflicht")) == MOST_FOUND
    compounds.add(f"w{number:015}" for number in range(MOST_KNOWN + 10))
    assert len(compounds._all._known) == MOST_KNOWN
