"""The command `lithos evaluate FILE`.

The command runs tests, prints results, compares or saves a baseline, or writes a test file.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import asdict, filters, frozen

from lithos import __version__
from lithos.history.service.undo import ToolCalls
from lithos.kernel.databases.private_files import replace_file
from lithos.kernel.parts import utc_now
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.times import format_time
from lithos.server.command.asking import NO_NOTES, find_owner, local_servers
from lithos.server.command.output import tell, warn
from lithos.server.command.progress import counted
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.upkeep.checks.checks import look_aside
from lithos.upkeep.evaluation import evaluating as asking
from lithos.upkeep.evaluation.check import cited_questions
from lithos.upkeep.evaluation.copied_server import rehearse
from lithos.upkeep.evaluation.evaluating import (
    DEFAULT_K,
    AskingFailed,
    Evaluation,
    JudgedQuestion,
    NoteReference,
    Progress,
    QuestionNote,
)
from lithos.upkeep.evaluation.model_baseline import (
    LARGEST_BASELINE,
    Baseline,
    BaselineComparison,
    UnusableBaseline,
    compare,
    read_baseline,
)
from lithos.upkeep.evaluation.model_questions import Question, UnusableTests, write_questions

#: Maximum number of characters of a question in the table.
_QUESTION: Final = 60
#: Maximum number of listed questions that occur only in the run or only in the baseline.
_LISTED: Final = 5


@frozen
class Report:
    """The results of a test run.

    `against` is the older baseline and the differences from it. `saved` is the path of the new baseline.
    """

    found: Evaluation
    against: tuple[Baseline, BaselineComparison] | None
    saved: Path | None

    def lines(self) -> Iterator[str]:
        """Yield all questions with their ranks, the measures, the changes, and the new baseline's path."""
        found, scores = self.found, self.found.scores
        yield f"{'rank':>4}  {'within':>6}  result  question"
        for each in found.judged:
            rank = str(each.rank) if each.rank is not None else "-"
            result = "pass" if each.passed else "FAIL"
            own = f" [{each.mode}]" if each.mode != found.mode else ""
            question = _shorten(each.question.question)
            yield f"{rank:>4}  {each.question.within:>6}  {result:<6}  {question}{own}"
            yield from (f"{'':22}{line}" for line in (*each.reasons, *each.remarks))
        passed = f"{found.passed} of {len(found.judged)} passed"
        yield f"{passed} (mode {found.mode}, {found.depth} rows looked at)"
        yield (
            f"hit@{found.k} {scores.hit:.3f}  recall@{found.k} {scores.recall:.3f}  MRR {scores.mrr:.3f}  "
            f"nDCG@10 {scores.ndcg:.3f}"
        )
        if self.against is not None:
            yield from _list_changes(*self.against)
        if self.saved is not None:
            yield f"Baseline saved to {self.saved}"

    def as_json(self) -> dict[str, Any]:
        """Return the whole report as JSON."""
        found, scores = self.found, self.found.scores
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
            "against": None if self.against is None else _comparison_as_json(*self.against),
            "saved": None if self.saved is None else str(self.saved),
        }


def _list_changes(before: Baseline, comparison: BaselineComparison) -> Iterator[str]:
    better, worse = comparison.of_kind("better"), comparison.of_kind("worse")
    yield (
        f"Against the baseline of {before.saved_at} (mode {before.mode}, lithos {before.version}): "
        f"{len(worse)} worse, {len(better)} better, {comparison.same} the same"
    )
    for change in (*worse, *better):
        yield f"  {change.kind}: {_shorten(change.now.question)}: {change.what}"
    for what, questions in (
        ("changed since the baseline, not compared", comparison.changed),
        ("not in the baseline", comparison.only_now),
        ("only in the baseline", comparison.only_before),
    ):
        if questions:
            yield f"  {what}: {len(questions)}"
            yield from (f"    {_shorten(question)}" for question in questions[:_LISTED])


