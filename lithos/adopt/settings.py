"""Settings of adopted memory folders."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class MemoryConfig:
    """Settings of the memory folders of clients that `lithos adopt` serves."""

    trim: bool = setting(
        False,
        "Move lines of an adopted index file to a topic file if the client would not load them. If false, "
        "`lithos doctor` and the console only warn.",
    )


SETTINGS: Final = (SettingsSection("memory", MemoryConfig, place=115),)
