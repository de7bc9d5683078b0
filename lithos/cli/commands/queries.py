"""Read-only commands (queries): answered by a running server over HTTP, or else by one in this process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import attrs
import trio

from lithos.cli.output import print_json, print_line, print_pairs
from lithos.cli.session import CommandFailed, Session
from lithos.core.times import parse_time
from lithos.front.bridge.client import OwnerClient
from lithos.stores.lock import is_owned
from lithos.stores.owner_record import read_owner

SNIPPET_LENGTH = 100
MOST_ROWS = 1000
READY_WAIT = 600.0
#: A server that starts says its address within a moment, another query is over by then.
OWNER_WAIT = 10.0


class Asker(Protocol):
    """The backend of a query: the running server over HTTP, or one in this process."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer of a tool."""
        ...

    async def health(self) -> Mapping[str, Any]:
        """The body of `/health`."""
        ...

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body of `/audit`, asked with its parameters."""
        ...


def run_query(session: Session) -> int:
    """Run a command that asks; its exit code. Raises what `explained_failures` explains."""
    return trio.run(partial(_run, session))


async def _run(session: Session) -> int:
    owner = await _find_owner(session)
    if owner is not None:
        return await _answer(session, owner)
    data, folder = session.config.storage.data_dir, session.config.storage.knowledge_subdir
    if not (data / folder).is_dir():
        raise CommandFailed(
            f"There are no notes in {data}: the folder {folder} is missing. "
            "Name the data directory with --data-dir, or start a server there first."
        )
    from lithos.app import running_server  # not before it is needed: its libraries load slowly

    config = attrs.evolve(
        session.config, server=attrs.evolve(session.config.server, watch_files=False)
    )  # a question does not stay long enough to watch
    async with running_server(config) as server:
        with trio.move_on_after(READY_WAIT):
            await server.searchable()
        return await _answer(session, _Here(server))


async def _find_owner(session: Session) -> OwnerClient | None:
    """The server that owns the data directory, if any; one that is starting is waited for."""
    lock = session.config.storage.data_dir / ".lithos" / "lock"
    with trio.move_on_after(OWNER_WAIT):
        while is_owned(lock):
            owner = read_owner(lock)
            if owner is not None and owner.url is not None:
                return OwnerClient(owner.url, owner.token or session.config.server.auth_token)
            await trio.sleep(0.1)
        return None
    raise CommandFailed(
        "Another process owns the data directory and does not answer yet (it may be starting). "
        "Retry in a moment.",
        4,
    )


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
        return {"entries": entries}


async def _answer(session: Session, asker: Asker) -> int:
    command = session.invocation.command
    if command == "search":
        return await _search(session, asker)
    if command == "stats":
        return await _stats(session, asker)
    if command == "audit":
        return await _audit(session, asker)
    subject = session.invocation.typed["subject"]
    return await {"health": _health, "agents": _agents, "tasks": _tasks, "doc": _document}[subject](
        session, asker
    )


async def _search(session: Session, asker: Asker) -> int:
    typed = session.invocation.typed
    mode = typed.get("mode", "fulltext")
    arguments = {"query": typed["query"], "mode": mode, "limit": typed.get("limit", 5), "agent_id": "cli"}
    answer = await _ask(asker, "lithos_search", arguments)
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
    answer = await _ask(asker, "lithos_stats", {})
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


async def _health(session: Session, asker: Asker) -> int:
    body = await asker.health()
    if session.invocation.as_json:
        print_json(body)
    else:
        lines = {
            name: part["status"] + (f" - {part['error']}" if "error" in part else "")
            for name, part in body["components"].items()
        }
        print_pairs(f"Health: {body['status']}", lines)
    return 0 if body["status"] == "ok" else 1


async def _agents(session: Session, asker: Asker) -> int:
    answer = await _ask_all(asker, "lithos_agent_list", {}, "agents")
    if session.invocation.as_json:
        print_json(answer)
    elif answer["agents"]:
        print_pairs("Agents", {row["id"]: f"last seen {row['last_seen_at']}" for row in answer["agents"]})
    else:
        print_line("No agents yet.")
    return 0


async def _tasks(session: Session, asker: Asker) -> int:
    wanted = {} if session.invocation.typed.get("closed") else {"status": "open"}
    answer = await _ask_all(asker, "lithos_task_list", {**wanted, "with_claims": True}, "tasks")
    if session.invocation.as_json:
        print_json(answer)
        return 0
    if not answer["tasks"]:
        print_line("No tasks." if not wanted else "No open tasks.")
    for row in answer["tasks"]:
        claims = ", ".join(f"{claim['agent']} on {claim['aspect']}" for claim in row["claims"])
        held = f" - {claims}" if claims else ""
        print_line(f"{row['id']}  {row['status']:<9}  {row['title']}{held}")
    return 0


async def _audit(session: Session, asker: Asker) -> int:
    typed = session.invocation.typed
    asked = {"agent_id": typed.get("agent"), "doc_id": typed.get("doc"), "after": typed.get("since")}
    query = {name: value for name, value in asked.items() if value}
    try:
        parse_time(query.get("after", "1970-01-01"))
    except ValueError as error:
        raise CommandFailed(f"--since is no time: {error}. Give ISO 8601.", exit_code=2) from None
    answer = await asker.accesses({**query, "limit": min(typed.get("limit", 50), MOST_ROWS)})
    if session.invocation.as_json:
        print_json(answer)
        return 0
    if not answer["entries"]:
        print_line("No accesses.")
    for row in answer["entries"]:
        line = f"{row['timestamp']}  {row['operation']:<13}  {row['agent_id']:<20}  {row['doc_id']}"
        print_line(line)
    return 0


async def _document(session: Session, asker: Asker) -> int:
    wanted = session.invocation.typed["document"]
    answer = await asker.call("lithos_read", {"id": wanted, "agent_id": "cli"}) or {}
    if answer.get("status") == "error":
        answer = await _ask(asker, "lithos_read", {"path": wanted, "agent_id": "cli"})
    shown = await _read_on(asker, answer)
    if not session.invocation.typed.get("content"):
        del shown["content"]
    if session.invocation.as_json:
        print_json(shown)
        return 0
    pairs = {key: value for key, value in shown["metadata"].items() if value not in (None, [], {})}
    print_pairs(shown["path"], pairs)
    if "content" in shown:
        print_line("")
        for line in shown["content"].split("\n"):
            print_line(line)
    return 0


async def _ask(asker: Asker, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's answer; an envelope ends the command with its message."""
    answer = await asker.call(tool, arguments) or {}
    if answer.get("status") == "error":
        raise CommandFailed(str(answer["message"]))
    return answer


