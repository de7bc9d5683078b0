"""`lithos sessions search` and `show`: print turns of past sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lithos.kernel.values.principals import CLI_AGENT
from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import ask_tool
from lithos.server.command.output import tell
from lithos.server.command.session import CommandSession

#: `show` stops after this number of turns. The last line says how many follow.
MOST_PRINTED: Final = 500


async def search_sessions(session: CommandSession, asker: ToolClient) -> int:
    """Print the turns that match and return 0."""
    typed = session.typed
    arguments = {"query": typed["query"], "limit": typed.get("limit", 5), "kinds": ["session"]}
    if "project" in typed:
        arguments["project"] = typed["project"]
    answer = await ask_tool(asker, "lithos_search", {**arguments, "agent_id": CLI_AGENT})
    tell(session, answer, _list_hits(answer))
    return 0


def _list_hits(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer.get("message"):
        yield answer["message"]
    elif not answer["results"]:
        yield "No results found."
    for number, row in enumerate(answer["results"], 1):
        facts = [_short(row.get("when") or ""), row["client"], row.get("project") or "no project"]
        yield f"{number}. {row['title']} ({', '.join(filter(None, facts))})"
        yield f"   {row['id']}#{row['turn']}, {row['who']}, {row['match']} match"
        yield f"   {' '.join(row['snippet'].split())}"


async def show_session(session: CommandSession, asker: ToolClient) -> int:
    """Print a session or a turn with its neighbours, and return 0."""
    typed = session.typed
    asked = {"id": typed["id"], "turn": typed["turn"]} if "turn" in typed else {"id": typed["id"]}
    shown = dict(await ask_tool(asker, "lithos_session_show", asked))
    rows, is_cut = list(shown["rows"]), "next_offset" in shown
    while "next_offset" in shown and len(rows) < MOST_PRINTED:
        more = await ask_tool(asker, "lithos_session_show", {**asked, "offset": shown.pop("next_offset")})
        rows += more["rows"]
        shown |= {"next_offset": more["next_offset"]} if "next_offset" in more else {}
    if is_cut and "next_offset" not in shown:
        shown.pop("truncated", None)
    shown["rows"] = rows
    tell(session, shown, _describe(shown))
    return 0


def _describe(shown: Mapping[str, Any]) -> Iterator[str]:
    yield shown["title"] or "(no title)"
    times = [_short(shown[key]) for key in ("begin", "end") if shown.get(key)]
    facts = [shown["client"], shown.get("project") or "no project", " to ".join(times) or "no time"]
    yield f"{shown['id']}, {', '.join(facts)}, {shown['turns']:,} turns"
    yield from (f"Not readable: {notice}" for notice in shown.get("notices", ()))
    for row in shown["rows"]:
        yield ""
        yield f"[turn {row['turn']}] {row['who']}" + (f", {_short(row['when'])}" if row.get("when") else "")
        yield from _lines_of(row)
    if "next_offset" in shown:
        last = shown["rows"][-1]["turn"]
        following = f"lithos sessions show {shown['id']}#{last + 1}"
        yield ""
        yield f"{shown['turns'] - last:,} more turns. For one of them: {following}"


def _lines_of(row: Mapping[str, Any]) -> Iterator[str]:
    yield from row["text"].split("\n") if row.get("text") else ()
    if row.get("not_stored"):
        yield f"({row['not_stored']:,} more characters were not stored)"
    for name in ("tools", "files"):
        if row.get(name):
            yield f"{name.title()}: {', '.join(row[name])}"
    yield from (f"Output: {' '.join(output.split())}" for output in row.get("outputs", ()))


def _short(time: str) -> str:
    return time[:16].replace("T", " ")
