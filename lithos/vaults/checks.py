"""The check of notes that are in several vaults."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lithos.kernel.values.findings import DOCTOR, CheckFinding, check, has_data, ok, warn
from lithos.upkeep.checks.checks import Installed


@check("other vaults", DOCTOR, place=155, when=lambda each: has_data(each) and each.elsewhere is not None)
async def check_elsewhere(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Whether another vault has a note too: of a move that did not end."""
    known, doubles = {} if patient.elsewhere is None else patient.elsewhere, 0
    for entry in patient.survey.catalogue:
        if not entry.identified:  # the same path gives two files the same id
            continue
        name, path = known.setdefault(entry.note.id, (patient.vault, entry.path))
        if name != patient.vault:
            doubles += 1
            yield warn(
                f"The note {entry.note.id} is in two vaults: {name} at {path}, {patient.vault} at "
                f"{entry.path}. A move to another vault may not have ended.",
                "Move it again (lithos_note_move with vault and to_vault), or delete one.",
            )
    if not doubles:
        yield ok("No note is in another vault too.")
