"""Kinds of rows. Most rows describe notes, some describe other files of the vault or past sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lithos.kernel.values.errors import InvalidInput

NOTE: Final = "note"
ATTACHMENT: Final = "attachment"
KINDS: Final = (NOTE, ATTACHMENT)
#: A past session with an AI client. Only searches that ask for sessions return them.
SESSION: Final = "session"
ALL_KINDS: Final = (*KINDS, SESSION)
#: Beginnings of the ids and addresses of sessions.
SESSION_IDS: Final = ("ses_", "session:")
#: Description of the parameter `kinds`.
KINDS_TOLD: Final = "note, attachment (PDF, ...), session (past turns); default the first two."
#: Message for a request for attachment rows while attachments are disabled.
ATTACHMENTS_OFF: Final = (
    "Attachments are not available: attachments.enabled is off. Turn it on and restart the server."
)


#: Message for a request for rows of sessions while no transcripts are added.
SESSIONS_OFF: Final = (
    "Past sessions are not available: no transcripts are added. A person can add some with lithos sessions "
    "add, for example lithos sessions add claude-code."
)


def read_kinds(
    given: Sequence[str] | None, default: Sequence[str] = KINDS, known: Sequence[str] = KINDS
) -> frozenset[str]:
    """Return the requested kinds of rows. Raises `InvalidInput` if a kind is not `known`."""
    for kind in given or ():
        if kind not in known:
            may = f"{', '.join(known[:-1])} and {known[-1]}"
            raise InvalidInput(f"kinds may contain {may}, not {kind[:100]!r}.")
    return frozenset(given or default)
