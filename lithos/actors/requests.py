"""What the writer is asked to do, and what it answers.

In a request `None` means *keep* (on creation: the default), the empty value means *clear*. All
checks that need no other note are done before a request is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.core.events import TOOL, EventDraft
from lithos.core.model import Document


@frozen(kw_only=True)
class WriteNote:
    """Create a note (`id` None) or update one; `expires_at` "" clears."""

    agent: str
    title: str
    content: str
    id: str | None = None
    path: str | None = None
    tags: tuple[str, ...] | None = None
    #: As given: the decision refuses what is no number between 0 and 1.
    confidence: object = None
    source_task: str | None = None
    source_url: str | None = None
    derived_from_ids: tuple[str, ...] | None = None
    expires_at: datetime | Literal[""] | None = None
    expected_version: int | None = None
    schema_version: int | None = None
    namespace: str | None = None
    access_scope: str | None = None
    note_type: str | None = None
    status: str | None = None
    summaries: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None


@frozen(kw_only=True)
class PatchNote:
    """Change some of a note's frontmatter; its body stays as it is, byte for byte."""

    id: str
    agent: str
    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: str | None = None
    #: The note that this one replaces.
    supersedes: str | None = None
    #: Merged per key; unlike in `WriteNote`, an empty one changes nothing.
    metadata: Mapping[str, Any] | None = None
    expected_version: int | None = None
    #: Found by machine, with the number of the rules that found them; () clears.
    entities: tuple[str, ...] | None = None
    entities_extractor: int | None = None
    #: The source in the hidden origin of the event: `TOOL` or `ENRICHMENT`.
    source: str = TOOL


@frozen(kw_only=True)
class DeleteNote:
    """Remove a note's file and everything derived from it."""

    id: str
    agent: str


UpdateRequest = WriteNote | PatchNote
WriteRequest = UpdateRequest | DeleteNote


@frozen
class WriteOutcome:
    """What became of a note: `status` is `created`, `updated` or `deleted`."""

    status: Literal["created", "updated", "deleted"]
    id: str
    path: str
    version: int
    warnings: tuple[str, ...] = ()


@frozen
class Change:
    """A change that is durable on disk and in the catalogue, on its way to indexes and journal.

    `document` is None for a removal; `vacated` is the path at which there is no note any more.
    """

    entry: Entry
    document: Document | None
    event: EventDraft
    outcome: WriteOutcome
    vacated: str | None = None
