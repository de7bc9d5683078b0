"""Whom a command asks: the running server over HTTP, else one in this process; how tools are asked."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import attrs
import trio
from attrs import frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.cli.output import warn
from lithos.cli.session import CommandFailed, Session
from lithos.core.principals import CLI_AGENT
from lithos.core.times import parse_time
from lithos.front.bridge.client import TIMEOUT, OwnerClient
from lithos.kernel.settings import StorageConfig
from lithos.server.settings import ServerConfig
from lithos.services.state import ServerState
from lithos.services.tasks.agents import AccessLog
from lithos.stores.lock import is_owned, read_owner

READY_WAIT = 600.0
#: A server that starts says its address within a moment, another query is over by then.
OWNER_WAIT = 10.0
#: Rows of a list that are asked for at once.
PAGE = 200
NO_NOTES = "or start a server there first."


@frozen
class Here:
    """The server inside this process, asked as an `OwnerClient` is."""

    server: Any

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer: Mapping[str, Any] | None = await self.server.tools.call(tool, arguments)
        return answer

    async def health(self) -> Mapping[str, Any]:
        _, body = await self.server.get(ServerState).report()
        answer: Mapping[str, Any] = body
        return answer

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        entries = await self.server.get(AccessLog).entries(
            agent=query.get("agent_id"),
            doc=query.get("doc_id"),
            after=parse_time(query["after"]) if "after" in query else None,
            limit=query["limit"],
        )
        from lithos.services.tasks.agents import with_titles  # loaded with the server

        return {"entries": with_titles(entries, self.server.get(Catalogue))}


#: The backend of a query: the running server over HTTP, or one in this process.
Asker = OwnerClient | Here


def asking(command: Callable[[Session, Asker], Awaitable[int]]) -> Callable[[Session], int]:
    """Make what asks a command of its own, which raises what `explained_failures` explains."""
    return lambda session: trio.run(partial(_run, session, command))


async def _run(session: Session, command: Callable[[Session, Asker], Awaitable[int]]) -> int:
    owner = await find_owner(session)
    if owner is not None:
        return await command(session, owner)
    session.require_notes(NO_NOTES)
    from lithos.app import running_server  # not before it is needed: its libraries load slowly

    config = session.config.replace(
        attrs.evolve(session.config.of(ServerConfig), watch_files=False)
    )  # a question does not stay long enough to watch
    async with running_server(config) as server:
        with trio.move_on_after(READY_WAIT):
            await server.searchable()
        return await command(session, Here(server))


def person() -> str:
    """Who types: the user's name, as a version then says by whom it was approved or merged."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return CLI_AGENT


async def find_owner(session: Session) -> OwnerClient | None:
    """The server that owns the data directory, if any; one that is starting is waited for."""
    with trio.move_on_after(OWNER_WAIT):
        while is_owned(session.private / "lock"):
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


async def require_owner(session: Session, why: str) -> OwnerClient:
    """The running server; `why` says what it is needed for."""
    owner = await find_owner(session)
    if owner is None:
        data = session.config.of(StorageConfig).data_dir
        raise CommandFailed(f"No server owns {data} now, and {why}. Start it with: {how_to_serve(session)}")
    return owner


def how_to_serve(session: Session) -> str:
    """The command that starts a server here."""
    storage = session.config.of(StorageConfig)
    if session.vaults:
        from lithos.cli.connecting.target import find_options  # loads what only a message needs

        return shlex.join(("lithos", *find_options(session), "serve", "-t", "http"))
    vault = "" if storage.vault is None else f"--vault {storage.vault} "
    return f"lithos -d {storage.data_dir} {vault}serve -t http"


def owner_now(session: Session, timeout: float = TIMEOUT) -> OwnerClient | None:
    """The server that owns the data directory and says its address; each answer has `timeout` seconds."""
    lock = session.private / "lock"
    owner = read_owner(lock) if is_owned(lock) else None
    if owner is None or owner.url is None:
        return None
    return OwnerClient(owner.url, owner.token or session.config.of(ServerConfig).auth_token, timeout)


def accept(answer: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The answer; an envelope ends the command with its message."""
    if answer is not None and answer.get("status") == "error":
        raise CommandFailed(str(answer["message"]))
    return answer or {}


async def ask_tool(asker: Asker, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's answer; an envelope ends the command with its message.

    What is missing from it while notes are indexed is said on stderr, once for all its pages.
    """
    answer = accept(await asker.call(tool, arguments))
    if "indexing" in answer and answer.get("message") and not arguments.get("offset"):
        warn(str(answer["message"]))
    return answer


async def ask_pages(asker: Asker, tool: str, arguments: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """All rows of a list that tells its `total`, `PAGE` at a time."""
    rows: list[dict[str, Any]] = []
    total = 1
    while len(rows) < total:
        answer = await ask_tool(asker, tool, {**arguments, "limit": PAGE, "offset": len(rows)})
        rows += answer[key]
        total = answer["total"] if answer[key] else 0
    return rows


async def ask_rows(asker: Asker, tool: str, arguments: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """All rows of a list, asked again from `next_offset` on where an answer was cut."""
    answer = await ask_tool(asker, tool, arguments)
    rows = list(answer[key])
    while answer.get("next_offset"):
        answer = await ask_tool(asker, tool, {**arguments, "offset": answer["next_offset"]})
        rows += answer[key]
    return rows
