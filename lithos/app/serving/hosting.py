"""Hosting of the server and its front in this process: over HTTP, on stdio, or on loopback behind a bridge.

This module loads the libraries of the stores, which takes most of the startup time. `serve` does not need
this module to run a bridge.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import trio
from attrs import evolve

from lithos import __version__
from lithos.app import capabilities
from lithos.app.front import front_parts, serve_front
from lithos.app.server import Server, running_server, running_vault
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.vaults import NamedVault
from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.databases.private_files import TOKEN_FILES
from lithos.kernel.parts import Parts
from lithos.kernel.settings import StorageConfig
from lithos.server.command.output import announce
from lithos.server.command.serve_ports import Backlog, StartupNotice, publish_address
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.http.ports import FrontSettings
from lithos.server.mcp.resource_pages import Library
from lithos.server.settings import ServerConfig

if TYPE_CHECKING:
    from lithos.vaults.hosting import Vaults

MIB = 1024 * 1024
#: Seconds between two checks of the startup progress.
PROGRESS = 0.2
#: Minimum number of unread files other than notes for which progress is shown.
MANY_FILES = 20


async def host_server(
    session: CommandSession, lock: OwnerLock, shutdown: trio.Event, ready: trio.Event
) -> None:
    """Serve as configured until `shutdown` is set. At the end, `lock` is released."""
    _check_access(session)
    announce(session, "Initializing Lithos...")
    async with (
        running_server(session.config, lock=lock, gets_front=True) as server,
        trio.open_nursery() as nursery,
    ):
        ready.set()
        nursery.start_soon(_show_start, session, server)
        await _serve_front(session, server, shutdown)
        nursery.cancel_scope.cancel()


def _check_access(session: CommandSession) -> None:
    """Raise `CommandFailed` if the configuration requires the package `access` but it is not installed.

    Without this package, the server would admit clients that it must refuse.
    """
    if session.config.of(ServerConfig).public_url is not None:
        _require("Remote clients cannot get access.", "Leave server.public_url out", "access")
    files = [session.private / name for name in TOKEN_FILES]
    if any(file.exists() and file.stat().st_size for file in files):
        told = f"The named tokens in {session.private} cannot be read."
        _require(told, f"Remove {' and '.join(TOKEN_FILES)} there", "access")


def _require(refused: str, otherwise: str, *packages: str) -> None:
    """Raise `CommandFailed` if one of these packages is not installed."""
    for package in packages:
        if not capabilities.has(package):
            raise CommandFailed(
                f"{refused} The package lithos.{package} is not part of this installation. "
                f"{otherwise}, or install Lithos with it.",
                exit_code=2,
            )


async def _show_start(session: CommandSession, server: Server) -> None:
    """Show on a terminal the progress of the first scan, and of the first reading of attachments."""
    opening = server.get(Opening)
    if session.as_json or not sys.stderr.isatty():
        return
    if not opening.complete.is_set():
        await _show_opening(session, server)
    await _show_backlog(session, server)


async def _show_backlog(session: CommandSession, server: Parts) -> None:
    """If many files other than notes are unread, show the progress until all of them have been read."""
    backlog = server.find(Backlog)
    if backlog is None or not await backlog.known():
        return
    total = backlog.waiting
    if total < MANY_FILES:
        return
    from lithos.server.command.progress import progress_bars  # imported here: rarely needed

    with progress_bars(session, "files") as progress:
        while progress is not None and (waiting := backlog.waiting):
            total = max(total, waiting)
            progress("attachments", total - waiting, total)
            await trio.sleep(PROGRESS)


async def _show_opening(session: CommandSession, server: Server) -> None:
    opening = server.get(Opening)
    from lithos.server.command.progress import progress_bars  # imported here: rarely needed

    with progress_bars(session, "notes") as progress:
        while progress is not None and (status := opening.status()) is not None:
            if not opening.known.is_set():
                progress("reading", opening.read, opening.found)
            else:
                progress("indexing", status["done"], status["total"])
            with trio.move_on_after(PROGRESS):
                await opening.complete.wait()


async def host_behind_bridge(session: CommandSession, lock: OwnerLock, ended: trio.Event) -> None:
    """Serve on a loopback port until `ended` is set. At the end, `lock` is released."""
    _check_access(session)
    async with (
        running_server(session.config, lock=lock, gets_front=True) as server,
        trio.open_nursery() as nursery,
    ):
        await _serve_loopback(session, server, ended, nursery)


async def host_vaults(session: CommandSession, shutdown: trio.Event, ready: trio.Event) -> None:
    """Serve the named vaults until `shutdown` is set. Raises `CommandFailed`."""
    _require("Several vaults cannot be served.", "Name one vault", "access", "vaults")
    from lithos.vaults.hosted import Starting
    from lithos.vaults.hosting import Vaults, serve_vaults  # imported here: only needed for several vaults

    config = session.config
    if config.of(ServerConfig).public_url is not None:
        raise CommandFailed(
            "server.public_url cannot be used with several vaults, because remote clients get access to a "
            "single vault. Run a separate server for that vault, or leave server.public_url out.",
            exit_code=2,
        )
    names = ", ".join(vault.name for vault in session.vaults)
    announce(session, f"Initializing Lithos with the vaults {names}...")
    is_stdio = config.of(ServerConfig).transport == "stdio"
    named = {
        vault.name: evolve(vault.loaded, sources=_own_sources(vault, session.vaults))
        for vault in session.vaults
    }
    default = session.default_vault or next(iter(named))
    starting = Starting(running_vault, front_parts, capabilities.holders())
    vaults = Vaults(named, default, starting, asks_always=is_stdio)
    host, port = (
        ("127.0.0.1", 0) if is_stdio else (config.of(ServerConfig).host, config.of(ServerConfig).port)
    )
    settings = front_settings(
        config, host, port, config.of(ServerConfig).auth_token, console=not is_stdio, private=is_stdio
    )
    ready.set()
    async with trio.open_nursery() as nursery:
        bound = await nursery.start(partial(serve_vaults, vaults, settings, shutdown, url_of))
        if is_stdio:
            await _serve_all_on_stdio(session, vaults, shutdown)
            return
        url = url_of(*bound)
        announce(
            session,
            f"Serving MCP at {url}/mcp and {url}/sse: all vaults that the token may use; calls "
            f"without a vault use {default}. One vault: {url}/v/NAME/mcp",
            url=url,
            vaults=names,
        )


def _own_sources(vault: NamedVault, every: Iterable[NamedVault]) -> Mapping[str, str]:
    """Return the sources of a vault's settings. Sources in folders of other vaults are named "the server"."""
    others = [str(each.data_dir) for each in every if each is not vault]
    return {
        key: "the server" if any(folder in source for folder in others) else source
        for key, source in vault.loaded.sources.items()
    }


