"""The watcher, which detects changes by other programs with file system notifications or by polling.

The watcher listens, debounces, examines the touched paths and passes them to the writer. A full comparison
with the tree finds changes that notifications missed. With polling it runs every second, otherwise every
minute. Once a second, the watcher also checks the deletion guard and whether the folder itself was unmounted
or replaced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Literal

import trio

from lithos.kernel.actors.mailboxes import ActorDown, Inbox, Mailbox, ShuttingDown
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.notes.files.lookup import folder_identity, linked_identities
from lithos.notes.files.protection import remote_file_system
from lithos.notes.watching.debounce import Pending
from lithos.notes.watching.folder_comparison import Sights, is_watched, look_again
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.ingest import Ingest
from lithos.notes.watching.notifications import FolderWatch, ListeningFailed, Probe, WatchCoverage
from lithos.notes.writing.actor_writer import WriterMailbox
from lithos.notes.writing.external_changes import held_notes
from lithos.notes.writing.ports import NoteIndex

log = get_logger("lithos.watcher")

Mode = Literal["native", "poll", "off"]
#: The configured mode. `auto` uses notifications if a probe shows that they work. Otherwise it polls.
WantedMode = Literal["auto", "native", "poll", "off"]

TICK = 1.0
#: Number of ticks between two full comparisons while notifications work. The comparisons are needed because
#: an overflowing queue loses notifications without an error.
SAFETY_TICKS = 60
#: Seconds until a failed task is retried.
RETRY = 1.0
#: Maximum number of seconds between two checks, even on a slow disk.
LONGEST_PAUSE = 60.0
#: Number of failures, and the time in seconds within which they must occur, for mode `auto` to fall back to
#: polling.
FAILURES, FAILURES_WITHIN = 3, 30.0


class Watcher:
    """The state of the watcher, and its tasks.

    The watcher's mailbox accepts no messages. After a crash, the supervisor restarts the watcher.
    """

    def __init__(
        self,
        mode: WantedMode,
        debounce: float,
        guard: DeletionGuard,
        writer: WriterMailbox,
        indexers: Sequence[NoteIndex],
        count: Callable[[str], None],
    ) -> None:
        """Create a watcher.

        `debounce` is in seconds. `count` is called with the kind of change for every created, updated,
        deleted or renamed note.
        """
        self.mailbox: Mailbox[None] = Mailbox("watcher", 1)
        #: Function that is called with every path that notifications report, including files that are not
        #: notes.
        self.on_noticed: Callable[[Collection[str]], None] = lambda _: None
        self.mode: Mode = "native" if mode == "auto" else mode
        self._troubles: dict[str, str] = {}
        self._is_undecided = self._may_poll = mode == "auto"
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._catalogue = guard.catalogue
        self._files = guard.files
        self._guard = guard
        self._indexers = indexers
        self._blocking = guard.blocking
        self._pending = Pending(debounce)
        #: The tree at the last comparison, or None before the first comparison.
        self._seen: Sights | None = None
        self._coverage = WatchCoverage(guard.files, guard.blocking)
        self._taking = Ingest(guard, writer, self._pending, count)
        self._listening: FolderWatch | None = None
        self._probe: Probe | None = None
        self._is_armed = False
        #: True if the watch ends only because another watch must cover other folders.
        self._is_rearming = False
        self._identity: tuple[int, int] | None = None
        #: The linked folders that existed at the last check, with their devices and inodes.
        self._linked: tuple[tuple[str, int, int], ...] = ()
        self._ticks = 0
        self._wake = trio.Event()

    @property
    def failure(self) -> str | None:
        """Return why external changes are not processed properly, for the health report, or None."""
        return "; ".join(self._troubles.values()) or None

    @property
    def is_told(self) -> bool:
        """Whether notifications are arriving now."""
        return self.mode == "native" and self._is_armed

    @property
    def is_settled(self) -> bool:
        """Whether the mode is decided.

        The mode is decided when the watcher has found out whether notifications work.
        """
        return not self._is_undecided and (self.mode != "native" or self._is_armed or bool(self.failure))

    async def start(self, inbox: Inbox[None], *, task_status: trio.TaskStatus[None]) -> None:
        """Run the watcher until the mailbox closes or the task is cancelled."""
        self._identity, self._linked = await self._blocking.run(
            lambda: (folder_identity(self._files), linked_identities(self._files))
        )
        self._is_armed = False
        if self.mode != "off":
            self._compare()  # Notifications that arrived before a crash may be lost.
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_looking)
            nursery.start_soon(self._keep_settling)
            if self.mode == "native":
                nursery.start_soon(self._stop_listening_at_end)
                nursery.start_soon(self._keep_listening)
            async for _ in inbox:
                continue
            nursery.cancel_scope.cancel()

    async def _keep_listening(self) -> None:
        while self.mode == "native":
            try:
                await self._listen()
            except ListeningFailed as failure:
                self._tell("listening", f"file system notifications failed: {failure}")
                self._give_up_listening(trio.current_time())
            self._is_armed = False
            await trio.sleep(0 if self._is_rearming else RETRY)
            self._is_rearming = False

    def _give_up_listening(self, now: float) -> None:
        """Fall back to polling if listening keeps failing.

        While the folder is missing, the mode does not change. Names that are not UTF-8 are one cause of
        failures.
        """
        if not self._may_poll or self._identity is None:
            return
        self._failures.append(now)
        if len(self._failures) == FAILURES and now - self._failures[0] < FAILURES_WITHIN:
            self._poll(self._troubles["listening"])

    def _poll(self, reason: str) -> None:
        log.warning("folder polled every second", reason=reason)
        self.mode = "poll"
        self._tell("listening", None)
        self._tell("coverage", None)
        self._stop_listening()

    async def _listen(self) -> None:
        """Add the paths of notifications to the queue until the watch ends."""
        self._listening = FolderWatch(self._files, Threads())
        async with aclosing(self._listening.notices()) as notices:
            async for noticed in notices:
                if not self._is_armed:
                    self._is_armed = True
                    self._tell("listening", None)
                    self._coverage.doubt()
                    self._pending.compare_now(trio.current_time())
                if self._probe is not None:
                    self._probe.look_for_it(noticed)
                if not all(path.endswith(".md") for path in noticed):
                    self._coverage.doubt()
                self._touch(filter(is_watched, noticed))
                self.on_noticed(noticed)
                self._wake.set()

    def _touch(self, noticed: Iterable[str]) -> None:
        """Add paths to the queue. A file of a linked folder is due at once.

        Another session of its client may replace such a file before the debounce ends.
        """
        paths = set(noticed)
        linked = {path for path in paths if self._files.is_linked(path)} if self._files.linked else set()
        now = trio.current_time()
        if linked:
            self._pending.touch_now(linked, now)
        self._pending.touch(paths - linked, now)

    async def _stop_listening_at_end(self) -> None:
        """When this task is cancelled, set the event that ends the listening thread.

        A waiting thread cannot be cancelled.
        """
        try:
            await trio.sleep_forever()
        finally:
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.stop()

    async def _decide_mode(self) -> None:
        """Find out whether notifications arrive. If they do not, fall back to polling.

        In a served vault, no probe file is created. The mode then depends on the type of the file system.
        """
        if self._files.is_foreign:
            kind = await self._blocking.run(lambda: remote_file_system(str(self._files.root)))
            if kind is not None:
                self._poll(f"{kind} reports only changes made on this machine")
            self._is_undecided = False
            log.info("watch mode", mode=self.mode)
            return
        self._probe = Probe(self._files, self._blocking)
        try:
            works = await self._probe.is_noticed()
        except OSError as failure:
            if await self._blocking.run(lambda: folder_identity(self._files)) is None:
                return  # The folder is missing, so the mode remains undecided.
            log.warning("watch mode not tested", reason=str(failure))
            works = False
        finally:
            self._probe = None
        if not works:
            self._poll("notifications do not arrive")
        self._is_undecided = False
        log.info("watch mode", mode=self.mode)

    async def _keep_looking(self) -> None:
        while True:
            began = trio.current_time()
            try:
                if self._is_undecided:
                    await self._decide_mode()
                await self._look()
                self._tell("looking", None)
            except (OSError, ActorDown, trio.TooSlowError) as failure:
                self._tell("looking", f"the folder cannot be checked: {failure}")
            except ShuttingDown:
                return
            took = trio.current_time() - began
            # The watcher is busy for at most half of the time. The pause is limited, because a check may hang
            # for hours, for example while the machine sleeps.
            await trio.sleep(max(TICK - took, min(took, LONGEST_PAUSE)))

    async def _look(self) -> None:
        """Run one tick: check the folder's identity, watch coverage, changed files and the deletion guard."""
        self._ticks += 1
        identity, is_other, linked = await self._blocking.run(
            lambda: (
                folder_identity(self._files),
                self._files.refresh_ignored(),
                linked_identities(self._files),
            )
        )
        if is_other:
            log.info("note files selected again, vault settings or linked folders changed")
            self._seen = None
            self._compare()
        if linked != self._linked:
            log.info("linked folders changed", before=len(self._linked), now=len(linked))
            self._linked = linked
            self._is_rearming = self._is_armed
            self._stop_listening()  # The next watch covers the new folders.
            self._seen = None
            self._compare()
        if identity != self._identity:
            log.warning("notes folder " + ("replaced" if identity else "gone"))
            self._identity = identity
            self._stop_listening()
            self._seen = None
            self._compare()
        if self.mode != "off":
            self._tell("folder", None if identity else "the notes folder is missing")
        if self.mode == "native" and self._is_armed:
            self._judge_coverage(await self._coverage.shortage())
        is_blind = self.mode == "poll" or (
            self.mode == "native" and (not self._is_armed or self._coverage.is_short)
        )
        if is_blind:
            await self._compare_with_memory()
        if self.mode != "off" and self._ticks % SAFETY_TICKS == 0:
            self._coverage.doubt()
            self._compare()
        await self._look_after_guard()

    def _judge_coverage(self, shortage: str | None) -> None:
        if shortage is not None and self._may_poll:
            self._poll(shortage)
        else:
            self._tell("coverage", shortage)

    async def _compare_with_memory(self) -> None:
        """When polling, compare the tree with the last snapshot.

        Add only the differing paths to the queue.
        """
        look = partial(look_again, self._files, self._seen)
        self._seen, touched = await self._blocking.run(look)
        if touched is None:
            self._compare()
        elif touched:
            self._pending.touch_now(touched, trio.current_time())
            self._wake.set()

    async def _look_after_guard(self) -> None:
        """Release notes from the guard that returned, moved or were deleted, or whose loss was accepted."""
        given_up = await self._guard.take_approval()
        if given_up is not None:
            await self._taking.drop(given_up)
        kept = dict(self._guard.kept)
        if kept:
            over = await self._blocking.run(self._guard.returned)
            if over:  # Their folder is there again, so a file that is still missing was deleted.
                await self._guard.release(over)
                self._pending.touch((kept[note_id] for note_id in over), trio.current_time())
                self._wake.set()
                kept = dict(self._guard.kept)
            entries = [entry for note_id in kept if (entry := self._catalogue.get(note_id)) is not None]
            there = await self._blocking.run(lambda: held_notes(self._files, entries))
            over = [
                note_id for note_id, path in kept.items() if note_id in there or self._left(note_id, path)
            ]
            if over:
                await self._guard.release(over)
                self._pending.touch((kept[note_id] for note_id in over), trio.current_time())
                self._wake.set()
                for indexer in self._indexers:
                    indexer.mark_stale()  # An index that was built in the meantime may lack the note.
        if given_up is not None:
            await self._guard.settle_approval()

    def _left(self, note_id: str, path: str) -> bool:
        entry = self._catalogue.get(note_id)
        return entry is None or entry.path != path

    def _compare(self) -> None:
        self._pending.compare_now(trio.current_time())
        self._wake.set()

    async def _keep_settling(self) -> None:
        while True:
            with trio.move_on_at(self._pending.due):
                await self._wake.wait()
            self._wake = trio.Event()
            if self._pending.due > trio.current_time():
                continue
            noticed = self._pending.take()
            try:
                await self._taking.settle(noticed)
                self._tell("settling", None)
            except (OSError, ActorDown, trio.TooSlowError) as failure:
                self._tell("settling", f"changes could not be processed: {type(failure).__name__}: {failure}")
                self._pending.touch(noticed.touched, trio.current_time())
                self._compare()
                await trio.sleep(RETRY)
            except ShuttingDown:
                return

    def _tell(self, part: str, trouble: str | None) -> None:
        """Set or clear the health problem of one part of the watcher.

        A problem is logged once. It is shown in the health report until it is cleared.
        """
        if trouble is None:
            self._troubles.pop(part, None)
            return
        if self._troubles.get(part) != trouble:
            log.error("watcher failing", reason=trouble)
        self._troubles[part] = trouble
