"""Rebasing of updates: changes made to an earlier version are applied to the current note.

"Base" is the version that the caller had read. "Mine" is the result of the request applied to the base.
"Theirs" is the file that the writer read, even if another program has just saved it. Rebasing runs in a
worker thread, because merging large texts takes up to a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs
from attrs import frozen

from lithos.kernel.values.errors import LithosError, VersionConflict
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.values import ReadFile
from lithos.notes.format.document import parse_document
from lithos.notes.format.merging import Merged, merge_documents, metadata_patch
from lithos.notes.format.tolerant_reading import normalise_note
from lithos.notes.model.note import Document, Note, current_of
from lithos.notes.writing.messages import UpdateRequest, WriteNote
from lithos.notes.writing.write_rules import intended_changes
from lithos.text.markdown import scan_tags
from lithos.text.yaml.layout import trim_content
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Fields of a note that a request may change: name in the request by name in the note.
_FIELDS = {name: name for name in (
    "title", "tags", "source_url", "derived_from_ids", "expires_at", "schema_version", "namespace",
    "access_scope", "note_type", "status", "summaries", "confidence", "supersedes", "entities",
    "entities_extractor", "quarantine_reason", "aliases",
)} | {"source": "source_task"}  # fmt: skip
#: Request values that clear a field. None would keep the field.
_CLEARED: Mapping[str, Any] = {
    "source_url": "",
    "source": "",
    "expires_at": "",
    "summaries": {},
    "quarantine_reason": "",
}


@frozen
class Rebased:
    """A request rebased on a file, or the reason why this is impossible."""

    outcome: UpdateRequest | Merged[Document] | LithosError

    def request_at(self, now: Note, expected: int) -> UpdateRequest:
        """Return a request that changes the file, which contains the note `now`, into the merged note.

        Raises `VersionConflict` if the changes overlap or the base cannot be merged.
        """
        if isinstance(self.outcome, LithosError):
            if isinstance(self.outcome, VersionConflict):
                raise VersionConflict(self.outcome.message, **current_of(now))
            raise self.outcome
        if not isinstance(self.outcome, Merged):
            return self.outcome
        merged, version = self.outcome, now.version
        count = "one place" if merged.total == 1 else f"{merged.total} places"
        coarse = "" if merged.is_complete else " Some texts differ too much to be compared line by line."
        raise VersionConflict(
            f"The note is at version {version}, and changes made since version {expected} touch "
            f"or overlap your change in {count}: see conflicts.{coarse} Nothing was written. Read "
            f"the note again, combine both changes and retry with expected_version {version}.",
            **current_of(now),
            conflicts=[each.to_row() for each in merged.conflicts],
        )


def rebase(request: UpdateRequest, entry: Entry, source: ReadFile, style: VaultStyle) -> Rebased | None:
    """Rebase a request with a base version on the file.

    If the file is not readable as this note, return None.
    """
    assert request.base is not None
    modified = from_nanoseconds(source.state.mtime_ns)
    try:
        theirs = _parse(source.data, entry, modified, style)
    except UnreadableNote:
        return None
    try:
        base = _parse(request.base, entry, modified, style)
        mine = _intended(request, base, style)
    except UnreadableNote as problem:
        return Rebased(VersionConflict(_not_mergeable(request, problem.reason)))
    except LithosError as refusal:
        return Rebased(refusal)
    if base.note.frontmatter_problem is not None:
        return Rebased(VersionConflict(_not_mergeable(request, base.note.frontmatter_problem)))
    merged = merge_documents(base, mine, theirs)
    if merged.result is None:
        return Rebased(merged)
    return Rebased(_request_for(request, merged.result, theirs))


def _parse(data: bytes, entry: Entry, modified: datetime, style: VaultStyle) -> Document:
    return parse_document(data, entry.path, modified, entry.stand_in, style)


def _not_mergeable(request: UpdateRequest, reason: str) -> str:
    return (
        f"Version {request.expected_version} cannot be read as a note ({reason}), so nothing can be merged "
        "with it. Read the note again and retry with the current version."
    )


def _intended(request: UpdateRequest, base: Document, style: VaultStyle) -> Document:
    """Return the result of the request applied to its base, as it would be read from a file."""
    note = base.note
    content = base.content
    if isinstance(request, WriteNote) and request.content is not None:
        content = trim_content(request.content)
    inline = scan_tags(content) if style.is_foreign and request.tags is not None else ()
    changes = intended_changes(request, note, (*inline, *note.inline_tags))
    normal = normalise_note(attrs.evolve(note, **changes))
    changed = attrs.evolve(note, **{name: getattr(normal, name) for name in changes})
    return Document(note=changed, content=content)


def _request_for(request: UpdateRequest, merged: Document, theirs: Document) -> UpdateRequest:
    """Return a request that changes `theirs` to `merged`. Fields with equal values in both are left out."""
    known = attrs.fields_dict(type(request))
    changes: dict[str, Any] = {
        name: _changed(field, merged.note, theirs.note) for field, name in _FIELDS.items() if name in known
    }
    changes["metadata"] = metadata_patch(theirs.note.extra, merged.note.extra)
    if isinstance(request, WriteNote):
        changes["content"] = None if merged.content == theirs.content else merged.content
        changes["properties"] = None
    return attrs.evolve(request, **changes, expected_version=None, base=None)


def _changed(field: str, merged: Note, theirs: Note) -> Any:
    """Return the value of a field for a request. If the field does not change, return None."""
    value = getattr(merged, field)
    if value == getattr(theirs, field):
        return None
    return _CLEARED[field] if value is None and field in _CLEARED else value
