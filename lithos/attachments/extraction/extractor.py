"""The extractor: a separate process that reads files within limits (docs/spec/attachments.md §5).

The process (`lithos.attachments.files.worker`) receives open files, one at a time. It is killed if it exceeds
a time limit or sends an invalid answer, and a new process reads the next file. Time limits apply to the
processor time if the system reports it. On a busy machine, the same files can therefore be read.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

import trio
from attrs import define, field, frozen

import lithos
from lithos.attachments.files.worker_protocol import (
    OUT_OF_MEMORY,
    AnswerDecoder,
    Digest,
    End,
    Garbage,
    PageBegun,
    Picture,
    ReadingRequest,
    WorkerAnswer,
)
from lithos.attachments.model.kinds import (
    FILE_SECONDS,
    MOST_MEMORY,
    MOST_PARTS,
    MOST_TEXT,
    OPENING_SECONDS,
    PAGE_SECONDS,
    FileKind,
)
from lithos.attachments.model.parts import FilePart
from lithos.kernel.actors.threads import Blocking, Threads

#: Seconds without a request after which the process is ended to free its memory.
IDLE_SECONDS: Final = 30.0
#: Maximum elapsed time as a multiple of the time limit. It allows for a busy machine or a slow disk.
PATIENCE: Final = 30.0
#: Maximum parts and characters per batch for the receiver.
_BATCH, _BATCH_TEXT = 64, 1 << 17
_PIECE: Final = 1 << 18
#: Environment variables that the process's interpreter may need.
_KEPT: Final = ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_MODULE: Final = "lithos.attachments.files.worker"
_PNG: Final = b"\x89PNG\r\n\x1a\n"

#: Outcomes of reading a file. Callers set `left` for files that they do not read.
State: TypeAlias = Literal["whole", "cut", "failed", "unchanged", "missing", "left"]
Take: TypeAlias = Callable[[Sequence[FilePart]], Awaitable[None]]


@frozen
class FileExtraction:
    """The result of reading a file.

    `state` is `whole`, `cut`, `failed`, `unchanged` (the digest is the known one) or `missing` (the library
    is not installed). `cut` and `failed` have a `reason`, which is part of a sentence. `digest` is None if
    the bytes were not read. `parts` is the number of parts passed to the receiver.
    """

    state: State
    reason: str
    digest: str | None
    parts: int


class DrawingFailed(Exception):
    """Error: a page cannot be drawn. The message is the reason, as part of a sentence."""


class _Lost(Exception):
    """Error: the process has ended or must be ended. The message is the reason, as part of a sentence."""


@frozen
class _Limits:
    """Time limits in seconds: for a file, for each page, and for the time before the first page."""

    file: float
    page: float
    opening: float


@define(eq=False)
class _Child:
    """A running process, with the server's end of the socket."""

    pid: int
    socket: trio.socket.SocketType
    #: Seconds that the server has waited for the process.
    waited: float = 0.0

    def used(self) -> float:
        """Return the processor seconds of the process. If they are unknown, return the seconds of waiting."""
        if sys.platform == "linux":
            with suppress(OSError):
                return time.clock_gettime((~self.pid << 3) | 2)  # the processor clock of another process
        return self.waited

    def peak(self) -> int | None:
        """Return the peak memory of the process in bytes, or None if it is unknown."""
        try:
            told = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        except OSError:
            return None
        return None if told is None else int(told[1]) << 10


