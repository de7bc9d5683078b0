"""Runs the checks of a view; inside of a running server on demand.

What only matters before a start (the owner, the port, loading the model) is left out there; the notes and
indexes are those the server holds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.core.findings import SYSTEM, CheckResult, checks_of
from lithos.services.upkeep import checks_care, checks_indexes, checks_notes, checks_storage  # noqa: F401
from lithos.services.upkeep.checks import Patient, run_check

#: Seconds for one check.
BOUND: Final = 15.0
#: Seconds for which results are told again instead of checking anew.
AGE: Final = 5.0


async def examine(
    patient: Patient, view: str, bound: float, tell: Callable[[CheckResult], None] = lambda _: None
) -> list[CheckResult]:
    """Run the checks of a view that apply, reporting each result as soon as it is there."""
    results = list[CheckResult]()
    for each in checks_of(view):
        if each.when(patient):
            results.append(await run_check(each, patient, bound))
            tell(results[-1])
    return results


@frozen
class Inspected:
    """The results of one run, in the order in which one explains the next."""

    at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]


@define(eq=False)
class Inspection:
    """Runs the checks, one run at a time; whoever asks meanwhile gets its results."""

    _patient: Patient
    _running: trio.Lock = field(factory=trio.Lock, init=False)
    _ended: float = field(default=-AGE, init=False)
    #: The last run, if there was one.
    last: Inspected | None = field(default=None, init=False)

    async def run(self) -> Inspected:
        """Check everything now, unless that was done a moment ago."""
        async with self._running:
            if self.last is None or trio.current_time() >= self._ended + AGE:
                began, now = trio.current_time(), self._patient.clock()
                checks = tuple(await examine(self._patient, SYSTEM, BOUND))
                self._ended = trio.current_time()
                self.last = Inspected(now, self._ended - began, checks)
            return self.last
