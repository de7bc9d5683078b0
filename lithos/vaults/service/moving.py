"""Moving a note with its stored versions to another vault of the same process (docs/spec/vaults.md §2).

The note is first written to the target and then deleted in the source. Both writes are crash-safe. If the
process ends between them, both vaults have the note and nothing is lost: `lithos doctor` reports the note,
and repeating the move finishes it. If the source note changes, disappears or cannot be deleted after the copy
was written, the copy is deleted. Without `expected_version`, a changed note is then moved in another attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import DocNotFound, LithosError, StorageFailed, VersionConflict
from lithos.kernel.values.events import TAKING_BACK, TOOL
from lithos.kernel.values.principals import ACTING, Principal
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.knowledge import WRITE_DEADLINE, ask_patiently
from lithos.notes.service.moving import RESUMED
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.messages import DeleteNote, WriteOutcome
from lithos.vaults.service.move_plans import VaultMovePlan, VaultMovePlanning

log = get_logger("lithos.vaults")

#: Maximum number of attempts to move a note that keeps changing.
RETRIES: Final = 5
#: Maximum duration, in seconds, of a move after it has started.
CARRIED_OUT: Final = 180.0
_INTERRUPTED: Final = (ActorDown, ShuttingDown, trio.TooSlowError)


@frozen(kw_only=True)
class VaultMove:
    """Result of a move.

    `outcome` describes the note in the target, and `former_path` is its path in the source.

    `versions` counts the versions that were moved. `left` counts versions that stay readable in the source
    because they are damaged, too large in total, or the target stores no history. `unresolved` counts notes
    of the source vault whose links to the moved note are now broken.
    """

    outcome: WriteOutcome
    former_path: str
    versions: int
    left: int
    unresolved: int


class VaultMoving:
    """Service that moves notes between two vaults, one note at a time.

    All callers share one object per pair of vaults.
    """

    def __init__(self, source: Parts, target: Parts, target_name: str) -> None:
        """`target_name` is the configured name of the target. Errors and logs use it."""
        if source is target:
            raise ValueError("A note cannot be moved within the same vault")
        self._source = source
        self._target = target
        self._target_name = target_name
        self._planning = VaultMovePlanning(source, target, target_name)
        self._turn = trio.Lock()

    async def move(
        self,
        *,
        note_id: str,
        agent: str,
        path: str | None = None,
        expected_version: int | None = None,
        by: Principal | None = None,
        by_there: Principal | None = None,
    ) -> VaultMove:
        """Move a note to the target vault.

        Returns once the note is durable, indexed and journalled in the target, and deleted in the source.

        `path` is a folder or file of the target. If it is None, the note's path is kept. `by` is the
        principal who moves the note. The default is the principal of this task (`acting_as`). `by_there` is
        this principal's counterpart in the target. The default is `by`.

        Raises `Forbidden` outside a token's rights and scopes in either vault, `DocNotFound`,
        `VersionConflict`, `PathCollision`, `SlugCollision`, `Duplicate` (also for the id) and `InvalidInput`.
        After these errors nothing is changed. The text of `StorageFailed` describes the state of both vaults.
        """
        caller = by or ACTING.get()
        await self._source.get(Opening).wait_known()
        await self._target.get(Opening).wait_known()
        async with self._turn:
            for attempt in range(1, RETRIES + 1):
                plan = await self._planning.plan(
                    note_id, agent, path, expected_version, caller, by_there or caller
                )
                try:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CARRIED_OUT):
                        if plan.copy is not None and not plan.was_there:
                            await self._take_back(plan, plan.copy.note.version)
                            continue
                        return await self._carry_out(plan)
                except VersionConflict:
                    is_gone = note_id not in self._source.get(Catalogue)
                    if expected_version is not None or is_gone or attempt == RETRIES:
                        raise
                    continue
                raise _interrupted("it took too long")
        raise _interrupted("the note kept changing")

    async def _carry_out(self, plan: VaultMovePlan) -> VaultMove:
        request = plan.request
        with _honest():
            self._source.get(Coordinator).touch(request.agent)
            if plan.was_there and plan.copy is not None:
                outcome = WriteOutcome("created", request.id, request.path, plan.copy.note.version)
            else:
                outcome = await self._write(plan)
            await self._delete(plan)
        log.info("note moved to another vault", path=plan.path, to_vault=self._target_name, new=request.path)
        return VaultMove(
            outcome=outcome,
            former_path=plan.path,
            versions=0 if plan.was_there else len(request.past),
            left=plan.left,
            unresolved=plan.unresolved,
        )

    async def _write(self, plan: VaultMovePlan) -> WriteOutcome:
        """Write the note to the target vault. If the write is refused, nothing was changed."""
        target, request = self._target, plan.request
        target.get(Coordinator).touch(request.agent)
        try:
            return await ask_patiently(target.get(Writer).mailbox, request, WRITE_DEADLINE)
        except LithosError:
            there = target.get(Catalogue).get(request.id)
            if there is not None and there.note.version == request.document.note.version:
                await self._take_back(plan, there.note.version)  # written, but not indexed or journalled
            raise

    async def _delete(self, plan: VaultMovePlan) -> None:
        """Delete the source note if it still equals the copy. Otherwise delete the copy and raise the cause.

        If the source note is deleted but an error occurs, for example in an index, the copy stays, and the
        error is raised.
        """
        try:
            await self._ask_deletion(self._source, plan, expected=plan.version)
        except LithosError as refusal:
            is_gone = plan.request.id not in self._source.get(Catalogue)
            if not plan.was_there and (not is_gone or isinstance(refusal, DocNotFound)):
                await self._take_back(plan, plan.request.document.note.version)
            raise

    async def _take_back(self, plan: VaultMovePlan, version: int) -> None:
        """Delete the copy of the note in the target. Raises `StorageFailed` if the copy has changed."""
        ask = partial(self._ask_deletion, self._target, plan, source=TAKING_BACK)
        try:
            await ask(expected=version)
        except DocNotFound:
            return
        except VersionConflict:
            log.error("note changed in both vaults", path=plan.path, to_vault=self._target_name)
            raise StorageFailed(
                f"The note was changed here and in the vault {self._target_name} during the move. "
                f"Both vaults have it now: here at {plan.path}, there at {plan.request.path}. "
                "Merge the two texts, then delete one note."
            ) from None

    async def _ask_deletion(
        self, vault: Parts, plan: VaultMovePlan, *, expected: int, source: str = TOOL
    ) -> None:
        request = DeleteNote(
            id=plan.request.id,
            agent=plan.request.agent,
            expected_version=expected,
            source=source,
            by=RESUMED,
        )
        await ask_patiently(vault.get(Writer).mailbox, request, WRITE_DEADLINE)


@contextmanager
def _honest() -> Iterator[None]:
    """Convert the interruption of a move to an error that names the possible states of both vaults."""
    try:
        yield
    except _INTERRUPTED as failure:
        raise _interrupted(str(failure) or "it took too long") from failure


def _interrupted(reason: str) -> StorageFailed:
    return StorageFailed(
        f"The move to another vault was interrupted: {reason}. Both vaults may have the note now. "
        "Read it in both, then move it again, or delete one."
    )
