"""The settings of which versions of notes are kept."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class HistoryConfig:
    """The versions of notes that are kept, and for how long; 0 means without limit."""

    enabled: bool = setting(True, "Keep every version of every note.")
    keep_days: int = setting(
        365, "Days for which versions are kept; the first and the newest always are.", whole(0, 1_000_000)
    )
    keep_versions: int = setting(
        200, "Versions of one note that are kept, not counting those of the last 24 hours.", whole(0, 100_000)
    )
    keep_deleted_days: int = setting(
        365, "Days for which the versions of a deleted note are kept.", whole(0, 1_000_000)
    )


SETTINGS: Final = (SettingsSection("history", HistoryConfig, place=100),)
