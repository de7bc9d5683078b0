"""The commands `lithos validate`, which lists or fixes issues of note files, and `lithos doctor`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import trio
from attrs import evolve

from lithos.kernel.actors.threads import Threads
from lithos.kernel.configuration.load import LoadedConfig, LogSettings, load_config
from lithos.kernel.configuration.sources import ConfigError
from lithos.kernel.configuration.vaults import ConfiguredVaults, NamedVault
from lithos.kernel.databases.vault_roots import VaultsOverlap, check_vault_roots
from lithos.kernel.parts import utc_now
from lithos.kernel.server_ports import RunServer
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import SEVERITIES, CheckResult, worst
from lithos.notes.files.files import NoteFiles
from lithos.notes.opening import open_notes, style_of
from lithos.server.command.declaring import Invocation
from lithos.server.command.output import agrees, print_line, tell, warn
from lithos.server.command.progress import progress_bars
from lithos.server.command.session import (
    CommandFailed,
    CommandSession,
    check_places,
    find_vaults,
    read_log_settings,
    start_logging,
)
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.validation import Fixing, Progress, Validation, fix_notes, validate_notes
from lithos.upkeep.maintenance.doctor import examine_all, make_patient
from lithos.upkeep.maintenance.maintenance import owned
from lithos.upkeep.model.note_issues import Amendment, plan_amendments

T = TypeVar("T")


def run_doctor(invocation: Invocation) -> int:
    """Run all checks and print a line for each.

    Return 1 if a check failed. An invalid configuration is a finding.

    If several vaults are configured, the chosen vaults are checked one by one.
    """
    try:
        vaults = find_vaults(invocation, is_lenient=True)
    except ConfigError as error:
        return _examine(invocation, _load_patient(invocation, error.problems), None)
    if not vaults.configured:
        return _examine(invocation, _load_patient(invocation, ()), None)
    meant = [vault for vault in vaults.configured if not vaults.chosen or vault.name in vaults.chosen]
    code, elsewhere = 0, dict[str, tuple[str, str]]()
    for vault in meant:
        if not invocation.as_json:
            print_line(f"{vault.name}: {vault.root}")
        code = max(code, _examine(invocation, _patient_of(invocation, vault, vaults, elsewhere), vault.name))
    return code


def _examine(invocation: Invocation, patient: Installed, vault: str | None) -> int:
    def show(result: CheckResult) -> None:
        if not invocation.as_json:
            print_line(f"{result.status:<4}  {result.name + ':':<15} {result.message}")

    results = trio.run(examine_all, patient, show)
    statuses = [result.status for result in results]
    numbers = {status: statuses.count(status) for status in ("ok", "warn", "fail")}
    checks = [result.as_json() for result in results]
    name = {} if vault is None else {"vault": vault}
    document = {**name, "status": worst(statuses), "summary": numbers, "checks": checks}
    tell(invocation, document, ", ".join(f"{number} {status}" for status, number in numbers.items()))
    return 1 if numbers["fail"] else 0


def _run_server(invocation: Invocation) -> RunServer:
    if invocation.local is None:
        raise CommandFailed("Some checks start a server, but this program cannot start one.")
    return invocation.local.run


def _load_patient(invocation: Invocation, known: Sequence[str]) -> Installed:
    """Load the configuration to check. `known` are known problems with vault names."""
    problems = list[str]()
    loaded = load_config(
        config_path=invocation.config,
        data_dir=invocation.data_dir,
        environment=os.environ,
        overrides={"storage.vault": invocation.typed["vault"]} if "vault" in invocation.typed else {},
        report=problems.extend,
    )
    return _patient(loaded, [*dict.fromkeys((*known, *problems))], invocation)


def _patient_of(
    invocation: Invocation, vault: NamedVault, vaults: ConfiguredVaults, elsewhere: dict[str, tuple[str, str]]
) -> Installed:
    problems = list(vault.problems)
    try:
        check_vault_roots([(each.name, each.root, each.data_dir) for each in vaults.configured])
    except VaultsOverlap as overlap:
        problems.append(str(overlap).removesuffix("."))
    return evolve(_patient(vault.loaded, problems, invocation), vault=vault.name, elsewhere=elsewhere)


def _patient(loaded: LoadedConfig, problems: list[str], invocation: Invocation) -> Installed:
    places = check_places(loaded.config.of(StorageConfig))
    problems += [places.removesuffix(".")] if places else []
    logs = LogSettings(level="error")
    try:
        logs = read_log_settings(logs.level)
    except ConfigError as error:
        problems += error.problems
    start_logging([loaded.config], logs)
    return make_patient(loaded.config, _run_server(invocation), problems, loaded.warnings)


#: Maximum number of entries to list per group.
_LISTED = 10


def run_validate(session: CommandSession) -> int:
    """Validate the notes, and fix them on request.

    Return 1 if errors remain, or with `--strict` if warnings remain.

    Also return 1 if a file could not be written or the user rejected the plan. Raises the errors of
    `explained_failures`.
    """
    storage, typed = session.config.of(StorageConfig), session.typed
    session.require_notes("or put the folder back.")
    files = open_notes(storage)
    wanted = typed.get("fix", False)
    if not wanted:
        with progress_bars(session, "files") as progress:
            before = _look(session, files, progress)
        tell(session, _document(before), _list_issues(before, everything=typed.get("everything", False)))
        return _code(before, session)
    return _run_fix(session, files, ids=wanted == "ids")


def _run_fix(session: CommandSession, files: NoteFiles, *, ids: bool) -> int:
    """Show the planned changes, ask for permission, and write them. Raises `AlreadyOwned`."""
    typed, as_json = session.typed, session.as_json
    before = trio.run(_owning, session, partial(_look, session, files))
    planned_all = plan_amendments(before.folder, lambda: str(uuid.uuid4()), ids=ids)
    # Another program keeps the files of linked folders, and must not find new keys in them.
    amendments = tuple(each for each in planned_all if not files.is_linked(each.path))
    planned = [{"path": each.path, "values": dict(each.values)} for each in amendments]
    document = _document(before) | {"planned": planned}
    if not as_json:
        everything = typed.get("everything", False)
        for line in (
            *_list_issues(before, everything=everything),
            *_list_plan(amendments, everything=everything),
        ):
            print_line(line)
    is_allowed = (
        not amendments
        or typed.get("yes", False)
        or (not as_json and agrees(f"Change {len(amendments)} files?"))
    )
    if not is_allowed:
        tell(session, document | _fixed(Fixing(0, before, ())), ())
        warn("nothing was changed; add --yes to write these changes")
        return 1
    # Files that changed after the first validation are not written.
    fixing = trio.run(_owning, session, partial(fix_notes, files, before, amendments))
    left = f"Remaining issues: {fixing.left.total}"
    lines = [f"Fixed {fixing.fixed} issues", *([left] if fixing.left.total else [])]
    tell(session, document | _fixed(fixing), lines)
    for failure in () if as_json else fixing.failures:
        warn(f"not fixed: {failure}")
    return 1 if fixing.failures else _code(fixing.left, session)


def _code(left: Validation, session: CommandSession) -> int:
    is_strict = session.typed.get("strict", False)
    return 1 if left.count("error") or (is_strict and left.count("warning")) else 0


def _look(session: CommandSession, files: NoteFiles, progress: Progress | None) -> Validation:
    """Validate the notes as a server scan would find them.

    The scan determines the ids of files without an id. If several files have the same id, it also determines
    which file owns the id.
    """
    style, survey = style_of(session.config.of(StorageConfig), files), survey_of(session.config, utc_now())
    return validate_notes(files, progress, survey.nameless, style, survey.doubled, survey.copies)


async def _owning(session: CommandSession, work: Callable[[Progress | None], T]) -> T:
    """Run the work in a thread, as the owner of the data directory. Raises `AlreadyOwned`."""
    async with owned(session.config.of(StorageConfig)):
        with progress_bars(session, "files") as progress:
            return await Threads().run(partial(work, progress))


def _list_issues(before: Validation, *, everything: bool) -> Iterator[str]:
    yield f"Validating {len(before.folder.files)} files..."
    for group in before.groups:
        severity = group.check.severity
        if severity != "info" or everything:
            yield f"{group.check.name} ({severity}): {group.total}"
            rows = [f"{issue.path}: {issue.detail}" for issue in group.issues]
            yield from _cut(rows, everything=everything)
    if not before.total:
        yield "No issues found"
        return
    counts = [f"{before.count(severity)} {severity}s" for severity in SEVERITIES]
    hint = " (--all lists the infos)" if before.count("info") and not everything else ""
    yield ", ".join(counts) + hint
    yield f"Total issues: {before.total}"


def _list_plan(amendments: Sequence[Amendment], *, everything: bool) -> Iterator[str]:
    if amendments:
        yield f"Changes to write to {len(amendments)} files:"
        values = (", ".join(f"{k}: {v}" for k, v in each.values.items()) for each in amendments)
        rows = [f"{each.path}: {told}" for each, told in zip(amendments, values, strict=True)]
        yield from _cut(rows, everything=everything)


def _cut(rows: Sequence[str], *, everything: bool) -> Iterator[str]:
    """Yield all rows if `everything` is set.

    If `everything` is not set, yield the first rows and the number of omitted rows.
    """
    listed = rows if everything else rows[:_LISTED]
    yield from (f"  {row}" for row in listed)
    if len(rows) > len(listed):
        yield f"  ... and {len(rows) - len(listed)} more (--all lists them)"


def _document(before: Validation) -> dict[str, Any]:
    """Return the document for `--json`, with all groups including infos."""
    groups = {
        group.check.name: [{"path": issue.path, "detail": issue.detail} for issue in group.issues]
        for group in before.groups
    }
    summary = {severity: before.count(severity) for severity in SEVERITIES}
    return {"files": len(before.folder.files), "groups": groups, "summary": summary, "total": before.total}


def _fixed(fixing: Fixing) -> dict[str, Any]:
    return {"fixed": fixing.fixed, "remaining": fixing.left.total, "failures": list(fixing.failures)}
