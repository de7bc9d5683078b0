"""Upkeep of remembered questions.

The upkeep reacts to changes of notes, to changes of the embedding model, and to deletion orders.

When a note is deleted, its entries are deleted. When its text was replaced, its entries count half. Entries
of another embedder are embedded again (docs/spec/memory.md §8).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import trio

from lithos.kernel.actors.failure_boundary import survive
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.settings import StorageConfig
from lithos.memory.model.questions import (
    SHARE_KEPT,
    EmbedQuestions,
    ForgetQuestions,
    HalveQuestions,
    QuestionFilter,
    TrimQuestions,
    share_kept,
    sketch_of,
)
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.questions import QuestionMemory, name_embedder
from lithos.memory.rows.forget_orders import ForgetOrders
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.texts import NoteTexts
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable

log = get_logger("lithos.questions")

#: Seconds between two checks for deletion orders. This is the delay for a waiting command.
LOOK: Final = 1.0
#: Maximum number of notes per command.
SOME: Final = 200


class QuestionUpkeep:
    """The background upkeep of remembered questions. Failures are retried at the next opportunity."""

    def __init__(
        self,
        storage: StorageConfig,
        catalogue: Catalogue,
        semantic: SemanticBackend,
        learning: Learning,
        memory: QuestionMemory,
        texts: NoteTexts,
    ) -> None:
        self.memory = memory
        self._learning = learning
        self._semantic = semantic
        self._catalogue = catalogue
        self._texts = texts
        self._orders = ForgetOrders(storage.data_dir / ".lithos")
        self._blocking = Threads()

    async def keep(self) -> None:
        """Load the entries when a model is available, and again each time the model is replaced."""
        await self._semantic.decided.wait()
        await survive("questions are loaded when they are needed", self.embed)
        await self._semantic.settled.wait()
        await survive("questions are embedded at the next sweep", self.embed)

    async def embed(self) -> None:
        """Embed the entries of other models in batches, and load all entries. Without a model, do nothing."""
        try:
            await self.memory.load()
            embedder = name_embedder(self._semantic.static_identity())
            last = 0
            while waiting := await self._learning.unembedded_questions(embedder, last):
                last = waiting[-1].id
                made = await self._semantic.static_codes([each.question for each in waiting])
                if name_embedder(made.embedder) != embedder:
                    return  # `keep` runs again when the new model is available.
                codes = [row.tobytes() for row in made.codes]
                ids = (each.id for each in waiting)
                await self._learning.submit(EmbedQuestions(embedder, tuple(zip(ids, codes, strict=True))))
        except SemanticUnavailable as reason:
            log.info("questions wait for a model", reason=str(reason))

    async def follow(self, note_ids: Sequence[str]) -> None:
        """Delete the entries of deleted notes, and halve the entries of notes with a replaced text."""
        gone = tuple(note_id for note_id in note_ids if note_id not in self._catalogue)
        if gone:
            await self._learning.submit(ForgetQuestions(QuestionFilter(note_ids=gone)))
        for note_id in note_ids:
            entry = self._catalogue.get(note_id)
            if entry is not None:
                await self._compare(entry)

    async def _compare(self, entry: Entry) -> None:
        old = await self._learning.read(lambda tables: tables.questions.sketch(entry.note.id))
        if old is None:
            return

        def look(_: int, content: str) -> tuple[float, bytes]:
            text = f"{entry.note.title}\n{content}"
            return share_kept(old, text), sketch_of(text)

        (looked,) = await self._texts.map_contents([entry], look)
        if looked is None or looked[0] >= SHARE_KEPT:
            return
        halved = await self._learning.submit(HalveQuestions(entry.note.id, old, looked[1]))
        log.info("questions halved", note=entry.note.id, kept=round(looked[0], 2), questions=halved)

    async def tidy(self) -> None:
        """Delete entries of notes that were deleted without an event, and entries beyond the limit."""
        noted = await self._learning.read(lambda tables: tables.questions.notes())
        gone = [note_id for note_id in noted if note_id not in self._catalogue]
        for begin in range(0, len(gone), SOME):
            some = tuple(gone[begin : begin + SOME])
            await self._learning.submit(ForgetQuestions(QuestionFilter(note_ids=some)))
        await self._learning.submit(TrimQuestions())
        await self.embed()

    # -- orders --------------------------------------------------------------------------------

    async def take_orders(self) -> None:
        """Carry out the orders of `lithos reconcile --forget-questions`, until cancelled."""
        while True:
            await survive("orders to forget questions wait", self._take_waiting)
            await trio.sleep(LOOK)

    async def _take_waiting(self) -> None:
        for name in await self._blocking.run(self._orders.waiting):
            wanted = await self._blocking.run(partial(self._orders.read, name))
            if wanted is not None:
                forgotten = await self._learning.submit(ForgetQuestions(wanted))
                log.info("questions forgotten", questions=forgotten)
            await self._blocking.run(partial(self._orders.settle, name))
