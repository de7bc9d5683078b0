"""Use of remembered questions: evidence for a new question, and the question to which feedback refers.

Vectors come from the static tier. Functions that need a model wait for it, or work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import attrs
import trio

from lithos.kernel.values.graphemes import beginning
from lithos.memory.model.memory import ApplyFeedback, AskedQuestion, Receipt
from lithos.memory.model.questions import (
    QUESTION_KEPT,
    SAME_NEED,
    SURE,
    LoadQuestions,
    RememberedQuestion,
    digest_question,
    sketch_of,
    threshold,
)
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.rows.question_matrix import Evidence
from lithos.memory.rows.stats import StatsStore
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.texts import NoteTexts
from lithos.search.embedding.embedder import EmbedderIdentity
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable, StaticQuestion

T = TypeVar("T")

#: Maximum number of characters of a question that a reason quotes.
LONGEST_QUOTE: Final = 300
#: Reason that is used if the words of the question must not be shown.
CITED_BEFORE: Final = "was cited for a question much like this one"
PRIVATE: Final = "agent_private"


def is_private(receipt: Receipt, notes: Catalogue) -> bool:
    """Return whether the console shows a question only to its agent and `admin` (docs/spec/memory.md §8)."""
    entries = (notes.get(node.id) for node in receipt.final_nodes)
    return any(entry is not None and entry.note.access_scope == PRIVATE for entry in entries)


def name_embedder(identity: EmbedderIdentity) -> str:
    """Return the identity of an embedder in the form that entries store."""
    return f"{identity.name}/{identity.dims}/{identity.dtype}/{identity.model_sha256}"


def tell_question(question: RememberedQuestion | None, *, may_read: bool) -> str:
    """Return the reason for a cited note. It quotes the question only if the caller may read it."""
    if question is None or question.is_private or not may_read:
        return CITED_BEFORE
    words = " ".join(question.question.split())
    return f"cited for: {beginning(words, LONGEST_QUOTE)}{'…' * (len(words) > LONGEST_QUOTE)}"


class QuestionMemory:
    """Queries on the remembered questions.

    Database reads raise `DatabaseFailed`. Commands raise `LithosError`.
    """

    def __init__(
        self,
        stats: StatsStore,
        catalogue: Catalogue,
        semantic: SemanticBackend,
        learning: Learning,
        texts: NoteTexts,
    ) -> None:
        self._learning = learning
        self.matrix = stats.remembered
        self._semantic = semantic
        self._catalogue = catalogue
        self._texts = texts
        self._loading = trio.Lock()

    async def weigh(self, query: str) -> Sequence[Evidence]:
        """Return the notes with evidence for a query. The notes with the most evidence come first.

        Without a model, return no notes.
        """
        return await self._compare(
            query, lambda asked: self.matrix.weigh(asked.codes, threshold(asked.highest))
        )

    async def cited_before(self, query: str) -> Sequence[str]:
        """Return the notes that were cited for a very similar question.

        The notes of the nearest question come first.
        """
        if not query.strip():
            return ()
        return await self._compare(query, lambda asked: self.matrix.cited_near(asked.codes, SAME_NEED, SURE))

    async def _compare(self, query: str, look: Callable[[StaticQuestion], Sequence[T]]) -> Sequence[T]:
        """Search the matrix in a worker thread and return the result of the search.

        If the matrix is empty, return an empty result.
        """

        def compare(asked: StaticQuestion) -> Sequence[T]:
            # Another model may have just replaced the matrix.
            return look(asked) if name_embedder(asked.embedder) == self.matrix.embedder else ()

        try:
            await self.load()
            if not len(self.matrix):
                return ()
            return await self._semantic.with_static_question(query, compare)
        except SemanticUnavailable:
            return ()

    async def load(self) -> None:
        """Load the entries of the current model into the matrix. Raises `SemanticUnavailable`."""
        identity = self._semantic.static_identity()
        embedder = name_embedder(identity)
        if self._is_loaded(embedder):
            return
        async with self._loading:
            after: int | None = 0
            while after is not None and not self._is_loaded(embedder):
                after = await self._learning.submit(LoadQuestions(embedder, identity.dims, after=after))

    def _is_loaded(self, embedder: str) -> bool:
        return self.matrix.embedder == embedder and self.matrix.is_complete

    async def questions(self, entries: Iterable[int]) -> Mapping[int, RememberedQuestion]:
        """Return the remembered questions by entry id."""
        wanted = list(entries)
        return await self._learning.read(lambda tables: tables.questions.get(wanted)) if wanted else {}

    async def prepare(self, feedback: ApplyFeedback) -> ApplyFeedback:
        """Return the feedback with its question, and with sketches of the cited texts.

        If there is no receipt or the query is empty, the feedback has no question, and nothing is learned
        about questions.
        """
        if feedback.receipt_id is None or not (feedback.cited or feedback.misleading or feedback.elsewhere):
            return feedback
        receipt = await self._learning.receipt(feedback.receipt_id)
        if receipt is None or not receipt.query.strip():
            return feedback
        question = await self._question(receipt, feedback)
        if question is None:
            return feedback
        sketches = await self._sketches((*feedback.cited, *feedback.elsewhere))
        return attrs.evolve(feedback, question=question, sketches=sketches)

    async def _question(self, receipt: Receipt, feedback: ApplyFeedback) -> AskedQuestion | None:
        """Return the question that was asked, or None if the model knows no word of the query."""
        shown = (*feedback.cited, *feedback.misleading, *feedback.ignored, *feedback.elsewhere)
        entries = [entry for note_id in shown if (entry := self._catalogue.get(note_id)) is not None]
        asked = AskedQuestion(
            text=beginning(receipt.query, QUESTION_KEPT),
            digest=digest_question(receipt.query),
            agent_id=receipt.agent_id,
            is_private=any(entry.note.access_scope == PRIVATE for entry in entries),
        )
        try:
            static = await self._semantic.with_static_question(receipt.query, lambda asked: asked)
        except SemanticUnavailable:
            return asked
        if not static.codes.any():
            return None
        return attrs.evolve(
            asked,
            codes=static.codes.tobytes(),
            embedder=name_embedder(static.embedder),
            theta=threshold(static.highest),
        )

    async def _sketches(self, note_ids: Sequence[str]) -> dict[str, bytes]:
        entries = [entry for note_id in note_ids if (entry := self._catalogue.get(note_id)) is not None]
        sketches = await self.sketch(entries)
        return {
            entry.note.id: sketch
            for entry, sketch in zip(entries, sketches, strict=True)
            if sketch is not None
        }

    async def sketch(self, entries: Sequence[Entry]) -> list[bytes | None]:
        """Return the text sketch of each note. For an unreadable note it is None."""
        return await self._texts.map_contents(
            entries, lambda place, content: sketch_of(f"{entries[place].note.title}\n{content}")
        )
