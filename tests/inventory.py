"""What lives as long as the process or longer: tables, containers, text arguments, query parameters.

Found by opening fresh databases and by reading the source, so that nothing new can be forgotten.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeGuard

import apsw
import attrs

from lithos.stores.attachments.shelf import Shelf
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import LearningDatabase
from lithos.stores.history.store import HISTORY, HistoryStore
from lithos.stores.indexes.leads import LEADS, Leads
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore
from lithos.stores.manifest import Manifest
from lithos.tools.contract.declaring import all_tools

parse: Final = functools.cache(ast.parse)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: Rooms whose objects may live as long as the process.
ROOMS: Final = ("actors", "catalogue", "stores", "services", "tools", "front", "app")
#: Modules at the top that are long-lived too.
MODULES: Final = ("metrics.py", "telemetry.py")
GROWING: Final = frozenset({
    "set", "dict", "fromkeys", "list", "deque", "defaultdict", "Counter", "OrderedDict",
    "Newest",
    "open_memory_channel", "WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "Queue", "SimpleQueue",
})  # fmt: skip
CACHES: Final = frozenset(("cache", "lru_cache"))
#: What a tool argument may be without growing: its JSON Schema has one of these types only.
SCALARS: Final = (int, float, bool, object)


@functools.cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a module; several tests look at the whole package."""
    return tuple(ast.walk(parse(source)))


def find_tables(folder: Path) -> Iterator[str]:
    """`<database>.<table>` of everything that a new data directory gets; makes the databases in `folder`."""
    CoordinationStore.open(folder / "coordination.db", NOW).close()
    Manifest.open(folder / "manifest.db", NOW).close()
    HistoryStore.open(folder / HISTORY, NOW).close()
    Leads.open(folder / LEADS, NOW).close()
    Shelf.open(folder / "attachments.db", NOW).close()
    databases: tuple[type[LearningDatabase], ...] = (EdgeStore, StatsStore)
    for kind, name in zip(databases, ("edges.db", "stats.db"), strict=True):
        store = kind.open(folder / name, NOW)
        store.try_writing()
        store.close()
    for path in sorted(folder.glob("*.db")):
        yield from tables_of(path)


def tables_of(path: Path) -> Iterator[str]:
    """`<database>.<table>` of one file."""
    connection = apsw.Connection(str(path))
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    yield from [f"{path.stem}.{name}" for (name,) in rows]
    connection.close()


def find_databases(package: Path) -> Iterator[str]:
    """The names of files that the source opens as databases; patterns of names (`*.db`) are none."""
    for path in sorted(package.rglob("*.py")):
        for node in nodes_of(path.read_text()):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".db"):
                name = node.value.rpartition("/")[2].removesuffix(".db")
                if name != "*":
                    yield name


def find_containers(package: Path) -> Iterator[str]:
    """`<module>.<class>.<attribute>` or `<module>.<name>` of what can grow and outlives a call."""
    rooms = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))]
    for path in rooms + [package / name for name in MODULES if (package / name).exists()]:
        module = path.relative_to(package).with_suffix("").as_posix().replace("/", ".")
        for name in dict.fromkeys(containers_of(path.read_text())):
            yield f"{module}.{name}"


def containers_of(source: str) -> Iterator[str]:
    """The containers of one module, without its name."""
    for node in parse(source).body:
        yield from _module_level(node)
    for node in nodes_of(source):
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in _attributes(node))
        elif _is_cached(node):
            yield node.name


def _is_cached(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        _name(one) in CACHES for one in node.decorator_list
    )


def _module_level(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _grows(node.value):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            # A constant by name and annotation that is filled by its own expression never changes.
            if isinstance(target, ast.Name) and not _is_final(node) and not _is_filled(node.value):
                yield target.id


def _attributes(cls: ast.ClassDef) -> Iterator[str]:
    """Attributes of `self` and fields with a factory, where objects of the class can change."""
    if not any("frozen" in ast.unparse(one) for one in cls.decorator_list):
        for node in cls.body:
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and _has_factory(node.value)
            ):
                yield node.target.id
    for node in ast.walk(cls):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not _grows(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        flat = [
            one for target in targets for one in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        for target in flat:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def _grows(value: ast.expr) -> bool:
    """An empty display, a comprehension, or a call that makes a container."""
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
    """`<tool>.<argument>` of each text, list and object without a bound."""
    for tool, arguments in classes:
        for attribute in attrs.fields(attrs.resolve_types(arguments)):
            kinds = set(getattr(attribute.type, "__args__", (attribute.type,))) - {type(None)}
            if not kinds <= set(SCALARS) and attribute.metadata.get("bound") is None:
                yield f"{tool}.{attribute.name}"


def argument_classes() -> list[tuple[str, type[Any]]]:
    """Every tool with the class of its arguments."""
    return [(tool.name, tool.arguments) for tool in all_tools()]


def find_query_parameters(package: Path) -> Iterator[str]:
    """The query parameters, headers aside, that functions of the front read; those of pages as one."""
    pages = package / "front" / "console"
    for path in sorted((package / "front").rglob("*.py")):
        if pages in path.parents:
            yield "of a page"
            continue
        yield from parameters_of(path.read_text())


def parameters_of(source: str) -> Iterator[str]:
    """The names that are looked up where a query is parsed."""
    if "parse_qs" not in source and "request.args" not in source:
        return
    for function in nodes_of(source):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.unparse(function)
        if "parse_qs" not in text and "request.args" not in text:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _name(node.func) in ("get", "getlist") and node.args:
                yield from _texts(node.args[0])
            elif isinstance(node, ast.comprehension):
                yield from _texts(node.iter)
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("args"):
                yield from _texts(node.slice)


def _texts(node: ast.expr) -> Iterator[str]:
    for item in node.elts if isinstance(node, ast.Tuple) else [node]:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
