"""Snippets: the passage of a note that answers a query (docs/spec/vault.md §4)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.kernel.values.errors import InvalidInput
from lithos.text.markdown import visible_text
from lithos.text.snippet import (
    Terms,
    find_passage,
    first_prose,
    mark_matches,
    plain_passage,
    truncate,
)
from lithos.text.snippet_bounds import MOST_REPLIES, REACH, WINDOW


def passage(content: str, query: str, **idf: float) -> str:
    return find_passage(visible_text(content), Terms.of(query, idf)).text


def test_passage_with_the_greatest_word_weight_is_shown() -> None:
    """behaviour 257"""
    content = "rare " + "a " * 300 + "common words stand together " + "b " * 300
    assert "together" in passage(content, "rare common words", rare=1.0, common=1.0, word=1.0)
    assert "rare" in passage(content, "rare common words", rare=9.0, common=1.0, word=1.0)
    assert find_passage(visible_text(content), Terms.of("rare common words", {})).share == pytest.approx(
        2 / 3, abs=0.07
    )


def test_first_of_equal_passages_is_cut_at_a_sentence_end() -> None:
    content = "filler " * 100 + "needle one. " + "filler " * 100 + "needle two. " + "filler " * 100
    shown = passage(content, "needle")
    assert "needle one" in shown
    assert set(shown.removeprefix("...").split()) == {"filler", "needle", "one."}
    assert shown.startswith("...filler")
    assert shown.endswith(" one.")
    assert passage(f"{'filler ' * 100}needle {'filler ' * 100}", "needle").endswith("filler...")
    assert len(shown) <= WINDOW + 6


def test_passage_begins_and_ends_with_a_sentence_if_possible() -> None:
    before, behind = "Some words of no use stand here. " * 9, "Others follow it in rows. " * 20
    shown = passage(f"{before}The needle is in the hay. {behind}", "needle")
    assert shown.startswith("...Some words")
    assert shown.endswith("in rows.")
    assert passage("%% needle one %%\n\nThe needle two.\n\n<!-- needle -->\n", "needle") == "The needle two."


def test_function_words_do_not_influence_the_choice_of_passage() -> None:
    content = "How do I do what you do? " + "- " * 300 + "A raft elects its leader by votes."
    assert "votes" in passage(content, "how does raft elect a leader?")
    assert passage("what is it", "what is it") == "what is it"


def test_passage_is_empty_without_a_match() -> None:
    assert find_passage("body", Terms.of("absent", {})).text == ""
    assert find_passage("body", Terms.of("", {})).text == ""
    assert find_passage("", Terms.of("body", {})).text == ""


def test_markup_title_frontmatter_and_comments_are_never_shown() -> None:
    """behaviour 257"""
    content = """# needle title

