"""Settings for notes: how Lithos detects file changes, and what agents may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.configuration.rules import Rule, are_patterns, setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class IndexConfig:
    """Settings for detecting changes of note files."""

    rebuild_on_start: bool = setting(False, "Rebuild all indexes from scratch at each start.")
    watch_debounce_ms: int = setting(
        500, "Milliseconds without further changes before an external edit is processed.", whole(0, 60_000)
    )
    watch_mode: Literal["auto", "native", "poll"] = setting(
        "auto",
        "How Lithos detects external edits. `native` uses notifications of the operating system, "
        "and `poll` compares the files regularly. `auto` polls only if notifications do not work.",
    )


def _are_agent_scopes(given: Mapping[str, Mapping[str, Sequence[str]]]) -> bool:
    if len(given) > 1_000 or not all(name.strip() and len(name) <= 200 for name in given):
        return False
    return all(
        name in ("write", "propose") and are_patterns(globs)
        for lists in given.values()
        for name, globs in lists.items()
    )


AGENT_SCOPES = Rule(
    "for each of at most 1000 agents `write` and `propose`, each a list of patterns such as plans/ or "
    "**/*.md",
    _are_agent_scopes,
)


@frozen(kw_only=True)
class AgentsConfig:
    """Settings for the paths that agents may change."""

    agents: Mapping[str, Mapping[str, tuple[str, ...]]] = setting(
        MappingProxyType({}),
        "Paths that each agent can change, by agent name: `write` for direct changes and "
        "`propose` for changes that a person must approve. If the token of an agent contains "
        "patterns, those patterns apply instead.",
        AGENT_SCOPES,
    )


SETTINGS: Final = (
    SettingsSection(
        "index",
        IndexConfig,
        place=40,
        retired={
            "index.max_vanished_fraction": "more than half of the notes must vanish for all to be kept",
        },
    ),
    # The setting `agents` is at the top level of the file, not in a section.
    SettingsSection("", AgentsConfig, place=120),
)
