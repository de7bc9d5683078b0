"""The settings of following the files."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from lithos.config.rules import setting, whole
from lithos.config.sections import Section


@frozen(kw_only=True)
class IndexConfig:
    """Following the files."""

    rebuild_on_start: bool = setting(False, "Build every index anew at each start.")
    watch_debounce_ms: int = setting(
        500, "Milliseconds of quiet before outside changes are taken in.", whole(0, 60_000)
    )
    watch_mode: Literal["auto", "native", "poll"] = setting(
        "auto", "How outside changes are noticed; `auto` tries notifications, then polls."
    )


SETTINGS: Final = (
    Section(
        "index",
        IndexConfig,
        place=40,
        retired={
            "index.max_vanished_fraction": "more than half of the notes must vanish for all to be kept",
        },
    ),
)
