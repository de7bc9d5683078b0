"""`/console/undo`: undo selected changes of an agent, after a preview."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import trio
from attrs import define, field, frozen
from quart import Blueprint, request

from lithos.history.model.undo import UndoStep
from lithos.history.service.history import NoteHistory, Span
from lithos.history.service.undo import (
    LEFT,
    RESULTS,
    UNDONE,
    UndoFailed,
    UndoResult,
    UndoRun,
    changes_of,
    plan_changes,
)
from lithos.kernel.values.limits import Newest
from lithos.kernel.values.times import format_time, parse_time
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.versions import HistoryFailed, VersionRow
from lithos.server.console.console import Console, Form, PageRefused, given, keep
from lithos.server.console.formats import plural, whole

#: The navigation entry under which these pages are listed.
SECTION: Final = "/console/agents"
#: Maximum number of changes per page and per undo. A page with large notes shows fewer changes. The command
#: line has no limit.
MOST_CHANGES: Final = 200
FEWER_CHANGES: Final = (200, 100, 50)
#: Pause between two changes of an agent after which a new session begins.
PAUSE: Final = timedelta(minutes=30)
#: Maximum seconds for the preview of an undo, and for a request that undoes changes.
LOOK_SECONDS: Final = 5.0
RUN_SECONDS: Final = 20.0
#: Maximum number of rows in a list of results.
MOST_LISTED: Final = 100
#: Maximum number of undo reports that are stored for their pages.
MOST_REPORTS: Final = 50
SPANS: Final[Mapping[str, str]] = {
    "": "its newest changes", "hour": "the last hour", "today": "today (UTC)", "custom": "since a time",
}  # fmt: skip
#: Value of a checkbox: the note id, and the first and last version of the changes.
_BOX: Final = re.compile(r"(?s)(.+):(\d{1,18})-(\d{1,18})")
Box = tuple[str, int, int]


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the undo form and the page with the report of an undo."""
    pages = UndoPages(console)
    console.asking(app, "/undo", pages.ask, pages.undo, needs="admin")
    app.get("/undo/<report>")(console.only("admin", pages.report))


@frozen(kw_only=True)
class Choice:
    """Consecutive changes of one note, selected by a single checkbox.

    `ahead` is the outcome for the note if all newer changes were undone as well. It is None if it was not
    computed in time.
    """

    step: UndoStep
    ahead: UndoResult | None
    is_chosen: bool

    @property
    def can_be_chosen(self) -> bool:
        """Whether the choice has a change to undo."""
        return self.ahead is None or self.ahead.result != UNDONE

    @property
    def span(self) -> Span:
        """The range from the version before the changes to their last version."""
        former = self.step.former
        return self.step.last.note_id, 0 if former is None else former.version, self.step.last.version

    @property
    def box(self) -> str:
        """The checkbox value that the form submits."""
        return _box_of(self.step)


@frozen(kw_only=True)
class ChangeSession:
    """Changes of an agent without long pauses between them, newest first."""

    began: datetime
    ended: datetime
    choices: Sequence[Choice]


@frozen(kw_only=True)
class UndoReport:
    """The report of an undo. `left` has the checkboxes that were not processed in time."""

    agent: str
    by: str
    window: Mapping[str, str]
    results: Sequence[UndoResult]
    left: Sequence[str]

    @property
    def by_result(self) -> dict[str, list[UndoResult]]:
        """Return the results grouped by outcome."""
        return {name: [one for one in self.results if one.result == name] for name in RESULTS}


