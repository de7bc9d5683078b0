"""A knowledge test run: asks the questions with the tools and judges the answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field, frozen

from lithos.history.service.undo import ToolCalls
from lithos.kernel.operating_system import CLOSE_ON_EXEC, NO_WAIT
from lithos.kernel.values.principals import EVALUATE_AGENT
from lithos.upkeep.evaluation.model_baseline import NDCG_CUT, QuestionResult, Ranking, Scores
from lithos.upkeep.evaluation.model_questions import (
    DEEPEST,
    LARGEST_FILE,
    RETRIEVE,
    Question,
    UnusableTests,
    read_questions,
)

DEFAULT_MODE: Final = "hybrid"
DEFAULT_K: Final = 5
#: Maximum number of names in a message. Further names are only counted.
_NAMED: Final = 3

Progress = Callable[[int, int], None]


class AskingFailed(Exception):
    """Error for a question that could not be asked. The message comes from the server."""


@frozen
class NoteReference:
    """A note in a search result."""

    id: str
    path: str
    title: str


@frozen
class QuestionNote:
    """A note that a question names, with its rank in the answer.

    `note` is None if the note does not exist.
    """

    asked: str
    note: NoteReference | None
    rank: int | None


@frozen(kw_only=True)
class JudgedQuestion:
    """A question and its judged answer. The test passed if `reasons` is empty."""

    question: Question
    mode: str
    expected: tuple[QuestionNote, ...]
    #: Forbidden notes that were among the first `within` results.
    forbidden: tuple[QuestionNote, ...]
    reasons: tuple[str, ...]
    #: Unusual observations that are not failures.
    remarks: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the test passed."""
        return not self.reasons

    @property
    def rank(self) -> int | None:
        """Rank of the first expected note, or None."""
        return min(self.ranks, default=None)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the expected notes that were found. If two names mean the same note, it counts once."""
        return tuple(sorted({each.rank for each in self.expected if each.rank is not None}))

    @property
    def outcome(self) -> QuestionResult:
        """The fields that a baseline stores."""
        forbidden = min((each.rank for each in self.forbidden if each.rank is not None), default=None)
        return QuestionResult.of(self.question, self.rank, forbidden)

    @property
    def ranking(self) -> Ranking:
        """The ranks of expected notes, and the number of expected notes."""
        known = {each.note.id if each.note else each.asked for each in self.expected}
        return Ranking(self.ranks, len(known))


@frozen(kw_only=True)
class Evaluation:
    """All judged questions. `depth` is the number of results read for each question."""

    mode: str
    k: int
    depth: int
    judged: tuple[JudgedQuestion, ...]
    #: Parts of the search that were missing during the run, such as `embeddings`. If a part is missing, the
    #: ranks mean little.
    degraded: tuple[str, ...]

    @property
    def passed(self) -> int:
        """The number of passed questions."""
        return sum(each.passed for each in self.judged)

    @property
    def scores(self) -> Scores:
        """The means of the measures over all questions."""
        return Scores.of([each.ranking for each in self.judged], self.k)


def read_start(path: Path, most: int) -> bytes:
    """Read at most `most` bytes of a file. A pipe is read without waiting for its writer.

    Blocks. Raises `OSError`.
    """
    # A pipe or a device may be endless.
    descriptor = os.open(path, os.O_RDONLY | CLOSE_ON_EXEC | NO_WAIT)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) or b""


def load_questions(path: Path) -> tuple[Question, ...]:
    """Return the questions in a file. Blocks. Raises `UnusableTests` and `OSError`."""
    content = read_start(path, LARGEST_FILE + 1)
    is_json_lines = True if path.suffix.lower() in (".jsonl", ".ndjson") else None
    try:
        return read_questions(content, is_json_lines=is_json_lines)
    except UnusableTests as error:
        raise UnusableTests(f"{path}: {error}") from error


async def evaluate(
    asker: ToolCalls,
    questions: Sequence[Question],
    *,
    mode: str | None = None,
    k: int = DEFAULT_K,
    told: Progress = lambda _done, _total: None,
) -> Evaluation:
    """Ask every question and judge the answers.

    `mode` overrides the modes of the questions. Raises `AskingFailed`.
    """
    depth = min(DEEPEST, max(NDCG_CUT, k, *(each.within for each in questions)))
    asking = _Asking(asker, depth)
    judged = []
    for number, question in enumerate(questions, 1):
        judged.append(await asking.judge(question, mode or question.mode or DEFAULT_MODE))
        told(number, len(questions))
    return Evaluation(
        mode=mode or DEFAULT_MODE,
        k=k,
        depth=depth,
        judged=tuple(judged),
        degraded=tuple(sorted(asking.degraded)),
    )


#: Maximum seconds to wait in total until the server is ready, and seconds between two attempts.
PATIENCE: Final = 15.0
ASK_AGAIN: Final = 0.25


@define
class _Asking:
    _asker: ToolCalls
    _depth: int
    degraded: set[str] = field(factory=set)  # bounded: one for each vault
    #: Remaining seconds to wait for a degraded or indexing server.
    _patience: float = PATIENCE
    _known: dict[str, tuple[NoteReference, ...]] = field(factory=dict)

    async def judge(self, question: Question, mode: str) -> JudgedQuestion:
        """Ask one question and judge the answer."""
        rows = await self._rows(question, mode)
        expected: list[QuestionNote] = []
        reasons: list[str] = []
        for asked in question.expect:
            notes = await self._find(asked, rows)
            expected.append(_place(asked, notes[0] if len(notes) == 1 else None, rows))
            if not notes:
                reasons.append(f"no such note: {asked}")
            elif len(notes) > 1:
                reasons.append(f"ambiguous title {asked!r}: {_list(notes)}; give the path")
        forbidden: list[QuestionNote] = []
        remarks: list[str] = []
        for asked in question.forbid:
            notes = await self._find(asked, rows)
            if not notes:
                remarks.append(f"forbidden note does not exist: {asked}")
            forbidden += [_place(asked, note, rows) for note in notes]
        present = tuple(each for each in forbidden if each.rank is not None and each.rank <= question.within)
        reasons += [f"forbidden note at rank {each.rank}: {each.asked}" for each in present]
        rank = min((each.rank for each in expected if each.rank is not None), default=None)
        if rank is None and any(each.note for each in expected):
            reasons.append(f"expected note not among the first {self._depth}")
        elif rank is not None and rank > question.within:
            reasons.append(f"rank {rank}, wanted within {question.within}")
        return JudgedQuestion(
            question=question,
            mode=mode,
            expected=tuple(expected),
            forbidden=present,
            reasons=tuple(reasons),
            remarks=tuple(remarks),
        )

    async def _rows(self, question: Question, mode: str) -> list[NoteReference]:
        """Return the notes in the order of the answer."""
        arguments: dict[str, Any] = {"query": question.question, "agent_id": EVALUATE_AGENT}
        if question.tags:
            arguments["tags"] = list(question.tags)
        tool = "lithos_retrieve" if mode == RETRIEVE else "lithos_search"
        if mode != RETRIEVE:
            arguments["mode"] = mode
        found: dict[str, NoteReference] = {}
        # The server may truncate a long answer. The answer then contains the offset of the next page.
        wanted, offset = self._depth, 0
        while True:
            page = {"limit": wanted - offset, "offset": offset} if offset else {"limit": wanted}
            answer = await self._ask_ready(tool, arguments | page)
            self._note_degraded(answer)
            for row in answer["results"]:
                found.setdefault(row["id"], _note(row))
            offset = answer.get("next_offset") or 0
            if not 0 < offset < wanted or not answer["results"]:
                return list(found.values())[:wanted]

    async def _ask_ready(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool and return its answer.

        If a newly started server lacks an index, repeat the call for some seconds.
        """
        answer = await self._ask(tool, arguments)
        while (answer.get("degraded") or answer.get("indexing")) and self._patience > 0:
            self._patience -= ASK_AGAIN
            await trio.sleep(ASK_AGAIN)
            answer = await self._ask(tool, arguments)
        return answer

    def _note_degraded(self, answer: Mapping[str, Any]) -> None:
        if answer.get("degraded"):
            failed = answer.get("failed_backends") or answer.get("failed_scouts") or ["search"]
            self.degraded.update(map(str, failed))
        if answer.get("indexing"):
            self.degraded.add("notes not indexed yet")

    async def _find(self, asked: str, rows: Sequence[NoteReference]) -> tuple[NoteReference, ...]:
        """Return the notes with this id, path or title. Only a title can match several notes."""
        for note in rows:
            if asked == note.id or _is_path(asked, note):
                return (note,)
        if asked not in self._known:
            self._known[asked] = await self._look_up(asked)
        return self._known[asked]

    async def _look_up(self, asked: str) -> tuple[NoteReference, ...]:
        title = asked.casefold()
        of_path = await self._list({"path_prefix": asked}, lambda note: _is_path(asked, note), most=1)
        if of_path:
            return tuple(of_path)
        titled = {"title_contains": asked}
        named = await self._list(titled, lambda note: note.title.strip().casefold() == title)
        return tuple([note for note in named if note.title.strip() == asked] or named) or (
            await self._look_up_id(asked)
        )

    async def _look_up_id(self, asked: str) -> tuple[NoteReference, ...]:
        answer = await self._asker.call("lithos_node_stats", {"node_id": asked}) or {}
        if answer.get("status") != "error":
            return (NoteReference(asked, "", ""),)
        if answer.get("code") == "doc_not_found":
            return ()
        raise AskingFailed(str(answer.get("message")))

    async def _list(
        self, filters: Mapping[str, Any], wanted: Callable[[NoteReference], bool], most: int | None = None
    ) -> list[NoteReference]:
        """Return the notes that `wanted` accepts. Reads further pages until `most` notes are found."""
        found: list[NoteReference] = []
        offset = total = 0
        while offset <= total and (most is None or len(found) < most):
            answer = await self._ask("lithos_list", {**filters, "limit": _PAGE, "offset": offset})
            if not answer["items"]:
                break
            found += filter(wanted, map(_note, answer["items"]))
            offset, total = offset + len(answer["items"]), answer["total"] - 1
        return found

    async def _ask(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = await self._asker.call(tool, arguments) or {}
        if answer.get("status") == "error":
            raise AskingFailed(str(answer.get("message")))
        return answer


#: Number of `lithos_list` rows to request per call.
_PAGE: Final = 200


def _note(row: Mapping[str, Any]) -> NoteReference:
    return NoteReference(str(row["id"]), str(row["path"]), str(row["title"]))


def _is_path(asked: str, note: NoteReference) -> bool:
    return note.path in (asked, f"{asked}.md")


def _place(asked: str, note: NoteReference | None, rows: Iterable[NoteReference]) -> QuestionNote:
    for rank, row in enumerate(rows, 1):
        if note is not None and row.id == note.id:
            return QuestionNote(asked, row, rank)
    return QuestionNote(asked, note, None)


def _list(notes: Sequence[NoteReference]) -> str:
    more = [f"{len(notes) - _NAMED} more"] if len(notes) > _NAMED else []
    return ", ".join([*(note.path for note in notes[:_NAMED]), *more])
