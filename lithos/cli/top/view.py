"""The view model of `lithos top`: parses scrapes of `/metrics` and computes rates between two polls. Pure.

A histogram is cumulative since the server started; the difference between two scrapes gives the durations in
between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import inf
from typing import Any, Final

from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

#: Histograms that are read, and the label that tells their rows apart; other labels are added up.
TOOLS, ACTORS = "lithos_tool_duration_seconds", "lithos_actor_processing_seconds"
_ROWS: Final[Mapping[str, str]] = {TOOLS: "tool", ACTORS: "actor"}


@frozen
class Histogram:
    """Durations: `counts[i]` took at most `bounds[i]` seconds; the last bound is infinite, `total` a sum."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    @property
    def count(self) -> float:
        """How many there were."""
        return self.counts[-1]

    def since(self, earlier: Histogram | None) -> Histogram:
        """What came after `earlier`, None for the beginning."""
        if earlier is None:
            return self
        counts = tuple(now - then for now, then in zip(self.counts, earlier.counts, strict=True))
        return Histogram(self.bounds, counts, self.total - earlier.total)

    def quantile(self, share: float) -> float | None:
        """The seconds that a `share` of all took at most, None when there were none.

        Inside a bucket it is interpolated, beyond the last finite bound it is that bound, as in Prometheus.
        """
        if not self.count:
            return None
        rank = share * self.count
        steps = pairwise(zip((0.0, *self.bounds), (0.0, *self.counts), strict=True))
        for (lower, before), (upper, here) in steps:
            if here >= rank and here > before:
                return lower if upper == inf else lower + (upper - lower) * (rank - before) / (here - before)
        return self.bounds[-2]  # rounding kept the rank above every count


@frozen
class Scrape:
    """Single values by name, others by name and first label, added up over the rest; histograms by row."""

    values: Mapping[str, float]
    labelled: Mapping[str, Mapping[str, float]]
    histograms: Mapping[str, Mapping[str, Histogram]]

    def value(self, name: str) -> float:
        """A value without labels; 0 when the server dropped it for this once."""
        return self.values.get(name, 0.0)


_NOTHING: Final = Scrape({}, {}, {})


def read_scrape(text: str) -> Scrape:
    """Read Prometheus text; raises `ValueError` when it is none."""
    values: dict[str, float] = {}
    labelled: dict[str, dict[str, float]] = {}
    histograms: dict[str, dict[str, Histogram]] = {}
    for family in text_string_to_metric_families(text):
        if family.name in _ROWS:
            histograms[family.name] = _read_histograms(family.samples, _ROWS[family.name])
        elif family.type != "histogram":
            for sample in family.samples:
                if not sample.labels:
                    values[sample.name] = sample.value
                else:
                    rows = labelled.setdefault(sample.name, {})
                    row = next(iter(sample.labels.values()))
                    rows[row] = rows.get(row, 0.0) + sample.value
    return Scrape(values, labelled, histograms)


def _read_histograms(samples: list[Sample], label: str) -> dict[str, Histogram]:
    """By row; all have the same bounds."""
    buckets: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    totals: defaultdict[str, float] = defaultdict(float)
    for sample in samples:
        row = sample.labels[label]
        if sample.name.endswith("_bucket"):
            buckets[row][float(sample.labels["le"])] += sample.value
        elif sample.name.endswith("_sum"):
            totals[row] += sample.value
    return {
        row: Histogram(tuple(sorted(counts)), tuple(counts[bound] for bound in sorted(counts)), totals[row])
        for row, counts in buckets.items()
    }


MIB: Final = 1024 * 1024


@frozen
class Poll:
    """A snapshot of one server; `at` is seconds of a monotonic clock."""

    at: float
    url: str
    scrape: Scrape
    #: The body of `/health`.
    health: Mapping[str, Any]
    #: Rows of `lithos_task_list` with claims.
    tasks: Sequence[Mapping[str, Any]]


@frozen
class ToolRow:
    """Calls of one tool between two polls: a second, and milliseconds (None when there were none).

    `calls` counts since the server started.
    """

    tool: str
    per_s: float
    errors_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    calls: int


@frozen
class ActorRow:
    """One actor: messages waiting now; batches between two polls, and the share of time they took."""

    actor: str
    waiting: int
    batches_per_s: float
    busy: float
    p50_ms: float | None
    p95_ms: float | None
    restarts: int


@frozen
class ClaimRow:
    """One running claim."""

    task_id: str
    title: str
    aspect: str
    agent: str
    expires_at: str
    left_s: float


