"""The settings of sessions."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import NAMES, setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class SessionsConfig:
    """Which transcripts of AI clients are indexed, and for how long their text is kept."""

    folders: tuple[str, ...] = setting(
        (),
        "Transcripts to index: `claude-code`, `codex`, `gemini`, `opencode`, or paths of folders and files "
        "of JSON lines. `lithos sessions add` adds more. Transcripts are never changed.",
        NAMES,
    )
    keep_days: int = setting(
        90,
        "Number of days for which the text of a session is kept after its transcript was deleted. 0 deletes "
        "it at once.",
        whole(0, 100_000),
    )
    link_notes: bool = setting(
        True,
        "Whether a new note names the session in which an agent writes it as its source. Only if the session "
        "is known and indexed, and the note has no other source.",
    )


SETTINGS: Final = (SettingsSection("sessions", SessionsConfig, place=85),)
