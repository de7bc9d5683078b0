"""HTTP server on one port, with the connections, exchanges, start and shutdown of an application."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import trio

from lithos.kernel.log import get_logger
from lithos.server.http.access import open_bind_warning
from lithos.server.http.application import Application
from lithos.server.http.connections import Connections, hypercorn_config
from lithos.server.http.exchanges import Exchanges
from lithos.server.http.limits import STOP_FLUSH, STOP_GRACE
from lithos.server.http.ports import AsgiApp, FrontSettings, HealthReport, SharedToolBox, ignore_rejection
from lithos.server.http.sockets import open_listeners
from lithos.server.mcp.over_http import MCP_PATH, SSE_PATH

log = get_logger("lithos.front.serve")

#: Paths of streams that end on their own at shutdown.
STREAMS: Final = frozenset((SSE_PATH, MCP_PATH))


async def serve_http(
    settings: FrontSettings,
    toolbox: SharedToolBox,
    health: HealthReport,
    *,
    shutdown: trio.Event,
    rejected: Callable[[str], None] = ignore_rejection,
    on_listening: Callable[[], None] = lambda: None,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
    **more: Any,
) -> None:
    """Serve until `shutdown` is set. `task_status.started()` gets the real `(host, port)`.

    `more` contains further arguments of `Application`. `on_listening` is called before the libraries are
    loaded. Raises `PortInUse` or `CannotListen` if the port cannot be opened.
    """
    application = Application(settings, toolbox, health, shutdown=shutdown, rejected=rejected, **more)
    listeners = await open_listeners(settings.host, settings.port)
    if warning := open_bind_warning(application.policy):
        log.warning(warning)
    ended = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(application.run, hypercorn_config(), ended)
        on_listening()
        await listen(listeners, application.gate, shutdown, rejected=rejected, task_status=task_status)
        ended.set()


async def listen(
    listeners: list[trio.SocketListener],
    app: AsgiApp,
    shutdown: trio.Event,
    *,
    rejected: Callable[[str], None] = ignore_rejection,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Accept connections until `shutdown` is set. `app` answers the requests.

    `task_status.started()` gets the real `(host, port)`. At shutdown, event streams end at once and running
    calls may continue for `STOP_GRACE` seconds. Whatever clients do, the shutdown takes little more than
    `STOP_GRACE` plus twice `STOP_FLUSH`.
    """
    exchanges = Exchanges(app, STREAMS)
    connections = Connections(exchanges, hypercorn_config(), rejected)
    await _accept_until(shutdown, listeners, connections, exchanges, task_status)


async def _accept_until(
    shutdown: trio.Event,
    listeners: list[trio.SocketListener],
    connections: Connections,
    exchanges: Exchanges,
    task_status: trio.TaskStatus[tuple[str, int]],
) -> None:
    async with trio.open_nursery() as clients:
        async with trio.open_nursery() as accepting:
            serve = partial(trio.serve_listeners, connections.serve, listeners, handler_nursery=clients)
            await accepting.start(serve)
            task_status.started(listeners[0].socket.getsockname()[:2])
            await shutdown.wait()
            accepting.cancel_scope.cancel()
        await _stop(connections, exchanges)
        clients.cancel_scope.cancel()


async def _stop(connections: Connections, exchanges: Exchanges) -> None:
    """End connections and exchanges gracefully. After the time limits, cancel and abort the rest."""
    await connections.end_idle()
    exchanges.end_streams()
    with trio.move_on_after(STOP_GRACE):
        await exchanges.wait_empty()
    if exchanges.open_count:
        log.warning("calls cancelled at shutdown", calls=exchanges.open_count)
        exchanges.cancel()
        with trio.move_on_after(STOP_FLUSH):
            await exchanges.wait_empty()
    with trio.move_on_after(STOP_FLUSH):
        await connections.wait_empty()
    connections.abort()
