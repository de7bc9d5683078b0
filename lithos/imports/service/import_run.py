"""One import run: reads a source in a thread, sends batches of records to the writer, and reports.

The run is part of the command. The notes are written in the same process, or by the server that owns the data
directory. Memory is needed for two batches, whatever the size of the source. The report counts all results
and lists a limited number of rows that need attention.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, Protocol

import trio
from attrs import asdict, define, field, frozen

from lithos.events.model.imported_rows import Carried
from lithos.imports.files.attachments import copy_attachment
from lithos.imports.model.importing import (
    Degraded,
    ImportedAttachment,
    Item,
    Malformed,
    Record,
    RowBatch,
    Source,
)
from lithos.imports.service.dead_links import DeadLink
from lithos.imports.service.records import (
    CHANGED_HERE,
    CREATED,
    DELETED_HERE,
    DUPLICATE,
    EDGE_MISSING,
    EDGE_RESULTS,
    FAILED,
    MALFORMED,
    PROPOSED,
    RESULTS,
    UNCHANGED,
    UPDATED,
    ImportResult,
    ImportSession,
    Options,
    SourceEdge,
    excess_of,
    size_of,
)
from lithos.kernel.values.graphemes import beginning
from lithos.notes.files.lookup import list_attachments
from lithos.notes.links.links import FileNames

#: Maximum number of rows to list for each kind of result. Further rows are only counted.
MOST_LISTED: Final = 100
#: Maximum number of characters in a position, path or reason of a row.
LONGEST: Final = 500

COPIED: Final = "copied"
EQUAL: Final = "unchanged"
CONFLICT: Final = "conflict"
ATTACHMENT_RESULTS: Final = (COPIED, EQUAL, CONFLICT, FAILED)
#: Kinds of listed rows, in addition to the results of records.
NOTICE: Final = "notice"
ATTACHMENT: Final = "attachment"
EDGE: Final = "edge"
DEAD_LINK: Final = "dead_link"
ROW: Final = "row"
#: Result of table rows that were not imported. The list shows the reasons.
KEPT: Final = "left"
TABLE_RESULTS: Final = (CREATED, UPDATED, UNCHANGED, KEPT)
_LISTED: Final = (
    CREATED, UPDATED, PROPOSED, CHANGED_HERE, DELETED_HERE, DUPLICATE, MALFORMED, FAILED, NOTICE, ATTACHMENT,
    EDGE, DEAD_LINK, ROW,
)  # fmt: skip


@frozen
class ReportedRecord:
    """One row of a list: the position in the source, the note here, and the reason."""

    what: str
    position: str
    path: str | None = None
    reason: str = ""


@define(eq=False)  # bounded: fixed kinds and results
class ImportReport:
    """The results of an import or of a dry run."""

    source: str
    options: Options
    results: Counter[str] = field(factory=Counter)
    attachments: Counter[str] = field(factory=Counter)
    edges: Counter[str] = field(factory=Counter)
    #: Numbers of links, tags and dates in notes that were created, updated or unchanged.
    carried: Counter[str] = field(factory=Counter)
    #: Number of rows, by table and by result.
    tables: dict[str, Counter[str]] = field(factory=dict)
    listed: dict[str, list[ReportedRecord]] = field(factory=dict)
    counted: Counter[str] = field(factory=Counter)

    def add(self, outcome: ImportResult, record: Record | None = None) -> None:
        """Count a record and add it to the list of its outcome."""
        self.results[outcome.result] += 1
        if outcome.result != UNCHANGED:
            self.tell(outcome.result, outcome.position, outcome.reason, outcome.path)
        for notice in outcome.notices:
            self.tell(NOTICE, outcome.position, notice, outcome.path)
        if record is not None and outcome.result in (CREATED, UPDATED, UNCHANGED):
            self.carried["links"] += record.links
            self.carried["tags"] += len(record.tags)
            self.carried["dates"] += (record.created_at is not None) + (record.updated_at is not None)

    def add_rows(self, table: str, carried: Carried) -> None:
        """Count the results for the rows of a table. List the rows that were not imported."""
        counts = self.tables.setdefault(table, Counter())
        counts[CREATED] += carried.created
        counts[UPDATED] += carried.updated
        counts[UNCHANGED] += carried.same
        counts[KEPT] += len(carried.kept)
        for row in carried.kept:
            self.tell(ROW, f"{table} {row.key}", row.reason)

    def tell(self, what: str, position: str, reason: str, path: str | None = None) -> None:
        """Add a row to the list `what`. If the list has `MOST_LISTED` rows, the row is only counted."""
        self.counted[what] += 1
        rows = self.listed.setdefault(what, [])
        if len(rows) < MOST_LISTED:
            rows.append(
                ReportedRecord(what, position[:LONGEST], path and path[:LONGEST], beginning(reason, LONGEST))
            )

    @property
    def note_results(self) -> tuple[str, ...]:
        """Return the possible outcomes for notes. "proposed" is only included if there are such notes."""
        return (*RESULTS, PROPOSED) if self.results[PROPOSED] else RESULTS

    @property
    def has_failures(self) -> bool:
        """Return whether a readable item could not be written."""
        return bool(self.results[FAILED] or self.attachments[FAILED])

    def to_json(self) -> dict[str, Any]:
        """Return the report in the form that `--json` prints."""
        options = self.options
        return {
            "source": self.source,
            "kind": options.kind,
            "into": options.into,
            "agent": options.agent,
            "dry_run": options.dry_run,
            "notes": {result.replace(" ", "_"): self.results[result] for result in self.note_results},
            "notices": self.counted[NOTICE],
            "dead_links": self.counted[DEAD_LINK],
            "carried": {name: self.carried[name] for name in ("links", "tags", "dates")},
            "attachments": {result: self.attachments[result] for result in ATTACHMENT_RESULTS},
            "edges": {result.replace(" ", "_"): self.edges[result] for result in EDGE_RESULTS},
            "tables": {
                name: {result: counts[result] for result in TABLE_RESULTS}
                for name, counts in self.tables.items()
            },
            "rows": [
                asdict(row) | {"what": what.replace(" ", "_"), "reason": row.reason or None}
                for what in _LISTED
                for row in self.listed.get(what, ())
            ],
            "unlisted": {
                what.replace(" ", "_"): number - len(self.listed[what])
                for what, number in self.counted.items()
                if number > len(self.listed[what])
            },
        }


#: Limits of a batch: maximum number of records, and maximum number of bytes. A single larger record is
#: allowed.
BATCH: Final = 64
BATCH_BYTES: Final = 1_000_000
#: Maximum number of batches in progress. One batch is planned while another batch is written.
AHEAD: Final = 2
#: Number of edges to send in one request.
EDGES: Final = 100


class ImportWriter(Protocol):
    """Port: decides how to handle records, and writes them.

    The implementation is `imports.service.importing`, in this process or in the server.
    """

    async def begin(self, options: Options) -> ImportSession:
        """Begin an import."""

    async def take(self, session_id: str, records: Sequence[Record]) -> list[ImportResult]:
        """Write a batch of records."""

    async def connect(self, session_id: str, edges: Sequence[SourceEdge]) -> list[str]:
        """Create or update typed edges."""

    async def dead_links(self, session_id: str, start: int) -> list[DeadLink]:
        """Return the next dead links, starting with number `start`."""

    async def carry(self, session_id: str, batch: RowBatch) -> Carried:
        """Import rows of a table and return the results."""

    async def end(self, session_id: str) -> None:
        """End the import."""


#: Function that receives the number of finished items.
ImportProgress = Callable[[int], None]


@define(eq=False)
class ImportRun:
    """One run of an import from a source."""

    source: Source
    path: Path
    writer: ImportWriter
    options: Options
    told: ImportProgress
    report: ImportReport = field(init=False)
    _done: int = 0
    #: The names of the attachments in this import.
    _files: FileNames = field(factory=FileNames, init=False)

    def __attrs_post_init__(self) -> None:
        self.report = ImportReport(str(self.path), self.options)

    async def run(self) -> ImportReport:
        """Import the complete source. Raises `ImportRefused`, `OSError` and errors of the writer."""
        begun = await self.writer.begin(self.options)
        send, receive = trio.open_memory_channel[list[Item]](0)
        with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read, send)
                before, ahead = trio.Event(), trio.CapacityLimiter(AHEAD)
                before.set()
                async with receive:
                    async for items in receive:
                        after = trio.Event()
                        await ahead.acquire_on_behalf_of(after)
                        await nursery.start(self._take, begun, items, spool, before, after, ahead)
                        before = after
            await self._connect(begun, spool)
        await self._tell_dead_links(begun)
        await self.writer.end(begun.session)
        return self.report

    async def _read(self, send: trio.MemorySendChannel[list[Item]]) -> None:
        items = self.source.read(self.path)
        async with send:
            while batch := await trio.to_thread.run_sync(_next_batch, items):
                await send.send(batch)

    async def _take(
        self,
        begun: ImportSession,
        items: Sequence[Item],
        spool: IO[str],
        before: trio.Event,
        after: trio.Event,
        ahead: trio.CapacityLimiter,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Send a batch to the writer. Its results are reported after the results of the previous batch."""
        records: list[Record] = []
        for item in items:
            if not isinstance(item, Record):
                continue
            too_large = excess_of(item, begun.content_limit)  # else a server refuses the whole batch
            if too_large:
                self.report.add(ImportResult(item.position, MALFORMED, reason=too_large))
            else:
                records.append(item)
        task_status.started()  # the next batch may start now
        outcomes = await self.writer.take(begun.session, records) if records else []
        await before.wait()
        for record, outcome in zip(records, outcomes, strict=True):
            self.report.add(outcome, record)
            for edge in record.edges:  # spooled until all notes exist, since edges may not fit into memory
                spool.write(json.dumps([record.id, edge.relation, edge.target, record.position]) + "\n")
        for item in items:
            await self._take_other(begun, item)
        self._done += len(items)
        self.told(self._done)
        after.set()
        ahead.release_on_behalf_of(after)

    async def _take_other(self, begun: ImportSession, item: Item) -> None:
        """Handle an item that is not a record."""
        if isinstance(item, Malformed):
            self.report.add(ImportResult(item.position, MALFORMED, reason=item.reason))
        elif isinstance(item, RowBatch):
            carried = await self.writer.carry(begun.session, item)
            if not item.is_look:
                self.report.add_rows(item.table.name, carried)
        elif isinstance(item, Degraded):
            self.report.tell(NOTICE, item.position, item.reason)
        elif isinstance(item, ImportedAttachment):
            await self._copy(begun, item)

    async def _copy(self, begun: ImportSession, item: ImportedAttachment) -> None:
        self._files.add(item.path)
        path = f"{self.options.into}/{item.path}" if self.options.into else item.path
        copy = partial(copy_attachment, begun.notes_folder, path, item.file, dry_run=self.options.dry_run)
        result, reason = await trio.to_thread.run_sync(copy)
        self.report.attachments[result] += 1
        if reason:
            self.report.tell(ATTACHMENT, item.path, reason)

    async def _tell_dead_links(self, begun: ImportSession) -> None:
        """Report the links that lead neither to a note nor to an imported or existing file."""
        start, there = 0, FileNames()
        while found := await self.writer.dead_links(begun.session, start):
            if not start:
                there = await trio.to_thread.run_sync(
                    lambda: FileNames(list_attachments(str(begun.notes_folder)))
                )
            start += len(found)
            for each in found:
                if each.target not in self._files and each.target not in there:
                    self.report.tell(DEAD_LINK, each.position, f"{each.written} leads to no note")

    async def _connect(self, begun: ImportSession, spool: IO[str]) -> None:
        spool.seek(0)
        while rows := [json.loads(line) for _, line in zip(range(EDGES), spool, strict=False)]:
            edges = [SourceEdge(*row[:3]) for row in rows]
            results = await self.writer.connect(begun.session, edges)
            for edge, row, result in zip(edges, rows, results, strict=True):
                self.report.edges[result] += 1
                if result == EDGE_MISSING:
                    described = f"{edge.relation} leads to {edge.target[:200]!r}, which was not imported"
                    self.report.tell(EDGE, row[3], described)


def _next_batch(items: Iterator[Item]) -> list[Item]:
    """Return the next items in source order, or an empty list at the end of the source. Blocks."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        alone = BATCH_BYTES if isinstance(item, RowBatch) else 500  # a batch of rows is sent separately
        size += size_of(item) if isinstance(item, Record) else alone
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            break
    return batch
