"""Checks of the notes folder.

The checks cover the notes folder, vanished files, the detection of external edits, the protection of files
that other programs save, and displaced texts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar

import trio

from lithos.kernel.actors.threads import Threads
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import (
    DOCTOR,
    SYSTEM,
    CheckFinding,
    check,
    fail,
    has_data,
    name_some,
    ok,
    warn,
)
from lithos.kernel.values.times import format_time
from lithos.notes.files.displaced import DISPLACED, Displaced
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.protection import Protection, file_system_of, remote_file_system
from lithos.notes.settings import IndexConfig
from lithos.notes.watching.guard import WAY_OUT
from lithos.notes.watching.notifications import PROBE_BOUND, FolderWatch, ListeningFailed, Probe
from lithos.server.settings import ServerConfig
from lithos.upkeep.checks.checks import CheckSkipped, Installed, look_aside

T = TypeVar("T")


class _Aside:
    """A `Blocking` that abandons its threads on cancellation.

    A hanging disk therefore cannot block the checks.
    """

    async def run(self, call: Callable[[], T]) -> T:
        return await look_aside(call)


@check("watcher", DOCTOR, place=210, when=has_data)
async def check_watching(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the server would notice a new file. The test creates a dot-named probe file.

    In a vault, no probe file is created. The result depends only on the file system type.
    """
    config = patient.config
    folder, mode = config.of(StorageConfig).notes_folder, config.of(IndexConfig).watch_mode
    if not folder.is_dir():
        raise CheckSkipped("the notes folder does not exist")
    if not config.of(ServerConfig).watch_files:
        yield ok(
            "File watching is switched off (server.watch_files). External edits are noticed "
            "at the next start."
        )
    elif config.of(StorageConfig).vault is not None:
        yield _vault_watching(folder, mode, await look_aside(lambda: remote_file_system(str(folder))))
    elif mode == "poll":
        yield ok("The folder is scanned every second (index.watch_mode poll).")
    else:
        yield await _try_watching(folder, mode)


async def _try_watching(folder: Path, mode: str) -> CheckFinding:
    try:
        trouble = (
            None if await _is_noticed(folder) else f"no change was noticed within {PROBE_BOUND:g} seconds"
        )
    except* ListeningFailed as failures:
        trouble = str(failures.exceptions[0])
    if trouble is None:
        return ok("Changes are noticed at once.")
    cause = f"The file system does not report changes in {folder}: {trouble}."
    if mode == "native":
        return fail(
            cause, "Set index.watch_mode to auto or poll, so that the folder is scanned every second."
        )
    return warn(
        cause,
        "The server scans the folder every second instead. Network and container mounts allow "
        "nothing better. On other file systems, raise fs.inotify.max_user_watches.",
    )


def _vault_watching(folder: Path, mode: str, kind: str | None) -> CheckFinding:
    if mode == "poll" or (mode == "auto" and kind is not None):
        return ok("The folder is scanned every second.")
    if kind is None:
        return ok("The vault is on a local file system, which reports changes at once.")
    return warn(
        f"{folder} is on {kind}, which reports only changes made on this machine.",
        "Set index.watch_mode to auto or poll, so that the folder is scanned every second.",
    )


async def _is_noticed(folder: Path) -> bool:
    """Return whether a folder watch notices a probe file.

    Raises `ListeningFailed` inside an exception group.
    """
    files = NoteFiles(folder)
    # An abandoned watch cannot be closed. The watch ends within a second after `stop`.
    listening, probe = FolderWatch(files, Threads()), Probe(files, _Aside())

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


_LOCAL: Final = (
    "A local Linux file system such as ext4, xfs or btrfs does not have this limit. You can also "
    "leave the notes on the current file system."
)


@check("protection", DOCTOR, SYSTEM, place=120, when=lambda each: has_data(each) and not is_vault(each))
def check_protection(patient: Installed) -> Iterator[CheckFinding]:
    """Test whether the file system protects the saves of agents and editors from overwriting each other.

    Dot-named probe files are removed afterwards.
    """
    notes = patient.config.of(StorageConfig).notes_folder
    if not notes.is_dir():
        yield ok("There are no notes yet.")
        return
    kind = file_system_of(str(notes)) or "this file system"
    try:
        found = NoteFiles(notes).protection
    except OSError as failure:
        yield warn(
            f"The protection cannot be tested: {failure.strerror or failure}.",
            "See the data directory check.",
        )
        return
    if not found.can_place:
        yield fail(
            f"The file system of {notes.absolute()} ({kind}) supports neither renaming without "
            "overwriting nor links. Lithos therefore writes no note, because a file that another "
            "program saves at that moment would be overwritten.",
            "Move the notes to another file system.",
        )
        return
    yield from _lacks(found, kind)
    yield ok(
        f"{kind} exchanges files in one step and reports which programs have a file open, so no "
        "save of another program is lost."
    )


