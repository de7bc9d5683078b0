"""Sections of the configuration. Each capability declares its own sections in `lithos/NAME/settings.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from lithos.kernel.discovery import declared_in


@frozen
class SettingsSection:
    """One section of the settings. `kind` is an attrs class whose fields `setting` creates.

    All keys are written in full, such as `events.enabled`. Keys of the section without a name have no dot.
    """

    name: str
    kind: type[Any]
    #: Position among all sections in every list, lowest first.
    place: int
    #: Whether all vaults of a process use the values of the default vault.
    is_shared: bool = False
    #: Older setting names that are still read, each with its current name.
    older: Mapping[str, str] = {}
    #: Short environment variables, which the long ones override, each with its setting.
    short: Mapping[str, str] = {}
    #: Retired settings by key, each with the reason. The key of a section covers all settings in it.
    retired: Mapping[str, str] = {}
    #: Short environment variables of retired settings, each with the reason.
    retired_short: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """Return the part that all keys of this section begin with."""
        return f"{self.name}." if self.name else ""


def find_sections() -> tuple[SettingsSection, ...]:
    """Return the `SETTINGS` of every package that has a `settings.py`, ordered by their places.

    A missing package declares no settings. No `capability.py` is imported here: importing all of them takes
    more than a second, and every command reads the configuration first.
    """
    declared = (section for module in declared_in("settings") for section in module.SETTINGS)
    return tuple(sorted(declared, key=lambda section: section.place))
