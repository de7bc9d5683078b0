"""State of the server: statistics for `lithos_stats`, components for `/health`, and gauges for `/metrics`.

Capabilities register their own values in `lithos.kernel.state`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from inspect import iscoroutinefunction
from operator import attrgetter
from typing import Any, Final

import trio
from attrs import define
from prometheus_client.core import Metric

from lithos import __version__
from lithos.kernel.actors.mailboxes import Mailbox
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Capabilities
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import GaugeSample, Metrics
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.state import Component, Number, Status
from lithos.kernel.values.times import format_time

log = get_logger("lithos.gauges")

#: Seconds for which `/metrics` reuses the component status.
HEALTH_AGE: Final = 10.0
_SEVERITY: Final[Mapping[Status, int]] = {"ok": 0, "warming": 0, "degraded": 1, "unavailable": 2}

_by_place = attrgetter("place")


@define(eq=False, slots=False)
class ServerState:
    """Read-only view of a server's state."""

    _parts: Parts
    _capabilities: Capabilities
    _clock: Clock

    @cached_property
    def _looks(self) -> Sequence[tuple[str, Callable[[], Any]]]:
        """Return the name and the check function of each component, in fixed order."""
        found = sorted((each for one in self._capabilities.listed for each in one.health), key=_by_place)
        return [(each.name, self._parts.bind(each.look)) for each in found]

    @cached_property
    def _numbers(self) -> Sequence[Callable[[], Any]]:
        """Return the functions that provide the statistics. Async functions come first."""
        found = [each for one in self._capabilities.listed for each in one.statistics]
        found.sort(key=iscoroutinefunction, reverse=True)
        return [self._parts.bind(each) for each in found]

    async def stats(self) -> dict[str, Any]:
        """Return the answer of `lithos_stats`."""
        found: list[Number] = []
        for look in self._numbers:
            told = look()
            found += await told if isinstance(told, Awaitable) else told
        return {each.key: each.value for each in sorted(found, key=_by_place)}

    async def statuses(self) -> dict[str, Status]:
        """Return the status of each component."""
        return {name: component.status for name, component in (await self._components()).items()}

    async def report(self) -> tuple[int, dict[str, Any]]:
        """Return the HTTP status and the body of `/health`.

        The status is 503 if a component is unavailable.
        """
        components = await self._components()
        statuses = {component.status for component in components.values()}
        degraded = bool(statuses & {"degraded", "unavailable"})
        body = {
            "status": "degraded" if degraded else "ok",
            "timestamp": format_time(self._clock()),
            "version": __version__,
            "components": {name: component.as_json() for name, component in components.items()},
        }
        return 503 if "unavailable" in statuses else 200, body

    async def _components(self) -> dict[str, Component]:
        found: dict[str, Component] = {}
        for name, look in self._looks:
            known = found.get(name)
            if known is not None and known.status != "ok":
                continue
            told = look()
            component = await told if isinstance(told, Awaitable) else told
            if component is not None:
                details = {} if known is None else known.details
                found[name] = Component(component.status, component.error, {**details, **component.details})
        return found


class GaugeThread(Threads):
    """Single worker thread that reads the values of gauges."""

    def __init__(self) -> None:
        super().__init__(1)


#: Label values of counters. Dashboards and alerts show them as zero before the first event.
_BEGUN: Final[Mapping[str, Sequence[str]]] = {
    "event_subscriber_drops": ("sse", "ws"),
    "events": ("note.created", "note.updated", "note.deleted", "task.created", "task.completed"),
    "http_rejected": (
        "bad_request", "body_stalled", "body_too_large", "forbidden", "forbidden_host", "forbidden_origin",
        "head_too_large", "too_many_wrong_tokens", "unauthorized",
    ),
}  # fmt: skip


#: Positions of the gauges that the class `Gauges` provides itself.
_ACTORS, _HEALTH = 65, 80