@define(eq=False)
class UndoPages:
    """The console pages that undo changes."""

    _console: Console
    _reports: Newest[str, UndoReport] = field(factory=lambda: Newest(MOST_REPORTS))

    async def ask(self) -> Any:
        """Show the changes of an agent by session. Each change has a checkbox and a preview.

        The page preselects the changes of `note` (or of its `version`) if it is given. Otherwise it
        preselects the changes in the requested time span, or else those of the newest session.
        """
        agent, note_id = given("agent"), given("note") or None
        note_id = note_id and await self._console.note_id(note_id)
        if not agent:
            raise PageRefused(
                "No agent is selected. Choose the agent whose changes you want to undo on the page Agents.",
                404,
            )
        span, since = request.args.get("span", ""), request.args.get("since", "")[:60]
        span = span if span in SPANS else ""
        now = self._console.parts.clock()
        try:
            start = _start_of(span, since, now)
            changes = await changes_of(self._console.tools, agent, start, note_id, MOST_CHANGES + 1)
            sessions = await self._look(changes[:MOST_CHANGES], _chosen_of(span, note_id))
        except UndoFailed as failure:
            raise PageRefused(f"Nothing was changed. {failure}", 409) from failure
        return await self._console.show_within(
            "undo.html",
            "most",
            FEWER_CHANGES,
            path=SECTION,
            agent_id=agent,
            spans=SPANS,
            span=span,
            since=since,
            note_id=note_id,
            note_title=note_id and (self._console.parts.get(Catalogue).title(note_id) or note_id),
            sessions=sessions,
            lines=await self._lines(sessions),
            is_cut=len(changes) > MOST_CHANGES,
            window=_window_of(min((session.began for session in sessions), default=now), now),
        )

    async def undo(self, form: Form) -> str:
        """Undo the selected changes in the name of the person at the console."""
        agent = form.get("agent", "")
        boxes = _read_boxes(form.getlist("change"))
        try:
            window = [parse_time(form.get(name, "")) for name in ("since", "until")]
        except ValueError as problem:
            raise PageRefused(
                "This form has no time. Open the page of the agent and start again."
            ) from problem
        if not agent:
            raise PageRefused(
                "This form has no agent whose changes can be undone. Open the page Agents and start again."
            )
        if not boxes:
            raise PageRefused(
                "No change is selected, so nothing was changed. Go back and tick the changes to undo."
            )
        try:
            changes = await changes_of(self._console.tools, agent, window[0])
            wanted = _of_boxes(
                [*boxes, *_read_boxes(form.getlist("along"))], [row for row in changes if row.at < window[1]]
            )
            steps = await plan_changes(self._console.tools, wanted)
        except UndoFailed as failure:
            raise PageRefused(f"Nothing was changed. {failure}", 409) from failure
        run, results, count = UndoRun(self._console.tools, by=self._console.agent), list[UndoResult](), 0
        end = trio.current_time() + RUN_SECONDS
        try:
            for count, step in enumerate(steps, 1):  # noqa: B007 - how far it got
                results += await run.carry_out(step)
                if trio.current_time() > end:
                    break
        except UndoFailed as failure:
            done = plural(count - 1, "note")
            raise PageRefused(
                f"The undo ended early, after {done}: {failure} Open the page again to see what is left.",
                409,
            ) from failure
        left = [_box_of(step) for step in steps[count:]]
        report = UndoReport(agent=agent, by=run.by, window=_window_of(*window), results=results, left=left)
        return f"/console/undo/{keep(self._reports, report)}"

    async def report(self, report: str) -> Any:
        """Show the report of an undo."""
        done = self._reports.get(report)
        if done is None:
            raise PageRefused(
                "The report of this undo is no longer kept. The history of each note shows the "
                "undo: see your own changes on the page Agents.",
                404,
            )
        return await self._console.show("undone.html", path=SECTION, done=done, most=MOST_LISTED)

    async def _look(self, changes: Sequence[VersionRow], chosen: _Chosen) -> list[ChangeSession]:
        """Return the sessions of these changes. Sessions get previews until the time limit is reached."""
        run = UndoRun(self._console.tools, dry_run=True, by=self._console.agent)
        end, found = trio.current_time() + LOOK_SECONDS, list[ChangeSession]()
        for rows in _sessions_of(changes):
            choices: list[Choice] = []
            for step in await plan_changes(self._console.tools, rows):
                has_time = not (found or choices) or trio.current_time() <= end
                results = await run.carry_out(step) if has_time else [UndoResult(step, "")]
                choices += [
                    Choice(
                        step=each.step,
                        ahead=each if has_time else None,
                        is_chosen=each.result not in (UNDONE, LEFT) and chosen.has(each.step, not found),
                    )
                    for each in results
                ]
            found.append(ChangeSession(began=rows[-1].at, ended=rows[0].at, choices=choices))
        return found

    async def _lines(self, sessions: Iterable[ChangeSession]) -> Mapping[Span, tuple[int, int]]:
        """Return the numbers of added and removed lines for each range of versions.

        The result has no counts if the history cannot be read.
        """
        spans = [choice.span for session in sessions for choice in session.choices]
        try:
            return await self._console.parts.get(NoteHistory).line_counts(spans)
        except HistoryFailed:
            return {}


@frozen
class _Chosen:
    """The preselected changes: all changes, those of a version, or those of the newest session."""

    takes_all: bool
    version: int | None

    def has(self, step: UndoStep, is_newest: bool) -> bool:
        """Return whether the step is preselected.

        `is_newest` is True for steps of the newest session.
        """
        if self.version is not None:
            return any(row.version == self.version for row in step.changes)
        return self.takes_all or is_newest


def _chosen_of(span: str, note_id: str | None) -> _Chosen:
    return _Chosen(bool(span), whole(request.args.get("version"), 18) if note_id else None)


def _start_of(span: str, since: str, now: datetime) -> datetime | None:
    """Return the start of the requested time span. Return None for all times. Raises `PageRefused`."""
    if span == "hour":
        return now - timedelta(hours=1)
    if span == "today":
        return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        return parse_time(since.strip()) if span == "custom" else None
    except ValueError as problem:
        raise PageRefused(
            "Give the time of the first change to undo, in UTC, as 2026-01-31T12:00. Nothing was changed."
        ) from problem


def _sessions_of(changes: Collection[VersionRow]) -> list[list[VersionRow]]:
    """Split changes (newest first) into sessions at the agent's long pauses."""
    found: list[list[VersionRow]] = []
    for row in changes:
        if found and abs(found[-1][-1].at - row.at) <= PAUSE:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _window_of(since: datetime, until: datetime) -> dict[str, str]:
    """Return the form fields for the time span. They exclude changes made after the preview from the undo."""
    return {"since": format_time(since), "until": format_time(until)}


def _of_boxes(boxes: Iterable[Box], changes: Iterable[VersionRow]) -> list[VersionRow]:
    """Return the changes that the checkboxes select, in their original order."""
    wanted: dict[str, list[range]] = {}
    for note_id, first, last in boxes:
        wanted.setdefault(note_id, []).append(range(first, last + 1))
    return [row for row in changes if any(row.version in each for each in wanted.get(row.note_id, ()))]


def _box_of(step: UndoStep) -> str:
    versions = [row.version for row in step.changes]
    return f"{step.last.note_id}:{min(versions)}-{max(versions)}"


def _read_boxes(texts: Iterable[str]) -> list[Box]:
    found = filter(None, map(_BOX.fullmatch, texts))
    return [(one[1], int(one[2]), int(one[3])) for one in found]
