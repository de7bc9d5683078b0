"""`/console/undo`: takes the changes of one agent since a time back, after showing what that would do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import urlencode

import trio
from attrs import define, field, frozen
from quart import Blueprint, request

from lithos.core.history.undo import Step
from lithos.core.times import format_time, parse_time
from lithos.front.console.console import Console, Form, Refused, given
from lithos.front.console.formats import plural
from lithos.services.notes.undo import (
    LEFT,
    RESULTS,
    UNDONE,
    Result,
    UndoFailed,
    UndoRun,
    plan_undo,
)

#: The entry of the navigation to which these pages belong.
SECTION: Final = "/console/agents"
#: Notes of one undo; a terminal has no such limit.
MOST_NOTES: Final = 500
#: Seconds for which a look ahead checks notes, and for which one request takes changes back.
LOOK_SECONDS: Final = 5.0
RUN_SECONDS: Final = 20.0
#: Rows of a list.
MOST_LISTED: Final = 100
#: Outcomes that are kept for their pages.
MOST_REPORTS: Final = 50
SPANS: Final[Mapping[str, str]] = {"hour": "the last hour", "today": "today (UTC)", "custom": "since a time"}


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the form, the change and the page of its outcome."""
    pages = UndoPages(console)
    console.asking(app, "/undo", pages.ask, pages.undo, needs="admin")
    app.get("/undo/<report>")(console.only("admin", pages.report))


@frozen(kw_only=True)
class Window:
    """Whose changes of which time; `until` is exclusive and fixed when they are shown."""

    agent: str
    since: datetime
    until: datetime

    @property
    def query(self) -> str:
        """As the address of the page that looks ahead."""
        return urlencode({"agent": self.agent, "span": "custom", "since": format_time(self.since)})


@frozen(kw_only=True)
class Report:
    """What an undo did, or would do; `left` steps were not looked at in time."""

    window: Window
    by: str
    results: Sequence[Result]
    left: int

    @property
    def by_result(self) -> dict[str, list[Result]]:
        """The results by what became of the notes."""
        return {name: [one for one in self.results if one.result == name] for name in RESULTS}


@define(eq=False)
class UndoPages:
    """The pages around undoing."""

    _console: Console
    _reports: OrderedDict[str, Report] = field(factory=OrderedDict)

    async def ask(self) -> Any:
        """The form; once a time is given, also what would become of each note."""
        agent = given("agent")
        span = request.args.get("span", "")
        if not agent:
            raise Refused("Choose the agent whose changes you want to take back, on the page Agents.", 404)
        window = self._window(agent, span, request.args.get("since", ""))
        ahead = None
        if window is not None:
            steps = await self._plan(window)
            run = UndoRun(self._console.tools, dry_run=True, by=self._console.agent)
            ahead = await self._carry_out(window, run, steps, LOOK_SECONDS)
        return await self._console.show(
            "undo.html",
            path=SECTION,
            agent_id=agent,
            spans=SPANS,
            span=span or "hour",
            since=request.args.get("since", "")[:60],
            ahead=ahead,
            until="" if window is None else format_time(window.until),
            since_exact="" if window is None else format_time(window.since),
            most=MOST_LISTED,
            does_something=ahead is not None
            and (ahead.left > 0 or any(one.result not in (UNDONE, LEFT) for one in ahead.results)),
        )

    async def undo(self, form: Form) -> str:
        """Take the changes back in the name of the person."""
        agent, since, until = (form.get(name, "") for name in ("agent", "since", "until"))
        try:
            window = Window(agent=agent, since=parse_time(since), until=parse_time(until))
        except ValueError as problem:
            raise Refused("This form names no time. Begin at the page of the agent.") from problem
        if not agent:
            raise Refused("This form names no agent whose changes can be undone. Begin at the page Agents.")
        run = UndoRun(self._console.tools, by=self._console.agent)
        done = await self._carry_out(window, run, await self._plan(window), RUN_SECONDS)
        key = token_urlsafe(12)
        self._reports[key] = done
        while len(self._reports) > MOST_REPORTS:
            self._reports.popitem(last=False)
        return f"/console/undo/{key}"

    async def report(self, report: str) -> Any:
        """What an undo did."""
        done = self._reports.get(report)
        if done is None:
            raise Refused(
                "What this undo did is not kept any more. The histories of the notes tell it: look at your "
                "own changes on the page Agents.",
                404,
            )
        return await self._console.show("undone.html", path=SECTION, done=done, most=MOST_LISTED)

    def _window(self, agent: str, span: str, since: str) -> Window | None:
        now = self._console.parts.clock()
        if span == "hour":
            return Window(agent=agent, since=now - timedelta(hours=1), until=now)
        if span == "today":
            start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            return Window(agent=agent, since=start, until=now)
        if span != "custom":
            return None
        try:
            return Window(agent=agent, since=parse_time(since[:60].strip()), until=now)
        except ValueError as problem:
            raise Refused(
                "Give the time since when the changes go, in UTC, as 2026-01-31T12:00. Nothing was changed."
            ) from problem

    async def _plan(self, window: Window) -> list[Step]:
        try:
            return await plan_undo(
                self._console.tools, window.agent, window.since, window.until, most_notes=MOST_NOTES
            )
        except UndoFailed as failure:
            raise Refused(f"Nothing was changed. {failure}", 409) from failure

    async def _carry_out(self, window: Window, run: UndoRun, steps: Sequence[Step], seconds: float) -> Report:
        """Carry steps out for so long; at least one."""
        end, results, count = trio.current_time() + seconds, list[Result](), 0
        try:
            for count, step in enumerate(steps, 1):  # noqa: B007 - how far it got
                results += await run.carry_out(step)
                if trio.current_time() > end:
                    break
        except UndoFailed as failure:
            done = plural(count - 1, "note")
            raise Refused(
                f"The undo ended early, after {done}: {failure} Look again what is left.", 409
            ) from failure
        return Report(window=window, by=run.by, results=results, left=len(steps) - count)
