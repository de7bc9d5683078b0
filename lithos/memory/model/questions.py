"""The memory of questions (docs/spec/memory.md §8): formulas of evidence and feedback, the sketch of a text.

An entry says that a note was cited for a question; `a` counts for it, `b` against it. Of a new question each
entry has the kernel `k` (how much nearer the two questions are than any passage of the vault is to the new
one) and the weight `w` (how far the entry is to be trusted), both 0..1.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Final

import attrs
from attrs import frozen

from lithos.memory.model.memory import LearningCommand
from lithos.text.words.analysis import FUNCTION_WORDS

#: The least cosine at which two questions are alike.
LEAST_COSINE: Final = 0.6
#: Prior of an entry's weight: one citation alone makes it 0.4.
PRIOR: Final = 1.5
#: Amount that full evidence adds to a search's score of 0..1.
EVIDENCE_WEIGHT: Final = 0.8
#: Evidence above which a note is a candidate although no search found it.
CANDIDATE: Final = 0.05
#: Cosine of two questions, and weight of an entry, from which notes cited for one answer the other.
SAME_NEED: Final = 0.9
SURE: Final = 0.3
#: Amount that a citation adds to near entries of the note, and subtracts from near entries of the other notes
#: that were shown, both times the kernel.
CITED_NEARBY: Final = 0.5
PASSED_OVER: Final = 0.3
#: Characters of a question that are kept.
QUESTION_KEPT: Final = 2_000


def threshold(highest: float) -> float:
    """Return theta: the cosine a remembered question must exceed; `highest` is that of the nearest
    passage.
    """
    return max(LEAST_COSINE, highest)


def kernel(cosine: float, theta: float) -> float:
    """Return k: 0 up to `theta`, 1 for the same question; 0 too if a passage is the question itself."""
    if theta >= 1 or not cosine > theta:
        return 0.0
    return min(1.0, (cosine - theta) / (1 - theta))


def entry_weight(a: float, b: float) -> float:
    """Return w: the smoothed share of feedback in favour of an entry."""
    return a / (a + b + PRIOR)


def evidence(entries: Iterable[tuple[float, float]]) -> float:
    """Return E of one note: `1 - product of (1 - w k)` over its entries, given as (w, k); 0..1."""
    return 1 - math.prod(1 - w * k for w, k in entries)


#: Share of its score that a suspect note keeps (docs/spec/context.md §2).
SUSPECT_SHARE: Final = 0.7


def final_score(hybrid: float, evidenced: float, trust: float = 1.0) -> float:
    """The score of ranking by evidence (docs/spec/memory.md §1); `trust` is below 1 for suspect notes.

    Both scores are 0..1. Two thirds of the weight were measured too: a question asked again in other words
    gains a quarter to a third less then, unrelated ones lose half as much (`bench/quality.md`).
    """
    return trust * (hybrid + EVIDENCE_WEIGHT * evidenced)


@frozen
class MatrixEntry:
    """An entry for feedback; `is_asked` if it has exactly the question of the feedback."""

    note_id: str
    is_asked: bool
    k: float
    a: float = 0.0
    b: float = 0.0


def learn(
    entries: Iterable[MatrixEntry],
    shown: Collection[str],
    cited: Collection[str],
    misleading: Collection[str],
) -> Iterator[MatrixEntry]:
    """Return each entry after the feedback, in order.

    `entries` has one of the question itself for every cited note (with a = b = 0 if it is new).
    """
    for entry in entries:
        a, b = entry.a, entry.b
        if entry.note_id in cited:
            a += 1.0 if entry.is_asked else CITED_NEARBY * entry.k
        elif cited and entry.note_id in shown:
            b += PASSED_OVER * entry.k
        if entry.note_id in misleading:
            b += entry.k
        yield attrs.evolve(entry, a=a, b=b)


# -- the sketch of a text ------------------------------------------------------------------------

#: Words of a text in its sketch: the share of lost words is then correct within about 0.05.
SKETCHED: Final = 128
#: Characters of a text that are sketched, in a millisecond or two; later ones change nothing.
SKETCHED_CHARACTERS: Final = 50_000
#: A text with a lower remaining share counts as replaced.
SHARE_KEPT: Final = 0.5
_HASH_BYTES: Final = 4
_WORD: Final = re.compile(r"\w+")


def sketch_of(text: str) -> bytes:
    """A uniform sample of the distinct content words of a text: the `SKETCHED` least of their hashes.

    (Bottom-k sampling, Cohen and Kaplan 2007.) Order, repetition, case and function words do not matter.
    """
    return b"".join(sorted(_hashes(text))[:SKETCHED])


def share_kept(sketch: bytes, text: str) -> float:
    """The estimated share, 0..1, of the content words of the sketched text that `text` still has."""
    old = [sketch[i : i + _HASH_BYTES] for i in range(0, len(sketch), _HASH_BYTES)]
    if not old:
        return 1.0
    present = _hashes(text)
    return sum(each in present for each in old) / len(old)


def _hashes(text: str) -> set[bytes]:
    words = set(_WORD.findall(text[:SKETCHED_CHARACTERS].lower())) - FUNCTION_WORDS
    return {zlib.crc32(word.encode("utf-8", "replace")).to_bytes(_HASH_BYTES) for word in words}


def digest_question(query: str) -> str:
    """Return a digest that identifies a question: a hash of the whole text."""
    return hashlib.blake2b(query.encode("utf-8", "replace"), digest_size=16).hexdigest()


# -- values and commands -------------------------------------------------------------------------


@frozen(kw_only=True)
class RememberedQuestion:
    """One entry of the memory of questions."""

    id: int
    note_id: str
    namespace: str
    question: str
    a: float
    b: float
    agent_id: str | None
    is_private: bool
    last_at: datetime | None

    @property
    def weight(self) -> float:
        """Return w."""
        return entry_weight(self.a, self.b)


@frozen(kw_only=True)
class QuestionFilter:
    """A filter of entries: all given conditions hold. `since` and `until`: time of the last question."""

    note_ids: tuple[str, ...] | None = None
    agent_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@frozen
class ForgetQuestions(LearningCommand[int]):
    """Drop entries; the reply is their number."""

    wanted: QuestionFilter


@frozen
class TrimQuestions(LearningCommand[int]):
    """Drop the oldest entries beyond `lcma.questions_kept`; the reply is their number."""


@frozen
class HalveQuestions(LearningCommand[int]):
    """Halve the entries of a note whose text was replaced; the reply is the number of entries.

    Nothing happens unless its sketch is still `old`: so a repetition halves nothing twice.
    """

    note_id: str
    old: bytes
    new: bytes


@frozen
class EmbedQuestions(LearningCommand[None]):
    """Store the vectors that an embedder made for the texts of entries; no reply."""

    embedder: str
    codes: tuple[tuple[int, bytes], ...]


@frozen
class LoadQuestions(LearningCommand[int | None]):
    """Load at most `most` entries of an embedder after entry `after` into the matrix that rankings read.

    The reply is the last entry that was read; None if there are no more, and the matrix is complete.
    """

    embedder: str
    dims: int
    after: int = 0
    most: int = 2_000
