"""Event streams of a real server across a restart. Each missed event arrives once and in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from trio_websocket import open_websocket_url

from tests.e2e.feeds import gauge, listening, receive, write_notes, ws_url
from tests.e2e.process import running_lithos

pytestmark = pytest.mark.slow

BEFORE, MISSED = 3, 50


def test_last_event_id_returns_exactly_the_events_missed_during_restart(tmp_path: Path) -> None:
    """behaviours 133, 186, 187: Show 2."""
    data = tmp_path / "data"
    titles = [f"Note {n}" for n in range(BEFORE + MISSED + 1)]
    with running_lithos(data) as server:
        with listening(server, "types=note.created") as feed:
            write_notes(server, titles[:BEFORE])
            frames = [feed.frame() for _ in range(BEFORE)]
        write_notes(server, titles[BEFORE : BEFORE + MISSED // 2])
    with running_lithos(data) as server:
        write_notes(server, titles[BEFORE + MISSED // 2 : BEFORE + MISSED])
        with listening(server, "types=note.created", frames[-1]["id"]) as feed:
            missed = [feed.frame() for _ in range(MISSED)]
            write_notes(server, titles[-1:])
            live = feed.frame()
            assert gauge(server, "lithos_sse_events_delivered_total") >= MISSED
            assert gauge(server, "lithos_sse_active_clients") == 1
            assert server.stop() == 0
            assert feed.frame() == {}
    everything = [*frames, *missed, live]
    assert [json.loads(frame["data"])["title"] for frame in everything] == titles
    seqs = [int(frame["id"]) for frame in everything]
    assert seqs == sorted(set(seqs))


async def test_named_subscriber_resumes_after_a_restart(tmp_path: Path) -> None:
    """behaviours 186, 188, 189: Show 2 over WebSocket, without `since`."""
    data = tmp_path / "data"
    titles = [f"Note {n}" for n in range(BEFORE + MISSED)]
    with running_lithos(data) as server:
        async with open_websocket_url(ws_url(server, "subscriber=show")) as socket:
            hello = await receive(socket)
            assert hello["cursor"] == hello["head"]
            await trio.to_thread.run_sync(write_notes, server, titles[:BEFORE])
            got = [await receive(socket) for _ in range(BEFORE)]
            await socket.send_message(json.dumps({"op": "ack", "seq": got[-1]["seq"]}))
        await trio.to_thread.run_sync(write_notes, server, titles[BEFORE : BEFORE + MISSED // 2])
    with running_lithos(data) as server:
        await trio.to_thread.run_sync(write_notes, server, titles[BEFORE + MISSED // 2 :])
        async with open_websocket_url(ws_url(server, "subscriber=show")) as socket:
            assert (await receive(socket))["cursor"] == got[-1]["seq"]
            got += [await receive(socket) for _ in range(MISSED)]
    assert [event["payload"]["title"] for event in got] == titles
    seqs = [event["seq"] for event in got]
    assert seqs == sorted(set(seqs))
