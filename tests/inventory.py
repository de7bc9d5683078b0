"""Long-lived data and their limits, which are found by reading the source code.

The data live as long as the process or longer. A container is limited if code removes items, caps it, checks
its size or creates it again, or if no code fills it after its creation. A table is limited if code deletes
its rows. Data that are limited in another way have a comment, which begins with `bounded:` (a container) or
`kept rows:` (tables, by name). The comment is on the line of the creation or one of the two lines above.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeGuard

import attrs

from lithos.app.capabilities import all_tools
from tests.house import role_of

parse: Final = functools.cache(ast.parse)
#: Roles whose objects live only for one call or one command.
SHORT: Final = frozenset(("model", "commands", "settings"))
GROWING: Final = frozenset({
    "set", "dict", "fromkeys", "list", "deque", "defaultdict", "Counter", "OrderedDict",
    "open_memory_channel", "Queue", "SimpleQueue",
})  # fmt: skip
CACHES: Final = frozenset(("cache", "lru_cache"))
TAKING: Final = frozenset({
    "pop", "popitem", "popleft", "discard", "remove", "clear", "difference_update", "intersection_update",
})  # fmt: skip
FILLING: Final = frozenset({
    "add", "append", "appendleft", "extend", "insert", "setdefault", "update", "subtract", "send",
    "send_nowait",
})  # fmt: skip
#: Types of tool arguments that cannot grow. The JSON Schema has no other such types.
SCALARS: Final = (int, float, bool, object)


@functools.cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module. The result is cached, because several tests check the whole package."""
    return tuple(ast.walk(parse(source)))


def find_endless_tables(source: str) -> Iterator[str]:
    """Yield the tables whose rows are never deleted and which no comment names."""
    named = " ".join(re.findall(r"# kept rows: ([\w ,]+):", source)).replace(",", " ").split()
    deleted = re.findall(r"""(?:DELETE FROM |_drop_from\(\s*["'])(\w+)""", source)
    filled = re.findall(r"""(?:INSERT (?:OR \w+ )?INTO |Table\(\s*["'])(\w+)""", source)
    yield from sorted({*filled} - {*named, *deleted})


def find_containers(package: Path) -> Iterator[tuple[str, str, ast.AST]]:
    """Yield name, text and node of each growing container that lives longer than a call.

    The name is `<module>.<class>.<attribute>` or `<module>.<name>`.
    """
    for path in sorted(package.rglob("*.py")):
        module = path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        if role_of(f"lithos.{module}") not in SHORT:
            source = path.read_text(encoding="utf-8")
            yield from ((f"{module}.{name}", source, node) for name, node in containers_of(source))


def find_unbounded(package: Path) -> list[str]:
    """Return the containers that have neither a limit nor a comment `bounded:`."""
    taken, filled = uses_of([path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))])
    return sorted(
        {
            name
            for name, source, node in find_containers(package)
            if (attribute := name.rpartition(".")[2]) in filled
            and attribute not in taken
            and not is_capped(node)
            and not is_marked(source, node)
        }
    )


def is_marked(source: str, node: ast.AST) -> bool:
    """Return whether a comment at the creation of a container, or above its class, names its limit."""
    lines = source.splitlines()
    around = [each for each in nodes_of(source) if isinstance(each, ast.ClassDef) and node in ast.walk(each)]
    above = [line for each in around for line in lines[each.lineno - 4 : each.lineno]]
    return any("# bounded: " in line for line in above + lines[max(node.lineno - 3, 0) : node.end_lineno])


def is_capped(node: ast.AST) -> bool:
    """Return whether a container is created with a maximum size: deques, channels and caches."""
    if _is_cached(node):
        caches = [
            each
            for each in node.decorator_list
            if isinstance(each, ast.Call) and (each.keywords or each.args)
        ]
        return bool(caches) or not node.args.args
    value = node.value
    capacity = isinstance(value, ast.Call) and (value.keywords or value.args)
    return bool(capacity) and ("maxlen" in ast.unparse(value) or _name(value.func) == "open_memory_channel")


