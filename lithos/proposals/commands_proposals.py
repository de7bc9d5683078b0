"""`lithos proposals`: list, show, approve and reject proposals of agents in a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import ask_pages, ask_tool, asking, person
from lithos.server.command.output import agrees, print_line, tell, warn
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.streams import make_printable
from lithos.text.words.hidden_characters import count_names, spell_out

LIST: Final = "list"
_ACTIONS: Final = (LIST, "show", "approve", "reject")
_COLOURS: Final[Mapping[str, str]] = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_PLAIN: Final = "\033[0m"
#: First characters of the text lines in a diff.
_TEXTS: Final = (" ", "+", "-")
_HEADER: Final = ("--- ", "+++ ")


async def proposals(session: CommandSession, asker: ToolClient) -> int:
    """List, show or decide proposals. Return 1 if a proposal that was to be decided is still pending."""
    typed = session.typed
    action, ids = typed.get("action", LIST), typed.get("ids", [])
    if action not in _ACTIONS:
        raise CommandFailed(f"Unknown action {action!r}. Use one of: {', '.join(_ACTIONS)}.", 2)
    if action == LIST:
        if ids:
            raise CommandFailed("To read one, run: lithos proposals show ID", 2)
        return await _list(session, asker)
    if not ids:
        raise CommandFailed(
            f"Name the proposals: lithos proposals {action} ID... (lithos proposals lists them)", 2
        )
    if action == "show":
        return await _show(session, asker, ids)
    if action == "reject" and not str(typed.get("reason", "")).strip():
        raise CommandFailed("A rejection needs a reason for the agent. Pass --reason TEXT.", 2)
    if action == "approve" and "seal" in typed and len(ids) > 1:
        raise CommandFailed("A seal belongs to a single proposal. With --seal, approve one at a time.", 2)
    return await _decide(session, asker, action, ids)


async def _list(session: CommandSession, asker: ToolClient) -> int:
    status = session.typed.get("status", "pending")
    asked = {"status": status, "proposed_by": session.typed.get("agent")}
    given = {name: value for name, value in asked.items() if value is not None}
    rows = await ask_pages(asker, "lithos_proposals", given, "proposals")
    tell(session, {"proposals": rows}, _list_rows(rows) if rows else f"No {status} proposals.")
    return 0


def _list_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        counts = f"  +{row['added']} -{row['removed']}" if row["kind"] in ("create", "update") else ""
        goes = f" -> {row['to']}" if row["to"] else ""
        reason = f"  {row['reason']}" if row["reason"] else ""
        until = f"  until {row['expires_at'][:10]}" if row["status"] == "pending" else ""
        told = f"{row['path']}{goes}{counts}{until}{reason}"
        yield spell_out(f"{row['id']}  {row['kind']:<6}  {row['agent']:<20}  {told}")


async def _show(session: CommandSession, asker: ToolClient, ids: Sequence[str]) -> int:
    shown = [await ask_tool(asker, "lithos_proposals", {"id": each}) for each in ids]
    if session.as_json:
        tell(session, {"proposals": shown}, "")
        return 0
    for each in shown:
        _print(each)
    return 0


def _print(shown: Mapping[str, Any]) -> None:
    """Print a proposal with its diff. Invisible characters are shown by name."""
    row = shown["proposal"]
    print_line(spell_out(f"{row['kind']} of {row['path']} by {row['agent']}, {row['status']} ({row['id']})"))
    if row["reason"]:
        print_line(spell_out(f"  {row['status']} by {row['decided_by']}: {row['reason']}"))
    for conflict in shown["conflicts"]:
        place = f"line {conflict['line']}" if "line" in conflict else conflict["key"]
        mine, theirs = (_said(conflict[side]) for side in ("mine", "theirs"))
        sides = f"{mine} here, {theirs} by others"
        print_line(spell_out(f"  conflict, {place}: {sides}"))
    lines = _lines_of(shown["diff"])
    has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        colour = _COLOURS.get(line[:1], "") if has_colours else ""
        sys.stdout.write(colour)
        print_line(spell_out(line))
        sys.stdout.write(_PLAIN if colour else "")
    if shown["truncated"]:
        print_line("… the rest is left out; the console's page Review shows more")
    signs, quiet, _ = count_names(line[1:] for line in lines if line[:1] == "+" and line[:4] != "+++ ")
    for told, names in (
        ("invisible or look-alike characters", signs),
        ("common characters", quiet),
    ):
        if names:
            print_line(f"{told}: {', '.join(names)}")
    if row["status"] == "pending":
        print_line(f"seal {shown['seal']}")


def _said(value: Any) -> str:
    """Return the printable text of one side of a conflict."""
    return "nothing" if value is None else repr(value.removesuffix("\n") if isinstance(value, str) else value)


def _lines_of(diff: str) -> list[str]:
    """Return the lines of a diff. If all lines of both texts end in CRLF, the CRs are removed."""
    lines = diff.removesuffix("\n").split("\n")
    texts = [line for line in lines if line[:1] in _TEXTS and line[:4] not in _HEADER]
    is_windows = bool(texts) and all(line.endswith("\r") for line in texts)
    return [line.removesuffix("\r") for line in lines] if is_windows else lines


async def _decide(session: CommandSession, asker: ToolClient, action: str, ids: Sequence[str]) -> int:
    """Decide proposals one after another. Print every outcome, even if some decisions fail."""
    done: list[Mapping[str, Any]] = []
    for each in ids:
        answer = await _decide_one(session, asker, action, each)
        done.append({"id": each, **answer})
        if answer["status"] != "error" and not session.as_json:
            print_line(spell_out(_outcome(answer)))
        elif not session.as_json:
            warn(make_printable(spell_out(f"{each}: {answer['message']}")))
    if session.as_json:
        tell(session, {"proposals": done}, "")
    return 1 if any(answer["status"] == "error" for answer in done) else 0


async def _decide_one(
    session: CommandSession, asker: ToolClient, action: str, proposal_id: str
) -> Mapping[str, Any]:
    typed = session.typed
    given: dict[str, Any] = {"id": proposal_id, "decision": action, "by": typed.get("by") or person()}
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
                "message": "The proposal was not approved and stays pending.",
            }
    return await asker.call("lithos_proposal_decide", given) or {}


def _is_meant(session: CommandSession, shown: Mapping[str, Any]) -> bool:
    """Print the changes and ask for confirmation. Raises `CommandFailed` if the user cannot be asked."""
    if "seal" in session.typed or shown["proposal"]["status"] != "pending":
        return True
    is_sure = bool(session.typed.get("yes"))
    if not is_sure and (session.as_json or not sys.stdin.isatty()):
        raise CommandFailed(
            "This terminal cannot ask you. Read the changes first (lithos proposals show), then pass --yes.",
            2,
        )
    if not session.as_json:
        _print(shown)
    return is_sure or agrees("Approve this?")


def _outcome(answer: Mapping[str, Any]) -> str:
    version = f", version {answer['version']}" if answer.get("version") else ""
    return f"{answer['status']}: {answer['path']}{version}"


run_proposals = asking(proposals)
