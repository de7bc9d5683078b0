"""The names under which Lithos itself acts. All are in one list, and no caller may use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import PERSON_AGENT, RESERVED, UNKNOWN_AGENT, check_agent, is_reserved
from lithos.server.settings import ServerConfig

PACKAGE = Path(__file__).parents[3] / "lithos"
#: Places in code that name an actor: keywords, parameters, keys of call arguments, constants.
ACTOR = re.compile(r"(?i)(?:.*_)?(?:agent(?:_id)?|actor|author|resolver|created_by)")
NAME = re.compile(r"[a-z][a-z0-9_-]*")
#: Lines in which such a name may come before a text. Most modules do not contain such lines.
MENTION = re.compile(
    r"(?i)(?:agent(?:_id)?|actor|author|resolver|created_by)[\"']?\s*(?::[^=\n]*)?[:=]\s*[\"']"
)
#: Names of parameters and headings, which are not actor names.
WORDS = frozenset({"agent_id", "agents"})
#: The demo's agents act out a story in a temporary folder.
STORIES = "app/demo/"


@pytest.mark.parametrize(
    "name",
    [
        *[
            "undo", " Undo ", "UNDO", "ｕｎｄｏ", "un\u00addo", "u\u200bndo\u2060", "ſcan", "watcher\n",
            "Lithos-Enrich",
        ],
        *["enrich", "cli", "person", "scan", "timer", "import", "evaluate", "migration"],
    ],
)  # fmt: skip
def test_callers_cannot_use_names_reserved_for_lithos(name: str) -> None:
    assert is_reserved(name)
    with pytest.raises(InvalidInput, match="Choose your own name"):
        check_agent(name)


def test_callers_can_use_other_names() -> None:
    for name in ("ada", "undoer", "cli@laptop", "unknown", "claude-code@host", "Персона", "scan-bot", ""):
        assert check_agent(name) == name


def literal_actors(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the texts used as actor names in the source, with their lines."""
    for node in ast.walk(tree):
        pairs: list[tuple[str | None, ast.expr | None]] = []
        if isinstance(node, ast.Call):
            pairs = [(each.arg, each.value) for each in node.keywords]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            pairs = [(str(key), value) for key, value in zip(keys, node.values, strict=True) if key]
        elif isinstance(node, ast.Assign):
            pairs = [(each.id, node.value) for each in node.targets if isinstance(each, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args]
            defaults = given[len(given) - len(node.args.defaults) :]
            pairs = [(each.arg, value) for each, value in zip(defaults, node.args.defaults, strict=True)]
            pairs += [
                (each.arg, value)
                for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            ]
        for name, value in pairs:
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            if name and is_text and ACTOR.fullmatch(name) and NAME.fullmatch(value.value):  # type: ignore[union-attr]
                yield node.lineno, value.value  # type: ignore[union-attr]


def test_every_actor_name_in_the_code_is_reserved() -> None:
    """A new name is defined in `kernel.values.principals`, and reserved there."""
    strange, seen = [], 0
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        text = path.read_text()
        if place.startswith(STORIES) or not MENTION.search(text):
            continue
        for line, name in literal_actors(ast.parse(text)):
            seen += 1
            if name not in RESERVED | WORDS | {UNKNOWN_AGENT}:
                strange.append(f"{place}:{line}: {name!r}")
    assert strange == []
    assert seen >= len(RESERVED) - 1  # the constants themselves; "enrich" does not have a constant


def test_source_scan_finds_a_new_actor_name() -> None:
    for source in (
        'REAPER_AGENT = "reaper"', 'AGENT: str = "reaper"', 'write(agent="reaper")',
        'call({"agent_id": "reaper"})', 'def act(*, by=1, agent: str = "reaper"): pass',
        'def act(provenance_actor="reaper"): pass',
    ):  # fmt: skip
        assert MENTION.search(source), source
        assert [name for _, name in literal_actors(ast.parse(source))] == ["reaper"], source


def test_default_console_name_is_reserved() -> None:
    """The configuration does not import anything from Lithos, so it repeats the name."""
    assert ServerConfig().console_agent == PERSON_AGENT
