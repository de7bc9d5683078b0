"""Growing data, all of which must be limited: tables, containers, tool arguments and prompt arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

import lithos
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import NAME
from lithos.server.tools.resource_uris import BadPrompt, render_prompt
from tests import inventory

PACKAGE = Path(lithos.__file__).parent


def test_every_table_deletes_rows_or_states_why_not() -> None:
    """A table that keeps its rows needs a comment at its creation: `# kept rows: <tables>: <why>`."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert "INSERT INTO" in source
    assert list(inventory.find_endless_tables(source)) == []


@pytest.mark.needs("imports")
def test_every_long_lived_container_has_a_limit() -> None:
    """If the test fails, remove items, set a capacity, or add a comment at the creation:

    `# bounded: <how many>`.
    """
    assert len(list(inventory.find_containers(PACKAGE))) > 150
    assert inventory.find_unbounded(PACKAGE) == []


def test_every_text_list_and_object_argument_has_a_limit() -> None:
    """docs/spec/tools.md §1.2: the limit is declared with the argument, `argument(..., bound=NAME)`."""
    classes = inventory.argument_classes()
    assert len(classes) >= 40
    assert list(inventory.find_unbounded_arguments(iter(classes))) == []


def test_prompt_arguments_have_a_limit() -> None:
    with pytest.raises(BadPrompt, match="10,000"):
        render_prompt("research-first", {"topic": "x" * 10_001})


# -- these tests show that the tests above can fail --------------------------------------------


@pytest.mark.parametrize(
    ("made", "used", "is_found"),
    [
        ("self.rows = {}", "self.rows['a'] = 1", True),
        ("self.rows: dict[str, int] = {}", "self.rows.setdefault('a', 1)", True),
        ("self.rows = set[str]()", "self.rows |= {1}", True),
        ("self.rows = defaultdict(list)", "fill(self.rows)", True),
        ("self.rows = {name: 1 for name in names}", "rows = self.rows", True),
        ("self.rows = {name: 1 for name in names}", "len(self.rows)", False),
        ("self.rows = deque(maxlen=5)", "self.rows.append(1)", False),
        ("self.rows = deque()", "self.rows.append(1)", True),
        ("self.rows = []  # bounded: a call's", "self.rows.append(1)", False),
        ("self.rows = []", "self.rows.append(1); self.rows.pop()", False),
        ("self.rows = []", "self.rows.append(1); self.rows = []", False),
        ("self.rows = []", "if len(self.rows) < 5: self.rows.append(1)", False),
        ("self.send, self.rows = trio.open_memory_channel(5)", "self.rows.append(1)", False),
    ],
)
def test_only_containers_without_a_limit_are_reported(
    tmp_path: Path, made: str, used: str, is_found: bool
) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    source = (
        f"class A:\n    def __init__(self, names):\n        {made}\n\n    def go(self):\n        {used}\n"
    )
    (tasks / "a.py").write_text(source)
    assert inventory.find_unbounded(tmp_path) == (["tasks.a.A.rows"] if is_found else [])


def test_unlimited_tables_and_arguments_are_reported() -> None:
    @attrs.frozen
    class Arguments:
        id: str = argument("Bounded.", bound=NAME)
        text: str | None = argument("Not bounded.", None)
        metadata: dict[str, Any] | None = argument("Not bounded.", None)
        limit: int = argument("A number.", 5)

    unbounded = list(inventory.find_unbounded_arguments(iter([("tool", Arguments)])))
    assert unbounded == ["tool.text", "tool.metadata"]
    source = (
        "INSERT INTO a VALUES INSERT OR IGNORE INTO b VALUES # kept rows: c: few\nDELETE FROM b Table('c'"
    )
    assert list(inventory.find_endless_tables(source)) == ["a"]