@define(eq=False)
class _Exchange:
    """One request to the process, and the answers received so far."""

    _child: _Child
    _limits: _Limits
    #: Name of the work before the first page, for messages. "" for a file without pages, which has a
    #: single time limit.
    _first: str
    _page: int = 0
    _answers: AnswerDecoder = field(factory=AnswerDecoder)
    #: Processor time and waiting time: at the beginning of the request, and at the latest message.
    _began: tuple[float, float] = field(init=False)
    _heard: tuple[float, float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._began = self._heard = self._now()

    def _now(self) -> tuple[float, float]:
        return self._child.used(), self._child.waited

    async def next(self) -> list[WorkerAnswer]:
        """Return the next answers. Raises `_Lost`."""
        while True:
            data = await self._receive(self._left())
            if data == b"":
                raise _Lost("")
            try:
                answers = list(self._answers.feed(data or b""))
            except Garbage:
                raise _Lost("the file reader sent an invalid answer") from None
            if answers:
                self._heard = self._now()
                pages = [each.page for each in answers if isinstance(each, PageBegun)]
                self._page = pages[-1] if pages else self._page
                return answers

    def _left(self) -> float:
        """Return the seconds until the next time limit. Raises `_Lost` if a limit is exceeded."""
        limits = [(self._began, self._limits.file, "reading it")]
        if self._page:
            limits.append((self._heard, self._limits.page, f"page {self._page}"))
        elif self._first:
            limits.append((self._heard, self._limits.opening, self._first))
        used, waited = self._now()
        left = list[float]()
        for since, most, what in limits:
            rest = most - (used - since[0])
            if rest <= 0 or waited - since[1] > most * PATIENCE:
                raise _Lost(f"{what} took longer than {most:g} s")
            left.append(rest)
        return min(left)

    async def _receive(self, seconds: float) -> bytes | None:
        """Return the received bytes, b"" at the end of the stream, or None after `seconds`."""
        began = trio.current_time()
        data: bytes | None = None
        with trio.move_on_after(max(0.01, seconds)), suppress(ConnectionError):
            data = await self._child.socket.recv(_PIECE)
        self._child.waited += trio.current_time() - began
        return data


class Extractor:
    """Service that reads files and draws pages, one at a time. Callers must call `close`."""

    def __init__(
        self,
        *,
        file_seconds: float = FILE_SECONDS,
        page_seconds: float = PAGE_SECONDS,
        opening_seconds: float = OPENING_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        memory: int = MOST_MEMORY,
    ) -> None:
        self._limits = _Limits(file_seconds, page_seconds, opening_seconds)
        self._idle_seconds = idle_seconds
        self._memory = memory
        self._one = trio.Lock()
        self._child: _Child | None = None
        self._peak: int | None = None
        self._idle = trio.CancelScope()
        self._waiting: Blocking = Threads()

    async def extract(
        self, file: int, kind: FileKind, name: str, known: str | None, take: Take
    ) -> FileExtraction:
        """Read an open file and pass its parts to `take` in batches. The caller must close the file.

        If the file's digest is `known`, no parts are passed. Raises `OSError` if no process can be started.
        Errors of `take` are raised unchanged.
        """
        async with self._one:
            taking = _Taking(take)
            try:
                first = "opening it" if kind == "pdf" else ""
                exchange = await self._ask(ReadingRequest(kind, name, known or ""), file, first=first)
                while taking.end is None:
                    taking.note(await exchange.next())
                    await taking.pass_on()
                self._rest()
            except _Lost as lost:
                reason = await self._end(str(lost))
                await taking.pass_on(all_of_it=True)
                taking.end = End("cut" if taking.parts else "failed", reason)
            except BaseException:
                await self._end("")
                raise
            return FileExtraction(taking.end.state, taking.end.reason, taking.digest, taking.parts)

    async def draw(self, file: int, page: int, width: int) -> bytes:
        """Return a page (from 1) of an open PDF file as a PNG image, `width` pixels wide.

        Raises `DrawingFailed`, or `OSError` if no process can be started.
        """
        async with self._one:
            picture, end = b"", None
            try:
                asked = ReadingRequest(page=max(page, 0), width=max(width, 1))
                exchange = await self._ask(asked, file, first="drawing it")
                while end is None:
                    for answer in await exchange.next():
                        picture = answer.data if isinstance(answer, Picture) else picture
                        end = answer if isinstance(answer, End) else end
                self._rest()
            except _Lost as lost:
                end = End("failed", await self._end(str(lost)))
            except BaseException:
                await self._end("")
                raise
            if end.state != "whole" or not picture.startswith(_PNG):
                raise DrawingFailed(end.reason or "the file reader sent an invalid answer")
            return picture

    async def close(self) -> None:
        """End the process after the current file. A later request starts a new process."""
        async with self._one:
            self._idle.cancel()
            await self._end("")

    def memory(self) -> int | None:
        """Return the peak memory of all processes so far in bytes, or None if it is unknown."""
        return self._peak

    async def _ask(self, request: ReadingRequest, file: int, *, first: str) -> _Exchange:
        self._idle.cancel()
        if self._child is not None and _has_ended(self._child):
            self._child.socket.close()  # the process ended between two files, so this file did not cause it
            self._child = None
        if self._child is None:
            self._child = self._start()
        exchange = _Exchange(self._child, self._limits, first)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [file]))]
        with suppress(ConnectionError):  # reading the answers will report the error
            await self._child.socket.sendmsg([request.to_line()], rights)
        return exchange

    def _start(self) -> _Child:
        """Start a process.

        Always call this in the same thread. The process is killed when the thread that started it ends.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                theirs.set_inheritable(True)
                arguments = (theirs.fileno(), self._memory, os.getpid())
                quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
                # `-P` prevents imports from the current folder, because the folder may be a vault.
                pid = os.posix_spawn(
                    sys.executable,
                    [sys.executable, "-P", "-m", _MODULE, *map(str, arguments)],
                    _environment(),
                    file_actions=quiet,
                )
        except BaseException:
            ours.close()
            raise
        return _Child(pid, trio.socket.from_stdlib_socket(ours))

    async def _end(self, reason: str) -> str:
        """End the process if it is running.

        Return the given reason, or the cause if the process had ended.
        """
        child, self._child = self._child, None
        if child is None:
            return reason
        self._note_peak(child)
        child.socket.close()
        os.kill(child.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            status = await self._waiting.run(lambda: os.waitpid(child.pid, 0)[1])
        return reason or self._death(os.waitstatus_to_exitcode(status))

    def _death(self, code: int) -> str:
        if code == OUT_OF_MEMORY:
            return f"the file reader ran out of memory ({self._memory >> 20} MB)"
        if code == -signal.SIGABRT:  # PDFium aborts if memory runs out or an internal check fails
            return f"the file reader stopped, probably for lack of memory ({self._memory >> 20} MB; signal 6)"
        return f"the file reader crashed ({f'signal {-code}' if code < 0 else f'status {code}'})"

    def _rest(self) -> None:
        """Schedule the end of the idle process. The next request cancels it."""
        assert self._child is not None
        self._note_peak(self._child)
        self._idle = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._end_when_idle, self._idle)

    async def _end_when_idle(self, scope: trio.CancelScope) -> None:
        with scope:
            await trio.sleep(self._idle_seconds)
            async with self._one:
                await self._end("")

    def _note_peak(self, child: _Child) -> None:
        if (peak := child.peak()) is not None:
            self._peak = max(peak, self._peak or 0)


@define(eq=False)
class _Taking:
    """Collector of the answers about one file: batches of parts for the receiver, and the final answer."""

    _take: Take
    digest: str | None = None
    end: End | None = None
    parts: int = 0
    _held: list[FilePart] = field(factory=list)
    _held_text: int = 0
    _room: int = MOST_TEXT

    def note(self, answers: Sequence[WorkerAnswer]) -> None:
        """Add received answers. Raises `_Lost` for impossible answers, because the process is not trusted."""
        for answer in answers:
            match answer:
                case FilePart():
                    self._held.append(answer)
                    self._held_text += len(answer.text)
                    self._room -= len(answer.text)
                case Digest(value):
                    self.digest = value
                case End():
                    self.end = answer
                case _:
                    pass
        if self._room < 0 or self.parts + len(self._held) > MOST_PARTS:
            self._held.clear()
            raise _Lost("the file reader sent too much text")

    async def pass_on(self, *, all_of_it: bool = False) -> None:
        """Pass the collected parts on: a full batch, the last batch, or all parts if `all_of_it` is true."""
        is_enough = len(self._held) >= _BATCH or self._held_text >= _BATCH_TEXT
        if self._held and (is_enough or all_of_it or self.end is not None):
            batch, self._held = self._held, []
            self._held_text = 0
            await self._take(batch)
            self.parts += len(batch)


def _has_ended(child: _Child) -> bool:
    """Return whether a process has ended. A process that has ended is reaped."""
    return os.waitpid(child.pid, os.WNOHANG)[0] != 0


def _environment() -> dict[str, str]:
    """Return the environment for the process: the variables of its interpreter, without secrets."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    root = Path(lithos.__file__).parents[1]
    if not root.name.endswith("-packages"):  # a checkout, which Python may find only in the current folder
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, (kept.get("PYTHONPATH"), str(root))))
    return kept
