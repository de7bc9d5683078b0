"""`lithos top`: metrics compared by hand-computed numbers, and the screen driven as a person does."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog, Static

from lithos.cli import main
from lithos.cli.commands.events import Feed
from lithos.cli.options import parse_arguments
from lithos.cli.session import CommandFailed, load_session
from lithos.cli.top.screen import (
    Screen,
    Titles,
    cells_of,
    describe_event,
    describe_state,
    format_seconds,
    run_screen,
)
from lithos.cli.top.view import TOOLS, Histogram, Poll, View, compare, read_scrape
from lithos.cli.top.watch import Audience, follow_events, watch
from lithos.metrics import Metrics, Sample
from tests.e2e.feeds import await_clients, call_tool
from tests.e2e.process import run_lithos, running_lithos

BOUND = 60.0
INFINITE = float("inf")
HEALTH = {
    "status": "degraded",
    "timestamp": "2026-03-04T05:06:07+00:00",
    "version": "1.2.3",
    "components": {"search": {"status": "ok"}, "events": {"status": "degraded", "error": "disk full"}},
}


def polled(at: float, text: str, tasks: list[dict[str, Any]] | None = None) -> Poll:
    return Poll(at, "http://127.0.0.1:1", read_scrape(text), HEALTH, tasks or [])


def buckets(tool: str, outcome: str, *counts: float, total: float) -> str:
    bounds = ("0.001", "0.01", "0.1", "+Inf")
    label = f'tool="{tool}",outcome="{outcome}"'
    lines = [f'{TOOLS}_bucket{{{label},le="{b}"}} {c}' for b, c in zip(bounds, counts, strict=True)]
    return "\n".join([*lines, f"{TOOLS}_sum{{{label}}} {total}", f"{TOOLS}_count{{{label}}} {counts[-1]}"])


def scrape_text(*series: str, start: float = 100.0, cpu: float = 0.0) -> str:
    head = f"# TYPE {TOOLS} histogram\n"
    tail = f"\nprocess_start_time_seconds {start}\nprocess_cpu_seconds_total {cpu}\n"
    return head + "\n".join(series) + tail


def test_a_quantile_is_interpolated_in_its_bucket() -> None:
    """The rule of Prometheus: 10 calls, 4 below 1 ms, 4 more below 10 ms, 2 beyond every bound."""
    durations = Histogram((0.001, 0.01, INFINITE), (4, 8, 10), 1.0)
    assert durations.quantile(0.2) == pytest.approx(0.0005)
    assert durations.quantile(0.5) == pytest.approx(0.001 + 0.009 * 1 / 4)
    assert durations.quantile(0.8) == pytest.approx(0.01)
    assert durations.quantile(0.95) == 0.01, "the last finite bound is all that is known"
    assert Histogram((0.001, INFINITE), (0, 0), 0.0).quantile(0.5) is None


def test_rates_and_latencies_are_those_between_the_polls() -> None:
    earlier = scrape_text(buckets("a", "ok", 100, 100, 100, 100, total=0.05), cpu=3.0)
    later = scrape_text(
        buckets("a", "ok", 100, 104, 104, 104, total=0.08),
        buckets("a", "error", 0, 0, 4, 4, total=0.2),
        "# TYPE lithos_tool_errors counter",
        'lithos_tool_errors_total{tool="a",error="not_found"} 3',
        'lithos_tool_errors_total{tool="a",error="invalid_input"} 1',
        cpu=4.0,
    )
    (row,) = compare(polled(10.0, earlier), polled(12.0, later)).tools
    assert (row.tool, row.per_s, row.errors_per_s, row.calls) == ("a", 4.0, 2.0, 108)
    # Eight calls, both outcomes together: four in 1..10 ms, four in 10..100 ms; the 7.6th is the p95.
    assert row.p50_ms == 10.0
    assert row.p95_ms == pytest.approx(10 + 90 * 3.6 / 4, abs=0.01)
    assert compare(polled(10.0, earlier), polled(12.0, later)).processor == 0.5


def test_after_a_restart_the_new_server_counts_alone() -> None:
    before = scrape_text(buckets("a", "ok", 50, 50, 50, 50, total=1), start=100.0, cpu=9.0)
    after = scrape_text(buckets("a", "ok", 2, 2, 2, 2, total=0.1), start=200.0, cpu=1.0)
    view = compare(polled(1.0, before), polled(3.0, after))
    assert ([row.per_s for row in view.tools], view.processor) == ([1.0], 0.5)


def test_actors_claims_and_state_are_read_from_what_the_server_really_renders() -> None:
    metrics = Metrics()
    gauges = [
        Sample("documents", 42),
        Sample("actor_mailbox_depth", 3, ("writer",)),
        Sample("actor_restarts", 1, ("writer",)),
    ]
    earlier = polled(0.0, metrics.render(gauges).decode())
    metrics.observe("actor_processing_seconds", 0.002, "writer")
    metrics.observe("actor_processing_seconds", 0.498, "writer")
    claims = [
        {"agent": "bob", "aspect": "late", "expires_at": "2026-03-04T06:06:07+00:00"},
        {"agent": "ada", "aspect": "soon", "expires_at": "2026-03-04T05:07:07+00:00"},
    ]
    tasks = [{"id": "t1", "title": "Write", "claims": claims}]
    view = compare(earlier, polled(1.0, metrics.render(gauges).decode(), tasks))
    (actor,) = view.actors
    assert (actor.actor, actor.waiting, actor.restarts) == ("writer", 3, 1)
    assert (actor.batches_per_s, actor.busy) == (2.0, 0.5)
    assert [(claim.agent, claim.left_s) for claim in view.claims] == [("ada", 60.0), ("bob", 3600.0)]
    assert (view.documents, view.status) == (42, "degraded")
    assert json.loads(json.dumps(attrs.asdict(view)))["claims"][0]["aspect"] == "soon"


def test_seconds_are_told_in_two_units() -> None:
    times = [format_seconds(seconds) for seconds in (-1, 7.9, 187, 7500, 4 * 86400 + 3 * 3600)]
    assert times == ["0s", "7s", "3m07s", "2h05m", "4d03h"]


@pytest.mark.parametrize(
    ("tier", "done", "told"),
    [
        ("static", 0, "static embeddings"),
        ("static", 7, "static embeddings, accurate 7 of 9 chunks"),
        ("accurate", 9, "accurate embeddings"),
    ],
)
def test_the_tier_of_embeddings_and_its_progress_are_shown(tier: str, done: int, told: str) -> None:
    model = {"status": "ok", "tier": tier, "done": done, "total": 9}
    health = HEALTH | {"components": {"embedding_model": model}}
    poll = attrs.evolve(polled(0.0, scrape_text()), health=health)
    assert describe_state(compare(poll, poll)).endswith(f"all components are ok | {told}")


def some_view(claimant: str) -> View:
    claim = {"agent": claimant, "aspect": "draft", "expires_at": "2026-03-04T05:07:07+00:00"}
    text = scrape_text(buckets("lithos_read", "ok", 1, 2, 2, 2, total=0.01))
    poll = polled(0.0, text, [{"id": "t", "title": "[bold]no markup[/bold]\x1b[2J", "claims": [claim]}])
    return compare(poll, poll)


def run_piloted(drive: Callable[[Screen, Pilot[None]], Awaitable[None]], size: tuple[int, int]) -> None:
    async def run() -> None:
        screen = Screen()
        async with asyncio.timeout(BOUND), screen.run_test(size=size) as pilot:
            await drive(screen, pilot)

    asyncio.run(run())


def cells(screen: Screen, table: str) -> list[list[str]]:
    shown: DataTable[str] = screen.query_one(f"#{table}", DataTable)
    return [shown.get_row_at(number) for number in range(shown.row_count)]


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_the_screen_shows_what_it_is_told_and_can_be_held(size: tuple[int, int]) -> None:
    async def drive(screen: Screen, pilot: Pilot[None]) -> None:
        screen.show(some_view("ada"))
        screen.tell(
            {"type": "note.created", "agent": "bob", "payload": {"title": "T"}, "timestamp": "x" * 20}
        )
        await pilot.pause()
        assert "events degraded: disk full" in str(screen.query_one("#head", Static).content)
        assert [row[0] for row in cells(screen, "tools")] == ["lithos_read"]
        assert cells(screen, "claims") == [
            ["ada", "draft", "\\[bold]no markup\\[/bold]\\x1b[2J", "1m00s"],
        ], "what a task is called neither styles nor steers"
        assert [line.text.split()[1] for line in screen.query_one(RichLog).lines] == ["note.created"]
        await pilot.press("space")
        screen.show(some_view("eve"))
        await pilot.pause()
        assert cells(screen, "claims")[0][0] == "ada"
        await pilot.press("space")
        screen.show(some_view("eve"))
        await pilot.pause()
        assert cells(screen, "claims")[0][0] == "eve"
        await pilot.press("q")

    run_piloted(drive, size)


def test_what_is_told_before_there_are_widgets_is_shown_once_there_are() -> None:
    async def run() -> None:
        screen = Screen()
        screen.miss("No server yet")
        async with asyncio.timeout(BOUND), screen.run_test() as pilot:
            await pilot.pause()
            assert "No server yet" in str(screen.query_one("#head", Static).content)

    asyncio.run(run())


def test_the_screen_ends_with_what_its_watch_failed_with() -> None:
    class Headless(Screen):
        async def run_async(self, **more: Any) -> None:
            await super().run_async(headless=True, size=(80, 24))

    async def fail(audience: Audience) -> None:
        audience.miss("soon over")
        await trio.sleep(0)
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        asyncio.run(run_screen(Headless(), fail))


def test_events_that_a_server_refuses_are_explained_and_asked_for_again() -> None:
    reasons: list[str] = []

    class Refused(Feed):
        async def follow(self, take: object) -> None:
            raise ExceptionGroup("as a nursery does", [CommandFailed("WebSocket delivery is disabled")])

    async def run() -> None:
        with trio.move_on_after(25):
            await follow_events(Refused(session=None), print, reasons.append)  # type: ignore[arg-type]

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    assert reasons == ["WebSocket delivery is disabled"] * 3


def test_without_textual_the_way_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "lithos.cli.top.screen")
    monkeypatch.setitem(sys.modules, "textual.app", None)
    assert main(["-d", str(tmp_path / "data"), "top"]) == 1
    assert "pip install 'lithos-server[top]'" in capsys.readouterr().err


@pytest.mark.slow
def test_one_sample_is_one_json_document_with_the_events_of_its_interval(tmp_path: Path) -> None:
    data = tmp_path / "data"
    alone = run_lithos("-d", data, "top", "--json")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "Start one with" in alone.stderr
    with running_lithos(data) as server:
        task = call_tool(server, "lithos_task_create", title="Look", agent="ada")["task_id"]
        call_tool(server, "lithos_task_claim", task_id=task, aspect="top", agent="ada")
        done = run_lithos("-d", data, "top", "--json", "--interval", "0.2")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    told = json.loads(done.stdout)
    assert (told["url"], told["events"]) == (server.url, [])
    assert {row["tool"]: row["calls"] for row in told["tools"]}["lithos_task_claim"] == 1
    assert [(claim["agent"], claim["title"]) for claim in told["claims"]] == [("ada", "Look")]
    assert {"writer", "coordinator"} <= {row["actor"] for row in told["actors"]}


@pytest.mark.slow
def test_the_live_view_waits_for_a_server_and_survives_its_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    session = load_session(parse_arguments(["-d", str(data), "top"]))
    seen: list[str] = []

    class Live(Screen):
        async def run_async(self, **more: Any) -> None:
            async with self.run_test() as pilot:
                await play(self, pilot)

        def tell(self, event: Any) -> None:
            seen.append(describe_event(event, Titles()))
            super().tell(event)

    async def until(pilot: Pilot[None], is_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND):
            while not is_true():
                await pilot.pause(0.05)

    async def play(screen: Live, pilot: Pilot[None]) -> None:
        head = screen.query_one("#head", Static)
        await until(pilot, lambda: "No server owns" in str(head.content))
        for number in range(2):
            running = running_lithos(data)
            server = await asyncio.to_thread(running.__enter__)
            await until(pilot, lambda url=server.url: url in str(head.content))  # type: ignore[misc]
            await asyncio.to_thread(await_clients, server, 1)
            await asyncio.to_thread(partial(call_tool, server, "lithos_agent_register", id=f"a{number}"))
            await until(pilot, lambda count=number + 1: len(seen) == count)  # type: ignore[misc]
            await asyncio.to_thread(running.__exit__, None, None, None)
            await until(pilot, lambda: "No server owns" in str(head.content))

    asyncio.run(run_screen(Live(), partial(watch, session, 0.1)))
    assert [line.split()[1:3] for line in seen] == [["agent.registered", "a0"], ["agent.registered", "a1"]]


def event_of(kind: str, who: str = "ada", **payload: Any) -> dict[str, Any]:
    return {"type": kind, "agent": who, "payload": payload, "timestamp": "2026-03-04T05:06:07+00:00"}


def test_events_are_told_with_the_titles_of_their_tasks_and_notes() -> None:
    titles = Titles()
    first = describe_event(event_of("task.created", task_id="t1", title="Lay the pipes"), titles)
    assert first == '05:06:07 task.created ada "Lay the pipes"'
    claimed = event_of("task.claimed", "zoe", task_id="t1", agent="zoe", aspect="dig", fence=4)
    assert describe_event(claimed, titles) == (
        '05:06:07 task.claimed zoe "Lay the pipes" {"aspect": "dig", "fence": 4}'
    )
    describe_event(event_of("note.created", id="n1", title="Pipes", path="pipes.md"), titles)
    gone = describe_event(event_of("note.deleted", id="n1", path="pipes.md"), titles)
    assert gone == '05:06:07 note.deleted ada "Pipes" {"path": "pipes.md"}'
    unknown = describe_event(event_of("task.updated", task_id="t2"), titles)
    assert unknown == '05:06:07 task.updated ada {"task_id": "t2"}'


def test_the_titles_that_are_remembered_are_bounded() -> None:
    titles = Titles()
    titles.learn((f"t{number}", f"Task {number}") for number in range(5_000))
    assert titles.get("t4999") == "Task 4999"
    assert titles.get("t0") is None


def test_claims_say_who_does_what() -> None:
    claim = {"agent": "zoe", "aspect": "dig", "expires_at": "2026-03-04T05:08:07+00:00"}
    poll = polled(1.0, "", [{"id": "t1", "title": "Lay the pipes", "claims": [claim]}])
    assert cells_of(compare(poll, poll), "claims") == [("zoe", "dig", "Lay the pipes", "2m00s")]
