"""Rows of tool answers that describe notes, with warnings, conflict copies and links."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import trio

from lithos.kernel.parts import Parts
from lithos.kernel.values.projects import WORKING_IN, ProjectFilter
from lithos.kernel.values.times import format_time, from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.first_lines import FirstLook
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.files.files import NoteFiles
from lithos.notes.model.note import OWNED_KEYS, Note, NoteWarning
from lithos.notes.model.paths import namespace_of
from lithos.notes.model.versions import DELETED, VersionRow
from lithos.notes.service.knowledge import LinkedFrom, ReadNote
from lithos.notes.writing.messages import WriteOutcome
from lithos.server.settings import ServerConfig
from lithos.server.tools.compacting import CompactForm, is_nothing, short_time
from lithos.server.tools.fitting import cut_warning
from lithos.server.tools.serialization import IF_SAID, LEFT_OUT, register_row, renamed, row_of

#: Seconds of work after which a loop lets other tasks run.
TURN: Final = 0.002

#: Callback that returns a warning as the caller may see it. None hides the warning.
Veil: TypeAlias = Callable[[NoteWarning], NoteWarning | None]

#: Default values of note fields. Compact answers leave out fields with these values.
NOTE_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({
    "status": "active", "note_type": "observation", "access_scope": "shared", "confidence": 1.0,
    "schema_version": 1,
})  # fmt: skip
#: Keys in the metadata of a read that belong to Lithos.
_OWN: Final = frozenset({*OWNED_KEYS, "extra", "frontmatter_error"})
_SAID_BESIDE: Final = frozenset({"id", "title", "version", "entities_extractor"})
#: Compact form for the answers of tools that change a note. It reserves space for a list of similar notes.
WRITTEN: Final = CompactForm(always=("status", "id", "path", "version", "warnings"), room={"similar": 230})

register_row(Note, inline_tags=LEFT_OUT, has_conflict_markers=LEFT_OUT, frontmatter_error=IF_SAID)
register_row(
    WriteOutcome,
    merged_with=IF_SAID,
    section=LEFT_OUT,
    section_hash=LEFT_OUT,
    proposal_id=IF_SAID,
    expires_at=IF_SAID,
)
register_row(
    VersionRow,
    note_id=LEFT_OUT,
    digest=renamed("hash"),
    is_undo=renamed("undo", if_said=True),
    approved_by=IF_SAID,
)


async def warn(using: Parts, shown: Iterable[tuple[str, dict[str, Any]]], veil: Veil | None = None) -> None:
    """Add the current warnings of each note to its row, before the warnings already there.

    In a long list, other tasks can run in between.

    `shown` contains note ids with their rows. Only rows of notes with warnings get the key `warnings`. `veil`
    hides facts about other notes that the caller may not see.
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
    """Add `conflict_copies` to the row of each note with conflict copies."""
    lineage = using.get(Lineage)
    for note_id, row in shown if lineage.has_second_files else ():
        if copies := lineage.copies(note_id):
            row["conflict_copies"] = copies


def add_projects(using: Parts, shown: Iterable[tuple[Entry, dict[str, Any]]], *, is_asked: bool) -> None:
    """Add `project` to the row of each note that belongs only to other projects than that of the session.

    Without a project of the session, only full answers and callers that ask for it (`is_asked`) get the key.
    """
    shown = list(shown)
    add_clients(using, shown)
    projects = using.get(Catalogue).projects
    if not projects:
        return
    own = WORKING_IN.get()
    if own is None and not is_asked and using.get(ServerConfig).answers_compactly:
        return
    for entry, row in shown:
        keys = projects.of(entry)
        if keys and (own is None or not ProjectFilter(own).passes(keys)):
            row["project"] = keys[0]


def add_clients(using: Parts, shown: Iterable[tuple[Entry, dict[str, Any]]]) -> None:
    """Add `client` to the row of each note in a linked folder: the program that keeps the file."""
    linked = using.get(NoteFiles).linked
    for entry, row in shown if linked else ():
        found = linked.find(entry.path)
        if found is not None:
            row["client"] = found.client


def metadata_row(note: Note, namespace: str) -> dict[str, Any]:
    """Return the values of all owned keys. Other keys are under `extra`.

    If the frontmatter is unreadable, the row also has `frontmatter_error`.
    """
    row = row_of(note) | {"tags": list(note.all_tags), "namespace": namespace}
    if note.quarantine_reason is None:
        del row["quarantine_reason"]
    return row


def linked_row(linked: LinkedFrom) -> dict[str, Any]:
    """Return the notes that link to a deleted note, and how to restore the deleted note.

    Return an empty row if no notes link to the deleted note.
    """
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
    """Return the answer of `lithos_note_edit`."""
    row = row_of(outcome)
    warnings = row.pop("warnings")
    return {**row, "section": outcome.section, "section_hash": outcome.section_hash, "warnings": warnings}


def read_row(read: ReadNote) -> dict[str, Any]:
    """Return the answer of `lithos_read`."""
    note = read.document.note
    namespace = read.entry.namespace
    row: dict[str, Any] = {
        "id": note.id,
        "title": note.title,
        "content": read.content,
        # A person's keys are listed next to Lithos's keys, unless they have the same names.
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
    # for an earlier version, also return the current version and whether the note was deleted
    if read.kept is not None:
        row["current_version"] = read.kept.current_version
        row |= {"deleted": True} if read.kept.row.op == DELETED else {}
    return row


def list_row(entry: Entry) -> dict[str, Any]:
    """Return one item of `lithos_list`."""
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


def look_row(look: FirstLook, score: float) -> dict[str, Any]:
    """Return a search result for a note of which only the title and the first lines are known so far."""
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


def compact_metadata(metadata: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a read in its compact form.

    All keys of the person are included, but keys of Lithos only if their values are informative.

    If a person's key has the name of a Lithos key, it stays under `extra`.
    """
    made: dict[str, Any] = {}
    for key, item in metadata.items():
        if key not in _OWN:
            made[key] = item
        elif key not in _SAID_BESIDE and key != "extra" and not is_nothing(item):
            made[key] = short_time(key, item)
    namespace = namespace_of(str(read.get("path", "")), None)
    for key, default in (*NOTE_DEFAULTS.items(), ("namespace", namespace)):
        if made.get(key) == default:
            del made[key]
    if made.get("updated_at") == made.get("created_at"):
        made.pop("updated_at", None)
    alike = {key: item for key, item in metadata.get("extra", {}).items() if key in _OWN}
    return {**made, "extra": alike} if alike else made
