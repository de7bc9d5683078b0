"""Serialization (wire format): `row_of` by the fields of a value, and the rows that say more or less."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

import trio
from cattrs import Converter
from cattrs.fns import identity
from cattrs.gen import make_dict_unstructure_fn, override

from lithos.actors.blocking import slices
from lithos.actors.writing.messages import WriteOutcome
from lithos.catalogue.catalogue import Entry
from lithos.catalogue.first_looks import FirstLook
from lithos.catalogue.lineage import Lineage
from lithos.core.context.parts import LeftOut
from lithos.core.history.versions import DELETED, VersionRow
from lithos.core.notes.model import OWNED_KEYS, Note, NoteWarning
from lithos.core.proposals import Proposal
from lithos.core.tasks.commands import Given
from lithos.core.tasks.model import Claim, Finding, Grant
from lithos.core.times import format_optional, format_time, from_nanoseconds
from lithos.kernel.parts import Parts
from lithos.services.notes.knowledge import LinkedFrom, ReadNote
from lithos.services.search.search import Hit
from lithos.services.tasks.coordination import DirectedEdge, TaskView
from lithos.stores.coordination.board_rows import RestingTask
from lithos.tools.contract.fitting import cut_warning

#: Seconds of looking after which others may run.
TURN: Final = 0.002

#: What an asker is told of a warning, None for nothing.
Veil: TypeAlias = Callable[[NoteWarning], NoteWarning | None]


async def warn(using: Parts, shown: Iterable[tuple[str, dict[str, Any]]], veil: Veil | None = None) -> None:
    """Add the warnings of each note to its row, before any that the row has; long lists take turns.

    `shown` are ids of notes with their rows; the key `warnings` comes where there is something to say, as the
    notes are now. `veil` hides what the asker may not know of other notes.
    """
    lineage = using.get(Lineage)
    await lineage.settle()
    now, began = using.clock(), time.perf_counter()
    for note_id, row in shown:
        found = lineage.warnings(note_id, now)
        if found:
            told = found if veil is None else [each for one in found if (each := veil(one)) is not None]
            if told:
                row["warnings"] = [*map(row_of, told), *row.get("warnings", ())]
        if time.perf_counter() - began > TURN:
            await trio.lowlevel.checkpoint()
            began = time.perf_counter()


def add_copies(using: Parts, shown: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add `conflict_copies` to the row of each note that has some."""
    lineage = using.get(Lineage)
    for note_id, row in shown if lineage.has_second_files else ():
        if copies := lineage.copies(note_id):
            row["conflict_copies"] = copies


T = TypeVar("T")

_WIRE: Final = Converter()
_WIRE.register_unstructure_hook(datetime, format_time)
_WIRE.register_unstructure_hook(datetime | None, format_optional)
for _plain in (str | None, int | None, float | None):
    _WIRE.register_unstructure_hook(_plain, identity)  # else a call each, to give back what was given
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is tuple, list)
_WIRE.register_unstructure_hook_func(lambda kind: getattr(kind, "__origin__", None) is Mapping, dict)
_LEFT_OUT: Final = override(omit=True)
_IF_SAID: Final = override(omit_if_default=True)
#: What of a value a row does not say, or says only sometimes, at its end, or says under another name.
_EXCEPTIONS: Final[Mapping[type, Mapping[str, Any]]] = {
    Note: {
        "inline_tags": _LEFT_OUT,
        "has_conflict_markers": _LEFT_OUT,
        "frontmatter_error": _IF_SAID,
    },
    WriteOutcome: {
        "merged_with": _IF_SAID,
        "section": _LEFT_OUT,
        "section_hash": _LEFT_OUT,
        "proposal_id": _IF_SAID,
        "expires_at": _IF_SAID,
    },
    Proposal: {"begun_at": _LEFT_OUT, "update_links": _IF_SAID},
    VersionRow: {
        "note_id": _LEFT_OUT,
        "digest": override(rename="hash"),
        "is_undo": override(rename="undo", omit_if_default=True),
        "approved_by": _IF_SAID,
    },
    Claim: {"task_id": _LEFT_OUT},
    Finding: {"task_id": _LEFT_OUT},
    RestingTask: {"at": _LEFT_OUT},
    LeftOut: {"has_no_room": _LEFT_OUT},
}
for _kind, _said in _EXCEPTIONS.items():
    _WIRE.register_unstructure_hook(_kind, make_dict_unstructure_fn(_kind, _WIRE, **_said))


def row_of(value: Any) -> dict[str, Any]:
    """A value's fields in their order: times as text, tuples as lists, all but `_EXCEPTIONS`."""
    kind: type = type(value)
    row: dict[str, Any] = _writer_of(kind)(value)
    return row


@functools.cache  # bounded: the classes of answers
def _writer_of(kind: type) -> Callable[[Any], Any]:
    return _WIRE.get_unstructure_hook(kind)


def metadata_row(note: Note, namespace: str) -> dict[str, Any]:
    """Every owned key, and the rest under `extra`; `frontmatter_error` where the file's cannot be read."""
    row = row_of(note) | {"tags": list(note.all_tags), "namespace": namespace}
    if note.quarantine_reason is None:
        del row["quarantine_reason"]
    return row


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
    row = row_of(outcome)
    warnings = row.pop("warnings")
    return {**row, "section": outcome.section, "section_hash": outcome.section_hash, "warnings": warnings}


def read_row(read: ReadNote) -> dict[str, Any]:
    """The answer of `lithos_read`."""
    note = read.document.note
    namespace = read.entry.namespace
    row: dict[str, Any] = {
        "id": note.id,
        "title": note.title,
        "content": read.content,
        # The keys that Lithos does not own stand beside those it does, too; what is named alike does not.
        "metadata": {key: value for key, value in note.extra.items() if key not in OWNED_KEYS}
        | metadata_row(note, namespace),
        "links": [{"target": link.target, "display": link.display} for link in read.links],
        "truncated": read.truncated,
        "retrieval_count": read.retrieval_count,
        "path": read.entry.path,
        "version": note.version,
        "namespace": namespace,
    }
    if read.outline is not None:
        row["outline"] = [row_of(each) for each in read.outline]
    if read.section is not None:
        row |= {"section": read.section.section, "section_hash": read.section.hash}
    if read.next_offset is not None:
        row |= {"next_offset": read.next_offset, "warnings": [cut_warning(read.length)]}
    if read.kept is not None:  # an earlier version: which one is current, and whether it is the deletion
        row["current_version"] = read.kept.current_version
        row |= {"deleted": True} if read.kept.row.op == DELETED else {}
    return row


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
    if hit.judged is not None:
        row["match"] = hit.judged.match
    return row


def look_row(look: FirstLook, score: float) -> dict[str, Any]:
    """The same for a note of which only title and first lines are known yet."""
    return {
        "id": look.id,
        "title": look.title,
        "snippet": look.lines,
        "score": score,
        "path": look.path,
        "source_url": "",
        "updated_at": format_time(from_nanoseconds(look.mtime_ns)),
        "is_stale": False,
        "derived_from_ids": [],
    }


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
    row = row_of(view.task)
    if view.claims is not None:
        row["claims"] = [row_of(claim) for claim in view.claims]
    if view.blockers is not None:
        row["blockers"] = [row_of(blocker) for blocker in view.blockers]
    return row


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
