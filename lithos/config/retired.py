"""Settings that are gone, each with what to do instead: a key that is still set is named and ignored."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from lithos.config.catalogue import variable_of

_SCRAPE: Final = "Metrics are no longer exported; have your collector scrape `/metrics`."

#: One sentence for each key, sorted by key.
RETIRED: Final[Mapping[str, str]] = MappingProxyType({
    "telemetry.console_fallback": _SCRAPE,
    "telemetry.enabled": _SCRAPE,
    "telemetry.endpoint": _SCRAPE,
    "telemetry.environment": _SCRAPE,
    "telemetry.export_interval_ms": _SCRAPE,
    "telemetry.service_name": _SCRAPE,
})  # fmt: skip

#: Sections that hold retired keys.
RETIRED_SECTIONS: Final = frozenset(key.rpartition(".")[0] for key in RETIRED)

#: Environment variables that set retired keys.
RETIRED_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({
    **{variable_of(key): sentence for key, sentence in RETIRED.items()},
    "LITHOS_ENVIRONMENT": _SCRAPE,
    "LITHOS_OTEL_ENABLED": _SCRAPE,
})  # fmt: skip


def retired_warning(where: str, sentence: str) -> str:
    """The warning for a retired key or variable; `where` names it and its file."""
    return f"{where} is no longer used and is ignored. {sentence}"
