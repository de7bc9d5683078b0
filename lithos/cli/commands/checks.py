"""`lithos validate` (issues of note files, `--fix` repairs them) and `lithos doctor` (one line per check)."""

from __future__ import annotations

import os
import sys
import uuid
from functools import partial

import trio

from lithos.app.doctor import Doctor, Patient
from lithos.app.style import style_of
from lithos.app.vault import open_notes
from lithos.cli.commands.maintenance import progress_bars
from lithos.cli.options import Invocation
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session, check_places, missing_notes
from lithos.config.load import LogSettings, load_log_settings, load_usable_config
from lithos.config.sources import ConfigError
from lithos.core.findings import CheckResult, worst
from lithos.services.upkeep.validation import Fixing, Validation, fix_notes, validate_notes
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
    """Validate, and fix if asked; 1 when a file could not be written or, with `--strict`, issues remain.

    Raises what `explained_failures` explains.
    """
    storage, typed = session.config.storage, session.invocation.typed
    style = style_of(storage)
    if not storage.notes_folder.is_dir():
        raise CommandFailed(missing_notes(session.config, "or put the folder back."))
    files = open_notes(storage)
    if typed.get("fix", False):
        before, fixing = trio.run(partial(_fix, session, files))
    else:
        with progress_bars(session, "files") as progress:
            before, fixing = validate_notes(files, progress, _nameless(session), style), None
    if session.invocation.as_json:
        _print_document(before, fixing)
    else:
        _print_report(before, fixing)
    left = before.total if fixing is None else fixing.left.total
    failed = fixing is not None and bool(fixing.failures)
    return 1 if failed or (left and typed.get("strict", False)) else 0


def _nameless(session: Session) -> dict[str, str]:
    """The ids that a server's scan gives the files that name none, by path."""
    from lithos.app.stores import utc_now
    from lithos.services.upkeep.validation import survey_notes  # loads slowly, as `_fix` does

    storage, fraction = session.config.storage, session.config.index.max_vanished_fraction
    return survey_notes(
        storage.data_dir, open_notes(storage), fraction, utc_now(), style_of(storage)
    ).nameless


async def _fix(session: Session, files: NoteFiles) -> tuple[Validation, Fixing]:
    """Raises `AlreadyOwned`."""
    from lithos.actors.blocking import Threads
    from lithos.app.maintenance import owned  # loads slowly, and only the owner needs it

    blocking, style = Threads(), style_of(session.config.storage)
    async with owned(session.config.storage):
        with progress_bars(session, "files") as progress:
            ids = await blocking.run(partial(_nameless, session))
            before = await blocking.run(partial(validate_notes, files, progress, ids, style))
            fixing = await blocking.run(
                partial(fix_notes, files, before, lambda: str(uuid.uuid4()), progress)
            )
    return before, fixing


def _print_report(before: Validation, fixing: Fixing | None) -> None:
    print_line(f"Validating {len(before.files)} files...")
    for group, issues in before.groups.items():
        print_line(f"{group}: {len(issues)}")
        for issue in issues[:_LISTED]:
            print_line(f"  {issue.path}: {issue.detail}")
        if len(issues) > _LISTED:
            print_line(f"  ... and {len(issues) - _LISTED} more (--json lists all)")
    print_line(f"Total issues: {before.total}" if before.total else "No issues found")
    if fixing is None:
        return
    print_line(f"Fixed {fixing.fixed} issues")
    if fixing.left.total:
        print_line(f"Issues that remain: {fixing.left.total}")
    for failure in fixing.failures:
        print(f"lithos: not fixed: {failure}", file=sys.stderr)


def _print_document(before: Validation, fixing: Fixing | None) -> None:
    groups = {
        group: [{"path": issue.path, "detail": issue.detail} for issue in issues]
        for group, issues in before.groups.items()
    }
    document = {"files": len(before.files), "groups": groups, "total": before.total}
    if fixing is not None:
        document |= {
            "fixed": fixing.fixed,
            "remaining": fixing.left.total,
            "failures": list(fixing.failures),
        }
    print_json(document)
