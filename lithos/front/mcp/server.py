"""The MCP server: name, instructions, capabilities and tools, for every protocol version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import field, frozen
from mcp import types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from lithos.actors.opening import progress_told
from lithos.core.principals import OWNER, Principal
from lithos.front.mcp.resources import (
    Listening,
    add_prompts,
    add_resources,
    add_subscriptions,
    notices_of,
)
from lithos.front.mcp.tool_calls import call_tool_box
from lithos.front.server.ports import SharedToolBox
from lithos.services.notes.resources import Library
from lithos.tools.contract.arguments import ToolSpec

SERVER_NAME: Final = "Lithos"
INSTRUCTIONS: Final = """\
Lithos is a local knowledge base that many agents share: Markdown notes, links between them, tasks and claims.

Begin with lithos_context: one text of what is known about a question or your task, within a budget. \
Look before you research: lithos_cache_lookup for one question, lithos_retrieve or lithos_search; read on \
with lithos_read.
Write down what you learned: call lithos_write with a clear title, tags, and source_url where there is one, \
so that nobody has to find it out again. Update a note (id, expected_version, and on_conflict=merge \
to keep what others changed elsewhere in it), do not write a second one. \
To add to a note or change a part of it call lithos_note_edit: others may edit it at the same time.

Share work through tasks: lithos_task_list shows open ones. Before you work on one, claim the aspect you \
take with lithos_task_claim; renew a claim that runs out, release what you do not finish. Post what you \
found with lithos_finding_post, and end with lithos_task_complete. A refused claim says who holds it \
and until when.

Pass the same agent name in every call. Answers with "status":"error" carry a code and say what to do next.
"""
STATIC_LIST: Final = CacheHint(ttl_ms=3_600_000, scope="public")
CHANGING: Final = CacheHint(ttl_ms=0, scope="private")
Context = ServerRequestContext[Any, Any]


@frozen
class Caller:
    """Who sent a request; `ended` is set once its token is valid no longer."""

    principal: Principal = OWNER
    ended: trio.Event = field(factory=trio.Event)


def owner_of(ctx: Context) -> Caller:
    """Who sends requests on stdio: the user whose process this is."""
    return Caller()


def build_mcp_server(
    toolbox: SharedToolBox,
    version: str,
    library: Library | None = None,
    *,
    keeps_sessions: bool,
    caller_of: Callable[[Context], Caller] = owner_of,
) -> Server[Any]:
    """Return the server that a transport drives.

    `keeps_sessions`: the transport is stdio or SSE, where the server can send unsolicited notifications.
    `caller_of` says who sent a request.
    """
    changes = None if library is None else library.changes
    server: Server[Any] = Server(
        SERVER_NAME,
        version=version,
        instructions=INSTRUCTIONS + toolbox.told,
        cache_hints={
            "tools/list": STATIC_LIST,
            "prompts/list": STATIC_LIST,
            "resources/templates/list": STATIC_LIST,
            "resources/list": CHANGING,
            "resources/read": CHANGING,
        },
        # No parameter is mirrored into a header, so no call needs its schema looked up.
        get_tool_input_schema=lambda name: None,
        lifespan=notices_of(changes if keeps_sessions else None),
    )
    # Spans of single calls are not among Lithos's instruments.
    server.middleware.clear()
    _add_tools(server, toolbox, caller_of)
    add_prompts(server)
    if library is not None:
        add_resources(server, library.resources, lambda ctx: caller_of(ctx).principal.agent)
    if library is not None and changes is not None:
        server.add_request_handler(
            "subscriptions/listen",
            types.SubscriptionsListenRequestParams,
            Listening(changes, lambda ctx: caller_of(ctx).ended),
        )
        if keeps_sessions:
            add_subscriptions(server, library.resources)
    _discover_honestly(server)
    return server


def _add_tools(server: Server[Any], toolbox: SharedToolBox, caller_of: Callable[[Context], Caller]) -> None:
    async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        listed = toolbox.acting_as(caller_of(ctx).principal).listed()
        return {"tools": [_wire_tool(spec) for spec in listed], "resultType": "complete"}

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        # Nothing is sent to clients that gave no progress token, nor over `/mcp`.
        with progress_told(ctx.session.report_progress):
            acting = toolbox.acting_as(caller_of(ctx).principal)
            return await call_tool_box(acting, params.name, params.arguments or {})

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)


def _discover_honestly(server: Server[Any]) -> None:
    """Advertise no changes of lists that never change; the SDK does for every list, or for none."""
    given = server.get_request_handler("server/discover")
    assert given is not None
    fixed = {
        "tools": types.ToolsCapability(list_changed=False),
        "prompts": types.PromptsCapability(list_changed=False),
    }

    async def discover(ctx: Context, params: types.RequestParams) -> types.DiscoverResult:
        result = await given.handler(ctx, params)
        assert isinstance(result, types.DiscoverResult)
        return result.model_copy(update={"capabilities": result.capabilities.model_copy(update=fixed)})

    server.add_request_handler("server/discover", types.RequestParams, discover)


def _wire_tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": dict(spec.input_schema),
        "annotations": {
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive,
            "idempotentHint": spec.idempotent,
            "openWorldHint": False,
        },
    }
