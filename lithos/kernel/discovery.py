"""Discovery of capability declarations in light modules, for programs that do not start a server.

Importing the capabilities themselves would take ten times as long as the rest of a command.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]


def declared_in(role: str) -> Iterator[ModuleType]:
    """Yield the modules with this name. Each package and subpackage of Lithos has at most one."""
    found = [path for pattern in (f"*/{role}.py", f"*/*/{role}.py") for path in _PACKAGE.glob(pattern)]
    for path in sorted(found):
        package = ".".join((_PACKAGE.name, *path.relative_to(_PACKAGE).parts[:-1]))
        if (module := import_if_there(package, role)) is not None:
            yield module


def import_if_there(package: str, module: str) -> ModuleType | None:
    """Import a module of a package, or return None if the package or the module is missing.

    Errors that the module raises on import are not suppressed.
    """
    name = f"{package}.{module}"
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if not name.startswith(f"{missing.name}.") and missing.name != name:
            raise
        return None
