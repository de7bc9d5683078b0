"""Running one scope of `lithos reconcile` so that whatever happens in it leaves the others alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from lithos.core.reconcile import FAILURE_CODES, INTERNAL_ERROR, Failure, ScopeResult
from lithos.stores.index_failure import IndexFailed
from lithos.stores.sqlite import CorruptDatabase, DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.reconcile")

_EXPECTED = (CorruptDatabase, DatabaseFailed, IndexFailed, OSError)


async def run_scope(scope: str, run: Callable[[], Awaitable[ScopeResult]], *, dry_run: bool) -> ScopeResult:
    """What `run` says, or a failed result: broken storage by the scope's code, a bug as `internal_error`."""
    try:
        return await run()
    except Exception as failure:
        failures = tuple(_explain(scope, leaf) for leaf in _leaves(failure))
        if any(each.code == INTERNAL_ERROR for each in failures):
            log.error("reconciling failed", scope=scope, reason=repr(failure), exc_info=True)
        return ScopeResult(scope=scope, dry_run=dry_run, failures=failures)


def _leaves(failure: Exception) -> Iterator[Exception]:
    if isinstance(failure, ExceptionGroup):
        for inner in failure.exceptions:
            yield from _leaves(inner)
    else:
        yield failure


def _explain(scope: str, failure: Exception) -> Failure:
    if isinstance(failure, _EXPECTED):
        return Failure(FAILURE_CODES[scope], str(failure))
    return Failure(INTERNAL_ERROR, f"{type(failure).__name__}: {failure}. Report this with the log.")
