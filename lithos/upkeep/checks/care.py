"""Background note checks that run on request, and care tasks for the issues that the checks find.

A run works in short slices on the event loop and pauses between the slices. Texts, vectors and names are read
in a low-priority thread. Other callers therefore never wait for a run.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Final, TypeVar

import trio
from attrs import define, field, frozen

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import BackgroundThread, Blocking
from lithos.kernel.parts import Clock
from lithos.kernel.values.findings import Issue, IssueGroup, IssueReport, NamedNote, checks_of, load_checks
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.files.files import NoteFiles
from lithos.notes.model.note import WarningKind
from lithos.notes.service.texts import NoteTexts
from lithos.search.indexing.semantic import SemanticBackend
from lithos.tasks.model.task_commands import CreateTask
from lithos.tasks.service.coordination import Coordination, TaskFilter
from lithos.upkeep.settings import CareConfig

T = TypeVar("T")
R = TypeVar("R")

#: Number of rows that one call of the background thread handles.
AT_ONCE: Final = 20
#: Seconds of one slice on the event loop, and seconds of the pause after each slice.
SLICE, PAUSE = 0.001, 0.004
#: Maximum age of a report: `AGE` seconds, or `AGE_TIMES` times the duration of its run if that is longer.
AGE, AGE_TIMES = 10.0, 20.0
#: Seconds that `lately` waits for the first report.
PATIENCE: Final = 0.05
#: Metadata key that stores the check name of a care task.
METADATA_KEY: Final = "care"


def named_of(entry: Entry) -> NamedNote:
    """Return the id, title and path of a note for an issue."""
    return NamedNote(entry.note.id, entry.note.title, entry.path)


def about(detail: str, *notes: NamedNote, link: str | None = None, likely: NamedNote | None = None) -> Issue:
    """Return an issue about one or more notes."""
    return Issue(notes[0].path if notes else "", detail, notes, link, likely)


@frozen
class CareSubjects:
    """The parts of a server that note checks need."""

    catalogue: Catalogue
    lineage: Lineage
    semantic: SemanticBackend
    files: NoteFiles
    texts: NoteTexts
    journal: CoordinationStore
    reading: JournalThread
    opening: Opening
    clock: Clock
    settings: CareConfig


@define(eq=False)
class CareRun:
    """The objects that all checks of one run share."""

    parts: CareSubjects
    now: datetime
    thread: Blocking
    #: Failed checks, and the reason for each failure.
    troubles: list[str] = field(factory=list, init=False)  # bounded: the checks of one look
    _warned: Mapping[WarningKind, Sequence[Issue]] | None = field(default=None, init=False)

    @property
    def catalogue(self) -> Catalogue:
        """The note catalogue of the server."""
        return self.parts.catalogue

    def entries(self) -> AsyncIterator[Entry]:
        """Yield all notes in slices with pauses. Notes that are deleted during the run are left out."""
        return entries_of(self.catalogue)

    async def active(self) -> AsyncIterator[Entry]:
        """Yield all notes that are neither archived nor quarantined."""
        async for entry in self.entries():
            if entry.note.status == "active":
                yield entry

    async def warned(self) -> Mapping[WarningKind, Sequence[Issue]]:
        """Return the warnings about all notes, grouped by kind.

        A note has at most one issue of each kind. Contradictions are the exception: each pair of notes has
        its own issue.
        """
        if self._warned is None:
            found: dict[WarningKind, list[Issue]] = defaultdict(list)
            async for entry in self.entries():
                for kind, issue in self._warnings_of(entry):
                    found[kind].append(issue)
            self._warned = found
        return self._warned

    def _warnings_of(self, entry: Entry) -> Iterable[tuple[WarningKind, Issue]]:
        own, told = entry.note.id, set[WarningKind]()
        for warning in self.parts.lineage.warnings(own, self.now):
            is_pair = warning.kind == "contradicted"
            if warning.kind in told or (is_pair and warning.id < own):
                continue
            other = self.catalogue.get(warning.id) if warning.id != own else None
            told |= set() if is_pair else {warning.kind}
            notes = (named_of(entry), *(() if other is None else (named_of(other),)))
            yield warning.kind, about(warning.reason, *notes)

    async def aside(
        self, call: Callable[[Sequence[T]], list[R]], rows: Sequence[T], at_once: int = AT_ONCE
    ) -> list[R]:
        """Pass `rows` in batches to a blocking call in the background thread.

        Return all results in one list.
        """
        found: list[R] = []
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            found += await self.thread.run(partial(call, some))
        return found


async def entries_of(catalogue: Catalogue) -> AsyncIterator[Entry]:
    """Yield the notes of a catalogue in slices. Notes that are deleted meanwhile are left out."""
    async for note_id in in_slices([entry.note.id for entry in catalogue]):
        if (entry := catalogue.get(note_id)) is not None:
            yield entry


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items in slices of `SLICE` seconds, with pauses between the slices."""
    until = perf_counter() + SLICE
    for each in items:
        yield each
        if perf_counter() >= until:
            await trio.sleep(PAUSE)
            until = perf_counter() + SLICE


