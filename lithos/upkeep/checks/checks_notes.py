"""Checks of the notes.

They cover: the folder of the notes, vanished files, whether edits by other programs are noticed at once,
how well saves by other programs are protected from being overwritten, and displaced texts.
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
    """A `Blocking` that abandons its threads on cancellation: a hung disk cannot hang the doctor."""

    async def run(self, call: Callable[[], T]) -> T:
        return await look_aside(call)


@check("watcher", DOCTOR, place=210, when=has_data)
async def check_watching(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Whether a dot-named file is noticed; in a vault, where nothing is made, its file system says it."""
    config = patient.config
    folder, mode = config.of(StorageConfig).notes_folder, config.of(IndexConfig).watch_mode
    if not folder.is_dir():
        raise CheckSkipped("there is no folder of notes")
    if not config.of(ServerConfig).watch_files:
        yield ok("Switched off (server.watch_files); external edits are seen at the next start.")
    elif config.of(StorageConfig).vault is not None:
        yield _vault_watching(folder, mode, await look_aside(lambda: remote_file_system(str(folder))))
    elif mode == "poll":
        yield ok("The folder is compared every second (index.watch_mode poll).")
    else:
        yield await _try_watching(folder, mode)


async def _try_watching(folder: Path, mode: str) -> CheckFinding:
    try:
        trouble = None if await _is_noticed(folder) else f"nothing was noticed within {PROBE_BOUND:g} seconds"
    except* ListeningFailed as failures:
        trouble = str(failures.exceptions[0])
    if trouble is None:
        return ok("Changes are noticed at once.")
    cause = f"The file system does not report changes in {folder}: {trouble}."
    if mode == "native":
        return fail(cause, "Set index.watch_mode to auto or poll: the folder is compared every second.")
    return warn(
        cause,
        "The server compares the folder every second instead. On a network or container mount that is "
        "all that can be had; else raise fs.inotify.max_user_watches.",
    )


def _vault_watching(folder: Path, mode: str, kind: str | None) -> CheckFinding:
    if mode == "poll" or (mode == "auto" and kind is not None):
        return ok("The folder is compared every second.")
    if kind is None:
        return ok("The vault is on a local file system, which reports changes at once.")
    return warn(
        f"{folder} is on {kind}, which reports only changes made on this machine.",
        "Set index.watch_mode to auto or poll: the folder is compared every second.",
    )


async def _is_noticed(folder: Path) -> bool:
    """Raises `ListeningFailed`, in groups."""
    files = NoteFiles(folder)
    # An abandoned watch cannot be closed; it ends within a second after it is stopped.
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
    "A local Linux file system such as ext4, xfs or btrfs supports all of this. The notes may also stay on "
    "the current one."
)


@check("protection", DOCTOR, SYSTEM, place=120, when=lambda each: has_data(each) and not is_vault(each))
def check_protection(patient: Installed) -> Iterator[CheckFinding]:
    """Try out, with dot-named files that are removed, what keeps an agent and an editor from overwriting."""
    notes = patient.config.of(StorageConfig).notes_folder
    if not notes.is_dir():
        yield ok("There are no notes yet.")
        return
    kind = file_system_of(str(notes)) or "this file system"
    try:
        found = NoteFiles(notes).protection
    except OSError as failure:
        yield warn(
            f"It cannot be tried out: {failure.strerror or failure}.", "See the check of the data directory."
        )
        return
    if not found.can_place:
        yield fail(
            f"{notes.absolute()} ({kind}) can neither rename without overwriting nor link, so no note is "
            "written: a file that another program saves at that moment would be overwritten.",
            "Move the notes to another file system.",
        )
        return
    yield from _lacks(found, kind)
    yield ok(
        f"{kind} exchanges files in one step and reports which programs have a file open: "
        "no save of another program is lost."
    )


def is_vault(patient: Installed) -> bool:
    """Return whether the notes are in a folder that Lithos did not create."""
    return patient.config.of(StorageConfig).vault is not None