def uses_of(sources: list[str]) -> tuple[set[str], set[str]]:
    """Return two sets of container names.

    Code empties, caps or recreates the first set, and may fill the second.
    """
    taken: set[str] = set()
    filled: set[str] = set()
    for source in sources:
        for node in nodes_of(source):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name not in ("__init__", "__attrs_post_init__"):
                    taken |= _made_again(node)
                if _is_cached(node):
                    filled.add(node.name)
            elif isinstance(node, ast.Call):
                _note_call(node, taken, filled)
            elif isinstance(node, ast.Delete):
                taken |= {_name(each.value) for each in node.targets if isinstance(each, ast.Subscript)}
            elif isinstance(node, ast.AugAssign):
                (taken if isinstance(node.op, ast.Sub) else filled).add(_name(node.target))
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                filled.add(_name(node.value))
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Return):
                filled |= {_name(each) for each in _alternatives(node.value)}
            elif isinstance(node, ast.Compare):
                lengths = (each for each in (node.left, *node.comparators) if isinstance(each, ast.Call))
                taken |= {_name(each.args[0]) for each in lengths if _name(each.func) == "len"}
    return taken, filled


def _note_call(call: ast.Call, taken: set[str], filled: set[str]) -> None:
    """Record the attributes that a method call empties or fills.

    Functions of Lithos may fill their arguments.
    """
    if isinstance(call.func, ast.Attribute) and call.func.attr in TAKING | FILLING:
        (taken if call.func.attr in TAKING else filled).add(_name(call.func.value))
    if _name(call.func) not in dir(builtins):
        filled.update(_name(each) for each in call.args if isinstance(each, ast.Attribute))


def _made_again(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the attributes that a method assigns. An assignment drops the old contents."""
    nodes = list(ast.walk(function))
    added = {id(each.target) for each in nodes if isinstance(each, ast.AugAssign)}
    set_here = (each for each in nodes if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return {each.attr for each in set_here if id(each) not in added}


def _alternatives(value: ast.expr | None) -> list[ast.expr]:
    """Return the attributes to which a value may refer."""
    flat = value.elts if isinstance(value, ast.Tuple) else [value]
    return [each for each in flat if isinstance(each, ast.Attribute)]


def containers_of(source: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the containers of one module (without the module name) and the node that creates each."""
    for node in parse(source).body:
        yield from _module_level(node)
    for node in nodes_of(source):
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", place) for name, place in _attributes(node))
        elif _is_cached(node):
            yield node.name, node


def _is_cached(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        _name(one) in CACHES for one in node.decorator_list
    )


def _module_level(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _grows(node.value):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            # A constant (by name and annotation) that its own expression fills never changes.
            if isinstance(target, ast.Name) and not _is_final(node) and not _is_filled(node.value):
                yield target.id, node


def _attributes(cls: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    """Yield attributes of `self` and fields with a factory. Classes with immutable objects are skipped."""
    if not any("frozen" in ast.unparse(one) for one in cls.decorator_list):
        for node in cls.body:
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and _has_factory(node.value)
            ):
                yield node.target.id, node
    for node in ast.walk(cls):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not _grows(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        flat = [
            one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        for target in flat:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr, node


def _grows(value: ast.expr) -> bool:
    """Return whether a value is an empty literal, a comprehension or a call that creates a container."""
    if isinstance(value, ast.Tuple):
        return any(_grows(item) for item in value.elts)
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.DictComp | ast.ListComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and _name(value.func) in GROWING


def _is_filled(value: ast.expr) -> bool:
    return isinstance(value, ast.DictComp | ast.ListComp | ast.SetComp)


def _is_final(node: ast.Assign | ast.AnnAssign) -> bool:
    return (
        isinstance(node, ast.AnnAssign)
        and "Final" in ast.unparse(node.annotation)
        and not _is_empty(node.value)
    )


def _is_empty(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Call) and value.args) and _grows(value)


def _has_factory(value: ast.expr | None) -> bool:
    if not isinstance(value, ast.Call):
        return False
    factories = [one.value for one in value.keywords if one.arg == "factory"]
    return any(
        _grows(one.body) if isinstance(one, ast.Lambda) else _name(one) in GROWING for one in factories
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Call | ast.Subscript):
        return _name(function.func if isinstance(function, ast.Call) else function.value)
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def find_unbounded_arguments(classes: Iterator[tuple[str, type[Any]]]) -> Iterator[str]:
    """Yield `<tool>.<argument>` for each text, list and object argument without a limit."""
    for tool, arguments in classes:
        for attribute in attrs.fields(attrs.resolve_types(arguments)):
            kinds = set(getattr(attribute.type, "__args__", (attribute.type,))) - {type(None)}
            if not kinds <= set(SCALARS) and attribute.metadata.get("bound") is None:
                yield f"{tool}.{attribute.name}"


def argument_classes() -> list[tuple[str, type[Any]]]:
    """Return the name of every tool with the class of its arguments."""
    return [(tool.name, tool.arguments) for tool in all_tools()]
