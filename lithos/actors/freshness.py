"""Read your writes: a search waits until the indexes have what was acknowledged before it began."""

from __future__ import annotations

import trio
from attrs import frozen

from lithos.actors.indexer import PATIENCE, Indexer


@frozen
class Freshness:
    """What searches wait for before they ask an index."""

    _words: Indexer
    _meaning: Indexer

    async def reach(self, *, words: bool = True, meaning: bool = True) -> None:
        """Wait for these indexes; costs nothing while they have everything.

        One that is late is not an error here: it refuses searches, with the reason, until it has caught up.
        """
        wanted = [
            indexer for indexer, is_wanted in ((self._words, words), (self._meaning, meaning)) if is_wanted
        ]
        for indexer in wanted:
            indexer.note_search()
        deadline = trio.current_time() + PATIENCE
        for indexer in wanted:
            await indexer.caught_up(deadline)
