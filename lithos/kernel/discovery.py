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
#: Its modules have such names too, and are no declarations.
_FLOOR: Final = "core"


def declared_in(role: str) -> Iterator[ModuleType]:
    """The modules of this name, one of each package of Lithos that has it."""
    for path in sorted(_PACKAGE.glob(f"*/{role}.py")):
        if path.parent.name == _FLOOR:
            continue
        package = f"{_PACKAGE.name}.{path.parent.name}"
        try:
            yield import_module(f"{package}.{role}")
        except ModuleNotFoundError as missing:
            if missing.name not in (package, f"{package}.{role}"):
                raise
