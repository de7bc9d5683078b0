"""Parsers, whose time must be proportional to the length of any text (issue 11, growth)."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import ModuleType

import pytest

from tests.growth import measuring
from tests.growth.measuring import Growth, find_growth, steady
from tests.growth.parsers import PARSERS, refusing
from tests.growth.patterns import Pattern, pair_patterns, single_patterns
from tests.house import modules

#: Maximum number of characters in quick tests. It is small, but high enough to show quadratic growth.
QUICK = 1_400
THOROUGH = 6_000
#: One pattern of each kind that was slow in some parser: repeated characters, openings without an end, marks
#: to sort, and deep nesting.
WORST = (
    "blank", "newline", "mark", "open bracket", "backtick", "links without end", "marks of two classes",
    "YAML bomb", "deep block", "different links", "growing fences", "blanks in a heading", "keys in keys",
)  # fmt: skip


def nonlinear(parser: str, patterns: Mapping[str, Pattern], length: int) -> dict[str, Growth]:
    """Return the patterns for which a parser takes too long, and the growth of each pattern."""
    assert patterns
    measured = refusing(PARSERS[parser])
    with steady():
        found = {name: find_growth(measured, pattern, length) for name, pattern in patterns.items()}
    return {name: growth for name, growth in found.items() if growth is not None}


@pytest.mark.slow
def test_parsers_take_linear_time_with_the_worst_texts() -> None:
    """tools §1.2: no call takes long because of its text. The nightly run tries all texts."""
    patterns = single_patterns()
    worst = {name: patterns[name] for name in WORST}
    assert {parser: bad for parser in PARSERS if (bad := nonlinear(parser, worst, QUICK))} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("parser", PARSERS)
def test_parser_takes_linear_time_with_all_patterns_and_character_pairs(parser: str) -> None:
    """tools §1.2: no call takes long because of its text."""
    assert nonlinear(parser, single_patterns(), QUICK) == {}
    assert nonlinear(parser, pair_patterns(), THOROUGH) == {}


def test_every_model_function_with_a_text_can_be_called() -> None:
    """If a call fails, write a call in `tests/growth/parsers.py`.

    A parser that is not measured may block the server.
    """
    assert len(PARSERS) > 400
    for parse in PARSERS.values():
        refusing(parse)("a [[b]]\n" * 20)


def test_every_parser_call_is_named_after_its_function() -> None:
    """A handwritten call replaces the generated call of the same name."""
    modules_named = defaultdict(list)
    for module in modules():
        modules_named[module.rpartition(".")[2]].append(module)
    unknown = set()
    for parser in PARSERS:
        stem, _, name = parser.split()[0].partition(".")
        if not any(_has(importlib.import_module(module), name) for module in modules_named[stem]):
            unknown.add(parser)
    assert unknown == set()


def _has(module: ModuleType, name: str) -> bool:
    try:
        attrgetter(name)(module)
    except AttributeError:
        return False
    return True


def test_quadratic_growth_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurement must find quadratic growth.

    In this test, the clock returns a function of the text length.
    """
    letters = single_patterns()["letter"]
    clocks: Mapping[Callable[[int], int], bool] = {
        lambda length: length: False,
        lambda length: length**2: True,
        lambda length: min(length**2, 20_000 * length): False,  # a budget
    }
    for clock, is_found in clocks.items():
        monkeypatch.setattr(measuring, "seconds_of", lambda _, text, clock=clock: 1e-9 * clock(len(text)))
        assert (find_growth(str.upper, letters, QUICK) is not None) == is_found
