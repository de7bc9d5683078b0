"""A scripted day of six agents and a person, played in seconds on a clock that runs through nine hours.

Everything goes through the tools, as agents do it; the person edits a file. `lithos demo --stay` serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field

from lithos.app import Server
from lithos.app.stores import utc_now
from lithos.cli.demo.notes import NOTES, DemoNote
from lithos.cli.session import CommandFailed
from lithos.core.events import NOTE_UPDATED
from lithos.services.tasks.event_stream import EventFilter

AGENTS: Final = {
    "planner": "cuts the work into tasks",
    "scout": "finds out and writes down",
    "builder": "writes the code",
    "reviewer": "checks what others found",
    "ops": "runs it",
    "scribe": "keeps the notes readable",
}
#: The one whose changes are there to be undone.
INTERN: Final = "intern"
LENGTH: Final = timedelta(hours=9)
#: Minutes of the last part of the day, whose claims still run.
LAST_PART: Final = 75
#: Seconds for the server to notice an edit of a file.
PATIENCE: Final = 20.0


class DayClock:
    """A clock that stands still until it is moved, and runs as usual once the day is over."""

    def __init__(self) -> None:
        self._now: datetime | None = utc_now() - LENGTH

    def __call__(self) -> datetime:
        """The time of day."""
        return self._now or utc_now()

    def pass_by(self, minutes: float) -> None:
        """Let time pass, never beyond the real one."""
        if self._now is not None:
            self._now = min(utc_now(), self._now + timedelta(minutes=minutes))

    def reach(self, minutes: float) -> None:
        """Have it be so many minutes before the real time, unless it is later already."""
        if self._now is not None:
            self._now = max(self._now, utc_now() - timedelta(minutes=minutes))

    def finish(self) -> None:
        """From now on it is what time it is."""
        self._now = None


@define
class Day:
    """Plays the day on a running server; `folder` is where its notes lie."""

    server: Server
    clock: DayClock
    folder: Path
    ids: dict[str, str] = field(factory=dict)
    tasks: dict[str, str] = field(factory=dict)

    async def play(self) -> None:
        """The whole day. Raises `CommandFailed` where a call is refused."""
        for agent, duty in AGENTS.items():
            await self.call(
                "lithos_agent_register",
                id=agent,
                name=agent.capitalize(),
                type="demo",
                metadata={"duty": duty},
            )
        await self._plan()
        for note in NOTES[:9]:
            await self._write(note)
        await self._morning()
        for note in NOTES[9:]:
            await self._write(note)
        await self._noon()
        await self._edit_by_hand()
        await self._afternoon()
        await self._mislead()
        self.clock.finish()

    async def call(self, tool: str, /, minutes: float = 3, **arguments: Any) -> dict[str, Any]:
        """A call of a tool, some minutes after the one before; without None. Raises `CommandFailed`."""
        self.clock.pass_by(minutes)
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = await self.server.tools.call(tool, given)
        if answer is None or answer.get("status") == "error":
            raise CommandFailed(f"The scripted day stopped at {tool}: {(answer or {}).get('message')}")
        return dict(answer)

    # -- parts of the day ----------------------------------------------------------------------------

    async def _plan(self) -> None:
        epic = await self._create("Travellers find the next crossing", task_type="epic")
        work = {"parent_task_id": epic}
        await self._create("Collect harbour names", tags=["data"], **work)
        await self._create("Import the winter timetable", tags=["data"], **work)
        names, winter = self.tasks["Collect harbour names"], self.tasks["Import the winter timetable"]
        await self._create("Find harbours despite typos", tags=["search"], depends_on=[names], **work)
        await self._create("Load test the search", tags=["search"], depends_on=[names, winter], **work)
        await self._create(
            "Legal agrees to the map tiles",
            task_type="gate",
            metadata={"gate_type": "human", "project": "ferries"},
        )
        gate = self.tasks["Legal agrees to the map tiles"]
        await self._create("Show delays on the map", tags=["delays"], depends_on=[gate], **work)
        await self._create("Fit the delay model again", tags=["delays"], **work)
        await self._create("Write the runbook of the import", tags=["runbook"], depends_on=[winter], **work)
        await self._create("Tell travellers what changed", tags=["weekly"], **work)

    async def _morning(self) -> None:
        await self._claim("scout", "Collect harbour names")
        asked = await self._retrieve("scout", "which harbours have two names", "Collect harbour names")
        await self._read("scout", "Harbour names")
        await self._find(
            "scout", "Collect harbour names", "61 of 214 harbours have an older name.", "Harbour names"
        )
        await self._complete("scout", "Collect harbour names", asked, cited=["Harbour names"])
        await self._claim("builder", "Import the winter timetable")
        await self._read("builder", "Winter timetable")
        asked = await self._retrieve(
            "builder", "why is the timetable import slow", "Import the winter timetable"
        )
        await self._find(
            "builder", "Import the winter timetable", "Batches of 500 rows make it 13 times as fast.",
            "Import measurements",
        )  # fmt: skip
        await self._edit("builder", "Import measurements", "The whole import now takes **2.8 s**.")
        await self._complete(
            "builder", "Import the winter timetable", asked, cited=["Import measurements", "Winter timetable"]
        )

    async def _noon(self) -> None:
        await self._claim("reviewer", "Load test the search")
        await self.call("lithos_search", query="searches a second p95", agent_id="reviewer")
        await self._find(
            "reviewer", "Load test the search", "p95 88 ms at 600 searches a second.", "Load test"
        )
        asked = await self._retrieve("reviewer", "how fast must the search answer", "Load test the search")
        await self._complete(
            "reviewer", "Load test the search", asked, cited=["Timetable search", "Load test"]
        )
        why = {"why": "The values it was measured with were copies for three weeks."}
        await self._relate("Delay model", "Wind stations", "contradicts", "reviewer", why)
        await self._relate("Delays on the map", "Map tiles: licence", "depends_on", "planner", None)
        await self.call(
            "lithos_write", title="Runbook: import by hand", path="runbooks", agent="ops", tags=["runbook"],
            content="The shell script is gone. Use [[Runbook: timetable import]].", note_type="summary",
        )  # fmt: skip
        await self._supersede("Runbook: timetable import", "Import, old way")
        await self._claim("builder", "Fit the delay model again")
        await self._read("builder", "Delay training set")
        await self._retrieve("builder", "error of the delay model", "Fit the delay model again")
        await self._find(
            "builder", "Fit the delay model again", "Mean error 3.1 minutes.", "Delay model, second fit"
        )

    async def _edit_by_hand(self) -> None:
        """A person corrects a note in an editor; the server notices by itself."""
        self.clock.pass_by(25)
        entry = self.server.catalogue.get(self.ids["Glossary"])
        if entry is None:
            raise CommandFailed("The scripted day lost its glossary.")
        path = trio.Path(self.folder / entry.path)
        text = await path.read_text(encoding="utf-8")
        head = str(self.server.coordinator.head)
        noticed = await self.server.streams.open(head, EventFilter.of([NOTE_UPDATED], []))
        await path.write_text(
            text.rstrip() + "\n\n**Slack tide**\n: when line 12 is on time.\n", encoding="utf-8"
        )
        with trio.fail_after(PATIENCE):
            await noticed.receive()
        noticed.close()

    async def _afternoon(self) -> None:
        self.clock.reach(LAST_PART)
        await self._claim("ops", "Write the runbook of the import", minutes=180)
        asked = await self._retrieve("ops", "steps of a timetable import", "Write the runbook of the import")
        await self._read("ops", "Runbook: timetable import")
        await self._edit(
            "ops", "Runbook: timetable import", "Measured: the swap takes 40 ms, nobody notices it."
        )
        await self._find(
            "ops",
            "Write the runbook of the import",
            "The runbook was followed once.",
            "Runbook: timetable import",
        )
        await self._claim("scribe", "Tell travellers what changed", minutes=180)
        await self._read("scribe", "Weekly: what changed for travellers")
        await self._retrieve("scribe", "what is new for travellers this week", "Tell travellers what changed")
        await self._claim("reviewer", "Find harbours despite typos", minutes=180)
        await self._retrieve("reviewer", "misspelt harbour names", "Find harbours despite typos")
        await self.call(
            "lithos_impact", id=self.ids["Wind stations"], action="quarantine", agent="reviewer",
            open_tasks=True,
            reason="Ytre Holme sent copies of its last good value.",
        )  # fmt: skip
        assert asked

    async def _mislead(self) -> None:
        """An agent that was let loose too early: three changes that should be taken back."""
        for title, text in (
            ("Timetable search", "It need not be fast."),
            ("Harbour names", "Langøy and Langoy are two harbours."),
        ):
            await self._edit(INTERN, title, text)
        await self.call(
            "lithos_write", title="Everything is fine", content="No problems were found.", agent=INTERN
        )

    # -- single steps --------------------------------------------------------------------------------

    async def _write(self, note: DemoNote) -> None:
        sources = [self.ids[title] for title in note.sources]
        answer = await self.call(
            "lithos_write",
            minutes=6,
            title=note.title,
            content=note.content,
            agent=note.author,
            path=note.folder,
            tags=list(note.tags),
            note_type=note.note_type,
            **({"derived_from_ids": sources} if sources else {}),
            **({"ttl_hours": note.ttl_hours} if note.ttl_hours else {}),
        )
        self.ids[note.title] = answer["id"]

    async def _edit(self, agent: str, title: str, addition: str) -> None:
        await self.call(
            "lithos_note_edit", minutes=7, id=self.ids[title], agent=agent,
            op="append", text=f"\n{addition}\n",
        )  # fmt: skip

    async def _supersede(self, newer: str, older: str) -> None:
        """Settle a contradiction so that the newer note supersedes the older one."""
        edge = await self._relate(newer, older, "contradicts", "ops", {"why": "the script was removed"})
        await self.call(
            "lithos_conflict_resolve", edge_id=edge, resolution="superseded", resolver="ops",
            winner_id=self.ids[newer],
        )  # fmt: skip

    async def _read(self, agent: str, title: str) -> None:
        await self.call("lithos_read", minutes=2, id=self.ids[title], agent_id=agent)

    async def _relate(
        self, start: str, end: str, kind: str, agent: str, evidence: Mapping[str, str] | None
    ) -> str:
        answer = await self.call(
            "lithos_edge_upsert", from_id=self.ids[start], to_id=self.ids[end], type=kind, weight=0.8,
            namespace="default", provenance_actor=agent, provenance_type="asserted",
            evidence=None if evidence is None else dict(evidence),
        )  # fmt: skip
        return str(answer["edge_id"])

    async def _create(self, title: str, **more: Any) -> str:
        more.setdefault("metadata", {"project": "ferries"})
        answer = await self.call("lithos_task_create", minutes=1, title=title, agent="planner", **more)
        self.tasks[title] = answer["task_id"]
        return str(answer["task_id"])

    async def _claim(self, agent: str, title: str, minutes: int = 60) -> None:
        task = self.tasks[title]
        await self.call("lithos_task_claim", task_id=task, aspect="work", agent=agent, ttl_minutes=minutes)

    async def _retrieve(self, agent: str, query: str, title: str) -> str:
        answer = await self.call(
            "lithos_retrieve", minutes=2, query=query, agent_id=agent, task_id=self.tasks[title], limit=6
        )
        return str(answer["receipt_id"])

    async def _find(self, agent: str, title: str, summary: str, note: str) -> None:
        note_id = self.ids.get(note)
        await self.call(
            "lithos_finding_post", minutes=5, task_id=self.tasks[title], agent=agent, summary=summary,
            knowledge_id=note_id,
        )  # fmt: skip

    async def _complete(self, agent: str, title: str, receipt: str, cited: list[str]) -> None:
        await self.call(
            "lithos_task_complete", minutes=4, task_id=self.tasks[title], agent=agent, outcome="Done.",
            receipt_id=receipt, cited_nodes=[self.ids[note] for note in cited if note in self.ids],
        )  # fmt: skip
