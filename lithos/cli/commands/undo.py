"""`lithos undo`: takes the changes of one agent back, and prints what became of each note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from lithos.cli.commands.asking import Asker
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session
from lithos.core.history.undo import Step
from lithos.core.times import format_time
from lithos.services.notes.undo import LEFT, RESULTS, UNDONE, Result, UndoFailed, UndoRun, plan_undo


async def undo(session: Session, asker: Asker) -> int:
    """Take changes back and print what was done; 1 when something could not be. Raises `CommandFailed`."""
    typed = session.invocation.typed
    agent, since = str(typed["agent"]).strip(), typed["since"]
    until, dry_run = typed.get("until") or datetime.now(UTC), typed.get("dry_run", False)
    results: list[Result] = []
    try:
        steps = await plan_undo(asker, agent, since, until)
        run = UndoRun(asker, dry_run)
        for step in steps:
            for result in await run.carry_out(step):
                results.append(result)
                if not session.invocation.as_json:
                    _print_result(result, dry_run)
    except UndoFailed as failure:
        raise CommandFailed(str(failure)) from failure
    left = sum(each.result == LEFT for each in results)
    counts = {name: sum(each.result == name for each in results) for name in RESULTS}
    if session.invocation.as_json:
        window = {"agent": agent, "since": format_time(since), "until": format_time(until)}
        rows = [each.to_row() for each in results]
        counted = {name.replace(" ", "_"): number for name, number in counts.items()}
        print_json({**window, "dry_run": dry_run, "notes": rows, "counts": counted})
    else:
        _print_summary(agent, steps, counts, dry_run)
    return 1 if left else 0


def _print_result(result: Result, dry_run: bool) -> None:
    step = result.step
    versions = ", ".join(str(change.version) for change in reversed(step.changes))
    what = f"{'would be ' if dry_run and result.result not in (UNDONE, LEFT) else ''}{result.result}"
    told = f"version {result.version}" if result.version is not None and not dry_run else result.reason
    changed = f"version{'s' if len(step.changes) > 1 else ''} {versions}"
    print_line(f"{what}: {step.last.path} ({changed}, {step.last.op})" + (f" - {told}" if told else ""))


def _print_summary(agent: str, steps: Sequence[Step], counts: Mapping[str, int], dry_run: bool) -> None:
    changes = sum(len(step.changes) for step in steps)
    if not changes:
        print_line(f"{agent} has changed no note in that time.")
        return
    told = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    notes = len({step.last.note_id for step in steps})
    print_line(
        f"{changes} changes of {notes} notes by {agent}: {told}"
        + (" (dry run, nothing was changed)" if dry_run else "")
    )
