"""The settings of the care of notes."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class CareConfig:
    """Checks for notes that need attention."""

    days: int = setting(
        180,
        "Days without a change, a read or a citation after which a note counts as not used; reads are known "
        "for `events.audit_days`.",
        whole(1, 36_500),
    )


SETTINGS: Final = (SettingsSection("care", CareConfig, place=70),)
