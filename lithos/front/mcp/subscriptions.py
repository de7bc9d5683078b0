"""Resource subscriptions and change notifications, for both generations of the protocol.

Sessions with an `initialize` handshake (stdio, SSE) subscribe URI by URI and also get notifications of list
changes; the lifespan of the SDK's server is the session, so subscriptions end with it. From 2026-07-28 on,
one `subscriptions/listen` request carries all subscriptions, and its response is a stream on any transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import trio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ResourcesListChanged,
    ResourceUpdated,
    event_to_notification,
)
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    NotificationParams,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from lithos.core.offers import read_address
from lithos.front.mcp.resources import not_found
from lithos.services.notes.resources import Changes, Follower, Resources, TooMuchFollowed, UnknownResource
from lithos.services.tasks.event_stream import StreamEnded

#: Streams of `subscriptions/listen` over all clients of one endpoint.
MOST_LISTENERS: Final = 256

Context = ServerRequestContext[Any, Any]
Lifespan = Callable[[Server[Any]], AbstractAsyncContextManager["Notices"]]


class Notices:
    """The subscriptions of one session, and the task that sends its notifications."""

    def __init__(self, follower: Follower, nursery: trio.Nursery) -> None:
        self.follower = follower
        self._nursery = nursery
        self._has_begun = False

    def begin(self, session: ServerSession) -> None:
        """Start sending notifications to this session; idempotent."""
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
        except StreamEnded:
            return


def notices_of(changes: Changes) -> Lifespan:
    """The lifespan of a session with change notifications."""

    @asynccontextmanager
    async def lifespan(server: Server[Any]) -> AsyncIterator[Notices]:
        with changes.followed() as follower:
            async with trio.open_nursery() as nursery:
                yield Notices(follower, nursery)
                nursery.cancel_scope.cancel()

    return lifespan


@asynccontextmanager
async def no_notices(server: Server[Any]) -> AsyncIterator[None]:
    """The lifespan of a session without change notifications."""
    yield


def add_subscriptions(server: Server[Any], resources: Resources) -> None:
    """Register the subscribe handlers with a server; its lifespan must be that of `notices_of`."""

    async def begin(ctx: Context, params: NotificationParams) -> None:
        notices: Notices = ctx.lifespan_context
        notices.follower.wants_list = True
        notices.begin(ctx.session)

    async def subscribe(ctx: Context, params: SubscribeRequestParams) -> dict[str, Any]:
        notices: Notices = ctx.lifespan_context
        try:
            notices.follower.follow(params.uri, await resources.find(params.uri))
        except UnknownResource as missing:
            raise not_found(ctx, params.uri, missing) from missing
        except TooMuchFollowed as problem:
            raise MCPError(INVALID_PARAMS, str(problem)) from problem
        notices.begin(ctx.session)
        return {}

    async def unsubscribe(ctx: Context, params: UnsubscribeRequestParams) -> dict[str, Any]:
        notices: Notices = ctx.lifespan_context
        address = read_address(params.uri)
        if address is not None:
            notices.follower.unfollow(params.uri, address)
        return {}

    server.add_notification_handler("notifications/initialized", NotificationParams, begin)
    server.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)


class Listening:
    """`subscriptions/listen`: one call is one stream of change notifications until either side ends it."""

    def __init__(self, changes: Changes, ended_of: Callable[[Context], trio.Event]) -> None:
        """`ended_of` a request is set once its token is valid no longer."""
        self._changes = changes
        self._ended_of = ended_of
        self._open = 0

    async def __call__(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Acknowledge the subscriptions, send notifications, and end the stream with server or token."""
        if self._open >= MOST_LISTENERS:
            raise MCPError(INTERNAL_ERROR, "Too many clients listen already. Read the events at /events.")
        self._open += 1
        try:
            with self._changes.followed() as follower:
                return await self._serve(ctx, params.notifications, follower)
        finally:
            self._open -= 1

    async def _serve(
        self, ctx: Context, wanted: SubscriptionFilter, follower: Follower
    ) -> SubscriptionsListenResult:
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        try:
            honoured = _follow(wanted, follower)
        except TooMuchFollowed as problem:
            raise MCPError(INVALID_PARAMS, str(problem)) from problem
        acknowledged = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=meta)
        await ctx.session.send_notification(
            SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=ctx.request_id
        )
        ended = self._ended_of(ctx)
        try:
            while True:
                uri = await _next_change(follower, ended)
                event = ResourcesListChanged() if uri is None else ResourceUpdated(uri)
                await ctx.session.send_notification(
                    event_to_notification(event, meta), related_request_id=ctx.request_id
                )
        except StreamEnded:
            return SubscriptionsListenResult(_meta=meta)


async def _next_change(follower: Follower, ended: trio.Event) -> str | None:
    """The follower's next change. Raises `StreamEnded`, also once `ended` is set."""
    changed: list[str | None] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when, ended, nursery.cancel_scope)
        with suppress(StreamEnded):  # raised below, where no group is made of it
            changed.append(await follower.next_change())
        nursery.cancel_scope.cancel()
    if not changed:
        raise StreamEnded
    return changed[0]


async def _cancel_when(ended: trio.Event, scope: trio.CancelScope) -> None:
    await ended.wait()
    scope.cancel()


def _follow(wanted: SubscriptionFilter, follower: Follower) -> SubscriptionFilter:
    """Subscribe to what can change, and return what was accepted: lists of tools and prompts never change."""
    uris: list[str] = []
    for uri in wanted.resource_subscriptions or ():
        address = read_address(uri)
        if address is not None:
            follower.follow(uri, address)
            uris.append(uri)
    follower.wants_list = wanted.resources_list_changed is True
    return SubscriptionFilter(
        resources_list_changed=follower.wants_list or None, resource_subscriptions=uris or None
    )
