"""A saved evaluation, and what became better or worse since (docs/spec/context.md §3).

A baseline holds the rank of the first expected note of each question. Only questions that are the same in
both runs are compared. If `expect`, `within`, `tags` or `forbid` of a question changed, or only one side has
it, it is only named. Ranks below the depth of either run count as not found, so that a deeper search is not a
gain.

Measures of rankings are those of binary relevance: a note is expected or it is not. A ranking is given as the
ranks, from 1, at which the expected notes were found; of `relevant` expected notes those that were not found
have no rank. Each measure is 0..1 per question, and its mean over the questions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import asdict, field, frozen

from lithos.upkeep.evaluation.model_questions import LARGEST_FILE, MOST_QUESTIONS, Question

#: The cut of nDCG.
NDCG_CUT: Final = 10


def hit_at(k: int, ranks: Iterable[int]) -> float:
    """1 when an expected note is among the first k, else 0 (success@k; trec_eval `success_k`)."""
    return float(any(rank <= k for rank in ranks))


def recall_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """The share of the expected notes among the first k (Manning, Raghavan, Schütze 2008, section 8.3)."""
    return sum(rank <= k for rank in ranks) / relevant if relevant else 0.0


def reciprocal_rank(ranks: Iterable[int]) -> float:
    """1 / the first rank, 0 when nothing was found; its mean is MRR (Voorhees, TREC-8, 1999)."""
    return 1 / min(ranks, default=math.inf)


def ndcg_at(k: int, ranks: Iterable[int], relevant: int) -> float:
    """nDCG@k: sum of 1/log2(1 + rank) over that of the ideal ranking.

    Järvelin and Kekäläinen 2002, ACM TOIS 20(4), with the discount of Burges et al. 2005; for binary
    relevance both kinds of gain are the same. The ideal ranking has min(relevant, k) notes at the top.
    """
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, min(relevant, k) + 1))
    return sum(1 / math.log2(1 + rank) for rank in ranks if rank <= k) / ideal if ideal else 0.0


@frozen
class Ranking:
    """The ranks of the expected notes of one question, and how many were expected."""

    ranks: tuple[int, ...]
    relevant: int


@frozen
class Scores:
    """Means over the questions."""

    hit: float
    recall: float
    mrr: float
    ndcg: float

    @classmethod
    def of(cls, rankings: Sequence[Ranking], k: int) -> Scores:
        """The means; hit and recall among the first `k`, nDCG among the first 10, MRR over all ranks."""
        count = len(rankings)

        def mean(values: Iterable[float]) -> float:
            return math.fsum(values) / count if count else 0.0

        return cls(
            hit=mean(hit_at(k, each.ranks) for each in rankings),
            recall=mean(recall_at(k, each.ranks, each.relevant) for each in rankings),
            mrr=mean(reciprocal_rank(each.ranks) for each in rankings),
            ndcg=mean(ndcg_at(NDCG_CUT, each.ranks, each.relevant) for each in rankings),
        )


FORMAT: Final = 1
#: Bytes of a baseline: that of the largest file of questions, with every character escaped.
LARGEST_BASELINE: Final = 8 * LARGEST_FILE
#: Rows, far more than any search gives.
MOST_ROWS: Final = 1_000_000


class UnusableBaseline(Exception):
    """The file is not a baseline; the message says what to do."""


@frozen(kw_only=True)
class QuestionResult:
    """The result of one question: the rank of the first expected note and of the first forbidden one."""

    question: str
    mode: str = ""
    expect: tuple[str, ...] = ()
    within: int = 0
    tags: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    rank: int | None = None
    #: Rank of the first forbidden note among the first `within`.
    forbidden_rank: int | None = None

    @classmethod
    def of(cls, asked: Question, rank: int | None, forbidden_rank: int | None) -> QuestionResult:
        """The outcome of a question."""
        words, mode = asked.key
        return cls(
            question=words,
            mode=mode,
            expect=tuple(sorted(asked.expect)),
            within=asked.within,
            tags=tuple(sorted(asked.tags)),
            forbid=tuple(sorted(asked.forbid)),
            rank=rank,
            forbidden_rank=forbidden_rank,
        )

    @property
    def key(self) -> tuple[str, str]:
        """The fields by which two questions are the same."""
        return self.question, self.mode

    @property
    def asked(self) -> tuple[object, ...]:
        """The fields that must be equal for ranks to be comparable."""
        return self.expect, self.within, self.tags, self.forbid


@frozen(kw_only=True)
class Baseline:
    """An evaluation in its saved form.

    `mode` is that of questions without their own, `depth` is how many rows were looked at.
    """

    mode: str
    k: int
    depth: int
    version: str
    saved_at: str
    outcomes: tuple[QuestionResult, ...]

    def encode(self) -> str:
        """The content of the file, one outcome a line: fit to be kept under version control."""
        head = {"lithos_baseline": FORMAT, **asdict(self, filter=lambda each, _: each.name != "outcomes")}
        rows = ",\n".join(json.dumps(asdict(each)) for each in self.outcomes)
        return json.dumps(head)[:-1] + f', "outcomes": [\n{rows}\n]}}\n'


def read_baseline(content: bytes) -> Baseline:
    """The baseline in a file. Raises `UnusableBaseline`."""
    if len(content) > LARGEST_BASELINE:
        raise UnusableBaseline(f"it has more than {LARGEST_BASELINE:,} bytes")
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnusableBaseline("it is not valid JSON") from error
    if not isinstance(told, dict) or "lithos_baseline" not in told:
        raise UnusableBaseline("it was not written by --save")
    if told["lithos_baseline"] != FORMAT:
        raise UnusableBaseline("another version of Lithos wrote it; save a new one")
    try:
        rows = told["outcomes"]
        if not isinstance(rows, list) or len(rows) > MOST_QUESTIONS:
            raise TypeError("outcomes")
        return Baseline(
            mode=_text(told["mode"]),
            k=_rank(told["k"]),
            depth=_rank(told["depth"]),
            version=_text(told["version"]),
            saved_at=_text(told["saved_at"]),
            outcomes=tuple(map(_outcome, rows)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UnusableBaseline(f"something in it is missing or of a wrong kind ({error})") from error


def _outcome(row: Mapping[str, Any]) -> QuestionResult:
    return QuestionResult(
        question=_text(row["question"]),
        mode=_text(row["mode"]),
        expect=_texts(row["expect"]),
        within=_rank(row["within"]),
        tags=_texts(row["tags"]),
        forbid=_texts(row["forbid"]),
        rank=None if row["rank"] is None else _rank(row["rank"]),
        forbidden_rank=None if row["forbidden_rank"] is None else _rank(row["forbidden_rank"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise TypeError("half of a character")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return tuple(map(_text, value))


def _rank(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ROWS:
        raise TypeError("no rank")
    return value


@frozen
class RankChange:
    """A question whose ranks changed."""

    before: QuestionResult
    now: QuestionResult
    kind: Literal["better", "worse"]
    #: Words for a person.
    what: str


@frozen(kw_only=True)
class BaselineComparison:
    """An evaluation with its baseline; questions that cannot be compared are listed by their words."""

    changes: tuple[RankChange, ...] = ()
    #: Asked otherwise than in the baseline: other expected or forbidden notes, `within` or `tags`.
    changed: tuple[str, ...] = ()
    only_now: tuple[str, ...] = ()
    only_before: tuple[str, ...] = ()
    same: int = field(default=0)

    def of_kind(self, kind: Literal["better", "worse"]) -> tuple[RankChange, ...]:
        """The questions that became better, or worse."""
        return tuple(each for each in self.changes if each.kind == kind)


def compare(before: Baseline, outcomes: Iterable[QuestionResult], depth: int) -> BaselineComparison:
    """The questions that became better or worse; `depth` is the number of rows of the present run.

    A forbidden note that appeared makes a question worse whatever its rank did, one that went makes it
    better unless the rank fell.
    """
    old = {each.key: each for each in before.outcomes}
    seen, deepest = set[tuple[str, str]](), min(depth, before.depth)
    changes: list[RankChange] = []
    changed: list[str] = []
    only_now: list[str] = []
    same = 0
    for now in outcomes:
        seen.add(now.key)
        earlier = old.get(now.key)
        if earlier is None:
            only_now.append(now.question)
        elif earlier.asked != now.asked:
            changed.append(now.question)
        elif (change := _judge(earlier, now, deepest)) is not None:
            changes.append(change)
        else:
            same += 1
    return BaselineComparison(
        changes=tuple(changes),
        changed=tuple(changed),
        only_now=tuple(only_now),
        only_before=tuple(each.question for each in before.outcomes if each.key not in seen),
        same=same,
    )


def _judge(before: QuestionResult, now: QuestionResult, deepest: int) -> RankChange | None:
    ranks = [None if rank is None or rank > deepest else rank for rank in (before.rank, now.rank)]
    was, is_now = (deepest + 1 if rank is None else rank for rank in ranks)
    what = f"rank {ranks[0] or 'none'} -> {ranks[1] or 'none'}"
    if now.forbidden_rank is not None and before.forbidden_rank is None:
        return RankChange(before, now, "worse", f"a forbidden note came to rank {now.forbidden_rank}")
    if is_now > was:
        return RankChange(before, now, "worse", what)
    if before.forbidden_rank is not None and now.forbidden_rank is None:
        return RankChange(before, now, "better", "no forbidden note is found any more")
    return RankChange(before, now, "better", what) if is_now < was else None
