"""Edge inference: a language model proposes typed edges of a note to its neighbours (docs/spec/memory.md §4).

It runs after everything else of a drain and outside of the queue's attempts: a note whose turn does not
come (no answer, no budget, the model still loading) simply stays in the queue for a later drain.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Final

from attrs import frozen

from lithos.actors.actors import Actors
from lithos.actors.blocking import slices
from lithos.actors.indexing.semantic import SemanticState, SemanticUnavailable
from lithos.catalogue.catalogue import Entry
from lithos.core.learning.inference import (
    POLICY_VERSION,
    Message,
    Passage,
    UnusableAnswer,
    build_messages,
    count_most_tokens,
    read_edges,
)
from lithos.core.learning.memory import InferredEdge, RecordInference, SpendTokens
from lithos.services.enrich.chat_client import ChatClient, ChatFailed, Completion
from lithos.services.notes.texts import NoteTexts
from lithos.services.retrieve.feedback import Learning
from lithos.services.search.graph_search import Nearest
from lithos.stores.indexes import IndexFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.inference")

#: Why a note was not judged now; these are label values of a metric.
OUTAGE: Final = "outage"
BUDGET: Final = "budget"
CALLS: Final = "calls"
CHANGED: Final = "changed"
UNUSABLE: Final = "unusable_answer"
ALONE: Final = "no_candidates"
NO_VECTORS: Final = "no_vectors"


class _Later(Exception):
    """Not now; the note stays in the queue. The text is the reason."""


@frozen
class _Question:
    """A note as it was when its neighbours were chosen."""

    entry: Entry
    neighbours: tuple[Entry, ...]
    messages: tuple[Message, ...]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.entry.note.id, self.entry.note.version, POLICY_VERSION


class EdgeInference:
    """Infers the edges of one note at a time, within the budgets per drain and per day."""

    def __init__(self, actors: Actors, chat: ChatClient, texts: NoteTexts, ledger: Learning) -> None:
        self._settings = actors.config.lcma.llm
        self._chat = chat
        self._catalogue = actors.catalogue
        self._texts = texts
        self._nearest = Nearest(actors.catalogue, actors.semantic)
        self._semantic = actors.semantic
        self._ledger = ledger
        self._clock = actors.clock
        self._metrics = actors.metrics
        self._calls_left = 0
        #: Why no more notes can be judged in this drain.
        self._stopped: str | None = None
        self._name = self._settings.model or ""

    def begin_drain(self) -> None:
        """A new drain has its own number of calls, and tries a service again that was out."""
        self._calls_left = self._settings.max_calls_per_drain
        self._stopped = None

    @property
    def has_stopped(self) -> bool:
        """Whether no more notes can be judged in this drain."""
        return self._stopped is not None

    async def wants(self, note_id: str) -> bool:
        """Whether this version of a note is to be judged, now or later."""
        settings, entry = self._settings, self._catalogue.get(note_id)
        if entry is None or not (settings.max_calls_per_drain and settings.daily_token_budget):
            return False
        if self._semantic.state is SemanticState.DEGRADED:
            return False  # nothing in this process can find its neighbours any more
        return not await self._ledger.read(
            lambda tables: tables.ledgers.is_inferred(note_id, entry.note.version, POLICY_VERSION)
        )

    async def infer(self, note_id: str) -> bool:
        """Infer the edges of a note; False when it is to stay in the queue."""
        if self.has_stopped:
            return False
        if not await self.wants(note_id):
            return True
        try:
            await self._judge(note_id)
        except _Later as reason:
            self._metrics.count("lcma_edge_inference_skips", str(reason))
            return False
        return True

    async def _judge(self, note_id: str) -> None:
        question = await self._ask_about(note_id)
        if not question.neighbours:
            self._metrics.count("lcma_edge_inference_skips", ALONE)
            await self._record(question, ())
            return
        completion = await self._ask(question.messages)
        edges = self._read(question, completion.text)
        self._check_unchanged(question)
        standing = tuple(edge for edge in edges if self._stands(edge, question.entry.namespace))
        await self._record(question, standing)

    # -- the question --------------------------------------------------------------------------

    async def _ask_about(self, note_id: str) -> _Question:
        entry = self._catalogue.get(note_id)
        text = None if entry is None else (await self._passages([entry]))[0]
        if entry is None or text is None:
            raise _Later(CHANGED)
        found = await self._neighbours(entry, f"{text.title}\n\n{text.text}")
        passages = await self._passages(found)
        pairs = [(one, passage) for one, passage in zip(found, passages, strict=True) if passage is not None]
        messages = build_messages(text, [passage for _, passage in pairs])
        return _Question(entry, tuple(one for one, _ in pairs), messages)

    async def _passages(self, entries: Sequence[Entry]) -> list[Passage | None]:
        """Titles and beginnings; None for a note that cannot be read."""
        most = self._settings.snippet_chars
        texts = await self._texts.map_contents(entries, lambda _, content: content[:most])
        return [
            None if text is None else Passage(entry.note.id, entry.note.title, text)
            for entry, text in zip(entries, texts, strict=True)
        ]

    async def _neighbours(self, entry: Entry, query: str) -> list[Entry]:
        """The nearest notes of the namespace that are neither too far nor almost the same."""
        settings, serials = self._settings, list[int]()
        async for some in slices(list(self._catalogue)):
            serials += [one.serial for one in some if _is_beside(one, entry)]
        asked = settings.neighbour_k
        while True:
            try:
                hits = await self._nearest.search_among(query, serials, asked, settings.min_similarity)
            except (SemanticUnavailable, IndexFailed):
                self._stopped = NO_VECTORS
                raise _Later(NO_VECTORS) from None
            near = [hit for hit in hits if hit.similarity <= settings.max_similarity]
            if len(near) >= settings.neighbour_k or len(hits) < asked:
                found = [self._catalogue.at_serial(hit.serial) for hit in near[: settings.neighbour_k]]
                return [one for one in found if one is not None]
            asked *= 4

    # -- the answer ----------------------------------------------------------------------------

    async def _ask(self, messages: Sequence[Message]) -> Completion:
        """Send the request to the model, within the budgets of the drain and the day."""
        day = self._clock().astimezone(UTC).date().isoformat()
        most = count_most_tokens(messages) + self._settings.max_output_tokens
        await self._check_limits(day, most)
        self._calls_left -= 1
        # The most a call may cost is booked before it, so that not even a kill lets a day spend more.
        await self._ledger.submit(SpendTokens(day=day, tokens=most))
        answer = await self._complete(messages)
        used = _cost(answer, most)
        self._metrics.count("lcma_llm_tokens", by=used)
        if used != most:
            await self._ledger.submit(SpendTokens(day=day, tokens=used - most, calls=0))
        if isinstance(answer, ChatFailed):
            self._stopped = OUTAGE
            log.warning("language model does not answer; asked again at a later drain", reason=str(answer))
            raise _Later(OUTAGE)
        return answer

    async def _check_limits(self, day: str, most: int) -> None:
        if not self._calls_left:
            self._stopped = CALLS
            raise _Later(CALLS)
        spent, _ = await self._ledger.read(lambda tables: tables.ledgers.spent(day))
        if spent + most > self._settings.daily_token_budget:
            self._stopped = BUDGET
            log.warning("token budget of the day is spent", day=day, spent=spent, a_call_may_cost=most)
            raise _Later(BUDGET)

    async def _complete(self, messages: Sequence[Message]) -> Completion | ChatFailed:
        self._metrics.count("lcma_llm_calls")
        with self._metrics.timed("lcma_llm_call_duration_seconds"):
            try:
                return await self._chat.complete(messages)
            except ChatFailed as failure:
                return failure

    def _read(self, question: _Question, answer: str) -> tuple[InferredEdge, ...]:
        neighbours = [one.note.id for one in question.neighbours]
        try:
            return read_edges(
                answer,
                question.entry.note.id,
                neighbours,
                self._settings.confidence_floor,
                namespace=question.entry.namespace,
                model=self._name,
            )
        except UnusableAnswer as problem:
            # Asked again, it would most likely cost the same and say the same.
            log.warning("answer of the language model is of no use", reason=str(problem))
            self._metrics.count("lcma_edge_inference_skips", UNUSABLE)
            return ()

    def _check_unchanged(self, question: _Question) -> None:
        now, then = self._catalogue.get(question.entry.note.id), question.entry
        if now is None or (now.digest, now.namespace) != (then.digest, then.namespace):
            raise _Later(CHANGED)

    def _stands(self, edge: InferredEdge, namespace: str) -> bool:
        """Whether both notes of the edge still exist."""
        ends = [self._catalogue.get(note_id) for note_id in (edge.from_id, edge.to_id)]
        return all(end is not None and end.namespace == namespace for end in ends)

    async def _record(self, question: _Question, edges: tuple[InferredEdge, ...]) -> None:
        node_id, version, policy = question.key
        await self._ledger.submit(
            RecordInference(
                node_id=node_id,
                doc_version=version,
                inference_version=policy,
                model=self._name,
                edges=edges,
            )
        )
        for edge in edges:
            self._metrics.count("lcma_edge_inference_edges", edge.type)


def _cost(answer: Completion | ChatFailed, most: int) -> int:
    """The tokens of a call as reported by the service, else the upper bound."""
    if isinstance(answer, ChatFailed):
        return most if answer.may_cost else 0
    return most if answer.tokens is None else answer.tokens


def _is_beside(one: Entry, entry: Entry) -> bool:
    return one.serial != entry.serial and one.namespace == entry.namespace
