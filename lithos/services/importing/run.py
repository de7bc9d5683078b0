"""One import: reads a source in a thread, sends its records in batches to who writes them, and reports.

It runs in the command; the notes are written in the same process or by the server that owns the directory.
A source of any size needs the memory of two batches.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Final, Protocol

import trio
from attrs import define, field

from lithos.core.importing import Attachment, Carried, Degraded, Item, Malformed, Record, RowBatch, Source
from lithos.services.importing.records import (
    MALFORMED,
    Begun,
    Options,
    Outcome,
    SourceEdge,
    excess_of,
    size_of,
)
from lithos.services.importing.report import Report
from lithos.stores.importing.attachments import copy_attachment

#: Records of one batch, and bytes, of which one record may have more.
BATCH: Final = 64
BATCH_BYTES: Final = 1_000_000
#: Batches on their way at once: one is planned while the other is written.
AHEAD: Final = 2
#: Edges sent at once.
EDGES: Final = 100


class Writer(Protocol):
    """Who decides and writes: `services.importing.importing`, here or in the server."""

    async def begin(self, options: Options) -> Begun:
        """Begin an import."""
        ...

    async def take(self, session_id: str, records: Sequence[Record]) -> list[Outcome]:
        """Write a batch."""
        ...

    async def connect(self, session_id: str, edges: Sequence[SourceEdge]) -> list[str]:
        """Upsert typed edges."""
        ...

    async def carry(self, session_id: str, batch: RowBatch) -> Carried:
        """Merge rows of a table."""
        ...

    async def end(self, session_id: str) -> None:
        """End the import."""
        ...


#: How many items are done.
Told = Callable[[int], None]


@define(eq=False)
class ImportRun:
    """One run over a source."""

    source: Source
    path: Path
    writer: Writer
    options: Options
    told: Told
    report: Report = field(init=False)
    _done: int = 0

    def __attrs_post_init__(self) -> None:
        self.report = Report(str(self.path), self.options)

    async def run(self) -> Report:
        """Import everything. Raises `ImportRefused`, `OSError` and what the writer raises."""
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
        await self.writer.end(begun.session)
        return self.report

    async def _read(self, send: trio.MemorySendChannel[list[Item]]) -> None:
        items = self.source.read(self.path)
        async with send:
            while batch := await trio.to_thread.run_sync(_next_batch, items):
                await send.send(batch)

    async def _take(
        self,
        begun: Begun,
        items: Sequence[Item],
        spool: IO[str],
        before: trio.Event,
        after: trio.Event,
        ahead: trio.CapacityLimiter,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Have a batch written, and report it after the one before it."""
        records: list[Record] = []
        for item in items:
            if not isinstance(item, Record):
                continue
            too_large = excess_of(item, begun.content_limit)  # a server would refuse the whole batch
            if too_large:
                self.report.add(Outcome(item.position, MALFORMED, reason=too_large))
            else:
                records.append(item)
        task_status.started()  # the next one comes after this one
        outcomes = await self.writer.take(begun.session, records) if records else []
        await before.wait()
        for record, outcome in zip(records, outcomes, strict=True):
            self.report.add(outcome, record)
            for edge in record.edges:  # until all notes exist; there may be more than fit into memory
                spool.write(json.dumps([record.id, edge.relation, edge.target, record.position]) + "\n")
        for item in items:
            await self._take_other(begun, item)
        self._done += len(items)
        self.told(self._done)
        after.set()
        ahead.release_on_behalf_of(after)

    async def _take_other(self, begun: Begun, item: Item) -> None:
        """What is no record."""
        if isinstance(item, Malformed):
            self.report.add_malformed(item.position, item.reason)
        elif isinstance(item, RowBatch):
            carried = await self.writer.carry(begun.session, item)
            if not item.is_look:
                self.report.add_rows(item.table.name, carried)
        elif isinstance(item, Degraded):
            self.report.add_notice(item.position, item.reason)
        elif isinstance(item, Attachment):
            await self._copy(begun, item)

    async def _copy(self, begun: Begun, item: Attachment) -> None:
        path = f"{self.options.into}/{item.path}" if self.options.into else item.path
        copy = partial(copy_attachment, begun.notes_folder, path, item.file, dry_run=self.options.dry_run)
        result, reason = await trio.to_thread.run_sync(copy)
        self.report.add_attachment(item.path, result, reason)

    async def _connect(self, begun: Begun, spool: IO[str]) -> None:
        spool.seek(0)
        while rows := [json.loads(line) for _, line in zip(range(EDGES), spool, strict=False)]:
            edges = [SourceEdge(*row[:3]) for row in rows]
            results = await self.writer.connect(begun.session, edges)
            for edge, row, result in zip(edges, rows, results, strict=True):
                described = f"{edge.relation} leads to {edge.target[:200]!r}, which was not imported"
                self.report.add_edge(row[3], result, described)


def _size_of(item: Item) -> int:
    """A batch of rows is sent by itself."""
    return BATCH_BYTES if isinstance(item, RowBatch) else 500


def _next_batch(items: Iterator[Item]) -> list[Item]:
    """The next items, in the order of the source; empty at its end. Blocks."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item) if isinstance(item, Record) else _size_of(item)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            break
    return batch
