"""Updates that merge with what happened since the version their caller had read (`on_conflict: merge`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import attrs

from lithos.actors.blocking import Blocking
from lithos.actors.writing.messages import MERGE, UpdateRequest, WriteOutcome
from lithos.catalogue.catalogue import Catalogue
from lithos.core.errors import VersionConflict
from lithos.stores.history.reading import HistoryReading

#: The largest version number that a store can hold.
_LARGEST: Final = 2**63 - 1

R = TypeVar("R", bound=UpdateRequest)


class Merging:
    """Gives requests their base, from the history."""

    def __init__(self, catalogue: Catalogue, history: HistoryReading | None, reading: Blocking) -> None:
        """`history` is None where it is disabled; it is read with `reading`."""
        self._catalogue = catalogue
        self._history = history
        self._reading = reading

    async def submit(self, request: R, submit: Callable[[R], Awaitable[WriteOutcome]]) -> WriteOutcome:
        """Submit a request; one that is to be merged, and is not current, with its base.

        The base is read only where it is needed: when the note is known to be at a later version, or the
        writer says so. What is newer than the catalogue may be a row of a change that is being refused: the
        writer has dropped that one before it answers. Raises what `submit` does; `VersionConflict` also where
        there is no base.
        """
        expected = request.expected_version
        if request.on_conflict != MERGE or request.id is None or expected is None:
            return await submit(request)
        entry = self._catalogue.get(request.id)
        is_outdated = entry is not None and entry.note.version > expected
        base = await self._read(request.id, expected) if is_outdated else None
        try:
            return await submit(attrs.evolve(request, base=base))
        except VersionConflict as conflict:
            if base is not None:
                raise
            refusal = conflict
        base = None if is_outdated else await self._read(request.id, expected)
        if base is None:
            raise self._no_base(expected, refusal)
        return await submit(attrs.evolve(request, base=base))

    async def _read(self, note_id: str, version: int) -> bytes | None:
        history = self._history
        if history is None or not 0 < version <= _LARGEST:
            return None
        return await self._reading.run(lambda: history.content(note_id, version))

    def _no_base(self, expected: int, refusal: VersionConflict) -> VersionConflict:
        current = refusal.extras["current_version"]
        reason = f"version {expected} is not kept, or there was none"
        if self._history is None:
            reason = "no versions are kept (history.enabled is off)"
        return VersionConflict(
            f"The note is at version {current}, not {expected}, and cannot be merged: {reason}. Nothing "
            "was written. Read the note again, put both changes together and retry with expected_version "
            f"{current}.",
            **refusal.extras,
        )
