"""Calls of model functions with one text. The calls are created from the types of the arguments."""

from __future__ import annotations

import enum
import importlib
import inspect
import io
import re
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import yaml

from tests.house import modules, role_of

Parse = Callable[[str], object]

NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)
#: Functions that create a sample value of each type from a text `t`.
_PLAIN: Final[Mapping[Any, Callable[[str], object]]] = {
    **dict.fromkeys((str, Any, object), lambda t: t),
    **dict.fromkeys((BaseException, Exception), ValueError),
    bytes: lambda t: t.encode(errors="replace"),
    typing.IO: lambda t: io.BytesIO(t.encode(errors="replace")),
    int: lambda _: 100,
    float: lambda _: 0.5,
    bool: lambda _: False,
    type(None): lambda _: None,
    datetime: lambda _: NOW,
    date: lambda _: NOW.date(),
    Path: lambda _: Path("a.md"),
    yaml.nodes.MappingNode: lambda _: yaml.nodes.MappingNode("tag:yaml.org,2002:map", []),
    yaml.nodes.Node: lambda t: yaml.nodes.ScalarNode("tag:yaml.org,2002:str", t),
    re.Match: lambda t: re.match("(?s)(.*)()", t),
    re.Pattern: lambda _: re.compile("a"),
    np.ndarray: lambda t: np.arange(len(t)),
    Counter: Counter,
}


def pieces(given: str) -> list[str]:
    """Return the text in pieces of 40 characters, as list items."""
    return [given[begin : begin + 40] for begin in range(0, len(given), 40)]


def make(kind: Any, given: str) -> Any:
    """Return a value of the given type. The value contains the text if possible."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, typing.TypeVar):
        return given
    if (origin or kind) in _PLAIN:
        return _PLAIN[origin or kind](given)
    if origin is typing.Literal:
        return inner[0]
    if origin in (typing.Union, types.UnionType):
        return make(next(each for each in inner if each is not type(None)), given)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if origin is not None and callable(origin) and issubclass(origin, Callable):
        return lambda *_: make(inner[-1], given)
    if origin is tuple and inner[1:] != (...,):
        return tuple(make(each, given) for each in inner)
    if origin is not None and issubclass(origin, Mapping):
        return {make(inner[0], given): make(inner[1], given)}
    if origin is not None and hasattr(origin, "__iter__"):
        items = pieces(given) if inner[0] is str else [make(inner[0], given)]
        if issubclass(origin, tuple | Iterator):
            return iter(items) if issubclass(origin, Iterator) else tuple(items)
        return frozenset(items) if issubclass(origin, Set) else items
    if attrs.has(origin or kind):
        fields = [each for each in attrs.fields(attrs.resolve_types(origin or kind)) if each.init]
        needed = [each for each in fields if each.default is attrs.NOTHING]
        return kind(**{each.alias: make(each.type, given) for each in needed})
    return call(kind, kind.__init__, given)


def call(function: Callable[..., Any], signature: Callable[..., Any], given: str) -> Any:
    """Call a function. Generate a value for each argument that has no default or takes text."""
    hints = typing.get_type_hints(signature)
    named: dict[str, Any] = {}
    plain: list[Any] = []
    for name, each in inspect.signature(signature).parameters.items():
        if name in ("self", "cls") or each.kind is each.VAR_KEYWORD or name not in hints:
            continue
        if each.default is not each.empty and "str" not in str(hints[name]):
            continue
        value = given[:1] if name == "character" else make(hints[name], given)
        if each.kind is each.KEYWORD_ONLY:
            named[name] = value
        else:
            plain.append(value)
    return function(*plain, **named)


def functions_of_models() -> Iterator[tuple[str, Any, Any]]:
    """Yield the public functions and methods of models, as module, class and function."""
    for module in sorted(each for each in modules() if role_of(each) == "model"):
        here = importlib.import_module(module)
        stem = module.rpartition(".")[2]
        for name, value in vars(here).items():
            if getattr(value, "__module__", None) != module or name.startswith("_"):
                continue
            if inspect.isfunction(value):
                yield f"{stem}.{name}", None, value
            elif inspect.isclass(value) and not getattr(value, "_is_protocol", False):
                kinds = (types.FunctionType, classmethod, staticmethod)
                methods = {key: each for key, each in vars(value).items() if isinstance(each, kinds)}
                yield from (
                    (f"{stem}.{name}.{key}", value, each)
                    for key, each in methods.items()
                    if not key.startswith("_")
                )


def takes_text(function: Any) -> bool:
    """Return whether an argument of the function may be a text."""
    hints = typing.get_type_hints(getattr(function, "__func__", function))
    given = [hint for name, hint in hints.items() if name != "return"]
    return any(hint is Any or re.search(r"\bstr\b|bytes|Document", str(hint)) for hint in given)


def made_calls() -> dict[str, Parse]:
    """Return a call with one text for each model function that takes text."""
    found = functions_of_models()
    return {name: _call_of(owner, function) for name, owner, function in found if takes_text(function)}


def _call_of(owner: Any, function: Any) -> Parse:
    def parse(given: str) -> object:
        if not isinstance(function, types.FunctionType):
            bound = function.__get__(None, owner)
        else:
            bound = function if owner is None else function.__get__(make(owner, given))
        found = call(bound, bound, given)
        return list(found) if inspect.isgenerator(found) else found

    return parse
