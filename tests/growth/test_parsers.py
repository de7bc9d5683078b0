"""No parser takes more than time in proportion to its text, whatever the text (issue 11, growth)."""

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

#: Characters at 4n: few for the quick tests, still enough that a square shows.
QUICK = 1_400
THOROUGH = 6_000
#: Of each kind that was slow with some parser: runs, openings without an end, marks to sort, deep nests.
WORST = (
    "blank", "newline", "mark", "open bracket", "backtick", "links without end", "marks of two classes",
    "YAML bomb", "deep block", "different links", "growing fences", "blanks in a heading", "keys in keys",
)  # fmt: skip


def nonlinear(parser: str, patterns: Mapping[str, Pattern], length: int) -> dict[str, Growth]:
    """The patterns with which a parser takes too long, and how long."""
    assert patterns
    measured = refusing(PARSERS[parser])
    with steady():
        found = {name: find_growth(measured, pattern, length) for name, pattern in patterns.items()}
    return {name: growth for name, growth in found.items() if growth is not None}


@pytest.mark.slow
def test_no_parser_is_slow_with_the_texts_that_are_worst() -> None:
    """tools §1.2: no call takes long for what is in it; the nightly run tries all texts"""
    patterns = single_patterns()
    worst = {name: patterns[name] for name in WORST}
    assert {parser: bad for parser in PARSERS if (bad := nonlinear(parser, worst, QUICK))} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_is_linear_in_known_bad_patterns_and_pairs_of_characters(parser: str) -> None:
    """tools §1.2: no call takes long for what is in it"""
    assert nonlinear(parser, single_patterns(), QUICK) == {}
    assert nonlinear(parser, pair_patterns(), THOROUGH) == {}


def test_every_text_function_of_a_model_can_be_called() -> None:
    """Else write one in `tests/growth/parsers.py`: a parser that nothing measures may stop the server."""
    assert len(PARSERS) > 400
    for parse in PARSERS.values():
        refusing(parse)("a [[b]]\n" * 20)


def test_every_parser_is_called_after_what_it_measures() -> None:
    """A call written by hand replaces the one that is made, as long as both have the same name."""
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


def test_a_square_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measure itself must not pass what it is there for; its clock is the length here, or its square."""
    letters = single_patterns()["letter"]
    clocks: Mapping[Callable[[int], int], bool] = {
        lambda length: length: False,
        lambda length: length**2: True,
        lambda length: min(length**2, 20_000 * length): False,  # a budget
    }
    for clock, is_found in clocks.items():
        monkeypatch.setattr(measuring, "seconds_of", lambda _, text, clock=clock: 1e-9 * clock(len(text)))
        assert (find_growth(str.upper, letters, QUICK) is not None) == is_found