async def _ask_all(asker: Asker, tool: str, arguments: Mapping[str, Any], rows: str) -> Mapping[str, Any]:
    """An answer with all its rows, asked for page by page."""
    whole = dict(await _ask(asker, tool, arguments))
    while "next_offset" in whole:
        page = await _ask(asker, tool, {**arguments, "offset": whole["next_offset"]})
        whole = {**page, rows: [*whole[rows], *page[rows]]}
    return {key: value for key, value in whole.items() if key != "truncated"}


async def _read_on(asker: Asker, answer: Mapping[str, Any]) -> dict[str, Any]:
    """A note with its whole content, read part by part."""
    shown, begin, parts = dict(answer), 0, list[str]()
    while "next_offset" in shown:
        # Dots that mark a cut are no content.
        parts.append(shown["content"][: shown["next_offset"] - begin])
        begin = shown["next_offset"]
        arguments = {"id": shown["id"], "offset": begin, "agent_id": "cli"}
        shown = dict(await _ask(asker, "lithos_read", arguments))
    return shown | {"content": "".join([*parts, shown["content"]])}


def _one_line(snippet: str) -> str:
    text = " ".join(snippet.split())
    return text if len(text) <= SNIPPET_LENGTH else text[:SNIPPET_LENGTH].rstrip() + "..."