def _shorten(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= _QUESTION else beginning(words, _QUESTION - 1) + "…"


def _question_as_json(each: JudgedQuestion) -> dict[str, Any]:
    return {
        "question": each.question.question,
        "line": each.question.line,
        "mode": each.mode,
        "within": each.question.within,
        "rank": each.rank,
        "passed": each.passed,
        "reasons": list(each.reasons),
        "remarks": list(each.remarks),
        "expect": [_named_as_json(named) for named in each.expected],
        "forbidden": [_named_as_json(named) for named in each.forbidden],
    }


def _named_as_json(each: QuestionNote) -> dict[str, Any]:
    note = each.note or NoteReference("", "", "")
    told = {"id": each.note and note.id, "path": note.path or None, "title": note.title or None}
    return {"asked": each.asked, **told, "rank": each.rank}


def _comparison_as_json(before: Baseline, comparison: BaselineComparison) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {"worse": [], "better": []}
    for change in comparison.changes:
        changes[change.kind].append(
            {
                "question": change.now.question,
                "mode": change.now.mode or None,
                "before": change.before.rank,
                "now": change.now.rank,
                "what": change.what,
            }
        )
    others = asdict(comparison, filter=filters.exclude("changes"))
    saved = asdict(before, filter=filters.exclude("depth", "outcomes"))
    return {**saved, **changes, "same": comparison.same, **others}


FAILED, USAGE = 1, 2


def run_evaluate(session: CommandSession) -> int:
    """Run the tests in a file.

    Return 1 if a test fails or its result became worse. Raises `CommandFailed`.
    """
    typed = session.typed
    file = Path(typed["file"])
    if typed.get("from_receipts"):
        beside = [f"--{name}" for name in ("mode", "k", "save", "against") if name in typed]
        if beside:
            given = ", ".join(beside)
            raise CommandFailed(
                f"--from-receipts only writes FILE and runs no test, so it cannot be combined with {given}. "
                f"Use {given} when you run the tests.",
                USAGE,
            )
        return _write_file(session, file)
    questions = _load(file)
    before = _load_baseline(Path(typed["against"])) if "against" in typed else None
    target = _target_of(typed["save"]) if "save" in typed else None
    with counted(session, "questions", "questions") as told:
        try:
            found = trio.run(partial(_ask, session, questions, told))
        except AskingFailed as failure:
            raise CommandFailed(f"The tests could not be run: {failure}") from failure
    outcomes = [each.outcome for each in found.judged]
    against = None if before is None else (before, compare(before, outcomes, found.depth))
    report = Report(found, against, None if target is None else _save(found, target))
    if found.degraded and not session.as_json:
        warn(f"the search went without {', '.join(found.degraded)}")
    tell(session, report.as_json(), report.lines())
    is_worse = against is not None and bool(against[1].of_kind("worse"))
    return FAILED if found.passed < len(found.judged) or is_worse else 0


def _load(file: Path) -> tuple[Question, ...]:
    try:
        return asking.load_questions(file)
    except UnusableTests as error:
        raise CommandFailed(str(error), USAGE) from error
    except FileNotFoundError as error:
        raise CommandFailed(
            f"There is no file {file}. Write a test file (docs/keep-healthy.md), or create one "
            "with --from-receipts.",
            USAGE,
        ) from error
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.", USAGE) from error


def _load_baseline(path: Path) -> Baseline:
    try:
        return read_baseline(asking.read_start(path, LARGEST_BASELINE + 1))
    except UnusableBaseline as error:
        raise CommandFailed(f"{path} is not a baseline: {error}. Save one with --save.", USAGE) from error
    except OSError as error:
        raise CommandFailed(
            f"The baseline {path} cannot be read: {error.strerror or error}. Save one with --save.", USAGE
        ) from error


async def _ask(session: CommandSession, questions: tuple[Question, ...], told: Progress) -> Evaluation:
    typed = session.typed

    async def run(asker: ToolCalls) -> Evaluation:
        mode, k = typed.get("mode"), typed.get("k", DEFAULT_K)
        return await asking.evaluate(asker, questions, mode=mode, k=k, told=told)

    owner = await find_owner(session)
    if owner is not None:
        return await run(owner)
    session.require_notes(NO_NOTES)
    return await rehearse(session.config, local_servers(session).run, run)


def _target_of(name: str) -> Path:
    """Return the path to save to.

    Devices and pipes are refused. Must be called before the first question is asked.
    """
    path = Path(os.path.realpath(name))
    if os.path.lexists(path) and not path.is_file():
        raise CommandFailed(f"--save {name!r} is not a file. It was not changed. Choose a file.", USAGE)
    if not path.parent.is_dir():
        raise CommandFailed(
            f"There is no folder {path.parent}. Create the folder, or choose another file.", USAGE
        )
    return Path(name)


def _save(found: Evaluation, path: Path) -> Path | None:
    """Write the baseline, whole or not at all. Return None if the search was degraded."""
    if found.degraded:
        warn(
            f"no baseline was saved: the search went without {', '.join(found.degraded)}, so the "
            "ranks mean little. Run the tests again when `lithos inspect health` reports no "
            "problem."
        )
        return None
    baseline = Baseline(
        mode=found.mode,
        k=found.k,
        depth=found.depth,
        version=__version__,
        saved_at=format_time(utc_now()),
        outcomes=tuple(each.outcome for each in found.judged),
    )
    _write_whole(Path(os.path.realpath(path)), baseline.encode(), is_new=False)  # keeps a symbolic link
    return path


def _write_file(session: CommandSession, file: Path) -> int:
    """Write a test file of cited questions. An existing file is not changed."""
    if file.is_symlink() or file.exists():
        raise CommandFailed(f"{file} already exists and was not changed. Choose a new file.", USAGE)
    session.require_notes(NO_NOTES)

    found = trio.run(look_aside, lambda: cited_questions(session.config))
    if not found:
        raise CommandFailed(
            "No agent has cited a note for a question yet, so there is nothing to write. A "
            "question is kept when an agent retrieves with a task_id and names cited_nodes when "
            "it completes the task."
        )
    is_json_lines = file.suffix.lower() in (".jsonl", ".ndjson")
    content = write_questions(found, as_json_lines=is_json_lines)
    if not is_json_lines:
        content = f"# Agents' questions and citations, newest first. By lithos {__version__}.\n\n{content}"
    _write_whole(file, content, is_new=True)
    line = f"Wrote {len(found)} questions to {file}. Run them: lithos evaluate {file}"
    tell(session, {"file": str(file), "questions": len(found)}, line)
    return 0


def _write_whole(path: Path, content: str, *, is_new: bool) -> None:
    """Write a file completely or not at all.

    If `is_new`, refuse to replace an existing file. Raises `CommandFailed`.
    """
    fresh = path.with_name(f".{path.name[:100]}-{secrets.token_hex(4)}")
    try:
        replace_file(fresh if is_new else path, content.encode(), fresh)
        if is_new:
            os.link(fresh, path)
    except FileExistsError as error:
        raise CommandFailed(
            f"{path} already exists and was not changed. Choose a new file.", USAGE
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
