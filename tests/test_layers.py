"""The referee of DESIGN: which room may import what, and who may catch everything.

It reads the source, so imports inside functions and under `if TYPE_CHECKING` count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "lithos"

#: Lowest first: a room imports itself and what stands before it.
ROOMS = ("core", "stores", "actors", "services", "tools", "front", "app", "cli", "__main__")
LEAVES = ("config", "metrics", "otlp", "telemetry")

STORE_LIBRARIES = {"apsw", "model2vec", "numkong", "rustworkx", "sqlite3", "tantivy", "usearch"}
IMPURE = {
    "anyio", "asyncio", "glob", "io", "logging", "multiprocessing", "os", "random", "secrets", "shutil",
    "socket", "subprocess", "sys", "tempfile", "threading", "time", "trio",
}  # fmt: skip

#: Inside these functions a crash is caught, to be counted or reported.
CATCHERS = {
    "lithos.actors.kit": {"supervise"},
    "lithos.services.scouts.dispatch": {"attempt"},
    "lithos.services.enrichment_boundary": {"survive"},
    "lithos.services.diagnosis": {"run_check"},
    "lithos.services.reconcile": {"run_scope"},
}
CATCHING_ROOMS = {"front"}


def room_of(module: str) -> str | None:
    """`lithos.core.text` -> `core`; the package itself has no room."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def imports_of(module: str, tree: ast.AST, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Every imported name with its line; `from a import b` gives `a.b`, since b may be a module."""
    for node in ast.walk(tree):
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
    function = ast.unparse(call.func).rpartition(".")[2]
    if function in ("import_module", "__import__") and call.args and isinstance(call.args[0], ast.Constant):
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


def broad_catches(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Handlers and `suppress` calls that catch everything where that is not allowed."""
    for node, functions in _walk_with_functions(tree, ()):
        allowed = room_of(module) in CATCHING_ROOMS or bool(CATCHERS.get(module, set()) & set(functions))
        if isinstance(node, ast.ExceptHandler):
            caught = _caught_names(node.type)
            if caught & {"BaseException", ""} and not _reraises(node):
                yield node.lineno, "a handler of BaseException must end with a bare `raise`"
            elif "Exception" in caught and not allowed:
                yield node.lineno, "`except Exception` belongs in supervise and front/"
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            names = {name for argument in node.args for name in _caught_names(argument)}
            if names & {"Exception", "BaseException"}:
                yield node.lineno, "suppressing everything hides bugs"


def _walk_with_functions(
    node: ast.AST, functions: tuple[str, ...]
) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    yield node, functions
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        functions = (*functions, node.name)
    for child in ast.iter_child_nodes(node):
        yield from _walk_with_functions(child, functions)


def _caught_names(caught: ast.expr | None) -> set[str]:
    if caught is None:
        return {""}
    return {ast.unparse(part).rpartition(".")[2] for part in getattr(caught, "elts", [caught])}


def _reraises(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def fouls(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Every broken rule of one module, with its line."""
    tree = ast.parse(source)
    found = [
        (line, why)
        for line, target in imports_of(module, tree, is_package=is_package)
        if (why := check_import(module, target)) is not None
    ]
    return [f"{module}:{line}: {why}" for line, why in sorted({*found, *broad_catches(module, tree)})]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), path


