"""A data directory put back from a plain copy: whoever saw more is told, and misses nothing new."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import open_websocket_url

from tests.e2e.feeds import Sse, call_tool, listening, receive, write_notes, ws_url
from tests.e2e.process import Lithos, running_lithos
from tests.repeats import first_of

BEFORE, LOST, NEW = 3, 10, 10
WANTED = "types=note.created"

pytestmark = [pytest.mark.slow, pytest.mark.takes(12)]


def copy_folder(data: Path, copy: Path) -> None:
    """As `cp -r` or a snapshot takes it, also of what is in use."""
    shutil.copytree(data, copy)


def put_back(data: Path, copy: Path) -> None:
    shutil.rmtree(data)
    copy.rename(data)


def live_through(data: Path, copy: Path, while_running: bool) -> list[dict[str, str]]:
    """Events before a copy and after it, as a subscriber got them; then the copy is put back."""
    with running_lithos(data) as server, listening(server, WANTED) as feed:
        write_notes(server, [f"Before {n}" for n in range(BEFORE)])
        frames = [feed.frame() for _ in range(BEFORE)]
        if while_running:
            copy_folder(data, copy)
            frames += more_events(server, feed)
    if not while_running:
        copy_folder(data, copy)
        with running_lithos(data) as server, listening(server, WANTED, frames[-1]["id"]) as feed:
            frames += more_events(server, feed)
    put_back(data, copy)
    return frames


def more_events(server: Lithos, feed: Sse) -> list[dict[str, str]]:
    write_notes(server, [f"Lost {n}" for n in range(LOST)])
    return [feed.frame() for _ in range(LOST)]


@pytest.mark.parametrize(
    "while_running", first_of([True, False], 1), ids=["copied running", "copied stopped"]
)
def test_no_position_of_the_lost_time_is_taken_for_a_later_one(tmp_path: Path, while_running: bool) -> None:
    """behaviours 186, 191: over SSE, from every position that was given out."""
    data = tmp_path / "data"
    frames = live_through(data, tmp_path / "copy", while_running)
    assert len(frames) == BEFORE + LOST
    titles = [f"New {n}" for n in range(NEW)]
    with running_lithos(data) as server:
        write_notes(server, titles[:5])
        for frame in frames[:BEFORE]:
            missed = BEFORE - 1 - frames.index(frame)
            with listening(server, WANTED, frame["id"]) as feed:
                assert feed.titles(missed + 5)[missed:] == titles[:5], "nothing was lost here"
        for frame in frames[BEFORE:]:
            with listening(server, WANTED, frame["id"]) as feed:
                told = feed.frame()
                assert told["event"] == "resync"
                assert "id" not in told
                assert json.loads(told["data"])["since_id"] == frame["id"]
        with listening(server, WANTED, frames[-1]["id"]) as feed:
            assert feed.frame()["event"] == "resync"
            write_notes(server, titles[5:])
            later = [feed.frame() for _ in range(5)]
    assert [json.loads(frame["data"])["title"] for frame in later] == titles[5:]
    assert int(later[0]["id"]) > max(int(frame["id"]) for frame in frames)


@pytest.mark.parametrize(
    "while_running", first_of([True, False], 1), ids=["copied running", "copied stopped"]
)
async def test_a_websocket_subscriber_of_the_lost_time_is_told_too(
    tmp_path: Path, while_running: bool
) -> None:
    """behaviours 186, 188, 191: with a position of its own, and with a cursor that is as old as the copy."""
    data, blocking = tmp_path / "data", trio.to_thread.run_sync
    frames = await blocking(live_through, data, tmp_path / "copy", while_running)
    titles = [f"New {n}" for n in range(NEW)]
    with running_lithos(data) as server:
        since = frames[-1]["id"]
        async with open_websocket_url(ws_url(server, f"since={since}")) as socket:
            assert (await receive(socket))["head"] < int(since)
            told = await receive(socket)
            assert (told["type"], told["since_id"]) == ("resync", since)
            await blocking(write_notes, server, titles)
            events = [await receive(socket) for _ in titles]
        assert [event["payload"]["title"] for event in events] == titles
        assert events[0]["seq"] > int(since)
        async with open_websocket_url(ws_url(server, f"since={frames[BEFORE - 1]['id']}")) as socket:
            await receive(socket)
            again = [await receive(socket) for _ in titles]
        assert again == events


async def test_an_old_cursor_delivers_again_and_then_all_that_is_new(tmp_path: Path) -> None:
    """behaviours 188, 191: the cursor went back with the copy; delivery is at least once."""
    data, copy, blocking = tmp_path / "data", tmp_path / "copy", trio.to_thread.run_sync

    async def read_and_acknowledge(server: Lithos, count: int) -> list[Any]:
        async with open_websocket_url(ws_url(server, "subscriber=worker")) as socket:
            await receive(socket)
            events = [await receive(socket) for _ in range(count)]
            await socket.send_message(json.dumps({"op": "ack", "seq": events[-1]["seq"]}))
            return events

    with running_lithos(data) as server:
        async with open_websocket_url(ws_url(server, "subscriber=worker")) as socket:
            await receive(socket)  # the cursor is stored
        await blocking(write_notes, server, ["Before 0", "Before 1"])
        await blocking(copy_folder, data, copy)
        await blocking(write_notes, server, [f"Lost {n}" for n in range(LOST)])
        seen = await read_and_acknowledge(server, 2 + LOST)
    await blocking(put_back, data, copy)
    titles = [f"New {n}" for n in range(NEW)]
    with running_lithos(data) as server:
        await blocking(write_notes, server, titles)
        events = await read_and_acknowledge(server, 2 + NEW)
    assert [event["payload"]["title"] for event in events] == ["Before 0", "Before 1", *titles]
    assert events[2]["seq"] > seen[-1]["seq"]


def test_fences_of_the_lost_time_are_not_given_again(tmp_path: Path) -> None:
    """behaviour 191"""
    data, copy = tmp_path / "data", tmp_path / "copy"

    def claim(server: Lithos, aspect: str) -> int:
        answer = call_tool(
            server, "lithos_task_claim", task_id=task, aspect=aspect, agent="ada", ttl_minutes=5
        )
        return int(answer["fence"])

    with running_lithos(data) as server:
        task = call_tool(server, "lithos_task_create", title="A task", agent="ada")["task_id"]
        copy_folder(data, copy)
        lost = [claim(server, f"part {n}") for n in range(LOST)]
    put_back(data, copy)
    with running_lithos(data) as server:
        assert claim(server, "part 0") > max(lost)
