"""`/console/agents`: who works here, and what one agent read, searched, wrote, claimed and cited.

`/console/undo` takes the changes of one agent since a time back, after showing what that would do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from secrets import token_urlsafe
from typing import Any, Final

import trio
from attrs import define, field, frozen
from quart import Blueprint, request

from lithos.core.tasks.model import Claim
from lithos.core.times import format_time, parse_time
from lithos.front.console.console import Console, Form, Refused, given, given_offset
from lithos.front.console.formats import as_json, plural, query_with, told_ids
from lithos.services.notes.undo import (
    RESULTS,
    Result,
    UndoFailed,
    UndoRun,
    plan_undo,
)
from lithos.services.tasks.timeline import KINDS, TASKS, WRITES, TimelineEntry

#: Agents of a page, and entries of a timeline.
ROWS: Final = 100
#: Characters of an agent's metadata that are shown.
LONGEST_METADATA: Final = 4_000
#: Types of agents that the list may be reduced to.
MOST_TYPES: Final = 50
#: The span of the numbers beside each agent.
RECENT: Final = timedelta(hours=24)
#: Notes that a completion names in the timeline.
MOST_CITED: Final = 10
VIEWS: Final = (
    ("All", ""),
    ("Reads", "read"),
    ("Searches", "search"),
    ("Writes", "write"),
    ("Tasks", "task"),
)
#: What events and histories tell of an agent; the rest stands only in the audit log, which takes `admin`.
PUBLIC: Final = (WRITES, TASKS)


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the list and the page of one agent."""
    pages = AgentPages(console)
    app.get("/agents")(pages.agents)
    app.get("/agents/<whole:agent>")(pages.agent)
    undoing = UndoPages(console)
    console.asking(app, "/undo", undoing.ask, undoing.undo, needs="admin")
    app.get("/undo/<report>")(console.only("admin", undoing.report))


@frozen
class AgentPages:
    """The pages about agents."""

    _console: Console

    async def agents(self) -> Any:
        """Agents, those seen last first, with what they hold and did in the last day."""
        parts = self._console.parts
        kind = given("type") or None
        found = parts.agents.list_agents(kind, None)
        offset = given_offset(len(found))
        shown = found[offset : offset + ROWS]
        held = await self._claims()
        return await self._console.show(
            "agents.html",
            rows=shown,
            held=held,
            recent=await parts.timelines.activity(parts.clock() - RECENT),
            titles=await parts.board.titles(
                [claim.task_id for one in shown for claim in held.get(one.id, ())[:2]]
            ),
            total=len(found),
            limit=ROWS,
            offset=offset,
            kind=kind,
            kinds=sorted({one.type for one in parts.agents.list_agents(None, None) if one.type})[:MOST_TYPES],
        )

    async def agent(self, agent: str) -> Any:
        """One agent with its timeline."""
        parts = self._console.parts
        known = parts.agents.get(agent)
        view = request.args.get("show", "")
        if view and view not in KINDS:
            raise Refused(f"A timeline shows {', '.join(KINDS)}, or all. Choose one of them.", 404)
        hidden = "" if self._console.sees_all_of(agent) else self._console.lacks("admin")
        kinds = PUBLIC if hidden else KINDS
        if view and view not in kinds:
            raise Refused(f"What other agents read and searched is not shown. {hidden}", 403)
        before = _moment(given("before", 60))
        since = "" if before is None else format_time(before)
        timeline = await parts.timelines.page(agent, before, ROWS, (view,) if view else kinds)
        entries = timeline.entries
        if known is None and not entries and before is None and not view:
            raise Refused("No agent of this name has been here. Look for it among all agents.", 404)
        claims = (await self._claims()).get(agent, [])
        cited = {one: self._console.title(one) or one for one in _cited_in(entries)}
        return await self._console.show(
            "one_agent.html",
            id=agent,
            known=known,
            claims=claims,
            task_titles=await parts.board.titles([*(one.task_id for one in claims), *_tasks_of(entries)]),
            titles=cited | await self._console.titles(_notes_of(entries)),
            metadata=as_json(known.metadata if known else {}, LONGEST_METADATA),
            days=[(day, list(some)) for day, some in groupby(entries, lambda one: f"{one.at:%A, %-d %B %Y}")],
            idle=_idle(entries),
            timeline=timeline,
            before=before,
            view=view,
            views=[
                (name, query_with({}, show=key, before=since))
                for name, key in VIEWS
                if not key or key in kinds
            ],
            hidden=hidden,
            here=next(name for name, key in VIEWS if key == view),
            format_time=format_time,
            ids_of=told_ids,
            most_cited=MOST_CITED,
        )

    async def _claims(self) -> dict[str, list[Claim]]:
        """The running claims by agent."""
        found: dict[str, list[Claim]] = {}
        for held in await self._console.parts.board.claims():
            found.setdefault(held.claim.agent, []).append(held.claim)
        return found


