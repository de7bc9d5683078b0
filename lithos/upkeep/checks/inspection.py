"""Runs the checks of a view; inside of a running server on demand.

Checks that matter only before a start (the owner, the port, loading the model) are left out there. The notes
and indexes are those that the server holds.
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

#: Seconds for one check.
BOUND: Final = 15.0
#: Seconds for which results are returned again instead of checking again.
AGE: Final = 5.0


async def examine(
    patient: Installed, view: str, bound: float, tell: Callable[[CheckResult], None] = lambda _: None
) -> list[CheckResult]:
    """Run the applicable checks of a view, and report each result at once."""
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
    """The results of one run, in the order in which one explains the next."""

    at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]


async def inspect(patient: Installed) -> InspectionReport:
    """Run the checks of the page System."""
    began, now = trio.current_time(), patient.clock()
    checks = tuple(await examine(patient, SYSTEM, BOUND))
    return InspectionReport(now, trio.current_time() - began, checks)


def shared_inspection(patient: Installed) -> Shared[InspectionReport]:
    """One run at a time; callers that ask during a run get its results."""
    return Shared(partial(inspect, patient), AGE)
