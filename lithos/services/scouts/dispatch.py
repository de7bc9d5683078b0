"""Sending scouts out: together, each with its own deadline, and none able to spoil the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter
from typing import Final, TypeVar

import trio
from attrs import define, field

from lithos.actors.catalogue import Catalogue
from lithos.core.rerank import SCOUTS, Candidate
from lithos.metrics import Metrics
from lithos.services.scouts.contract import Ask, Scout
from lithos.services.slices import slices
from lithos.telemetry import get_logger

log = get_logger("lithos.retrieve")

T = TypeVar("T")

#: Finds that are checked in one turn of the event loop, a millisecond or less.
PASSED: Final = 500
#: Seconds a scout may take; all of them together take some ten milliseconds.
DEADLINE: Final = 2.0
CONTRADICTIONS: Final = "contradictions"
_ORDER: Final = (*SCOUTS, CONTRADICTIONS)


@define
class Report:
    """What the scouts of one retrieval found; `failed` ones found nothing."""

    found: dict[str, list[Candidate]] = field(factory=dict)
    fired: set[str] = field(factory=set)
    failed: set[str] = field(factory=set)


def name_scouts(names: Iterable[str]) -> tuple[str, ...]:
    """Their names as clients see them, in table order."""
    return tuple(f"scout_{name}" for name in sorted(names, key=_ORDER.index))


@define
class Dispatcher:
    """Sends scouts out and lets through what the gate lets pass."""

    _catalogue: Catalogue
    _metrics: Metrics = field(factory=Metrics)

    async def send(self, scouts: Sequence[Scout], ask: Ask, report: Report) -> None:
        """Have all that want to look at once; what they find is in the report."""
        async with trio.open_nursery() as nursery:
            for scout in scouts:
                if scout.wants(ask):
                    nursery.start_soon(self._send_one, scout, ask, report)

    async def _send_one(self, scout: Scout, ask: Ask, report: Report) -> None:
        found = await self.attempt(scout.name, lambda: scout.find(ask), report)
        if found is None:
            return
        passing = [candidate async for some in slices(found, PASSED) for candidate in self._pass(some, ask)]
        report.found[scout.name] = passing
        self._metrics.observe("lcma_scout_candidates", len(passing), f"scout_{scout.name}")

    async def attempt(self, name: str, look: Callable[[], Awaitable[T]], report: Report) -> T | None:
        """What a scout brings, or None when it fails or takes too long; both are noted in the report."""
        began = perf_counter()
        try:
            await trio.lowlevel.checkpoint()  # the scouts of a phase take turns with everybody else
            with trio.fail_after(DEADLINE):
                found = await look()
        except Exception as failure:  # noqa: BLE001 - any answer is better than none (memory spec, section 1)
            log.warning("scout failed", scout=name, reason=repr(failure))
            self._metrics.count("lcma_scout_failures", f"scout_{name}")
            report.failed.add(name)
            return None
        report.fired.add(name)
        self._metrics.observe("lcma_scout_duration_seconds", perf_counter() - began, f"scout_{name}")
        return found

    def _pass(self, found: Iterable[Candidate], ask: Ask) -> list[Candidate]:
        get, passes = self._catalogue.get, ask.gate.passes
        return [each for each in found if (entry := get(each.id)) is not None and passes(entry)]
