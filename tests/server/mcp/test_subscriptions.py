"""Change notifications for every protocol version and transport (behaviours 204, 205)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import ResourceUpdatedNotification, TextResourceContents

from lithos.server.mcp import resource_pages as notes_resources
from lithos.server.mcp import resources
from lithos.server.mcp.resource_pages import Library
from tests.server.whole import HANDSHAKE, MODERN, TOLD_BOUND, SseSession, Whole, whole_server
from tests.servers import MISSING_ID

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"


async def until_nobody_follows(whole: Whole) -> None:
    """Wait until the server notices that its clients have disconnected."""
    changes = whole.lithos.server.get(Library).changes
    with trio.fail_after(TOLD_BOUND):
        while changes.count:
            await trio.sleep(0.01)


async def test_session_is_notified_of_its_subscriptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 204, 205"""
    monkeypatch.setattr(notes_resources, "QUIET", 0.1)
    async with whole_server(tmp_path) as whole:
        for version in HANDSHAKE:
            note = await whole.lithos.create(version)
            uri = f"lithos://note/{note}"
            async with SseSession.open(whole) as session:
                capabilities = await session.greet(version)
                assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
                assert (await session.ask("resources/subscribe", uri=uri))["result"] == {}
                await whole.lithos.write(version, "changed", id=note)
                assert await session.notice() == (UPDATED, uri)
                await whole.lithos.write(f"Other {version}")
                assert await session.notice() == (LIST_CHANGED, None)
                assert (await session.ask("resources/unsubscribe", uri=uri))["result"] == {}
                await whole.lithos.write(version, "changed again", id=note)
                await whole.lithos.call("lithos_delete", id=note, agent="ann")
                assert await session.notice() == (LIST_CHANGED, None)
                assert session.notices == []
            await until_nobody_follows(whole)


async def test_only_known_resources_can_be_subscribed_to(tmp_path: Path) -> None:
    """behaviour 205"""
    async with whole_server(tmp_path) as whole, SseSession.open(whole) as session:
        await session.greet("2025-06-18")
        task = (await whole.lithos.call("lithos_task_create", title="T", agent="ann"))["task_id"]
        assert await session.notice() == (LIST_CHANGED, None)
        uri = f"lithos://task/{task}"
        for wanted in (uri, uri, "lithos://tags"):
            assert "result" in await session.ask("resources/subscribe", uri=wanted)
        await whole.lithos.call("lithos_task_claim", task_id=task, aspect="x", agent="ann")
        assert await session.notice() == (UPDATED, uri)
        await whole.lithos.call("lithos_finding_post", task_id=task, agent="ann", summary="s")
        assert await session.notice() == (UPDATED, uri)
        await whole.lithos.create("Tagged", tags=["t"])
        told = {await session.notice(), await session.notice()}
        assert told == {(UPDATED, "lithos://tags"), (LIST_CHANGED, None)}
        for unknown in (f"lithos://note/{MISSING_ID}", "lithos://task/x", "http://x"):
            error = (await session.ask("resources/subscribe", uri=unknown))["error"]
            assert (error["code"], error["data"]) == (-32002, {"uri": unknown})
            assert (await session.ask("resources/unsubscribe", uri=unknown))["result"] == {}


