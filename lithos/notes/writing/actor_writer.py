"""The writer, the only actor that changes note files and the catalogue (single writer).

The writer checks a whole batch against the catalogue and writes all files in one thread job (group commit:
the files share their folder syncs). Then it passes each stored change on to the indexers and the publisher.
Two requests that conflict in a note, slug, URL or path are never decided in the same round. The later request
waits for the next round, so every refusal refers to a state on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile

import attrs
import trio

from lithos.kernel.actors.mailboxes import Inbox, Mailbox, run_batches
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import LithosError, StorageFailed
from lithos.notes.catalogue.copy_origin import VersionsOf
from lithos.notes.catalogue.new_paths import NewPaths
from lithos.notes.catalogue.note_graph import take_turns
from lithos.notes.catalogue.note_reading import examine_renamed
from lithos.notes.files.values import (
    FileBusy,
    FileChanged,
    FileState,
    Kept,
    LinkedFile,
    Move,
    NotSynced,
    OutsideKnowledge,
    PathRedirected,
    ReadFile,
    Remove,
)
from lithos.notes.indexing_messages import Removal, Upsert
from lithos.notes.model.note import AssignedVersion
from lithos.notes.model.scopes import PathAccess, WriteScopes
from lithos.notes.model.versions import HistoryFailed, NewVersion
from lithos.notes.writing.actor_publisher import Publisher
from lithos.notes.writing.applying import Applying
from lithos.notes.writing.change_gate import (
    agent_of,
    approved,
    check_scope,
    decided_on,
    is_long,
    may_write,
    only_proposed,
    paths_of,
    proposes_nothing,
    with_warnings,
    without_foreign,
)
from lithos.notes.writing.editing import EditPreparation, Outlines, edit_source
from lithos.notes.writing.external_changes import (
    CopyKeeping,
    CopyRemoval,
    ExternalReply,
    Outside,
    OutsideFiles,
    OutsideRequest,
)
from lithos.notes.writing.messages import (
    Accepted,
    CommittedChange,
    DeleteNote,
    EditNote,
    ImportNote,
    MoveNote,
    Publication,
    RelinkNote,
    RestoreNote,
    TakeOverNote,
    UpdateRequest,
    WriteNote,
    WriteRequest,
    not_as_promised,
)
from lithos.notes.writing.moving import MovePreparation, RelinkCanvas, relink_canvas, rewrite
from lithos.notes.writing.ports import ChangeGate, ProposedText
from lithos.notes.writing.preparation import FILE_GONE, Preparation, Prepared
from lithos.notes.writing.rebasing import Rebased, rebase
from lithos.notes.writing.recording import NotKept, version_of
from lithos.notes.writing.restoring import RestorePreparation
from lithos.notes.writing.write_rules import keys_of
from lithos.text.outline.section_edit import Edited
from lithos.text.secrets.policy import SecretPolicy

log = get_logger("lithos.writer")

#: Queue size, sufficient for a few dozen agents. If the queue is full, requests wait in their own tasks,
#: which creates backpressure.
CAPACITY = 64
#: Maximum number of requests in a batch. The requests of a batch share folder syncs and a journal commit.
BATCH = 32
#: Time limit for a batch in seconds. This is more than the publisher's limit, because waiting for a slow
#: index is not a crash.
LIMIT = 1_000.0
#: Maximum number of retries if another program keeps changing the file of a request (compare-and-swap
#: failed).
RETRIES = 5

#: Messages of the writer. Write requests of tools get the reply `Accepted`. External changes and canvases get
#: the reply `ExternalReply`.
WriterMessage = WriteRequest | OutsideRequest | RelinkCanvas
WriterMailbox = Mailbox[WriterMessage]


@attrs.define(eq=False)
class _Job:
    """A request of a batch, with its source file, prepared change, number of attempts, and reply."""

    request: WriteRequest
    reply: Accepted | Exception | None = None
    attempts: int = 0
    source: ReadFile | Exception | None = None
    #: The path at which the source was read.
    path: str | None = None
    #: The source file with rewritten links, for a request that rewrites links.
    rewritten: bytes | None = None
    #: The newest known version at the time when the source was read.
    standing: AssignedVersion | None = None
    #: The request merged with its source file, for a request with a base version.
    rebased: Rebased | None = None
    #: For an edit request: the edited body, or the error if the edit failed.
    edited: Edited | LithosError | None = None
    prepared: Prepared | None = None
    #: The agent's earlier proposal for the note, if this proposal is the source.
    own: ProposedText | None = None
    #: Known targets of paths that lead through a symbolic link.
    reals: dict[str, str] = attrs.field(factory=dict)
    #: For an edit request: the following edits of the same note, which may share its file write.
    followers: list[_Job] = attrs.field(factory=list)


class Writer:
    """The state of the writer, and the processing of its batches."""

    def __init__(
        self,
        preparation: Preparation,
        applying: Applying,
        publisher: Publisher,
        keep: Callable[[Sequence[Kept]], None],
        outlines: Outlines,
        gate: ChangeGate | None = None,
        versions: VersionsOf = lambda note_id: (),
    ) -> None:
        """Create the writer. `keep` receives the displaced files of each change.

        `outlines` contains the known outlines of bodies. `gate` stores changes that need approval. Without a
        gate, such changes are refused. `versions` returns the kept versions of a note.
        """
        self.mailbox: WriterMailbox = Mailbox("writer", CAPACITY)
        self._catalogue = preparation.catalogue
        self._files = applying.files
        self._blocking = applying.blocking
        self._indexers = publisher.indexers
        self._publisher = publisher.mailbox
        self._preparation = preparation
        self._keep = keep
        self._recorder = applying.recorder
        self._applying = applying
        self._moving = MovePreparation(preparation)
        self._restoring = RestorePreparation(preparation)
        self._editing = EditPreparation(preparation)
        self._outlines = outlines
        #: The paths that each agent may change. The services add the rules for tokens.
        self.scopes = WriteScopes()
        #: The check of changes for secrets. The capability sets it from the settings.
        self.secrets = SecretPolicy()
        self._gate = gate
        self._outside = Outside(
            preparation.catalogue, applying.files, applying.blocking, preparation.clock, versions
        )
        self._tell = publisher.tell
        #: Reason why the disk refused the last change. After a successful write, the reason is None.
        self._refusal: str | None = None

    async def trouble(self) -> str | None:
        """Return why notes cannot be written, or None. If the last write failed, this tries another write."""
        if self._refusal is not None:
            try:
                await self._blocking.run(self._files.try_writing)
            except OSError as failure:
                self._refusal = failure.strerror or str(failure)
            else:
                self._refusal = None
        return self._refusal

    async def start(self, inbox: Inbox[WriterMessage], *, task_status: trio.TaskStatus[None]) -> None:
        """Serve requests until the mailbox closes."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._recorder.keep_tidy)
            await run_batches(inbox, self._flush, size=BATCH, limit=LIMIT, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()
        await self._recorder.finish()

    async def _flush(self, messages: Sequence[WriterMessage]) -> list[Accepted | ExternalReply | Exception]:
        taken: dict[int, ExternalReply] = {}
        jobs: dict[int, _Job] = {}
        for number, message in enumerate(messages):
            if isinstance(message, OutsideRequest):
                taken[number] = await self._take(message)
            elif isinstance(message, RelinkCanvas):
                taken[number] = await relink_canvas(message, self._files, self._blocking, self.scopes)
                self._keep(self._files.take_kept())
            else:
                jobs[number] = _Job(message)
        waiting = list(jobs.values())
        while waiting:
            waiting = await self._run_round(waiting)
        replies = {number: job.reply for number, job in jobs.items()} | taken
        return [reply for number in range(len(messages)) if (reply := replies[number]) is not None]

    async def _take(self, request: OutsideRequest) -> ExternalReply:
        """Apply external changes. Then pass them on to the indexers and the publisher."""
        taken = await self._outside.take(request)
        if isinstance(request, CopyRemoval | CopyKeeping):
            self._keep(self._files.take_kept())
        with suppress(HistoryFailed):  # Failures are logged. The catch-up task records the versions later.
            await self._recorder.record(taken.versions, is_pending=False)
        for change in taken.changes:
            await self._pass_on(change)
        if taken.copies:
            await self._tell(taken.copies)
        return taken

    async def _run_round(self, waiting: list[_Job]) -> list[_Job]:
        """Apply the jobs that do not conflict with one another. Return the jobs that still have no reply."""
        for job in waiting:
            # Values of an earlier round are no longer valid.
            job.prepared, job.source, job.own, job.followers = None, None, None, []
        chosen = _choose(waiting)
        await self._read_sources(chosen)
        await self._follow([job for job in chosen if isinstance(job.source, FILE_GONE)])
        ready: list[_Job] = []
        if self._gate is not None and self._gate.has_any:
            await self._start_from_own(self._gate, chosen)
        await self._rebase(chosen)
        makes = NewPaths()
        for job in chosen:
            if job.reply is None:
                ready += await self._decide(job, makes)
        # Refusals and new versions depend on the versions assigned to external edits, so these must be stored
        # first.
        await self._catalogue.records.save()
        results = await self._applying.apply(
            [decided_on(job.prepared, job.reals) for job in ready if job.prepared is not None],
            self._versions(ready),
        )
        self._keep(self._files.take_kept())
        for job, result in zip(ready, results, strict=True):
            if isinstance(result, FileChanged | PathRedirected) and job.attempts < RETRIES:
                job.attempts += 1
                if isinstance(result, PathRedirected):  # Decide again with the link target.
                    job.reals[result.path] = result.real
            else:
                job.reply = await self._settle(job, result)
        # The jobs stay in order, even if a job before them was refused.
        return [job for job in waiting if job.reply is None]

    async def _decide(self, job: _Job, makes: NewPaths) -> list[_Job]:
        """Prepare a job. Return the jobs to write together now, starting with this job.

        The result is empty if the job is refused, kept as a proposal, or must be decided again. A job is
        decided again, for example, if another job of the round creates the same path in a different spelling.
        """
        if self._is_outdated(job):
            job.attempts += 1
            return []
        try:
            job.prepared = self._prepare(job)
            if isinstance(job.request, MoveNote):
                job.prepared = await self._moving.plan(job.request, job.prepared, self._files, self._blocking)
            job.prepared = approved(job.prepared, job.request)
            warn = partial(with_warnings, self.secrets, job.request, job.prepared, job.source)
            is_slow = is_long(job.prepared) or not self.secrets.is_ready
            job.prepared = await self._blocking.run(warn) if is_slow else warn()
            place = await self._place_of(job)
        except LithosError as refusal:
            job.reply = refusal
            return []
        if place == "propose":
            job.reply = await self._propose(job)
        elif job.own is not None:
            job.attempts += 1  # Approval is no longer needed. Decide again from the file.
        elif makes.take(job.prepared.makes):
            return await self._join(job)
        return []

    async def _place_of(self, job: _Job) -> PathAccess:
        """Return the access to the paths of a prepared change and to their link targets.

        Raises `Forbidden` or `InvalidInput`.

        The link targets of a direct change are found when its file is written (`PathRedirected`). Proposals
        and moves need the link targets earlier.
        """
        assert job.prepared is not None
        scopes, catalogue, request, prepared = self.scopes, self._catalogue, job.request, job.prepared
        place = check_scope(scopes, catalogue, request, prepared, job.reals)
        is_limited = scopes.limits(request.by, agent_of(request))
        if is_limited and (place == "propose" or isinstance(request, MoveNote)):
            job.reals = await self._find_reals(prepared)
            place = check_scope(scopes, catalogue, request, prepared, job.reals)
        if prepared.makes is not None and prepared.makes in job.reals:
            self._preparation.refuse_ignored(job.reals[prepared.makes])
        return place

    async def _find_reals(self, prepared: Prepared) -> dict[str, str]:
        """Return the link targets of the paths of a change.

        Raises `InvalidInput` if the change must not follow these links.
        """
        paths, operation = paths_of(self._catalogue, prepared), prepared.operation

        def look() -> dict[str, str]:
            if isinstance(operation, Remove | Move):
                self._files.refuse_link(operation.path)
            return self._files.real_paths(paths)

        try:
            return await self._blocking.run(look)
        except (OutsideKnowledge, LinkedFile) as failure:
            raise self._preparation.explain(prepared, failure) from failure

    async def _start_from_own(self, gate: ChangeGate, jobs: Sequence[_Job]) -> None:
        """Use the agent's earlier proposals as the source of changes that need approval."""
        for job in jobs:
            request = job.request
            if isinstance(request, RelinkNote | ImportNote | RestoreNote) or request.id is None:
                continue
            own = gate.own(request.id, request.agent)
            entry = self._catalogue.get(request.id)
            if own is None:
                continue
            path = own.path if entry is None else entry.path
            if may_write(self.scopes, request, path, job.reals):
                continue
            if isinstance(request, DeleteNote | MoveNote):
                if entry is None:
                    job.reply = only_proposed(own)
                continue
            job.own = found = await gate.load(own.id)
            if found is None:
                continue
            job.source = gate.as_file(found, entry, job.source)
            if isinstance(request, EditNote) and isinstance(job.source, ReadFile):
                source = job.source
                job.edited = await self._blocking.run(partial(self._edit, request, source))

    async def _propose(self, job: _Job) -> Accepted | Exception:
        """Store a prepared change as a proposal that needs a person's approval. The note does not change."""
        assert job.prepared is not None
        assert not isinstance(job.request, RelinkNote)
        if self._gate is None:
            return proposes_nothing(job.prepared, job.request.agent)
        return await self._gate.keep(job.request, job.prepared, job.source, job.own)

    async def _join(self, first: _Job) -> list[_Job]:
        """Return a prepared job. For an edit, also return the following edits to write with it, in order."""
        if not first.followers:
            return [first]
        assert first.prepared is not None
        path = first.prepared.entry.path
        reals = first.reals
        allowed = takewhile(lambda job: may_write(self.scopes, job.request, path, reals), first.followers)
        requests = [each.request for each in allowed if isinstance(each.request, EditNote)]
        together = await self._editing.prepare_together(
            first.prepared, first.source, requests, self._edit, partial(with_warnings, self.secrets)
        )
        joined = [first, *first.followers][: len(together)]
        for job, prepared in zip(joined, together, strict=True):
            job.prepared, job.reals = prepared, reals
        return joined

    def _is_outdated(self, job: _Job) -> bool:
        """Return whether a reader has already seen a newer state of the file than the job has read.

        The result is also True if the missing file was found at another path.
        """
        if job.request.id is None or job.attempts >= RETRIES:
            return False
        if isinstance(job.source, FILE_GONE):
            entry = self._catalogue.get(job.request.id)
            return entry is not None and entry.path != job.path
        if not isinstance(job.source, ReadFile):
            return False
        now = self._catalogue.standing(job.request.id)
        return now is not None and now != job.standing and now.digest != job.source.digest

    def _versions(self, jobs: Sequence[_Job]) -> list[NewVersion]:
        if self._recorder.store is None:
            return []
        catalogue = self._catalogue
        return [
            version_of(job.prepared, job.source, catalogue.get(note_id), catalogue.records.version(note_id))
            for job in jobs
            if job.prepared is not None and (note_id := job.prepared.entry.note.id)
        ]

    async def _read_sources(self, jobs: Sequence[_Job]) -> None:
        """Read the current files of the notes to change, in one thread job.

        People may have edited these files.

        A request is refused without waiting if another program has its file open for writing.
        """
        wanted = [
            (job, entry) for job in jobs if job.request.id and (entry := self._catalogue.get(job.request.id))
        ]
        if not wanted:
            return
        known = [(job, entry.path, entry.digest) for job, entry in wanted]
        for job, entry in wanted:
            job.standing, job.path = self._catalogue.standing(entry.note.id), entry.path

        def read() -> None:
            for each in known:
                self._read_source(*each)

        await self._blocking.run(read)

    async def _follow(self, jobs: Sequence[_Job]) -> None:
        """Find missing files at new paths. Another program may have renamed the files or their folders."""
        entries = [entry for job in jobs if (entry := self._catalogue.get(job.request.id or "")) is not None]
        if not entries:
            return
        lost, style = {entry.digest: entry.state for entry in entries}, self._catalogue.style
        found = await self._blocking.run(lambda: examine_renamed(self._files, lost, style))
        new = tuple(each for each in found if self._catalogue.at_path(each.path) is None)
        if new:
            await self._take(OutsideFiles(new))

    def _read_source(self, job: _Job, path: str, known: str) -> None:
        """Read the file, and apply the parts of the request that do not depend on other notes. Blocks."""
        request = job.request
        try:
            job.source = source = self._files.read_quiet(path, known)
        except (OSError, FileBusy, OutsideKnowledge) as failure:
            job.source = failure
            return
        if isinstance(request, RelinkNote):
            job.rewritten = rewrite(request, path, source, self._files.is_file)
        if isinstance(request, EditNote):
            job.edited = self._edit(request, source)

    def _edit(self, request: EditNote, source: ReadFile) -> Edited | LithosError | None:
        keeps_heading = self._catalogue.style.is_foreign
        return edit_source(request, source.data, self._outlines, keeps_heading=keeps_heading)

    async def _rebase(self, jobs: Sequence[_Job]) -> None:
        """Merge all requests that have a base version with their current files, in one thread job."""
        wanted = [
            (job, entry, job.request, job.source)
            for job in jobs
            if isinstance(job.request, UpdateRequest) and job.request.base is not None
            if isinstance(job.source, ReadFile) and (entry := self._catalogue.get(job.request.id or ""))
        ]
        if not wanted:
            return
        style = self._catalogue.style
        rebased = await self._blocking.run(
            lambda: [rebase(request, entry, source, style) for _, entry, request, source in wanted]
        )
        for (job, *_), each in zip(wanted, rebased, strict=True):
            job.rebased = each

    def _prepare(self, job: _Job) -> Prepared:
        if isinstance(job.request, DeleteNote):
            return self._preparation.prepare_deletion(job.request, job.source)
        if isinstance(job.request, MoveNote):
            return self._moving.prepare_move(job.request, job.source)
        if isinstance(job.request, RelinkNote):
            return self._moving.prepare_relinking(job.request, job.source, job.rewritten)
        if isinstance(job.request, RestoreNote):
            return self._restoring.prepare(job.request, job.source)
        if isinstance(job.request, TakeOverNote):
            return self._restoring.prepare_arrival(job.request)
        if isinstance(job.request, ImportNote):
            return self._restoring.prepare_import(job.request, job.source)
        if isinstance(job.request, EditNote):
            return self._editing.prepare_edit(job.request, job.source, job.edited)
        if isinstance(job.request, WriteNote) and job.request.id is None:
            return self._preparation.prepare_creation(without_foreign(self.scopes, job.request))
        return self._preparation.prepare_update(job.request, job.source, job.rebased)

    async def _settle(self, job: _Job, result: FileState | Exception | None) -> Accepted | Exception:
        """Record a written change in the catalogue and pass the change on.

        If the write failed, return the error.
        """
        prepared = job.prepared
        assert prepared is not None
        if not isinstance(result, Exception):
            self._refusal = None
        elif isinstance(result, OSError) and not isinstance(result, FileNotFoundError):
            self._refusal = result.strerror or str(result)
        if isinstance(result, NotSynced):
            await self._enter(prepared, result.state)
            return _unconfirmed(prepared, result)
        if isinstance(result, NotKept):
            await self._enter(prepared, result.state)
            return _unkept(prepared, result)
        if isinstance(result, HistoryFailed):
            return _not_begun(prepared, result)
        if isinstance(result, StorageFailed):
            return result
        if isinstance(result, FileNotFoundError) and isinstance(prepared.operation, Remove):
            result = None  # The file is already gone, but the note must still be removed.
        if isinstance(result, Exception):
            return self._preparation.explain(prepared, result)
        return await self._enter(prepared, result)

    async def _enter(self, prepared: Prepared, state: FileState | None) -> Accepted:
        """Update the catalogue entry. The file is the source of truth, so the catalogue follows the file."""
        entry = prepared.entry
        vacated: str | None = None
        if state is None:
            await take_turns(self._catalogue.remove_in_steps(entry.note.id))
            vacated = None if self._catalogue.at_path(entry.path) else entry.path
        else:
            entry = attrs.evolve(entry, state=state)
            if prepared.former is None:  # If `former` is set, an earlier edit has added the entry.
                await take_turns(self._catalogue.put_in_steps(entry))
            self._catalogue.records.settle_version(
                entry.note.id, entry.standing, is_said=prepared.says_version
            )
            former = prepared.operation.path
            vacated = None if former == entry.path or self._catalogue.at_path(former) else former
        return await self._pass_on(
            CommittedChange(entry, prepared.document, prepared.event, prepared.outcome, vacated)
        )

    async def _pass_on(self, change: CommittedChange) -> Accepted:
        message = (
            Removal(change.entry.serial) if change.document is None else Upsert(change.entry, change.document)
        )
        receipts = [await indexer.accept(message) for indexer in self._indexers]
        return await self._publisher.post(Publication(change, receipts))


def _choose(waiting: Sequence[_Job]) -> list[_Job]:
    """Return the jobs of one round, which do not conflict. An edit includes the edits that may follow it."""
    taken: set[tuple[str, str]] = set()
    editing: dict[str, _Job] = {}  # The edits of notes that have only edits in this round so far, by note id.
    chosen: list[_Job] = []
    for job in waiting:
        keys, note_id = keys_of(job.request), job.request.id or ""
        is_edit = isinstance(job.request, EditNote)
        if not keys & taken:
            chosen.append(job)
            if is_edit:
                editing[note_id] = job
        elif is_edit and note_id in editing:
            editing[note_id].followers.append(job)
        else:
            editing.pop(note_id, None)
        taken |= keys  # Keys of postponed requests count too, so requests for a note stay in order (FIFO).
    return chosen


def _unconfirmed(prepared: Prepared, failure: NotSynced) -> StorageFailed:
    outcome = prepared.outcome
    log.error("folder not synced", path=outcome.path, reason=str(failure))
    return not_as_promised(
        outcome,
        f"The note is {outcome.status} in {outcome.path}, but the disk did not confirm it "
        f"({failure.strerror}). A power failure may undo the change. Check the disk, then read "
        "the note again.",
    )


def _unkept(prepared: Prepared, failure: NotKept) -> StorageFailed:
    outcome = prepared.outcome
    return not_as_promised(
        outcome,
        f"The note is {outcome.status} in {outcome.path}, but its version could not be kept: "
        f"{failure} Do not write the note again. Changes are refused until history.db works again.",
    )


def _not_begun(prepared: Prepared, failure: HistoryFailed) -> StorageFailed:
    return StorageFailed(
        f"The version of {prepared.entry.path} cannot be kept, so nothing was changed. {failure.message}"
    )
