"""Required state of a server that is started on the disk after a crash."""

from __future__ import annotations

import functools
import hashlib
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path

import pytest
import trio
from attrs import define

from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryStore
from lithos.notes.model.versions import VersionRow
from lithos.notes.writing.actor_writer import Writer
from lithos.server.tools import arguments
from tests.crashpoints.recording import REBUILDABLE, unsynced
from tests.crashpoints.script import PATIENCE, WORD, Script, State, Step, Told, observe, read_events
from tests.servers import Lithos, serving

DATABASES = ("coordination", "edges", "stats", "manifest", "history")
#: Files that may remain after a stop, in addition to notes and indexes.
PRIVATE = {".lithos/lock", ".lithos/migrations/registry.json", *(f".lithos/{name}.db" for name in DATABASES)}
_AFTER_POWER_LOSS = r"\.lithos/(manifest\.db\.corrupt-.*|\w+\.db-journal)"


@define(eq=False)
class Verdict:
    """Promises that must hold at one point in the record of a script."""

    script: Script
    point: int
    #: True if unsynced databases may be damaged. A damaged manifest is set aside and rebuilt.
    may_lose_manifest: bool = False

    async def check(self, data: Path) -> None:
        """Start a server twice and check its state. Raise `AssertionError` with the difference."""
        with unsynced(), pytest.MonkeyPatch.context() as patch:
            # Reading the types of tools takes a third of the start time, and the types never change.
            patch.setattr(arguments, "get_type_hints", functools.cache(typing.get_type_hints))
            async with serving(data, server={"max_answer_chars": 0}) as lithos:
                lanes, events = await observe(lithos), read_events(lithos)
                self._check_lanes(lanes, events)
                await self._check_search(lithos, lanes)
                history = await self._check_history(lithos, lanes)
            self._check_files(data, lanes)
            before = _read_notes(data)
            async with serving(data, server={"max_answer_chars": 0}) as lithos:
                assert await observe(lithos) == lanes, "a second start changed something"
                assert read_events(lithos) == events, "a second start told of something again"
                assert _read_notes(data) == before, "a second start changed notes"
                assert await self._check_history(lithos, lanes) == history, "a second start changed versions"
                await self._check_fence(lithos)

    def _check_lanes(self, lanes: Mapping[str, State], events: Sequence[Told]) -> None:
        for lane, steps in self.script.lanes.items():
            told = [event for event in events if event.lane == lane]
            self._check_lane(lane, steps, lanes.get(lane), told)
        unknown = lanes.keys() - self.script.lanes.keys()
        assert not unknown, f"nobody made {unknown}"
        assert {event.lane for event in events} <= self.script.lanes.keys()

    def _check_lane(self, lane: str, steps: Sequence[Step], state: State, told: Sequence[Told]) -> None:
        acknowledged = sum(step.end <= self.point for step in steps)
        begun = sum(step.begin < self.point for step in steps)
        possible = range(acknowledged, max(acknowledged, begun) + 1)
        matching = [n for n in possible if state == (steps[n - 1].state if n else None)]
        assert matching, (
            f"{lane} is {state}\nafter {acknowledged} acknowledged steps of {begun} it was "
            f"{[steps[n - 1].state if n else None for n in possible]}"
        )
        known = {seq for step in steps[:acknowledged] for seq in step.seqs}
        assert known <= {event.seq for event in told}, f"{lane}: acknowledged events are gone: {told}"
        types = tuple(event.type for event in told)
        allowed = {_told(steps[:n]) for n in matching}
        if self.may_lose_manifest:  # without a manifest, changes that were not reported are unknown
            for n in matching:
                choices = [
                    ((), step.told) if step.is_outside or number >= acknowledged else (step.told,)
                    for number, step in enumerate(steps[:n])
                ]
                allowed |= {tuple(chain.from_iterable(chosen)) for chosen in product(*choices)}
        assert types in allowed, f"{lane}: the journal tells {types}, not {allowed}"

    async def _check_search(self, lithos: Lithos, lanes: Mapping[str, State]) -> None:
        found = await lithos.found(WORD, mode="fulltext", limit=50)
        notes = sorted(lane.removeprefix("note ") for lane in lanes if lane.startswith("note "))
        assert sorted(found) == notes, f"the index has {found}, the folder {notes}"

    async def _check_history(self, lithos: Lithos, lanes: Mapping[str, State]) -> list[str]:
        """Check that each change has one version, in order and with its bytes. Return all versions."""
        with trio.fail_after(PATIENCE):
            await lithos.server.get(CatchingUp).done.wait()
        store = lithos.server.get(Writer)._recorder.store
        assert store is not None
        found: list[str] = []
        for lane, steps in self.script.lanes.items():
            if not lane.startswith("note "):
                continue
            note_id = next(step.state["id"] for step in steps if step.state)
            texts: list[str] = []
            for step in steps:
                texts.append(step.state["text"] if step.state else texts[-1])
            rows, _ = store.rows(note_id, 100)
            kept = [_text_of(store, row) for row in reversed(rows)]
            acknowledged = sum(step.end <= self.point for step in steps)
            begun = sum(step.begin < self.point for step in steps)
            state = lanes.get(lane)
            allowed = [
                texts[:n]
                for n in range(acknowledged, max(acknowledged, begun) + 1)
                if state == (steps[n - 1].state if n else None)
            ]
            assert kept in allowed, (
                f"{lane} has the versions {[(row.version, row.op, row.agent) for row in rows]} {kept}, "
                f"not {allowed}"
            )
            found += [repr(row) for row in rows]
        assert store.size()[0] == len(found), "there are versions of notes that nobody made"
        return found

    def _check_files(self, data: Path, lanes: Mapping[str, State]) -> None:
        files = {str(path.relative_to(data)) for path in data.rglob("*") if not path.is_dir()}
        notes = {f"knowledge/{state['path']}" for lane, state in lanes.items() if lane.startswith("note ")}
        left = {file for file in files - notes - PRIVATE if not file.startswith(REBUILDABLE)}
        if self.may_lose_manifest:
            # SQLite ignores a journal that was never synced.
            left = {file for file in left if not re.fullmatch(_AFTER_POWER_LOSS, file)}
        assert left <= {"knowledge/4913~"}, f"left behind: {left}"  # this file belongs to another program
        assert notes <= files

    async def _check_fence(self, lithos: Lithos) -> None:
        task = (await lithos.call("lithos_task_create", title="After", agent="ada"))["task_id"]
        grant = await lithos.call("lithos_task_claim", task_id=task, aspect="all", agent="ada")
        highest = max((fence for place, fence in self.script.fences if place <= self.point), default=0)
        assert grant["fence"] > highest, "a fence was given out twice"
        heads = [seq for steps in self.script.lanes.values() for step in steps for seq in step.seqs
                 if step.end <= self.point]  # fmt: skip
        assert read_events(lithos)[-1].seq > max(heads, default=0), "a number of an event was given out twice"


def _text_of(store: HistoryStore, row: VersionRow) -> str:
    # A rename creates a version with unchanged bytes.
    data = store.content(row.note_id, row.version)
    assert data is not None
    assert hashlib.sha256(data).hexdigest() == row.digest
    return data.decode()


def _told(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(kind for step in steps for kind in step.told)


def _read_notes(data: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (data / "knowledge").rglob("*")
        if path.is_file()
    }
