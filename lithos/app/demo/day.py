"""Scripted day of eight agents and a person. It covers nine hours of a simulated clock and takes seconds.

Six agents do the work, the intern writes changes that should be undone, and the trainee may only propose
changes (`SCOPES`). The agents call tools. The person edits a file, and a second machine leaves a conflict
copy of this file. `lithos demo --stay` serves the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field

from lithos.app.demo.notes import NOTES, DemoNote
from lithos.app.server import Server
from lithos.events.journal.coordinator import Coordinator
from lithos.events.reading.event_stream import EventFilter, EventStreams
from lithos.kernel.parts import utc_now
from lithos.kernel.values.events import NOTE_CONFLICT_COPY, NOTE_UPDATED
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.scopes import EVERYTHING
from lithos.server.command.session import CommandFailed

AGENTS: Final = {
    "planner": "cuts the work into tasks",
    "scout": "finds out and writes down",
    "builder": "writes the code",
    "reviewer": "checks what others found",
    "ops": "runs it",
    "scribe": "keeps the notes readable",
}
#: Agent whose changes the demo user should undo.
INTERN: Final = "intern"
#: Agent whose changes require a person's approval.
TRAINEE: Final = "trainee"
#: Permissions of agents in the demo folder.
SCOPES: Final = {TRAINEE: {"propose": EVERYTHING}}
LENGTH: Final = timedelta(hours=9)
#: Length of the last part of the day in minutes. Claims from this part are still active when the day ends.
LAST_PART: Final = 75
#: Maximum seconds to wait until the server detects a file edit.
PATIENCE: Final = 20.0


#: Task titles that the script uses several times.
_NAMES, _WINTER, _LOAD = "Collect harbour names", "Import the winter timetable", "Load test the search"
_TYPOS, _FIT = "Find harbours despite typos", "Fit the delay model again"
_LEGAL, _RUNBOOK = "Legal agrees to the map tiles", "Write the runbook of the import"
_TELL = "Announce the changes to travellers"


class DayClock:
    """Clock that advances only when a method sets it. After the demo day it follows the real time."""

    def __init__(self) -> None:
        self._now: datetime | None = utc_now() - LENGTH

    def __call__(self) -> datetime:
        """Return the current time of the demo day."""
        return self._now or utc_now()

    def pass_by(self, minutes: float) -> None:
        """Advance the clock by `minutes`, but not beyond the real time."""
        if self._now is not None:
            self._now = min(utc_now(), self._now + timedelta(minutes=minutes))

    def reach(self, minutes: float) -> None:
        """Set the clock to `minutes` before the real time.

        A clock that is already later does not change.
        """
        if self._now is not None:
            self._now = max(self._now, utc_now() - timedelta(minutes=minutes))

    def finish(self) -> None:
        """Make the clock follow the real time from now on."""
        self._now = None


@define
class Day:
    """Scripted day, played on a running server. `folder` contains the note files."""

    server: Server
    clock: DayClock
    folder: Path
    ids: dict[str, str] = field(factory=dict)
    tasks: dict[str, str] = field(factory=dict)

    async def play(self) -> None:
        """Play the whole day. Raises `CommandFailed` if the server refuses a call."""
        for agent, duty in AGENTS.items():
            name, known = agent.capitalize(), {"duty": duty}
            await self.call("lithos_agent_register", id=agent, name=name, type="demo", metadata=known)
        await self._plan()
        for note in NOTES[:9]:
            await self._write(note)
        await self._morning()
        for note in NOTES[9:]:
            await self._write(note)
        await self._noon()
        await self._edit_by_hand()
        await self._afternoon()
        await self._propose()
        await self._mislead()
        self.clock.finish()

    async def call(self, tool: str, /, minutes: float = 3, **arguments: Any) -> dict[str, Any]:
        """Call a tool `minutes` after the previous call.

        Arguments that are None are left out. Raises `CommandFailed`.
        """
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
        await self._create(_NAMES, tags=["data"], **work)
        await self._create(_WINTER, tags=["data"], **work)
        names, winter = self.tasks[_NAMES], self.tasks[_WINTER]
        await self._create(_TYPOS, tags=["search"], depends_on=[names], **work)
        await self._create(_LOAD, tags=["search"], depends_on=[names, winter], **work)
        await self._create(_LEGAL, task_type="gate", metadata={"gate_type": "human", "project": "ferries"})
        gate = self.tasks[_LEGAL]
        await self._create("Show delays on the map", tags=["delays"], depends_on=[gate], **work)
        await self._create(_FIT, tags=["delays"], **work)
        await self._create(_RUNBOOK, tags=["runbook"], depends_on=[winter], **work)
        await self._create(_TELL, tags=["weekly"], **work)

    async def _morning(self) -> None:
        await self._claim("scout", _NAMES)
        asked = await self._retrieve("scout", "which harbours have two names", _NAMES)
        await self._read("scout", "Harbour names")
        await self._find("scout", _NAMES, "61 of 214 harbours have an older name.", "Harbour names")
        await self._complete("scout", _NAMES, asked, cited=["Harbour names"])
        await self._claim("builder", _WINTER)
        await self._read("builder", "Winter timetable")
        asked = await self._retrieve("builder", "why is the timetable import slow", _WINTER)
        faster = "Batches of 500 rows make it 13 times as fast."
        await self._find("builder", _WINTER, faster, "Import measurements")
        await self._edit("builder", "Import measurements", "The whole import now takes **2.8 s**.")
        await self._complete("builder", _WINTER, asked, cited=["Import measurements", "Winter timetable"])

    async def _noon(self) -> None:
        await self._claim("reviewer", _LOAD)
        await self.call("lithos_search", query="searches a second p95", agent_id="reviewer")
        await self._find("reviewer", _LOAD, "p95 88 ms at 600 searches a second.", "Load test")
        asked = await self._retrieve("reviewer", "how fast must the search answer", _LOAD)
        await self._complete("reviewer", _LOAD, asked, cited=["Timetable search", "Load test"])
        why = {"why": "The values it was measured with were copies for three weeks."}
        await self._relate("Delay model", "Wind stations", "contradicts", "reviewer", why)
        await self._relate("Delays on the map", "Map tiles: licence", "depends_on", "planner", None)
        await self.call(
            "lithos_write", title="Runbook: import by hand", path="runbooks", agent="ops", tags=["runbook"],
            content="The shell script is gone. Use [[Runbook: timetable import]].", note_type="summary",
        )  # fmt: skip
        await self._supersede("Runbook: timetable import", "Import, old way")
        await self._claim("builder", _FIT)
        await self._read("builder", "Delay training set")
        await self._retrieve("builder", "error of the delay model", _FIT)
        await self._find("builder", _FIT, "Mean error 3.1 minutes.", "Delay model, second fit")

    async def _edit_by_hand(self) -> None:
        """Correct a note in an editor, like a person. The server detects the change on its own."""
        self.clock.pass_by(25)
        entry = self.server.get(Catalogue).get(self.ids["Glossary"])
        if entry is None:
            raise CommandFailed("The glossary note of the scripted day is missing.")
        path = trio.Path(self.folder / entry.path)
        text = await path.read_text(encoding="utf-8")
        edited = f"{text.rstrip()}\n\n**Slack tide**\n: when line 12 is on time.\n"
        await self._save(path, edited, NOTE_UPDATED)
        # Simulate a second machine that also changed the note, and a sync program that could not resolve the
        # conflict.
        copy = path.with_name(f"{path.stem}.sync-conflict-{utc_now():%Y%m%d-%H%M%S}-K3Q7ZPA.md")
        other = f"{text.rstrip()}\n\n**Slack tide**\n: the hour in which a small boat can turn.\n"
        await self._save(copy, other.replace("stops at a harbour", "calls at a harbour"), NOTE_CONFLICT_COPY)

    async def _save(self, path: trio.Path, text: str, told_by: str) -> None:
        """Save a file and wait until the server reports the change."""
        head = str(self.server.get(Coordinator).head)
        noticed = await self.server.get(EventStreams).open(head, EventFilter.of([told_by], []))
        await path.write_text(text, encoding="utf-8")
        with trio.fail_after(PATIENCE):
            await noticed.receive()
        noticed.close()

    async def _afternoon(self) -> None:
        self.clock.reach(LAST_PART)
        await self._claim("ops", _RUNBOOK, minutes=180)
        await self._retrieve("ops", "steps of a timetable import", _RUNBOOK)
        await self._read("ops", "Runbook: timetable import")
        measured = "Measured: the swap takes 40 ms, too short to notice."
        await self._edit("ops", "Runbook: timetable import", measured)
        await self._find("ops", _RUNBOOK, "The runbook was followed once.", "Runbook: timetable import")
        await self._claim("scribe", _TELL, minutes=180)
        await self._read("scribe", "Weekly: changes for travellers")
        await self._retrieve("scribe", "news for travellers this week", _TELL)
        await self._claim("reviewer", _TYPOS, minutes=180)
        await self._retrieve("reviewer", "misspelt harbour names", _TYPOS)
        await self.call(
            "lithos_impact", id=self.ids["Wind stations"], action="quarantine", agent="reviewer",
            open_tasks=True, reason="Ytre Holme sent copies of its last good value.",
        )  # fmt: skip

    async def _propose(self) -> None:
        """Propose changes that a person must review.

        Some are good, some doubtful, and some contain invisible characters.
        """
        await self._edit(TRAINEE, "Runbook: timetable import", "Call the harbour office before you begin.")
        hidden = "Refunds are paid by p\u0430y@ferries.example\u200b only."
        await self._edit(TRAINEE, "Opening hours of ticket offices", hidden)
        title, content = "Why line 12 is late", "Line 12 waits for [[Slack tide]] on most Fridays."
        await self.call("lithos_write", title=title, content=content, agent=TRAINEE, path="research")
        place = "archive/import-old-way.md"
        await self.call("lithos_note_move", id=self.ids["Import, old way"], path=place, agent=TRAINEE)

    async def _mislead(self) -> None:
        """Play an agent that got its permissions too early. Its three changes should be undone."""
        await self._edit(INTERN, "Timetable search", "It need not be fast.")
        await self._edit(INTERN, "Harbour names", "Langøy and Langoy are two harbours.")
        title, content = "Everything is fine", "No problems were found."
        await self.call("lithos_write", title=title, content=content, agent=INTERN)

    # -- single steps --------------------------------------------------------------------------------

    async def _write(self, note: DemoNote) -> None:
        answer = await self.call(
            "lithos_write", minutes=6, title=note.title, content=note.content, agent=note.author,
            path=note.folder, tags=list(note.tags), note_type=note.note_type, ttl_hours=note.ttl_hours,
            derived_from_ids=[self.ids[title] for title in note.sources] or None,
        )  # fmt: skip
        self.ids[note.title] = answer["id"]

    async def _edit(self, agent: str, title: str, addition: str) -> None:
        await self.call(
            "lithos_note_edit", minutes=7, id=self.ids[title], agent=agent,
            op="append", text=f"\n{addition}\n",
        )  # fmt: skip

    async def _supersede(self, newer: str, older: str) -> None:
        """Resolve a contradiction: the newer note supersedes the older note."""
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
