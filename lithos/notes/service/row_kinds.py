"""Kinds of rows. Most rows describe notes, some describe other files of the vault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lithos.kernel.values.errors import InvalidInput

NOTE: Final = "note"
ATTACHMENT: Final = "attachment"
KINDS: Final = (NOTE, ATTACHMENT)
#: Description of the parameter `kinds`.
KINDS_TOLD: Final = "note, attachment (PDF, ...); default both."
#: Message for a request for attachment rows while attachments are disabled.
ATTACHMENTS_OFF: Final = (
    "Attachments are not available: attachments.enabled is off. Turn it on and restart the server."
)


def read_kinds(given: Sequence[str] | None, default: Sequence[str] = KINDS) -> frozenset[str]:
    """Return the requested kinds of rows. Raises `InvalidInput` if a kind is unknown."""
    for kind in given or ():
        if kind not in KINDS:
            raise InvalidInput(f"kinds may contain {NOTE} and {ATTACHMENT}, not {kind[:100]!r}.")
    return frozenset(given or default)
