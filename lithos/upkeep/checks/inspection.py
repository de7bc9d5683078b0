"""Check runs for a view. A running server starts a run on demand.

A running server skips the checks that matter only before a start: owner, port and model loading. It checks
the notes and indexes in its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.values.findings import CHECK_MODULES, SYSTEM, CheckResult, checks_of, load_checks
from lithos.upkeep.checks.checks import Installed, look_aside, run_check

#: Deadline of one check, in seconds.
BOUND: Final = 15.0
#: Maximum age of a report in seconds. A newer report is reused, and the checks do not run again.
AGE: Final = 5.0


async def examine(
    patient: Installed, view: str, bound: float, tell: Callable[[CheckResult], None] = lambda _: None
) -> list[CheckResult]:
    """Run the applicable checks of a view. Each result is passed to `tell` as soon as the check ends."""
    results = list[CheckResult]()
    if not CHECK_MODULES:
        raise LookupError("No capability has checks. Was lithos.app.capabilities imported?")
    await look_aside(load_checks)
    for each in checks_of(view):
        if each.when(patient):
            results.append(await run_check(each, patient, bound))
            tell(results[-1])
    return results


@frozen
class InspectionReport:
    """The results of one check run. Results of earlier checks explain those of later checks."""

    at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]


async def inspect(patient: Installed) -> InspectionReport:
    """Run the checks of the console page System."""
    began, now = trio.current_time(), patient.clock()
    checks = tuple(await examine(patient, SYSTEM, BOUND))
    return InspectionReport(now, trio.current_time() - began, checks)


def shared_inspection(patient: Installed) -> Shared[InspectionReport]:
    """Return a shared inspection. If a run is in progress, all callers get its result."""
    return Shared(partial(inspect, patient), AGE)
