"""The sections of the configuration: each capability declares its own in `lithos/NAME/settings.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from lithos.kernel.discovery import declared_in


@frozen
class SettingsSection:
    """One section: `kind` is an attrs class whose fields are made by `setting`.

    All keys are given in full, such as `events.enabled`. The keys of a section without a name have no dot.
    """

    name: str
    kind: type[Any]
    #: The position among all sections in every list; the lowest is first.
    place: int
    #: Whether all vaults of one process have the values of the default vault.
    is_shared: bool = False
    #: Older names that are still read, and the settings they stand for.
    older: Mapping[str, str] = {}
    #: Short environment variables, weaker than the long ones, and the settings they stand for.
    short: Mapping[str, str] = {}
    #: Retired settings, each with the reason. The key of a section stands for all its settings.
    retired: Mapping[str, str] = {}
    #: Environment variables that were short for retired settings, each with the reason.
    retired_short: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """The beginning of the key of each setting."""
        return f"{self.name}." if self.name else ""


def find_sections() -> tuple[SettingsSection, ...]:
    """Return the `SETTINGS` of every package that has a `settings.py`, in the order of their places.

    A package that is missing declares nothing. No `capability.py` is imported: all of them together take
    more than a second, and every command reads the configuration first.
    """
    declared = (section for module in declared_in("settings") for section in module.SETTINGS)
    return tuple(sorted(declared, key=lambda section: section.place))
