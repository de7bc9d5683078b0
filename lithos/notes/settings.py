"""Settings for notes: how Lithos detects changes, what agents may change, and the projects of notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from attrs import frozen

from lithos.kernel.configuration.rules import Rule, are_patterns, setting, whole
from lithos.kernel.configuration.sections import SettingsSection
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import PROPERTY, normalise_project


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
    project_property: str = setting(
        PROPERTY,
        "Frontmatter property with the projects of a note. If it is empty, no property counts.",
        Rule("a text of at most 100 printable characters", lambda name: len(name) <= 100 and _is_line(name)),
    )


def _is_line(text: str) -> bool:
    return text.isprintable() and text == text.strip()


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


#: Maximum number of folders in `projects`, and maximum number of characters of a folder.
_MOST_FOLDERS: Final = 1_000
_LONGEST_FOLDER: Final = 500


def _are_projects(given: Mapping[str, str]) -> bool:
    return len(given) <= _MOST_FOLDERS and all(map(_is_folder, given)) and all(map(_is_key, given.values()))


def _is_folder(text: str) -> bool:
    parts = text.removesuffix("/").split("/")
    return _is_line(text) and len(text) <= _LONGEST_FOLDER and not {"", ".", ".."} & set(parts)


def _is_key(text: str) -> bool:
    try:
        return bool(normalise_project(text))
    except InvalidInput:
        return False


@frozen(kw_only=True)
class AgentsConfig:
    """Settings at the top level: the paths that agents may change, and the projects of folders."""

    agents: Mapping[str, Mapping[str, tuple[str, ...]]] = setting(
        MappingProxyType({}),
        "Paths that each agent can change, by agent name: `write` for direct changes and "
        "`propose` for changes that a person must approve. If the token of an agent contains "
        "patterns, those patterns apply instead.",
        AGENT_SCOPES,
    )
    projects: Mapping[str, str] = setting(
        MappingProxyType({}),
        "Project of the notes in a folder of the vault, by folder. It applies to the notes below the folder "
        "that do not name a project in their frontmatter. If folders are nested, the innermost counts.",
        Rule(
            "for each of at most 1000 folders, such as work/shop, a project, such as github.com/acme/shop",
            _are_projects,
        ),
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
    # The settings `agents` and `projects` are at the top level of the file, not in a section.
    SettingsSection("", AgentsConfig, place=120),
)
