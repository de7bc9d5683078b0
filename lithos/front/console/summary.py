"""The state of the server as the overview tells it; all consoles share one for a moment."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import trio
from attrs import frozen

from lithos.core.errors import LithosError
from lithos.core.learning.edges import RESOLUTIONS
from lithos.core.tasks.model import Agent
from lithos.front.console.console import Console, Refused
from lithos.front.console.formats import plural
from lithos.services.notes.concerns import ConcernReport
from lithos.services.tasks.event_stream import Holding, Holdings
from lithos.services.upkeep.samples import Sample
from lithos.stores.sqlite import DatabaseFailed

T = TypeVar("T")

#: Seconds for which a summary is shared, and for one part of it.
AGE, PATIENCE = 3.0, 3.0
#: Claims, agents and conflicts that are shown.
SHOWN_CLAIMS, SHOWN_AGENTS, SHOWN_CONFLICTS = 60, 12, 10
#: How long ago an agent that counts as active was seen.
ACTIVE: Final = timedelta(hours=1)

#: Components of `/health`: their names, and what to do about them where their own text does not say it.
COMPONENTS: Final[Mapping[str, tuple[str, str]]] = {
    "kb_directory": (
        "Folder of the notes",
        "See that the folder is there, that its disk is mounted and not full, and that the server may write "
        "to it; it is tried again by itself.",
    ),
    "knowledge_base": ("Notes", "Run `lithos validate`: it names the files."),
    "search": (
        "Search",
        "Full text or meaning is behind; make room on the disk. If it stays, restart: the start mends it.",
    ),
    "embedding_model": (
        "Embedding model",
        "Search goes by words alone meanwhile. `lithos doctor` says more.",
    ),
    "index": ("Index", ""),
    "watcher": (
        "Outside edits",
        "What other programs change is found at the next start. See the log of the server, and restart it.",
    ),
    "events": (
        "Events",
        "Changes still happen, but are not told. Make room on the disk of the data directory.",
    ),
    "coordination": (
        "Tasks and claims",
        "See the disk of the data directory and the log; if the file is damaged, restore it from a backup.",
    ),
    "memory": ("Memory", ""),
    "history": ("History", ""),
    "ownership": ("Ownership", "Look whether another server uses this data directory, and stop one of them."),
}


@frozen
class ComponentLine:
    """One component: its `status`, what is wrong (`error`) and what to do, and its details in words."""

    key: str
    name: str
    status: str
    error: str
    way_out: str
    details: str


@frozen
class Health:
    """Whether all is well: `status` is the worst of the components.

    `unread` says what of the notes is not served as it should be, though the server is well.
    """

    status: str
    sentence: str
    lines: tuple[ComponentLine, ...]
    unread: tuple[str, ...] = ()

    @property
    def troubles(self) -> tuple[ComponentLine, ...]:
        """The components that are not well."""
        return tuple(line for line in self.lines if line.status in ("degraded", "unavailable"))

    @property
    def warming(self) -> tuple[ComponentLine, ...]:
        """Those that get ready."""
        return tuple(line for line in self.lines if line.status == "warming")


@frozen
class ActiveAgent:
    """An agent that was seen lately or holds something; `seen` is None for one that is not known."""

    id: str
    seen: datetime | None
    holds: tuple[Holding, ...]


@frozen(kw_only=True)
class Summary:
    """What the overview shows beside the feed; None for what could not be told, for which see `untold`."""

    health: Health
    numbers: Mapping[str, Any] | None
    agents: tuple[ActiveAgent, ...]
    agent_count: int
    claim_count: int | None
    conflicts: Sequence[Mapping[str, Any]] | None
    conflict_count: int
    concerns: ConcernReport | None
    samples: Sequence[Sample]
    untold: tuple[str, ...]


class Summaries:
    """Makes the summary at most once in `AGE` seconds, whoever asks."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._making = trio.Lock()
        self._made_at = -AGE
        self._last: Summary | None = None

    async def latest(self) -> Summary:
        """The state now, or as it was a moment ago."""
        async with self._making:
            if self._last is None or trio.current_time() >= self._made_at + AGE:
                self._last = await self._make()
                self._made_at = trio.current_time()
            return self._last

    async def _make(self) -> Summary:
        parts, untold = self._console.parts, list[str]()
        now = parts.clock()
        _, report = await parts.state.report()
        numbers = await _attempt("the numbers", parts.state.stats(), untold)
        held = await _attempt("claims", parts.activity.holdings(now, SHOWN_CLAIMS), untold)
        edges = await _attempt(
            "conflicts", self._console.call("lithos_edge_list", type="contradicts"), untold
        )
        seen = parts.agents.list_agents(None, now - ACTIVE)
        agents = _join(seen, held)
        conflicts = None if edges is None else self._open_conflicts(edges["edges"])
        return Summary(
            health=health_of(report),
            numbers=numbers,
            agents=agents[:SHOWN_AGENTS],
            agent_count=len(agents),
            claim_count=None if held is None else held.total,
            conflicts=None if conflicts is None else conflicts[:SHOWN_CONFLICTS],
            conflict_count=len(conflicts or ()),
            concerns=await parts.concerns.report(),
            samples=parts.samples.taken,
            untold=tuple(untold),
        )

    def _open_conflicts(self, edges: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The unsettled ones, newest first, with the titles of their notes."""
        catalogue = self._console.parts.catalogue
        found: list[Mapping[str, Any]] = []
        for edge in reversed(edges):
            ends = catalogue.get(edge["from_id"]), catalogue.get(edge["to_id"])
            if edge.get("conflict_state") not in RESOLUTIONS and None not in ends:
                titles = [entry.note.title for entry in ends if entry is not None]
                found.append({**edge, "from_title": titles[0], "to_title": titles[1]})
        return found


async def _attempt(what: str, asked: Awaitable[T], untold: list[str]) -> T | None:
    """The result; None, with a reason in `untold`, where a store does not answer."""
    reason = f"no answer within {PATIENCE:g} s"
    with trio.move_on_after(PATIENCE):
        try:
            return await asked
        except (LithosError, Refused, DatabaseFailed) as failure:
            reason = str(failure)
    untold.append(f"{what[0].upper()}{what[1:]} cannot be told now: {reason}")
    return None


def _join(seen: Sequence[Agent], held: Holdings | None) -> tuple[ActiveAgent, ...]:
    """Those who hold something first, each group most recent first."""
    holds: dict[str, list[Holding]] = {}
    for holding in held.shown if held is not None else ():
        holds.setdefault(holding.claim.agent, []).append(holding)
    times = {agent.id: agent.last_seen_at for agent in seen}
    ids = [agent for agent in times if agent in holds]
    ids += [agent for agent in holds if agent not in times]
    ids += [agent for agent in times if agent not in holds]
    return tuple(ActiveAgent(each, times.get(each), tuple(holds.get(each, ()))) for each in ids)


def health_of(report: Mapping[str, Any]) -> Health:
    """The body of `/health` in words."""
    lines = tuple(_line(key, part) for key, part in report["components"].items())
    unread = _unread(report["components"])
    statuses = {line.status for line in lines}
    for status in ("unavailable", "degraded", "warming"):
        if status in statuses:
            number = sum(line.status in ("unavailable", "degraded") for line in lines)
            sentence = "Getting ready; everything can be used meanwhile."
            if status != "warming":
                sentence = "One thing needs you." if number == 1 else f"{number} things need you."
            return Health(status, sentence, lines, unread)
    return Health("ok", "The server is well, not all notes are." if unread else "All is well.", lines, unread)


def _unread(components: Mapping[str, Any]) -> tuple[str, ...]:
    broken = components.get("knowledge_base", {}).get("unreadable", 0)
    skipped = components.get("index", {}).get("skipped_files", 0)
    told = [f"{plural(broken, 'note')} with a frontmatter that cannot be read"] if broken else []
    return (*told, f"{plural(skipped, 'file')} not served as a note") if skipped else tuple(told)


def _line(key: str, part: Mapping[str, Any]) -> ComponentLine:
    name, way_out = COMPONENTS.get(key, (key, ""))
    error = str(part.get("error") or "")
    details = ", ".join(
        f"{label.replace('_', ' ')} {value:,}"
        if isinstance(value, int)
        else f"{label.replace('_', ' ')} {value}"
        for label, value in part.items()
        if label not in ("status", "error") and value not in (None, "", 0)
    )
    return ComponentLine(key, name, part["status"], error, way_out if error else "", details)
