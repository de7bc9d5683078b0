"""What differs between two versions of a note: the names in `VersionRow.changed`."""

from __future__ import annotations

import re
from typing import Final

from lithos.core.notes.model import Note

BODY: Final = "body"
PATH: Final = "path"
ADDRESS: Final = "source_url"

#: Properties by the fields of a note, in this order. What every write changes is none of them (version,
#: `updated_at`, contributors), and neither is what no write may change.
_PROPERTIES: Final = {
    "title": "title",
    "tags": "tags",
    "aliases": "aliases",
    "status": "status",
    "quarantine_reason": "quarantine_reason",
    "note_type": "note_type",
    "access_scope": "access_scope",
    "namespace": "namespace",
    "confidence": "confidence",
    "source": "source",
    "source_url": ADDRESS,
    "derived_from_ids": "derived_from_ids",
    "supersedes": "supersedes",
    "expires_at": "expires_at",
    "schema_version": "schema_version",
    "summaries": "summaries",
    "entities": "entities",
    "extra": "metadata",
}
_FRONTMATTER: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n.*?^---[ \t]*(?:\r?\n|\r?\Z)", re.DOTALL | re.M
)
_HEADING: Final = re.compile(rb"\A\s*#[ \t][^\n]*(?:\n|\Z)")


def changed_properties(old: Note, new: Note) -> tuple[str, ...]:
    """The properties that differ; of the text nothing is said."""
    return tuple(told for name, told in _PROPERTIES.items() if getattr(old, name) != getattr(new, name))


def have_same_body(one: bytes, other: bytes) -> bool:
    """Whether two files have the same text below the frontmatter and the heading that is the title."""
    return _body(one) == _body(other)


def _body(data: bytes) -> bytes:
    found = _FRONTMATTER.match(data)
    body = data[found.end() :] if found else data
    heading = _HEADING.match(body)
    return (body[heading.end() :] if heading else body).strip()
