"""What retrieval remembers is bounded: old receipts and pairs are dropped, some at a time.

A retrieval costs some 2 kB for its receipt and up to 9 kB for new pairs of notes. What is dropped frees
room inside `stats.db`, which later rows take; the file itself does not shrink.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from lithos.core.memory import LearningCommand
from lithos.core.retention import ForgetPairs, ForgetReceipts, Pair, PairsForgotten
from lithos.stores.stats_receipts import OldReceipt
from lithos.telemetry import get_logger

log = get_logger("lithos.retention")

#: How long receipts of a closed task are kept.
REOPENED_WITHIN: Final = timedelta(days=30)
#: Receipts per command: some 10 ms of the memory actor, for which retrievals wait.
RECEIPTS: Final = 200
#: Pairs that are looked at per command: 0.3 ms, when all are dropped some 20 ms.
PAIRS: Final = 300


class Memory(Protocol):
    """Learning, as far as retention needs it."""

    async def submit(self, command: LearningCommand) -> Any: ...

    async def receipt_count(self) -> int: ...

    async def oldest_receipts(self, after: int, most: int) -> Sequence[OldReceipt]: ...


class Retention:
    """Drops what is too old, one command after the other."""

    def __init__(
        self,
        memory: Memory,
        unsettled: Callable[[Sequence[str], datetime], Awaitable[Sequence[str]]],
        clock: Callable[[], datetime],
        *,
        receipts_kept: int,
        pair_days: float,
    ) -> None:
        """0 keeps all receipts, or all pairs."""
        self._memory = memory
        #: Which of some tasks are open, or were closed later than a moment.
        self._unsettled = unsettled
        self._clock = clock
        self._receipts_kept = receipts_kept
        self._pair_days = pair_days

    async def forget_receipts(self) -> None:
        """Drop the oldest receipts beyond the number that is kept, but for those of unsettled tasks.

        Feedback comes with the completion of a task and asks for receipts of this task only; one that is
        closed may be reopened.
        """
        if not self._receipts_kept:
            return
        surplus, last, dropped = await self._memory.receipt_count() - self._receipts_kept, 0, 0
        while surplus > 0:
            some = await self._memory.oldest_receipts(last, min(RECEIPTS, surplus))
            if not some:
                break
            surplus, last = surplus - len(some), some[-1].place
            tasks = list(dict.fromkeys(receipt.task_id for receipt in some if receipt.task_id is not None))
            needed = set(await self._unsettled(tasks, self._clock() - REOPENED_WITHIN))
            ids = tuple(receipt.id for receipt in some if receipt.task_id not in needed)
            if ids:
                dropped += await self._memory.submit(ForgetReceipts(ids))
        if dropped:
            log.info("old receipts dropped", receipts=dropped)

    async def forget_pairs(self) -> None:
        """Drop the pairs of notes that were not retrieved together for too long."""
        if not self._pair_days:
            return
        after: Pair | None = ("", "", "")
        dropped = 0
        while after is not None:
            command = ForgetPairs(days=self._pair_days, after=after, most=PAIRS)
            some: PairsForgotten | None = await self._memory.submit(command)
            after = None if some is None else some.last
            dropped += 0 if some is None else some.dropped
        if dropped:
            log.info("old pairs dropped", pairs=dropped)
