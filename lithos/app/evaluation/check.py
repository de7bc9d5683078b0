"""The check of `lithos doctor` that runs `knowledge-tests.yaml` of the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from lithos.app.evaluation.asking import AskingFailed, Evaluation, evaluate, load_questions
from lithos.app.evaluation.rehearsal import rehearse
from lithos.config.catalogue import Config
from lithos.core.evaluation.questions import Question, UnusableTests
from lithos.core.findings import Finding, fail, name_some, ok, warn
from lithos.front.bridge.client import OwnerClient, OwnerRefuses, OwnerUnreachable
from lithos.services.upkeep.checks_notes import look_aside
from lithos.stores.owner_record import OwnerRecord

TESTS: Final = "knowledge-tests.yaml"
#: Seconds for all questions; the doctor gives a check up after 60.
BOUND: Final = 45.0
_ANSWER_WAIT: Final = 10.0
_LONGEST_SHOWN: Final = 60


def find_tests(data: Path) -> bool:
    """Whether there are tests to run."""
    return (data / TESTS).is_file()


async def check_knowledge(config: Config, owner: OwnerRecord | None, *, is_live: bool) -> list[Finding]:
    """How many of the tests pass: asked of the running server, or of a copy of the files."""
    path = config.storage.data_dir / TESTS
    try:
        questions = await look_aside(lambda: load_questions(path))
    except UnusableTests as error:
        return [fail(f"The knowledge tests cannot be run. {error}", "Correct the file, or take it away.")]
    if is_live and (owner is None or owner.url is None):
        return [warn("The knowledge tests were not run.", "See the check of the owner.")]
    if not config.storage.notes_folder.is_dir():
        return [warn("The knowledge tests were not run.", "See the check of the notes.")]
    try:
        with trio.move_on_after(BOUND):
            found = await _ask(config, owner if is_live else None, questions)
            return _judge(found, path)
    except (AskingFailed, OwnerRefuses, OwnerUnreachable) as failure:
        return [fail(f"The knowledge tests could not be asked: {failure}", "See the check of the owner.")]
    return [
        warn(
            f"The {len(questions)} knowledge tests were not done after {BOUND:g} seconds.",
            f"Run them by themselves: lithos evaluate {path}",
        )
    ]


async def _ask(config: Config, owner: OwnerRecord | None, questions: tuple[Question, ...]) -> Evaluation:
    if owner is not None and owner.url is not None:
        client = OwnerClient(owner.url, owner.token or config.server.auth_token, _ANSWER_WAIT)
        return await evaluate(client, questions)
    return await rehearse(config, lambda tools: evaluate(tools, questions))


def _judge(found: Evaluation, path: Path) -> list[Finding]:
    total, failed = len(found.judged), [each for each in found.judged if not each.passed]
    told = f"{found.passed} of {total} knowledge tests pass"
    if not failed:
        return [ok(f"{told}.")]
    named = name_some(repr(" ".join(each.question.question.split())[:_LONGEST_SHOWN]) for each in failed)
    without = f" (the search went without {', '.join(found.degraded)})" if found.degraded else ""
    return [
        fail(
            f"{told}{without}. These do not: {named}.",
            f"See why with lithos evaluate {path}; then correct the notes, or the tests.",
        )
    ]
