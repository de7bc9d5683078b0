"""Import rules of docs/develop.md: permitted imports of packages and roles, and maximum modules in a folder.

The source code is checked, so imports inside functions and under `if TYPE_CHECKING` also count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from lithos.app.capabilities import CAPABILITIES
from tests.house import PACKAGE, ROLES, modules, package_of, packages, role_of
from tests.inventory import nodes_of, parse

#: Each package may import packages on earlier lines. Packages on the same line must not import each other.
ORDER = (
    ("kernel",),
    ("text",),
    ("server",),
    ("events",),
    ("notes",),
    ("history",),
    ("search", "tasks"),
    ("memory",),
    ("proposals", "attachments", "access", "sessions"),
    ("imports",),
    ("upkeep",),
    ("clients", "adopt", "memory_tool"),
    ("vaults",),
    ("app",),
    ("__main__",),
)
LEVELS = {package: level for level, packages in enumerate(ORDER) for package in packages}
#: Packages that no other package imports, so that each package can be left out.
LEAVES = (
    "proposals",
    "attachments",
    "access",
    "sessions",
    "imports",
    "clients",
    "adopt",
    "memory_tool",
    "vaults",
)
BLOCKING = {"rows", "files", "index"}
#: Groups of roles that may import each other.
ALIKE = (BLOCKING, {"front", "pages"}, {"service", "checks"})

STORE_LIBRARIES = {
    "apsw", "model2vec", "numkong", "onnxruntime", "rustworkx", "sqlite3", "tantivy", "tokenizers", "usearch",
}  # fmt: skip
#: The tables of Unicode in a store library. They open no database.
PURE_PARTS = ("apsw.unicode.",)
IMPURE = {
    "anyio", "asyncio", "glob", "io", "logging", "multiprocessing", "os", "random", "secrets", "shutil",
    "socket", "subprocess", "sys", "tempfile", "threading", "time", "trio",
}  # fmt: skip

#: Maximum number of packages directly below the app, and maximum number of modules in one folder (without
#: `__init__`).
MOST_PACKAGES, MOST_MODULES = 19, 15


def imports_of(module: str, source: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Yield every imported name with its line. `from a import b` gives `a.b`, because b may be a module."""
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
    """Return why `module` may not import `target`. Return None if the import is permitted."""
    role, top = role_of(module), target.partition(".")[0]
    if top in STORE_LIBRARIES and role not in BLOCKING and not target.startswith(PURE_PARTS):
        return f"only rows, files and indexes import {top}"
    if role == "model" and top in IMPURE:
        return f"a model is pure and does not import {top}"
    there = _module_in(target, modules()) if top == "lithos" else None
    if there is None or package_of(there) is None:
        return None
    return _check_arrow(module, there)


def _check_arrow(module: str, target: str) -> str | None:
    here, there = package_of(module), package_of(target)
    if here is None:
        return "the package itself imports no other"
    if here != there:
        if LEVELS[there or ""] >= LEVELS[here]:
            return f"{here} stands before {there}, or beside it"
        is_pure = role_of(module) != "model" or role_of(target) == "model"
        return None if is_pure else f"a model imports models alone, and {target} is none"
    mine, its = role_of(module), role_of(target)
    if mine is None or its is None or mine == its or any({mine, its} <= alike for alike in ALIKE):
        return None
    if ROLES.index(its) > ROLES.index(mine):
        return f"{mine} stands below {its}"
    return None


def _called(call: ast.Call) -> str:
    """Return the last part of the called name. Return "" for other calls."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def fouls(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return every rule that one module breaks, with the line."""
    found = [
        (line, why)
        for line, target in imports_of(module, source, is_package=is_package)
        if (why := check_import(module, target)) is not None
    ]
    return [f"{module}:{line}: {why}" for line, why in sorted(set(found))]


