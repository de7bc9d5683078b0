"""Maintenance commands on the data directory, without a server.

`lithos reconcile --accept-vanished` confirms that vanished files were deleted on purpose.
`--forget-questions` deletes remembered questions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import trio

from lithos.memory.model.questions import QuestionFilter
from lithos.memory.settings import LcmaConfig
from lithos.server.command.asking import local_servers, owner_now
from lithos.server.command.output import print_line, tell, warn
from lithos.server.command.progress import progress_bars
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.upkeep.checks.reconcile_indices import SCOPES
from lithos.upkeep.maintenance.maintenance import (
    accept_vanished,
    extract_entities,
    forget_questions,
    reconcile,
    reindex,
)


def _accept_vanished(session: CommandSession) -> int:
    """List vanished files and accept their deletion.

    Raises `CommandFailed` if the server does not take the approval in time.
    """
    dry_run = session.typed.get("dry_run", False)
    result = trio.run(partial(accept_vanished, session.config, local_servers(session).run, dry_run=dry_run))
    summary = _summary(len(result.paths), dry_run=dry_run, is_taken=result.is_taken)
    document = {"dry_run": dry_run, "vanished": list(result.paths), "accepted": result.is_taken}
    tell(session, document, [*(f"  {path}" for path in result.paths), summary])
    if result.paths and not dry_run and not result.is_taken:
        raise CommandFailed(
            "The server that owns the data directory has not taken the approval yet. The "
            "approval is stored in .lithos/ and takes effect at the server's next check or start."
        )
    return 0


def _forget_questions(session: CommandSession) -> int:
    """Forget remembered questions. Raises `CommandFailed` if the server does not forget them in time."""
    typed = session.typed
    note, dry_run = typed.get("note"), typed.get("dry_run", False)
    wanted = QuestionFilter(
        note_ids=None if note is None else (note,),
        agent_id=typed.get("agent"),
        since=typed.get("since"),
        until=typed.get("until"),
    )
    if wanted == QuestionFilter():
        raise CommandFailed(
            "--forget-questions needs a filter. Add --note, --agent, --since or --until. To "
            "forget all questions, use --since 2000-01-01.",
            2,
        )
    result = trio.run(partial(forget_questions, session.config, wanted, dry_run=dry_run))
    lines: tuple[str, ...] = ()
    if dry_run:
        lines = (f"Would forget {result.questions} questions (dry run, nothing was changed)",)
    elif result.is_taken:
        lines = (f"Forgot {result.questions} questions",)
    document = {"dry_run": dry_run, "questions": result.questions, "forgotten": result.is_taken}
    tell(session, document, lines)
    if not dry_run and not result.is_taken:
        raise CommandFailed(
            "The server that owns the data directory has not forgotten the questions yet. The "
            "request is stored in .lithos/ and takes effect at the server's next check or start."
        )
    return 0


def _summary(number: int, *, dry_run: bool, is_taken: bool) -> str:
    if not number:
        return "No files have vanished"
    if dry_run:
        return f"{number} files have vanished (dry run, nothing was changed)"
    return (
        f"{number} vanished files removed from the indexes"
        if is_taken
        else f"{number} vanished files will be removed from the indexes"
    )


_WAY_OUT = "or put the folder back."
ALL = "all"
#: Options that select questions.
_SELECTORS = frozenset(("note", "agent", "since", "until"))


def run_reindex(session: CommandSession) -> int:
    """Update the indexes from the notes.

    Return 1 if an index could not be updated. Raises `CommandFailed`.
    """
    session.require_notes(_WAY_OUT)
    clear = session.typed.get("clear", False)
    with progress_bars(session, "notes") as progress:
        run = local_servers(session).run
        result = trio.run(partial(reindex, session.config, run, clear=clear, progress=progress))
    skipped = [{"path": path, "reason": reason} for path, reason in result.skipped.items()]
    errors = [f"{path}: {reason}" for path, reason in result.skipped.items()] + list(result.failures)
    document = {
        "found": result.found,
        "indexed": result.indexed,
        "errors": len(errors),
        "chunks": result.chunks,
        "graph_nodes": result.nodes,
        "graph_edges": result.edges,
        "skipped": skipped,
        "failures": list(result.failures),
    }
    found = [f"Found {result.found} markdown files", f"Indexed {result.indexed} documents"]
    tell(session, document, found)
    if not session.as_json:
        if errors:
            print("\n".join([f"Errors: {len(errors)}", *(f"  {error}" for error in errors)]), file=sys.stderr)
        print_line(f"Total chunks: {result.chunks}")
        print_line(f"Graph nodes: {result.nodes}")
        print_line(f"Graph edges: {result.edges}")
    return 1 if result.failures else 0


def run_reconcile(session: CommandSession) -> int:
    """Repair derived state, or run the operation that the options select.

    Return 1 if something failed. Raises `CommandFailed`.
    """
    typed = session.typed
    if typed.get("accept_vanished", False):
        return _accept_vanished(session)  # must work even if the whole notes folder has vanished
    if typed.get("forget_questions", False):
        return _forget_questions(session)
    if _SELECTORS & typed.keys():
        raise CommandFailed(
            "--note, --agent, --since and --until can only be used with --forget-questions.", 2
        )
    session.require_notes(_WAY_OUT)
    scope, dry_run = typed.get("scope", ALL), typed.get("dry_run", False)
    scopes = SCOPES if scope == ALL else (scope,)
    owner = owner_now(session) if dry_run else None
    # A running server checks its own state, because its files on disk are behind.
    told = None if owner is None else trio.run(owner.reconcile, scope)
    if told is None:
        with progress_bars(session, "notes") as progress:
            results = trio.run(partial(reconcile, session.config, scopes, dry_run=dry_run, progress=progress))
        told = [result.as_json() for result in results]
    tell(session, {"scope": ALL, "dry_run": dry_run, "results": told} if scope == ALL else told[0], ())
    for each in () if session.as_json else told:
        _print_scope(each)
    return 1 if any(each["failures"] for each in told) else 0


def _print_scope(told: Mapping[str, Any]) -> None:
    would = " (dry run, nothing was changed)" if told["dry_run"] else ""
    scanned = told["summary"]["scanned"]
    print_line(f"{told['scope']}: {told['status']}, {scanned} notes checked{would}")
    for action in told["actions"]:
        rest = [
            f"{name} {_shown(value)}" for name, value in action.items() if name not in ("reason", "count")
        ]
        print_line(f"  {action['reason']}: {action['count']}" + (f" ({', '.join(rest)})" if rest else ""))
    for failure in told["failures"]:
        print(f"  {failure['code']}: {failure['detail']}", file=sys.stderr)


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def run_extract(session: CommandSession) -> int:
    """Extract the entities of all notes. Return 1 if a note could not be written. Raises `CommandFailed`."""
    session.require_notes(_WAY_OUT)
    dry_run, force = session.typed.get("dry_run", False), session.typed.get("force", False)
    if force and not session.config.of(LcmaConfig).write_entities:
        raise CommandFailed(
            "--force replaces entities that people wrote into their notes, but "
            "lcma.write_entities is false, so nothing is written into notes. Set "
            "lcma.write_entities to true, or omit --force."
        )
    with progress_bars(session, "notes") as progress:
        work = partial(
            extract_entities,
            session.config,
            local_servers(session).run,
            dry_run=dry_run,
            force=force,
            progress=progress,
        )
        result = trio.run(work)
    found = result.extractions
    notes = [
        {"id": each.id, "path": each.path, "before": list(each.before), "entities": list(each.entities)}
        for each in found
    ]
    failures = [{"code": failure.code, "detail": failure.detail} for failure in result.failures]
    numbers = {"dry_run": dry_run, "force": force, "scanned": result.scanned, "changed": len(notes)}
    lines = [f"{each.path}: {', '.join(each.entities) or '(none)'}" for each in found]
    tell(session, {**numbers, "notes": notes, "failures": failures}, lines)
    if not session.as_json:
        for failure in result.failures:
            warn(failure.detail)
        verb = "Would change" if dry_run else "Changed"
        print_line(f"{verb} the entities of {len(found)} of {result.scanned} notes")
    return 1 if failures else 0
