"""Settings for task claims."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import number, setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class CoordinationConfig:
    """Settings for task claims.

    If a requested duration exceeds the maximum, it is shortened, never refused.
    """

    claim_default_ttl_minutes: int = setting(
        60, "Default duration of a claim, in minutes.", whole(1, 525_600)
    )
    claim_max_ttl_minutes: int = setting(480, "Maximum duration of a claim, in minutes.", whole(1, 525_600))
    strict: bool = setting(
        False,
        "Refuse claims on blocked tasks, and completions of tasks on which only other agents have claims.",
    )
    max_attempts: int = setting(
        3,
        "Maximum number of failed attempts at a task (`lithos_task_release` with `failed`). The "
        "task fails after the last one.",
        whole(1, 1_000),
    )
    retry_minutes: float = setting(
        1,
        "Minutes until a task is offered again after its first failed attempt. The pause doubles "
        "with each further attempt.",
        number(0.1, 1_440),
    )


SETTINGS: Final = (
    SettingsSection(
        "coordination",
        CoordinationConfig,
        place=50,
        older={"coordination.claim_ttl_minutes": "coordination.claim_default_ttl_minutes"},
    ),
)
