"""Sections of the configuration. Each capability declares its own sections in `lithos/NAME/settings.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from lithos.kernel.discovery import declared_in


@frozen
class SettingsSection:
    """One section of the settings. `kind` is an attrs class, and `setting` creates its fields.

    All keys are complete, such as `events.enabled`. In the section without a name, keys have no dot.
    """

    name: str
    kind: type[Any]
    #: Position of the section in every list. The lowest number comes first.
    place: int
    #: Whether all vaults of a process use the values from the default vault.
    is_shared: bool = False
    #: Older setting names that are still accepted, each with the current name.
    older: Mapping[str, str] = {}
    #: Short environment variables and their settings. A long environment variable overrides its short form.
    short: Mapping[str, str] = {}
    #: Retired settings by key, each with the reason. A section key covers all settings in that section.
    retired: Mapping[str, str] = {}
    #: Short environment variables of retired settings, each with the reason.
    retired_short: Mapping[str, str] = {}

    @property
    def prefix(self) -> str:
        """Return the text with which all keys of this section begin."""
        return f"{self.name}." if self.name else ""


def find_sections() -> tuple[SettingsSection, ...]:
    """Return the `SETTINGS` of every package with a `settings.py`, in the order of their `place`.

    A missing package declares no settings. No `capability.py` is imported here, because that would take more
    than a second, and every command reads the configuration first.
    """
    declared = (section for module in declared_in("settings") for section in module.SETTINGS)
    return tuple(sorted(declared, key=lambda section: section.place))
