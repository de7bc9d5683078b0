"""What of the past is dropped: commands of the memory actor."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen


@frozen
class ForgetReceipts:
    """Drop these receipts; the reply is how many there were."""

    ids: tuple[str, ...]


@frozen
class ForgetLessons:
    """Forget that these lessons were applied, which nobody will repeat. No reply."""

    ids: tuple[str, ...]


#: Two notes, the lesser id first, and the namespace.
Pair = tuple[str, str, str]


@frozen(kw_only=True)
class ForgetPairs:
    """Look at `most` pairs behind `after`, in order, and drop those not retrieved together for too long.

    A pair is kept `days` for each time that it was. The reply is `PairsForgotten`.
    """

    days: float
    after: Pair = ("", "", "")
    most: int = 1000


@frozen
class PairsForgotten:
    """How many pairs were dropped, and the last that was looked at; None when there are no more."""

    dropped: int
    last: Pair | None


@frozen
class ForgetWorkingMemory:
    """Drop the working memory of these closed tasks and what is idle since before; the reply is how many."""

    closed_tasks: frozenset[str]
    idle_before: datetime
