"""Simulated use: who is asked what, how it is asked again, and what agents cite."""

from __future__ import annotations

import random

import pytest

from bench.judged import Chunk, Collection, JudgedQuery
from bench.quality import distinct_layouts
from bench.rephrasing import content_words, rephrase
from bench.use import MISLED, Agents, plan_study

#: Two queries for each of 40 pages.
PAGES = [
    JudgedQuery(f"{page}-{n}", f"how to mend page {page}", "", {f"p{page}": 1})
    for page in range(40)
    for n in (0, 1)
]
#: Four documents a query, the next query sharing one of them.
CLASSIC = [
    JudgedQuery(str(number), "shock waves", "", {str(3 * number + step): 1 for step in range(4)})
    for number in range(60)
]


def documents(queries: list[JudgedQuery]) -> set[str]:
    return {doc for query in queries for doc in query.grades}


def test_half_of_the_pages_are_asked_about_and_their_other_queries_are_related() -> None:
    study = plan_study(PAGES)
    assert [len(group) for group in study.groups().values()] == [20, 20, 20, 40]
    visited = documents(list(study.asked))
    assert len(visited) == 20
    assert documents(list(study.related)) == visited
    assert not documents(list(study.unrelated)) & visited


def test_queries_with_many_documents_are_divided_by_query() -> None:
    study = plan_study(CLASSIC)
    visited = documents(list(study.asked))
    assert len(study.asked) == 30
    assert all(query.grades.keys() & visited for query in study.related)
    assert not documents(list(study.unrelated)) & visited
    assert len(study.related) + len(study.unrelated) == 30


def test_every_query_belongs_to_one_group_and_the_same_seed_makes_the_same_study() -> None:
    study = plan_study(PAGES)
    ids = [query.id for query in (*study.asked, *study.related, *study.unrelated)]
    assert sorted(ids) == sorted(query.id for query in PAGES)
    assert plan_study(PAGES) == study
    assert plan_study(PAGES, seed=8) != study


def test_a_need_in_other_words_keeps_seven_of_ten_content_words() -> None:
    question = "alpha bravo charlie delta echo foxtrot golf hotel india juliet"
    again = rephrase(question, random.Random(1))
    kept = set(question.split()) & set(again.split())
    assert len(kept) == 7
    assert [word for word in again.split() if word in kept] != [
        word for word in question.split() if word in kept
    ]
    assert rephrase(question, random.Random(1)) == again


def test_short_questions_can_be_rephrased_too() -> None:
    for question in ("backups", "what is it", ""):
        again = rephrase(question, random.Random(1))
        assert any(word in again for word in content_words(question) or [" "]), question


def test_agents_cite_relevant_notes_and_sometimes_a_wrong_one() -> None:
    rng, shown = random.Random(3), [str(number) for number in range(10)]
    answers = [Agents(citing=0.7, wrong=0.3).cite(shown, {"2", "5"}, rng) for _ in range(2000)]
    right = sum(len({"2", "5"} & set(cited)) for cited in answers) / 4000
    wrong = [len(set(cited) - {"2", "5"}) for cited in answers]
    assert right == pytest.approx(0.7, abs=0.03)
    assert sum(wrong) / 2000 == pytest.approx(0.3, abs=0.03)
    assert max(wrong) == 1


def test_misled_agents_cite_nothing_right() -> None:
    rng = random.Random(3)
    answers = [MISLED.cite(["1", "2"], {"1"}, rng) for _ in range(400)]
    assert {tuple(cited) for cited in answers} == {(), ("2",)}


def test_a_layout_that_makes_the_same_notes_is_measured_once() -> None:
    collection = Collection("one", (Chunk("1", "1", "a text"),), (JudgedQuery("q", "text", "q", {"1": 1}),))
    assert [layout for layout, _ in distinct_layouts(collection, ("passages", "pages", "titled"))] == [
        "passages"
    ]


def test_a_sample_keeps_the_queries_of_a_document_together() -> None:
    sample = Collection("pages", (), tuple(PAGES)).sample(20)
    assert len(sample.queries) == 20
    assert len(documents(list(sample.queries))) == 10
