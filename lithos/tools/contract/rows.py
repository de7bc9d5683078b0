"""Serialization (wire format) of notes, tasks, claims, findings and task edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from lithos.actors.blocking import slices
from lithos.actors.writing.messages import WriteOutcome
from lithos.catalogue.catalogue import Entry
from lithos.core.history.versions import DELETED, VersionRow
from lithos.core.notes.model import Note, NoteWarning
from lithos.core.tasks.commands import Given
from lithos.core.tasks.graph import Blocker
from lithos.core.tasks.model import Claim, Finding, Grant, Task
from lithos.core.times import format_optional, format_time
from lithos.services.notes.knowledge import LinkedFrom, ReadNote
from lithos.services.search.search import Hit
from lithos.services.tasks.coordination import DirectedEdge, TaskView
from lithos.tools.contract.fitting import cut_warning


def metadata_row(note: Note, namespace: str) -> dict[str, Any]:
    """Every owned key, and the rest under `extra`; `frontmatter_error` where the file's cannot be read."""
    error, reason = note.frontmatter_error, note.quarantine_reason
    return {
        "id": note.id,
        "title": note.title,
        "author": note.author,
        "created_at": format_time(note.created_at),
        "updated_at": format_time(note.updated_at),
        "tags": list(note.all_tags),
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
        **({} if reason is None else {"quarantine_reason": reason}),
        "summaries": None if note.summaries is None else dict(note.summaries),
        "entities": list(note.entities),
        "entities_extractor": note.entities_extractor,
        "extra": dict(note.extra),
    } | ({} if error is None else {"frontmatter_error": dict(error)})


def warning_row(warning: NoteWarning) -> dict[str, Any]:
    """One of the `warnings` about a note."""
    return {
        "kind": warning.kind,
        "id": warning.id,
        "title": warning.title,
        "reason": warning.reason,
        "distance": warning.distance,
    }


def outcome_row(outcome: WriteOutcome) -> dict[str, Any]:
    """The answer of `lithos_write` and `lithos_note_update`."""
    merged = {} if outcome.merged_with is None else {"merged_with": outcome.merged_with}
    return {
        "status": outcome.status,
        "id": outcome.id,
        "path": outcome.path,
        "version": outcome.version,
        "warnings": list(outcome.warnings),
        **merged,
    }


def linked_row(linked: LinkedFrom) -> dict[str, Any]:
    """What links to a note that is or may be deleted, and the way back; nothing where nothing does."""
    if not linked.total:
        return {}
    return {
        "linked_from": [
            {"id": entry.note.id, "title": entry.note.title, "path": entry.path} for entry in linked.entries
        ],
        "linked_from_total": linked.total,
        "restore": linked.way_back,
    }


def edit_row(outcome: WriteOutcome) -> dict[str, Any]:
    """The answer of `lithos_note_edit`."""
    row = outcome_row(outcome)
    warnings = row.pop("warnings")
    return {**row, "section": outcome.section, "section_hash": outcome.section_hash, "warnings": warnings}


def read_row(read: ReadNote) -> dict[str, Any]:
    """The answer of `lithos_read`."""
    note = read.document.note
    namespace = read.entry.namespace
    metadata = metadata_row(note, namespace)
    return {
        "id": note.id,
        "title": note.title,
        "content": read.content,
        # The keys that Lithos does not own stand beside those it does, too.
        "metadata": {**note.extra, **metadata},
        "links": [{"target": link.target, "display": link.display} for link in read.links],
        "truncated": read.truncated,
        "retrieval_count": read.retrieval_count,
        "path": read.entry.path,
        "version": note.version,
        "namespace": namespace,
        **_section_keys(read),
        **_cut_keys(read),
        **_kept_keys(read),
    }


def _kept_keys(read: ReadNote) -> dict[str, Any]:
    """Of an earlier version: which one is current, and whether this one is the note's deletion."""
    if read.kept is None:
        return {}
    deleted = {"deleted": True} if read.kept.row.op == DELETED else {}
    return {"current_version": read.kept.current_version, **deleted}


