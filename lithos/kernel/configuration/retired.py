"""Retired settings. A configuration with a retired setting still works, and the user gets the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from lithos.kernel.configuration.catalogue import DECLARED, variable_of

#: Retired settings by key, sorted, each with the reason. A section key covers all settings in that section.
RETIRED: Final[Mapping[str, str]] = MappingProxyType(
    dict(sorted((key, reason) for section in DECLARED for key, reason in section.retired.items()))
)

#: Short environment variables of retired settings.
SHORT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {name: reason for section in DECLARED for name, reason in section.retired_short.items()}
)


def drop_retired(
    settings: Iterable[tuple[str, Any]], source: str, warnings: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the settings of `source` that are not retired.

    Add a line to `warnings` for each retired setting.
    """
    for key, value in settings:
        if key in RETIRED:
            warnings.append(f"{key} in {source} is no longer used and is ignored: {RETIRED[key]}")
        else:
            yield key, value


def tell_retired_variable(name: str) -> str | None:
    """Return the warning about the environment variable of a retired setting. Return None for other names."""
    variables = {**SHORT_VARIABLES, **{variable_of(key): reason for key, reason in RETIRED.items()}}
    for variable, reason in variables.items():
        if name == variable or name.startswith(f"{variable}__"):
            return f"environment variable {name} is no longer used and is ignored: {reason}"
    return None
