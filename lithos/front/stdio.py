"""MCP over stdin and stdout on Trio, without threads: a blocked read can never hold the process up.

While serving, file descriptor 1 points at stderr, so that only protocol messages reach the client's
end of stdout whatever a library prints; descriptor 0 reads as empty for children.
"""

from __future__ import annotations

from typing import Any, cast

import anyio
import trio
from mcp.server.stdio import stdio_server

from lithos.front.limits import STOP_FLUSH, STOP_GRACE
from lithos.front.mcp import build_mcp_server
from lithos.front.ports import ToolBox
from lithos.front.session import run_session
from lithos.front.wires import Lines, Output, claim_standard_streams
from lithos.services.library import Library
from lithos.telemetry import get_logger

log = get_logger(__name__)


async def serve_stdio(
    toolbox: ToolBox, version: str, library: Library | None = None, *, shutdown: trio.Event
) -> None:
    """Serve one client until stdin closes, stdout breaks or `shutdown` is set.

    Running calls may finish for `STOP_GRACE`; a client that never reads is given up after that.
    """
    server = build_mcp_server(toolbox, version, library, keeps_sessions=True)
    with claim_standard_streams() as (wire_in, wire_out):
        async with trio.open_nursery() as nursery:
            lines, output = Lines(wire_in, shutdown), Output(wire_out, nursery.cancel_scope)
            nursery.start_soon(_give_up_after, shutdown, nursery.cancel_scope)
            try:
                async with stdio_server(cast(Any, lines), cast(Any, output)) as (reader, writer):
                    await run_session(server, reader, writer, shutdown, listens_after_end=True)
            except* anyio.BrokenResourceError:
                log.debug("a message arrived while stopping")
            nursery.cancel_scope.cancel()


async def _give_up_after(shutdown: trio.Event, scope: trio.CancelScope) -> None:
    await shutdown.wait()
    await trio.sleep(STOP_GRACE + STOP_FLUSH)
    log.warning("stdio client never read its answers")
    scope.cancel()
