"""Export of a whole data directory as JSON lines, even while a server runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lithos.events.rows.store import CoordinationStore
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import utc_now
from lithos.kernel.values.times import from_nanoseconds
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.tools.memory import edge_row
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.format.document import parse_document
from lithos.notes.model.edges import EdgeFilter
from lithos.notes.tools_rows import metadata_row
from lithos.server.tools.serialization import row_of
from lithos.tasks.rows.tasks import TaskRows
from lithos.text.yaml.nodes import UnreadableNote
from lithos.upkeep.checked_vault import survey_of
from lithos.upkeep.checks.validation import CheckedVault
from lithos.upkeep.files.backup import copy_database

#: A time that is earlier than the end of any claim.
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def export_objects(config: Config) -> Iterator[dict[str, Any]]:
    """Yield notes, agents, tasks, claims, findings, task edges and edges, each with its `kind`. Blocks.

    The databases are copied at one moment, before the notes are read. Raises `CorruptDatabase`, `OSError`,
    and `FileNotFoundError` if the notes folder does not exist.
    """
    now = utc_now()
    survey = survey_of(config, now)
    with tempfile.TemporaryDirectory(prefix="lithos-export-") as folder:
        copies = Path(folder)
        held = {
            name: copy_database(survey.private / name, copies / name, is_live=survey.is_live) is not None
            for name in ("edges.db", "coordination.db")
        }
        yield from _export_notes(survey)
        if held["coordination.db"]:
            yield from _export_coordination(copies / "coordination.db", now)
        if held["edges.db"]:
            yield from _export_edges(copies / "edges.db", now)


def _export_notes(survey: CheckedVault) -> Iterator[dict[str, Any]]:
    for entry in sorted(survey.catalogue, key=lambda each: each.path):
        try:
            source = survey.files.read(entry.path)
            modified = from_nanoseconds(source.state.mtime_ns)
            document = parse_document(
                source.data, entry.path, modified, entry.note.id, survey.catalogue.style
            )
        except (OSError, OutsideKnowledge, UnreadableNote) as problem:
            yield {"kind": "problem", "path": entry.path, "id": entry.note.id, "reason": str(problem)}
            continue
        yield {
            "kind": "note",
            "id": entry.note.id,
            "path": entry.path,
            "title": entry.note.title,
            "content": document.content,
            "metadata": metadata_row(entry.note, entry.namespace),
        }


def _export_coordination(path: Path, now: datetime) -> Iterator[dict[str, Any]]:
    store = CoordinationStore.open(path, now)
    try:
        for agent in sorted(store.agents(), key=lambda each: each.first_seen_at):
            yield {"kind": "agent", **row_of(agent)}
        rows = store.rows(TaskRows)
        tasks = list(reversed(rows.tasks()))
        yield from ({"kind": "task", **row_of(task)} for task in tasks)
        for claims in rows.active_claims(_EVER).values():
            yield from ({"kind": "claim", "task_id": claim.task_id, **row_of(claim)} for claim in claims)
        for task in tasks:
            yield from (
                {"kind": "finding", "task_id": task.id, **row_of(found)} for found in rows.findings(task.id)
            )
            for edge in map(row_of, rows.edges_from(task.id)):
                ends = {"from_task_id": edge.pop("source"), "to_task_id": edge.pop("target")}
                yield {"kind": "task_edge", **ends, **edge}
    finally:
        store.close()


def _export_edges(path: Path, now: datetime) -> Iterator[dict[str, Any]]:
    store = EdgeStore.open(path, now)
    try:
        yield from ({"kind": "edge", **edge_row(edge)} for edge in store.edges(EdgeFilter()))
    finally:
        store.close()
