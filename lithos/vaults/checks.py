"""The doctor check for notes that exist in more than one vault."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lithos.kernel.values.findings import DOCTOR, CheckFinding, check, has_data, ok, warn
from lithos.upkeep.checks.checks import Installed


@check("other vaults", DOCTOR, place=155, when=lambda each: has_data(each) and each.elsewhere is not None)
async def check_elsewhere(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report notes that also exist in another vault. The usual cause is an interrupted move."""
    known, doubles = {} if patient.elsewhere is None else patient.elsewhere, 0
    for entry in patient.survey.catalogue:
        if not entry.identified:  # Without an id, files at the same path get the same id.
            continue
        name, path = known.setdefault(entry.note.id, (patient.vault, entry.path))
        if name != patient.vault:
            doubles += 1
            yield warn(
                f"The note {entry.note.id} is in two vaults: {name} at {path} and {patient.vault} "
                f"at {entry.path}. A move to another vault may have been interrupted.",
                "Move the note again (lithos_note_move with vault and to_vault), or delete one of the two.",
            )
    if not doubles:
        yield ok("No note exists in more than one vault.")
