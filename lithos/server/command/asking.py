"""Whom a command asks: the running server over HTTP, else one in this process; how tools are asked."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import trio

from lithos.kernel.databases.lock import is_owned, read_owner
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.principals import CLI_AGENT
from lithos.server.command.ask_ports import LocalServers, ToolClient
from lithos.server.command.output import warn
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.starting import find_options
from lithos.server.mcp.client import TIMEOUT, OwnerClient
from lithos.server.settings import ServerConfig

#: A server that starts says its address within a moment, another query is over by then.
OWNER_WAIT = 10.0
#: Rows of a list that are asked for at once.
PAGE = 200
NO_NOTES = "or start a server there first."


def asking(
    command: Callable[[CommandSession, ToolClient], Awaitable[int]],
) -> Callable[[CommandSession], int]:
    """Make what asks a command of its own, which raises what `explained_failures` explains."""
    return lambda session: trio.run(partial(_run, session, command))


async def _run(
    session: CommandSession, command: Callable[[CommandSession, ToolClient], Awaitable[int]]
) -> int:
    owner = await find_owner(session)
    if owner is not None:
        return await command(session, owner)
    session.require_notes(NO_NOTES)
    async with local_servers(session).ask(session.config) as here:
        return await command(session, here)


def local_servers(session: CommandSession) -> LocalServers:
    """Servers in this process, for a command that found none running."""
    local: LocalServers | None = session.invocation.local
    if local is None:
        raise CommandFailed(_none_owns(session, "this program starts none of its own"))
    return local


def person() -> str:
    """Return the user's name, which versions record as the person who approved or merged them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return CLI_AGENT


async def find_owner(session: CommandSession) -> OwnerClient | None:
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


async def require_owner(session: CommandSession, why: str) -> OwnerClient:
    """The running server; `why` says what it is needed for."""
    owner = await find_owner(session)
    if owner is None:
        raise CommandFailed(_none_owns(session, why))
    return owner


def _none_owns(session: CommandSession, why: str) -> str:
    data = session.config.of(StorageConfig).data_dir
    return f"No server owns {data} now, and {why}. Start it with: {how_to_serve(session)}"


def how_to_serve(session: CommandSession) -> str:
    """The command that starts a server here."""
    storage = session.config.of(StorageConfig)
    if session.vaults:
        return shlex.join(("lithos", *find_options(session), "serve", "-t", "http"))
    vault = "" if storage.vault is None else f"--vault {storage.vault} "
    return f"lithos -d {storage.data_dir} {vault}serve -t http"


def owner_now(session: CommandSession, timeout: float = TIMEOUT) -> OwnerClient | None:
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


async def ask_tool(asker: ToolClient, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's answer; an envelope ends the command with its message.

    If the answer may be incomplete because notes are still indexed, one line on stderr says so for all pages.
    """
    answer = accept(await asker.call(tool, arguments))
    if "indexing" in answer and answer.get("message") and not arguments.get("offset"):
        warn(str(answer["message"]))
    return answer


async def ask_pages(
    asker: ToolClient, tool: str, arguments: Mapping[str, Any], key: str
) -> list[dict[str, Any]]:
    """Return all rows of a list that has a `total`, `PAGE` at a time."""
    rows: list[dict[str, Any]] = []
    total = 1
    while len(rows) < total:
        answer = await ask_tool(asker, tool, {**arguments, "limit": PAGE, "offset": len(rows)})
        rows += answer[key]
        total = answer["total"] if answer[key] else 0
    return rows


async def ask_rows(
    asker: ToolClient, tool: str, arguments: Mapping[str, Any], key: str
) -> list[dict[str, Any]]:
    """All rows of a list, asked again from `next_offset` on where an answer was cut."""
    answer = await ask_tool(asker, tool, arguments)
    rows = list(answer[key])
    while answer.get("next_offset"):
        answer = await ask_tool(asker, tool, {**arguments, "offset": answer["next_offset"]})
        rows += answer[key]
    return rows
