"""The settings for note care."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class CareConfig:
    """Settings of the checks that find notes that need attention."""

    days: int = setting(
        180,
        "Number of days without a change, read or citation after which a note counts as unused. Reads are "
        "known only for the last `events.audit_days` days.",
        whole(1, 36_500),
    )


SETTINGS: Final = (SettingsSection("care", CareConfig, place=70),)