def version_row(row: VersionRow) -> dict[str, Any]:
    """One version of `lithos_history`; `undo` stands where it takes changes back."""
    return {
        "version": row.version,
        "at": format_time(row.at),
        "agent": row.agent,
        "op": row.op,
        "title": row.title,
        "path": row.path,
        "size": row.size,
        "hash": row.digest,
        "changed": list(row.changed),
        **({"undo": True} if row.is_undo else {}),
    }


def _section_keys(read: ReadNote) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if read.outline is not None:
        row["outline"] = [
            {"section": each.section, "level": each.level, "chars": each.chars, "hash": each.hash}
            for each in read.outline
        ]
    if read.section is not None:
        row |= {"section": read.section.section, "section_hash": read.section.hash}
    return row


def _cut_keys(read: ReadNote) -> dict[str, Any]:
    if read.next_offset is None:
        return {}
    return {"next_offset": read.next_offset, "warnings": [cut_warning(read.length)]}


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
    if hit.match is not None:
        row["match"] = hit.match
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
        "tags": list(note.all_tags),
        "source_url": note.source_url or "",
        "derived_from_ids": list(note.derived_from_ids),
        "metadata": dict(note.extra),
        "version": note.version,
        "status": note.status,
        "note_type": note.note_type,
        "author": note.author,
        "namespace": entry.namespace,
    }


T = TypeVar("T")


def task_record(task: Task) -> dict[str, Any]:
    """The record of one task."""
    return {
        "id": task.id,
        "title": task.title,
        "description": task.description,
        "status": task.status,
        "task_type": task.task_type,
        "created_by": task.created_by,
        "created_at": format_time(task.created_at),
        "resolved_at": format_optional(task.resolved_at),
        "tags": list(task.tags),
        "metadata": dict(task.metadata),
        "outcome": task.outcome,
    }


def claim_row(claim: Claim) -> dict[str, Any]:
    """One running claim."""
    return {
        "agent": claim.agent,
        "aspect": claim.aspect,
        "expires_at": format_time(claim.expires_at),
        "fence": claim.fence,
    }


def grant_row(grant: Grant) -> dict[str, Any]:
    """What a claim was granted or renewed for."""
    minutes = grant.ttl_minutes
    return {
        "fence": grant.claim.fence,
        "ttl_minutes": int(minutes) if float(minutes).is_integer() else minutes,
    }


def given_row(given: Given) -> dict[str, Any]:
    """The answer of `lithos_task_next` with a task."""
    expires_at = format_time(given.grant.claim.expires_at)
    granted = grant_row(given.grant)
    return {
        "task": _view_row(TaskView(given.task, given.claims)),
        "fence": granted["fence"],
        "expires_at": expires_at,
        "ttl_minutes": granted["ttl_minutes"],
    }


def _view_row(view: TaskView) -> dict[str, Any]:
    """A record with the claims and blockers that were asked for."""
    row = task_record(view.task)
    if view.claims is not None:
        row["claims"] = [claim_row(claim) for claim in view.claims]
    if view.blockers is not None:
        row["blockers"] = [blocker_row(blocker) for blocker in view.blockers]
    return row


def blocker_row(blocker: Blocker) -> dict[str, Any]:
    """One thing a task waits for."""
    return {
        "kind": blocker.kind,
        "task_id": blocker.task_id,
        "type": blocker.type,
        "status": blocker.status,
        "message": blocker.message,
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    """One finding."""
    return {
        "id": finding.id,
        "agent": finding.agent,
        "summary": finding.summary,
        "knowledge_id": finding.knowledge_id,
        "created_at": format_time(finding.created_at),
    }


def edge_row(directed: DirectedEdge) -> dict[str, Any]:
    """One task edge as seen from the task asked about."""
    edge = directed.edge
    return {
        "from_task_id": edge.source,
        "to_task_id": edge.target,
        "type": edge.type,
        "direction": directed.direction,
        "metadata": dict(edge.metadata),
        "created_by": edge.created_by,
        "created_at": format_time(edge.created_at),
    }


async def view_rows(views: Sequence[TaskView]) -> list[dict[str, Any]]:
    """Records with what was asked for beside them; others may run in between."""
    return await sliced_rows(views, _view_row)


async def sliced_rows(items: Sequence[T], row: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each item; others may run in between."""
    rows: list[dict[str, Any]] = []
    async for some in slices(items):
        rows += map(row, some)
    return rows
