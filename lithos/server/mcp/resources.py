"""MCP handlers for resources, prompts and subscriptions. They support both generations of the protocol.

In sessions with an `initialize` handshake (stdio, SSE), clients subscribe to single URIs and also get
notifications about list changes. A subscription ends with its session, because the lifespan of the SDK's
server is the session. From version 2026-07-28, one `subscriptions/listen` request contains all subscriptions.
Its response is a stream on every transport.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import trio
from attrs import asdict, define, field, filters
from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    event_to_notification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from lithos.server.http.ports import cancel_when, compact_json
from lithos.server.mcp.resource_pages import (
    BadCursor,
    ChangesEnded,
    Content,
    Follower,
    ResourceChanges,
    Resources,
    TooMuchFollowed,
    UnknownResource,
)
from lithos.server.mcp.tool_calls import join_slices
from lithos.server.tools.resource_uris import PROMPTS, BadPrompt, read_address, render_prompt

#: Maximum number of `subscriptions/listen` streams of all clients together, per endpoint.
MOST_LISTENERS: Final = 256

Context = ServerRequestContext[Any, Any]
Lifespan = Callable[[Server[Any]], AbstractAsyncContextManager["Notices | None"]]


@define(eq=False)
class Notices:
    """Subscriptions of one session, with the task that sends the notifications."""

    follower: Follower
    _nursery: trio.Nursery
    _has_begun: bool = False

    def begin(self, session: ServerSession) -> None:
        """Start to send notifications to this session. Further calls do nothing."""
        if not self._has_begun:
            self._has_begun = True
            self._nursery.start_soon(self._tell, session)

    async def _tell(self, session: ServerSession) -> None:
        try:
            while True:
                uri = await self.follower.next_change()
                if uri is None:
                    await session.send_resource_list_changed()
                else:
                    await session.send_resource_updated(uri)
        except ChangesEnded:
            return


def notices_of(changes: ResourceChanges | None) -> Lifespan:
    """Return a session lifespan that sends change notifications. If `changes` is None, it sends none."""

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncIterator[Notices | None]:
        if changes is None:
            yield None
            return
        with changes.followed() as follower:
            async with trio.open_nursery() as nursery:
                yield Notices(follower, nursery)
                nursery.cancel_scope.cancel()

    return lifespan


def add_subscriptions(server: Server[Any], resources: Resources) -> None:
    """Register the subscription handlers with a server. Its lifespan must come from `notices_of`."""

    async def begin(ctx: Context, params: types.NotificationParams) -> None:
        notices: Notices = ctx.lifespan_context
        notices.follower.wants_list = True
        notices.begin(ctx.session)

    async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> dict[str, Any]:
        notices: Notices = ctx.lifespan_context
        try:
            notices.follower.follow(params.uri, await resources.find(params.uri))
        except UnknownResource as missing:
            raise not_found(ctx, params.uri, missing) from missing
        except TooMuchFollowed as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        notices.begin(ctx.session)
        return {}

    async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> dict[str, Any]:
        notices: Notices = ctx.lifespan_context
        address = read_address(params.uri)
        if address is not None:
            notices.follower.unfollow(params.uri, address)
        return {}

    server.add_notification_handler("notifications/initialized", types.NotificationParams, begin)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


@define(eq=False)
class SubscriptionStream:
    """Handler for `subscriptions/listen`. Each call is one stream of change notifications.

    Either side can end a stream. `ended_of` returns an event that is set when the token of the request
    becomes invalid.
    """

    _changes: ResourceChanges
    _ended_of: Callable[[Context], trio.Event]
    _open: int = field(default=0, init=False)

    async def __call__(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Confirm the subscriptions, then send notifications.

        The stream ends when the server stops or the token becomes invalid.
        """
        if self._open >= MOST_LISTENERS:
            raise MCPError(
                types.INTERNAL_ERROR, "Too many clients are listening already. Read the events at /events."
            )
        self._open += 1
        try:
            with self._changes.followed() as follower:
                return await self._serve(ctx, params.notifications, follower)
        finally:
            self._open -= 1

    async def _serve(
        self, ctx: Context, wanted: types.SubscriptionFilter, follower: Follower
    ) -> types.SubscriptionsListenResult:
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        try:
            honoured = _follow(wanted, follower)
        except TooMuchFollowed as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        acknowledged = types.SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
        await ctx.session.send_notification(
            types.SubscriptionsAcknowledgedNotification(params=acknowledged),
            related_request_id=ctx.request_id,
        )
        ended = self._ended_of(ctx)
        try:
            while True:
                uri = await _next_change(follower, ended)
                event = ResourcesListChanged() if uri is None else ResourceUpdated(uri)
                await ctx.session.send_notification(
                    event_to_notification(event, meta), related_request_id=ctx.request_id
                )
        except ChangesEnded:
            return types.SubscriptionsListenResult(_meta=meta)


