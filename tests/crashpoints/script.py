"""Recorded script of a server: all kinds of changes in two sessions, with a person's edits in between.

Each change belongs to a *lane* (one note, task, edge or agent). The steps of a lane follow one another. After
a crash, a lane must have the state of its last confirmed step or of the step in progress.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
from attrs import define, field, frozen

import lithos.app.server
from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.events import EDGE_UPSERTED
from tests.crashpoints.disk import Image
from tests.crashpoints.recording import REBUILDABLE, Recorder
from tests.servers import Lithos, serving

#: State of a lane as JSON. None means that the object does not exist.
State = Any
#: Tools whose changes do not cause an event.
SILENT = {"lithos_task_renew"}
#: Maximum attempts for a refused change, and seconds to wait for its event. On a busy machine, background
#: calls mix with the change, so several attempts may contain a failing call.
TRIES = 12
PATIENCE = 60.0
#: Maximum attempts for a start. A start makes more calls than any change.
STARTS = 10
#: Words of a refusal although the change was stored.
_SAYS_STORED = re.compile(r"is (created|updated|deleted|stored) in")
#: A word that is in every note, so that one search finds all notes.
WORD = "quokka"


@frozen
class Told:
    """An event from the journal."""

    seq: int
    type: str
    lane: str


@frozen
class Step:
    """One change of a lane: its begin and its confirmation in the record, and the state afterwards.

    `told` contains the types of the step's events. `seqs` contains their known sequence numbers.
    """

    what: str
    begin: int
    end: int
    state: State
    told: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()
    is_outside: bool = False


@define(eq=False)
class Script:
    """The script, with all promises that its answers made."""

    recorder: Recorder
    data: Path
    lanes: dict[str, list[Step]] = field(factory=lambda: defaultdict(list))
    #: Fences that were granted, each with the record position of its confirmation.
    fences: list[tuple[int, int]] = field(factory=list)
    #: Answers that refused a requested change. Only injected failures may cause refusals.
    refused: list[str] = field(factory=list)
    #: Contents of the index folders, with their positions in the record.
    indexes: list[tuple[int, Image]] = field(factory=list)
    _lithos: Lithos | None = None

    @property
    def here(self) -> int:
        """Number of operations recorded so far."""
        return len(self.recorder.log)

    @property
    def lithos(self) -> Lithos:
        assert self._lithos is not None
        return self._lithos

    async def run(self) -> None:
        """Run both sessions and the person's edits between them."""
        async with self._session():
            await self._first_session()
        self._person()
        async with self._session():
            await self._second_session()

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[None]:
        """Run a server. If the start fails, repeat it."""
        close = lithos.app.server.close_stores

        def close_undisturbed(stores: Any) -> None:
            # SQLite ignores failures when it closes a file, but apsw raises exceptions from a Python file.
            self.recorder.is_outside = True
            close(stores)
            self.recorder.is_outside = False

        async with AsyncExitStack() as stack:
            stack.enter_context(pytest.MonkeyPatch.context()).setattr(
                lithos.app.server, "close_stores", close_undisturbed
            )
            for attempt in range(STARTS):
                try:
                    self._lithos = await stack.enter_async_context(
                        serving(self.data, server={"max_answer_chars": 0})
                    )
                    break
                except Exception as failure:
                    kinds = (OSError, apsw.Error)
                    is_refusal = isinstance(failure, kinds) or (
                        isinstance(failure, ExceptionGroup) and failure.split(kinds)[1] is None
                    )
                    if not is_refusal:
                        raise
                    assert attempt < STARTS - 1, "it does not start"
                    self.refused.append(f"start: {failure}")
            await self._hear("", 0, 0)  # the events of the scan may arrive late in the journal
            yield

    async def _first_session(self) -> None:
        await self._do("agent ada", "lithos_agent_register", id="ada", name="Ada", type="person")
        alpha = await self._write("Alpha", "first text")
        beta = await self._write("Beta", "in a folder", path="deep/er")
        async with trio.open_nursery() as nursery:
            ids: dict[str, str] = {}

            async def create(title: str) -> None:
                ids[title] = await self._write(title, "at the same time")

            for title in ("Gamma", "Delta", "Epsilon"):
                nursery.start_soon(create, title)
        await self._write("Alpha", "second text, longer " * 40, id=alpha)
        await self._patch(beta, tags=["seen"], status="archived")
        one = await self._create_task("One")
        two = await self._create_task("Two", depends_on=[one])
        await self._claim(one, "code")
        await self._claim(two, "review")
        await self._task(one, "lithos_task_renew", aspect="code")
        await self._task(one, "lithos_finding_post", summary="it was the cache", knowledge_id=alpha)
        await self._draw(alpha, beta, 0.25)
        await self._draw(alpha, beta, 0.75)
        await self.lithos.call("lithos_retrieve", query=WORD, task_id=one)
        await self._delete(ids["Gamma"])
        await self._task(one, "lithos_task_complete", outcome="done", cited_nodes=[alpha])
        await self._task(one, "lithos_task_reopen")
        await self._claim(one, "code")
        await self._task(one, "lithos_task_release", aspect="code")
        await self._task(two, "lithos_task_cancel")
        await self._delete(ids["Delta"])

    def _person(self) -> None:
        """Edit, move and remove notes while no server runs. Sync the files as a careful program does."""
        notes = self.data / "knowledge"
        self.recorder.is_outside = True
        try:
            self._outside(
                "Alpha", "note.updated", lambda lane: _save(notes / lane["path"], lane["text"] + "More.\n")
            )
            self._outside(
                "Beta", "note.renamed", lambda lane: _move(notes / lane["path"], notes / "moved.md")
            )
            self._outside("Epsilon", "note.deleted", lambda lane: _remove(notes / lane["path"]))
        finally:
            self.recorder.is_outside = False

    async def _second_session(self) -> None:
        by_title = await self._ids_by_title()
        await self._write("Alpha", "third text", id=by_title["Alpha"])
        await self._patch(by_title["Beta"], metadata={"color": "red"})
        await self._write("Zeta", "new", path="deep/er")
        three = await self._create_task("Three")
        await self._claim(three, "code")
        await self._task(three, "lithos_task_complete", outcome="well")
        await self._delete(by_title["Alpha"])

    # -- kinds of changes ------------------------------------------------------------------------

    async def _write(self, title: str, text: str, **more: Any) -> str:
        lane = f"note {title}"
        answer = await self._do(
            lane, "lithos_write", title=title, content=f"About {WORD}. {text}", agent="ada", **more
        )
        return str(answer["id"]) if "id" in answer else (await self._ids_by_title())[title]

    async def _patch(self, note: str, **changes: Any) -> None:
        await self._do(await self._lane_of(note), "lithos_note_update", id=note, agent="ada", **changes)

    async def _delete(self, note: str) -> None:
        await self._do(await self._lane_of(note), "lithos_delete", id=note, agent="ada")

    async def _create_task(self, title: str, **more: Any) -> str:
        answer = await self._do(f"task {title}", "lithos_task_create", title=title, agent="ada", **more)
        return str(answer["task_id"])

    async def _task(self, task: str, tool: str, **more: Any) -> dict[str, Any]:
        rows = (await self.lithos.call("lithos_task_status", task_id=task))["tasks"]
        return await self._do(f"task {rows[0]['title']}", tool, task_id=task, agent="ada", **more)

    async def _claim(self, task: str, aspect: str) -> None:
        answer = await self._task(task, "lithos_task_claim", aspect=aspect)
        self.fences.append((self.here, answer["fence"]))

    async def _draw(self, one: str, other: str, weight: float) -> None:
        await self._do(
            "edge supports", "lithos_edge_upsert", from_id=one, to_id=other, type="supports", weight=weight,
            namespace="n", provenance_actor="ada",
        )  # fmt: skip

    async def _ids_by_title(self) -> dict[str, str]:
        items = (await self.lithos.call("lithos_list", limit=1000))["items"]
        return {item["title"]: item["id"] for item in items}

    async def _lane_of(self, note: str) -> str:
        return f"note {(await self.lithos.read(note))['title']}"

    # -- steps -----------------------------------------------------------------------------------

    async def _do(self, lane: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make one change through a tool. Repeat a refused change unless it was stored."""
        begin = self.here
        heard = self.lithos.server.get(Coordinator).head
        before = self.lanes[lane][-1].state if self.lanes[lane] else None
        for _ in range(TRIES):
            answer = dict(await self.lithos.call(tool, **arguments))
            end = self.here
            if answer.get("status") != "error":
                break
            self.refused.append(f"{tool} on {lane}: {answer['message']}")
            assert answer["code"] == "internal_error", (tool, lane, answer, self.recorder.failed)
            is_stored = (await observe(self.lithos)).get(lane) != before
            assert is_stored == bool(_SAYS_STORED.search(answer["message"])), (lane, is_stored, answer)
            if is_stored:
                break
        else:
            raise AssertionError(f"{tool} on {lane} is refused again and again: {answer}")
        told = await self._hear(lane, heard, 0 if tool in SILENT else 1)
        state = (await observe(self.lithos)).get(lane)
        types, seqs = tuple(event.type for event in told), tuple(event.seq for event in told)
        self.lanes[lane].append(Step(tool, begin, end, state, types, seqs))
        self.indexes.append((self.here, read_indexes(self.data)))
        return answer

    async def _hear(self, lane: str, heard: int, number: int) -> list[Told]:
        """Return the events of a step. If calls fail, the events arrive after the answer."""
        with trio.fail_after(PATIENCE):
            while True:
                told = [
                    event for event in read_events(self.lithos) if event.seq > heard and event.lane == lane
                ]
                if len(told) >= number and not self.lithos.server.get(Coordinator).unwritten_origins:
                    return told
                await trio.sleep(0.01)

    def _outside(self, title: str, told: str, act: Callable[[Mapping[str, str]], None]) -> None:
        """Make one change as another program does. The next scan reports the change."""
        steps = self.lanes[f"note {title}"]
        before = dict(steps[-1].state)
        begin = self.here
        act(before)
        after = _read_note(self.data / "knowledge", before, told)
        steps.append(Step(f"outside {told}", begin, self.here, after, (told,), is_outside=True))


def read_indexes(data: Path) -> Image:
    """Return the folders that native libraries write. Files that are deleted meanwhile are left out."""
    image: Image = {}
    for name in REBUILDABLE:
        for path in sorted((data / name).rglob("*")):
            with suppress(FileNotFoundError):
                image[str(path.relative_to(data))] = (
                    None if path.is_dir() else (path.read_bytes(), path.stat().st_mtime_ns)
                )
        if (data / name).is_dir():
            image[name] = None
    return dict(sorted(image.items()))


def _read_note(notes: Path, before: dict[str, Any], told: str) -> State:
    if told == "note.deleted":
        return None
    path = "moved.md" if told == "note.renamed" else before["path"]
    return before | {"path": path, "text": (notes / path).read_text()}


def _save(file: Path, text: str) -> None:
    """Save a file as a careful editor does."""
    staged = file.with_name("4913~")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, text.encode())
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(staged, file)
    _sync(file.parent)


def _move(file: Path, target: Path) -> None:
    os.rename(file, target)
    _sync(target.parent)
    _sync(file.parent)


def _remove(file: Path) -> None:
    os.unlink(file)
    _sync(file.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


# -- current state -------------------------------------------------------------------------------


async def observe(lithos: Lithos) -> dict[str, State]:
    """Return the state of every existing lane."""
    items = (await lithos.call("lithos_list", limit=1000))["items"]
    lanes: dict[str, State] = {
        f"note {item['title']}": {
            "id": item["id"],
            "path": item["path"],
            "text": (lithos.knowledge / item["path"]).read_bytes().decode(),
        }
        for item in items
    }
    assert len(lanes) == len(items), f"a note is there twice: {[item['path'] for item in items]}"
    for row in (await lithos.call("lithos_task_list", with_claims=True))["tasks"]:
        findings = (await lithos.call("lithos_finding_list", task_id=row["id"]))["findings"]
        edges = (await lithos.call("lithos_task_edge_list", task_id=row["id"], direction="incoming"))["edges"]
        assert f"task {row['title']}" not in lanes, "a task is there twice"
        lanes[f"task {row['title']}"] = row | {"findings": findings, "edges": edges}
    for row in (await lithos.call("lithos_edge_list", namespace="n"))["edges"]:
        assert f"edge {row['type']}" not in lanes, "an edge is there twice"
        lanes[f"edge {row['type']}"] = row["weight"]
    for row in (await lithos.call("lithos_agent_list"))["agents"]:
        if row["name"]:
            lanes[f"agent {row['id']}"] = [row["name"], row["type"]]
    return lanes


def read_events(lithos: Lithos) -> list[Told]:
    """Return the journal without `task.ready` events, which other lanes cause.

    Sequence numbers must increase.
    """
    path = str(lithos.data / ".lithos/coordination.db")
    # The `journal` connection bypasses the hooks, and also the server's own connections, which are in use.
    journal = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix")
    rows = journal.execute(
        "SELECT seq, type, payload FROM events WHERE type<>'task.ready' ORDER BY rowid"
    ).fetchall()
    # A task may count as ready only if an event reported it, and vice versa, however the process ended.
    ready = {str(row[0]) for row in journal.execute("SELECT task_id FROM ready_tasks")}
    told = {
        str(json.loads(str(row[0]))["task_id"])
        for row in journal.execute("SELECT payload FROM events WHERE type='task.ready'")
    }
    journal.close()
    assert ready <= told, f"nobody was told that {ready - told} are ready"
    found: list[Told] = []
    names: dict[str, str] = {}
    for seq, kind, payload in rows:
        said = json.loads(payload)
        if kind == EDGE_UPSERTED:
            lane = f"edge {said['type']}"
        elif kind.startswith("agent."):
            lane = f"agent {said['agent_id']}"
        elif kind.startswith("note."):
            names[said["id"]] = str(said.get("title") or names.get(said["id"], said["id"]))
            lane = f"note {names[said['id']]}"
        else:
            names[said["task_id"]] = str(said.get("title") or names.get(said["task_id"], said["task_id"]))
            lane = f"task {names[said['task_id']]}"
        found.append(Told(seq, kind, lane))
    seqs = [event.seq for event in found]
    assert seqs == sorted(set(seqs)), f"numbers of events repeat or go back: {seqs}"
    return found
