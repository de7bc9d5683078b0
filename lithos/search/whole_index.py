"""Waiting until searches cover every note."""

from __future__ import annotations

import trio
from attrs import define, field

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import AppendEvents
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.parts import Clock
from lithos.kernel.values.events import REINDEX_COMPLETE, EventDraft
from lithos.kernel.values.principals import SCAN_AGENT
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.indexer import FulltextIndexer, Visibility
from lithos.search.indexing.semantic import SemanticBackend


@define(eq=False)
class WholeIndex:
    """The indexes of a server, and the events that are set when they are complete."""

    _opening: Opening
    _words: FulltextIndexer
    _semantic: SemanticBackend
    _visibility: Visibility
    _fulltext: FulltextIndex
    _coordinator: Coordinator
    _clock: Clock
    _turn: trio.Lock = field(factory=trio.Lock, init=False)
    _is_journalled: bool = field(default=False, init=False)

    async def complete(self) -> None:
        """Wait until full-text and semantic search cover every note.

        Without a model, only full-text search counts.
        """
        await self._opening.complete.wait()
        await self._words.converged()
        await self._semantic.settled.wait()

    async def complete_reindex(self) -> None:
        """Wait until every note is searchable.

        Afterwards, `reindex_complete` is recorded in the journal, once per process.
        """
        await self.complete()
        async with self._turn:
            if self._is_journalled:
                return
            await self._visibility.reach()
            payload = {"documents": self._fulltext.document_count(), "chunks": self._semantic.chunk_count}
            event = EventDraft(
                type=REINDEX_COMPLETE, agent=SCAN_AGENT, payload=payload, timestamp=self._clock()
            )
            await self._coordinator.mailbox.ask(AppendEvents((event,)))
            self._is_journalled = True
