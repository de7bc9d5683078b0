"""Rules for the frontmatter property that names the projects of a note (docs/spec/projects.md §6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.projects import same_project
from lithos.notes.model.note_projects import ProjectRules


@frozen
class ProjectProperty:
    """The property of a note at `path`. An empty name in the rules means that notes have no such property."""

    rules: ProjectRules
    path: str

    def default(self, named: Collection[str], working_in: str | None) -> str | None:
        """Return the project for a new note whose call has no argument `project`, or None.

        `named` contains the keys in the metadata and in a pasted frontmatter. Keys with the value null count
        too. `working_in` is the project of the session. A folder with a project keeps its meaning.
        """
        name = self.rules.property_name
        is_decided = not name or name in named or self.rules.of_path(self.path)
        return None if is_decided else working_in

    def put(self, extra: Mapping[str, Any], project: str | None) -> dict[str, Any]:
        """Return the properties of the note with another project.

        None changes nothing, and "" removes the property. If the note already belongs to this project only,
        its value stays as a person wrote it. Raises `InvalidInput` if the property cannot be changed.
        """
        if project is None:
            return dict(extra)
        name = self.rules.property_name
        if project and not name:
            raise InvalidInput(
                "project cannot be stored, because index.project_property is empty. Nothing was changed. "
                "Leave project out, or name a property in that setting."
            )
        if not _is_ours(extra.get(name)):
            raise InvalidInput(
                f"The property {name} of this note is neither a text nor a list of texts, so a person uses "
                "it for something else. Nothing was changed. Leave project out, or change the property with "
                "metadata."
            )
        keys = self.rules.keys(self.path, extra)
        if project and len(keys) == 1 and same_project(keys[0], project):
            return dict(extra)
        rest = {key: value for key, value in extra.items() if key != name}
        return {**extra, name: project} if project else rest


def _is_ours(value: object) -> bool:
    match value:
        case [[str()]]:  # an unquoted [[Shop]]
            return True
        case [*values]:
            return all(isinstance(each, str) for each in values)
    return value is None or isinstance(value, str)