@define(eq=False)
class CareRuns:
    """Background runs of the checks of one view. A requested run continues even if its caller disconnects.

    A report lists at most `most` issues for each check.
    """

    _view: str
    _most: int
    _parts: CareSubjects
    _thread: Blocking = field(factory=lambda: BackgroundThread("care"))
    #: The most recent report.
    last: IssueReport | None = field(default=None, init=False)
    _good_until: float = field(default=0.0, init=False)
    _wanted: trio.Event = field(factory=trio.Event, init=False)
    #: Set when the requested or current run has ended.
    _ended: trio.Event = field(factory=trio.Event, init=False)

    async def run(self) -> None:
        """Run the checks each time a caller requests a report. Ends only when cancelled."""
        await self._wanted.wait()
        await self._thread.run(load_checks)
        while True:
            await self._wanted.wait()
            began = trio.current_time()
            self.last = await self._check()
            taken = trio.current_time() - began
            self._good_until = trio.current_time() + max(AGE, taken * AGE_TIMES)
            ended, self._ended, self._wanted = self._ended, trio.Event(), trio.Event()
            ended.set()

    async def report(self, patience: float) -> IssueReport | None:
        """Request a run, or join the current run, and return the report.

        Return None if the run takes longer than `patience` seconds.
        """
        ended = self._ended
        self._wanted.set()
        with trio.move_on_after(patience):
            await ended.wait()
            return self.last
        return None

    async def lately(self) -> IssueReport | None:
        """Return the last report, or None if no run has finished yet.

        If the report is too old, request a new run.
        """
        if self.last is None:
            return await self.report(PATIENCE)
        if trio.current_time() >= self._good_until:
            self._wanted.set()
        return self.last

    async def _check(self) -> IssueReport:
        parts = self._parts
        await parts.opening.wait_known()
        await parts.lineage.settle()
        while not parts.catalogue.graph.settle(1):
            await trio.lowlevel.checkpoint()
        subject = CareRun(parts, parts.clock(), self._thread)
        groups: dict[str, IssueGroup] = {}
        for each in checks_of(self._view):
            total, issues = 0, list[Issue]()
            async for issue in each.look(subject):
                total += 1
                if total <= self._most:
                    issues.append(issue)
            if total:
                groups[each.name] = IssueGroup(each, total, issues)
        return IssueReport(subject.now, len(parts.catalogue), groups, subject.troubles)


class Care(CareRuns):
    """The check runs of the console page Care."""


class OverviewWarnings(CareRuns):
    """The check runs for the warnings on the console overview."""


@frozen
class OpenedTask:
    """The care task of a check. `is_new` is False if the task already existed."""

    group: str
    task_id: str
    is_new: bool


@frozen
class CareTasks:
    """A service that opens tasks for the issues that checks found."""

    _coordination: Coordination
    _turn: trio.Lock = field(factory=trio.Lock, init=False)

    async def open(self, report: IssueReport, agent: str) -> list[OpenedTask]:
        """Return one task for each group of issues.

        A task is created unless the group already has an open task, or a task about the same issues exists.
        """
        async with self._turn:
            return [await self._open(group, agent) for group in report.groups.values()]

    async def _open(self, group: IssueGroup, agent: str) -> OpenedTask:
        check, digest = group.check, _digest(group.issues)
        mine = await self._coordination.list_tasks(
            TaskFilter(metadata_match={METADATA_KEY: check.name}), with_claims=False
        )
        for view in mine:
            if view.task.status == "open" or view.task.metadata.get("rows") == digest:
                return OpenedTask(check.name, view.task.id, is_new=False)
        lines = [f"{check.way_out} `lithos care` has all {group.total:,}.", ""]
        lines += [
            f"* {', '.join(note.path for note in each.notes[:5])}: {each.detail}"
            for each in group.issues[:50]
        ]
        command = CreateTask(
            title=f"Care for notes: {check.title.lower()}",
            description="\n".join(lines)[:8_000],
            tags=("care",),
            metadata={METADATA_KEY: check.name, "rows": digest},
            agent=agent,
        )
        return OpenedTask(check.name, await self._coordination.run(command), is_new=True)


def _digest(issues: Sequence[Issue]) -> str:
    told = "\n".join(sorted(f"{[note.id for note in each.notes]} {each.link}" for each in issues))
    return hashlib.sha256(told.encode()).hexdigest()[:16]
