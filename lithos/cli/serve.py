"""`lithos serve`: the server with its front, from the first line to exit 0."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Sequence
from functools import partial

import trio

from lithos import __version__
from lithos.app import Server, running_server
from lithos.cli.endpoints import serve_front
from lithos.cli.metrics_export import exported_metrics
from lithos.cli.output import print_json
from lithos.cli.session import Session
from lithos.cli.signals import STOPPING
from lithos.config import Config
from lithos.front.ports import FrontSettings
from lithos.front.stdio import serve_stdio
from lithos.telemetry import get_logger

log = get_logger("lithos.serve")

MIB = 1024 * 1024


def run_serve(session: Session, signals: Sequence[int] = ()) -> int:
    """Serve until a signal or, on stdio, until the client leaves. Returns 0.

    `signals` holds those that came before; with one the server stops before it touches anything.
    Raises what `explained_failures` explains.
    """
    trio.run(partial(_serve, session, signals))
    return 0


async def _serve(session: Session, signals: Sequence[int]) -> None:
    shutdown, ready = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        running = trio.CancelScope()
        await nursery.start(_watch_signals, shutdown, ready, running)
        if not signals:
            _say(session, "Initializing Lithos...")
            with running:
                async with running_server(session.config) as server, exported_metrics(session, server):
                    ready.set()
                    await _serve_front(session, server, shutdown)
        nursery.cancel_scope.cancel()


async def _watch_signals(
    shutdown: trio.Event,
    ready: trio.Event,
    running: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Set `shutdown` at the first signal; one before `ready`, or a second one, cancels what runs."""
    with trio.open_signal_receiver(*STOPPING) as signals:
        task_status.started()
        async for number in signals:
            log.info("stopping", signal=signal.Signals(number).name)
            if shutdown.is_set() or not ready.is_set():
                running.cancel()
            shutdown.set()


async def _serve_front(session: Session, server: Server, shutdown: trio.Event) -> None:
    config = session.config
    if config.server.transport == "stdio":
        await _serve_stdio(session, server, shutdown)
        return
    async with trio.open_nursery() as nursery:
        settings = _front_settings(config, config.server.host, config.server.port, config.server.auth_token)
        front = partial(serve_front, settings, server, config.events, shutdown)
        host, port = await nursery.start(front)
        url = _url(host, port)
        server.publish_address(url)
        _say(session, f"Serving MCP at {url}/mcp (HTTP) and {url}/sse (SSE)", url=url)


async def _serve_stdio(session: Session, server: Server, shutdown: trio.Event) -> None:
    """Serve the client, and beside it a loopback port for other commands of this machine."""
    async with trio.open_nursery() as nursery:
        token = secrets.token_urlsafe(32)
        settings = _front_settings(session.config, "127.0.0.1", 0, token)
        front = partial(serve_front, settings, server, session.config.events, shutdown)
        host, port = await nursery.start(front)
        server.publish_address(_url(host, port), token)
        _say(session, "Starting MCP server (stdio transport)...")
        await serve_stdio(server.tools, __version__, shutdown=shutdown)
        shutdown.set()


def _front_settings(config: Config, host: str, port: int, token: str | None) -> FrontSettings:
    return FrontSettings(
        host=host,
        port=port,
        version=__version__,
        max_body_bytes=8 * config.storage.max_content_size_bytes + MIB,
        auth_token=token,
        allowed_hosts=config.server.allowed_hosts,
        allowed_origins=config.server.allowed_origins,
    )


def _url(host: str, port: int) -> str:
    """An address that works from this machine, also for a wildcard bind."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{reachable}:{port}"


def _say(session: Session, text: str, **fields: str) -> None:
    """A line for the person who started the server; stdout belongs to the protocol on stdio."""
    try:
        if session.config.server.transport == "stdio":
            print(text, file=sys.stderr, flush=True)
        elif session.invocation.as_json:
            if fields:
                print_json({"status": "serving", **fields})
        else:
            print(text, flush=True)
    except OSError as failure:
        # A closed terminal is no reason to stop serving; the buffered rest must not fail at the exit.
        log.warning("nobody reads the output", reason=str(failure))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