#: Version 2026-07-28 replaces these methods, and the SDK therefore marks them as deprecated.
@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_official_client_subscribes_reads_and_gets_prompts(tmp_path: Path) -> None:
    """behaviours 205, 206"""
    told_by, told = trio.open_memory_channel[str](10)

    async def take(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told_by.send_nowait(message.params.uri)

    async with whole_server(tmp_path) as whole:
        note = await whole.lithos.create("A note")
        transport = sse_client(f"{whole.url}/sse")
        async with Client(transport, mode="legacy", message_handler=take) as client:
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            assert uris == ["lithos://tags", f"lithos://note/{note}"]
            await client.subscribe_resource(uris[1])
            await whole.lithos.write("A note", "New text.", id=note)
            with trio.fail_after(TOLD_BOUND):
                assert await told.receive() == uris[1]
            (content,) = (await client.read_resource(uris[1])).contents
            assert isinstance(content, TextResourceContents)
            assert "New text." in content.text
            await client.unsubscribe_resource(uris[1])
            prompt = await client.get_prompt("handoff", {"task_id": "t", "agent": "ada"})
            assert len(prompt.messages) == 1


async def test_capabilities_without_a_session_match_the_protocol_version(
    tmp_path: Path,
) -> None:
    """behaviour 204: `/mcp` offers notifications only in the newest version."""
    me = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    async with whole_server(tmp_path) as whole:
        for version in HANDSHAKE:
            hello = await whole.result(version, "initialize", protocolVersion=version, **me)
            assert hello["capabilities"]["resources"] == {"subscribe": False, "listChanged": False}
            for method in ("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"):
                assert (await whole.error(version, method, uri="lithos://tags"))["code"] == -32601
        assert (await whole.result(MODERN, "server/discover"))["capabilities"] == {
            "resources": {"subscribe": True, "listChanged": True},
            "tools": {"listChanged": False},
            "prompts": {"listChanged": False},
        }


def modern_client(whole: Whole, transport: str) -> Client:
    if transport == "mcp":
        return Client(streamable_http_client(f"{whole.url}/mcp"), mode=MODERN)
    return Client(sse_client(f"{whole.url}/sse"), mode=MODERN)


@pytest.mark.parametrize("transport", ["mcp", "sse"])
async def test_newest_version_client_receives_change_notifications(tmp_path: Path, transport: str) -> None:
    """behaviours 204, 205"""
    async with whole_server(tmp_path) as whole:
        note = await whole.lithos.create("A note")
        uri, later = f"lithos://note/{note}", f"lithos://note/{MISSING_ID}"
        async with modern_client(whole, transport) as client:
            async with client.listen(
                tools_list_changed=True,
                prompts_list_changed=True,
                resources_list_changed=True,
                resource_subscriptions=[uri, "http://foreign/x", later],
            ) as events:
                assert events.honored.model_dump(exclude_none=True) == {
                    "resources_list_changed": True,
                    "resource_subscriptions": [uri, later],
                }
                told = aiter(events)
                with trio.fail_after(TOLD_BOUND):
                    await whole.lithos.write("A note", "changed", id=note)
                    assert await anext(told) == ResourceUpdated(uri)
                    await whole.lithos.create("Another")
                    assert await anext(told) == ResourcesListChanged()
                assert (await client.read_resource(uri)).contents
            await until_nobody_follows(whole) if transport == "mcp" else None


#: The SDK client does not close its generators when a stream ends.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("transport", ["mcp", "sse"])
async def test_stop_sends_a_final_message_to_subscribers(tmp_path: Path, transport: str) -> None:
    async with (
        whole_server(tmp_path) as whole,
        modern_client(whole, transport) as client,
        client.listen(resource_subscriptions=["lithos://tags"]) as events,
    ):
        whole.shutdown.set()
        with trio.fail_after(TOLD_BOUND):
            assert [event async for event in events] == []  # an abrupt end would raise an error here


async def test_number_of_listeners_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MOST_LISTENERS", 1)
    async with whole_server(tmp_path) as whole:
        wanted: Any = {"notifications": {"resourceSubscriptions": ["lithos://tags"]}}
        async with (
            modern_client(whole, "mcp") as client,
            client.listen(resource_subscriptions=["lithos://tags"]),
        ):
            error = await whole.error(MODERN, "subscriptions/listen", **wanted)
            assert "/events" in error["message"]
        await until_nobody_follows(whole)
        many = [f"lithos://note/{n}" for n in range(1001)]
        wanted["notifications"]["resourceSubscriptions"] = many
        assert (await whole.error(MODERN, "subscriptions/listen", **wanted))["code"] == -32602


async def test_many_changes_become_one_notification_without_delaying_writers(tmp_path: Path) -> None:
    """behaviour 205: the client reads nothing while writes continue."""
    async with whole_server(tmp_path) as whole, SseSession.open(whole) as session:
        await session.greet("2025-11-25")
        await session.ask("resources/subscribe", uri="lithos://tags")
        for n in range(5):
            await whole.lithos.create(f"note {n}")
        told = [await session.notice() for _ in range(4)]
        assert Counter(told) == {(UPDATED, "lithos://tags"): 2, (LIST_CHANGED, None): 2}
