"""`lithos search`, `stats`, `audit`, `care`, `worth` and `inspect`: print tool answers as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import trio

from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.principals import CLI_AGENT
from lithos.kernel.values.times import parse_time
from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import ask_rows, ask_tool, asking, person
from lithos.server.command.output import list_pairs, tell
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.streams import make_printable

#: Maximum number of tasks whose findings are fetched (one call per task), and maximum number of concurrent
#: calls.
MOST_TASKS: Final = 200
CALLS_AT_ONCE: Final = 8
#: Maximum number of blocked tasks that one call requests, and of notes with the same title.
MOST_LISTED: Final = 10_000
#: Maximum number of notes that an error lists if several notes have the same title.
NAMED: Final = 5
FINDING_LENGTH: Final = 100
SNIPPET_LENGTH: Final = 100
MOST_ROWS = 1000
_STATISTICS = {
    "Documents": "documents",
    "Search chunks": "chunks",
    "Graph nodes": "graph_node_count",
    "Graph edges": "graph_edge_count",
    "Tags": "tags",
    "Agents": "agents",
    "Active tasks": "active_tasks",
    "Open claims": "open_claims",
    "Embedding tier": "embedding_tier",
}


async def search(session: CommandSession, asker: ToolClient) -> int:
    """Print the hits and return 0."""
    typed = session.typed
    mode = typed.get("mode", "hybrid")
    arguments = {"query": typed["query"], "mode": mode, "limit": typed.get("limit", 5), "agent_id": CLI_AGENT}
    if "project" in typed:
        arguments["project"] = typed["project"]
    answer = await ask_tool(asker, "lithos_search", arguments)
    tell(session, answer, _list_hits(answer, "similarity" if mode == "semantic" else "score"))
    return 0


def _list_hits(answer: Mapping[str, Any], label: str) -> Iterator[str]:
    if answer.get("message") and "indexing" not in answer:  # stderr already shows the message.
        yield answer["message"]
    if not answer["results"]:
        yield "No results found."
    for number, row in enumerate(answer["results"], 1):
        yield f"{number}. {row['title']} ({label}: {row['score']:.2f})"
        yield f"   Path: {row['path']}"
        yield f"   {shorten(row['snippet'], SNIPPET_LENGTH)}"


def shorten(text: str, most: int) -> str:
    """Return the text in one line, cut to at most `most` characters. A cut text ends with three dots."""
    line = " ".join(text.split())
    return line if len(line) <= most else beginning(line, most).rstrip() + "..."


async def stats(session: CommandSession, asker: ToolClient) -> int:
    """Print the statistics and return 0."""
    answer = await ask_tool(asker, "lithos_stats", {})
    data = str(session.config.of(StorageConfig).data_dir)
    pairs = {name: answer[key] for name, key in _STATISTICS.items()} if not session.as_json else {}
    lines = list_pairs("Lithos Statistics", {**pairs, "Data directory": data})
    tell(session, {**answer, "data_dir": data}, lines)
    return 0


async def audit(session: CommandSession, asker: ToolClient) -> int:
    """Print the access log and return 0. Raises `CommandFailed`."""
    typed = session.typed
    asked = {"agent_id": typed.get("agent"), "doc_id": typed.get("doc"), "after": typed.get("since")}
    query = {name: value for name, value in asked.items() if value}
    try:
        parse_time(query.get("after", "1970-01-01"))
    except ValueError as error:
        raise CommandFailed(
            f"--since is not a valid time: {error}. Use an ISO 8601 time.", exit_code=2
        ) from None
    limit = min(typed.get("limit", 50), MOST_ROWS)
    answer = await asker.accesses({**query, "limit": limit, "titles": "true"})
    tell(session, answer, map(_describe_access, answer["entries"]) if answer["entries"] else "No accesses.")
    return 0


def _describe_access(row: Mapping[str, Any]) -> str:
    # Older servers return no titles, and a deleted note has no title.
    note = f"{row['title']}  ({row['doc_id']})" if row.get("title") else row["doc_id"]
    project = f"  (project {row['project']})" if row.get("project") else ""
    return f"{row['timestamp']}  {row['operation']:<13}  {row['agent_id']:<20}  {note}{project}"


async def inspect(session: CommandSession, asker: ToolClient) -> int:
    """Print the inspected item and return the exit code."""
    subjects = {"health": _health, "agents": _agents, "tasks": _tasks, "doc": _document}
    return await subjects[session.typed["subject"]](session, asker)


async def _health(session: CommandSession, asker: ToolClient) -> int:
    body = await asker.health()
    lines = {
        name: part["status"] + (f" - {part['error']}" if "error" in part else "")
        for name, part in body["components"].items()
    }
    tell(session, body, list_pairs(f"Health: {body['status']}", lines))
    return 0 if body["status"] == "ok" else 1


async def _agents(session: CommandSession, asker: ToolClient) -> int:
    wanted = {"include_archived": bool(session.typed.get("archived"))}
    agents = await ask_rows(asker, "lithos_agent_list", wanted, "agents")
    seen = {
        row["id"]: f"last seen {row['last_seen_at']}"
        + (f", archived {row['archived_at']}" if row.get("archived_at") else "")
        for row in agents
    }
    tell(session, {"agents": agents}, list_pairs("Agents", seen) if agents else "No agents yet.")
    return 0


async def _tasks(session: CommandSession, asker: ToolClient) -> int:
    wanted = {} if session.typed.get("closed") else {"status": "open"}
    listed = await ask_rows(asker, "lithos_task_list", {**wanted, "with_claims": True}, "tasks")
    blocked = await ask_rows(asker, "lithos_task_blocked", {"limit": MOST_LISTED}, "tasks")
    blockers = {row["id"]: row["blockers"] for row in blocked}
    findings = await _findings(asker, [row["id"] for row in listed[:MOST_TASKS]])
    tasks = [
        # None means that the findings were not requested.
        {**row, "blockers": blockers.get(row["id"], []), "findings": findings.get(row["id"])}
        for row in listed
    ]
    none = "No tasks." if not wanted else "No open tasks."
    tell(session, {"tasks": tasks}, _list_tasks(tasks) if tasks else none)
    return 0


async def _findings(asker: ToolClient, task_ids: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of each task, oldest first."""
    found: dict[str, list[dict[str, Any]]] = {}
    waiting = iter(task_ids)

    async def work() -> None:
        for task_id in waiting:
            found[task_id] = await ask_rows(asker, "lithos_finding_list", {"task_id": task_id}, "findings")

    async with trio.open_nursery() as nursery:
        for _ in range(CALLS_AT_ONCE):
            nursery.start_soon(work)
    return found


