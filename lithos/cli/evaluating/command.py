"""`lithos evaluate FILE`: ask, print, compare with a baseline, save one; or write what was cited."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from lithos import __version__
from lithos.app.evaluation.asking import (
    DEFAULT_K,
    AskingFailed,
    Evaluation,
    Progress,
    ToolAsker,
    evaluate,
    load_questions,
    read_start,
)
from lithos.app.evaluation.check import cited_questions
from lithos.app.evaluation.rehearsal import rehearse
from lithos.app.stores import utc_now
from lithos.cli.commands.maintenance import progress_bars
from lithos.cli.commands.queries import find_owner
from lithos.cli.evaluating.printing import as_json, print_report
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session, missing_notes
from lithos.core.evaluation.baseline import (
    LARGEST_BASELINE,
    Baseline,
    Comparison,
    UnusableBaseline,
    compare,
    read_baseline,
)
from lithos.core.evaluation.questions import Question, UnusableTests, write_questions
from lithos.core.times import format_time
from lithos.services.upkeep.checks_notes import look_aside

FAILED, USAGE = 1, 2


@frozen
class _Here:
    """The server inside this process."""

    tools: Any

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer: Mapping[str, Any] | None = await self.tools.call(tool, arguments)
        return answer


def run_evaluate(session: Session) -> int:
    """Run the tests in a file; 1 when one fails or became worse. Raises `CommandFailed`."""
    typed = session.invocation.typed
    file = Path(typed["file"])
    if typed.get("from_receipts"):
        beside = [f"--{name}" for name in ("mode", "k", "save", "against") if name in typed]
        if beside:
            raise CommandFailed(
                f"--from-receipts only writes the file and asks nothing: leave {', '.join(beside)} "
                "for the run that follows.",
                USAGE,
            )
        return _write_file(session, file)
    questions = _load(file)
    before = _load_baseline(typed.get("against"))
    target = _target_of(typed.get("save"))
    with progress_bars(session, "questions") as progress:
        told: Progress = (lambda _done, _total: None) if progress is None else partial(progress, "questions")
        try:
            found = trio.run(partial(_ask, session, questions, told))
        except AskingFailed as failure:
            raise CommandFailed(f"The tests could not be run: {failure}") from failure
    outcomes = [each.outcome for each in found.judged]
    comparison = None if before is None else compare(before, outcomes, found.depth)
    saved = _save(found, target)
    _tell(session, found, before, comparison, saved)
    is_worse = comparison is not None and bool(comparison.of_kind("worse"))
    return FAILED if found.passed < len(found.judged) or is_worse else 0


def _load(file: Path) -> tuple[Question, ...]:
    try:
        return load_questions(file)
    except UnusableTests as error:
        raise CommandFailed(str(error), USAGE) from error
    except FileNotFoundError as error:
        raise CommandFailed(
            f"There is no file {file}. Write one (docs/test-knowledge.md), or let --from-receipts write it.",
            USAGE,
        ) from error
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror or error}.", USAGE) from error


def _load_baseline(name: str | None) -> Baseline | None:
    if name is None:
        return None
    path = Path(name)
    try:
        return read_baseline(read_start(path, LARGEST_BASELINE + 1))
    except UnusableBaseline as error:
        raise CommandFailed(f"{path} is no baseline: {error}. Save one with --save.", USAGE) from error
    except OSError as error:
        raise CommandFailed(
            f"The baseline {path} cannot be read: {error.strerror or error}. Save one with --save.", USAGE
        ) from error


async def _ask(session: Session, questions: tuple[Question, ...], told: Progress) -> Evaluation:
    typed = session.invocation.typed

    async def run(asker: ToolAsker) -> Evaluation:
        mode, k = typed.get("mode"), typed.get("k", DEFAULT_K)
        return await evaluate(asker, questions, mode=mode, k=k, told=told)

    owner = await find_owner(session)
    if owner is not None:
        return await run(owner)
    if not session.config.storage.notes_folder.is_dir():
        raise CommandFailed(missing_notes(session.config, "or start a server there first."))
    return await rehearse(session.config, lambda tools: run(_Here(tools)))


def _target_of(name: str | None) -> Path | None:
    """The file to save to; never a device or a pipe. Looked at before anything is asked."""
    if name is None:
        return None
    path = Path(os.path.realpath(name))
    if os.path.lexists(path) and not path.is_file():
        raise CommandFailed(f"--save {name!r} is no file, and was not touched. Name a file.", USAGE)
    if not path.parent.is_dir():
        raise CommandFailed(f"There is no folder {path.parent}. Make it, or name another file.", USAGE)
    return Path(name)


def _save(found: Evaluation, path: Path | None) -> Path | None:
    """Write the baseline, whole or not at all."""
    if path is None:
        return None
    if found.degraded:
        print(
            f"lithos: no baseline was saved: the search went without {', '.join(found.degraded)}, so the "
            "ranks mean little. Run it again when `lithos inspect health` is well.",
            file=sys.stderr,
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
    _write_atomically(Path(os.path.realpath(path)), baseline.encode(), os.replace)  # a link stays
    return path


def _write_file(session: Session, file: Path) -> int:
    """Write the file of what was cited; one that is there stays."""
    if file.is_symlink() or file.exists():
        raise CommandFailed(f"{file} is there already and was not changed. Name a new file.", USAGE)
    if not session.config.storage.notes_folder.is_dir():
        raise CommandFailed(missing_notes(session.config, "or start a server there first."))

    async def collect() -> list[tuple[Question, str]]:
        return await look_aside(lambda: cited_questions(session.config))

    found = trio.run(collect)
    if not found:
        raise CommandFailed(
            "No agent has cited a note for a question yet, so there is nothing to write. Questions are kept "
            "when an agent retrieves with a task_id and names cited_nodes as it completes the task."
        )
    is_json_lines = file.suffix.lower() in (".jsonl", ".ndjson")
    content = write_questions(found, as_json_lines=is_json_lines)
    if not is_json_lines:
        content = (
            f"# What agents asked and cited, newest first. Written by lithos {__version__}.\n\n{content}"
        )
    _write_atomically(file, content, _link_new)
    if session.invocation.as_json:
        print_json({"file": str(file), "questions": len(found)})
    else:
        print_line(f"Wrote {len(found)} questions to {file}. Run them: lithos evaluate {file}")
    return 0


def _link_new(source: str, target: Path) -> None:
    """Give the file its name, unless another has it by now."""
    os.link(source, target)
    os.unlink(source)


def _write_atomically(path: Path, content: str, put: Callable[[str, Path], None]) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}-", dir=path.absolute().parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            os.fchmod(descriptor, 0o666 & ~_umask())
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        put(temporary, path)
    except FileExistsError as error:
        raise CommandFailed(
            f"{path} is there already and was not changed. Name a new file.", USAGE
        ) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _tell(
    session: Session,
    found: Evaluation,
    before: Baseline | None,
    comparison: Comparison | None,
    saved: Path | None,
) -> None:
    if found.degraded and not session.invocation.as_json:
        print(f"lithos: the search went without {', '.join(found.degraded)}", file=sys.stderr)
    if session.invocation.as_json:
        print_json(as_json(found, before, comparison, saved))
    else:
        print_report(found, before, comparison, saved)
