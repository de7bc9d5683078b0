"""The writer: the one actor that changes note files and the catalogue.

It decides a whole batch against the catalogue, writes all files in one thread job (they share the
folder syncs), and passes each durable change on to the indexers and to the publisher. Two requests
that touch the same note, slug, URL or path are never decided together: the later one waits for the
next round, so a refusal always speaks of something that is on disk.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from datetime import datetime

import attrs
import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue, Entry, digest_of
from lithos.actors.decisions import (
    Decision,
    decide_creation,
    decide_update,
    keys_of,
    no_such_note,
    path_collision,
)
from lithos.actors.indexer import IndexMailbox, Removal, Upsert
from lithos.actors.kit import Envelope, Inbox, Mailbox, run_batches
from lithos.actors.publisher import Publication, PublisherMailbox
from lithos.actors.requests import Change, DeleteNote, WriteNote, WriteOutcome, WriteRequest
from lithos.core.errors import InvalidInput, LithosError, StorageFailed
from lithos.core.events import NOTE_CREATED, NOTE_DELETED, NOTE_UPDATED, EventDraft
from lithos.core.frontmatter import (
    UnreadableNote,
    is_identified,
    parse_document,
    render_document,
    rewrite_document,
)
from lithos.core.links import scan_links
from lithos.core.model import Document
from lithos.core.times import from_nanoseconds
from lithos.stores.files import (
    FileChanged,
    FileOccupied,
    FileState,
    NoteFiles,
    OutsideKnowledge,
    Put,
    ReadFile,
    Remove,
)
from lithos.telemetry import get_logger

log = get_logger("lithos.writer")

#: A few dozen agents at once; more wait in their own tasks, which is the back-pressure they need.
CAPACITY = 64
#: One batch shares its folder syncs, its journal commit and its index commits.
BATCH = 32
#: How often a file may change under a request before the request gives up.
RETRIES = 5

#: The reply to an accepted request: await it for the moment the change is indexed and journalled.
Accepted = Envelope[Publication, WriteOutcome]
WriterMailbox = Mailbox[WriteRequest, Accepted]


@frozen
class WriterSettings:
    """`content_limit` in bytes."""

    content_limit: int


@frozen
class _Prepared:
    """A decided change, ready to be written."""

    operation: Put | Remove
    entry: Entry
    document: Document | None
    outcome: WriteOutcome
    event: EventDraft


@attrs.define(eq=False)
class _Job:
    """One request of a batch on its way to a reply."""

    request: WriteRequest
    reply: Accepted | Exception | None = None
    attempts: int = 0
    source: ReadFile | Exception | None = None
    prepared: _Prepared | None = None


class Writer:
    """The writer's state and its batches."""

    def __init__(
        self,
        catalogue: Catalogue,
        files: NoteFiles,
        blocking: Blocking,
        indexes: Sequence[IndexMailbox],
        publisher: PublisherMailbox,
        settings: WriterSettings,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self.mailbox: WriterMailbox = Mailbox("writer", CAPACITY)
        self._catalogue = catalogue
        self._files = files
        self._blocking = blocking
        self._indexes = indexes
        self._publisher = publisher
        self._settings = settings
        self._clock = clock
        self._new_id = new_id

    async def start(
        self,
        inbox: Inbox[WriteRequest, Accepted],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve requests until the mailbox closes."""
        task_status.started()
        await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)

    async def _flush(self, requests: Sequence[WriteRequest]) -> list[Accepted | Exception]:
        jobs = [_Job(request) for request in requests]
        waiting = jobs
        while waiting:
            waiting = await self._run_round(waiting)
        return [job.reply for job in jobs if job.reply is not None]

    async def _run_round(self, waiting: list[_Job]) -> list[_Job]:
        """Carry out the jobs that do not stand in each other's way; returns those left over."""
        chosen, left = _choose(waiting)
        await self._read_sources(chosen)
        for job in chosen:
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
        """Read the files that updates build upon, all in one hop: people edit them too."""
        wanted = [
            (job, entry.path)
            for job in jobs
            if isinstance(job.request, WriteNote)
            and job.request.id
            and (entry := self._catalogue.get(job.request.id))
        ]
        if not wanted:
            return
        paths = [path for _, path in wanted]
        sources = await self._blocking.run(lambda: [_try_read(self._files, path) for path in paths])
        for (job, _), source in zip(wanted, sources, strict=True):
            job.source = source

    def _prepare(self, job: _Job) -> _Prepared:
        if isinstance(job.request, DeleteNote):
            return self._prepare_deletion(job.request)
        if job.request.id is None:
            return self._prepare_creation(job.request)
        return self._prepare_update(job.request, job.source)

    def _prepare_creation(self, request: WriteNote) -> _Prepared:
        decision = decide_creation(
            request,
            self._catalogue,
            note_id=self._new_id(),
            now=self._clock(),
            content_limit=self._settings.content_limit,
        )
        data = render_document(decision.document)
        entry = self._entry(decision, data, self._catalogue.take_serial())
        return self._finish(Put(decision.path, data, None), entry, decision, request.agent, created=True)

    def _prepare_update(self, request: WriteNote, source: ReadFile | Exception | None) -> _Prepared:
        assert request.id is not None
        entry = self._catalogue.get(request.id)
        if entry is None or source is None:
            raise no_such_note(request.id)
        if isinstance(source, Exception):
            raise _unreadable_source(entry.path, source)
        modified = from_nanoseconds(source.state.mtime_ns)
        try:
            old = parse_document(source.data, entry.path, modified)
            if old.note.id != request.id:
                raise no_such_note(request.id)
            decision = decide_update(
                request,
                old,
                entry.path,
                self._catalogue,
                now=self._clock(),
                content_limit=self._settings.content_limit,
            )
            data = rewrite_document(source.data, entry.path, modified, decision.document, replace_body=True)
        except UnreadableNote as problem:
            raise StorageFailed(
                f"The file {entry.path} cannot be updated: {problem.reason}. Nothing was changed; "
                "mend its frontmatter in an editor, then retry."
            ) from problem
        new = self._entry(decision, data, entry.serial)
        operation = Put(entry.path, data, source.state)
        return self._finish(operation, new, decision, request.agent, created=False)

    def _prepare_deletion(self, request: DeleteNote) -> _Prepared:
        entry = self._catalogue.get(request.id)
        if entry is None:
            raise no_such_note(request.id)
        event = EventDraft(
            type=NOTE_DELETED,
            agent=request.agent,
            payload={"id": entry.note.id, "path": entry.path},
            timestamp=self._clock(),
            tags=entry.note.tags,
        )
        outcome = WriteOutcome("deleted", entry.note.id, entry.path, entry.note.version)
        return _Prepared(Remove(entry.path), entry, None, outcome, event)

    def _entry(self, decision: Decision, data: bytes, serial: int) -> Entry:
        document = decision.document
        return Entry(
            serial=serial,
            path=decision.path,
            note=document.note,
            digest=digest_of(data),
            state=FileState(0, 0),
            identified=is_identified(data),
            links=tuple(link.target for link in scan_links(document.content)),
        )

    def _finish(
        self, operation: Put, entry: Entry, decision: Decision, agent: str, *, created: bool
    ) -> _Prepared:
        note = entry.note
        event = EventDraft(
            type=NOTE_CREATED if created else NOTE_UPDATED,
            agent=agent,
            payload={"id": note.id, "title": note.title, "path": entry.path},
            timestamp=note.updated_at,
            tags=note.tags,
            origin=f"tool:{entry.digest}",
        )
        outcome = WriteOutcome(
            "created" if created else "updated", note.id, entry.path, note.version, decision.warnings
        )
        return _Prepared(operation, entry, decision.document, outcome, event)

    async def _settle(self, job: _Job, result: FileState | Exception | None) -> Accepted | Exception:
        """Enter a written change in the catalogue and pass it on, or say why it failed."""
        prepared = job.prepared
        assert prepared is not None
        if isinstance(result, FileNotFoundError) and isinstance(prepared.operation, Remove):
            result = None  # somebody removed the file already; the note still has to go
        if isinstance(result, Exception):
            return self._explain(prepared, result)
        entry = prepared.entry
        if result is None:
            self._catalogue.remove(entry.note.id)
        else:
            entry = attrs.evolve(entry, state=result)
            self._catalogue.put(entry)
        change = Change(entry, prepared.document, prepared.event, prepared.outcome)
        return await self._pass_on(change)

    async def _pass_on(self, change: Change) -> Accepted:
        message = (
            Removal(change.entry.serial) if change.document is None else Upsert(change.entry, change.document)
        )
        receipts = [await index.post(message) for index in self._indexes]
        return await self._publisher.post(Publication(change, receipts))

    def _explain(self, prepared: _Prepared, failure: Exception) -> LithosError:
        path = prepared.entry.path
        if isinstance(failure, FileOccupied):
            return path_collision(path, self._catalogue)
        if isinstance(failure, OutsideKnowledge):
            return InvalidInput(f"The path {path} must stay within knowledge directory; it leads out of it.")
        if isinstance(failure, OSError) and failure.errno in (errno.ENAMETOOLONG, errno.ENOTDIR):
            return InvalidInput(f"The path {path} cannot be used: {failure.strerror}. Choose another path.")
        if isinstance(failure, FileChanged):
            return StorageFailed(
                f"The file {path} keeps changing while it is written. Nothing was changed; retry in a moment."
            )
        reason = failure.strerror if isinstance(failure, OSError) else str(failure)
        log.error("note file not written", path=path, reason=str(failure))
        return StorageFailed(
            f"The file {path} could not be written: {reason}. Nothing was changed; "
            "free space or permissions may be missing. Retry afterwards."
        )


def _choose(waiting: list[_Job]) -> tuple[list[_Job], list[_Job]]:
    taken: set[tuple[str, str]] = set()
    chosen: list[_Job] = []
    left: list[_Job] = []
    for job in waiting:
        keys = keys_of(job.request)
        (left if keys & taken else chosen).append(job)
        taken |= keys  # also of those left: order among requests for one note is kept
    return chosen, left


def _try_read(files: NoteFiles, path: str) -> ReadFile | Exception:
    try:
        return files.read(path)
    except (OSError, OutsideKnowledge) as failure:
        return failure


def _unreadable_source(path: str, failure: Exception) -> LithosError:
    if isinstance(failure, FileNotFoundError):
        return StorageFailed(
            f"The file {path} of this note is missing. Nothing was changed; put the file back, "
            "or wait for the next scan."
        )
    return StorageFailed(
        f"The file {path} cannot be read: {failure}. Nothing was changed; check its permissions."
    )
