"""`lithos serve`: runs the server that owns the data directory, or on stdio a bridge to the current owner."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

import trio

from lithos.kernel.actors.threads import Threads
from lithos.kernel.databases.lock import (
    AlreadyOwned,
    OwnerLock,
    OwnerRecord,
    VaultOwned,
    is_owned,
    lock_of,
    read_owner,
    serves_other,
)
from lithos.kernel.log import get_logger
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.times import format_time
from lithos.server.command.output import announce
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.streams import PARENT, STOPPING
from lithos.server.settings import ServerConfig

log = get_logger("lithos.serve")

#: Seconds between two checks of the parent process.
PARENT_POLL = 1.0
#: Maximum seconds to wait until an owner on another host accepts a connection.
REACH_PATIENCE = 3.0


def run_serve(session: CommandSession, signals: Sequence[int] = ()) -> int:
    """Serve until a signal arrives.

    On stdio, also stop when the client disconnects or the parent ends. Returns 0.

    `signals` contains signals that arrived earlier. If `signals` is not empty, the server stops before it
    changes anything. Raises the errors that `explained_failures` explains.
    """
    trio.run(partial(_serve, session, signals))
    return 0


async def _serve(session: CommandSession, signals: Sequence[int]) -> None:
    shutdown, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        running = trio.CancelScope()
        await nursery.start(_watch_signals, shutdown, ready, running)
        if not signals:
            if session.config.of(ServerConfig).transport == "stdio":
                nursery.start_soon(_watch_parent, shutdown)
            with running:
                await _own_or_bridge(session, shutdown, ready)
        nursery.cancel_scope.cancel()


async def _own_or_bridge(session: CommandSession, shutdown: trio.Event, ready: trio.Event) -> None:
    """Own the data directory, or bridge to its owner. Raises `AlreadyOwned` if a bridge is not possible."""
    is_stdio = session.config.of(ServerConfig).transport == "stdio"
    # On stdio, a single vault is bridged to the process that serves it, whether or not the vault is named.
    if session.vaults and not (is_stdio and len(session.vaults) == 1):
        if is_stdio:
            await Threads().run(partial(_refuse_served, session))
        from lithos.app.serving.hosting import host_vaults

        await host_vaults(session, shutdown, ready)
        return
    lock = _make_lock(session)
    try:
        _take(lock)
    except VaultOwned:
        raise  # The owner uses another data directory, so a bridge is not possible.
    except AlreadyOwned:
        if session.config.of(ServerConfig).transport != "stdio" or not await _is_within_reach(lock.path):
            raise
        vault = session.config.of(StorageConfig).vault
        if vault is not None and await Threads().run(partial(serves_other, vault)):
            data = session.config.of(StorageConfig).data_dir
            raise CommandFailed(
                f"The server that owns {data} does not serve {vault}. Stop it first, or "
                "name another --data-dir for this vault.",
                exit_code=4,
            ) from None
        ready.set()
        await _bridge(session, shutdown)
        return
    from lithos.app.serving.hosting import host_server  # imported here: a bridge does not need it

    await host_server(session, lock, shutdown, ready)


def _refuse_served(session: CommandSession) -> None:
    """Raise `CommandFailed` if another process already serves one of the session's vaults."""
    for vault in session.vaults:
        path = vault.data_dir / ".lithos" / "lock"
        if is_owned(path):
            owner = read_owner(path)
            url = (owner.url or "").removesuffix(f"/v/{vault.name}") if owner is not None else ""
            where = f" Connect your client to {url}/mcp, or give" if url else " Give"
            raise CommandFailed(
                f"Another process already serves the vault {vault.name}.{where} --vault "
                f"{vault.name} alone, which is passed on to that process.",
                exit_code=4,
            )


async def _is_within_reach(path: Path) -> bool:
    """Return whether the address of the owner can be reached.

    The loopback address of an owner on another machine or in a container cannot be reached.
    """
    owner = read_owner(path)
    if owner is None or owner.url is None or owner.host == socket.gethostname():
        return True
    # A machine may be renamed while the server runs, so comparing host names is not enough.
    address = urlsplit(owner.url)
    with trio.move_on_after(REACH_PATIENCE):
        try:
            stream = await trio.open_tcp_stream(address.hostname or "", address.port or 80)
        except OSError:
            return False
        await stream.aclose()
        return True
    return False


async def _bridge(session: CommandSession, shutdown: trio.Event) -> None:
    """Serve the client on stdio through the owner. If the owner stops, this process takes over."""
    from lithos.server.mcp.bridge import serve_bridge
    from lithos.server.mcp.link import OwnerLink, OwnerTrail, Sighting
    from lithos.server.mcp.working_project import project_of

    gc.freeze()
    gc.enable()
    path, token = session.private / "lock", session.config.of(ServerConfig).auth_token

    seen: OwnerRecord | None = None

    def look() -> Sighting:
        nonlocal seen
        if not is_owned(path):
            return Sighting(False)
        # If the lock file was removed, the owner writes it again. Until then, use the last known owner.
        seen = read_owner(path) or seen
        return Sighting(True, seen)

    async def take() -> OwnerLock:
        lock = _make_lock(session)
        await Threads().run(partial(_take, lock))
        return lock

    project = await Threads().run(partial(project_of, Path()))
    connect = partial(OwnerLink, token=token, project=project)
    trail = OwnerTrail(look, connect, take, partial(_host, session))
    announce(session, "Starting MCP server (stdio transport), bridging to the owner of the data directory...")
    await serve_bridge(trail, shutdown)


async def _host(session: CommandSession, lock: OwnerLock, ended: trio.Event) -> None:
    """Become the owner while the bridge continues to serve its client."""
    # The store libraries are loaded while the bridge still reads the client's requests.
    await Threads().run(partial(import_module, "lithos.app.serving.hosting"))
    from lithos.app.serving.hosting import host_behind_bridge

    await host_behind_bridge(session, lock, ended)


def _take(lock: OwnerLock) -> None:
    lock.acquire(format_time(datetime.now(UTC)))


def _make_lock(session: CommandSession) -> OwnerLock:
    storage = session.config.of(StorageConfig)
    return lock_of(storage.data_dir, storage.vault, needs_locks=storage.lock)


async def _watch_parent(shutdown: trio.Event) -> None:
    """Set `shutdown` when the parent process has ended, even if stdin is still open."""
    while os.getppid() == PARENT:  # noqa: ASYNC110 - there is no event for a parent's end
        await trio.sleep(PARENT_POLL)
    log.info("stopping", reason="the parent process has gone")
    shutdown.set()


async def _watch_signals(
    shutdown: trio.Event,
    ready: trio.Event,
    running: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Set `shutdown` at the first signal.

    A signal before `ready`, or a second signal, also cancels the running tasks.
    """
    with trio.open_signal_receiver(*STOPPING) as signals:
        task_status.started()
        async for number in signals:
            log.info("stopping", signal=signal.Signals(number).name)
            if shutdown.is_set() or not ready.is_set():
                running.cancel()
            shutdown.set()
