"""`/console/agents`: the list of agents, and the activity of one agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, Final

from attrs import frozen
from quart import Blueprint, request

from lithos.events.reading.agents import Agents
from lithos.history.service.history import NoteHistory
from lithos.kernel.values.times import format_time, parse_time
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.server.console.console import Console, PageRefused, given, given_offset
from lithos.server.console.formats import as_json, query_with, told_ids
from lithos.tasks.model.task import Claim
from lithos.tasks.service.board import BoardReading
from lithos.upkeep.service.timeline import KINDS, TASKS, WRITES, TimelineEntry, Timelines

#: Maximum number of agents on a page, and of entries in a timeline.
ROWS: Final = 100
#: Maximum number of characters of an agent's metadata to show.
LONGEST_METADATA: Final = 4_000
#: Maximum number of agent types to offer as a filter of the list.
MOST_TYPES: Final = 50
#: Period of the activity counts next to each agent.
RECENT: Final = timedelta(hours=24)
#: Maximum number of cited notes to list for a task completion in the timeline.
MOST_CITED: Final = 10
VIEWS: Final = (
    ("All", ""),
    ("Reads", "read"),
    ("Searches", "search"),
    ("Writes", "write"),
    ("Tasks", "task"),
)
#: Timeline sources that need no `admin` scope. All other sources are in the audit log, which needs `admin`.
PUBLIC: Final = (WRITES, TASKS)


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page of all agents and the page of one agent."""
    pages = AgentPages(console)
    app.get("/agents")(pages.agents)
    app.get("/agents/<whole:agent>")(pages.agent)


@frozen
class AgentPages:
    """The console pages about agents."""

    _console: Console

    async def agents(self) -> Any:
        """Show all agents, most recently seen first, with their claims and their activity of the last day.

        Archived agents are listed in a folded part of the first page.
        """
        parts = self._console.parts
        kind = given("type") or None
        known = parts.get(Agents)
        everyone = known.list_agents(kind, None, with_archived=True)
        found = [one for one in everyone if one.archived_at is None]
        archived = [one for one in everyone if one.archived_at is not None]
        offset = given_offset(len(found))
        shown = found[offset : offset + ROWS]
        held = await self._claims()
        return await self._console.show(
            "agents.html",
            rows=shown,
            archived=archived[:ROWS] if offset == 0 else (),
            archived_total=len(archived),
            held=held,
            recent=await parts.get(Timelines).activity(parts.clock() - RECENT),
            titles=await parts.get(BoardReading).titles(
                [claim.task_id for one in shown for claim in held.get(one.id, ())[:2]]
            ),
            total=len(found),
            limit=ROWS,
            offset=offset,
            kind=kind,
            **await self._console.panels("agents"),
            kinds=sorted({one.type for one in known.list_agents(None, None) if one.type})[:MOST_TYPES],
        )

    async def agent(self, agent: str) -> Any:
        """Show one agent with its timeline."""
        parts = self._console.parts
        known = parts.get(Agents).get(agent)
        view = request.args.get("show", "")
        if view and view not in KINDS:
            raise PageRefused(f"Unknown timeline filter. Choose one of {', '.join(KINDS)}, or show all.", 404)
        hidden = "" if self._console.sees_all_of(agent) else self._console.lacks("admin")
        kinds = PUBLIC if hidden else KINDS
        if view and view not in kinds:
            raise PageRefused(f"Reads and searches of other agents are not shown. {hidden}", 403)
        before = _moment(given("before", 60))
        since = "" if before is None else format_time(before)
        timeline = await parts.get(Timelines).page(agent, before, ROWS, (view,) if view else kinds)
        entries = timeline.entries
        if known is None and not entries and before is None and not view:
            raise PageRefused("No agent has this name. Choose an agent from the list of all agents.", 404)
        claims = (await self._claims()).get(agent, [])
        cited = {one: self._console.parts.get(Catalogue).title(one) or one for one in _cited_in(entries)}
        return await self._console.show(
            "one_agent.html",
            id=agent,
            known=known,
            claims=claims,
            task_titles=await parts.get(BoardReading).titles(
                [*(one.task_id for one in claims), *_tasks_of(entries)]
            ),
            titles=cited | await self._console.parts.get(NoteHistory).titles(_notes_of(entries)),
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
        """Return the unexpired claims, grouped by agent."""
        found: dict[str, list[Claim]] = {}
        for held in await self._console.parts.get(BoardReading).claims():
            found.setdefault(held.claim.agent, []).append(held.claim)
        return found


def _idle(entries: Sequence[TimelineEntry]) -> set[datetime]:
    """Return the times of changes that the agent made without reading anything since its previous change."""
    writes = [one for one in entries if one.version is not None]
    return {
        later.at
        for later, earlier in pairwise(writes)
        if later.before and (later.before, later.asked) == (earlier.before, earlier.asked)
    }


def _notes_of(entries: Sequence[TimelineEntry]) -> list[str]:
    return [note for one in entries for note in (*one.notes, *one.before)]


def _cited_in(entries: Sequence[TimelineEntry]) -> Iterator[str]:
    """Yield the note ids that the events contain."""
    for event in (one.event for one in entries if one.event is not None):
        yield from (
            str(event.payload[key]) for key in ("from_id", "to_id", "knowledge_id") if event.payload.get(key)
        )
        for key in ("cited_nodes", "misleading_nodes"):
            yield from (told_ids(event.payload.get(key)) or [])[:MOST_CITED]


def _tasks_of(entries: Sequence[TimelineEntry]) -> list[str]:
    found = [one.event.payload.get("task_id") for one in entries if one.event is not None]
    asked = [one.receipt.task_id for one in entries if one.receipt is not None]
    return [each for each in (*found, *asked) if isinstance(each, str)]


def _moment(text: str) -> datetime | None:
    """Parse a time in the page address. Return None if the address has no time. Raises `PageRefused`."""
    try:
        return parse_time(text) if text else None
    except ValueError as problem:
        raise PageRefused("This is not a valid time. Use the format 2026-01-31T12:00:00Z.") from problem
