"""Texts that sessions of a client wrote over each other."""

from __future__ import annotations

import pytest

from lithos.adopt.model_sessions import merge_sessions

pytestmark = pytest.mark.needs("adopt")


def text(*lines: str) -> str:
    return "\n".join(lines)


def test_lines_of_both_sessions_are_kept():
    """Behaviour 323."""
    base = text("# M", "", "- a")
    one, other = text(base, "- one"), text(base, "- other")
    assert merge_sessions([other, one, base]) == text(base, "- other", "- one")


def test_three_sessions_at_different_places_are_merged():
    """Behaviour 323."""
    base = text("## A", "- a", "## B", "- b")
    one = text("## A", "- a", "- one", "## B", "- b")
    two = text("## A", "- a", "## B", "- b", "- two")
    three = text("- three", "## A", "- a", "## B", "- b")
    assert merge_sessions([three, two, one, base]) == text(
        "- three", "## A", "- a", "- one", "## B", "- b", "- two"
    )


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [text("a")],
        [text("a", "b"), text("a")],
        [text("a", "b", "c"), text("a", "b"), text("a")],
        [text("a"), text("a", "b"), text("a")],
        [text("x"), text("a", "b"), text("a")],
    ],
    ids=["nothing", "one", "an addition", "two additions", "a restored text", "another text"],
)
def test_texts_that_lack_nothing_are_not_merged(texts):
    assert merge_sessions(texts) is None


def test_long_texts_are_merged_in_linear_time():
    base = text(*(f"- {n}" for n in range(20_000)))
    one = text(base, *(f"- one {n}" for n in range(2_000)))
    other = text(base, *(f"- other {n}" for n in range(2_000)))
    merged = merge_sessions([other, one, base])
    assert merged is not None
    assert merged.count("\n") == 24_000 - 1