async def _next_change(follower: Follower, ended: trio.Event) -> str | None:
    """Return the next change for a follower. Raises `ChangesEnded`, also when `ended` is set."""
    changed: list[str | None] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when, ended, nursery.cancel_scope)
        with suppress(ChangesEnded):  # raised again below, outside of any exception group
            changed.append(await follower.next_change())
        nursery.cancel_scope.cancel()
    if not changed:
        raise ChangesEnded
    return changed[0]


def _follow(wanted: types.SubscriptionFilter, follower: Follower) -> types.SubscriptionFilter:
    """Subscribe to the requested lists and resources. Return the accepted subscriptions.

    Subscriptions to the lists of tools and prompts are not accepted, because these lists never change.
    """
    uris: list[str] = []
    for uri in wanted.resource_subscriptions or ():
        address = read_address(uri)
        if address is not None:
            follower.follow(uri, address)
            uris.append(uri)
    follower.wants_list = wanted.resources_list_changed is True
    return types.SubscriptionFilter(
        resources_list_changed=follower.wants_list or None, resource_subscriptions=uris or None
    )


def add_prompts(server: Server[Any]) -> None:
    """Register the prompt handlers with a server."""
    wire = [asdict(prompt, filter=filters.exclude("write")) for prompt in PROMPTS]
    listing = {"prompts": wire, "resultType": "complete"}

    async def list_prompts(ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return listing

    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, _get_prompt)


async def _get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
    try:
        prompt, text = render_prompt(params.name, params.arguments or {})
    except BadPrompt as problem:
        raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt.description, "messages": [message], "resultType": "complete"}


#: Error code in the handshake versions of the protocol. Version 2026-07-28 no longer has it.
RESOURCE_NOT_FOUND: Final = -32002


def add_resources(
    server: Server[Any], resources: Resources, agent_of: Callable[[Context], str | None]
) -> None:
    """Register the resource handlers with a server.

    `agent_of` returns the agent to which the token of a request is bound.
    """

    templates = [dict(each.template) for each in resources.kinds.values() if each.template is not None]

    async def list_resources(ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        try:
            page = await resources.page(params.cursor)
        except BadCursor as problem:
            raise MCPError(types.INVALID_PARAMS, str(problem)) from problem
        listing = {
            "resources": [{"uri": one.address.uri, **one.told} for one in page.resources],
            "resultType": "complete",
        }
        return listing if page.cursor is None else listing | {"nextCursor": page.cursor}

    async def list_templates(ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return {"resourceTemplates": templates, "resultType": "complete"}

    async def read(ctx: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        try:
            content = await resources.read(params.uri, agent_of(ctx))
        except UnknownResource as missing:
            raise not_found(ctx, params.uri, missing) from missing
        return {"contents": [{"uri": params.uri, **await _wire_content(content)}], "resultType": "complete"}

    server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)


def not_found(ctx: Context, uri: str, missing: UnknownResource) -> MCPError:
    """Return the protocol error for an unknown resource URI."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(types.INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND, str(missing), {"uri": uri})


async def _wire_content(content: Content) -> dict[str, str]:
    if not isinstance(content.body, bytes):
        return {"mimeType": content.mime_type, "text": await join_slices(content.body, compact_json)}
    try:
        return {"mimeType": content.mime_type, "text": content.body.decode("utf-8")}
    except UnicodeDecodeError:
        # Another agent has stored a different media type in the meantime. The content is returned unchanged.
        return {"mimeType": content.mime_type, "blob": base64.b64encode(content.body).decode()}
