"""Running one check of `lithos doctor` so that whatever happens in it leaves the others alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import trio

from lithos.core.diagnosis import CheckResult, Finding, fail
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.doctor")
T = TypeVar("T")

Look = Callable[[], Awaitable[Iterable[Finding]]]

_EXPECTED = (CorruptDatabase, DatabaseFailed, OSError)


async def run_check(name: str, look: Look, bound: float) -> CheckResult:
    """What `look` finds within `bound` seconds, or why it found nothing."""
    try:
        with trio.fail_after(bound):
            return CheckResult(name, tuple(await look()))
    except trio.TooSlowError:
        finding = fail(
            f"This check was not done after {bound:g} seconds.",
            "The disk or the network may hang: look at the log of the system, then run doctor again.",
        )
    except _EXPECTED as failure:
        finding = fail(
            f"This check could not look: {failure}.",
            "Check that the files of the data directory are there and readable.",
        )
    except Exception as failure:
        log.error("check failed", check=name, reason=repr(failure), exc_info=True)
        finding = fail(
            f"This check itself is broken: {type(failure).__name__}: {failure}.",
            "Report it with the log on stderr; the other checks are not affected.",
        )
    return CheckResult(name, (finding,))


async def look_aside(call: Callable[[], T]) -> T:
    """Run a blocking look in a thread that is left to itself when the time is up.

    A disk that hangs would otherwise hold the doctor for ever; a look has nothing to finish.
    """
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)
