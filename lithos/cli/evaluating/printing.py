"""The report of `lithos evaluate`: a table for people, one document for programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from lithos.app.evaluation.asking import Evaluation, Judged, Named
from lithos.cli.output import print_line
from lithos.core.evaluation.baseline import Baseline, Comparison

#: Characters of a question in the table.
_QUESTION: Final = 60
#: Questions listed that only one side has.
_LISTED: Final = 5


def print_report(
    found: Evaluation, before: Baseline | None, comparison: Comparison | None, saved: Path | None
) -> None:
    """Every question with its rank, the measures, what changed, and what was saved."""
    print_line(f"{'rank':>4}  {'within':>6}  result  question")
    for each in found.judged:
        _print_question(each, found.mode)
    scores, count = found.scores, len(found.judged)
    print_line(f"{found.passed} of {count} passed (mode {found.mode}, {found.depth} rows looked at)")
    print_line(
        f"hit@{found.k} {scores.hit:.3f}  recall@{found.k} {scores.recall:.3f}  MRR {scores.mrr:.3f}  "
        f"nDCG@10 {scores.ndcg:.3f}"
    )
    if before is not None and comparison is not None:
        _print_comparison(before, comparison)
    if saved is not None:
        print_line(f"Baseline saved to {saved}")


def _print_question(each: Judged, mode: str) -> None:
    rank = str(each.rank) if each.rank is not None else "-"
    result = "pass" if each.passed else "FAIL"
    own = f" [{each.mode}]" if each.mode != mode else ""
    print_line(f"{rank:>4}  {each.question.within:>6}  {result:<6}  {_shorten(each.question.question)}{own}")
    for line in (*each.reasons, *each.remarks):
        print_line(f"{'':22}{line}")


def _print_comparison(before: Baseline, comparison: Comparison) -> None:
    better, worse = comparison.of_kind("better"), comparison.of_kind("worse")
    print_line(
        f"Against the baseline of {before.saved_at} (mode {before.mode}, lithos {before.version}): "
        f"{len(worse)} worse, {len(better)} better, {comparison.same} the same"
    )
    for change in (*worse, *better):
        print_line(f"  {change.kind}: {_shorten(change.now.question)}: {change.what}")
    _print_aside("asked otherwise now, not compared", comparison.changed)
    _print_aside("not in the baseline", comparison.only_now)
    _print_aside("only in the baseline", comparison.only_before)


def _print_aside(what: str, questions: tuple[str, ...]) -> None:
    if questions:
        print_line(f"  {what}: {len(questions)}")
        for question in questions[:_LISTED]:
            print_line(f"    {_shorten(question)}")


def _shorten(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= _QUESTION else words[: _QUESTION - 1] + "…"


def as_json(
    found: Evaluation, before: Baseline | None, comparison: Comparison | None, saved: Path | None
) -> dict[str, Any]:
    """The whole report."""
    scores = found.scores
    return {
        "mode": found.mode,
        "k": found.k,
        "depth": found.depth,
        "total": len(found.judged),
        "passed": found.passed,
        "failed": len(found.judged) - found.passed,
        "scores": {
            "hit_at_k": round(scores.hit, 6),
            "recall_at_k": round(scores.recall, 6),
            "mrr": round(scores.mrr, 6),
            "ndcg_at_10": round(scores.ndcg, 6),
        },
        "degraded": list(found.degraded),
        "questions": [_question_as_json(each) for each in found.judged],
        "against": None if before is None or comparison is None else _comparison_as_json(before, comparison),
        "saved": None if saved is None else str(saved),
    }


def _question_as_json(each: Judged) -> dict[str, Any]:
    return {
        "question": each.question.question,
        "line": each.question.line,
        "mode": each.mode,
        "within": each.question.within,
        "rank": each.rank,
        "passed": each.passed,
        "reasons": list(each.reasons),
        "remarks": list(each.remarks),
        "expect": _named_as_json(each.expected),
        "forbidden": _named_as_json(each.forbidden),
    }


def _named_as_json(named: Iterable[Named]) -> list[dict[str, Any]]:
    return [
        {
            "asked": each.asked,
            "id": each.note.id if each.note else None,
            "path": (each.note.path or None) if each.note else None,
            "title": (each.note.title or None) if each.note else None,
            "rank": each.rank,
        }
        for each in named
    ]


def _comparison_as_json(before: Baseline, comparison: Comparison) -> dict[str, Any]:
    changes = {
        kind: [
            {
                "question": change.now.question,
                "mode": change.now.mode or None,
                "before": change.before.rank,
                "now": change.now.rank,
                "what": change.what,
            }
            for change in comparison.of_kind(kind)
        ]
        for kind in ("worse", "better")
    }
    return {
        "mode": before.mode,
        "k": before.k,
        "version": before.version,
        "saved_at": before.saved_at,
        **changes,
        "same": comparison.same,
        "changed": list(comparison.changed),
        "only_now": list(comparison.only_now),
        "only_before": list(comparison.only_before),
    }
