"""The deletion guard. A mass loss of notes is probably caused by an unmounted folder, not by deletions.

Notes that the guard keeps remain in the catalogue and the indexes until the files return or an operator
accepts the loss (docs/spec/lifecycle.md §6). Losses in several batches are added up over a sliding window of
`WINDOW` seconds. As long as the guard keeps a note, it also keeps all notes that vanish later. The list of
kept files survives a restart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.model.plan import MASS_LOSS, VanishRule, is_mass_loss

log = get_logger("lithos.guard")

#: Length in seconds of the window in which losses are added up. An `rm -r` takes less time, and a person
#: needs more time between two actions.
WINDOW = 10.0
#: Advice to operators in warnings about vanished files.
WAY_OUT = "put the files back, or, if their deletion was intended, run `lithos reconcile --accept-vanished`"


@define(eq=False)
class DeletionGuard:
    """Guard that decides which missing notes may be dropped.

    The server start sets up the guard. After that, only the watcher changes it.
    """

    catalogue: Catalogue
    files: NoteFiles
    _store: VanishedFiles
    blocking: Blocking
    _kept: dict[str, str] = field(factory=dict, init=False)
    _dropped: deque[tuple[float, int]] = field(factory=deque, init=False)

    @property
    def vanished(self) -> int:
        """Number of notes that are kept although their files have vanished."""
        return len(self._kept)

    @property
    def kept(self) -> Mapping[str, str]:
        """The kept notes: last known path by note id."""
        return self._kept

    def start_rule(self) -> VanishRule:
        """Return the rule that determines which vanished notes the scan at start keeps. Blocks."""
        return VanishRule(
            MASS_LOSS,
            self.files.root_was_missing,
            self._store.kept(),
            self._store.approved(),
            self.files.linked.away(),
        )

    async def begin(self, vanished: Iterable[str], *, is_settled: bool) -> None:
        """Start with the notes that the scan kept. If `is_settled`, the scan has carried out the approval."""
        self._keep(entry for note_id in vanished if (entry := self.catalogue.get(note_id)) is not None)
        await self._save(settle_approval=is_settled)

    async def admit(self, missing: Sequence[Entry], now: float, *, is_folder_gone: bool) -> list[str]:
        """Check missing notes for a mass loss.

        Return the ids that may be dropped. The guard keeps the rest.
        """
        away = await self.blocking.run(self.files.linked.away) if self.files.linked else ()
        gone_with_folder = [entry for entry in missing if entry.path.startswith(away)]
        if gone_with_folder:
            self._keep(gone_with_folder)
            await self._save()
        lost = [entry for entry in self._lost(missing) if not entry.path.startswith(away)]
        # Notes of a linked folder that is away say nothing about the notes of the vault.
        is_keeping = any(self.files.linked.find(path) is None for path in self._kept.values())
        while self._dropped and self._dropped[0][0] <= now - WINDOW:
            self._dropped.popleft()
        recent = sum(number for _, number in self._dropped)
        corpus = len(self.catalogue) + recent
        if lost and (is_keeping or is_folder_gone or is_mass_loss(len(lost) + recent, corpus, MASS_LOSS)):
            self._keep(lost)
            await self._save()
        else:
            self._dropped.append((now, len(lost)))
        return [entry.note.id for entry in missing if entry.note.id not in self._kept]

    def returned(self) -> list[str]:
        """Return the ids of kept notes whose linked folder is there again, or no longer linked. Blocks."""
        linked = self.files.linked
        away = linked.away()
        return [
            note_id
            for note_id, path in self._kept.items()
            if (linked.find(path) is not None or linked.has_left(path)) and not path.startswith(away)
        ]

    async def release(self, note_ids: Iterable[str]) -> None:
        """Stop keeping notes that have returned, moved or been dropped."""
        for note_id in note_ids:
            self._kept.pop(note_id, None)
        if not self._kept:
            log.info("no vanished files left")
        await self._save()

    async def take_approval(self) -> list[str] | None:
        """Return the ids of kept notes whose loss an operator accepted.

        Without a new approval, return None.
        """
        if not await self.blocking.run(self._store.is_approval_waiting):
            return None
        approved = await self.blocking.run(self._store.approved)
        given_up = [note_id for note_id, path in self._kept.items() if path in approved]
        log.info("vanished files accepted as deleted", approved=len(approved), kept=len(self._kept))
        return given_up

    async def settle_approval(self) -> None:
        """Delete the operator's approval after it was carried out."""
        await self._save(settle_approval=True)

    def _lost(self, missing: Sequence[Entry]) -> list[Entry]:
        """Return the missing notes that count as lost.

        Ignored notes do not count as lost. Files without an id that moved and became different notes do not
        count either.
        """
        missing = [entry for entry in missing if not self.files.excludes(entry.path)]
        nameless = [entry for entry in missing if not entry.identified]
        if not nameless:
            return missing
        gone = {entry.note.id for entry in missing}
        there = {entry.digest for entry in self.catalogue if entry.note.id not in gone}
        return [entry for entry in missing if entry.identified or entry.digest not in there]

    def _keep(self, entries: Iterable[Entry]) -> None:
        before = len(self._kept)
        self._kept |= {entry.note.id: entry.path for entry in entries}
        if len(self._kept) > before:
            log.error(
                "note files vanished, nothing removed",
                vanished=len(self._kept),
                notes=len(self.catalogue),
                hint=WAY_OUT,
            )

    async def _save(self, *, settle_approval: bool = False) -> None:
        paths = list(self._kept.values())

        def save() -> None:
            self._store.keep(paths)
            if settle_approval:
                self._store.settle_approval()

        try:
            await self.blocking.run(save)
        except OSError as failure:
            log.error("list of vanished files not written", reason=str(failure))
