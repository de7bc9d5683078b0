"""`lithos validate`: what is wrong with the note files, and with `--fix` putting it right."""

from __future__ import annotations

import sys
import uuid
from functools import partial
from pathlib import Path

import trio

from lithos.cli.output import print_json, print_line
from lithos.cli.progress import progress_bars
from lithos.cli.session import CommandFailed, Session
from lithos.services.validation import Fixing, Validation, fix_notes, validate_notes
from lithos.stores.files import NoteFiles

#: Entries of a group that are listed.
_LISTED = 10


def run_validate(session: Session) -> int:
    """Validate, and fix if asked; 1 when a file could not be written or, with `--strict`, issues remain.

    Raises what `explained_failures` explains.
    """
    storage, typed = session.config.storage, session.invocation.typed
    folder = storage.data_dir / storage.knowledge_subdir
    if not folder.is_dir():
        raise CommandFailed(
            f"There are no notes in {storage.data_dir}: the folder {storage.knowledge_subdir} is missing. "
            "Name the data directory with --data-dir, or put the folder back."
        )
    if typed.get("fix", False):
        before, fixing = trio.run(partial(_fix, session, folder))
    else:
        with progress_bars(session, "files") as progress:
            before, fixing = validate_notes(NoteFiles(folder), progress), None
    if session.invocation.as_json:
        _print_document(before, fixing)
    else:
        _print_report(before, fixing)
    left = before.total if fixing is None else fixing.left.total
    failed = fixing is not None and bool(fixing.failures)
    return 1 if failed or (left and typed.get("strict", False)) else 0


async def _fix(session: Session, folder: Path) -> tuple[Validation, Fixing]:
    """Raises `AlreadyOwned`."""
    from lithos.actors.blocking import Threads
    from lithos.app.maintenance import owned  # loads slowly, and only the owner needs it

    files, blocking = NoteFiles(folder), Threads()
    async with owned(session.config.storage.data_dir):
        with progress_bars(session, "files") as progress:
            before = await blocking.run(partial(validate_notes, files, progress))
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
