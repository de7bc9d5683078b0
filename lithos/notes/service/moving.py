"""The move service, which moves a note and then updates the links in other notes in small batches.

A server task performs the moves one after another, even if their callers disconnect. Moves that an earlier
process started are finished first. Other writes are possible between two batches of links.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

import trio
from attrs import define, evolve, field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import Forbidden, LithosError, StorageFailed
from lithos.kernel.values.principals import COMMAND, Principal
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.displaced import MoveIntent, Moves
from lithos.notes.files.values import FileBusy, FileChanged
from lithos.notes.service.knowledge import BUSY_PATIENCE, LONGEST_BUSY_PAUSE, ask_patiently
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.messages import MoveNote, NothingToRelink, RelinkNote, WriteOutcome
from lithos.notes.writing.moving import RelinkCanvas

log = get_logger("lithos.moving")

#: Maximum number of notes whose links are rewritten at once. This is a quarter of the writer's mailbox.
BATCH: Final = 16
#: Maximum number of moves in the queue. Additional callers wait in their own tasks.
CAPACITY: Final = 64
#: The author of a resumed move. The move and all its link changes were already approved, so no new approval
#: is requested.
RESUMED: Final = evolve(COMMAND, is_person=True)
#: Number of seconds that a caller waits for its move and all earlier moves.
DEADLINE: Final = 600.0


#: The canvases that could not be updated after a move: path and reason.
_Unchanged: TypeAlias = dict[str, Exception]


@frozen
class MoveOutcome:
    """The reply to a move, with the ids of rewritten notes and of notes that could not be written.

    `canvases` are the paths of canvases with rewritten links. `unchanged` maps the paths of canvases that
    could not be updated to the reasons.
    """

    outcome: WriteOutcome
    rewritten: tuple[str, ...]
    left: tuple[str, ...] = ()
    canvases: tuple[str, ...] = ()
    unchanged: Mapping[str, str] = field(factory=dict)


@define(eq=False)
class _Job:
    request: MoveNote
    done: trio.Event = field(factory=trio.Event)
    reply: MoveOutcome | Exception | None = None


class Moving:
    """Service that moves notes. Its method `run` must be running."""

    def __init__(
        self,
        moves: Moves,
        catalogue: Catalogue,
        coordinator: Coordinator,
        writer: Writer,
    ) -> None:
        self._catalogue = catalogue
        self._writer = writer.mailbox
        self._coordinator = coordinator
        self._moves = moves
        self._blocking = Threads()
        self._send, self._receive = trio.open_memory_channel[_Job](CAPACITY)
        #: Event that is set when all moves of an earlier process are finished.
        self.resumed = trio.Event()

    async def move(self, request: MoveNote) -> MoveOutcome:
        """Move a note. Return after the note and all rewritten notes are on disk and journalled."""
        self._coordinator.touch(request.agent)
        job = _Job(request)
        with honest_outcome("Read the note again before you retry."), trio.fail_after(DEADLINE):
            await self._send.send(job)
            await job.done.wait()
            if isinstance(job.reply, MoveOutcome):
                return job.reply
            assert job.reply is not None
            raise job.reply

    async def run(self) -> None:
        """Finish the moves of an earlier process, then process new moves until cancelled."""
        try:
            for intent in await self._blocking.run(self._moves.pending):
                await self._resume(intent)
        except OSError as failure:
            log.error("interrupted moves could not be finished", reason=str(failure))
        self.resumed.set()
        async for job in self._receive:
            try:
                job.reply = await self._carry_out(job.request)
            except (LithosError, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
                job.reply = failure
            except OSError as failure:  # The journal failed, so the next start finishes this move.
                job.reply = StorageFailed(
                    f"The note was moved, but the move could not be recorded: {failure.strerror}. "
                    "Check the disk, then read the note again."
                )
            finally:
                job.done.set()

    async def _carry_out(self, request: MoveNote) -> MoveOutcome:
        try:
            outcome = await ask_patiently(self._writer, request, math.inf)
        except (LithosError, trio.TooSlowError):
            await self._finish_unanswered(request)
            raise
        intent = await self._blocking.run(lambda: self._moves.find(request.id))
        if intent is None:
            return MoveOutcome(outcome, ())
        finished = await self._finish(intent, request.by)
        entry = self._catalogue.get(request.id)
        version = entry.note.version if entry is not None else outcome.version
        others = tuple(note_id for note_id in finished.rewritten if note_id != request.id)
        return evolve(finished, outcome=evolve(outcome, version=version), rewritten=others)

    async def _finish_unanswered(self, request: MoveNote) -> None:
        """Update the links to a note that was moved although its caller gets an error."""
        intent = await self._blocking.run(lambda: self._moves.find(request.id))
        entry = self._catalogue.get(request.id)
        if intent is not None and entry is not None and entry.path == intent.relinking.new:
            await self._finish(intent, request.by)

    async def _resume(self, intent: MoveIntent) -> None:
        """Finish a move for which an earlier process already renamed the file.

        A move that cannot be finished is dropped and logged.
        """
        moved, entry = intent.relinking, self._catalogue.get(intent.id)
        try:
            if entry is not None and entry.path == moved.new:
                await self._finish(intent, RESUMED, is_resumed=True)
            else:
                # No caller was notified that this move succeeded.
                log.warning("move dropped, note missing at new path", path=moved.new)
                await self._blocking.run(lambda: self._moves.remove(intent.id))
        except (LithosError, trio.TooSlowError) as failure:
            log.error("move not finished", path=moved.old, new=moved.new, reason=str(failure))
            await self._blocking.run(lambda: self._moves.remove(intent.id))
        except (ActorDown, ShuttingDown, OSError) as failure:  # The next start will try again.
            log.error("move not finished yet", path=moved.old, new=moved.new, reason=str(failure))

    async def _finish(
        self, intent: MoveIntent, by: Principal | None, *, is_resumed: bool = False
    ) -> MoveOutcome:
        """Rewrite the links.

        Return the changed notes and canvases, and those that could not be changed now.
        """
        rewritten: list[str] = []
        left: list[str] = []
        refused: list[str] = []
        sources = intent.sources if intent.update_links else ()
        for start in range(0, len(sources), BATCH):
            results: dict[str, Exception | None] = {}
            batch = sources[start : start + BATCH]
            async with trio.open_nursery() as nursery:
                for note_id in batch:
                    request = RelinkNote(id=note_id, intent=intent, is_resumed=is_resumed, by=by)
                    nursery.start_soon(partial(self._relink, request, results))
            for note_id in batch:
                failure = results[note_id]
                if isinstance(failure, ActorDown | ShuttingDown):
                    raise failure
                if failure is None:
                    rewritten.append(note_id)
                elif not isinstance(failure, NothingToRelink) and note_id in self._catalogue:
                    log.warning("links not rewritten", id=note_id, reason=str(failure))
                    (refused if isinstance(failure, Forbidden) else left).append(note_id)
        canvases, unchanged = await self._relink_canvases(intent, by)
        await self._settle(intent, left, [path for path, each in unchanged.items() if _may_pass(each)])
        moved = intent.relinking.new
        return MoveOutcome(
            WriteOutcome("updated", intent.id, moved, 0),
            tuple(rewritten),
            (*left, *refused),
            tuple(canvases),
            {path: _told(failure) for path, failure in unchanged.items()},
        )

    async def _relink_canvases(
        self, intent: MoveIntent, by: Principal | None
    ) -> tuple[list[str], _Unchanged]:
        """Rewrite the links on canvases.

        Return the paths of the changed canvases, and the canvases that could not be changed, with the
        reasons.
        """
        changed: list[str] = []
        unchanged: _Unchanged = {}
        for path in intent.canvases if intent.update_links else ():
            request = RelinkCanvas(path=path, intent=intent, by=by)
            deadline = trio.current_time() + BUSY_PATIENCE
            while True:
                taken = await self._writer.ask(request, within=math.inf)
                is_busy = isinstance(taken.failure, FileBusy | FileChanged)
                if not is_busy or trio.current_time() > deadline:
                    break
                await trio.sleep(LONGEST_BUSY_PAUSE)
            changed += taken.rewritten
            if taken.failure is not None and not isinstance(taken.failure, FileNotFoundError):
                log.warning("canvas links not rewritten", path=path, reason=_told(taken.failure))
                unchanged[path] = taken.failure
        return changed, unchanged

    async def _relink(self, request: RelinkNote, results: dict[str, Exception | None]) -> None:
        try:
            await ask_patiently(self._writer, request, math.inf)
        except (LithosError, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            results[request.id] = failure
        else:
            results[request.id] = None

    async def _settle(self, intent: MoveIntent, left: Sequence[str], canvases: Sequence[str]) -> None:
        """Remove the intent. If links remain for the next start, keep the intent for them."""
        if left or canvases:
            rest = evolve(intent, sources=tuple(left), canvases=tuple(canvases))
            await self._blocking.run(lambda: self._moves.write(rest))
        else:
            await self._blocking.run(lambda: self._moves.remove(intent.id))


def _may_pass(failure: Exception) -> bool:
    """Return whether the next start should retry a canvas that could not be changed."""
    return isinstance(failure, OSError | FileBusy | FileChanged)


def _told(failure: Exception) -> str:
    if isinstance(failure, FileBusy | FileChanged):
        return "another program is writing to the file"
    if isinstance(failure, OSError):
        return failure.strerror or str(failure)
    return str(failure)
