"""What capabilities declare in light modules, which programs read that start no server.

Importing the capabilities themselves takes ten times as long as all else that a command does.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]


def declared_in(role: str) -> Iterator[ModuleType]:
    """The modules of this name, one of each package of Lithos that has it, or of a package within."""
    found = [path for pattern in (f"*/{role}.py", f"*/*/{role}.py") for path in _PACKAGE.glob(pattern)]
    for path in sorted(found):
        package = ".".join((_PACKAGE.name, *path.relative_to(_PACKAGE).parts[:-1]))
        if (module := import_if_there(package, role)) is not None:
            yield module


def import_if_there(package: str, module: str) -> ModuleType | None:
    """A module of a package, or None where it was left out. One that is broken raises as ever."""
    name = f"{package}.{module}"
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if not name.startswith(f"{missing.name}.") and missing.name != name:
            raise
        return None