@frozen
class View:
    """Everything about one server; rates are a second, of the time between two polls.

    `processor` is a share of one core, `components` are those of `/health`.
    """

    url: str
    version: str
    status: str
    interval_s: float
    uptime_s: float
    documents: int
    calls_per_s: float
    processor: float
    memory_mib: float
    listeners: int
    head: int
    components: Mapping[str, Mapping[str, Any]]
    tools: tuple[ToolRow, ...]
    actors: tuple[ActorRow, ...]
    claims: tuple[ClaimRow, ...]


def compare(earlier: Poll, later: Poll) -> View:
    """What happened between two polls; a poll compared with itself tells the state, all rates are 0.

    When the server was restarted in between, what the new one counted so far is what happened.
    """
    seconds = later.at - earlier.at
    before = earlier.scrape if _started(earlier) == _started(later) else _NOTHING
    tools = _tool_rows(before, later.scrape, seconds)
    now = datetime.fromisoformat(later.health["timestamp"])
    value = later.scrape.value
    processor = value("process_cpu_seconds_total") - before.value("process_cpu_seconds_total")
    return View(
        url=later.url,
        version=str(later.health["version"]),
        status=str(later.health["status"]),
        interval_s=round(seconds, 3),
        uptime_s=round(max(0.0, now.timestamp() - _started(later)), 1),
        documents=int(value("lithos_documents")),
        calls_per_s=round(sum(row.per_s for row in tools), 1),
        processor=round(_rate(processor, seconds), 3),
        memory_mib=round(value("process_resident_memory_bytes") / MIB, 1),
        listeners=int(value("lithos_sse_active_clients") + value("lithos_ws_active_clients")),
        head=int(value("lithos_event_head_seq")),
        components=later.health["components"],
        tools=tools,
        actors=_actor_rows(before, later.scrape, seconds),
        claims=_claim_rows(later.tasks, now),
    )


def _started(poll: Poll) -> float:
    return poll.scrape.value("process_start_time_seconds")


def _rate(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0


def _tool_rows(before: Scrape, later: Scrape, seconds: float) -> tuple[ToolRow, ...]:
    """The busiest first."""
    failed, failed_before = (s.labelled.get("lithos_tool_errors_total", {}) for s in (later, before))
    earlier = before.histograms.get(TOOLS, {})
    rows: list[ToolRow] = []
    for tool, all_calls in later.histograms.get(TOOLS, {}).items():
        calls = all_calls.since(earlier.get(tool))
        errors = failed.get(tool, 0) - failed_before.get(tool, 0)
        rows.append(
            ToolRow(
                tool=tool,
                per_s=round(_rate(calls.count, seconds), 1),
                errors_per_s=round(_rate(errors, seconds), 1),
                p50_ms=_ms(calls, 0.5),
                p95_ms=_ms(calls, 0.95),
                calls=int(all_calls.count),
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.per_s, -row.calls, row.tool)))


def _actor_rows(before: Scrape, later: Scrape, seconds: float) -> tuple[ActorRow, ...]:
    """By name, so that each stays where it is."""
    restarts, nothing = later.labelled.get("lithos_actor_restarts", {}), Histogram((), (0.0,), 0.0)
    earlier, now = (scrape.histograms.get(ACTORS, {}) for scrape in (before, later))
    rows: list[ActorRow] = []
    for actor, waiting in sorted(later.labelled.get("lithos_actor_mailbox_depth", {}).items()):
        done = now.get(actor, nothing).since(earlier.get(actor))
        rows.append(
            ActorRow(
                actor=actor,
                waiting=int(waiting),
                batches_per_s=round(_rate(done.count, seconds), 1),
                busy=round(_rate(done.total, seconds), 3),
                p50_ms=_ms(done, 0.5),
                p95_ms=_ms(done, 0.95),
                restarts=int(restarts.get(actor, 0)),
            )
        )
    return tuple(rows)


def _claim_rows(tasks: Sequence[Mapping[str, Any]], now: datetime) -> tuple[ClaimRow, ...]:
    """The one that runs out first comes first."""
    rows = [
        ClaimRow(
            task_id=task["id"],
            title=task["title"],
            aspect=claim["aspect"],
            agent=claim["agent"],
            expires_at=claim["expires_at"],
            left_s=round((datetime.fromisoformat(claim["expires_at"]) - now).total_seconds(), 1),
        )
        for task in tasks
        for claim in task["claims"]
    ]
    return tuple(sorted(rows, key=lambda row: (row.left_s, row.task_id, row.aspect)))


def _ms(durations: Histogram, share: float) -> float | None:
    seconds = durations.quantile(share)
    return None if seconds is None else round(1000 * seconds, 2)
