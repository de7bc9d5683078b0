"""Settings for proposals that wait for a person's decision."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class ProposalsConfig:
    """Settings for proposals that wait for a person's decision."""

    days: int = setting(30, "Number of days after which a pending proposal expires.", whole(1, 3_650))


SETTINGS: Final = (SettingsSection("proposals", ProposalsConfig, place=60),)
