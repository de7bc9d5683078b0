"""The writer: the one actor that changes note files and the catalogue.

It decides a whole batch against the catalogue, writes all files in one thread job (they share the
folder syncs), and passes each durable change on to the indexers and to the publisher. Two requests
that touch the same note, slug, URL or path are never decided together: the later one waits for the
next round, so a refusal always speaks of something that is on disk.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.actors.decisions import keys_of
from lithos.actors.indexer import Indexer, Removal, Upsert
from lithos.actors.kit import Envelope, Inbox, Mailbox, run_batches
from lithos.actors.outside import Outside, OutsideFiles, OutsideRemovals, OutsideRequest, Taken
from lithos.actors.preparation import Preparation, Prepared
from lithos.actors.publisher import Publication, PublisherMailbox
from lithos.actors.requests import Change, DeleteNote, WriteNote, WriteOutcome, WriteRequest
from lithos.core.errors import LithosError, StorageFailed
from lithos.stores.file_trial import try_writing
from lithos.stores.files import (
    FileChanged,
    FileState,
    NoteFiles,
    NotSynced,
    OutsideKnowledge,
    ReadFile,
    Remove,
)
from lithos.telemetry import get_logger

log = get_logger("lithos.writer")

#: A few dozen agents at once; more wait in their own tasks, which is the back-pressure they need.
CAPACITY = 64
#: One batch shares its folder syncs and its journal commit.
BATCH = 32
#: Seconds for a batch: above the publisher's limit, since waiting for a slow index is not a crash.
LIMIT = 1_000.0
#: How often a file may change under a request before the request gives up.
RETRIES = 5

#: The reply to an accepted request: await it for the moment an index has the change and it is journalled.
Accepted = Envelope[Publication, WriteOutcome]
#: Tools send write requests and get `Accepted`; the watcher sends what it saw and gets `Taken`.
WriterMessage = WriteRequest | OutsideRequest
WriterReply = Accepted | Taken
WriterMailbox = Mailbox[WriterMessage, WriterReply]


@attrs.define(eq=False)
class _Job:
    """One request of a batch on its way to a reply."""

    request: WriteRequest
    reply: Accepted | Exception | None = None
    attempts: int = 0
    source: ReadFile | Exception | None = None
    prepared: Prepared | None = None


class Writer:
    """The writer's state and its batches."""

    def __init__(
        self,
        catalogue: Catalogue,
        files: NoteFiles,
        blocking: Blocking,
        indexers: Sequence[Indexer],
        publisher: PublisherMailbox,
        preparation: Preparation,
    ) -> None:
        self.mailbox: WriterMailbox = Mailbox("writer", CAPACITY)
        self._catalogue = catalogue
        self._files = files
        self._blocking = blocking
        self._indexers = indexers
        self._publisher = publisher
        self._preparation = preparation
        self._outside = Outside(catalogue, files, blocking, preparation.clock)
        #: Why the disk refused the last change, until one is carried out.
        self._refusal: str | None = None

    async def trouble(self) -> str | None:
        """Why notes cannot be written; after a refusal it is tried whether they can be by now."""
        if self._refusal is not None:
            try:
                await self._blocking.run(lambda: try_writing(self._files.root))
            except OSError as failure:
                self._refusal = failure.strerror or str(failure)
            else:
                self._refusal = None
        return self._refusal

    async def start(
        self,
        inbox: Inbox[WriterMessage, WriterReply],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve requests until the mailbox closes."""
        task_status.started()
        await run_batches(inbox, self._flush, size=BATCH, limit=LIMIT, stats=self.mailbox.stats)

    async def _flush(self, messages: Sequence[WriterMessage]) -> list[WriterReply | Exception]:
        taken: dict[int, Taken] = {}
        jobs: dict[int, _Job] = {}
        for number, message in enumerate(messages):
            if isinstance(message, OutsideFiles | OutsideRemovals):
                taken[number] = await self._take(message)
            else:
                jobs[number] = _Job(message)
        waiting = list(jobs.values())
        while waiting:
            waiting = await self._run_round(waiting)
        replies = {number: job.reply for number, job in jobs.items()} | taken
        return [reply for number in range(len(messages)) if (reply := replies[number]) is not None]

    async def _take(self, request: OutsideRequest) -> Taken:
        """Enter what other programs did, and pass it on like any other change."""
        taken = await self._outside.take(request)
        for change in taken.changes:
            await self._pass_on(change)
        return taken

    async def _run_round(self, waiting: list[_Job]) -> list[_Job]:
        """Carry out the jobs that do not stand in each other's way; returns those left over."""
        chosen, left = _choose(waiting)
        await self._read_sources(chosen)
        for job in chosen:
            job.prepared = None  # of an earlier round
            try:
                job.prepared = self._prepare(job)
            except LithosError as refusal:
                job.reply = refusal
        ready = [job for job in chosen if job.prepared is not None]
        operations = [job.prepared.operation for job in ready if job.prepared is not None]
        results = await self._blocking.run(lambda: self._files.apply(operations)) if operations else []
        again: list[_Job] = []
        for job, result in zip(ready, results, strict=True):
            if isinstance(result, FileChanged) and job.attempts < RETRIES:
                job.attempts += 1
                again.append(job)
            else:
                job.reply = await self._settle(job, result)
        return again + left

    async def _read_sources(self, jobs: Sequence[_Job]) -> None:
        """Read the files that are to change, all in one hop: people edit them too."""
        wanted = [
            (job, entry.path)
            for job in jobs
            if job.request.id and (entry := self._catalogue.get(job.request.id))
        ]
        if not wanted:
            return
        paths = [path for _, path in wanted]
        sources = await self._blocking.run(lambda: [_try_read(self._files, path) for path in paths])
        for (job, _), source in zip(wanted, sources, strict=True):
            job.source = source

    def _prepare(self, job: _Job) -> Prepared:
        if isinstance(job.request, DeleteNote):
            return self._preparation.prepare_deletion(job.request, job.source)
        if isinstance(job.request, WriteNote) and job.request.id is None:
            return self._preparation.prepare_creation(job.request)
        return self._preparation.prepare_update(job.request, job.source)

    async def _settle(self, job: _Job, result: FileState | Exception | None) -> Accepted | Exception:
        """Enter a written change in the catalogue and pass it on, or say why it failed."""
        prepared = job.prepared
        assert prepared is not None
        if not isinstance(result, Exception):
            self._refusal = None
        elif isinstance(result, OSError):
            self._refusal = result.strerror or str(result)
        if isinstance(result, NotSynced):
            await self._enter(prepared, result.state)
            return _unconfirmed(prepared, result)
        if isinstance(result, FileNotFoundError) and isinstance(prepared.operation, Remove):
            result = None  # somebody removed the file already; the note still has to go
        if isinstance(result, Exception):
            return self._preparation.explain(prepared, result)
        return await self._enter(prepared, result)

    async def _enter(self, prepared: Prepared, state: FileState | None) -> Accepted:
        """The files are the truth: catalogue, indexes and journal follow what is in them."""
        entry = prepared.entry
        vacated: str | None = None
        if state is None:
            self._catalogue.remove(entry.note.id)
            vacated = None if self._catalogue.at_path(entry.path) else entry.path
        else:
            entry = attrs.evolve(entry, state=state)
            self._catalogue.put(entry)
        return await self._pass_on(
            Change(entry, prepared.document, prepared.event, prepared.outcome, vacated)
        )

    async def _pass_on(self, change: Change) -> Accepted:
        message = (
            Removal(change.entry.serial) if change.document is None else Upsert(change.entry, change.document)
        )
        receipts = [await indexer.accept(message) for indexer in self._indexers]
        return await self._publisher.post(Publication(change, receipts))


def _choose(waiting: list[_Job]) -> tuple[list[_Job], list[_Job]]:
    taken: set[tuple[str, str]] = set()
    chosen: list[_Job] = []
    left: list[_Job] = []
    for job in waiting:
        keys = keys_of(job.request)
        (left if keys & taken else chosen).append(job)
        taken |= keys  # also of those left: order among requests for one note is kept
    return chosen, left


def _unconfirmed(prepared: Prepared, failure: NotSynced) -> StorageFailed:
    outcome = prepared.outcome
    log.error("folder not synced", path=outcome.path, reason=str(failure))
    return StorageFailed(
        f"The note is {outcome.status} in {outcome.path}, but the disk did not confirm it "
        f"({failure.strerror}): a power failure may undo it. Check the disk, then read the note again.",
        id=outcome.id,
        path=outcome.path,
        version=outcome.version,
    )


def _try_read(files: NoteFiles, path: str) -> ReadFile | Exception:
    try:
        return files.read(path)
    except (OSError, OutsideKnowledge) as failure:
        return failure
