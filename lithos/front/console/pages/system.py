"""`/console/system`: checks, indexes, journal, disk, configuration, and the last hour as charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from attrs import frozen
from prometheus_client.core import Metric
from quart import Blueprint, Response, request

from lithos.config.catalogue import SETTINGS, Config, as_public_dict
from lithos.core.findings import Finding, ok, warn
from lithos.front.console.charts import Chart, make_chart
from lithos.front.console.console import Console
from lithos.front.console.formats import ago
from lithos.front.console.summary import Summaries, Summary
from lithos.front.server.access import AccessPolicy, open_bind_warning
from lithos.services.upkeep.inspection import Inspection, Place
from lithos.services.upkeep.samples import INTERVAL, Sample

#: Metrics whose gauges the page shows, by the name it uses.
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
#: Places of a chart at least: ten minutes.
LEAST_SLOTS: Final = 40
#: Samples that one row of the table of figures sums up: a minute.
_ROW: Final = 4
#: Any moment: only the distance is told.
START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MILLI, _MEGA = 1e3, 1e6
#: Tokens that are listed.
MOST_TOKENS: Final = 100


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page."""
    app.get("/system")(SystemPage(console, Summaries(console), _make_inspection(console)).system)


@frozen
class SystemPage:
    """The system page of one console."""

    _console: Console
    _summaries: Summaries
    _inspection: Inspection

    async def system(self) -> Response:
        """The page; with `run=1` the checks are made now."""
        parts = self._console.parts
        if request.args.get("run") == "1":
            await self._inspection.run()
        summary = await self._summaries.latest()
        samples = parts.samples.taken
        configuration = list(configured(parts.config, self._console.settings.sources))
        return await self._console.show(
            "system.html",
            summary=summary,
            health=summary.health,
            numbers=summary.numbers,
            inspected=self._inspection.last,
            gauges=_gauges(await parts.gauges.families()),
            head=parts.activity.head,
            charts=charts(samples),
            since=ago(START, START + slots_of(samples) * timedelta(seconds=INTERVAL)),
            minutes=list(minutes(samples)),
            changed=[each for each in configuration if each.source is not None],
            sections=sections(configuration),
            indexes=_indexes(summary),
            most_tokens=MOST_TOKENS,
            tokens=parts.keyring.named if self._console.principal.may("admin") else (),
        )


def charts(samples: Sequence[Sample]) -> tuple[Chart, ...]:
    """The last hour: rates, durations in milliseconds, memory in megabytes."""
    slots = slots_of(samples)

    def scaled(name: str, factor: float) -> list[float | None]:
        values = [getattr(each, name) for each in samples]
        return [None if value is None else value * factor for value in values]

    def rate(name: str) -> list[float | None]:
        return [each.a_minute(getattr(each, name)) for each in samples]

    return (
        make_chart("writes", "Writes", "a minute", [("writes", rate("writes"))], slots),
        make_chart("searches", "Searches", "a minute", [("searches", rate("searches"))], slots),
        make_chart(
            "calls", "Tool calls", "a minute", [("calls", rate("calls")), ("refused", rate("errors"))], slots
        ),
        make_chart(
            "write-times",
            "Write time",
            "ms",
            [("median", scaled("write_p50", _MILLI)), ("95 %", scaled("write_p95", _MILLI))],
            slots,
        ),
        make_chart(
            "search-times",
            "Search time",
            "ms",
            [("median", scaled("search_p50", _MILLI)), ("95 %", scaled("search_p95", _MILLI))],
            slots,
        ),
        make_chart("memory", "Memory", "MB", [("resident", scaled("memory", 1 / _MEGA))], slots),
        make_chart("subscribers", "Open event streams", "", [("streams", scaled("subscribers", 1.0))], slots),
    )


def slots_of(samples: Sequence[Sample]) -> int:
    """How many places the charts have."""
    return max(len(samples), LEAST_SLOTS)


@frozen
class Minute:
    """Some samples in one row: counts summed, the highest of the durations (seconds), the last memory."""

    at: Any
    calls: float
    errors: float
    writes: float
    searches: float
    write_p95: float | None
    search_p95: float | None
    memory: int


def minutes(samples: Sequence[Sample]) -> Iterator[Minute]:
    """The samples as rows, newest first."""
    for end in range(len(samples), 0, -_ROW):
        group = samples[max(end - _ROW, 0) : end]
        yield Minute(
            group[-1].at,
            sum(each.calls for each in group),
            sum(each.errors for each in group),
            sum(each.writes for each in group),
            sum(each.searches for each in group),
            max((each.write_p95 for each in group if each.write_p95 is not None), default=None),
            max((each.search_p95 for each in group if each.search_p95 is not None), default=None),
            group[-1].memory,
        )


def _make_inspection(console: Console) -> Inspection:
    services, settings = console.parts, console.settings
    storage = services.config.storage
    policy = AccessPolicy(settings.host, keyring=services.keyring)

    def configuration() -> list[Finding]:
        findings = [warn(f"{each}.", "Correct the name, or take it out.") for each in settings.warnings]
        told = (open_bind_warning(policy), services.keyring.trouble)
        findings += [warn(each, "") for each in told if each is not None]
        return [*findings, ok("All values are known and allowed.")]

    return Inspection(
        Place(storage.data_dir, storage.notes_folder, storage.vault),
        configuration,
        services.catalogue,
        services.live_check,
        services.clock,
    )


@frozen(kw_only=True)
class ConfiguredSetting:
    """One setting as a person may see it: `value` in words, `source` None for a default."""

    key: str
    value: str
    source: str | None
    description: str


def configured(config: Config, sources: Mapping[str, str]) -> Iterator[ConfiguredSetting]:
    """Every setting in the order of the sections; of a secret only whether it is set."""
    public = as_public_dict(config)
    for key, setting in SETTINGS.items():
        value: Any = public
        for name in key.split("."):
            value = value[name]
        yield ConfiguredSetting(
            key=key,
            value=_in_words(value) if not setting.secret else ("not set" if value is None else "set"),
            source=sources.get(key),
            description=setting.description,
        )


def _in_words(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return str(value)


def sections(settings: Sequence[ConfiguredSetting]) -> list[tuple[str, list[ConfiguredSetting]]]:
    """The settings by the first word of their keys."""
    return [(name, list(group)) for name, group in groupby(settings, lambda each: each.key.partition(".")[0])]


@frozen
class IndexLine:
    """One index: how many of how many it has."""

    name: str
    done: int
    total: int
    note: str


def _indexes(summary: Summary) -> list[IndexLine]:
    told = summary.numbers
    if told is None:
        return []
    tier = str(told["embedding_tier"])
    lines = [
        IndexLine("Full text", told["tantivy_doc_count"], told["documents"], "notes"),
        IndexLine("Meaning", told["chunks"], max(told["chunks"], 0), "chunks"),
    ]
    if tier != "static" or told["embedding_done"]:
        lines.append(IndexLine("Accurate tier", told["embedding_done"], told["embedding_total"], "chunks"))
    return lines


def _gauges(families: Sequence[Metric]) -> dict[str, float]:
    """The gauges the page shows; those that could not be asked are missing."""
    values = {family.name: family.samples[0].value for family in families if family.samples}
    return {name: values[metric] for name, metric in _GAUGES.items() if metric in values}
