"""Remembered questions (docs/spec/memory.md §8): formulas of evidence and feedback, and text sketches.

An entry records that a note was cited for a question. `a` counts feedback in favour of the entry, and `b`
counts feedback against it. For a new question, each entry has a kernel `k` and a weight `w`. The kernel says
how much closer the two questions are than any passage of the vault is to the new question. The weight is the
trust in the entry. Both are in 0..1.
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

#: Minimum cosine at which two questions are similar.
LEAST_COSINE: Final = 0.6
#: Prior in the formula for the weight of an entry. A single citation has a weight of 0.4.
PRIOR: Final = 1.5
#: Amount that full evidence adds to a search score of 0..1.
EVIDENCE_WEIGHT: Final = 0.8
#: Minimum evidence (exclusive) that makes a note a candidate even if no search found it.
CANDIDATE: Final = 0.05
#: Minimum cosine of two questions, and weight that an entry must exceed. The notes cited for one question
#: then answer the other question.
SAME_NEED: Final = 0.9
SURE: Final = 0.3
#: Effect of a citation, multiplied by the kernel. It is added to the near entries of the cited note, and
#: subtracted from the near entries of the other shown notes.
CITED_NEARBY: Final = 0.5
PASSED_OVER: Final = 0.3
#: Maximum number of characters that are stored of a question.
QUESTION_KEPT: Final = 2_000


def threshold(highest: float) -> float:
    """Return theta. A remembered question must have a larger cosine than theta.

    `highest` is the cosine of the nearest passage.
    """
    return max(LEAST_COSINE, highest)


def kernel(cosine: float, theta: float) -> float:
    """Return k. It is 0 up to `theta`, and 1 for the same question.

    If a passage is identical to the question, k is also 0.
    """
    if theta >= 1 or not cosine > theta:
        return 0.0
    return min(1.0, (cosine - theta) / (1 - theta))


def entry_weight(a: float, b: float) -> float:
    """Return w, the smoothed share of feedback in favour of an entry."""
    return a / (a + b + PRIOR)


def evidence(entries: Iterable[tuple[float, float]]) -> float:
    """Return E, the evidence for one note:

    `1 - product of (1 - w k)` over the entries of the note, which are passed as (w, k). The result is in
    0..1.
    """
    return 1 - math.prod(1 - w * k for w, k in entries)


#: Factor on the score of a suspect note (docs/spec/context.md §2).
SUSPECT_SHARE: Final = 0.7


def final_score(hybrid: float, evidenced: float, trust: float = 1.0) -> float:
    """Return the score of the ranking by evidence (docs/spec/memory.md §1).

    `trust` is below 1 for suspect notes.

    `hybrid` and `evidenced` are in 0..1. Two thirds of the evidence weight were also measured: rephrased
    questions then gain a quarter to a third less, and unrelated questions lose half as much
    (`bench/quality.md`).
    """
    return trust * (hybrid + EVIDENCE_WEIGHT * evidenced)


@frozen
class MatrixEntry:
    """An entry that feedback affects.

    `is_asked` is True if the entry has exactly the question of the feedback.
    """

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
    """Yield each entry in order, as it is after the feedback.

    For every cited note, `entries` must contain an entry of the question itself. A new entry has a = b = 0.
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


# -- text sketches -------------------------------------------------------------------------------

#: Number of words in a text sketch. With this number, the estimated share of lost words is accurate to about
#: 0.05.
SKETCHED: Final = 128
#: Maximum number of characters of a text to sketch, which takes a millisecond or two. Later characters have
#: no effect.
SKETCHED_CHARACTERS: Final = 50_000
#: Share of remaining words. Below this share, a text counts as replaced.
SHARE_KEPT: Final = 0.5
_HASH_BYTES: Final = 4
_WORD: Final = re.compile(r"\w+")


def sketch_of(text: str) -> bytes:
    """Return a uniform sample of the distinct content words in a text: the `SKETCHED` smallest hashes.

    The method is bottom-k sampling (Cohen and Kaplan 2007). Word order, repetition, case and function words
    have no effect.
    """
    return b"".join(sorted(_hashes(text))[:SKETCHED])


def share_kept(sketch: bytes, text: str) -> float:
    """Return the estimated share, 0..1, of the sketched text's content words that `text` still contains."""
    old = [sketch[i : i + _HASH_BYTES] for i in range(0, len(sketch), _HASH_BYTES)]
    if not old:
        return 1.0
    present = _hashes(text)
    return sum(each in present for each in old) / len(old)


def _hashes(text: str) -> set[bytes]:
    words = set(_WORD.findall(text[:SKETCHED_CHARACTERS].lower())) - FUNCTION_WORDS
    return {zlib.crc32(word.encode("utf-8", "replace")).to_bytes(_HASH_BYTES) for word in words}


def digest_question(query: str) -> str:
    """Return a digest that identifies a question. It is a hash of the whole text."""
    return hashlib.blake2b(query.encode("utf-8", "replace"), digest_size=16).hexdigest()


# -- values and commands -------------------------------------------------------------------------


@frozen(kw_only=True)
class RememberedQuestion:
    """An entry of the remembered questions."""

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
    """A filter for remembered questions.

    All given conditions must be met. `since` and `until` refer to the time at which the question was last
    asked.
    """

    note_ids: tuple[str, ...] | None = None
    agent_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@frozen
class ForgetQuestions(LearningCommand[int]):
    """Delete the matching entries. The reply is the number of deleted entries."""

    wanted: QuestionFilter


@frozen
class TrimQuestions(LearningCommand[int]):
    """Delete the oldest entries beyond `lcma.questions_kept`. The reply is the number of deleted entries."""


@frozen
class HalveQuestions(LearningCommand[int]):
    """Halve the entries of a note after its text was replaced. The reply is the number of halved entries.

    The command has an effect only if the sketch of the note is still `old`. A repeated command therefore
    halves nothing twice.
    """

    note_id: str
    old: bytes
    new: bytes


@frozen
class EmbedQuestions(LearningCommand[None]):
    """Store the vectors of an embedder for the texts of entries. No reply."""

    embedder: str
    codes: tuple[tuple[int, bytes], ...]


@frozen
class LoadQuestions(LearningCommand[int | None]):
    """Load at most `most` entries of an embedder, starting after entry `after`, into the matrix for rankings.

    The reply is the last entry that was read. It is None if there are no more entries and the matrix is
    complete.
    """

    embedder: str
    dims: int
    after: int = 0
    most: int = 2_000
