"""How notes look on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lithos.actors.catalogue import Entry
from lithos.actors.requests import WriteOutcome
from lithos.core.model import Note
from lithos.core.times import format_optional, format_time
from lithos.services.knowledge import ReadNote
from lithos.services.retrieval import Hit


def metadata_row(note: Note, namespace: str) -> dict[str, Any]:
    """Every owned key, and the rest under `extra`."""
    return {
        "id": note.id,
        "title": note.title,
        "author": note.author,
        "created_at": format_time(note.created_at),
        "updated_at": format_time(note.updated_at),
        "tags": list(note.tags),
        "aliases": list(note.aliases),
        "confidence": note.confidence,
        "contributors": list(note.contributors),
        "source": note.source,
        "supersedes": note.supersedes,
        "version": note.version,
        "source_url": note.source_url,
        "derived_from_ids": list(note.derived_from_ids),
        "expires_at": format_optional(note.expires_at),
        "schema_version": note.schema_version,
        "namespace": namespace,
        "access_scope": note.access_scope,
        "note_type": note.note_type,
        "status": note.status,
        "summaries": None if note.summaries is None else dict(note.summaries),
        "entities": list(note.entities),
        "entities_extractor": note.entities_extractor,
        "extra": dict(note.extra),
    }


def outcome_row(outcome: WriteOutcome) -> dict[str, Any]:
    """The answer of `lithos_write` and `lithos_note_update`."""
    return {
        "status": outcome.status,
        "id": outcome.id,
        "path": outcome.path,
        "version": outcome.version,
        "warnings": list(outcome.warnings),
    }


def read_row(read: ReadNote) -> dict[str, Any]:
    """The answer of `lithos_read`."""
    note = read.document.note
    namespace = read.entry.namespace
    return {
        "id": note.id,
        "title": note.title,
        "content": read.content,
        "metadata": metadata_row(note, namespace),
        "links": [{"target": link.target, "display": link.display} for link in read.links],
        "truncated": read.truncated,
        "retrieval_count": read.retrieval_count,
        "path": read.entry.path,
        "version": note.version,
        "namespace": namespace,
    }


def search_row(hit: Hit, now: datetime) -> dict[str, Any]:
    """One result of `lithos_search`."""
    note = hit.entry.note
    row: dict[str, Any] = {
        "id": note.id,
        "title": note.title,
        "snippet": hit.snippet,
        "score": hit.score,
        "path": hit.entry.path,
        "source_url": note.source_url or "",
        "updated_at": format_time(note.updated_at),
        "is_stale": note.is_stale(now),
        "derived_from_ids": list(note.derived_from_ids),
    }
    if hit.similarity is not None:
        row["similarity"] = hit.similarity
    return row


def list_row(entry: Entry) -> dict[str, Any]:
    """One item of `lithos_list`."""
    note = entry.note
    updated = format_time(note.updated_at)
    return {
        "id": note.id,
        "title": note.title,
        "path": entry.path,
        "updated": updated,
        "updated_at": updated,
        "tags": list(note.tags),
        "source_url": note.source_url or "",
        "derived_from_ids": list(note.derived_from_ids),
        "metadata": dict(note.extra),
        "version": note.version,
        "status": note.status,
        "note_type": note.note_type,
        "author": note.author,
        "namespace": entry.namespace,
    }