def _list_tasks(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    titles = {row["id"]: row["title"] for row in tasks}
    for row in tasks:
        claims = ", ".join(f"{claim['agent']} on {claim['aspect']}" for claim in row["claims"])
        held = f" - {claims}" if claims else ""
        yield f"{row['id']}  {row['status']:<9}  {row['title']}{held}"
        for blocker in row["blockers"]:
            other = titles.get(blocker["task_id"] or "")
            yield f"    waits: {blocker['message']}" + (f' ("{other}")' if other else "")
        if row["findings"]:
            last = row["findings"][-1]
            summary = shorten(last["summary"], FINDING_LENGTH)
            yield f"    findings: {len(row['findings'])}, the last by {last['agent']}: {summary}"
    if len(tasks) > MOST_TASKS:
        yield f"Findings are shown for the newest {MOST_TASKS} of {len(tasks)} tasks."


async def _document(session: CommandSession, asker: ToolClient) -> int:
    shown = await _read_on(asker, await _find_note(asker, session.typed["document"]))
    if not session.typed.get("content"):
        del shown["content"]
    pairs = {key: value for key, value in shown["metadata"].items() if value not in (None, [], {})}
    content = ["", *shown["content"].split("\n")] if "content" in shown else []
    tell(session, shown, [*list_pairs(shown["path"], pairs), *content])
    return 0


async def _read_on(asker: ToolClient, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a note with its whole content. The content is read page by page."""
    shown, begin, parts = dict(answer), 0, list[str]()
    while "next_offset" in shown:
        # The three dots that mark a cut do not belong to the content.
        parts.append(shown["content"][: shown["next_offset"] - begin])
        begin = shown["next_offset"]
        arguments = {"id": shown["id"], "offset": begin, "agent_id": CLI_AGENT}
        shown = dict(await ask_tool(asker, "lithos_read", arguments))
    return shown | {"content": "".join([*parts, shown["content"]])}


async def _find_note(asker: ToolClient, wanted: str) -> Mapping[str, Any]:
    """Return the note with this id, path or title, tried in this order. Raises `CommandFailed`."""
    refusal = ""
    for key in ("id", "path"):
        answer = await asker.call("lithos_read", {key: wanted, "agent_id": CLI_AGENT}) or {}
        if answer.get("status") != "error":
            return answer
        refusal = str(answer["message"])
    title = wanted.strip().casefold()
    asked = {"title_contains": wanted.strip(), "limit": MOST_LISTED}
    listed = await ask_rows(asker, "lithos_list", asked, "items")
    found = [row for row in listed if row["title"].strip().casefold() == title]
    if len(found) > 1:
        paths = [row["path"] for row in found]
        more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
        raise CommandFailed(
            f"{len(found)} notes have the title {wanted!r}: {', '.join(paths[:NAMED])}{more}. Use "
            "a path instead."
        )
    if not found:
        raise CommandFailed(f"{refusal} No note has this title either.")
    return await ask_tool(asker, "lithos_read", {"id": found[0]["id"], "agent_id": CLI_AGENT})


async def worth(session: CommandSession, asker: ToolClient) -> int:
    """Print the value of the notes by day and agent, and return 0."""
    days = {"days": session.typed["days"]} if "days" in session.typed else {}
    answer = await ask_tool(asker, "lithos_worth", days)
    rows = answer["rows"]
    if answer.get("next_offset"):
        rows = await ask_rows(asker, "lithos_worth", days, "rows")
    told = {key: answer[key] for key in ("since", "until", "total")}
    tell(session, {**told, "rows": rows}, _list_worth(rows, answer))
    return 0


#: Table columns, each with the name of the count that it shows.
_WORTH: Final[Mapping[str, str]] = {
    "briefings": "briefings", "retrieved": "retrievals", "searches": "searches", "tokens": "tokens",
    "read": "notes_read", "cited": "notes_cited", "taken over": "taken_over",
}  # fmt: skip


def _list_worth(rows: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Iterator[str]:
    total = answer["total"]
    if not rows:
        yield f"Since {answer['since']}, no agent has searched, read or cited a note."
        return
    shown = [*((row["day"], row["agent"], row) for row in rows), ("", "all", total)]
    agents = max(len("agent"), *(len(agent) for _, agent, _ in shown))
    yield f"{'day':<10}  {'agent':<{agents}}" + "".join(f"  {name:>10}" for name in _WORTH)
    for day, agent, counts in shown:
        numbers = "".join(f"  {counts[key]:>10,}" for key in _WORTH.values())
        yield make_printable(f"{day:<10}  {agent:<{agents}}{numbers}")
    yield (
        f"Asked again: {total['asked_again']:,}. Cited before: {total['cited_before']:,}. Of "
        f"these, found among the first three again: {total['found_again']:,}. Found nothing "
        f"again: {total['found_nothing']:,}."
    )


#: Maximum number of rows per group, unless the caller wants all rows.
LISTED: Final = 5


async def care(session: CommandSession, asker: ToolClient) -> int:
    """Print the notes that need care and return 0. Open a task for each group if requested."""
    typed = session.typed
    while (answer := await ask_tool(asker, "lithos_care", {}))["status"] == "looking":
        pass  # No extra delay is needed, because each call already waits for some seconds.
    rows = answer["rows"]
    if answer.get("next_offset"):
        rows = await ask_rows(asker, "lithos_care", {"of": answer["at"]}, "rows")
    told = {key: answer[key] for key in ("at", "notes", "totals", "checks", "troubles")} | {"rows": rows}
    if typed.get("open_tasks"):
        by = typed.get("by") or person()
        told |= await ask_tool(asker, "lithos_care_tasks", {"by": by})
    tell(session, told, _list_care(told, everything=typed.get("everything", False)))
    return 0


def _list_care(told: Mapping[str, Any], *, everything: bool) -> Iterator[str]:
    for check in told["checks"]:
        total = told["totals"][check["name"]]
        yield f"{check['title']}: {total:,}"
        found = [row for row in told["rows"] if row["group"] == check["name"]]
        shown = found if everything else found[:LISTED]
        for row in shown:
            paths = ", ".join(note["path"] for note in row["notes"][:LISTED])
            more = f" and {len(row['notes']) - LISTED} more" if len(row["notes"]) > LISTED else ""
            yield make_printable(f"  {paths}{more}: {row['why']}")
        if total > len(shown):
            hint = " (--all lists more)" if len(found) > len(shown) else ""
            yield f"  ... and {total - len(shown):,} more{hint}"
        yield f"  {check['way_out']}"
    yield from told["troubles"]
    yield f"{told['notes']:,} notes were checked." + ("" if told["totals"] else " No note needs care.")
    for task in told.get("tasks", ()):
        yield f"{'opened' if task['is_new'] else 'there already'}: {task['task_id']}  {task['title']}"


run_search, run_stats, run_audit, run_inspect = asking(search), asking(stats), asking(audit), asking(inspect)
run_worth, run_care = asking(worth), asking(care)
