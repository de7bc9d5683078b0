"""Stages of a long measurement: each has a limit of time, and one that fails costs the others nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, Final, TypeVar

import trio

T = TypeVar("T")
#: Seconds that must be left for a stage to begin.
LEAST: Final = 5.0
#: Characters of an error that the report shows.
_SHOWN: Final = 200


class Stages:
    """Runs stages until `until` (monotonic seconds); keeps what went wrong and how long each took."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.problems: list[str] = []
        self.seconds: dict[str, float] = {}

    def run(self, name: str, limit: float, stage: Callable[[float], T]) -> T | None:
        """The result of a stage, which is handed the seconds it may take; None when it fails.

        A server that does not start ends with `SystemExit`, which counts as a failure too.
        """
        left = min(limit, self._until - time.monotonic())
        if left < LEAST:
            self._fail(name, "there was no time left")
            return None
        print(name, file=sys.stderr, flush=True)
        begun = time.monotonic()
        try:
            return stage(left)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told in the report
            self._fail(name, describe_error(error, limit))
            return None
        finally:
            self.seconds[name] = round(time.monotonic() - begun, 1)

    def run_async(
        self, name: str, limit: float, measure: Callable[..., Awaitable[T]], *arguments: Any
    ) -> T | None:
        """The same for a coroutine function, in a loop of its own; it is cancelled after `limit` seconds."""

        async def measure_within(seconds: float) -> T:
            with trio.fail_after(seconds):
                return await measure(*arguments)

        return self.run(name, limit, lambda seconds: trio.run(measure_within, seconds))

    def close(self, stack: ExitStack) -> None:
        """End what the stages have opened, however late it is."""
        try:
            stack.close()
        except Exception as error:  # noqa: BLE001 - it is told in the report
            self._fail("end", describe_error(error, 0))

    def _fail(self, name: str, why: str) -> None:
        self.problems.append(f"{name}: {why}")
        print(f"  failed: {why}", file=sys.stderr, flush=True)


def describe_error(error: BaseException, limit: float) -> str:
    """One line that a report can show; groups are told by their first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, trio.TooSlowError):
        return f"not done within {limit:.0f} s"
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return told[:_SHOWN].replace("|", "/")
