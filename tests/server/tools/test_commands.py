"""Commands that tools build from their arguments. Field names and types must match."""

from __future__ import annotations

import ast
from importlib import import_module
from typing import get_type_hints

import attrs

from tests.house import modules


def handovers() -> list[tuple[type, type, frozenset[str], str]]:
    """Return tool, command, separately passed values, and tool source for each `as_command` call."""
    found = []
    for module_name, text in modules().items():
        if "as_command(" not in text:
            continue
        module = import_module(module_name)
        tree = ast.parse(text)
        owners = {
            id(method): node for node in tree.body if isinstance(node, ast.ClassDef) for method in node.body
        }
        for method in ast.walk(tree):
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            calls = [
                call
                for call in ast.walk(method)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "as_command"
            ]
            kinds = [getattr(module, ast.unparse(call.args[0])) for call in calls]
            for call, kind in zip(calls, kinds, strict=True):
                given = ast.unparse(call.args[1])
                written = {
                    each.arg: ast.unparse(each.annotation) for each in method.args.args if each.annotation
                }
                owner = owners.get(id(method))
                names = owner.name if owner is not None else written[given]
                checked = frozenset(str(keyword.arg) for keyword in call.keywords)
                # The class of a method may use arguments that the method does not forward.
                source = ast.unparse(owner) if owner is not None else "*"
                found += [(getattr(module, name), kind, checked, source) for name in names.split(" | ")]
    return found


def test_forwarded_arguments_match_their_commands() -> None:
    """Names and types must match. If no command has a field, the tool itself must use it."""
    made = handovers()
    assert len(made) >= 20
    taken = {(arguments, name) for arguments, kind, *_ in made for name in attrs.fields_dict(kind)}
    for arguments, command, checked, source in made:
        given, wanted = get_type_hints(arguments), get_type_hints(command)
        assert checked <= wanted.keys()
        for field in attrs.fields(arguments):
            if field.name == "explain":
                pass  # `explain` only selects keys of the compact answer
            elif field.name not in wanted:
                assert f"self.{field.name}" in source or (arguments, field.name) in taken or source == "*", (
                    field
                )
            elif field.name not in checked:
                assert _fits(given[field.name], wanted[field.name]), (arguments, field.name)
        required = {
            field.name for field in attrs.fields(command) if field.init and field.default is attrs.NOTHING
        }
        assert required <= given.keys() | checked


def _fits(given: object, wanted: object) -> bool:
    """Return whether the types match.

    An object argument is a mapping with Any values. mypy accepts it for every mapping.
    """
    of_any = str(wanted).replace("Mapping[str, str]", "Mapping[str, typing.Any]")
    return given == wanted or str(given).replace("dict[", "collections.abc.Mapping[") == of_any
