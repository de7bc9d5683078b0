"""The check whether edits by other programs are noticed at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Literal, TypeVar

import trio

from lithos.actors.blocking import Threads
from lithos.actors.watch_listening import PROBE_BOUND, Listening, ListeningFailed, Probe
from lithos.core.diagnosis import Finding, fail, ok, warn
from lithos.services.diagnosis import look_aside
from lithos.stores.files import NoteFiles

T = TypeVar("T")


class _Aside:
    """Threads that a disk which hangs cannot hold the doctor in."""

    async def run(self, call: Callable[[], T]) -> T:
        return await look_aside(call)


async def check_watching(folder: Path, mode: Literal["auto", "native", "poll", "off"]) -> list[Finding]:
    """Write a dot-named file into the folder of the notes, which has to be noticed; it is removed."""
    if mode == "off":
        return [ok("Switched off (server.watch_files); outside edits are seen at the next start.")]
    if mode == "poll":
        return [ok("The folder is compared every second (index.watch_mode poll).")]
    try:
        trouble = None if await _is_noticed(folder) else f"nothing was noticed within {PROBE_BOUND:g} seconds"
    except* ListeningFailed as failures:
        trouble = str(failures.exceptions[0])
    if trouble is None:
        return [ok("Changes are noticed at once.")]
    cause = f"The file system does not tell of changes in {folder}: {trouble}."
    if mode == "native":
        return [fail(cause, "Set index.watch_mode to auto or poll: the folder is compared every second.")]
    return [
        warn(
            cause,
            "The server compares the folder every second instead. On a network or container mount that is "
            "all that can be had; else raise fs.inotify.max_user_watches.",
        )
    ]


async def _is_noticed(folder: Path) -> bool:
    """Raises `ListeningFailed`, in groups."""
    files = NoteFiles(folder)
    # A watch that is left to itself cannot be closed; it ends within a second when told to.
    listening, probe = Listening(files, Threads()), Probe(files, _Aside())

    async def listen() -> None:
        async with aclosing(listening.notices()) as notices:
            async for noticed in notices:
                probe.look_for_it(noticed)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        try:
            return await probe.is_noticed()
        finally:
            listening.stop()