def graph_of(sources: Mapping[str, str], packages: Set[str] = frozenset()) -> dict[str, set[str]]:
    """Return the imports of each module.

    A name that is not a module stands for the module that defines it.
    """
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
    """Return one import cycle, whose first module is repeated at the end. Return [] if there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def folder_fouls(folder: Path) -> list[str]:
    """Return the errors of a folder: too many modules, or an `__init__` without a valid docstring."""
    names = {path.stem for path in folder.glob("*.py")}
    if not names:
        return []
    found = []
    if len(names - {"__init__"}) > MOST_MODULES:
        found.append(f"{folder.name}/ has more than {MOST_MODULES} modules: make a sub-folder")
    entrance = folder / "__init__.py"
    text = entrance.read_text(encoding="utf-8") if entrance.exists() else ""
    told = ast.get_docstring(parse(text)) or ""
    if "\n\n" not in told or not re.search(r"\b(must not|not\s+belong\s+here|Never here: )", told):
        found.append(f"{folder.name}/__init__.py: state content, importers and what does not belong here")
    return found


@cache
def imports_within() -> dict[str, set[str]]:
    """Return the import graph of the whole package."""
    return graph_of(modules(), packages())


def imported_by(package: str) -> set[str]:
    """Return the packages that contain a module which imports this package."""
    graph = imports_within()
    return {
        package_of(module) or ""
        for module, targets in graph.items()
        for target in targets
        if package_of(target) == package and package_of(module) != package
    }


def test_every_module_follows_the_import_rules() -> None:
    found = [
        foul
        for module, source in modules().items()
        for foul in fouls(module, source, is_package=module in packages())
    ]
    assert found == []


def test_modules_have_no_import_cycles() -> None:
    graph = imports_within()
    assert len(graph) > 200
    assert sum(map(len, graph.values())) > 1000
    assert find_circle(graph) == []


@pytest.mark.parametrize(
    "imports",
    [
        "from lithos.text.b import f",
        "def g():\n    from . import b",
        "if TYPE_CHECKING:\n    import lithos.text.b",
        "import lithos.text",
    ],
)
def test_import_cycle_is_detected_for_every_import_style(imports: str) -> None:
    sources = {
        "lithos.text": "from .b import f",
        "lithos.text.a": imports,
        "lithos.text.b": "import lithos.text.a",
    }
    assert "lithos.text.a" in find_circle(graph_of(sources, {"lithos.text"}))
    sources["lithos.text.b"] = ""
    assert find_circle(graph_of(sources, {"lithos.text"})) == []


def test_every_folder_is_small_and_states_its_purpose() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}
    assert len(folders) > 20
    assert [foul for folder in sorted(folders) for foul in folder_fouls(folder)] == []


def test_every_package_has_a_position_in_the_order() -> None:
    found = {package_of(module) for module in modules()} - {None}
    assert set(LEVELS) - set(LEAVES) <= found <= set(LEVELS)
    assert len(found - {"app", "__main__"}) <= MOST_PACKAGES


@pytest.mark.parametrize("package", LEAVES)
def test_leaf_package_is_not_imported_by_other_packages(package: str) -> None:
    """The folder of a leaf can be removed. Only packages that name it in `needs` must change."""
    needing = {each.name for each in CAPABILITIES if package in each.needs}
    assert imported_by(package) <= {"app"} | needing


def test_suppress_is_not_used_for_all_exceptions() -> None:
    """`except Exception` needs a reason by ruff rule BLE001. This rule does not check `suppress`."""
    wide = re.compile(r"suppress\([^)]*\b(?:Base)?Exception\b")
    assert [name for name, text in modules().items() if wide.search(text)] == []


CHUNK, FILES = "lithos.text.chunk", "lithos.notes.files.files"


@pytest.mark.parametrize(
    ("module", "text", "count"),
    [
        (CHUNK, "import os.path", 1),
        (CHUNK, "def f():\n    import random", 1),
        (CHUNK, "if TYPE_CHECKING:\n    from logging import Logger", 1),
        (CHUNK, "from lithos.kernel.configuration.catalogue import Config", 1),
        (CHUNK, "from ..notes.files import files", 1),
        (CHUNK, "import re\nfrom lithos import __version__\nfrom lithos.text.query import plain_words", 0),
        ("lithos.text", "from ..notes.files.files import read_at", 1),
        (FILES, "import lithos.notes.writing.actor_writer", 1),
        (FILES, "import lithos.history.model.undo", 1),
        (FILES, "import tantivy\nimport time\nfrom lithos.text import chunk", 0),
        ("lithos.search.service.hybrid", "import_module('tantivy')", 1),
        ("lithos.search.service.hybrid", "from lithos.tasks.model.task import Task", 1),
        ("lithos.search.service.hybrid", "from lithos.notes.catalogue.catalogue import Catalogue", 0),
        ("lithos.tasks.rows.tasks", "from lithos.tasks.service.running_claims import Claims", 1),
        ("lithos.tasks.service.running_claims", "from lithos.tasks.rows.tasks import TaskRows", 0),
        ("lithos", "from .text import chunk", 1),
        ("lithos.__main__", "from lithos.app.main import main", 0),
    ],
)
def test_only_imports_that_break_the_order_are_reported(module: str, text: str, count: int) -> None:
    assert len(fouls(module, text, is_package=module in ("lithos", "lithos.text"))) == count
