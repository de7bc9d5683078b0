"""Deliberate bugs that the simulation must find.

Each bug could also be introduced by a change of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest
import trio

import lithos.notes.catalogue.note_records
import lithos.notes.files.files
import lithos.tasks.board.task_board
import lithos.tasks.board.task_claims
import lithos.tasks.model.task
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.reading.event_stream import EventStream
from lithos.history.recording.recorder import Recorder
from lithos.kernel.databases.sqlite import Durability
from lithos.notes.files.replacing import Replacing
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.files.values import Put, state_of
from lithos.notes.writing.actor_publisher import Publisher
from lithos.search.indexing.ports import FulltextPort
from lithos.tasks.rows.tasks import TaskRows
from tests.simulation.loop import Killed

Patch = pytest.MonkeyPatch


def drop_fsync_of_notes(patch: Patch) -> None:
    """Do not sync the content of a note before its name."""
    sync = KernelCalls.fsync
    import os  # noqa: PLC0415 - hooked while a run is under way
    import stat  # noqa: PLC0415

    def fsync(self: KernelCalls, descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            sync(self, descriptor)

    patch.setattr(KernelCalls, "fsync", fsync)


def lose_a_rename(patch: Patch) -> None:
    """Do not sync a folder after a rename. A power failure then undoes the rename."""
    patch.setattr(lithos.notes.files.files, "sync_folder", lambda *_: None)


def drop_fsync_of_databases(patch: Patch) -> None:
    """Let commits return before the data are on the disk."""
    patch.setattr(Durability.FULL, "_value_", "NORMAL")


def acknowledge_early(patch: Patch) -> None:
    """Answer a write before the journal contains its event."""
    announce = Publisher._announce

    async def announce_later(self: Publisher, changes: Sequence[Any]) -> None:
        async def late() -> None:
            with suppress(Exception, Killed):  # drop the error without reporting it
                await trio.sleep(1.0)
                await announce(self, changes)

        if changes:
            trio.lowlevel.spawn_system_task(late, context=copy_context())

    patch.setattr(Publisher, "_announce", announce_later)


def swap_two_events(patch: Patch) -> None:
    """Deliver the last two events of a batch in the wrong order."""
    publish = Broadcaster.publish

    def swapped(self: Broadcaster, events: Sequence[Any]) -> None:
        publish(self, [*events[:-2], *reversed(events[-2:])])

    patch.setattr(Broadcaster, "publish", swapped)


def give_a_fence_twice(patch: Patch) -> None:
    """Read the fence counter without advancing it."""
    take = TaskRows.take_fence

    def take_fence(self: TaskRows) -> int:
        return take(self) // 4 * 4

    patch.setattr(TaskRows, "take_fence", take_fence)


def skip_the_fence_check(patch: Patch) -> None:
    """Accept an outdated fence like a valid fence."""
    for module in (lithos.tasks.board.task_claims, lithos.tasks.board.task_board):
        patch.setattr(module, "check_fence", lambda *_: None)


def grant_what_is_held(patch: Patch) -> None:
    """Grant one aspect to two agents at the same time."""
    module = lithos.tasks.board.task_claims
    check = lithos.tasks.model.task.check_claimable

    def check_claimable(task_id: str, task: Any, held: Any, *more: Any) -> Any:
        return check(task_id, task, None, *more)

    patch.setattr(module, "check_claimable", check_claimable)


def forget_an_index_entry(patch: Patch) -> None:
    """Omit the last note of a batch from the index."""
    apply = FulltextPort.apply

    def apply_most(self: FulltextPort, upserts: Sequence[Any], removals: Sequence[int]) -> None:
        apply(self, upserts[:-1] if len(upserts) > 1 else upserts, removals)

    patch.setattr(FulltextPort, "apply", apply_most)


def forget_versions(patch: Patch) -> None:
    """Discard the last version of a batch."""
    record = Recorder.record

    async def record_most(self: Recorder, versions: Sequence[Any], **more: Any) -> list[int]:
        return await record(self, versions[:-1] if len(versions) > 1 else versions, **more)

    patch.setattr(Recorder, "record", record_most)


def overwrite_what_changed(patch: Patch) -> None:
    """Write a file without checking that it is still the file on which the decision was based."""
    carry_out = Replacing.carry_out

    def carry_out_anyway(self: Replacing, change: Any, target: str) -> Any:
        if isinstance(change, Put) and change.expected is not None:
            with open(target, "wb") as file:
                file.write(change.data)
            return state_of(self._calls.lstat(target))
        return carry_out(self, change, target)

    patch.setattr(Replacing, "carry_out", carry_out_anyway)


def skip_an_event_at_a_resume(patch: Patch) -> None:
    """Skip the first event when a listener resumes."""
    known_position = EventStream._known_position

    def known(self: EventStream, since: str) -> int | None:
        position = known_position(self, since)
        return position if position is None or since == "0" else position + 1

    patch.setattr(EventStream, "_known_position", known)


def count_no_outside_edit(patch: Patch) -> None:
    """Give an external edit the version number of the text that it replaced."""
    patch.setattr(
        lithos.notes.catalogue.note_records,
        "effective_version",
        lambda own, _, last: max(own, last.version if last else own),
    )


BUGS: dict[str, Callable[[Patch], None]] = {
    function.__name__: function
    for function in (
        drop_fsync_of_notes, lose_a_rename, drop_fsync_of_databases, acknowledge_early, swap_two_events,
        give_a_fence_twice, skip_the_fence_check, grant_what_is_held, forget_an_index_entry, forget_versions,
        overwrite_what_changed, skip_an_event_at_a_resume, count_no_outside_edit,
    )
}  # fmt: skip