def _idle(entries: Sequence[TimelineEntry]) -> set[datetime]:
    """The times of changes ahead of which nothing was read since the one before."""
    writes = [one for one in entries if one.version is not None]
    return {
        later.at
        for later, earlier in pairwise(writes)
        if later.before and (later.before, later.asked) == (earlier.before, earlier.asked)
    }


def _notes_of(entries: Sequence[TimelineEntry]) -> list[str]:
    return [note for one in entries for note in (*one.notes, *one.before)]


def _cited_in(entries: Sequence[TimelineEntry]) -> Iterator[str]:
    for event in (one.event for one in entries if one.event is not None):
        for key in ("cited_nodes", "misleading_nodes"):
            yield from (told_ids(event.payload.get(key)) or [])[:MOST_CITED]


def _tasks_of(entries: Sequence[TimelineEntry]) -> list[str]:
    found = [one.event.payload.get("task_id") for one in entries if one.event is not None]
    asked = [one.receipt.task_id for one in entries if one.receipt is not None]
    return [each for each in (*found, *asked) if isinstance(each, str)]


def _moment(text: str) -> datetime | None:
    """A time of the address; None where there is none. Raises `Refused`."""
    try:
        return parse_time(text) if text else None
    except ValueError as problem:
        raise Refused("This is no time. Give it as 2026-01-31T12:00:00Z.") from problem


# -- undoing ------------------------------------------------------------------------------------

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


@frozen(kw_only=True)
class Window:
    """Whose changes of which time; `until` is exclusive and fixed when they are shown."""

    agent: str
    since: datetime
    until: datetime


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
            run = UndoRun(self._console.tools, dry_run=True, by=self._console.agent)
            ahead = await self._carry_out(window, run, LOOK_SECONDS)
        return await self._console.show(
            "undo.html",
            path=SECTION,
            agent_id=agent,
            spans=SPANS,
            span=span or "hour",
            since=request.args.get("since", "")[:60],
            ahead=ahead,
            most=MOST_LISTED,
            format_time=format_time,
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
        done = await self._carry_out(window, run, RUN_SECONDS)
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
        return await self._console.show(
            "undone.html", path=SECTION, done=done, most=MOST_LISTED, format_time=format_time
        )

    def _window(self, agent: str, span: str, since: str) -> Window | None:
        now = self._console.parts.clock()
        if span not in SPANS:
            return None
        start = now - timedelta(hours=1)
        if span == "today":
            start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        try:
            start = parse_time(since[:60].strip()) if span == "custom" else start
            return Window(agent=agent, since=start, until=now)
        except ValueError as problem:
            raise Refused(
                "Give the time since when the changes go, in UTC, as 2026-01-31T12:00. Nothing was changed."
            ) from problem

    async def _carry_out(self, window: Window, run: UndoRun, seconds: float) -> Report:
        """Carry the steps out for so long; at least one."""
        try:
            steps = await plan_undo(
                self._console.tools, window.agent, window.since, window.until, most_notes=MOST_NOTES
            )
        except UndoFailed as failure:
            raise Refused(f"Nothing was changed. {failure}", 409) from failure
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
