"""Everything that can grow says what bounds it: tables, containers, tool arguments, query parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw
import attrs
import pytest

import lithos
from lithos.config.catalogue import SETTINGS
from lithos.core.offers import BadPrompt, render_prompt
from lithos.tools.contract.arguments import argument
from lithos.tools.contract.bounds import NAME
from tests import inventory
from tests.bounds import CONTAINERS, QUERY_PARAMETERS, TABLES, Bound

PACKAGE = Path(lithos.__file__).parent


def check(kind: str, found: Iterable[str], declared: Mapping[str, Bound]) -> None:
    """Fails for what is found and not declared, and for what is declared and not found."""
    names = set(found)
    assert names, f"no {kind} was found: the inventory itself is broken"
    missing = sorted(names - declared.keys())
    assert not missing, (
        f"These of {kind} do not say what bounds them: {', '.join(missing)}. Bound each in rows and bytes "
        f"(a cap, an age, a capacity, a life that ends), then add it to {kind} in tests/bounds.py: "
        "`<owner>: <name> | at most so many, by which setting or constant | bytes of each or all`."
    )
    stale = sorted(declared.keys() - names)
    assert not stale, (
        f"These are not there any more: {', '.join(stale)}. Take them out of {kind} in "
        "tests/bounds.py, or rename them there as they were renamed in the source."
    )


def test_every_table_says_what_bounds_it(tmp_path: Path) -> None:
    check("TABLES", inventory.find_tables(tmp_path), TABLES)


def test_every_database_is_in_the_inventory() -> None:
    """A new database file must be opened by `inventory.find_tables`, or its tables would be missed."""
    known = {name.partition(".")[0] for name in TABLES}
    found = set(inventory.find_databases(PACKAGE)) - {""}
    assert found == known, f"databases {found ^ known}: open each in tests/inventory.py, find_tables"


def test_every_container_that_outlives_a_call_says_what_bounds_it() -> None:
    check("CONTAINERS", inventory.find_containers(PACKAGE), CONTAINERS)


def test_every_query_parameter_says_what_bounds_it() -> None:
    found = (name for name in inventory.find_query_parameters(PACKAGE) if not name.startswith("/"))
    check("QUERY_PARAMETERS", found, QUERY_PARAMETERS)


def test_every_text_list_and_object_of_every_tool_has_a_bound() -> None:
    """docs/spec/tools.md §1.2"""
    classes = inventory.argument_classes()
    assert len(classes) >= 40
    missing = list(inventory.find_unbounded_arguments(iter(classes)))
    assert not missing, (
        f"These arguments have no bound: {', '.join(missing)}. Declare it where the argument is: "
        "argument(..., bound=NAME), with a bound of lithos/tools/bounds.py."
    )


def test_what_a_bound_names_is_there() -> None:
    """A setting or constant in back-ticks exists, so that a bound cannot outlive what it names."""
    for declared in (TABLES, CONTAINERS, QUERY_PARAMETERS):
        told = " ".join(f"{bound.rows} {bound.size}" for bound in declared.values())
        named = set(re.findall("`([^`]+)`", told)) - _WORDS
        assert named
        assert [name for name in named if name not in SETTINGS and not _is_constant(name)] == []


#: Words in back-ticks that name no value.
_WORDS = {
    "/health", "agents", "core.limits", "tools.contract.bounds",
    "LONGEST_URI", "core.oauth.redirects",
}  # fmt: skip


def _is_constant(name: str) -> bool:
    module, _, constant = name.rpartition(".")
    try:
        return bool(module) and getattr(import_module(f"lithos.{module}"), constant, None) is not None
    except ImportError:
        return False


# -- the test can fail -------------------------------------------------------------------------


def test_an_undeclared_table_is_found_and_the_message_says_how_to_declare_it(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "stats.db"))
    connection.execute("CREATE TABLE fresh(id TEXT)")
    connection.close()
    with pytest.raises(AssertionError, match=r"(?s)stats\.fresh.*tests/bounds\.py.*<name> \| at most"):
        check("TABLES", [*TABLES, *inventory.tables_of(tmp_path / "stats.db")], TABLES)


def test_an_undeclared_container_is_found() -> None:
    for line, found in (
        ("self._seen = {}", "Actor._seen"),
        ("self._seen: dict[str, int] = {}", "Actor._seen"),
        ("self.rows = []", "Actor.rows"),
        ("self.rows = set[str]()", "Actor.rows"),
        ("self.ring: deque[int] = deque(maxlen=5)", "Actor.ring"),
        ("self.by_name = collections.defaultdict(list)", "Actor.by_name"),
        ("self.by_name = {name: 1 for name in names}", "Actor.by_name"),
        ("self._send, self._receive = trio.open_memory_channel(5)", "Actor._send"),
    ):
        source = f"class Actor:\n    def __init__(self, names):\n        {line}\n"
        names = list(inventory.containers_of(source))
        assert found in names, line
        with pytest.raises(AssertionError, match=r"do not say what bounds them.*tests/bounds\.py"):
            check("CONTAINERS", [*CONTAINERS, *names], CONTAINERS)


def test_containers_outside_methods_are_found_too() -> None:
    due = {
        "_known = {}\n": ["_known"],
        "_known: Final[dict[str, int]] = {}\n": ["_known"],
        "TABLE: Final = dict(a=1)\n_NAMES = {'a': 1}\n": ["TABLE"],
        "@lru_cache\ndef parse(text): ...\n": ["parse"],
        "@functools.lru_cache(maxsize=None)\ndef parse(text): ...\n": ["parse"],
        "@define\nclass Actor:\n    seen: set[str] = field(factory=set)\n": ["Actor.seen"],
        "@define\nclass Actor:\n    last: deque[int] = field(factory=lambda: deque(maxlen=9))\n": [
            "Actor.last"
        ],
        "@frozen\nclass Value:\n    seen: set[str] = field(factory=set)\n": [],
        "def f():\n    seen = {}\n": [],
    }
    assert {source: list(inventory.containers_of(source)) for source in due} == due


def test_what_is_gone_must_leave_the_declarations() -> None:
    with pytest.raises(AssertionError, match="not there any more: gone"):
        check("TABLES", ["here"], {"here": Bound("1", "1"), "gone": Bound("1", "1")})


def test_an_inventory_that_finds_nothing_is_no_inventory() -> None:
    with pytest.raises(AssertionError, match="broken"):
        check("TABLES", [], {})


def test_an_argument_without_a_bound_is_found() -> None:
    @attrs.frozen
    class Arguments:
        id: str = argument("Bounded.", bound=NAME)
        text: str | None = argument("Not bounded.", None)
        tags: tuple[str, ...] | None = argument("Not bounded.", None)
        metadata: dict[str, Any] | None = argument("Not bounded.", None)
        limit: int = argument("A number.", 5)
        confidence: object = argument("Judged by the tool.", None)

    found = list(inventory.find_unbounded_arguments(iter([("tool", Arguments)])))
    assert found == ["tool.text", "tool.tags", "tool.metadata"]


def test_an_undeclared_query_parameter_is_found() -> None:
    source = "def show():\n    given = request.args\n    return given.get('fresh', '')\n"
    assert list(inventory.parameters_of(source)) == ["fresh"]
    source = "def read(text):\n    given = parse_qs(text)\n    return [given[n] for n in ('one', 'two')]\n"
    assert list(inventory.parameters_of(source)) == ["one", "two"]


def test_arguments_of_prompts_are_bounded() -> None:
    with pytest.raises(BadPrompt, match="10,000"):
        render_prompt("research-first", {"topic": "x" * 10_001})
