"""The server with its front in this process: on HTTP, on stdio, or for the clients of a bridge.

Loads the stores' libraries, which takes most of a start; `serve` does not need it to bridge.
"""

from __future__ import annotations

import secrets
from functools import partial

import trio

from lithos import __version__
from lithos.actors.blocking import Threads
from lithos.app import Server, running_server
from lithos.cli.announcements import announce
from lithos.cli.endpoints import serve_front
from lithos.cli.metrics_export import exported_metrics
from lithos.cli.session import Session
from lithos.config import Config
from lithos.front.ports import FrontSettings
from lithos.stores.lock import OwnerLock

MIB = 1024 * 1024


async def host_server(session: Session, lock: OwnerLock, shutdown: trio.Event, ready: trio.Event) -> None:
    """Serve as the configuration says until `shutdown` is set; `lock` is given up at the end."""
    announce(session, "Initializing Lithos...")
    async with (
        running_server(session.config, lock=lock, gets_front=True) as server,
        exported_metrics(session, server),
    ):
        ready.set()
        await _serve_front(session, server, shutdown)


async def host_behind_bridge(session: Session, lock: OwnerLock, ended: trio.Event) -> None:
    """Serve on a loopback port of its own until `ended` is set; `lock` is given up at the end."""
    async with (
        running_server(session.config, lock=lock, gets_front=True) as server,
        exported_metrics(session, server),
        trio.open_nursery() as nursery,
    ):
        await _serve_loopback(session, server, ended, nursery)


async def _serve_front(session: Session, server: Server, shutdown: trio.Event) -> None:
    config = session.config
    if config.server.transport == "stdio":
        await _serve_stdio(session, server, shutdown)
        return
    async with trio.open_nursery() as nursery:
        settings = front_settings(config, config.server.host, config.server.port, config.server.auth_token)
        front = partial(serve_front, settings, server, config.events, shutdown)
        host, port = await nursery.start(front)
        url = url_of(host, port)
        server.publish_address(url)
        announce(session, f"Serving MCP at {url}/mcp (HTTP) and {url}/sse (SSE)", url=url)


async def _serve_stdio(session: Session, server: Server, shutdown: trio.Event) -> None:
    """Serve the client, and beside it a loopback port for other commands of this machine."""
    await Threads().run(_load_stdio)
    from lithos.front.stdio import serve_stdio

    async with trio.open_nursery() as nursery:
        await _serve_loopback(session, server, shutdown, nursery)
        announce(session, "Starting MCP server (stdio transport)...")
        await serve_stdio(server.tools, __version__, server.library, shutdown=shutdown)
        shutdown.set()


def _load_stdio() -> None:
    """Load the MCP SDK, which a server on HTTP brings in later."""
    import lithos.front.stdio  # noqa: F401


async def _serve_loopback(
    session: Session, server: Server, shutdown: trio.Event, nursery: trio.Nursery
) -> None:
    """Listen in `nursery` until `shutdown`, with a token that only readers of the lock know."""
    token = secrets.token_urlsafe(32)
    settings = front_settings(session.config, "127.0.0.1", 0, token)
    front = partial(serve_front, settings, server, session.config.events, shutdown)
    host, port = await nursery.start(front)
    server.publish_address(url_of(host, port), token)


def front_settings(config: Config, host: str, port: int, token: str | None) -> FrontSettings:
    """How the front listens, by the configuration."""
    return FrontSettings(
        host=host,
        port=port,
        version=__version__,
        max_body_bytes=8 * config.storage.max_content_size_bytes + MIB,
        auth_token=token,
        allowed_hosts=config.server.allowed_hosts,
        allowed_origins=config.server.allowed_origins,
    )


def url_of(host: str, port: int) -> str:
    """An address that works from this machine, also for a wildcard bind."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{reachable}:{port}"
