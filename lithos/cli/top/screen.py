"""The live view of `lithos top`, drawn with textual.

textual needs asyncio, everything else here is Trio: so this one module of this one command runs asyncio,
and Trio as its guest in the same thread. Whatever the watch tells is queued for the application, whose
own task draws it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

import outcome
import trio
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.markup import escape
from textual.widgets import DataTable, Footer, RichLog, Static

from lithos.cli.commands.events import RESYNC, Record
from lithos.cli.session import Session
from lithos.cli.streams import make_printable
from lithos.cli.top.view import View
from lithos.cli.top.watch import Audience, watch

#: The panels that are tables: their columns, and what these tell of a row of the view.
_COLUMNS: Final[Mapping[str, Mapping[str, Callable[[Any], str]]]] = {
    "tools": {
        "tool": lambda row: row.tool,
        "calls/s": lambda row: f"{row.per_s:g}",
        "p50 ms": lambda row: _format_ms(row.p50_ms),
        "p95 ms": lambda row: _format_ms(row.p95_ms),
        "errors/s": lambda row: f"{row.errors_per_s:g}",
        "calls": lambda row: str(row.calls),
    },
    "actors": {
        "actor": lambda row: row.actor,
        "waiting": lambda row: str(row.waiting),
        "batches/s": lambda row: f"{row.batches_per_s:g}",
        "p50 ms": lambda row: _format_ms(row.p50_ms),
        "p95 ms": lambda row: _format_ms(row.p95_ms),
        "busy": lambda row: f"{row.busy:.0%}",
        "restarts": lambda row: str(row.restarts),
    },
    "claims": {
        "agent": lambda row: row.agent,
        "does": lambda row: row.aspect,
        "of the task": lambda row: row.title,
        "left": lambda row: format_seconds(row.left_s),
    },
}
_TITLES: Final = {"tools": "Tools", "actors": "Actors", "claims": "Who does what", "events": "Events"}
_EVENT_LINES = 500
#: Titles that are remembered for the lines of events.
_KNOWN_TITLES: Final = 2_000

#: Tells the audience until it is cancelled, in Trio.
Watching = Callable[[Audience], Awaitable[None]]


def show_live(session: Session, interval: float) -> None:
    """Show until the person leaves. Raises what the watch failed with."""
    asyncio.run(run_screen(Screen(), partial(watch, session, interval)))


async def run_screen(screen: Screen, watching: Watching) -> None:
    """Run the application and, as Trio's guest run, `watching(screen)`; both end with either of them."""
    scope = trio.CancelScope()
    ended: asyncio.Future[outcome.Outcome[None]] = asyncio.get_running_loop().create_future()

    async def run_watch() -> None:
        with scope:
            await watching(screen)

    def end(result: outcome.Outcome[None]) -> None:
        ended.set_result(result)
        screen.exit()

    trio.lowlevel.start_guest_run(
        run_watch,
        run_sync_soon_threadsafe=asyncio.get_running_loop().call_soon_threadsafe,
        done_callback=end,
        host_uses_signal_set_wakeup_fd=True,
    )
    try:
        await screen.run_async()
    finally:
        scope.cancel()
        result = await ended
    result.unwrap()