def is_vault(patient: Installed) -> bool:
    """Return whether the notes are in a folder that Lithos did not create."""
    return patient.config.of(StorageConfig).vault is not None


@check("vault files", DOCTOR, SYSTEM, place=120, when=lambda each: has_data(each) and is_vault(each))
def check_vault_files(patient: Installed) -> Iterator[CheckFinding]:
    """Report how writes by agents affect the files of a vault. Nothing is written to the notes folder."""
    try:
        is_near = patient.config.of(StorageConfig).notes_folder.stat().st_dev == patient.private.stat().st_dev
    except OSError as failure:
        yield warn(
            f"This could not be checked: {failure.strerror or failure}.",
            "See the data directory check.",
        )
        return
    where = (
        "a replaced file leaves the vault at once"
        if is_near
        else "a replaced file stays next to its note as .lithos-….swap for up to a minute, "
        "because the data directory is on another volume"
    )
    yield ok(
        f"When an agent writes a note, a new file replaces the old one: {where}. Obsidian and "
        "Dataview then show the time of the write as the creation time. Lithos remembers "
        "created_at; add a property `created` to a note to show it to all programs."
    )


def _lacks(found: Protection, kind: str) -> Iterator[CheckFinding]:
    if not found.exchange:
        yield warn(
            f"{kind} cannot exchange two files in one step. A note's file is missing for some "
            "microseconds while it is replaced, but no text is lost.",
            _LOCAL,
        )
    if not found.leases:
        yield warn(
            f"{kind} does not report which programs have a file open. If a program pauses for "
            "more than a minute during a save while an agent writes the same note, the program "
            "loses what it writes after the pause.",
            _LOCAL,
        )


@check("displaced texts", DOCTOR, SYSTEM, place=140, when=has_data)
def check_displaced(patient: Installed) -> Iterator[CheckFinding]:
    """Report saved texts of other programs that no note contains."""
    folder = patient.private / DISPLACED
    files = Displaced(folder).list()
    if files:
        newest, names = files[-1], name_some([file.path.name for file in files])
        yield warn(
            f"{len(files)} displaced texts are in {folder.absolute()}: {names}. Other programs "
            "saved these texts, or they were replaced before Lithos reported them. The newest "
            f"text belongs to {newest.note}, {format_time(newest.time)}.",
            "Compare each text with its note, which the .json file next to it names, and copy "
            "missing text back into the note. The newest 100 MB of texts are kept for 7 days.",
        )
    yield ok("There are no displaced texts.")


@check("notes", DOCTOR, SYSTEM, place=110, when=has_data)
async def check_notes(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the notes folder exists, and read the notes for the other checks."""
    storage = patient.config.of(StorageConfig)
    if not await look_aside(storage.notes_folder.is_dir):
        yield _missing_notes(patient.data, storage.notes_folder, storage.vault)
        if patient.live is None:
            return
    catalogue = (await patient.read_notes()).catalogue
    yield ok(f"{len(catalogue)} notes can be read.")


def _missing_notes(data: Path, folder: Path, vault: Path | None) -> CheckFinding:
    if vault is not None and not (data / ".lithos" / "manifest.db").exists():
        return fail(f"There is no folder {vault}.", "Set --vault to the folder of your notes.")
    if not (data / ".lithos" / "manifest.db").exists():
        return warn(
            f"There is no folder {folder.relative_to(data)} in {data.absolute()} yet.",
            "The first `lithos serve` creates it.",
        )
    return fail(
        f"The folder {folder.absolute()} has vanished with all notes. Nothing was removed.",
        f"Check whether its disk is mounted, then {WAY_OUT}.",
    )


@check("vanished files", DOCTOR, place=170, when=has_data)
def check_vanished(patient: Installed) -> Iterator[CheckFinding]:
    """Report notes that Lithos still keeps although their files have vanished."""
    survey = patient.survey
    catalogue = survey.catalogue
    paths = sorted(
        entry.path
        for entry in catalogue
        if entry.serial in survey.unreadable and entry.path not in catalogue.skipped
    )
    if paths:
        yield fail(
            f"The files of {len(paths)} notes have vanished ({name_some(paths)}). Nothing was removed.",
            f"{WAY_OUT[0].upper()}{WAY_OUT[1:]}.",
        )
    yield ok("No files are missing.")
