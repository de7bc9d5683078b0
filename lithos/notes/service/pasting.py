"""Interpretation of content that is a whole note file.

The frontmatter of the pasted file is converted to arguments of the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from lithos.kernel.values.errors import InvalidInput
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.format.pasted_file import Pasted, read_pasted
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import WriteNote
from lithos.text.yaml.layout import FRONTMATTER, frontmatter_at

#: Arguments of a write whose names differ from the fields of a note: argument name by field name.
_ARGUMENTS: Final = {"source": "source_task"}


@attrs.define(eq=False)
class Pasting:
    """Service that interprets the content that an agent writes to a note."""

    _catalogue: Catalogue
    _texts: NoteTexts

    async def understood(self, request: WriteNote) -> WriteNote:
        """Return the request with the frontmatter of its content applied. Explicit arguments have priority.

        Content that begins like the note's current text is not changed. An empty frontmatter may consist of
        two thematic breaks, so it is not changed either, unless the note's file also has an empty
        frontmatter. Raises `InvalidInput` for an unreadable frontmatter, and for a new note without a title.
        """
        if request.content is not None and frontmatter_at(request.content) is not None:
            entry = self._catalogue.get(request.id or "")
            loaded = None if entry is None else await self._texts.load(entry)
            head = _head_of(request.content)
            if loaded is None or _head_of(loaded.document.content) != head:
                style = self._catalogue.style
                if loaded is None:  # Lithos manages new notes, so it defines the frontmatter keys.
                    style = attrs.evolve(style, minimal_frontmatter=False)
                found = read_pasted(request.content, style)
                file = None if loaded is None else loaded.source.data.decode("utf-8", "replace")
                if found is not None and (
                    not found.is_empty or (file is not None and _head_of(file) == head)
                ):
                    request = _taken_over(
                        request, found, {} if loaded is None else loaded.document.note.extra
                    )
        if request.id is None and not request.title:
            raise InvalidInput("A new note needs a title. To change an existing note, give its id.")
        return request


def _head_of(content: str) -> str | None:
    """Return the frontmatter at the start of the content, or None."""
    start = frontmatter_at(content)
    found = None if start is None else FRONTMATTER.find(content[start:].removeprefix("\ufeff"))
    return None if found is None else found[0]


def _taken_over(request: WriteNote, found: Pasted, old: Mapping[str, Any]) -> WriteNote:
    named = {_ARGUMENTS.get(key, key): value for key, value in found.values.items()}
    taken = {name: value for name, value in named.items() if getattr(request, name) is None}
    return attrs.evolve(
        request,
        **taken,
        content=found.content,
        properties=found.properties(old),
        said=found.said,
        unused=found.unused,
    )
