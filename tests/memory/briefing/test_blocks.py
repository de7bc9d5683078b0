"""Division of passages into conversation turns and other short blocks."""

from __future__ import annotations

import pytest

from lithos.memory.briefing.blocks import cut_blocks
from lithos.memory.briefing.passages import split_note

TURNS = (
    "Ann (13:35): Where is it?",
    "Ben: In the lighthouse.",
    "**Ann**: Good.",
    "[13:40] Ben Lee: See you.",
)


def blocks_of(content: str) -> list[str]:
    split = cut_blocks(split_note("Talk", content, 500, 1_000))
    return [split.text_of(passage) for passage in split.passages]


@pytest.mark.parametrize("between", ["\n", "\n\n", "\n \n\n"])
def test_each_conversation_turn_becomes_a_block(between: str) -> None:
    assert blocks_of(between.join(TURNS)) == list(TURNS)


def test_lines_without_speakers_stay_in_one_block() -> None:
    assert blocks_of("- one thing\n- another\n- a third\n\nThe end.") == [
        "- one thing\n- another\n- a third",
        "The end.",
    ]


def test_wrapped_line_belongs_to_its_turn() -> None:
    assert blocks_of("Ann: It is\nvery late.\nBen: Yes.") == ["Ann: It is\nvery late.", "Ben: Yes."]


def test_separator_lines_belong_to_the_preceding_block() -> None:
    assert blocks_of("***\n\nOne thing.\n\n***\n\nAnother.") == ["***\n\nOne thing.\n\n***", "Another."]


def test_fenced_code_stays_in_one_block() -> None:
    code = "```\na: 1\n\nb: 2\n```\n\nThat is it."
    assert blocks_of(code) == [code]


def test_blocks_keep_their_section_and_chunk() -> None:
    split = split_note("Talk", "# One\n\nAnn: a\n\nBen: b\n\n# Two\n\nAnn: c\n\nBen: d", 500, 1_000)
    cut = cut_blocks(split)
    assert [cut.text_of(each) for each in cut.passages] == ["Ann: a", "Ben: b", "Ann: c", "Ben: d"]
    assert [cut.sections[each.section] for each in cut.passages] == ["One", "One", "Two", "Two"]
    assert {each.chunk for each in cut.passages} == {each.chunk for each in split.passages}
