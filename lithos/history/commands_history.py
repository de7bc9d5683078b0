"""`lithos history` and `lithos restore-note`: list and compare versions of a note, and restore them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from lithos.history.model.undo import UndoStep
from lithos.history.service.undo import LEFT, RESULTS, UNDONE, UndoFailed, UndoResult, UndoRun, plan_undo
from lithos.kernel.values.principals import CLI_AGENT
from lithos.kernel.values.times import format_time
from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import accept, ask_tool, asking
from lithos.server.command.output import print_line, tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing


async def undo(session: CommandSession, asker: ToolClient) -> int:
    """Undo changes and print the results.

    The result is 1 if any change could not be undone. Raises `CommandFailed`.
    """
    typed = session.typed
    agents = list(dict.fromkeys(str(each).strip() for each in typed["agent"]))
    agent, since = ", ".join(agents), typed.get("since")
    until, dry_run = typed.get("until") or datetime.now(UTC), typed.get("dry_run", False)
    results: list[UndoResult] = []
    with refusing(UndoFailed):
        steps = await plan_undo(asker, agents, since, until)
        run = UndoRun(asker, dry_run)
        for step in steps:
            for result in await run.carry_out(step):
                results.append(result)
                if not session.as_json:
                    _print_result(result, dry_run)
    left = sum(each.result == LEFT for each in results)
    counts = {name: sum(each.result == name for each in results) for name in RESULTS}
    window = {"agent": agent, "since": since and format_time(since), "until": format_time(until)}
    rows = [each.to_row() for each in results]
    counted = {name.replace(" ", "_"): number for name, number in counts.items()}
    document = {**window, "dry_run": dry_run, "notes": rows, "counts": counted}
    tell(session, document, _summarise(agent, steps, counts, dry_run))
    return 1 if left else 0


def _print_result(result: UndoResult, dry_run: bool) -> None:
    step = result.step
    versions = ", ".join(str(change.version) for change in reversed(step.changes))
    what = f"{'would be ' if dry_run and result.result not in (UNDONE, LEFT) else ''}{result.result}"
    told = f"version {result.version}" if result.version is not None and not dry_run else result.reason
    changed = f"version{'s' if len(step.changes) > 1 else ''} {versions}"
    print_line(f"{what}: {step.last.path} ({changed}, {step.last.op})" + (f" - {told}" if told else ""))


def _summarise(agent: str, steps: Sequence[UndoStep], counts: Mapping[str, int], dry_run: bool) -> str:
    changes = sum(len(step.changes) for step in steps)
    if not changes:
        return f"{agent} has changed no note in that time."
    told = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    notes = len({step.last.note_id for step in steps})
    kept = " (dry run, nothing was changed)" if dry_run else ""
    return f"{changes} changes of {notes} notes by {agent}: {told}{kept}"


#: Number of versions shown if `--limit` is not given.
SHOWN: Final = 20
#: Number of versions requested per call.
PAGE: Final = 200


async def history(session: CommandSession, asker: ToolClient) -> int:
    """Print versions, deleted notes or a difference, and return 0. Raises `CommandFailed`."""
    typed = session.typed
    wanted, diff = typed.get("note"), typed.get("diff")
    if typed.get("deleted"):
        if wanted is not None or diff is not None:
            raise CommandFailed(
                "--deleted lists all deleted notes, so it can't be combined with a note or --diff.", 2
            )
        return await _deleted(session, asker)
    if wanted is None:
        raise CommandFailed("Give the id or path of a note, or --deleted.", 2)
    if diff is not None:
        answer = await _ask_note(asker, wanted, {"diff": diff})
        tell(session, answer, _list_diff(answer))
    else:
        answer = await _versions(asker, wanted, typed.get("limit", SHOWN))
        tell(session, answer, _list_versions(answer))
    return 0


def _list_diff(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer["diff"]:
        yield from answer["diff"].removesuffix("\n").split("\n")
    else:
        yield "These versions have the same bytes."
    if answer["truncated"]:
        yield "… the rest is not shown"


def _list_versions(answer: Mapping[str, Any]) -> Iterator[str]:
    if not answer["versions"]:
        yield "No versions of this note are kept yet."
    for row in answer["versions"]:
        changed = f"  {', '.join(row['changed'])}" if row["changed"] else ""
        named = f"{row['version']:>6}  {_row_name(row):<8}  {row['at']}  {row['op']:<8}"
        undone = "  (undo)" if row.get("undo") else ""
        yield f"{named}  {row['agent']:<20}  {row['path']}{changed}{undone}"
    if answer["total"] > len(answer["versions"]):
        yield f"{len(answer['versions'])} of {answer['total']} versions; --limit shows more"


def _row_name(row: Mapping[str, Any]) -> str:
    """Return the row's number in the form that `--diff` accepts."""
    return f"r{row['row']}"


