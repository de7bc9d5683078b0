"""Structure of the source code: its modules, and the package and role of each module."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "lithos"
#: Roles in order. A module may import modules of the same role and of earlier roles in its package. `rows`,
#: `files` and `index` modules block.
ROLES: Final = (
    "model", "rows", "files", "index", "settings", "actor", "service", "checks", "state", "tools", "front",
    "pages", "commands", "capability",
)  # fmt: skip


def package_of(module: str) -> str | None:
    """Return the package: `lithos.text.chunk` -> `text`. Return `None` for the root package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def role_of(module: str) -> str | None:
    """Return the role of a module: the first word of its name, or else the role of its folder (`ROLE`)."""
    word = module.rpartition(".")[2].partition("_")[0]
    if word in ROLES:
        return word
    folder = PACKAGE.joinpath(*module.split(".")[1:-1])
    return _role_of_folder(PACKAGE.joinpath(*module.split(".")[1:])) or _role_of_folder(folder)


@cache
def _role_of_folder(folder: Path) -> str | None:
    entrance = folder / "__init__.py"
    if not entrance.is_file():
        return None
    for node in ast.parse(entrance.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ROLE":
            return str(ast.literal_eval(node.value))
    return None


@cache
def modules() -> dict[str, str]:
    """Return the source text of every module. The keys are module names."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {_name_of(path): path.read_text(encoding="utf-8") for path in paths}


def _name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def packages() -> frozenset[str]:
    """Return the names of the modules that are the `__init__` of a folder."""
    return frozenset(_name_of(path) for path in PACKAGE.rglob("__init__.py"))
