"""Questions with the passages that answer them, and whether a text shows these.

A passage of a judged collection is shown when at least half of its runs of five words are there, since a
snippet shows a part; a generated answer is a sentence, and is shown when all of its runs are there.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from attrs import frozen

from bench.conversations import as_collection
from bench.dialogues import generate_conversations
from bench.judged import Collection, JudgedQuery
from lithos.core.text.analysis import FUNCTION_WORDS, fold, words

RUN = 5
#: Share of the runs of a passage that have to be shown: of a judged chunk, and of a sentence.
PART, WHOLE = 0.5, 1.0
#: Characters of an answering passage, and of a judged chunk that is one as it is.
PASSAGE, LONGEST = 500, 1_000
#: Characters by which words of queries and chunks are compared.
_STEM = 6


@frozen
class Case:
    """A question; it is answered by one of several lists of passages, all of which have to be shown."""

    query: JudgedQuery
    answers: Sequence[Sequence[str]]


@frozen
class Subject:
    """A collection with what answers each of its questions."""

    collection: Collection
    cases: Sequence[Case]
    needed: float


def judged(collection: Collection, laid_out: Collection) -> Subject:
    """Return a judged collection; the passages are those of the collection as it came.

    Judgements name the document that answers, not the place: the answering passage is the one that shares
    most of the query's words, by their idf; of equal ones the first.
    """
    chunks: dict[str, list[str]] = defaultdict(list)
    for chunk in collection.chunks:
        chunks[chunk.doc] += passages_of(chunk.text)
    frequency = Counter(stem for chunk in collection.chunks for stem in set(_stems(chunk.text)))
    total = len(collection.chunks)
    cases = [
        Case(query, [[_best(query.text, chunks[doc], frequency, total)] for doc in query.grades])
        for query in laid_out.queries
    ]
    return Subject(laid_out, cases, PART)


def passages_of(text: str) -> list[str]:
    """A chunk of about 500 characters as it is, a longer one in sentences packed to as many."""
    if len(text) <= LONGEST:
        return [text]
    packed: list[str] = []
    for sentence in re.split(r"(?<=[.!?]) +", text):
        if packed and len(packed[-1]) + len(sentence) < PASSAGE:
            packed[-1] += f" {sentence}"
        else:
            packed.append(sentence)
    return packed


def _best(query: str, chunks: Sequence[str], frequency: Mapping[str, int], total: int) -> str:
    wanted = {stem: math.log(1 + total / (1 + frequency.get(stem, 0))) for stem in set(_stems(query))}
    shared = [sum(wanted[stem] for stem in wanted.keys() & set(_stems(chunk))) for chunk in chunks]
    return chunks[shared.index(max(shared))]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for _, word in words(fold(text)) if word not in FUNCTION_WORDS]


def generated(name: str, sample: int | None, seed: int) -> Subject:
    """Return generated conversations, with one note for each of `name` (`turns` or `sessions`)."""
    conversations = generate_conversations(seed=seed)
    collection = as_collection(conversations, name)
    texts = {turn.id: turn.text for one in conversations for turn in one.turns}
    turns = {question.id: question.turns for one in conversations for question in one.questions}
    queries = list(collection.queries)
    random.Random(seed).shuffle(queries)
    cases = [Case(query, [[texts[turn] for turn in turns[query.id]]]) for query in queries[:sample]]
    return Subject(collection, cases, WHOLE)


def is_shown(case: Case, text: str, needed: float) -> bool:
    """Whether a text has all passages of one of the answers."""
    there = runs(text)
    return any(
        all(len(wanted & there) >= needed * len(wanted) for wanted in map(runs, answer))
        for answer in case.answers
    )


def runs(text: str) -> set[tuple[str, ...]]:
    """The runs of five words of a text; of a shorter one, and of each beginning of it, itself."""
    found = [word for _, word in words(fold(text))]
    if len(found) <= RUN:
        return {tuple(found)}
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}
