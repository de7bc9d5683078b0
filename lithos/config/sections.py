"""The sections of the configuration: each capability declares its own in `lithos/NAME/settings.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from attrs import frozen

PACKAGE: Final = Path(__file__).parents[1]


@frozen
class Section:
    """One section: a class of frozen values whose fields are made by `setting`.

    All keys are whole, such as `events.enabled`. The keys of a section without a name have no dot.
    """

    name: str
    kind: type[Any]
    #: Where it stands among all sections; lowest first.
    place: int
    #: Whether a process that serves several vaults has it once.
    is_shared: bool = False
    #: Older names that are still read, and the settings they stand for.
    older: Mapping[str, str] = {}
    #: Short environment variables, weaker than the long ones, and the settings they stand for.
    short: Mapping[str, str] = {}
    #: Settings that it once had, each with the reason. The key of a section stands for all its settings.
    retired: Mapping[str, str] = {}
    #: Environment variables that were short for retired settings, each with the reason.
    retired_short: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """What the keys of its settings begin with."""
        return f"{self.name}." if self.name else ""


def find_sections() -> tuple[Section, ...]:
    """Return the `SETTINGS` of every package that has them, in the order of their places.

    A command reads its configuration in a tenth of the time that importing the capabilities takes, so that
    this looks at nothing of a package but `settings.py`.
    """
    return tuple(sorted(_declared(), key=lambda section: section.place))


def _declared() -> Iterator[Section]:
    for path in PACKAGE.glob("*/settings.py"):
        name = f"{PACKAGE.name}.{path.parent.name}"
        try:
            yield from import_module(f"{name}.settings").SETTINGS
        except ModuleNotFoundError as error:
            if error.name not in (name, f"{name}.settings"):
                raise
