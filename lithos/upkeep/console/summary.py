"""The state of the server that the overview shows.

All visitors of a console share one summary, which is renewed after a short time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import trio
from attrs import frozen

from lithos.events.model.agents import Agent
from lithos.events.reading.agents import Agents
from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.findings import IssueReport
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import RESOLUTIONS
from lithos.server.console.console import Console, PageRefused
from lithos.server.console.formats import plural
from lithos.server.console.labels import OWN_AGENTS, in_words
from lithos.server.service_state import ServerState
from lithos.tasks.service.running_claims import Claims, Holding, Holdings
from lithos.upkeep.checks.care import OverviewWarnings
from lithos.upkeep.checks.samples import ActivitySample, Samples
from lithos.upkeep.checks.worth import WorthCounter
from lithos.upkeep.model.worth import Worth

T = TypeVar("T")

#: Maximum age of a shared summary in seconds, and maximum seconds to wait for one part of the summary.
AGE, PATIENCE = 3.0, 3.0
#: Maximum number of claims to read. The template shows only some of them.
SHOWN_CLAIMS: Final = 60
#: Period since an agent was last seen. Within this period, the agent counts as active.
ACTIVE: Final = timedelta(hours=1)
#: Checks whose note counts the overview shows, each with a label and the page that lists the notes.
COUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "quarantined": ("quarantined", "/console/notes?status=quarantined"),
    "suspect": ("suspect", "/console/notes?status=suspect"),
    "duplicated": ("with a second file", "/console/#duplicated"),
    "conflict_copies": ("with a conflict copy", "/console/#conflict_copies"),
    "conflict_markers": ("with a git conflict", "/console/#conflict_markers"),
    "expired": ("expired", "/console/notes?status=expired"),
}


def counted(report: IssueReport) -> tuple[tuple[str, str], ...]:
    """Return the number of notes for each warning in words, and the page that lists these notes."""
    return tuple(
        (plural(report.groups[name].total, words, words), address)
        for name, (words, address) in COUNTED.items()
        if name in report.groups
    )


@frozen
class HealthSummary:
    """The health of the server. As in `/health`, `status` is the worst status of all components."""

    status: str
    sentence: str
    components: Mapping[str, Mapping[str, Any]]

    def details(self, component: str) -> str:
        """Return the details of a component without its status, in words."""
        return ", ".join(
            f"{name.replace('_', ' ')} {f'{value:,}' if isinstance(value, int) else in_words(value)}"
            for name, value in self.components[component].items()
            if name not in ("status", "error") and value not in (None, "", 0)
        )


@frozen
class ActiveAgent:
    """An agent that was seen recently or has a claim. `seen` is None for an unknown agent."""

    id: str
    seen: datetime | None
    holds: tuple[Holding, ...]


@frozen(kw_only=True)
class Summary:
    """The parts of the overview page next to the feed.

    If a part could not be read, it is None, and `untold` contains the reason.
    """

    health: HealthSummary
    numbers: Mapping[str, Any] | None
    agents: tuple[ActiveAgent, ...]
    held: Holdings | None
    conflicts: Sequence[Mapping[str, Any]] | None
    concerns: IssueReport | None
    samples: Sequence[ActivitySample]
    #: Number of notes with unreadable frontmatter and of files that cannot be served. Additional files of a
    #: note do not count.
    unreadable: int
    #: Changes that wait for a person: number, singular name, plural name, and the page that lists them.
    waiting: tuple[tuple[int, str, str, str], ...]
    #: The usage of notes in the last few days.
    worth: Worth | None
    untold: tuple[str, ...]

    @property
    def knowledge(self) -> tuple[tuple[str, str], ...]:
        """Notes and changes that wait for a person: number and kind in words, and the page with a list."""
        rows = [
            *self.waiting,
            (len(self.conflicts or ()), "conflict", "conflicts", "/console/#conflicts"),
            (self.unreadable, "unreadable", "unreadable", "/console/notes?status=broken"),
        ]
        told = [(plural(count, one, many), address) for count, one, many, address in rows if count]
        warned = counted(self.concerns) if self.concerns is not None else ()
        place = len(told) - bool(self.unreadable)
        return (*told[:place], *warned, *told[place:])


def shared_summary(console: Console) -> Shared[Summary]:
    """Return the shared summary. It is computed at most once in `AGE` seconds."""
    return Shared(partial(_sum_up, console), AGE)


async def _sum_up(console: Console) -> Summary:
    parts, counts, untold = console.parts, console.waiting(), list[str]()
    now = parts.clock()
    _, report = await parts.get(ServerState).report()
    numbers = await attempt("the numbers", parts.get(ServerState).stats(), untold)
    held = await attempt("claims", parts.get(Claims).holdings(now, SHOWN_CLAIMS), untold)
    edges = await attempt("conflicts", console.call("lithos_edge_list", type="contradicts"), untold)
    seen = parts.get(Agents).list_agents(None, now - ACTIVE)
    return Summary(
        health=health_of(report),
        numbers=numbers,
        agents=_join(seen, held),
        held=held,
        conflicts=None if edges is None else _open_conflicts(parts.get(Catalogue), edges["edges"]),
        concerns=await parts.get(OverviewWarnings).lately(),
        samples=parts.get(Samples).taken,
        unreadable=_unreadable_in(parts.get(Catalogue)),
        waiting=tuple(
            (counts.get(each.address, 0), each.one, each.many, each.address) for each in console.pages.waiting
        ),
        worth=await attempt("the usage of notes", parts.get(WorthCounter).shared.latest(), untold),
        untold=tuple(untold),
    )


def _open_conflicts(catalogue: Catalogue, edges: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the unsettled contradictions, newest first, with the titles of both notes."""
    found: list[Mapping[str, Any]] = []
    for edge in reversed(edges):
        ends = catalogue.get(edge["from_id"]), catalogue.get(edge["to_id"])
        if edge.get("conflict_state") not in RESOLUTIONS and None not in ends:
            titles = [entry.note.title for entry in ends if entry is not None]
            found.append({**edge, "from_title": titles[0], "to_title": titles[1]})
    return found


