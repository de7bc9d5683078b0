"""MCP server for every protocol version: its name, instructions, capabilities and tools."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import trio
from attrs import field, frozen
from mcp import types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from lithos.kernel.actors.start_progress import progress_told
from lithos.kernel.values.principals import Principal
from lithos.server.http.ports import SharedToolBox
from lithos.server.mcp.resource_pages import Library
from lithos.server.mcp.resources import (
    SubscriptionStream,
    add_prompts,
    add_resources,
    add_subscriptions,
    notices_of,
)
from lithos.server.mcp.tool_calls import call_tool_box
from lithos.server.mcp.trigger import TRIGGER
from lithos.server.tools.arguments import ToolSpec

SERVER_NAME: Final = "Lithos"
SERVER_TITLE: Final = "Lithos: shared notes and tasks"
WEBSITE: Final = "https://github.com/lithos-server/lithos"
#: Key in `_meta` of a tool. Claude Code defers the tools of MCP servers, except tools with this key
#: (code.claude.com/docs/en/mcp, "Scale with MCP Tool Search").
ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
_ICON: Final = Path(__file__).parents[1] / "console" / "static" / "icon.svg"
#: The first sentence says when to call Lithos, because clients may cut the text.
INSTRUCTIONS: Final = f"""\
{TRIGGER}: it gives one briefing on your question or task. Lithos is a \
local knowledge base that many agents share: Markdown notes with links, plus tasks and claims.

Before web research, check lithos_cache_lookup. To look further, use lithos_search (specific notes) or \
lithos_retrieve (a topic), and read notes with lithos_read.

Record what you learn with lithos_write: a clear title, tags, and source_url if there is one. Update an \
existing note (id, expected_version, on_conflict=merge) instead of writing a second one. To change part of a \
note use lithos_note_edit, which is safe while others edit it.

Share work through tasks: lithos_task_next gives you free work; lithos_task_list with status=open lists all \
open tasks. Claim your part with lithos_task_claim, renew it before it expires, and release what you do not \
finish. Post results with lithos_finding_post, and finish with lithos_task_complete: pass receipt_id and \
cite the notes that helped. A refused claim reports the current holder and when that claim expires.

Use the same agent id in every call, as agent or agent_id: it identifies you and filters nothing. Errors \
contain "status":"error", a code and the next step.
"""
STATIC_LIST: Final = CacheHint(ttl_ms=3_600_000, scope="public")
CHANGING: Final = CacheHint(ttl_ms=0, scope="private")
_CACHE_HINTS: Final[Mapping[CacheableMethod, CacheHint]] = {
    "tools/list": STATIC_LIST,
    "prompts/list": STATIC_LIST,
    "resources/templates/list": STATIC_LIST,
    "resources/list": CHANGING,
    "resources/read": CHANGING,
}
Context = ServerRequestContext[Any, Any]


@frozen
class Caller:
    """Caller of a request. `ended` is set when the caller's token becomes invalid."""

    principal: Principal
    ended: trio.Event = field(factory=trio.Event)


def build_mcp_server(
    toolbox: SharedToolBox,
    version: str,
    library: Library | None = None,
    *,
    keeps_sessions: bool,
    caller_of: Callable[[Context], Caller],
) -> Server[Any]:
    """Return the SDK server for one transport.

    `keeps_sessions` is true for stdio and SSE, where the server can send notifications without a request.
    `caller_of` returns the caller of a request.
    """
    changes = None if library is None else library.changes
    server: Server[Any] = Server(
        SERVER_NAME,
        version=version,
        title=SERVER_TITLE,
        website_url=WEBSITE,
        icons=[_icon()],
        instructions=INSTRUCTIONS + toolbox.told,
        cache_hints=_CACHE_HINTS,
        # No parameter is also sent as a header, so no call needs the schema of a tool.
        get_tool_input_schema=lambda name: None,
        lifespan=notices_of(changes if keeps_sessions else None),
    )
    # Lithos does not report tracing spans for calls.
    server.middleware.clear()
    _add_tools(server, toolbox, caller_of)
    add_prompts(server)
    if library is not None:
        add_resources(server, library.resources, lambda ctx: caller_of(ctx).principal.agent)
        server.add_request_handler(
            "subscriptions/listen",
            types.SubscriptionsListenRequestParams,
            SubscriptionStream(library.changes, lambda ctx: caller_of(ctx).ended),
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
        # Progress is sent only if the client has sent a progress token, and never over `/mcp`.
        with progress_told(ctx.session.report_progress):
            acting = toolbox.acting_as(caller_of(ctx).principal)
            return await call_tool_box(acting, params.name, params.arguments or {})

    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)


def _discover_honestly(server: Server[Any]) -> None:
    """Announce list changes only for lists that can change.

    The SDK announces them for all lists or for no list.
    """
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


def _icon() -> types.Icon:
    """Return the icon of the console as a data URI, so that clients fetch nothing."""
    data = base64.b64encode(_ICON.read_bytes()).decode("ascii")
    return types.Icon(src=f"data:image/svg+xml;base64,{data}", mime_type="image/svg+xml", sizes=["any"])


def _wire_tool(spec: ToolSpec) -> dict[str, Any]:
    shown = {"_meta": {ALWAYS_LOAD: True}} if spec.is_always_loaded else {}
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": dict(spec.input_schema),
        "annotations": {
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive,
            "idempotentHint": spec.idempotent,
            "openWorldHint": False,
        },
        **shown,
    }
