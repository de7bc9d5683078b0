"""`lithos proposals`: what agents propose, shown, approved and rejected at a terminal."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lithos.cli.commands.asking import Asker, ask_rows, ask_tool, asking
from lithos.cli.output import print_line, tell
from lithos.cli.session import CommandFailed, Session
from lithos.core.principals import CLI_AGENT
from lithos.core.text.signs import spell_out

LIST: Final = "list"
_ACTIONS: Final = (LIST, "show", "approve", "reject")
_COLOURS: Final[Mapping[str, str]] = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_PLAIN: Final = "\033[0m"
_YES: Final = ("y", "yes")


async def proposals(session: Session, asker: Asker) -> int:
    """List, show or decide; 1 where something that was to be decided still waits."""
    typed = session.typed
    action, ids = typed.get("action", LIST), typed.get("ids", [])
    if action not in _ACTIONS:
        raise CommandFailed(f"There is no {action!r}: give one of {', '.join(_ACTIONS)}.", 2)
    if action == LIST:
        if ids:
            raise CommandFailed("To look at one give: lithos proposals show ID", 2)
        return await _list(session, asker)
    if not ids:
        raise CommandFailed(f"Say which: lithos proposals {action} ID... (lithos proposals lists them)", 2)
    if action == "show":
        return await _show(session, asker, ids)
    if action == "reject" and not str(typed.get("reason", "")).strip():
        raise CommandFailed("Say why, so that the agent does better next time: --reason TEXT", 2)
    if action == "approve" and "seal" in typed and len(ids) > 1:
        raise CommandFailed("A seal is of one proposal: approve one at a time with --seal.", 2)
    return await _decide(session, asker, action, ids)


async def _list(session: Session, asker: Asker) -> int:
    status = session.typed.get("status", "pending")
    asked = {"status": status, "agent": session.typed.get("agent")}
    given = {name: value for name, value in asked.items() if value is not None}
    rows = await ask_rows(asker, "lithos_proposals", {**given, "limit": 200}, "proposals")
    tell(session, {"proposals": rows}, _list_rows(rows) if rows else f"No {status} proposals.")
    return 0


def _list_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        counts = f"  +{row['added']} -{row['removed']}" if row["kind"] in ("create", "update") else ""
        goes = f" -> {row['to']}" if row["to"] else ""
        reason = f"  {row['reason']}" if row["reason"] else ""
        told = f"{row['path']}{goes}{counts}{reason}"
        yield spell_out(f"{row['id']}  {row['kind']:<6}  {row['agent']:<20}  {told}")


async def _show(session: Session, asker: Asker, ids: Sequence[str]) -> int:
    shown = [await ask_tool(asker, "lithos_proposals", {"id": each}) for each in ids]
    if session.as_json:
        tell(session, {"proposals": shown}, "")
        return 0
    for each in shown:
        _print(each)
    return 0


def _print(shown: Mapping[str, Any]) -> None:
    """A proposal with its difference; what cannot be seen in it is named."""
    row = shown["proposal"]
    print_line(spell_out(f"{row['kind']} of {row['path']} by {row['agent']}, {row['status']} ({row['id']})"))
    if row["reason"]:
        print_line(spell_out(f"  {row['status']} by {row['decided_by']}: {row['reason']}"))
    for conflict in shown["conflicts"]:
        place = f"line {conflict['line']}" if "line" in conflict else conflict["key"]
        sides = f"{conflict['mine']!r} here, {conflict['theirs']!r} by others"
        print_line(spell_out(f"  conflict, {place}: {sides}"))
    is_terminal = sys.stdout.isatty()
    for line in spell_out(shown["diff"]).removesuffix("\n").split("\n"):
        colour = _COLOURS.get(line[:1], "") if is_terminal else ""
        sys.stdout.write(colour)
        print_line(line)
        sys.stdout.write(_PLAIN if colour else "")
    if shown["truncated"]:
        print_line("… the rest is left out")
    if row["status"] == "pending":
        print_line(f"seal {shown['seal']}")


async def _decide(session: Session, asker: Asker, action: str, ids: Sequence[str]) -> int:
    """Decide one after another; every outcome is told, whatever becomes of the others."""
    done: list[Mapping[str, Any]] = []
    for each in ids:
        answer = await _decide_one(session, asker, action, each)
        done.append({"id": each, **answer})
        if not session.as_json:
            print_line(spell_out(_outcome(each, answer)))
    if session.as_json:
        tell(session, {"proposals": done}, "")
    return 1 if any(answer["status"] == "error" for answer in done) else 0


async def _decide_one(session: Session, asker: Asker, action: str, proposal_id: str) -> Mapping[str, Any]:
    typed = session.typed
    given: dict[str, Any] = {"id": proposal_id, "decision": action, "by": typed.get("by") or _person()}
    if action == "reject":
        given["reason"] = typed["reason"]
    else:
        shown = await asker.call("lithos_proposals", {"id": proposal_id}) or {}
        if shown.get("status") == "error":
            return shown
        given["seal"] = typed.get("seal", shown["seal"])
        if not _is_meant(session, shown):
            return {
                "status": "error",
                "code": "not_confirmed",
                "message": "It was not approved, and waits on.",
            }
    return await asker.call("lithos_proposal_decide", given) or {}


def _is_meant(session: Session, shown: Mapping[str, Any]) -> bool:
    """Whether the person, who has seen what it does, says yes. Raises `CommandFailed` where nobody can."""
    if session.typed.get("yes") or "seal" in session.typed or shown["proposal"]["status"] != "pending":
        return True
    if session.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed(
            "Nobody can be asked here: look first (lithos proposals show), then give --yes.", 2
        )
    _print(shown)
    return input("Approve this? [y/N] ").strip().lower() in _YES


def _outcome(proposal_id: str, answer: Mapping[str, Any]) -> str:
    if answer["status"] == "error":
        return f"{proposal_id}: {answer['message']}"
    version = f", version {answer['version']}" if answer.get("version") else ""
    return f"{answer['status']}: {answer['path']}{version}"


def _person() -> str:
    """Who types: the user's name, as a version then says by whom it was approved."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return CLI_AGENT


run_proposals = asking(proposals)
