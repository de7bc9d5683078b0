"""The `lithos doctor` check that runs the tests in `knowledge-tests.yaml` of the data directory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import trio

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import OwnerRecord, is_owned
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import DOCTOR, CheckFinding, check, fail, name_some, ok, warn
from lithos.memory.model.questions import RememberedQuestion
from lithos.memory.retrieve.questions import PRIVATE
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.server.mcp.client import OwnerClient, OwnerRefuses, OwnerUnreachable
from lithos.server.settings import ServerConfig
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.checks import Installed, look_aside
from lithos.upkeep.checks.stored_questions import list_questions
from lithos.upkeep.evaluation.copied_server import rehearse
from lithos.upkeep.evaluation.evaluating import AskingFailed, Evaluation, evaluate, load_questions
from lithos.upkeep.evaluation.model_questions import LONGEST_QUESTION, MOST_NAMES, Question, UnusableTests

#: Maximum number of questions to write. The newest questions are preferred.
MOST_WRITTEN: Final = 500
#: Maximum number of remembered questions to read.
_MOST_READ: Final = 20_000


def cited_questions(config: Config) -> list[tuple[Question, str]]:
    """Return questions with the titles of the cited notes, most recently asked questions first.

    Blocks.

    Works while a server runs. Raises `FileNotFoundError` if the notes folder does not exist, and the errors
    of `snapshot`.
    """
    data = config.of(StorageConfig).data_dir
    stats: Path = data / ".lithos" / "stats.db"
    remembered = list_questions(stats, _MOST_READ, is_live=is_owned(data / ".lithos" / "lock"))
    if not remembered:
        return []
    catalogue = survey_of(config, utc_now()).catalogue
    found: dict[tuple[str, str], Question] = {}
    titles: dict[tuple[str, str], list[str]] = {}
    for entry in remembered:
        note = _shown(entry, catalogue)
        if note is None:
            continue
        words = " ".join(entry.question.split())
        asked = Question(question=words, expect=(note.note.id,))
        known = found.get(asked.key)
        if known is None and len(found) >= MOST_WRITTEN:
            continue
        if known is not None and len(known.expect) >= MOST_NAMES:
            continue
        named = (*known.expect, note.note.id) if known else asked.expect
        found[asked.key] = attrs.evolve(known or asked, expect=tuple(dict.fromkeys(named)))
        titles.setdefault(asked.key, []).append(note.note.title)
    return [(question, _remark(titles, key)) for key, question in found.items()]


def _shown(entry: RememberedQuestion, catalogue: Catalogue) -> Entry | None:
    """Return the cited note.

    Return None if the note is missing or private, or if the question is unusable.
    """
    is_cited = entry.a > entry.b
    has_words = bool(entry.question.strip()) and len(entry.question) <= LONGEST_QUESTION
    if entry.is_private or not is_cited or not has_words:
        return None
    note = catalogue.get(entry.note_id)
    return None if note is None or note.note.access_scope == PRIVATE else note


def _remark(titles: Mapping[tuple[str, str], list[str]], key: tuple[str, str]) -> str:
    return ", ".join(dict.fromkeys(titles[key]))[:200]


TESTS: Final = "knowledge-tests.yaml"
#: Maximum seconds for all questions. The doctor stops a check after 60 seconds.
BOUND: Final = 45.0
_ANSWER_WAIT: Final = 10.0
_LONGEST_SHOWN: Final = 60


def find_tests(data: Path) -> bool:
    """Return whether the data directory has knowledge tests."""
    return (data / TESTS).is_file()


async def _check_knowledge(patient: Installed) -> list[CheckFinding]:
    """Run the tests against the running server or against a copy of the files. Report how many tests pass."""
    config, owner, is_live = patient.config, patient.owner.record, patient.is_live
    path = config.of(StorageConfig).data_dir / TESTS
    try:
        questions = await look_aside(lambda: load_questions(path))
    except UnusableTests as error:
        return [fail(f"The knowledge tests cannot be run. {error}", "Correct the file, or remove it.")]
    if is_live and (owner is None or owner.url is None):
        return [warn("The knowledge tests were not run.", "See the owner check.")]
    if not config.of(StorageConfig).notes_folder.is_dir():
        return [warn("The knowledge tests were not run.", "See the notes check.")]
    try:
        with trio.move_on_after(BOUND):
            found = await _ask(patient, owner if is_live else None, questions)
            return _judge(found, path)
    except (AskingFailed, OwnerRefuses, OwnerUnreachable) as failure:
        return [fail(f"The knowledge tests could not be run: {failure}", "See the owner check.")]
    return [
        warn(
            f"The {len(questions)} knowledge tests did not finish within {BOUND:g} seconds.",
            f"Run them separately: lithos evaluate {path}",
        )
    ]


async def _ask(patient: Installed, owner: OwnerRecord | None, questions: tuple[Question, ...]) -> Evaluation:
    if owner is not None and owner.url is not None:
        client = OwnerClient(
            owner.url, owner.token or patient.config.of(ServerConfig).auth_token, _ANSWER_WAIT
        )
        return await evaluate(client, questions)
    assert patient.run_server is not None
    return await rehearse(patient.config, patient.run_server, lambda tools: evaluate(tools, questions))


def _judge(found: Evaluation, path: Path) -> list[CheckFinding]:
    total, failed = len(found.judged), [each for each in found.judged if not each.passed]
    told = f"{found.passed} of {total} knowledge tests pass"
    if not failed:
        return [ok(f"{told}.")]
    named = name_some(repr(" ".join(each.question.question.split())[:_LONGEST_SHOWN]) for each in failed)
    without = f" (the search went without {', '.join(found.degraded)})" if found.degraded else ""
    return [
        fail(
            f"{told}{without}. These tests fail: {named}.",
            f"See the reasons with lithos evaluate {path}. Then correct the notes or the tests.",
        )
    ]


@check("knowledge_tests", DOCTOR, place=200, when=lambda patient: find_tests(patient.data))
async def check_knowledge_tests(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the knowledge tests of the data directory pass."""
    for each in await _check_knowledge(patient):
        yield each
