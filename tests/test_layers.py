"""The referee of docs/develop.md: which room may import what, and how full a folder is.

It reads the source, so imports inside functions and under `if TYPE_CHECKING` count too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.inventory import nodes_of, parse

PACKAGE = Path(__file__).parents[1] / "lithos"

#: Lowest first: a room imports itself and what stands before it.
CAPABILITIES = (
    "notes", "history", "search", "tasks", "events", "memory", "proposals", "attachments", "access",
    "imports", "upkeep", "clients", "vaults",
)  # fmt: skip
ROOMS = (
    "core", "stores", "catalogue", "actors", "services", "tools", "front", "server", *CAPABILITIES, "app",
    "cli", "__main__",
)  # fmt: skip
LEAVES = ("config", "kernel", "metrics", "telemetry")

STORE_LIBRARIES = {
    "apsw", "model2vec", "numkong", "onnxruntime", "rustworkx", "sqlite3", "tantivy", "tokenizers", "usearch",
}  # fmt: skip
IMPURE = {
    "anyio", "asyncio", "glob", "io", "logging", "multiprocessing", "os", "random", "secrets", "shutil",
    "socket", "subprocess", "sys", "tempfile", "threading", "time", "trio",
}  # fmt: skip

#: Modules side by side in one folder, `__init__` aside.
MOST_MODULES = 15


def room_of(module: str) -> str | None:
    """`lithos.core.text` -> `core`; the package itself has no room."""
    parts = module.split(".")
    if len(parts) > 2 and parts[2] == "settings":  # of any capability: its part of the configuration
        return "config"
    return parts[1] if len(parts) > 1 else None


def imports_of(module: str, source: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every imported name with its line; `from a import b` gives `a.b`, since b may be a module."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node, is_package=is_package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _dynamic_import(node)


def _absolute(module: str, node: ast.ImportFrom, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parents = module.split(".")
    kept = parents[: len(parents) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _dynamic_import(call: ast.Call) -> Iterator[tuple[int, str]]:
    names = _called(call) in ("import_module", "__import__")
    if names and call.args and isinstance(call.args[0], ast.Constant):
        yield call.lineno, str(call.args[0].value)


def check_import(module: str, target: str) -> str | None:
    """Why `module` may not import `target`, or None."""
    here = room_of(module)
    top = target.partition(".")[0]
    if top in STORE_LIBRARIES and here != "stores":
        return f"only stores/ imports {top}"
    if here == "core" and top in IMPURE:
        return f"core/ is pure and does not import {top}"
    there = room_of(target) if top == "lithos" else None
    if there is None or there == here or (there not in ROOMS and there not in LEAVES):
        return None
    return _check_arrow(here, there)


def _check_arrow(here: str | None, there: str) -> str | None:
    if here is None:
        return "the package itself imports no room"
    if here in LEAVES:
        return f"{here} is a leaf and imports nothing of lithos"
    if there in LEAVES:
        return f"core/ does not import {there}" if here == "core" else None
    if here in ROOMS and ROOMS.index(there) > ROOMS.index(here):
        return f"{here} stands below {there}"
    return None


def _called(call: ast.Call) -> str:
    """The last part of a called name, "" for other calls."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def fouls(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Every broken rule of one module, with its line."""
    found = [
        (line, why)
        for line, target in imports_of(module, source, is_package=is_package)
        if (why := check_import(module, target)) is not None
    ]
    return [f"{module}:{line}: {why}" for line, why in sorted(set(found))]


def graph_of(sources: Mapping[str, str], packages: Set[str] = frozenset()) -> dict[str, set[str]]:
    """Module to the modules it imports; a name that is no module stands for the module it is taken from."""
    return {
        module: {
            found
            for _, target in imports_of(module, source, is_package=module in packages)
            if (found := _module_in(target, sources)) is not None
        }
        for module, source in sources.items()
    }


def _module_in(target: str, sources: Mapping[str, str]) -> str | None:
    while target and target not in sources:
        target = target.rpartition(".")[0]
    return target or None


def find_circle(graph: Mapping[str, Set[str]]) -> list[str]:
    """One circle of imports, first module named again at its end; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def folder_fouls(folder: Path) -> list[str]:
    """What is wrong with a folder of modules: too many of them, or an `__init__` that does not receive."""
    names = {path.stem for path in folder.glob("*.py")}
    if not names:
        return []
    found = []
    if len(names - {"__init__"}) > MOST_MODULES:
        found.append(f"{folder.name}/ has more than {MOST_MODULES} modules: make a sub-folder")
    entrance = folder / "__init__.py"
    text = entrance.read_text(encoding="utf-8") if entrance.exists() else ""
    told = ast.get_docstring(parse(text)) or ""
    if told.count("\n") < 2 or "\nNever here: " not in told:
        found.append(
            f"{folder.name}/__init__.py: say what lives here, who may enter, `Never here: ` what; a line each"
        )
    return found


@cache
def modules() -> dict[str, str]:
    """The text of every module by its name."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {_name_of(path): path.read_text(encoding="utf-8") for path in paths}


def _name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def packages() -> frozenset[str]:
    """The names of the modules that are the entrance of a folder."""
    return frozenset(_name_of(path) for path in PACKAGE.rglob("__init__.py"))


@cache
def imports_within() -> dict[str, set[str]]:
    """The graph of the whole package."""
    return graph_of(modules(), packages())


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = imports_within()
    assert len(graph) > 200
    assert sum(map(len, graph.values())) > 1000
    assert find_circle(graph) == []


@pytest.mark.parametrize(
    "imports",
    [
        "from lithos.core.b import f",
        "def g():\n    from . import b",
        "if TYPE_CHECKING:\n    import lithos.core.b",
        "import lithos.core",
    ],
)
def test_a_circle_is_found_however_it_is_imported(imports: str) -> None:
    sources = {
        "lithos.core": "from .b import f",
        "lithos.core.a": imports,
        "lithos.core.b": "import lithos.core.a",
    }
    assert "lithos.core.a" in find_circle(graph_of(sources, {"lithos.core"}))
    sources["lithos.core.b"] = ""
    assert find_circle(graph_of(sources, {"lithos.core"})) == []


def test_every_folder_is_small_and_says_what_it_is_for() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}
    assert len(folders) > 20
    assert [foul for folder in sorted(folders) for foul in folder_fouls(folder)] == []


def test_the_package_itself_is_small() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES


def test_nothing_suppresses_every_exception() -> None:
    """`except Exception` needs a reason: ruff's BLE001, which does not look at `suppress`."""
    wide = re.compile(r"suppress\([^)]*\b(?:Base)?Exception\b")
    assert [name for name, text in modules().items() if wide.search(text)] == []
