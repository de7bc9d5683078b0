"""Fakes of the slow stores and of an actor's environment, for tests on a mock clock."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.events.journal.broadcaster import Broadcaster, Subscription
from lithos.kernel.actors.mailboxes import ActorDown, Mailbox, supervise
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import IndexFailed, LithosError
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.files.values import FileState, digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.indexing_messages import Upsert
from lithos.notes.model.note import Document, Note
from lithos.search.indexing.indexer import Indexer

START = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


class Clock:
    """A wall clock that moves only when a test moves it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float = 0.0, **more: float) -> datetime:
        self.now += timedelta(seconds=seconds, **more)
        return self.now


class Killed(BaseException):
    """Simulated end of the process."""


class LateCalls(KernelCalls):
    """Real files, seen at a time long after all files were saved."""

    def now(self) -> float:
        return super().now() + 3_600.0


@attrs.define(eq=False)
class FakeIndex:
    """An index in memory. `failing` lets batches fail. `ready` says whether the model is loaded."""

    held: dict[int, int] = attrs.field(factory=dict)
    contents: dict[int, str] = attrs.field(factory=dict)
    applied: list[tuple[list[int], list[int]]] = attrs.field(factory=list)
    failing: bool = False
    crashing: int = 0
    ready: bool = True
    #: Number of notes that a repair applies at once. The indexer reads this setting from every index.
    repair_size: int = 10

    def is_ready(self) -> bool:
        return self.ready

    def expected(self, entry: Entry) -> int:
        return entry.stamp

    def stamps(self) -> Mapping[int, int]:
        return self.held

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        if self.crashing:
            self.crashing -= 1
            raise RuntimeError("a bug in the index")
        if self.failing:
            raise IndexFailed("the disk is full")
        self.applied.append(([upsert.entry.serial for upsert in upserts], list(removals)))
        for serial in [*removals, *(upsert.entry.serial for upsert in upserts)]:
            self.held.pop(serial, None)
            self.contents.pop(serial, None)
        for upsert in upserts:
            self.held[upsert.entry.serial] = self.expected(upsert.entry)
            self.contents[upsert.entry.serial] = upsert.document.content


class Gate(Inline):
    """An executor with a gate. It runs calls at once while it is open, and delays calls while it is shut."""

    def __init__(self) -> None:
        self._is_open = True
        self._waiting: list[trio.Event] = []

    def shut(self) -> None:
        self._is_open = False

    def open(self) -> None:
        self._is_open = True
        while self._waiting:
            self.let_newest()

    def let_oldest(self) -> None:
        """Let the call pass that has waited the longest time."""
        self._waiting.pop(0).set()

    def let_newest(self) -> None:
        """Let the call pass that has waited the shortest time."""
        self._waiting.pop().set()

    async def run(self, call: Callable[[], Any]) -> Any:
        if not self._is_open:
            turn = trio.Event()
            self._waiting.append(turn)
            await turn.wait()
        return await super().run(call)


def make_entry(serial: int = 1, path: str | None = None, **fields: Any) -> Entry:
    """Return an entry without a file."""
    note_id = fields.pop("id", f"00000000-0000-4000-8000-{serial:012}")
    title = fields.pop("title", f"Note {serial}")
    links = fields.pop("links", ())
    note = Note(id=note_id, title=title, **fields)
    path = path or f"n{serial}.md"
    digest = digest_of(f"{note!r}{links}".encode())
    return Entry(serial, path, note, digest, FileState(1, serial), True, tuple(links))


def make_upsert(entry: Entry, content: str = "") -> Upsert:
    return Upsert(entry, Document(note=entry.note, content=content))


def put_file(files: NoteFiles, path: str, text: str) -> bytes:
    """Write a file as an editor does. Return its bytes."""
    target = files.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode())
    return text.encode()


def enter_file(catalogue: Catalogue, files: NoteFiles, path: str, text: str) -> Entry:
    """Create a file and its catalogue entry. Return the entry."""
    put_file(files, path, text)
    source = files.read(path)
    note = parse_document(source.data, path, START).note
    serial = catalogue.take_serial()
    entry = Entry(serial, path, note, digest_of(source.data), source.state, True)
    catalogue.put(entry)
    return entry


def fail_writes(patch: pytest.MonkeyPatch, word: bytes, code: int, *, times: int = 1_000_000) -> None:
    """Let the disk refuse writes that contain `word`. At most `times` writes are refused."""
    real, left = os.write, [None] * times

    def write(descriptor: int, data: memoryview) -> int:
        if word in bytes(data) and left:
            left.pop()
            raise OSError(code, os.strerror(code))
        return real(descriptor, data)

    patch.setattr(os, "write", write)


def slip_in(
    patch: pytest.MonkeyPatch,
    files: NoteFiles,
    act: Callable[[], object],
    *,
    times: int = 1,
    path: str | None = None,
    after: bool = False,
) -> None:
    """Call `act` directly before (or `after`) the writer changes a file (or this `path`), several times."""
    real, left = files.apply, [None] * times

    def apply(changes: Any) -> Any:
        is_meant = bool(left) and path in (None, changes[0].path)
        if is_meant:
            left.pop()
        if is_meant and not after:
            act()
        results = real(changes)
        if is_meant and after:
            act()
        return results

    patch.setattr(files, "apply", apply)


@asynccontextmanager
async def served(
    mailbox: Mailbox[Any, Any], start: Any, *beside: Callable[..., Any]
) -> AsyncIterator[trio.Nursery]:
    """Run the actor under its supervisor. Yield a nursery for other tasks.

    At the end of the block, the mailbox is closed and drained.
    """
    async with trio.open_nursery() as actors:
        await actors.start(partial(supervise, mailbox, start))
        async with trio.open_nursery() as background:
            for task in beside:
                background.start_soon(task)
            yield background
            background.cancel_scope.cancel()
        mailbox.close()


async def ask_together(ask: Callable[[Any], Any], gate: Gate, first: Any, *requests: Any) -> list[Any]:
    """Return the answers or refusals of requests that wait in order while the actor processes `first`."""
    answers: list[Any] = [None] * len(requests)

    async def put(place: int, request: Any) -> None:
        try:
            answer = await ask(request)
        except (LithosError, ActorDown) as refusal:
            answer = refusal
        if place >= 0:
            answers[place] = answer

    gate.shut()
    async with trio.open_nursery() as nursery:
        for place, request in enumerate((first, *requests), -1):
            nursery.start_soon(put, place, request)
            await wait_all_tasks_blocked()
        gate.open()
    return answers


def make_indexer(name: str, index: FakeIndex, catalogue: Catalogue, files: NoteFiles) -> Indexer:
    return Indexer(name, index, catalogue, files, Inline())


class Turns(trio.abc.Instrument):
    """Counter of event loop turns. Install it with `trio.lowlevel.add_instrument`."""

    def __init__(self) -> None:
        self.number = 0

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1


@contextmanager
def subscribed(broadcaster: Broadcaster) -> Iterator[Subscription]:
    """Subscribe to all events during the block."""
    subscription = broadcaster.listen()
    try:
        yield subscription
    finally:
        broadcaster.leave(subscription)
