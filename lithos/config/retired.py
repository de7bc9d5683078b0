"""Settings that Lithos once had: a configuration that still has one starts, and the user is told why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from lithos.config.catalogue import variable_of

#: Retired settings by key, sorted, each with the reason. The key of a section stands for all its settings.
RETIRED: Final[Mapping[str, str]] = MappingProxyType({
    "lcma.llm": "a worker proposes edges now, see examples/infer_edges.py",
})  # fmt: skip


def drop_retired(
    settings: Iterable[tuple[str, Any]], source: str, warnings: list[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the settings of `source` that are not retired; add a line to `warnings` for each that is."""
    for key, value in settings:
        if key in RETIRED:
            warnings.append(f"{key} in {source} is no longer used and is ignored: {RETIRED[key]}")
        else:
            yield key, value


def tell_retired_variable(name: str) -> str | None:
    """Return the warning about the environment variable of a retired setting; None for any other name."""
    for retired, reason in RETIRED.items():
        variable = variable_of(retired)
        if name == variable or name.startswith(f"{variable}__"):
            return f"environment variable {name} is no longer used and is ignored: {reason}"
    return None