async def _versions(asker: ToolClient, wanted: str, limit: int) -> dict[str, Any]:
    """Return the newest versions of a note as one answer. The tool is called as often as needed."""
    rows, answer = await _ask_pages(partial(_ask_note, asker, wanted), limit)
    return {"id": answer["id"], "versions": rows, "total": answer["total"]}


async def _deleted(session: CommandSession, asker: ToolClient) -> int:
    limit = session.typed.get("limit", SHOWN)

    async def ask(page: Mapping[str, Any]) -> Mapping[str, Any]:
        return await ask_tool(asker, "lithos_history", {"deleted": True, **page})

    rows, answer = await _ask_pages(ask, limit)
    total = answer["total"]
    tell(session, {"versions": rows, "total": total}, _list_deleted(rows, total))
    return 0


def _list_deleted(rows: Sequence[Mapping[str, Any]], total: int) -> Iterator[str]:
    if not rows:
        yield "No deleted notes are kept."
    for row in rows:
        yield f"{row['at']}  {row['agent']:<20}  {row['path']}"
        yield f"    lithos restore-note {row['id']} --version {row['version']}"
    if total > len(rows):
        yield f"{len(rows)} of {total} deleted notes; --limit shows more"


async def _ask_pages(
    ask: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]], limit: int
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the newest `limit` rows and the last answer. Rows added meanwhile cause no duplicates."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    answer: Mapping[str, Any] = {}
    offset = 0
    while len(found) < limit:
        answer = await ask({"limit": min(PAGE, limit - len(found)), "offset": offset})
        for row in answer["versions"]:
            found[row.get("id"), row["row"]] = row
        offset += len(answer["versions"])
        if not answer["versions"] or offset >= answer["total"]:
            break
    return list(found.values()), answer


async def _ask_note(asker: ToolClient, wanted: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call `lithos_history` for a note given by id or path. Raises `CommandFailed`."""
    answer = await asker.call("lithos_history", {**arguments, "id": wanted}) or {}
    if answer.get("code") == "doc_not_found":
        return await ask_tool(asker, "lithos_history", {**arguments, "path": wanted})
    return accept(answer)


async def restore_note(session: CommandSession, asker: ToolClient) -> int:
    """Restore a version of a note and return 0. Raises `CommandFailed`."""
    typed = session.typed
    version, row = typed.get("note_version"), typed.get("note_row")
    if (version is None) == (row is None):
        raise CommandFailed("Give --version N or --row N. Use `lithos history NOTE` to list both.", 2)
    note = (await _ask_note(asker, typed["note"], {"limit": 1}))["id"]
    wanted = {"version": version} if row is None else {"row": row}
    arguments = {"id": note, **wanted, "agent": CLI_AGENT}
    answer = await asker.call("lithos_restore", arguments) or {}
    if "code" in answer:  # With `server.write_outcomes: status`, refusals have more status words.
        raise CommandFailed(str(answer["message"]))
    done = "is back" if answer["status"] == "created" else "was restored"
    named = f"version {version}" if row is None else f"row r{row}"
    versions = f"version {answer['version']} has the text of {named}"
    tell(session, answer, f"{answer['path']} {done}: {versions}")
    return 0


run_undo, run_history, run_restore_note = asking(undo), asking(history), asking(restore_note)
