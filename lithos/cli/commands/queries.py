"""`lithos search`, `stats` and `audit`: what tools tell, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lithos.cli.commands.asking import Asker, ask_tool, asking
from lithos.cli.output import list_pairs, tell
from lithos.cli.session import CommandFailed, Session
from lithos.core.principals import CLI_AGENT
from lithos.core.times import parse_time

SNIPPET_LENGTH = 100
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


async def search(session: Session, asker: Asker) -> int:
    """Print the hits; 0."""
    typed = session.typed
    mode = typed.get("mode", "hybrid")
    arguments = {"query": typed["query"], "mode": mode, "limit": typed.get("limit", 5), "agent_id": CLI_AGENT}
    answer = await ask_tool(asker, "lithos_search", arguments)
    tell(session, answer, _list_hits(answer, "similarity" if mode == "semantic" else "score"))
    return 0


def _list_hits(answer: Mapping[str, Any], label: str) -> Iterator[str]:
    if answer.get("message"):
        yield answer["message"]
    if not answer["results"]:
        yield "No results found."
    for number, row in enumerate(answer["results"], 1):
        yield f"{number}. {row['title']} ({label}: {row['score']:.2f})"
        yield f"   Path: {row['path']}"
        yield f"   {shorten(row['snippet'], SNIPPET_LENGTH)}"


def shorten(text: str, most: int) -> str:
    """The text in one line of at most so many characters and dots."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most].rstrip() + "..."


async def stats(session: Session, asker: Asker) -> int:
    """Print numbers; 0."""
    answer = await ask_tool(asker, "lithos_stats", {})
    data = str(session.config.storage.data_dir)
    pairs = {name: answer[key] for name, key in _STATISTICS.items()} if not session.as_json else {}
    lines = list_pairs("Lithos Statistics", {**pairs, "Data directory": data})
    tell(session, {**answer, "data_dir": data}, lines)
    return 0


async def audit(session: Session, asker: Asker) -> int:
    """Print who read what; 0. Raises `CommandFailed`."""
    typed = session.typed
    asked = {"agent_id": typed.get("agent"), "doc_id": typed.get("doc"), "after": typed.get("since")}
    query = {name: value for name, value in asked.items() if value}
    try:
        parse_time(query.get("after", "1970-01-01"))
    except ValueError as error:
        raise CommandFailed(f"--since is no time: {error}. Give ISO 8601.", exit_code=2) from None
    limit = min(typed.get("limit", 50), MOST_ROWS)
    answer = await asker.accesses({**query, "limit": limit, "titles": "true"})
    tell(session, answer, map(_describe_access, answer["entries"]) if answer["entries"] else "No accesses.")
    return 0


def _describe_access(row: Mapping[str, Any]) -> str:
    # A server of an earlier version tells no titles, and a deleted note has none.
    note = f"{row['title']}  ({row['doc_id']})" if row.get("title") else row["doc_id"]
    return f"{row['timestamp']}  {row['operation']:<13}  {row['agent_id']:<20}  {note}"


run_search, run_stats, run_audit = asking(search), asking(stats), asking(audit)
