"""Settings for the versions of notes that are kept."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class HistoryConfig:
    """Settings for the number and age of the versions that are kept. 0 means no limit."""

    enabled: bool = setting(True, "Keep earlier versions of every note.")
    keep_days: int = setting(
        365,
        "Number of days for which a version is kept. The first and the newest version of a note are always "
        "kept. 0 means no limit.",
        whole(0, 1_000_000),
    )
    keep_versions: int = setting(
        200,
        "Maximum number of versions per note, not counting versions of the last 24 hours. 0 means no limit.",
        whole(0, 100_000),
    )
    keep_deleted_days: int = setting(
        365,
        "Number of days for which the versions of a deleted note are kept. 0 means no limit.",
        whole(0, 1_000_000),
    )


SETTINGS: Final = (SettingsSection("history", HistoryConfig, place=100),)
