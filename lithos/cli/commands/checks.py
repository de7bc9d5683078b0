"""`lithos validate` (issues of note files, `--fix` repairs them) and `lithos doctor` (one line per check)."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import trio

from lithos.app.doctor import Doctor, Patient
from lithos.app.vault import open_notes, style_of, survey_of
from lithos.cli.commands.maintenance import progress_bars
from lithos.cli.options import Invocation
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session, check_places, missing_notes
from lithos.config.load import LogSettings, load_log_settings, load_usable_config
from lithos.config.sources import ConfigError
from lithos.core.findings import GROUPS, SEVERITIES, Amendment, CheckResult, worst
from lithos.services.upkeep.validation import (
    Fixing,
    Survey,
    Validation,
    fix_notes,
    plan_fixes,
    validate_notes,
)
from lithos.stores.notes.files import NoteFiles
from lithos.telemetry import configure_logging


def run_doctor(invocation: Invocation) -> int:
    """Examine and print; 1 when a check failed. A wrong configuration is one of the findings."""
    patient = _load_patient(invocation)
    tell = partial(_print_result, invocation.as_json)
    results = trio.run(Doctor(patient, tell).examine)
    statuses = [result.status for result in results]
    numbers = {status: statuses.count(status) for status in ("ok", "warn", "fail")}
    if invocation.as_json:
        checks = [result.as_json() for result in results]
        print_json({"status": worst(statuses), "summary": numbers, "checks": checks})
    else:
        print_line(", ".join(f"{number} {status}" for status, number in numbers.items()))
    return 1 if numbers["fail"] else 0


def _load_patient(invocation: Invocation) -> Patient:
    loaded, problems = load_usable_config(
        config_path=invocation.config,
        data_dir=invocation.data_dir,
        environment=os.environ,
        overrides={"storage.vault": invocation.typed["vault"]} if "vault" in invocation.typed else {},
    )
    places = check_places(loaded.config.storage, "doctor")
    problems += (places.removesuffix("."),) if places else ()
    logs = LogSettings(level="error")
    if "LITHOS_LOG_LEVEL" in os.environ or "LITHOS_LOG_FORMAT" in os.environ:
        try:
            given = load_log_settings(os.environ)
            logs = LogSettings(
                level=given.level if "LITHOS_LOG_LEVEL" in os.environ else logs.level, format=given.format
            )
        except ConfigError as error:
            problems += error.problems
    secrets = [loaded.config.server.auth_token, loaded.config.lcma.llm.api_key]
    configure_logging(logs.level, logs.format, sys.stderr, secrets=[text for text in secrets if text])
    return Patient(config=loaded.config, problems=problems, warnings=loaded.warnings)


def _print_result(as_json: bool, result: CheckResult) -> None:
    if not as_json:
        print_line(f"{result.status:<4}  {result.name + ':':<15} {result.message}")


#: Entries of a group that are listed.
_LISTED = 10


def run_validate(session: Session) -> int:
    """Validate, and fix if asked; 1 when errors remain, with `--strict` also for warnings.

    Also 1 when a file could not be written or nobody allowed what was planned. Raises what
    `explained_failures` explains.
    """
    storage, typed = session.config.storage, session.invocation.typed
    style = style_of(storage)
    if not storage.notes_folder.is_dir():
        raise CommandFailed(missing_notes(session.config, "or put the folder back."))
    files = open_notes(storage)
    wanted, as_json = typed.get("fix", False), session.invocation.as_json
    if not wanted:
        with progress_bars(session, "files") as progress:
            survey = _survey(session)
            before = validate_notes(files, progress, survey.nameless, style, survey.doubled)
        if as_json:
            print_json(_document(before))
        else:
            _print_report(before, everything=typed.get("everything", False))
        return _code(before, session)
    return _run_fix(session, files, ids=wanted == "ids")


def _run_fix(session: Session, files: NoteFiles, *, ids: bool) -> int:
    """Show what would be written, ask, and write it. Raises `AlreadyOwned`."""
    typed, as_json = session.invocation.typed, session.invocation.as_json
    before = trio.run(partial(_look, session, files))
    amendments = plan_fixes(before, lambda: str(uuid.uuid4()), ids=ids)
    if not as_json:
        _print_report(before, everything=typed.get("everything", False))
        _print_plan(amendments, everything=typed.get("everything", False))
    is_allowed = not amendments or typed.get("yes", False) or (not as_json and _ask(len(amendments)))
    if not is_allowed:
        if as_json:
            print_json(_document(before) | {"planned": _planned(amendments)} | _fixed(Fixing(0, before, ())))
        print("lithos: nothing was changed; add --yes to write this", file=sys.stderr)
        return 1
    fixing = trio.run(partial(_fix, session, files, before, amendments))
    if as_json:
        print_json(_document(before) | {"planned": _planned(amendments)} | _fixed(fixing))
    else:
        _print_fixing(fixing)
    return 1 if fixing.failures else _code(fixing.left, session)


def _code(left: Validation, session: Session) -> int:
    is_strict = session.invocation.typed.get("strict", False)
    return 1 if left.count("error") or (is_strict and left.count("warning")) else 0


def _ask(files: int) -> bool:
    """Whether a person at the terminal agrees; without one nobody does."""
    if not sys.stdin.isatty():
        return False
    print(f"Change {files} files? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _survey(session: Session) -> Survey:
    """What a server's scan finds: the ids of files that name none, and who has those that several name."""
    from lithos.app.stores import utc_now

    return survey_of(session.config, utc_now())


