"""Rules for `metadata.project`, which names the projects of a task (docs/spec/projects.md §6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import (
    ALL_PROJECTS,
    ProjectFilter,
    normalise_project,
    projects_of,
    read_project,
    read_written_project,
)
from lithos.text.words.list_filters import matches_metadata

PROJECT: Final = "project"
#: Names that are stored unchanged in every spelling of a key, apart from their case.
_PLAIN: Final = re.compile(r"[a-z0-9._-]+")


def with_project(
    metadata: Mapping[str, Any], project: str | None, working_in: str | None
) -> Mapping[str, Any]:
    """Return the metadata of a new task with its project.

    A project in the metadata, even null, has priority over the argument, and the argument over the project of
    the session. Raises `InvalidInput` for an argument that names no project.
    """
    key = read_written_project(project, working_in)
    if PROJECT in metadata:
        return metadata
    key = working_in if key is None else key
    return {**metadata, PROJECT: key} if key else metadata


def asked_project(text: str | None, working_in: str | None) -> str | None:
    """Return the project for the filter `project` of a task list, or None for the tasks of all projects."""
    if text is None or not text.strip() or text.strip() == ALL_PROJECTS:
        return None
    try:
        return read_project(text, working_in)
    except InvalidInput:  # Only equal text can match.
        return text


def is_of_project(metadata: Mapping[str, Any], project: str | None) -> bool:
    """Return whether a task with this metadata belongs to a project. None means any project.

    Texts that are equal always match, even if they are not keys.
    """
    if project is None:
        return True
    if PROJECT not in metadata:
        return False
    wanted = _filter_for(project)
    return matches_metadata(metadata, {PROJECT: project}) or (
        wanted is not None and wanted.passes(projects_of(metadata[PROJECT]))
    )


def name_in(project: str) -> str | None:
    """Return lower-case text that the stored metadata of each task of the project contains.

    Return None if no such text is known.
    """
    wanted = _filter_for(project)
    name = "" if wanted is None else wanted.key.casefold().rpartition("/")[2]
    return name if _PLAIN.fullmatch(name) else None


@lru_cache(maxsize=64)
def _filter_for(project: str) -> ProjectFilter | None:
    try:
        return ProjectFilter(normalise_project(project))
    except InvalidInput:
        return None
