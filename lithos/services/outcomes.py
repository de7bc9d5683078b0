"""What a caller hears when an actor could not answer: nothing happened, or nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from lithos.actors.kit import ActorDown, ShuttingDown
from lithos.core.errors import StorageFailed


@contextmanager
def honest_outcome(before_retrying: str) -> Iterator[None]:
    """Turn an actor's silence into `StorageFailed`; `before_retrying` is a sentence on what to look at."""
    try:
        yield
    except ShuttingDown:
        raise StorageFailed("The server is stopping; nothing was changed. Retry after its restart.") from None
    except (ActorDown, trio.TooSlowError) as failure:
        raise StorageFailed(
            f"The outcome of this change is unknown: {str(failure) or 'it took too long'}. {before_retrying}"
        ) from failure
