"""Word differences: recognition of changed words in changed lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithos.text.outline.word_differences import MOST_CHARACTERS, changed_words


def marked(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines with brackets around the changed parts."""
    sides = []
    for lines, found in zip((old, new), changed_words(old, new), strict=True):
        shown = []
        for line, spans in zip(lines, found, strict=True):
            for start, end in reversed(spans):
                line = f"{line[:start]}[{line[start:end]}]{line[end:]}"  # noqa: PLW2901 - grows from the end
            shown.append(line)
        sides.append(shown)
    return sides[0], sides[1]


def test_words_missing_from_the_compared_lines_are_marked() -> None:
    assert marked(["The quick brown fox jumps\n"], ["The quick red fox jumps over\n"]) == (
        ["The quick [brown] fox jumps\n"],
        ["The quick [red] fox jumps [over]\n"],
    )


def test_adjacent_changed_words_form_one_mark() -> None:
    old, new = "It takes three seconds in all cases.\n", "It takes ten long minutes in all cases.\n"
    assert marked([old], [new]) == (
        ["It takes [three seconds] in all cases.\n"],
        ["It takes [ten long minutes] in all cases.\n"],
    )


def test_lines_are_matched_regardless_of_position() -> None:
    """An inserted line does not change which lines are compared with each other."""
    old = ["one is the first of all\n", "two comes after that one\n"]
    new = [
        "zero stands before everything else here\n",
        "one is the very first of all\n",
        "two comes after that one\n",
    ]
    assert marked(old, new) == (
        old,
        [
            "zero stands before everything else here\n",
            "one is the [very] first of all\n",
            "two comes after that one\n",
        ],
    )


def test_mostly_changed_line_is_marked_as_a_whole() -> None:
    old, new = ["Alpha beta gamma delta\n"], ["Some quite different words, delta\n"]
    assert marked(old, new) == (old, new)
    assert marked([], ["new\n"]) == ([], ["new\n"])


def test_changed_spaces_are_marked() -> None:
    assert marked(["a b  c d e f\n"], ["a b c d e f\n"])[0] == ["a b[  ]c d e f\n"]
    assert marked(["well said .\n"], ["well said.\n"]) == (["well said[ .]\n"], ["well said[.]\n"])
    assert marked([" word and word\n"], ["word and word\n"]) == (["[ ]word and word\n"], ["word and word\n"])
    assert marked(["end"], ["end\n"]) == (["end"], ["end[\n]"])


def test_invisible_characters_count_as_separate_words() -> None:
    assert marked(["please pay ann today\n"], ["please pay\u200b ann today\n"])[1] == [
        "please pay[\u200b] ann today\n"
    ]


def test_too_large_change_is_compared_from_both_line_ends() -> None:
    line = "word " * (MOST_CHARACTERS // 5) + "\n"
    at = len(line) - 6
    changed = line[:at] + "end " + line[at:]
    assert changed_words([line], [changed])[1] == [[(at, at + 4)]]
    assert changed_words([line], [changed, "more\n"]) == ([[]], [[], []])
    assert changed_words([line[20:]], [f"x {line[20:]}"])[1] == [[(0, 1)]]


lines = st.lists(st.text("ab .\t\u200b", max_size=12).map(lambda text: text + "\n"), max_size=4)


@given(lines, lines)
def test_marks_are_within_their_lines_and_in_order(old: list[str], new: list[str]) -> None:
    for side, found in zip((old, new), changed_words(old, new), strict=True):
        assert len(found) == len(side)
        for line, spans in zip(side, found, strict=True):
            places = [place for span in spans for place in span]
            assert places == sorted(set(places))
            assert all(0 <= place <= len(line) for place in places)
