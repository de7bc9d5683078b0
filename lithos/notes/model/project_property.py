"""Rules for the frontmatter property that names the projects of a note (docs/spec/projects.md §6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import PROPERTY, projects_of, same_project


def chosen_project(
    project: str | None, metadata: Collection[str], pasted: Collection[str], working_in: str | None
) -> str | None:
    """Return the project to set in a new note, or None if the given properties decide.

    `metadata` and `pasted` are the keys in the metadata and in a pasted frontmatter. A key with the value
    null decides too. `working_in` is the project of the session.
    """
    if PROPERTY in metadata:
        return None
    return working_in if project is None and PROPERTY not in pasted else project


def with_project(extra: Mapping[str, Any], project: str | None) -> dict[str, Any]:
    """Return the properties of a note with another project. None changes nothing, and "" means no project.

    If the property already means only this project, its value stays as a person wrote it. Raises
    `InvalidInput` if a person uses the property for something else.
    """
    if project is None:
        return dict(extra)
    old = extra.get(PROPERTY)
    if not _is_ours(old):
        raise InvalidInput(
            f"The property {PROPERTY} of this note is neither a text nor a list of texts, so a person uses "
            "it for something else. Nothing was changed. Leave project out, or change the property with "
            "metadata."
        )
    if not project:
        return {name: value for name, value in extra.items() if name != PROPERTY}
    keys = projects_of(old)
    is_meant = len(keys) == 1 and same_project(keys[0], project)
    return {**extra, PROPERTY: old if is_meant else project}


def _is_ours(value: object) -> bool:
    values = value if isinstance(value, list | tuple) else (value,)
    return value is None or all(isinstance(each, str) for each in values)
