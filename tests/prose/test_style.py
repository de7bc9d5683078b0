"""The gate's check of style: `docs/style.md` as patterns (`python -m tests.prose` lists what they find)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.prose.style import find_fouls, fouls_in, read_exceptions
from tests.prose.texts import KINDS, Text, all_texts

#: Banned patterns that are left, by kind. A number here only ever sinks: lower it with each rewriting.
LEFT = {
    "readme": 0, "guide": 0, "contract": 0, "changelog": 0, "tool": 0, "setting": 0, "help": 0,
    "console": 0, "error": 0, "log": 0, "docstring": 0, "comment": 0, "test name": 0,
}  # fmt: skip


def test_no_kind_of_text_has_more_banned_patterns_than_before() -> None:
    counts = Counter(foul.text.kind for foul in find_fouls(all_texts()))
    assert {kind: counts[kind] for kind in KINDS if counts[kind] > LEFT.get(kind, 0)} == {}


def test_every_kind_of_text_is_found() -> None:
    found = Counter(text.kind for text in all_texts())
    assert all(found[kind] > 10 for kind in KINDS)


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (
            "guide",
            "Who asks for older ones is told to `resync`.",
            ["told", "Who asks for older ones is told to `"],
        ),
        ("guide", "Who decides?", []),
        ("error", "The task {title} is no gate.", ["is no gate"]),
        ("error", "There is no gate. It is no longer needed.", []),
        ("comment", "`beside` is code, and so is [a link](beside.md).", []),
        ("tool", "Most versions.", ["Most versions"]),
        ("help", "sign in with a sign-in link", []),
        ("console", "Signs that you cannot see", ["Signs"]),
        (
            "test name",
            "what is no baseline is refused",
            ["what is no baseline is refused", "is no baseline", "what"],
        ),
        ("test name", " ".join(["word"] * 13), [" ".join(["word"] * 13)]),
    ],
)
def test_patterns_find_what_the_guide_bans(kind: str, text: str, found: list[str]) -> None:
    assert [foul.found for foul in fouls_in(Text(kind, "a", 1, text))] == found


def test_exceptions_name_texts_that_are_there() -> None:
    present = {(foul.text.path, foul.found) for text in all_texts() for foul in fouls_in(text)}
    assert set(read_exceptions()) <= present
    assert all(reason.strip() for reason in read_exceptions().values())
