"""Results of full-text search: query syntax, scripts, filters and order."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters
from lithos.text.dates import OwnDate
from lithos.text.query import Boolean, Occur, Phrase, Word, parse_query, plain_words
from tests.kernel.databases.fulltext_entries import ANYTHING, entry, found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FulltextIndex]:
    opened = FulltextIndex.open(tmp_path_factory.mktemp("index") / ".tantivy")
    yield opened
    opened.close()


@pytest.fixture
def index(empty: FulltextIndex) -> FulltextIndex:
    empty.apply([], list(empty.stamps()))
    return empty


def plain(index: FulltextIndex, text: str) -> list[int]:
    tree = plain_words(text)
    return [serial for serial, _ in index.search(tree, 50, ANYTHING)] if tree else []


@pytest.fixture
def rocks(index: FulltextIndex) -> FulltextIndex:
    index.apply(
        [
            entry(1, "Granite is an igneous rock.", title="Granite", entities=("Mont Blanc",)),
            entry(2, "Basalt is a rock; granite is another.", title="Basalt", headings="Columns"),
            entry(3, "Limestone cliffs, node_modules and rocks running.", title="Sediment"),
        ],
        [],
    )
    return index


SYNTAX = {
    "granite": [1, 2],
    "granite limestone": [1, 2, 3],
    "+granite +basalt": [2],
    "granite -basalt": [1],
    "granite AND basalt": [2],
    "granite AND NOT basalt": [1],
    "(limestone OR basalt) AND granite": [2],
    "-granite": [3],
    "+rock -(granite)": [3],
    '"igneous rock"': [1],
    '"rock igneous"': [],
    "title:granite": [1],
    "body:limestone": [3],
    "title:limestone": [],
    "entities:blanc": [1],
    "entities:granite": [],
    "blanc": [1],
    "columns": [2],
    "runs": [3],
    "+node-modules +limestone": [3],
    "+modules-node +limestone": [],
    "GRANITE AND IGNEOUS": [1],
    "+granite +!!!": [1, 2],
    "!!!": [],
    "!!! -granite": [],
    "absent": [],
}


def test_fulltext_query_syntax_finds_the_expected_notes(rocks: FulltextIndex) -> None:
    assert {text: sorted(found(rocks, text)) for text in SYNTAX} == SYNTAX


def test_scores_are_positive_and_titles_score_above_bodies(rocks: FulltextIndex) -> None:
    tree = parse_query("granite")
    assert tree is not None
    hits = rocks.search(tree, 10, ANYTHING)
    assert [serial for serial, _ in hits] == [1, 2]
    assert hits[0][1] > hits[1][1] > 0


def test_title_word_counts_slightly_more_than_text_word(index: FulltextIndex) -> None:
    """docs/spec/search.md §1: a chance match in a title must not displace a note that is an answer."""
    index.apply(
        [
            entry(1, "zircon sand here", title="Beach"),
            entry(2, "beach sand here", title="Zircon"),
            entry(3, "On a beach, sand is washed until garnet and zircon are left.", title="Placer"),
            *[entry(number, "We know how to polish granite.", title="Other") for number in range(4, 40)],
        ],
        [],
    )
    assert found(index, "zircon") == [2, 1, 3]
    assert found(index, "garnet zircon") == [3, 2, 1]


def test_function_words_have_little_weight_but_are_found(index: FulltextIndex) -> None:
    index.apply(
        [
            entry(1, "How and when do we know that it is nothing?", title="Hamlet"),
            entry(
                2, "Cheese is kept in a cellar, and turned, and washed with brine every week.", title="Rind"
            ),
            *[entry(number, "Cheese and bread.", title="Lunch") for number in range(3, 9)],
        ],
        [],
    )
    assert plain(index, "when do we wash the cheese")[0] == 2
    assert plain(index, "how") == [1]
    assert found(index, '"when do we"') == found(index, "+nothing +how") == [1]


def test_phrase_does_not_span_title_and_text(index: FulltextIndex) -> None:
    index.apply([entry(1, "basalt columns", title="Granite", entities=("Lava field", "Dyke"))], [])
    assert found(index, '"basalt columns"') == found(index, '"lava field"') == [1]
    assert found(index, '"granite basalt"') == found(index, '"field dyke"') == []
    assert found(index, '"columns lava"') == found(index, "body:granite") == found(index, "body:lava") == []


def test_ties_are_ordered_by_serial_at_every_limit(index: FulltextIndex) -> None:
    """docs/spec/search.md §4."""
    for serial in (9, 3, 7, 1, 5):
        index.apply([entry(serial, "granite", title="Same")], [])
    word = Word(None, "granite")
    for limit in range(1, 7):
        assert [s for s, _ in index.search(word, limit, ANYTHING)] == [1, 3, 5, 7, 9][:limit]
    assert index.search(word, 0, ANYTHING) == []
    assert [s for s, _ in index.search_all(word, ANYTHING)] == [1, 3, 5, 7, 9]


def test_ties_of_several_words_are_ordered_by_serial_across_segments(index: FulltextIndex) -> None:
    """The order must not depend on the order in which the engine adds the scores of the words."""
    for start in (200, 1, 100):
        index.apply(
            [
                entry(serial, "granite how basalt the schist " * (1 + serial % 3), title="Basalt rocks")
                for serial in range(start, start + 90)
            ],
            [],
        )
    tree = plain_words("how is the schist beside basalt granite rocks")
    assert tree is not None
    everything = index.search(tree, 500, ANYTHING)
    assert len({score for _, score in everything}) == 3
    assert everything == sorted(everything, key=lambda hit: (-hit[1], hit[0]))
    for limit in (1, 40, 90, 91, 200):
        assert index.search(tree, limit, ANYTHING) == everything[:limit]


def test_search_of_an_empty_index_finds_nothing(index: FulltextIndex) -> None:
    assert index.search_all(Word(None, "granite"), ANYTHING) == []
    assert index.stamps() == {}


SCRIPTS = {
    "Chinese": "知识库服务器保存许多笔记并且可以搜索",
    "Japanese": "知識サーバーはノートを検索できます",
    "Korean": "지식서버는메모를검색할수있습니다",
    "Thai": "เซิร์ฟเวอร์ความรู้ค้นหาบันทึกได้",
    "Lao": "ເຊີບເວີຄວາມຮູ້ຄົ້ນຫາບັນທຶກ",
    "Khmer": "ម៉ាស៊ីនបម្រើចំណេះដឹងស្វែងរក",
    "Myanmar": "အသိပညာဆာဗာမှတ်စုရှာဖွေခြင်း",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_substring_of_two_characters_is_found(index: FulltextIndex, script: str) -> None:
    """behaviour 180"""
    text = SCRIPTS[script]
    index.apply([entry(1, f"An English start {text} and an end.", title="x"), entry(2, "other")], [])
    for start in range(len(text) - 1):
        part = text[start : start + 2]
        assert plain(index, part) == [1], part
        assert found(index, f'"{part}"') == [1], part


@given(data=st.data())
def test_phrases_of_unsegmented_script_match_exactly_their_substrings(
    empty: FulltextIndex, data: st.DataObject
) -> None:
    """docs/spec/search.md §1."""
    text = "東京都京東東京京都"
    if empty.stamps() != {424242: 1}:
        empty.apply([entry(424242, f"go{text}stop", title="x", stamp=1)], list(empty.stamps()))
    part = data.draw(st.text("東京都", min_size=1, max_size=5))
    expected = [424242] if part in text else []
    assert found(empty, f'"{part}"') == expected
    assert [s for s, _ in empty.search_all(Boolean(((Occur.MUST, Word(None, part)),)), ANYTHING)] == expected


def test_ranked_word_of_unsegmented_script_matches_by_character_pairs(index: FulltextIndex) -> None:
    index.apply([entry(1, "東京都"), entry(2, "東の京の都"), entry(3, "京都")], [])
    assert found(index, "東京都") == [1, 3]
    assert sorted(found(index, "都")) == [1, 2, 3]


def test_word_in_mixed_scripts_is_found_by_each_part(index: FulltextIndex) -> None:
    index.apply([entry(1, "Pythonの入門"), entry(2, "入門書")], [])
    assert plain(index, "python") == [1]
    assert sorted(plain(index, "python入門")) == [1, 2]
    assert found(index, '"pythonの"') == [1]


def test_search_ignores_accents_in_query_and_text(index: FulltextIndex) -> None:
    """behaviour 181"""
    index.apply([entry(1, "un café"), entry(2, "a cafe"), entry(3, "cafe\u0301 decomposed")], [])
    for spelling in ("cafe", "café", "CAFÉ", "cafe\u0301"):
        assert sorted(plain(index, spelling)) == [1, 2, 3]


def test_every_part_of_a_one_megabyte_note_is_found(index: FulltextIndex) -> None:
    """behaviour 182"""
    filler = "lorem ipsum dolor sit amet " * 1200
    parts = [f"marker{'abcdefghijklmnopqrstuvwxyzabcd'[n]}x{n}z {filler}" for n in range(30)]
    body = "".join(parts) + "verylast"
    assert len(body) > 970_000
    index.apply([entry(1, body)], [])
    for part in parts:
        assert found(index, part.split()[0]) == [1]
    assert found(index, "verylast") == [1]
    assert found(index, '"amet verylast"') == [1]


@pytest.mark.parametrize("length", [199, 200, 201, 400, 401, 70_000])
def test_word_of_any_length_is_found(index: FulltextIndex, length: int) -> None:
    """behaviour 182"""
    word = ("abcdefghij" * (length // 10 + 1))[:length]
    index.apply([entry(1, f"before {word} after"), entry(2, f"before {word[:-1]}Q after")], [])
    assert 1 in plain(index, word)
    assert found(index, f'"before {word} after"') == [1]
    assert sorted(found(index, "+before +after")) == [1, 2]


@pytest.fixture
def filed(index: FulltextIndex) -> FulltextIndex:
    index.apply(
        [
            entry(
                1,
                "granite",
                tags=("a", "b: c d"),
                author="ana",
                path="p/x (1)/n.md",
                entities=("Mont Blanc",),
            ),
            entry(2, "granite", tags=("a",), author="ana OR bob", path="p/y.md", entities=("Mont", "Ünï*")),
            entry(3, "granite", tags=("Ä", "日本 語"), author="*", path="q/日本/z.md", entities=()),
            entry(4, "basalt", tags=("a", "b: c d"), author="bob", path="q.md"),
        ],
        [],
    )
    return index


#: Behaviours 54 (all tags are required, each as a whole), 55 (the author is literal), 56 (a prefix is plain
#: text, filters combine) and 67.
FILTERS: list[tuple[Filters, list[int]]] = [
    (Filters(), [1, 2, 3]),
    (Filters(tags=("a",)), [1, 2]),
    (Filters(tags=("b: c d",)), [1]),
    (Filters(tags=("a", "b: c d")), [1]),
    (Filters(tags=("a", "日本 語")), []),
    (Filters(tags=("日本 語",)), [3]),
    (Filters(tags=("日本",)), []),
    (Filters(tags=("b",)), []),
    (Filters(author="ana"), [1]),
    (Filters(author="ana OR bob"), [2]),
    (Filters(author="*"), [3]),
    *((Filters(author=author), []) for author in ("Ana", "an", "bob", "")),
    (Filters(path_prefix="p/"), [1, 2]),
    (Filters(path_prefix="q"), [3]),
    (Filters(path_prefix="q/日"), [3]),
    (Filters(path_prefix=""), [1, 2, 3]),
    *((Filters(path_prefix=prefix), [1]) for prefix in ("p/x (", "p/x", "p/x (1)/n.md")),
    *((Filters(path_prefix=prefix), []) for prefix in ("Q", "p.", "p/x (1)/n.mdx", "p" * 3000)),
    (Filters(path_prefix="p/", author="ana OR bob"), [2]),
    (Filters(path_prefix="q", author="ana"), []),
    (Filters(entities=("Mont Blanc",)), [1]),
    (Filters(entities=("Mont",)), [2]),
    (Filters(entities=("Mont", "Ünï*")), [2]),
    (Filters(entities=("mont",)), []),
    (Filters(entities=("Mont", "x")), []),
]


def test_filter_values_are_compared_literally(filed: FulltextIndex) -> None:
    """behaviours 54, 55, 56, 67"""
    assert [(each, sorted(found(filed, "granite", each))) for each, _ in FILTERS] == FILTERS


def test_search_filters_do_not_change_scores(filed: FulltextIndex) -> None:
    word = Word(None, "granite")
    without = dict(filed.search_all(word, ANYTHING))
    within = dict(filed.search_all(word, Filters(tags=("a",), path_prefix="p/")))
    assert within == {serial: without[serial] for serial in (1, 2)}


def test_fulltext_filter_applies_before_the_limit(index: FulltextIndex) -> None:
    """docs/spec/search.md §4."""
    index.apply([entry(n, "granite", tags=("rare",) if n == 300 else ()) for n in range(301)], [])
    assert index.search(Word(None, "granite"), 1, Filters(tags=("rare",)))[0][0] == 300


@given(text=st.text(max_size=40), field=st.sampled_from([None, "title", "body", "entities"]))
def test_search_accepts_any_query_text_without_error(
    empty: FulltextIndex, text: str, field: str | None
) -> None:
    """behaviour 57"""
    for node in (Word(field, text), Phrase(field, text), Boolean(((Occur.MUST_NOT, Word(field, text)),))):
        assert empty.search(node, 5, Filters(author=text, path_prefix=text, tags=(text,))) == []


WORDS = ("granite", "basalt", "slate", "marble", "chalk", "flint")


def test_boosts_slops_and_prefixes_affect_results_and_order(index: FulltextIndex) -> None:
    """behaviour 379"""
    texts = ("flour water", "water bread", "flour and very fine water", "water flour", "floury 3")
    index.apply([entry(number, text) for number, text in enumerate(texts, 1)], [])
    assert found(index, "flour^9 bread")[:2] == [1, 4]
    assert found(index, "flour bread^9")[0] == 2
    assert found(index, '"flour water"^9 bread')[0] == 1
    assert found(index, "(flour rye)^9 bread")[0] in (1, 4)
    assert found(index, '"flour water"') == [1]
    assert sorted(found(index, '"flour water"~2')) == [1, 4]
    assert sorted(found(index, '"flour water"~3')) == [1, 3, 4]
    assert sorted(found(index, "flou*")) == [1, 3, 4, 5]
    assert found(index, "+flou* -water") == [5]
    assert 5 not in found(index, "water^3")


def test_compounds_found_by_a_part_rank_below_whole_words(index: FulltextIndex) -> None:
    """behaviour 384: deleted compounds are not found. A required word does not match compounds."""
    texts = (
        "Die Kraftfahrzeughaftpflichtversicherung gilt.",
        "Die Haftpflicht gilt.",
        "Haftpflichtversicherungen und Tomaten.",
        "interconnection of a connection",
    )
    index.apply([entry(number, text, passages=(text,)) for number, text in enumerate(texts, 1)], [])
    assert found(index, "Haftpflicht")[0] == 2
    assert sorted(found(index, "Haftpflicht")) == [1, 2, 3]
    assert sorted(found(index, "body:Versicherung")) == [1, 3]
    assert found(index, "Kraftfahrzeug") == [1]
    assert found(index, "+Haftpflicht gilt") == [2]
    assert found(index, '"Kraftfahrzeug"') == []
    index.apply([], [1])
    assert found(index, "Kraftfahrzeug") == []


@pytest.fixture
def diary(index: FulltextIndex) -> FulltextIndex:
    days = {
        1: OwnDate(2023, 5, 8),
        2: OwnDate(2023, 5),
        3: OwnDate(2023, 6, 8),
        4: OwnDate(2022, 5, 8),
        5: None,
    }
    index.apply([entry(serial, "Walked the dog.", own=own) for serial, own in days.items()], [])
    return index


@pytest.mark.parametrize(
    ("query", "serials"),
    [
        ("2023-05-08", [1, 2]),
        ("8 May 2023", [1, 2]),
        ("May 8, 2023", [1, 2]),
        ("May 2023", [1, 2]),
        ("2023", [1, 2, 3]),
        ("in May", [1, 2, 4]),
        ("May 8", [1, 4, 2]),
        ('"8 May 2023"', [1]),
        ("+2023-05-08 +walked", [1]),
        ("+May +2022", [4]),
        ("walked -2023", [4, 5]),
        ("June 2021", []),
        ("title:2023", []),
        ('"in May 2023"', []),
        ("dogs in 2022", [4, 1, 2, 3, 5]),
    ],
)
def test_notes_are_found_by_their_own_date(diary: FulltextIndex, query: str, serials: list[int]) -> None:
    assert found(diary, query) == serials


def test_own_dates_do_not_change_scores_of_timeless_queries(index: FulltextIndex) -> None:
    node = plain_words("who walked the dog 8 times, 23 miles?")
    assert node is not None
    texts = ["Walked the dog.", "Walked 8 miles in May 2023.", "A dog."]
    index.apply([entry(serial, text) for serial, text in enumerate(texts)], [])
    without = index.search(node, 10, ANYTHING)
    index.apply([entry(serial, text, own=OwnDate(2023, 5, 8)) for serial, text in enumerate(texts)], [])
    assert index.search(node, 10, ANYTHING) == without


def test_own_date_has_full_weight_when_few_notes_have_dates(index: FulltextIndex) -> None:
    index.apply([entry(serial, "Walked the dog.") for serial in range(200)], [])
    index.apply([entry(7, "Walked the dog.", own=OwnDate(2023, 5, 8))], [])
    node = plain_words("May 2023")
    assert node is not None
    ((serial, score),) = index.search(node, 10, ANYTHING)
    assert serial == 7
    assert score == pytest.approx(1.5 * math.log(1 + 199.5 / 1.5), rel=0.02)