@check("vault files", DOCTOR, SYSTEM, place=120, when=lambda each: has_data(each) and is_vault(each))
def check_vault_files(patient: Installed) -> Iterator[CheckFinding]:
    """Report how writes of agents affect the files of people, without trying it in the notes folder."""
    try:
        is_near = patient.config.of(StorageConfig).notes_folder.stat().st_dev == patient.private.stat().st_dev
    except OSError as failure:
        yield warn(
            f"This could not be checked: {failure.strerror or failure}.",
            "See the check of the data directory.",
        )
        return
    where = (
        "a replaced file leaves the vault at once"
        if is_near
        else "a replaced file stays next to its note as .lithos-….swap for up to a minute, as the data "
        "directory is on another volume"
    )
    yield ok(
        f"When an agent writes, a new file replaces the old one: {where}, and the birth time that "
        "Obsidian and Dataview show is that of the write. Lithos remembers created_at; a property `created` "
        "in a note shows it to all programs."
    )


def _lacks(found: Protection, kind: str) -> Iterator[CheckFinding]:
    if not found.exchange:
        yield warn(
            f"{kind} cannot exchange two files, so that a note's name is missing for some microseconds "
            "while it is replaced; nothing is lost.",
            _LOCAL,
        )
    if not found.leases:
        yield warn(
            f"{kind} does not report which programs have a file open. A program that pauses "
            "for more than a minute in the "
            "middle of one save, while an agent writes the same note, loses what it writes after the pause.",
            _LOCAL,
        )


@check("displaced texts", DOCTOR, SYSTEM, place=140, when=has_data)
def check_displaced(patient: Installed) -> Iterator[CheckFinding]:
    """Whether there are texts that another program saved and that are in no note."""
    folder = patient.private / DISPLACED
    files = Displaced(folder).list()
    if files:
        newest, names = files[-1], name_some([file.path.name for file in files])
        yield warn(
            f"{len(files)} texts that were saved by other programs, or replaced before Lithos reported them, "
            f"are in {folder.absolute()}: {names}. "
            f"The newest is of {newest.note}, {format_time(newest.time)}.",
            "Compare each with its note, named in the .json next to it, and copy missing text back into the "
            "note. A text stays for 7 days, the newest 100 MB of them.",
        )
    yield ok("No text was displaced.")


@check("notes", DOCTOR, SYSTEM, place=110, when=has_data)
async def check_notes(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Whether the folder is there; reads the notes for the other checks."""
    storage = patient.config.of(StorageConfig)
    if not await look_aside(storage.notes_folder.is_dir):
        yield _missing_notes(patient.data, storage.notes_folder, storage.vault)
        if patient.live is None:
            return
    catalogue = (await patient.read_notes()).catalogue
    yield ok(f"{len(catalogue)} notes can be read.")


def _missing_notes(data: Path, folder: Path, vault: Path | None) -> CheckFinding:
    if vault is not None and not (data / ".lithos" / "manifest.db").exists():
        return fail(f"There is no folder {vault}.", "Name the folder of your notes with --vault.")
    if not (data / ".lithos" / "manifest.db").exists():
        return warn(
            f"There is no folder {folder.relative_to(data)} in {data.absolute()} yet.",
            "The first `lithos serve` makes it.",
        )
    return fail(
        f"The folder {folder.absolute()} has vanished with all notes; nothing was removed.",
        f"Check whether its disk is mounted, then {WAY_OUT}.",
    )


@check("vanished files", DOCTOR, place=170, when=has_data)
def check_vanished(patient: Installed) -> Iterator[CheckFinding]:
    """Whether the guard holds notes whose files have vanished."""
    survey = patient.survey
    catalogue = survey.catalogue
    paths = sorted(
        entry.path
        for entry in catalogue
        if entry.serial in survey.unreadable and entry.path not in catalogue.skipped
    )
    if paths:
        yield fail(
            f"The files of {len(paths)} notes have vanished ({name_some(paths)}); nothing was removed.",
            f"{WAY_OUT[0].upper()}{WAY_OUT[1:]}.",
        )
    yield ok("No files are missing.")
