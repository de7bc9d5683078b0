"""Access to the server that answers a command: a running server over HTTP, or a local server."""

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

#: Seconds to wait for the server that owns the data directory. This is enough for its start or for another
#: query.
OWNER_WAIT = 10.0
#: Number of list rows per request.
PAGE = 200
NO_NOTES = "or start a server there first."


def asking(
    command: Callable[[CommandSession, ToolClient], Awaitable[int]],
) -> Callable[[CommandSession], int]:
    """Return a function that finds a server and runs an async command with it.

    The function raises the errors that `explained_failures` explains.
    """
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
    """Return the functions that start local servers. A command needs them if no server is running."""
    local: LocalServers | None = session.invocation.local
    if local is None:
        raise CommandFailed(_none_owns(session, "this program cannot start a server of its own"))
    return local


def person() -> str:
    """Return the user's name, which versions record for approvals and merges."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return CLI_AGENT


async def find_owner(session: CommandSession) -> OwnerClient | None:
    """Return the server that owns the data directory, or None. Waits for a server that is starting."""
    with trio.move_on_after(OWNER_WAIT):
        while is_owned(session.private / "lock"):
            owner = owner_now(session)
            if owner is not None:
                return owner
            await trio.sleep(0.1)
        return None
    raise CommandFailed(
        "Another process owns the data directory but does not answer yet. It may still be "
        "starting. Retry in a moment.",
        4,
    )


async def require_owner(session: CommandSession, why: str) -> OwnerClient:
    """Return the running server, or end the command if no server is running.

    `why` explains in the error message why the command needs a server.
    """
    owner = await find_owner(session)
    if owner is None:
        raise CommandFailed(_none_owns(session, why))
    return owner


def _none_owns(session: CommandSession, why: str) -> str:
    data = session.config.of(StorageConfig).data_dir
    return f"No server owns {data} now, and {why}. Start a server with: {how_to_serve(session)}"


def how_to_serve(session: CommandSession) -> str:
    """Return the command that starts a server for this data directory."""
    storage = session.config.of(StorageConfig)
    if session.vaults:
        return shlex.join(("lithos", *find_options(session), "serve", "-t", "http"))
    vault = "" if storage.vault is None else f"--vault {storage.vault} "
    return f"lithos -d {storage.data_dir} {vault}serve -t http"


def owner_now(session: CommandSession, timeout: float = TIMEOUT) -> OwnerClient | None:
    """Return the server that owns the data directory.

    The result is None if no server owns it, or if the server has not published its address.

    `timeout` is the number of seconds to wait for each answer.
    """
    lock = session.private / "lock"
    owner = read_owner(lock) if is_owned(lock) else None
    if owner is None or owner.url is None:
        return None
    return OwnerClient(owner.url, owner.token or session.config.of(ServerConfig).auth_token, timeout)


def accept(answer: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the answer of a tool. If it is an error envelope, end the command with its message."""
    if answer is not None and answer.get("status") == "error":
        raise CommandFailed(str(answer["message"]))
    return answer or {}


async def ask_tool(asker: ToolClient, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a tool and return its answer. If it is an error envelope, end the command with its message.

    If notes are still being indexed, the answer may be incomplete. One line on stderr reports this once for
    all pages.
    """
    answer = accept(await asker.call(tool, arguments))
    if "indexing" in answer and answer.get("message") and not arguments.get("offset"):
        warn(str(answer["message"]))
    return answer


async def ask_pages(
    asker: ToolClient, tool: str, arguments: Mapping[str, Any], key: str
) -> list[dict[str, Any]]:
    """Return all rows of a list whose answers contain `total`. Each request gets `PAGE` rows."""
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
    """Return all rows of a list. If an answer is cut, the next request continues from its `next_offset`."""
    answer = await ask_tool(asker, tool, arguments)
    rows = list(answer[key])
    while answer.get("next_offset"):
        answer = await ask_tool(asker, tool, {**arguments, "offset": answer["next_offset"]})
        rows += answer[key]
    return rows
