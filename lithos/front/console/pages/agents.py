"""`/console/agents`: who works here, and what one agent read, searched, wrote, claimed and cited."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final
from urllib.parse import urlencode

from attrs import frozen
from quart import Blueprint, request

from lithos.core.tasks.model import Agent, Claim
from lithos.core.times import format_time, parse_time
from lithos.front.console.console import Console, Refused
from lithos.front.console.formats import as_json
from lithos.services.tasks.timeline import KINDS, TASKS, WRITES, Timeline, TimelineEntry

#: Agents of a page, and entries of a timeline.
ROWS: Final = 100
#: Characters of an agent's metadata that are shown.
LONGEST_METADATA: Final = 4_000
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


@frozen
class AgentPages:
    """The pages about agents."""

    _console: Console

    async def agents(self) -> Any:
        """Agents, those seen last first, with what they hold and did in the last day."""
        parts = self._console.parts
        kind = request.args.get("type", "").strip()[:1_000] or None
        found = parts.agents.list_agents(kind, None)
        offset = _offset(len(found))
        shown = found[offset : offset + ROWS]
        held = await self._claims()
        recent = await parts.timelines.activity(parts.clock() - RECENT)
        return await self._console.show(
            "agents.html",
            rows=[
                {"agent": one, "claims": held.get(one.id, ()), "recent": recent.get(one.id, {})}
                for one in shown
            ],
            titles=await parts.board.titles(
                [claim.task_id for one in shown for claim in held.get(one.id, ())[:2]]
            ),
            total=len(found),
            limit=ROWS,
            offset=offset,
            kind=kind,
            kinds=_kinds(parts.agents.list_agents(None, None)),
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
        before = _moment(request.args.get("before", ""))
        timeline = await parts.timelines.page(agent, before, ROWS, (view,) if view else kinds)
        if known is None and not timeline.entries and before is None and not view:
            raise Refused("No agent of this name has been here. Look for it among all agents.", 404)
        claims = (await self._claims()).get(agent, [])
        titles = await parts.board.titles(
            [*(claim.task_id for claim in claims), *_tasks_of(timeline.entries)]
        )
        return await self._console.show(
            "one_agent.html",
            id=agent,
            known=known,
            claims=claims,
            titles=titles,
            metadata=_metadata(known),
            days=self._days(timeline, await parts.timelines.titles(_notes_of(timeline.entries))),
            timeline=timeline,
            before=before,
            view=view,
            views=[(name, _address(key, before)) for name, key in VIEWS if not key or key in kinds],
            hidden=hidden,
            here=next(name for name, key in VIEWS if key == view),
            older=None if timeline.next_before is None else format_time(timeline.next_before),
        )

    async def _claims(self) -> dict[str, list[Claim]]:
        """The running claims by agent."""
        found: dict[str, list[Claim]] = {}
        for held in await self._console.parts.board.claims():
            found.setdefault(held.claim.agent, []).append(held.claim)
        return found

    def _days(self, timeline: Timeline, titles: Mapping[str, str]) -> list[tuple[str, list[dict[str, Any]]]]:
        """The entries by day; a change ahead of which nothing was read since the one before says so."""
        writes = [one for one in timeline.entries if one.version is not None]
        same = {
            later.at
            for later, earlier in pairwise(writes)
            if later.before and (later.before, later.asked) == (earlier.before, earlier.asked)
        }
        rows = [(_day_of(one), self._row(one, titles, is_same=one.at in same)) for one in timeline.entries]
        return [(day, [row for _, row in some]) for day, some in groupby(rows, key=itemgetter(0))]

    def _row(self, entry: TimelineEntry, titles: Mapping[str, str], *, is_same: bool) -> dict[str, Any]:
        """An entry as the template shows it; `titles` are those of deleted notes."""
        payload = {} if entry.event is None else entry.event.payload
        cited, misled = (
            [self._note(note, titles) for note in _ids(payload.get(key))[:MOST_CITED]]
            for key in ("cited_nodes", "misleading_nodes")
        )
        return {
            "entry": entry,
            "time": entry.at.astimezone(UTC).strftime("%H:%M:%S"),
            "exact": entry.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC"),
            "since": format_time(entry.at),
            "notes": [self._note(note, titles) for note in entry.notes],
            "read_before": [self._note(note, titles) for note in entry.before],
            "is_same": is_same,
            "payload": payload,
            "cited": cited,
            "misled": misled,
        }

    def _note(self, note_id: str, titles: Mapping[str, str]) -> tuple[str, str]:
        entry = self._console.parts.catalogue.get(note_id)
        return note_id, entry.note.title if entry is not None else titles.get(note_id, note_id)


def _day_of(entry: TimelineEntry) -> str:
    return entry.at.astimezone(UTC).strftime("%A, %-d %B %Y")


def _notes_of(entries: Sequence[TimelineEntry]) -> list[str]:
    return [note for one in entries for note in (*one.notes, *one.before)]


def _tasks_of(entries: Sequence[TimelineEntry]) -> list[str]:
    found = [one.event.payload.get("task_id") for one in entries if one.event is not None]
    asked = [one.receipt.task_id for one in entries if one.receipt is not None]
    return [each for each in (*found, *asked) if isinstance(each, str)]


def _ids(text: object) -> list[str]:
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return []
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _kinds(agents: Iterable[Agent]) -> list[str]:
    return sorted({one.type for one in agents if one.type})[:50]


def _metadata(agent: Agent | None) -> str:
    if agent is None or not agent.metadata:
        return ""
    return as_json(dict(agent.metadata), LONGEST_METADATA)


def _address(view: str, before: datetime | None) -> str:
    chosen = {"show": view, "before": format_time(before) if before else ""}
    return "?" + urlencode({name: value for name, value in chosen.items() if value})


def _moment(text: str) -> datetime | None:
    """A time of the address; None where there is none. Raises `Refused`."""
    if not text.strip():
        return None
    try:
        return parse_time(text[:60].strip())
    except ValueError as problem:
        raise Refused("This is no time. Give it as 2026-01-31T12:00:00Z.") from problem


def _offset(total: int) -> int:
    text = request.args.get("offset", "0")
    return min(int(text), max(total - 1, 0)) if text.isdecimal() and len(text) <= 9 else 0