@pytest.mark.parametrize(("module", "path"), list(modules()))
def test_the_module_keeps_the_rules(module: str, path: Path) -> None:
    assert fouls(module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py") == []


def test_every_room_is_on_the_plan() -> None:
    rooms = {room_of(module) for module, _ in modules()} - {None}
    assert rooms - {*ROOMS, *LEAVES} == set()
    assert {"core", "stores", "actors", "config", "telemetry"} <= rooms


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lithos.core.text", "import trio"),
        ("lithos.core.text", "import os.path"),
        ("lithos.core.text", "from time import monotonic"),
        ("lithos.core.text", "def f():\n    import random"),
        ("lithos.core.text", "if TYPE_CHECKING:\n    from logging import Logger"),
        ("lithos.core.text", "from lithos.config import Config"),
        ("lithos.core.text", "from lithos import telemetry"),
        ("lithos.core.text", "from ..stores import files"),
        ("lithos.core", "from ..stores.files import read"),
        ("lithos.stores.files", "import lithos.actors.writer"),
        ("lithos.stores.files", "if TYPE_CHECKING:\n    from lithos.actors.writer import Writer"),
        ("lithos.actors.writer", "import usearch.index"),
        ("lithos.actors.writer", "from sqlite3 import connect"),
        ("lithos.services.knowledge", "from lithos import tools"),
        ("lithos.services.knowledge", "importlib.import_module('lithos.tools.notes')"),
        ("lithos.services.knowledge", "import_module('tantivy')"),
        ("lithos.tools.notes", "from lithos.front.mcp import serve"),
        ("lithos.front.http", "from lithos.app import build"),
        ("lithos.app", "from lithos.cli import main"),
        ("lithos.cli", "import apsw"),
        ("lithos.config.load", "from lithos.core.errors import LithosError"),
        ("lithos.config", "from lithos.telemetry import get_logger"),
        ("lithos.telemetry", "import lithos.config"),
        ("lithos", "from lithos.core import model"),
        ("lithos", "from .core import model"),
    ],
)
def test_an_import_against_the_arrow_is_a_foul(module: str, source: str) -> None:
    assert len(fouls(module, source, is_package=module in ("lithos", "lithos.core"))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lithos.core.text", "import re\nfrom datetime import datetime\nfrom lithos.core.model import Note"),
        ("lithos.core.text", "from .model import Note\nfrom . import errors"),
        ("lithos.core.text", "from lithos import __version__"),
        ("lithos.stores.fulltext", "import tantivy\nimport time\nfrom lithos.core import text, model"),
        (
            "lithos.actors.writer",
            "import trio\nfrom lithos.stores.files import read\nfrom lithos.config import Config",
        ),
        (
            "lithos.tools.notes",
            "from lithos.core.errors import LithosError\nfrom lithos.telemetry import get_logger",
        ),
        ("lithos.config.load", "from lithos.config.errors import ConfigError"),
        ("lithos.__main__", "from lithos.cli import main"),
        ("lithos.cli", "import lithos.app"),
    ],
)
def test_an_import_along_the_arrow_is_no_foul(module: str, source: str) -> None:
    assert fouls(module, source) == []


def handler(caught: str, body: str = "pass", function: str = "def f():") -> str:
    return f"{function}\n    try:\n        g()\n    {caught}:\n        {body}\n"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lithos.stores.files", handler("except Exception")),
        ("lithos.stores.files", handler("except (ValueError, Exception) as error")),
        ("lithos.stores.files", handler("except builtins.Exception", "raise")),
        ("lithos.stores.files", handler("except* Exception")),
        ("lithos.stores.files", handler("except")),
        ("lithos.stores.files", handler("except BaseException as error", "raise ValueError from error")),
        ("lithos.stores.files", "with suppress(OSError, Exception):\n    g()"),
        ("lithos.stores.files", "with contextlib.suppress(BaseException):\n    g()"),
        ("lithos.actors.kit", handler("except Exception")),
        ("lithos.actors.writer", handler("except Exception", function="async def supervise():")),
        ("lithos.actors.kit", handler("except BaseException", function="async def supervise():")),
        ("lithos.front.http", handler("except BaseException")),
        ("lithos.front.http", "with suppress(Exception):\n    g()"),
    ],
)
def test_catching_everything_is_a_foul(module: str, source: str) -> None:
    assert len(fouls(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lithos.stores.files", handler("except OSError")),
        ("lithos.stores.files", handler("except BaseException", "raise")),
        ("lithos.actors.kit", handler("except Exception", function="async def supervise():")),
        ("lithos.front.http", handler("except Exception")),
        ("lithos.stores.files", "with suppress(FileNotFoundError):\n    g()"),
    ],
)
def test_catching_what_one_knows_is_no_foul(module: str, source: str) -> None:
    assert fouls(module, source) == []
