from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lithos.text.chunk import Chunk, chunk_text

PROSE = st.lists(
    st.sampled_from(["word ", "Ende. ", "你好。", "\n", "\n\n", "x" * 40, "# H\n\n", "```\n", " ", "!? "]),
    max_size=60,
).map("".join)


def texts(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def test_empty_text_has_no_chunks() -> None:
    assert chunk_text("", "") == []
    assert chunk_text("  ", "\n \n") == []


def test_short_text_is_one_chunk() -> None:
    assert chunk_text("T", "body") == [Chunk(0, "T\n\nbody", "T")]
    assert len(chunk_text("T", "b" * 497)) == 1


def test_paragraphs_are_joined_until_the_size_is_reached() -> None:
    content = "\n\n".join(letter * 200 for letter in "abcd")
    assert texts(chunk_text("T", content)) == [
        "T\n\n" + "a" * 200 + "\n\n" + "b" * 200,
        "c" * 200 + "\n\n" + "d" * 200,
    ]


def test_paragraph_between_size_and_maximum_is_one_chunk() -> None:
    assert texts(chunk_text("T", "a" * 900 + "\n\nshort")) == ["T", "a" * 900, "short"]


def test_paragraph_over_the_maximum_is_split_at_sentence_ends() -> None:
    sentence = "s" * 298 + "."
    chunks = texts(chunk_text("T", " ".join([sentence] * 5) + "\n\nnext"))
    assert chunks == ["T", *[sentence] * 5, "next"]
    assert texts(chunk_text("", "。".join("字" * 400 for _ in range(4)) + "。")) == ["字" * 400 + "。"] * 4


def test_sentence_over_the_maximum_is_split_at_words_then_characters() -> None:
    assert texts(chunk_text("", "word " * 300)) == [("word " * 100).rstrip()] * 3
    assert texts(chunk_text("", "x" * 1200)) == ["x" * 500, "x" * 500, "x" * 200]


def test_title_and_headings_are_embedded_with_chunks_but_not_shown() -> None:
    """behaviour 212."""
    parts = ["# One", "a" * 490, "## Two ##", "b" * 498, "# Three", "c" * 498]
    chunks = chunk_text("My\nTitle", "\n\n".join(parts))
    found = [(chunk.text[0], chunk.context) for chunk in chunks if chunk.text[0] in "abc"]
    assert found == [("a", "My Title - One"), ("b", "My Title - One > Two"), ("c", "My Title - Three")]
    b = next(chunk for chunk in chunks if chunk.text[0] == "b")
    assert b.embedded == "My Title - One > Two\n" + "b" * 498


def test_heading_on_the_first_line_is_not_its_own_context() -> None:
    content = "# Top\n\n## Left\n\n" + "a" * 490 + "\n\n## Right\n" + "b" * 480
    assert [chunk.context for chunk in chunk_text("T", content)] == ["T", "T - Top > Left", "T - Top"]


def test_lines_in_code_fences_do_not_count_as_headings() -> None:
    content = "# Real\n\n```sh\n# comment\n~~~\n````\n## still `code`\n```\n\n" + "a" * 500
    chunks = chunk_text("T", content)
    assert chunks[-1].context == "T - Real > still `code`"
    unclosed = "# Real\n\n~~~\n# no\n```\n# no\n\n" + "a" * 500
    assert chunk_text("T", unclosed)[-1].context == "T - Real"


def test_context_line_has_at_most_200_characters() -> None:
    chunks = chunk_text("t" * 150, "# " + "h" * 150 + "\n\n" + "a" * 500)
    assert chunks[-1].context == ("t" * 150 + " - " + "h" * 150)[:200]
    assert chunk_text("", "# Only\n\n" + "a" * 600)[-1].context == "Only"
    assert chunk_text("", "a")[0].embedded == "a"


@given(st.text(max_size=5), PROSE, st.integers(10, 60), st.integers(10, 120))
def test_chunks_are_limited_slices_that_lose_only_white_space(
    title: str, content: str, size: int, most: int
) -> None:
    text = f"{title}\n\n{content}".strip()
    chunks = chunk_text(title, content, chunk_size=size, chunk_max=most)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    position = 0
    for chunk in chunks:
        assert 0 < len(chunk.text) <= max(most, size if len(text) <= size else 0)
        start = text.index(chunk.text, position)
        assert not text[position:start].strip()
        position = start + len(chunk.text)
    assert not text[position:].strip()


@given(
    st.lists(st.sampled_from(["a", "b" * 9, " ", "\n", "\u3000", "\x1c  "]), max_size=60).map("".join),
    st.integers(3, 30),
    st.integers(3, 40),
)
def test_packing_many_words_at_once_equals_packing_word_by_word(content: str, size: int, most: int) -> None:
    """In a text without sentences or paragraphs, a chunk has as many words as fit.

    A longer word gets a chunk of its own, or is cut.
    """
    text = content.strip()
    expected: list[str] = []
    begin = 0
    for match in re.finditer(r"\S+", text) if len(text) > max(size, most) else ():
        word = match[0]
        if len(word) > most:
            cut = min(size, most)
            expected += [word[at : at + cut] for at in range(0, len(word), cut)]
            expected.append("")
        elif expected and expected[-1] and match.end() - begin <= min(size, most):
            expected[-1] = text[begin : match.end()]
        else:
            begin = match.start()
            expected.append(word)
    if expected and "\n" not in text:
        chunks = chunk_text("", content, chunk_size=size, chunk_max=most)
        assert texts(chunks) == [each for each in expected if each]
