"""A tool hands its arguments on by name: every name and type is one of the command."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import attrs
import pytest

import lithos.tools

ROOT = Path(lithos.tools.__file__).parent


def handovers() -> list[tuple[type, type, frozenset[str], str]]:
    """Of each `as_command`: the arguments class, the command, the values given apart, and the method."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parents[1]).with_suffix("").parts
        module = import_module(".".join(part for part in parts if part != "__init__"))
        for method in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for call in ast.walk(method):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "as_command":
                    kind, given = map(ast.unparse, call.args)
                    written = {each.arg: ast.unparse(each.annotation) for each in method.args.args[1:]}
                    checked = frozenset(str(keyword.arg) for keyword in call.keywords)
                    classes = getattr(module, written[given]), getattr(module, kind)
                    found.append((*classes, checked, ast.unparse(method)))
    return found


@pytest.mark.parametrize(("arguments", "command", "checked", "method"), handovers())
def test_what_is_handed_on_fits(arguments: type, command: type, checked: frozenset[str], method: str) -> None:
    given, wanted = get_type_hints(arguments), get_type_hints(command)
    assert checked <= wanted.keys()
    for field in attrs.fields(arguments):
        if field.name not in wanted:  # it says something of another field
            assert f"given.{field.name}" in method
        elif field.name not in checked:
            assert _fits(given[field.name], wanted[field.name]), field.name
    required = {field.name for field in attrs.fields(command) if field.default is attrs.NOTHING}
    assert required <= given.keys() | checked


def _fits(given: object, wanted: object) -> bool:
    """An object of a call is a mapping; what is in it is Any, and fits as it does for mypy."""
    of_any = str(wanted).replace("Mapping[str, str]", "Mapping[str, typing.Any]")
    return given == wanted or str(given).replace("dict[", "collections.abc.Mapping[") == of_any


def test_there_are_some() -> None:
    assert len(handovers()) >= 10
