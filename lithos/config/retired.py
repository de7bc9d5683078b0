"""Settings that Lithos once had: a configuration that still has one starts, and the user is told why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from lithos.config.catalogue import variable_of

_RANKING: Final = "`lithos_retrieve` ranks by hybrid search and what notes were cited for"
_STYLE: Final = (
    "notes of storage.vault are left as their owner writes them, notes of a data directory are managed"
)
_SALIENCE: Final = "salience follows from the counters of a note"
_SCRAPE: Final = "metrics are no longer exported; have your collector scrape `/metrics`"

#: Retired settings by key, sorted, each with the reason. The key of a section stands for all its settings.
RETIRED: Final[Mapping[str, str]] = MappingProxyType({
    "events.enabled": "every change is an event in the journal",
    "events.sse_enabled": "set events.max_sse_clients to 0 to let no client read /events",
    "events.ws_enabled": "set events.max_ws_clients to 0 to let no client read /events/ws",
    "index.max_vanished_fraction": "more than half of the notes must vanish for all to be kept",
    "lcma.coactivation_days": "notes retrieved together are not counted any more",
    "lcma.decay_inactive_days": _SALIENCE,
    "lcma.entity_max_per_doc": "a note has at most 50 entities",
    "lcma.llm": "a worker proposes edges now, see examples/infer_edges.py",
    "lcma.max_enrich_attempts": "a job of the enrich worker is tried three times",
    "lcma.note_type_priors": _RANKING,
    "lcma.ranking": _RANKING,
    "lcma.rerank_note_type_weight": _RANKING,
    "lcma.rerank_salience_weight": _RANKING,
    "lcma.rerank_usage_weight": _RANKING,
    "lcma.rerank_weights": _RANKING,
    "lcma.salience_cited_boost": _SALIENCE,
    "lcma.salience_consolidation_boost": _SALIENCE,
    "lcma.salience_decay_daily_cap": _SALIENCE,
    "lcma.salience_decay_per_day": _SALIENCE,
    "lcma.salience_floor": _SALIENCE,
    "lcma.salience_ignored_penalty": _SALIENCE,
    "lcma.salience_misleading_penalty": _SALIENCE,
    "lcma.temperature_default": "the temperature of a retrieval is 0.5 and changes nothing",
    "lcma.usage_freq_norm_k": _SALIENCE,
    "lcma.usage_freq_weight": _SALIENCE,
    "lcma.usage_recency_halflife_days": _SALIENCE,
    "lcma.usage_recency_weight": _SALIENCE,
    "lcma.wm_eviction_days": "no working memory of tasks is kept any more",
    "search.chunk_max": "no chunk has more than twice the characters of search.chunk_size",
    "storage.broken_frontmatter": _STYLE,
    "storage.file_names": _STYLE,
    "storage.frontmatter": _STYLE,
    "storage.inline_tags": _STYLE,
    "storage.title_from": _STYLE,
    "storage.titles": _STYLE,
    "telemetry": _SCRAPE,
})  # fmt: skip

#: Environment variables that were short for retired settings.
SHORT_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"LITHOS_ENVIRONMENT": _SCRAPE, "LITHOS_OTEL_ENABLED": _SCRAPE}
)


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
    variables = {**SHORT_VARIABLES, **{variable_of(key): reason for key, reason in RETIRED.items()}}
    for variable, reason in variables.items():
        if name == variable or name.startswith(f"{variable}__"):
            return f"environment variable {name} is no longer used and is ignored: {reason}"
    return None
