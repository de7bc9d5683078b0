"""Conversations as Markdown: nested headings, code fences, and parts (behaviour 240)."""

from __future__ import annotations

import pytest

from lithos.imports.model.conversation import (
    Conversation,
    Message,
    blocks_of,
    fence,
    linkable,
    nest,
    parts_of,
    split_blocks,
)
from lithos.text.markdown import code_fences


def test_message_headings_are_nested_and_code_is_unchanged() -> None:
    """behaviour 240"""
    text = "# A\n\n```sh\n# no heading\n```\n\n###### F\n#tag\n## B"
    assert nest(text) == "### A\n\n```sh\n# no heading\n```\n\n###### F\n#tag\n#### B"


@pytest.mark.parametrize("mark", ["```", "~~~~"])
def test_open_code_block_is_closed_when_the_message_ends(mark: str) -> None:
    """behaviour 240"""
    assert nest(f"a\n{mark}py\nx = 1") == f"a\n{mark}py\nx = 1\n{mark}"
    assert nest(f"a\n{mark}\nx\n{mark}") == f"a\n{mark}\nx\n{mark}"


def test_fence_is_longer_than_any_fence_in_its_text() -> None:
    """behaviour 240"""
    text = fence("a\n```\nb\n`````\nc", "py`thon")
    assert list(code_fences(text)) == [(0, len(text))]
    assert text.startswith("``````python\n")


def test_conversation_within_the_limit_becomes_one_part() -> None:
    """behaviour 240"""
    conversation = Conversation(id="1", title="t", messages=(Message("User", "hello"),))
    assert list(split_blocks(blocks_of(conversation), 1_000_000)) == ["## User\n\nhello"]
    (part,) = parts_of(lambda: blocks_of(conversation), "t [x]", 1_000_000)
    assert (part.title, part.text) == ("t [x]", "## User\n\nhello")


def test_parts_fit_the_limit_and_contain_every_word() -> None:
    """behaviour 240"""
    words = [f"wörd{number}" for number in range(9_000)]
    messages = (
        Message("User", " ".join(words[:3_000])),
        *(Message("Assistant", f"{words[n]} {words[n + 1]}") for n in range(3_000, 6_000, 2)),
        Message("User", "\n".join(words[6_000:])),
    )
    parts = list(split_blocks(blocks_of(Conversation(id="1", title="t", messages=messages)), 24_096))
    assert len(parts) > 4
    assert all(len(part.encode()) <= 20_000 for part in parts)
    joined = "".join(parts).replace("\n\n", "\n")
    assert [word for word in words if word not in joined][:9] == []
    assert joined.count("(continued)") >= 2


def test_split_code_block_continues_as_a_code_block() -> None:
    """behaviour 240"""
    code = "\n".join(f"line{number} = {number}" for number in range(3_000))
    message = Message("Assistant", f"See:\n\n```python\n{code}\n```\n\nDone.")
    parts = list(split_blocks(blocks_of(Conversation(id="1", title="t", messages=(message,))), 14_096))
    assert len(parts) > 3
    for part in parts:
        ((start, end),) = code_fences(part)
        assert part[start:].startswith("```python\n")
        assert part[start:end].rstrip().endswith("```")
    assert "".join(parts).count("line1234 = 1234\n") == 1
    assert parts[-1].endswith("Done.")


def test_part_titles_can_be_link_targets() -> None:
    """behaviour 240"""
    parts = list(parts_of(lambda: ["x" * 90, "y" * 90], "a [b] | c#d", 4_200))
    assert [part.title for part in parts] == ["a (b) / c-d", "a (b) / c-d (part 2)"]
    assert [part.text.partition("*")[2] for part in parts] == [
        "Continued in [[a (b) / c-d (part 2)]].*", "Continues [[a (b) / c-d]].*\n\n" + "y" * 90,
    ]  # fmt: skip
    assert linkable("[]") == "()"
