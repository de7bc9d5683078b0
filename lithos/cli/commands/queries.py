"""Commands that call tools (queries, restoring): of a running server over HTTP, or of one in this process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from lithos.cli.commands.asking import Asker, ask_tool
from lithos.cli.commands.history import history, restore_note, undo
from lithos.cli.commands.inspecting import inspect
from lithos.cli.output import print_json, print_line, print_pairs
from lithos.cli.session import CommandFailed, Session, missing_notes
from lithos.core.principals import CLI_AGENT
from lithos.core.times import parse_time
from lithos.front.bridge.client import TIMEOUT, OwnerClient
from lithos.stores.lock import is_owned
from lithos.stores.owner_record import read_owner

SNIPPET_LENGTH = 100
MOST_ROWS = 1000
READY_WAIT = 600.0
#: A server that starts says its address within a moment, another query is over by then.
OWNER_WAIT = 10.0


def run_query(session: Session) -> int:
    """Run a command that asks; its exit code. Raises what `explained_failures` explains."""
    return trio.run(partial(_run, session))


async def _run(session: Session) -> int:
    owner = await find_owner(session)
    if owner is not None:
        return await _answer(session, owner)
    if not session.config.storage.notes_folder.is_dir():
        raise CommandFailed(missing_notes(session.config, "or start a server there first."))
    from lithos.app import running_server  # not before it is needed: its libraries load slowly

    config = attrs.evolve(
        session.config, server=attrs.evolve(session.config.server, watch_files=False)
    )  # a question does not stay long enough to watch
    async with running_server(config) as server:
        with trio.move_on_after(READY_WAIT):
            await server.searchable()
        return await _answer(session, _Here(server))


async def find_owner(session: Session) -> OwnerClient | None:
    """The server that owns the data directory, if any; one that is starting is waited for."""
    with trio.move_on_after(OWNER_WAIT):
        while is_owned(_lock(session)):
            owner = owner_now(session)
            if owner is not None:
                return owner
            await trio.sleep(0.1)
        return None
    raise CommandFailed(
        "Another process owns the data directory and does not answer yet (it may be starting). "
        "Retry in a moment.",
        4,
    )


def owner_now(session: Session, timeout: float = TIMEOUT) -> OwnerClient | None:
    """The server that owns the data directory and says its address; each answer has `timeout` seconds."""
    lock = _lock(session)
    owner = read_owner(lock) if is_owned(lock) else None
    if owner is None or owner.url is None:
        return None
    return OwnerClient(owner.url, owner.token or session.config.server.auth_token, timeout)


def _lock(session: Session) -> Path:
    return session.config.storage.data_dir / ".lithos" / "lock"


class _Here:
    """The server inside this process."""

    def __init__(self, server: Any) -> None:
        self._server = server

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer: Mapping[str, Any] | None = await self._server.tools.call(tool, arguments)
        return answer

    async def health(self) -> Mapping[str, Any]:
        _, body = await self._server.state.report()
        answer: Mapping[str, Any] = body
        return answer

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        entries = await self._server.access_log.entries(
            agent=query.get("agent_id"),
            doc=query.get("doc_id"),
            after=parse_time(query["after"]) if "after" in query else None,
            limit=query["limit"],
        )
        from lithos.services.tasks.agents import with_titles  # loaded with the server

        return {"entries": with_titles(entries, self._server.catalogue)}


async def _answer(session: Session, asker: Asker) -> int:
    command = session.invocation.command
    if command == "search":
        return await _search(session, asker)
    if command == "stats":
        return await _stats(session, asker)
    if command == "audit":
        return await _audit(session, asker)
    if command == "history":
        return await history(session, asker)
    if command == "restore-note":
        return await restore_note(session, asker)
    if command == "undo":
        return await undo(session, asker)
    return await inspect(session, asker)


async def _search(session: Session, asker: Asker) -> int:
    typed = session.invocation.typed
    mode = typed.get("mode", "hybrid")
    arguments = {"query": typed["query"], "mode": mode, "limit": typed.get("limit", 5), "agent_id": CLI_AGENT}
    answer = await ask_tool(asker, "lithos_search", arguments)
    if session.invocation.as_json:
        print_json(answer)
        return 0
    if answer.get("message"):
        print_line(answer["message"])
    if not answer["results"]:
        print_line("No results found.")
    label = "similarity" if mode == "semantic" else "score"
    for number, row in enumerate(answer["results"], 1):
        print_line(f"{number}. {row['title']} ({label}: {row['score']:.2f})")
        print_line(f"   Path: {row['path']}")
        print_line(f"   {_one_line(row['snippet'])}")
    return 0


async def _stats(session: Session, asker: Asker) -> int:
    answer = await ask_tool(asker, "lithos_stats", {})
    data = str(session.config.storage.data_dir)
    if session.invocation.as_json:
        print_json({**answer, "data_dir": data})
        return 0
    names = {
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
    pairs = {name: answer[key] for name, key in names.items()}
    print_pairs("Lithos Statistics", {**pairs, "Data directory": data})
    return 0


async def _audit(session: Session, asker: Asker) -> int:
    typed = session.invocation.typed
    asked = {"agent_id": typed.get("agent"), "doc_id": typed.get("doc"), "after": typed.get("since")}
    query = {name: value for name, value in asked.items() if value}
    try:
        parse_time(query.get("after", "1970-01-01"))
    except ValueError as error:
        raise CommandFailed(f"--since is no time: {error}. Give ISO 8601.", exit_code=2) from None
    limit = min(typed.get("limit", 50), MOST_ROWS)
    answer = await asker.accesses({**query, "limit": limit, "titles": "true"})
    if session.invocation.as_json:
        print_json(answer)
        return 0
    if not answer["entries"]:
        print_line("No accesses.")
    for row in answer["entries"]:
        # A server of an earlier version tells no titles, and a deleted note has none.
        note = f"{row['title']}  ({row['doc_id']})" if row.get("title") else row["doc_id"]
        print_line(f"{row['timestamp']}  {row['operation']:<13}  {row['agent_id']:<20}  {note}")
    return 0


def _one_line(snippet: str) -> str:
    text = " ".join(snippet.split())
    return text if len(text) <= SNIPPET_LENGTH else text[:SNIPPET_LENGTH].rstrip() + "..."
