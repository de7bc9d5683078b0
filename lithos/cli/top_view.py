"""What `lithos top` shows: two polls of a server compared. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import asdict, frozen

from lithos.cli.top_metrics import ACTORS, TOOLS, Histogram, Scrape

MIB: Final = 1024 * 1024


@frozen
class Poll:
    """What one server said at one moment; `at` is seconds of a clock that never jumps."""

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

    def as_json(self) -> dict[str, Any]:
        """Its JSON form, with the names of the fields."""
        return asdict(self)


def compare(earlier: Poll, later: Poll) -> View:
    """What happened between two polls; a poll compared with itself tells the state, all rates are 0.

    When the server was restarted in between, what the new one counted so far is what happened.
    """
    seconds = later.at - earlier.at
    before = earlier.scrape if _started(earlier) == _started(later) else None
    tools = _tool_rows(before, later.scrape, seconds)
    now = datetime.fromisoformat(later.health["timestamp"])
    value = later.scrape.value
    processor = value("process_cpu_seconds_total") - (
        before.value("process_cpu_seconds_total") if before else 0
    )
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


def _tool_rows(before: Scrape | None, later: Scrape, seconds: float) -> tuple[ToolRow, ...]:
    """The busiest first."""
    failed, failed_before = (_rows(scrape, "lithos_tool_errors_total") for scrape in (later, before))
    rows: list[ToolRow] = []
    for tool, all_calls in later.histograms.get(TOOLS, {}).items():
        calls = all_calls.since(_histogram(before, TOOLS, tool))
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


def _actor_rows(before: Scrape | None, later: Scrape, seconds: float) -> tuple[ActorRow, ...]:
    """By name, so that each stays where it is."""
    restarts, nothing = later.rows("lithos_actor_restarts"), Histogram((), (0.0,), 0.0)
    rows: list[ActorRow] = []
    for actor, waiting in sorted(later.rows("lithos_actor_mailbox_depth").items()):
        done = later.histograms.get(ACTORS, {}).get(actor, nothing).since(_histogram(before, ACTORS, actor))
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


def _rows(scrape: Scrape | None, name: str) -> Mapping[str, float]:
    return {} if scrape is None else scrape.rows(name)


def _histogram(scrape: Scrape | None, name: str, row: str) -> Histogram | None:
    return None if scrape is None else scrape.histograms.get(name, {}).get(row)


def _ms(durations: Histogram, share: float) -> float | None:
    seconds = durations.quantile(share)
    return None if seconds is None else round(1000 * seconds, 2)
