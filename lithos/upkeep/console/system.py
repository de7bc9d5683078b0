"""`/console/system`: checks, indexes, journal, disk and configuration, and charts of the last hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final

from attrs import evolve, frozen
from prometheus_client.core import Metric
from quart import Blueprint, Response, request

from lithos.events.reading.event_stream import Activity
from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.configuration.catalogue import SETTINGS, Config, as_public_dict
from lithos.server.console.console import Console
from lithos.server.console.formats import Chart, ago, make_chart
from lithos.server.console.labels import in_words
from lithos.server.http.access import AccessPolicy, open_bind_warning
from lithos.server.service_state import Gauges
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.inspection import InspectionReport, shared_inspection
from lithos.upkeep.checks.samples import INTERVAL, ActivitySample, Samples
from lithos.upkeep.console.summary import Summary, shared_summary

#: Metrics with gauges that the page shows, by their key in the template.
_GAUGES: Final[Mapping[str, str]] = {
    "journal": "lithos_event_journal_events",
    "sse": "lithos_sse_active_clients",
    "ws": "lithos_ws_active_clients",
    "versions": "lithos_history_versions",
    "history_bytes": "lithos_history_bytes",
    "disk_free": "lithos_disk_free_bytes",
    "disk_size": "lithos_disk_size_bytes",
    "memory": "process_resident_memory_bytes",
    "descriptors": "process_open_fds",
    "started_in": "lithos_startup_duration_seconds",
    "queue": "lithos_lcma_enrich_queue_depth",
}
#: Minimum number of slots in a chart (for ten minutes).
LEAST_SLOTS: Final = 40
#: Number of samples in one row of the table of figures (for one minute).
_ROW: Final = 4
#: An arbitrary start time. Only time differences matter.
START: Final = datetime(2000, 1, 1, tzinfo=UTC)
A_MINUTE: Final = "a minute"
#: Factors to convert stored values, by unit.
_FACTORS: Final = {"ms": 1e3, "MB": 1 / 1e6, "": 1.0}
#: Key, title and unit of each chart, and its lines. A line is a pair of label and sample field.
CHARTS: Final = (
    ("writes", "Writes", A_MINUTE, (("writes", "writes"),)),
    ("searches", "Searches", A_MINUTE, (("searches", "searches"),)),
    ("calls", "Tool calls", A_MINUTE, (("calls", "calls"), ("refused", "errors"))),
    ("write-times", "Write time", "ms", (("median", "write_p50"), ("95 %", "write_p95"))),
    ("search-times", "Search time", "ms", (("median", "search_p50"), ("95 %", "search_p95"))),
    ("memory", "Memory", "MB", (("resident", "memory"),)),
    ("subscribers", "Open event streams", "", (("streams", "subscribers"),)),
)
#: Maximum number of tokens to list.
MOST_TOKENS: Final = 100


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the system page, and an unlinked page that shows all components to page developers."""
    app.get("/system")(SystemPage(console, shared_summary(console), _make_inspection(console)).system)
    app.get("/components", endpoint="components")(partial(console.show, "components.html"))


@frozen
class SystemPage:
    """The system page of a console."""

    _console: Console
    _summaries: Shared[Summary]
    _inspection: Shared[InspectionReport]

    async def system(self) -> Response:
        """Show the page. With `run=1`, run the checks first."""
        parts = self._console.parts
        if request.args.get("run") == "1":
            await self._inspection.latest()
        summary = await self._summaries.latest()
        samples = parts.get(Samples).taken
        configuration = list(configured(parts.get(Config), self._console.settings.sources))
        return await self._console.show(
            "system.html",
            summary=summary,
            health=summary.health,
            numbers=summary.numbers,
            inspected=self._inspection.last,
            gauges=_gauges(await parts.get(Gauges).families()),
            head=parts.get(Activity).head,
            charts=charts(samples),
            since=ago(START, START + slots_of(samples) * timedelta(seconds=INTERVAL)),
            minutes=list(minutes(samples)),
            changed=[each for each in configuration if each.source is not None],
            sections=sections(configuration),
            indexes=_indexes(summary.numbers),
            most_tokens=MOST_TOKENS,
            **await self._console.panels("system"),
        )


def charts(samples: Sequence[ActivitySample]) -> tuple[Chart, ...]:
    """Return the charts of the last hour: rates, durations in milliseconds and memory in megabytes."""

    def series(name: str, unit: str) -> list[float | None]:
        if unit == A_MINUTE:
            return [each.a_minute(getattr(each, name)) for each in samples]
        values = (getattr(each, name) for each in samples)
        return [None if value is None else value * _FACTORS[unit] for value in values]

    return tuple(
        make_chart(key, title, unit, [(line, series(name, unit)) for line, name in lines], slots_of(samples))
        for key, title, unit, lines in CHARTS
    )


def slots_of(samples: Sequence[ActivitySample]) -> int:
    """Return the number of slots in each chart."""
    return max(len(samples), LEAST_SLOTS)


def minutes(samples: Sequence[ActivitySample]) -> Iterator[Sequence[ActivitySample]]:
    """Yield the samples of each minute, starting with the newest minute."""
    for end in range(len(samples), 0, -_ROW):
        yield samples[max(end - _ROW, 0) : end]


def _make_inspection(console: Console) -> Shared[InspectionReport]:
    services, settings, ring = console.parts, console.settings, console.sessions.keyring
    policy = AccessPolicy(settings.host, keyring=ring)

    def remarks() -> list[str]:
        return [each for each in (open_bind_warning(policy), ring.trouble) if each is not None]

    return shared_inspection(evolve(services.get(Installed), warnings=settings.warnings, remarks=remarks))


@frozen(kw_only=True)
class ConfiguredSetting:
    """One setting for display. `value` is in words, and `source` is None for a default value."""

    key: str
    value: str
    source: str | None
    description: str


def configured(config: Config, sources: Mapping[str, str]) -> Iterator[ConfiguredSetting]:
    """Yield all settings in the order of their sections. For a secret, only whether it is set is shown."""
    public = as_public_dict(config)
    for key, setting in SETTINGS.items():
        value: Any = public
        for name in key.split("."):
            value = value[name]
        yield ConfiguredSetting(
            key=key,
            value=in_words(value) if not setting.secret else ("not set" if value is None else "set"),
            source=sources.get(key),
            description=setting.description,
        )


def sections(settings: Sequence[ConfiguredSetting]) -> list[tuple[str, list[ConfiguredSetting]]]:
    """Group the settings by the first word of their keys."""
    return [(name, list(group)) for name, group in groupby(settings, lambda each: each.key.partition(".")[0])]


def _indexes(told: Mapping[str, Any] | None) -> list[tuple[str, int, int, str]]:
    """Return name, number of indexed notes or passages, total number, and unit of each index."""
    if told is None:
        return []
    lines = [
        ("Full text", told["tantivy_doc_count"], told["documents"], "notes"),
        ("Meaning", told["chunks"], told["chunks"], "chunks"),
    ]
    if told["embedding_tier"] != "static" or told["embedding_done"]:
        lines.append(("Accurate tier", told["embedding_done"], told["embedding_total"], "chunks"))
    return lines


def _gauges(families: Sequence[Metric]) -> dict[str, float]:
    """Return the values of the gauges that the page shows. Unavailable gauges are left out."""
    values = {family.name: family.samples[0].value for family in families if family.samples}
    return {name: values[metric] for name, metric in _GAUGES.items() if metric in values}