class Gauges:
    """Collector of all metrics, which renders them at each scrape. `ask` and `watch` add sources."""

    def __init__(
        self, parts: Parts, capabilities: Capabilities, metrics: Metrics, state: ServerState
    ) -> None:
        self._parts, self._capabilities = parts, capabilities
        self._metrics, self._state = metrics, state
        observed = sorted((each for one in capabilities.listed for each in one.actors), key=_by_place)
        actors = filter(None, (parts.find(each.kind) for each in observed))
        self._mailboxes: tuple[Mailbox[Any], ...] = tuple(each.mailbox for each in actors)
        for mailbox in self._mailboxes:
            mailbox.stats.on_batch = partial(self._observe_batch, mailbox.name)
            self._metrics.begin("actor_processing_seconds", mailbox.name)
        for name, labels in _BEGUN.items():
            for label in labels:
                self._metrics.begin(name, label)
        self._watched: dict[str, Callable[[], float]] = {}  # bounded: fixed when the server starts
        self._asked: list[Callable[[], Awaitable[Sequence[GaugeSample]]]] = []  # bounded: so are these
        self._statuses: Mapping[str, Status] = {}
        self._looked_at = -HEALTH_AGE

    @cached_property
    def _sources(self) -> Sequence[Callable[[], Any]]:
        """Return the gauge sources of the capabilities and of this class, in fixed order."""
        found = [each for one in self._capabilities.listed for each in one.gauges]
        own: list[tuple[int, Callable[[], Any]]] = [(_ACTORS, self._per_actor), (_HEALTH, self._health)]
        told = [*((each.place, self._parts.bind(each.look)) for each in found), *own]
        return [look for _, look in sorted(told, key=lambda each: each[0])]

    def ask(self, samples: Callable[[], Awaitable[Sequence[GaugeSample]]]) -> None:
        """Register a source of samples for each scrape.

        If a source raises `DatabaseFailed`, its samples are left out.
        """
        self._asked.append(samples)

    def watch(self, name: str, value: Callable[[], float]) -> None:
        """Register the function `value` for the unlabelled gauge `name`. It is called at each scrape."""
        self._watched[name] = value

    def watched(self, name: str) -> float:
        """Return the current value of a gauge that was registered with `watch`.

        An unknown gauge has the value 0.
        """
        value = self._watched.get(name)
        return 0.0 if value is None else value()

    async def scrape(self) -> bytes:
        """Return all metrics in the Prometheus text format.

        If a database fails, only its own gauges are missing.
        """
        return await trio.to_thread.run_sync(self._metrics.render, await self._samples())

    async def families(self) -> list[Metric]:
        """Return the metric families that `scrape` renders, before they are encoded."""
        return await trio.to_thread.run_sync(self._metrics.families, await self._samples())

    async def _samples(self) -> list[GaugeSample]:
        samples: list[GaugeSample] = []
        for look in (*self._sources, *self._asked):
            try:
                told = look()
                samples += await told if isinstance(told, Awaitable) else told
            except DatabaseFailed as failure:
                log.warning("metrics sample skipped", reason=str(failure))
        return samples + [GaugeSample(name, value()) for name, value in self._watched.items()]

    def _per_actor(self) -> Iterator[GaugeSample]:
        for mailbox in self._mailboxes:
            yield GaugeSample("actor_mailbox_depth", mailbox.depth, (mailbox.name,))
            yield GaugeSample("actor_mailbox_capacity", mailbox.stats.capacity, (mailbox.name,))
            yield GaugeSample("actor_restarts", mailbox.stats.restarts, (mailbox.name,))

    async def _health(self) -> list[GaugeSample]:
        """Return the status gauges of the components.

        The status is reused for some seconds, because the checks write a file to the disk of the notes.
        """
        now = trio.current_time()
        if now >= self._looked_at + HEALTH_AGE:
            self._looked_at = now
            self._statuses = await self._state.statuses()
        return [
            GaugeSample("component_status", _SEVERITY[status], (name,))
            for name, status in self._statuses.items()
        ]

    def _observe_batch(self, actor: str, seconds: float) -> None:
        self._metrics.observe("actor_processing_seconds", seconds, actor)
