"""A note moves to another vault of the same process, with its kept versions (docs/spec/vaults.md §2).

It is written there, then deleted here, under one intent in the `.lithos` of the vault that it leaves. That is
durable before the first step and goes after the last, so that what a killed process began is settled by
`VaultMoving.resume`: the note is in one vault then, never in none and never in two. Where it was changed or
deleted here after it was written there, and where it cannot be deleted here, the move stops: what was written
there is taken back, and the change stays. Without `expected_version` it is then moved as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.actors.blocking import Threads
from lithos.actors.kit import ActorDown, ShuttingDown
from lithos.actors.writing.messages import ACTING, DeleteNote, WriteOutcome
from lithos.catalogue.catalogue import Entry
from lithos.core.errors import (
    DocNotFound,
    LithosError,
    StorageFailed,
    VersionConflict,
)
from lithos.core.events import TAKING_BACK, TOOL
from lithos.core.principals import Principal
from lithos.services.notes.knowledge import WRITE_DEADLINE, ask_patiently
from lithos.services.notes.moving import RESUMED
from lithos.services.services import Services
from lithos.services.vaults.move_plans import VaultMovePlan, VaultMovePlanning
from lithos.stores.notes.displaced import VaultMoveIntent
from lithos.telemetry import get_logger

log = get_logger("lithos.vaults")

#: How often a note that is changed meanwhile is moved again.
RETRIES: Final = 5
#: Seconds for all of a move once it has begun.
CARRIED_OUT: Final = 180.0
_INTERRUPTED: Final = (ActorDown, ShuttingDown, trio.TooSlowError)


@frozen(kw_only=True)
class VaultMove:
    """What was done; `outcome` is that of the note in the target, `former_path` where it was here.

    `versions` is how many kept versions went along; `left` how many did not, as they are damaged, too large
    together, or no history is kept there: they stay readable here. `unresolved` is how many notes of this
    vault have links to it, which lead nowhere now.
    """

    outcome: WriteOutcome
    former_path: str
    versions: int
    left: int
    unresolved: int


class VaultMoving:
    """Moves notes from one vault to another, one at a time; one object for a pair serves all callers."""

    def __init__(self, source: Services, target: Services, target_name: str) -> None:
        """`target_name` is the target's name in the configuration, by which a later process finds it."""
        if source is target:
            raise ValueError("A vault is no other vault than itself")
        self._source = source
        self._target = target
        self._target_name = target_name
        self._intents = source.actors.stores.vault_moves
        self._planning = VaultMovePlanning(source, target, target_name)
        self._working = Threads()
        self._turn = trio.Lock()

    # -- moving ----------------------------------------------------------------------------------

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
        """Move a note; returns once it is durable, indexed and journalled there, and deleted here.

        `path` is a folder or a file of the target, None the path that it has here. `by` is on whose behalf,
        None that of this task (`acting_as`); `by_there` the same as the target knows it, None: as `by`.

        Raises `Forbidden` outside of a token's rights and scopes in either vault, `DocNotFound`,
        `VersionConflict`, `PathCollision`, `SlugCollision`, `Duplicate` (also of the id) and `InvalidInput`:
        nothing was changed. `StorageFailed` says what is the case.
        """
        caller = by or ACTING.get()
        await self._source.opening.wait_known()
        await self._target.opening.wait_known()
        async with self._turn:
            await self._settle_earlier(note_id)
            for attempt in range(1, RETRIES + 1):
                plan = await self._planning.plan(
                    note_id, agent, path, expected_version, caller, by_there or caller
                )
                try:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CARRIED_OUT):
                        return await self._carry_out(plan)
                except VersionConflict:
                    is_gone = note_id not in self._source.catalogue
                    if expected_version is not None or is_gone or attempt == RETRIES:
                        raise
                    continue
                raise _interrupted("it took too long")
        raise AssertionError("the last attempt returns or raises")

    async def _settle_earlier(self, note_id: str) -> None:
        """Settle what an earlier call could not finish. Raises `StorageFailed` where it cannot be now."""
        intent = await self._working.run(lambda: self._intents.find(note_id))
        if intent is None:
            return
        if intent.target != self._target_name:
            raise _is_moving()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CARRIED_OUT), _honest():
            await self._settle(intent)

    async def _carry_out(self, plan: VaultMovePlan) -> VaultMove:
        intent = plan.intent
        try:
            await self._working.run(lambda: self._intents.begin(intent))
        except FileExistsError:
            raise _is_moving() from None
        except OSError as failure:
            raise StorageFailed(
                f"The record of the move cannot be kept: {failure.strerror or failure}. Nothing was changed; "
                "make room on the disk, then move the note again."
            ) from failure
        with _honest():
            self._source.coordinator.touch(intent.agent)
            if intent.was_there:
                there = self._target.catalogue.get(intent.id)
                version = there.note.version if there is not None else intent.version
                outcome = WriteOutcome("created", intent.id, intent.new, version)
            else:
                outcome = await self._write(plan)
            await self._delete(intent)
            await self._working.run(lambda: self._intents.remove(intent.id))
        log.info("note moved to another vault", path=intent.path, to_vault=intent.target, new=intent.new)
        return VaultMove(
            outcome=outcome,
            former_path=intent.path,
            versions=0 if intent.was_there else len(plan.request.past),
            left=plan.left,
            unresolved=plan.unresolved,
        )

    async def _write(self, plan: VaultMovePlan) -> WriteOutcome:
        """Write the note there. What is refused is as if nothing had begun."""
        target, intent = self._target, plan.intent
        target.coordinator.touch(intent.agent)
        try:
            return await ask_patiently(target.actors.writer.mailbox, plan.request, WRITE_DEADLINE)
        except LithosError:
            there = target.catalogue.get(intent.id)
            if there is not None and (there.digest, there.path) == (intent.digest, intent.new):
                await self._take_back(intent)  # it is there, but not as promised: not indexed or journalled
            await self._working.run(lambda: self._intents.remove(intent.id))
            raise

    async def _delete(self, intent: VaultMoveIntent) -> None:
        """Delete the note here as it was written there, or take that back and raise why.

        A note that is gone here although the answer is a failure, as of an index, counts as deleted.
        """
        try:
            await self._ask_deletion(self._source, intent, expected=intent.version)
        except LithosError as refusal:
            is_gone = intent.id not in self._source.catalogue
            if not is_gone or isinstance(refusal, DocNotFound):
                await self._take_back(intent)
            await self._working.run(lambda: self._intents.remove(intent.id))
            raise

    async def _take_back(self, intent: VaultMoveIntent) -> None:
        """Remove what was written there; it has it no more then.

        Where somebody changed it there meanwhile, that stays in the history there. Raises `StorageFailed`
        where no history is kept: nothing of it is removed, and the intent stays.
        """
        if intent.was_there:
            return
        ask = partial(self._ask_deletion, self._target, intent, source=TAKING_BACK)
        try:
            await ask(expected=intent.new_version)
        except DocNotFound:
            return
        except VersionConflict:
            if self._target.actors.stores.history is None:
                log.error(
                    "note changed in both vaults", path=intent.path, to_vault=intent.target, new=intent.new
                )
                raise StorageFailed(
                    f"While it was moved, the note was changed here and in the vault {intent.target}, so it "
                    f"is in both, here at {intent.path}, there at {intent.new}. Bring both together, then "
                    "delete one."
                ) from None
            log.warning("changed copy taken back", path=intent.new, to_vault=intent.target)
            await ask(expected=None)

    async def _ask_deletion(
        self, vault: Services, intent: VaultMoveIntent, *, expected: int | None, source: str = TOOL
    ) -> None:
        request = DeleteNote(
            id=intent.id, agent=intent.agent, expected_version=expected, source=source, by=RESUMED
        )
        await ask_patiently(vault.actors.writer.mailbox, request, WRITE_DEADLINE)

    # -- after a start ---------------------------------------------------------------------------

    async def resume(self) -> int:
        """Settle what an earlier process began to move to this target; how many moves could not be.

        For a start, once both vaults are open. What cannot be settled is logged and left to the next start,
        or to the next move of the note.
        """
        await self._source.opening.wait_known()
        await self._target.opening.wait_known()
        left = 0
        async with self._turn:
            try:
                pending = await self._working.run(self._intents.pending)
            except OSError as failure:
                log.error("moves to other vaults that were begun cannot be read", reason=str(failure))
                return 0
            for intent in pending:
                if intent.target != self._target_name:
                    continue
                try:
                    await self._settle(intent)
                except (LithosError, OSError, *_INTERRUPTED) as failure:
                    left += 1
                    log.error(
                        "move to another vault not finished",
                        path=intent.path, to_vault=intent.target, reason=str(failure),
                    )  # fmt: skip
        return left

    async def _settle(self, intent: VaultMoveIntent) -> None:
        """Finish a move or undo it, by where the note is now."""
        here, there = self._source.catalogue.get(intent.id), self._target.catalogue.get(intent.id)
        if here is not None and there is not None:
            if await self._working.run(lambda: self._came_from_here(intent, there)):
                return await self._delete_later(intent)
            log.error("note is in two vaults", path=intent.path, to_vault=intent.target, new=there.path)
        elif here is not None:
            # Nobody was told that it is moved.
            log.warning("move to another vault given up: it was not written", path=intent.path)
        await self._working.run(lambda: self._intents.remove(intent.id))
        return None

    async def _delete_later(self, intent: VaultMoveIntent) -> None:
        """Finish a move; where that stops it and nothing of it is left, this is all that is to be told."""
        try:
            await self._delete(intent)
        except LithosError as refusal:
            if await self._working.run(lambda: self._intents.find(intent.id)) is not None:
                raise
            log.warning("move to another vault undone", path=intent.path, reason=refusal.message)
        await self._working.run(lambda: self._intents.remove(intent.id))

    def _came_from_here(self, intent: VaultMoveIntent, there: Entry) -> bool:
        """Whether the target's note is what the move wrote, changed since or not. Blocks."""
        if intent.new == there.path or intent.digest == there.digest:
            return True
        history = self._target.actors.stores.history
        return history is not None and history.knows(intent.id, intent.digest)


async def pending_targets(source: Services) -> tuple[str, ...]:
    """The names of the vaults to which moves from this one were begun: each pair is to be resumed."""
    pending = await Threads().run(source.actors.stores.vault_moves.pending)
    return tuple(sorted({intent.target for intent in pending}))


@contextmanager
def _honest() -> Iterator[None]:
    """Tell of a move that stopped in the middle that it did; its intent stays."""
    try:
        yield
    except _INTERRUPTED as failure:
        raise _interrupted(str(failure) or "it took too long") from failure
    except OSError as failure:  # of the intent's file
        raise _interrupted(failure.strerror or str(failure)) from failure


def _interrupted(reason: str) -> StorageFailed:
    return StorageFailed(
        f"The move to another vault was interrupted: {reason}. It is finished or undone at the next start, "
        "or when the note is moved again; read the note in both vaults first."
    )


def _is_moving() -> StorageFailed:
    """It does not say where to: the caller may not know of that vault."""
    return StorageFailed(
        "This note is being moved to another vault already. Nothing was changed; look for it in a moment."
    )