class Screen(App[None]):
    """The application; an `Audience` of the watch."""

    TITLE = "lithos top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("space", "hold", "Hold / go on"),
        ("tab", "app.focus_next", "Next panel"),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012 - as textual declares it
    CSS = """
    #head { height: 3; padding: 0 1; }
    #panels { height: 1fr; }
    #panels > * { border: round $surface-lighten-2; height: 1fr; }
    #panels > *:focus { border: round $accent; }
    .-wide #panels { layout: grid; grid-size: 2 2; }
    .-narrow #panels > * { min-height: 5; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_held = False
        #: What came before there were widgets to show it; None since there are.
        self._early: list[Callable[[], object]] | None = []
        self._titles = Titles()

    def compose(self) -> ComposeResult:
        """A head and four panels."""
        yield Static("Looking for the server …", id="head", markup=False)
        with Container(id="panels"):
            for name, columns in _COLUMNS.items():
                table: DataTable[str] = DataTable(id=name, cursor_type="none", zebra_stripes=True)
                table.add_columns(*columns)
                yield table
            yield RichLog(id="events", max_lines=_EVENT_LINES, min_width=20)
        yield Footer()

    def on_mount(self) -> None:
        """Name the panels."""
        for name, title in _TITLES.items():
            self.query_one(f"#{name}").border_title = title
        early, self._early = self._early or [], None
        for show in early:
            self.call_later(show)

    def action_hold(self) -> None:
        """Leave on the screen what is there, until the same key goes on."""
        self.is_held = not self.is_held
        self.query_one("#tools").border_title = _TITLES["tools"] + (" (held)" if self.is_held else "")

    # -- the audience: called in whatever context the guest run has, so it only queues --------------

    def show(self, view: View) -> None:
        """Draw the state, unless the person holds an earlier one."""
        self._titles.learn((row.task_id, row.title) for row in view.claims)
        self._queue(partial(self._draw, view))

    def miss(self, reason: str) -> None:
        """Say why nothing is new."""
        self._queue(partial(self._say, reason))

    def tell(self, event: Record) -> None:
        """Add a line for an event."""
        self._queue(partial(self._add_event, describe_event(event, self._titles)))

    def lack_events(self, reason: str) -> None:
        """Say in the place of events why there are none."""
        self._queue(partial(self._add_event, reason))

    # ------------------------------------------------------------------------------------------------

    def _queue(self, show: Callable[[], object]) -> None:
        """Have the application do it next; while it is being composed, once that is done."""
        if self._early is None:
            self.call_later(show)
        else:
            self._early.append(show)

    def _draw(self, view: View) -> None:
        if self.is_held:
            return
        self._say(describe_state(view))
        for name in _COLUMNS:
            self._fill(name, cells_of(view, name))

    def _say(self, text: str) -> None:
        self.query_one("#head", Static).update("\n".join(map(make_printable, text.split("\n"))))

    def _fill(self, name: str, rows: Iterable[tuple[str, ...]]) -> None:
        """Replace the rows; where the person scrolled to stays."""
        table: DataTable[str] = self.query_one(f"#{name}", DataTable)
        x, y = table.scroll_offset
        table.clear()
        for row in rows:
            table.add_row(*(escape(make_printable(cell)) for cell in row))
        table.scroll_to(x, y, animate=False)

    def _add_event(self, line: str) -> None:
        self.query_one("#events", RichLog).write(make_printable(line))


def describe_state(view: View) -> str:
    """The server in two lines, and one for what is not well."""
    faults = [
        f"{name} {part['status']}" + (f": {part['error']}" if "error" in part else "")
        for name, part in view.components.items()
        if part["status"] != "ok"
    ]
    return (
        f"{view.url}  lithos {view.version}  {view.status}  up {format_seconds(view.uptime_s)}\n"
        f"{view.documents} documents  {view.calls_per_s:g} calls/s  processor {view.processor:.0%}  "
        f"memory {view.memory_mib:.0f} MiB  {view.listeners} event listeners\n"
        + " | ".join([*(faults or ["all components are ok"]), *describe_embedding(view)])
    )


def describe_embedding(view: View) -> list[str]:
    """The tier of embeddings that answers, and how far the accurate one is; nothing of an older server."""
    part = view.components.get("embedding_model", {})
    if "tier" not in part:
        return []
    done, total = part["done"], part["total"]
    progress = f", accurate {done} of {total} chunks" if 0 < done < total else ""
    return [f"{part['tier']} embeddings{progress}"]


def cells_of(view: View, panel: str) -> list[tuple[str, ...]]:
    """The texts in the rows of a panel."""
    return [tuple(tell(row) for tell in _COLUMNS[panel].values()) for row in getattr(view, panel)]


class Titles(dict[str, str]):
    """Titles of notes and tasks by id, those that were told last."""

    def learn(self, titles: Iterable[tuple[str, str]]) -> None:
        """Keep these; the oldest make room."""
        for subject, title in titles:
            self.pop(subject, None)
            self[subject] = title
        for subject in list(self)[: max(0, len(self) - _KNOWN_TITLES)]:
            del self[subject]


def describe_event(event: Record, titles: Titles) -> str:
    """An event in a line: when, what, who, the title it is about, and what else it carries."""
    if event["type"] == RESYNC:
        return f"-- {event['message']}"
    told = {name: value for name, value in event["payload"].items() if value not in (None, "", "null")}
    key = "task_id" if "task_id" in told else "id"
    if key in told and told.get("title"):
        titles.learn([(told[key], told["title"])])
    title = titles.get(told.get(key, ""))
    if title is not None:  # an id says nothing to a person
        told = {name: value for name, value in told.items() if name not in (key, "title")}
    if told.get("agent") == event["agent"]:
        del told["agent"]
    time = str(event["timestamp"])[11:19]
    about = [json.dumps(part, ensure_ascii=False) for part in (title, told) if part]
    return " ".join([time, event["type"], event["agent"], *about])


def format_seconds(seconds: float) -> str:
    """`7s`, `3m07s`, `2h05m`, `4d03h`; what is over is `0s`."""
    whole = max(0, int(seconds))
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // smaller:02d}{name}"
    return f"{whole}s"


def _format_ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