async def _look(session: Session, files: NoteFiles) -> Validation:
    """Validate as the owner. Raises `AlreadyOwned`."""
    from lithos.actors.blocking import Threads
    from lithos.app.maintenance import owned  # loads slowly, and only the owner needs it

    blocking, style = Threads(), style_of(session.config.storage)
    async with owned(session.config.storage):
        with progress_bars(session, "files") as progress:
            survey = await blocking.run(partial(_survey, session))
            ids, doubled = survey.nameless, survey.doubled
            return await blocking.run(partial(validate_notes, files, progress, ids, style, doubled))


async def _fix(
    session: Session, files: NoteFiles, before: Validation, amendments: Sequence[Amendment]
) -> Fixing:
    """Write what was planned; a file that changed since it was looked at stays. Raises `AlreadyOwned`."""
    from lithos.actors.blocking import Threads
    from lithos.app.maintenance import owned

    blocking = Threads()
    async with owned(session.config.storage):
        with progress_bars(session, "files") as progress:
            return await blocking.run(partial(fix_notes, files, before, amendments, progress))


def _print_report(before: Validation, *, everything: bool) -> None:
    print_line(f"Validating {len(before.files)} files...")
    for group, issues in before.groups.items():
        if GROUPS[group] == "info" and not everything:
            continue
        print_line(f"{group} ({GROUPS[group]}): {len(issues)}")
        listed = issues if everything else issues[:_LISTED]
        for issue in listed:
            print_line(f"  {issue.path}: {issue.detail}")
        if len(issues) > len(listed):
            print_line(f"  ... and {len(issues) - len(listed)} more (--all lists them)")
    if not before.total:
        print_line("No issues found")
        return
    counts = [f"{before.count(severity)} {severity}s" for severity in SEVERITIES]
    hint = " (--all lists the infos)" if before.count("info") and not everything else ""
    print_line(", ".join(counts) + hint)
    print_line(f"Total issues: {before.total}")


def _print_plan(amendments: Sequence[Amendment], *, everything: bool) -> None:
    if not amendments:
        return
    print_line(f"To be written into {len(amendments)} files:")
    listed = amendments if everything else amendments[:_LISTED]
    for amendment in listed:
        print_line(f"  {amendment.path}: " + ", ".join(f"{k}: {v}" for k, v in amendment.values.items()))
    if len(amendments) > len(listed):
        print_line(f"  ... and {len(amendments) - len(listed)} more (--all lists them)")


def _print_fixing(fixing: Fixing) -> None:
    print_line(f"Fixed {fixing.fixed} issues")
    if fixing.left.total:
        print_line(f"Issues that remain: {fixing.left.total}")
    for failure in fixing.failures:
        print(f"lithos: not fixed: {failure}", file=sys.stderr)


def _document(before: Validation) -> dict[str, Any]:
    """The answer with `--json`; all groups, also infos."""
    groups = {
        group: [{"path": issue.path, "detail": issue.detail} for issue in issues]
        for group, issues in before.groups.items()
    }
    summary = {severity: before.count(severity) for severity in SEVERITIES}
    return {"files": len(before.files), "groups": groups, "summary": summary, "total": before.total}


def _planned(amendments: Sequence[Amendment]) -> list[dict[str, Any]]:
    return [{"path": each.path, "values": dict(each.values)} for each in amendments]


def _fixed(fixing: Fixing) -> dict[str, Any]:
    return {"fixed": fixing.fixed, "remaining": fixing.left.total, "failures": list(fixing.failures)}
