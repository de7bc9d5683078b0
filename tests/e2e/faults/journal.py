"""Journal of a data directory, with checks that its history is consistent."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen


@frozen
class Told:
    """One event from the journal. `origin` identifies the content of a note event."""

    seq: int
    type: str
    payload: Mapping[str, Any]
    origin: str


def read_journal(data: Path) -> list[Told]:
    """Return all events in stored order. Raise unless the event numbers ascend."""
    with sqlite3.connect(f"file:{data}/.lithos/coordination.db?mode=ro", uri=True) as database:
        rows = database.execute("SELECT seq, type, payload, origin FROM events ORDER BY rowid").fetchall()
    database.close()
    events = [Told(seq, kind, json.loads(payload), origin or "") for seq, kind, payload, origin in rows]
    seqs = [event.seq for event in events]
    assert seqs == sorted(set(seqs)), "numbers of events repeat or go back"
    return events


def replay_notes(events: Iterable[Told], present: Mapping[str, str]) -> dict[str, str]:
    """Replay all note events and return the final path of every note by id. Raise if events contradict.

    A note is created once and changes only while it exists. No event occurs twice.
    """
    paths = dict(present)
    last: dict[str, tuple[str, str]] = {}
    for event in events:
        if not event.type.startswith("note."):
            continue
        note = str(event.payload["id"])
        path = str(event.payload.get("path") or event.payload["dest_path"])
        if event.type == "note.created":
            assert note not in paths, f"created twice: {event}"
        elif event.type == "note.renamed":
            assert paths[note] == event.payload["src_path"] != path, f"moved from nowhere: {event}"
        else:
            assert paths.get(note) == path, f"not there: {event}, known at {paths.get(note)}"
        if event.type == "note.deleted":
            del paths[note]
            last.pop(note, None)
        else:
            paths[note] = path
            digest = event.origin.rpartition(":")[2]
            assert last.get(note) != (path, digest), f"told twice: {event}"
            last[note] = (path, digest)
    return paths


def replay_claims(events: Iterable[Told]) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the active claims: agent and fence by task and aspect.

    Raise if two agents have one aspect at the same time, or if a fence is not higher than all earlier fences.
    """
    held: dict[tuple[str, str], tuple[str, int]] = {}
    highest = 0
    for event in events:
        said = event.payload
        if event.type == "task.claimed":
            key = (said["task_id"], said["aspect"])
            assert said["fence"] > highest, f"a fence that was used: {event}"
            highest = said["fence"]
            assert key not in held or held[key][0] == said["agent"], f"granted twice: {event}, {held[key]}"
            held[key] = (said["agent"], said["fence"])
        elif event.type == "task.released":
            del held[said["task_id"], said["aspect"]]
        elif event.type in ("task.completed", "task.cancelled"):
            held = {key: claim for key, claim in held.items() if key[0] != said["task_id"]}
    return held


def count_notes(events: Iterable[Told]) -> Counter[tuple[str, str]]:
    """Return the number of reports for each kind of change and path."""
    return Counter(
        (event.type, str(event.payload.get("path") or event.payload["dest_path"]))
        for event in events
        if event.type.startswith("note.")
    )