[![needle badge](https://img.org/needle.svg)](https://ci.org/needle) ![needle alt](needle.png)
<img src="needle.gif" alt="x"> ![[needle.pdf]]
%% needle comment
of two lines %% <!-- needle too -->
See [the guide](https://e.org/needle) and [[notes/needle-file|this note]], or [[Needle]].

The needle is in the haystack.
"""
    shown = passage(content, "needle")
    assert shown.startswith("See the guide and this note, or Needle.")
    assert "The needle is in the haystack." in shown
    for hidden in ("title", "badge", "svg", "alt", "comment", "too", "e.org", "png", "gif", "pdf", "-file"):
        assert hidden not in shown


def test_unreadable_frontmatter_is_not_shown() -> None:
    assert visible_text("---\ntitle: [broken\n---\nBody text.\n") == "Body text.\n"
    assert visible_text("---\nno end, so a line\n") == "---\nno end, so a line\n"


def test_text_resembling_markup_is_kept() -> None:
    for text in ("a < b and b > c", "100 %% sure", "list[int]", "- [ ] task", "see [1] there", "x <!-- open"):
        assert visible_text(text) == text


def test_other_spellings_match_and_the_original_spelling_is_shown() -> None:
    assert "Cafe\u0301" in passage("ﬁ " * 500 + " Cafe\u0301 " + "e\u0301 " * 300, "CAFÉ")


def test_words_match_at_their_start_and_unsegmented_scripts_match_anywhere() -> None:
    assert "art_work" in passage("the start " + "- " * 200 + "art_work" + " -" * 200, "art")
    chinese = "。" * 400 + "中文搜索引擎" + "。" * 400
    assert "搜索" in passage(chinese, "搜索")
    assert "搜索" in passage(chinese, "全文搜索")


def test_words_with_combining_vowels_match_as_a_whole() -> None:
    assert "हिन्दी" in passage(". " * 300 + " हिन्दी " + ". " * 300, "हिन्दी")


def test_snippet_finds_a_word_that_matches_only_by_stem() -> None:
    for query, text in (
        ("running", "runs"),
        ("indexes", "indexing"),
        ("cities", "city"),
        ("Linked", "links"),
    ):
        assert f" {text} " in passage(". " * 300 + f" {text} " + ". " * 300, query)


def test_match_beyond_first_piece_of_a_long_note_is_found() -> None:
    content = "lorem ipsum dolor sit amet\n" * 18_000 + "the needle\n" + "lorem ipsum\n" * 1_000
    shown = passage(content, "needle")
    assert "the needle" in shown
    assert len(shown) < 400


def test_chunk_is_shown_without_title_and_markup() -> None:
    assert plain_passage("Title\n\nSome [text](https://e.org).", "Title") == "Some text."
    assert plain_passage("Title\n\n## Only a heading", "Title") == ""
    assert len(plain_passage("word " * 500)) < 1_010


def test_passage_ends_when_replies_reach_their_limit() -> None:
    line = "字" * 198 + "？"
    assert first_prose("字" * 299 + "？" + line * 2 + "？" + "字" * 50) == "字" * 299 + "？" + line * 2 + "？"


def test_first_prose_is_neither_a_heading_nor_a_badge() -> None:
    content = "# Title\n\n[![b](i.svg)](x)\n\n## Heading\n\nThe first sentence that says something at all.\n"
    assert first_prose(visible_text(content)).startswith("The first sentence")
    assert first_prose(visible_text("# Title")) == first_prose("") == ""
    assert first_prose("short") == "short"


@given(st.text(max_size=400), st.text(max_size=12))
@example("a [b](c) d <b>e</b>", "e")
def test_snippet_text_is_part_of_the_note(content: str, query: str) -> None:
    shown = passage(content, query)
    assert len(shown) <= WINDOW + REACH + MOST_REPLIES + max(6, len(query))
    kept = set(visible_text(content).split())
    assert all(any(word.strip(".") in whole for whole in kept) for word in shown.split() if word.strip("."))


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Running runs, ran; a runner.", "run", ["Running", "runs", "runner"]),
        ("The Zébra and a zebra\u0301 crossing", "zebra", ["Zébra", "zebra\u0301"]),
        ("ﬁne print, defined", "fine", ["ﬁne"]),
        ("東京都の本", "東京都", ["東京都"]),
        ("nothing here", "zebra", []),
        ("", "zebra", []),
        ("the the", "", []),
    ],
)
def test_matches_are_marked_as_whole_words(text: str, query: str, marked: list[str]) -> None:
    parts = mark_matches(text, Terms.of(query, {}))
    assert [part for part, is_match in parts if is_match] == marked
    assert "".join(part for part, _ in parts) == text


@given(st.text(max_size=60), st.text(max_size=20))
@example("İı\u0345ß ﬁ", "i ss fi")
def test_marking_neither_removes_nor_adds_text(text: str, query: str) -> None:
    parts = mark_matches(text, Terms.of(query, {}))
    assert "".join(part for part, _ in parts) == text
    assert all(part for part, _ in parts)


@pytest.mark.parametrize("limit", [None, 0, 5, 6])
def test_content_within_the_limit_is_unchanged(limit: int | None) -> None:
    """behaviour 45."""
    assert truncate("short", limit) == ("short", False)


def test_negative_limit_is_refused() -> None:
    with pytest.raises(InvalidInput):
        truncate("short", -1)


@pytest.mark.parametrize(
    ("content", "limit", "result"),
    [
        ("first part here\n\nsecond part", 25, "first part here"),
        ("first part here\n \nsecond part", 25, "first part here"),
        ("a\n\nOne two. Three four five", 20, "a\n\nOne two."),
        ("你好。再见。" + "字" * 20, 12, "你好。再见。"),
        ("Version 1.5 of the tool is out", 20, "Version 1.5 of..."),
        ("A. rather long words follow", 17, "A. rather..."),
        ("abcdefghijkl", 8, "abcde..."),
        ("abcdefghijkl", 4, "a..."),
        ("abcdefghijkl", 3, "abc"),
        ("abcdefghijkl", 1, "a"),
    ],
)
def test_content_is_cut_at_the_best_position(content: str, limit: int, result: str) -> None:
    """behaviour 45: in the second half, the cut is at a blank line, or else at a sentence end.

    Without either, the text is cut at a space, or else anywhere.
    """
    assert truncate(content, limit) == (result, True)


@given(st.text(alphabet="ab .!?。\n", max_size=60), st.integers(1, 70))
def test_cut_content_never_exceeds_the_limit(content: str, limit: int) -> None:
    result, cut = truncate(content, limit)
    assert len(result) <= limit
    assert cut == (len(content) > limit)
    assert content.startswith(result.removesuffix("..."))


FILLER = "The bus came late and it rained all day long. "


def test_snippet_has_whole_sentences_around_the_best_match() -> None:
    """behaviour 416"""
    long = "On the way home, when the shops had closed and nobody was about, Tom found the needle at last. "
    shown = passage(FILLER * 9 + long + FILLER * 9, "needle")
    assert long.strip() in shown
    assert all(
        f"{each}." in FILLER + long for each in shown.removeprefix("...").replace(". ", ".").split(".")[:-1]
    )
    assert shown.endswith("long.")


def test_sentence_longer_than_the_limit_is_cut_at_a_word() -> None:
    """behaviour 416"""
    shown = passage("more words " * 90 + "needle " + "other words " * 90 + ".", "needle")
    assert "needle" in shown
    assert set(shown.strip(".").split()) == {"more", "words", "needle", "other"}
    assert shown.startswith("...")
    assert shown.endswith("...")
    assert len(shown) <= WINDOW + 6


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Ann: Where is the needle?", "Tom: In the hay."),
        ("**Where is the needle?**", "In the hay."),
        ("针在哪里 needle？", "在干草里。"),
        ("Places of the needle:", "* hay\n* straw"),
        ("## Needle", "In the hay."),
    ],
)
def test_snippet_continues_to_the_reply(asked: str, reply: str) -> None:
    """behaviour 304"""
    for before, behind in (("", ""), (FILLER * 9, FILLER * 9), (FILLER * 9, ""), ("", FILLER * 9)):
        shown = passage(f"{before}\n\n{asked}\n\n{reply}\n\n{behind}", "needle")
        assert asked in shown
        assert reply in shown


def test_snippet_ends_before_a_question_after_the_match() -> None:
    """behaviour 304: if question and reply are short, the snippet ends after the reply instead."""
    shown = passage(
        FILLER * 9 + "The needle is here. " + FILLER * 3 + "Why is that?\n\n" + FILLER * 9, "needle"
    )
    assert "The needle is here." in shown
    assert not shown.endswith("?")


def test_snippet_of_only_questions_has_a_limit() -> None:
    shown = passage("\n\n".join(f"Question {n} of the needle, and of more?" for n in range(99)), "needle")
    assert len(shown) <= WINDOW + REACH + MOST_REPLIES


def test_long_reply_is_cut_after_a_sentence() -> None:
    """behaviour 304"""
    question = "Ann: " + "and so on and on and on " * 14 + "where is the needle?"
    shown = passage(f"{FILLER * 9}\n\n{question}\n\nTom: It is in the hay. {FILLER * 20}", "needle")
    assert "where is the needle?\nTom: It is in the hay." in shown
    assert shown.endswith("long.")


def test_abbreviations_initials_and_wrapped_lines_do_not_end_sentences() -> None:
    """behaviour 416"""
    text = "We asked Dr. Ray and J. R. Moss about tools, e.g. the needle, and\nthen the thread. "
    for shown in (
        passage(FILLER * 9 + text + FILLER * 9, word) for word in ("needle", "Ray", "thread", "Moss")
    ):
        assert text.strip() in shown


def test_code_and_tables_are_shown_in_whole_lines() -> None:
    """behaviour 416"""
    code = [f"    value_{n} = call(a.b, c)  # So it is. And then more" for n in range(40)]
    rows = [f"| row {n} | needle {n} is e.g. one. More of it | so |" for n in range(40)]
    for lines, word in ((code, "value_20"), (rows, "20")):
        text = "```python\n" + "\n".join(lines) + "\n```\n" if lines is code else "\n".join(lines)
        shown = passage(text, word).removeprefix("...").removesuffix("...")
        assert word in shown
        assert all(line.strip() in [each.strip() for each in lines] for line in shown.splitlines())


def test_sentences_in_scripts_without_spaces_are_shown_whole() -> None:
    """behaviour 416"""
    sentence = "今日は針を干し草の中で見つけました。"
    shown = passage("雨が降って、バスが遅れた。" * 40 + sentence + "雨が降って、バスが遅れた。" * 40, "針")
    assert sentence in shown
    assert shown.removeprefix("...").startswith("雨")
    assert shown.endswith("。")