def _unreadable_in(catalogue: Catalogue) -> int:
    return len(catalogue.broken) + sum(each.note_id is None for each in catalogue.skipped.values())


async def attempt(what: str, asked: Awaitable[T], untold: list[str]) -> T | None:
    """Return the result of `asked`. If it fails or times out, add the reason to `untold` and return None."""
    reason = f"no answer within {PATIENCE:g} s"
    with trio.move_on_after(PATIENCE):
        try:
            return await asked
        except (LithosError, PageRefused, DatabaseFailed) as failure:
            reason = str(failure)
    untold.append(f"{what[0].upper()}{what[1:]} could not be read: {reason}")
    return None


def _join(seen: Sequence[Agent], held: Holdings | None) -> tuple[ActiveAgent, ...]:
    """Return agents with claims first, then other active agents.

    Agents with claims and other active agents are each sorted by most recent activity.
    """
    holds: dict[str, list[Holding]] = {}
    for holding in held.shown if held is not None else ():
        holds.setdefault(holding.claim.agent, []).append(holding)
    times = {agent.id: agent.last_seen_at for agent in seen}
    ids = [agent for agent in times if agent in holds]
    ids += [agent for agent in holds if agent not in times]
    # Lithos's own agents, which for example perform undos, appear only in the feed.
    ids += [agent for agent in times if agent not in holds and agent not in OWN_AGENTS]
    return tuple(ActiveAgent(each, times.get(each), tuple(holds.get(each, ()))) for each in ids)


def health_of(report: Mapping[str, Any]) -> HealthSummary:
    """Return a summary of a `/health` response in words."""
    components = report["components"]
    statuses = [part["status"] for part in components.values()]
    worst = next((status for status in ("unavailable", "degraded", "warming") if status in statuses), "ok")
    number = statuses.count("unavailable") + statuses.count("degraded")
    if worst == "ok":
        sentence = "The server is healthy."
    elif worst == "warming":
        sentence = "The server is still starting. All functions are already available."
    else:
        sentence = "1 component needs attention." if number == 1 else f"{number} components need attention."
    return HealthSummary(worst, sentence, components)