async def _serve_all_on_stdio(session: CommandSession, vaults: Vaults, shutdown: trio.Event) -> None:
    """Serve all vaults to the client on stdio. This client has the rights of the owner."""
    await Threads().run(partial(import_module, "lithos.server.mcp.session"))
    from lithos.server.mcp.session import serve_stdio

    announce(session, "Starting MCP server (stdio transport)...")
    await serve_stdio(vaults.tools, __version__, None, shutdown=shutdown)
    shutdown.set()


async def _serve_front(session: CommandSession, server: Server, shutdown: trio.Event) -> None:
    config = session.config
    if config.of(ServerConfig).transport == "stdio":
        await _serve_stdio(session, server, shutdown)
        return
    async with trio.open_nursery() as nursery:
        told: dict[str, Any] = {"sources": session.sources, "warnings": session.warnings}
        told["public_url"] = config.of(ServerConfig).public_url
        listens = config.of(ServerConfig)
        settings = front_settings(config, listens.host, listens.port, listens.auth_token, **told)
        front = partial(serve_front, settings, server, shutdown)
        host, port = await nursery.start(front)
        url, bound = url_of(host, port), address_of(host, port)
        publish_address(server, url)
        text = f"Serving MCP at {url}/mcp (HTTP) and {url}/sse (SSE)"
        if bound != urlsplit(url).netloc:
            text += f", bound to {bound} (all interfaces)"
        announce(session, text, url=url, bound=bound)
        if (public := config.of(ServerConfig).public_url) is not None:
            announce(session, f"Remote clients connect through OAuth at {public}/mcp", public_url=public)
        said = server.find(StartupNotice)
        if said is not None and said.announcement is not None:
            announce(session, said.announcement)


async def _serve_stdio(session: CommandSession, server: Server, shutdown: trio.Event) -> None:
    """Serve the client on stdio. Also listen on a loopback port for other commands on this machine."""
    # Load the MCP SDK now. HTTP servers load it later.
    await Threads().run(partial(import_module, "lithos.server.mcp.session"))
    from lithos.server.mcp.session import serve_stdio

    async with trio.open_nursery() as nursery:
        await _serve_loopback(session, server, shutdown, nursery)
        announce(session, "Starting MCP server (stdio transport)...")
        await serve_stdio(server.tools, __version__, server.get(Library), shutdown=shutdown)
        shutdown.set()


async def _serve_loopback(
    session: CommandSession, server: Server, shutdown: trio.Event, nursery: trio.Nursery
) -> None:
    """Listen in `nursery` until `shutdown` is set.

    The required token is only known to readers of the lock file.
    """
    token = session.config.of(ServerConfig).auth_token
    settings = front_settings(session.config, "127.0.0.1", 0, token, console=False, private=True)
    front = partial(serve_front, settings, server, shutdown)
    host, port = await nursery.start(front)
    publish_address(server, url_of(host, port), private=True)


def front_settings(
    config: Config, host: str, port: int, token: str | None, *, console: bool = True, **more: Any
) -> FrontSettings:
    """Return the front settings from the configuration and `more`.

    If `console` is False, the console is disabled.
    """
    return FrontSettings(
        host=host,
        port=port,
        version=__version__,
        max_body_bytes=8 * config.of(StorageConfig).max_content_size_bytes + MIB,
        auth_token=token,
        allowed_hosts=config.of(ServerConfig).allowed_hosts,
        allowed_origins=config.of(ServerConfig).allowed_origins,
        console=console and config.of(ServerConfig).console,
        **more,
    )


def address_of(host: str, port: int) -> str:
    """Return the listening address in URL form."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url_of(host: str, port: int) -> str:
    """Return a URL that works on this machine, even if the server binds all interfaces."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://{address_of(reachable, port)}"
