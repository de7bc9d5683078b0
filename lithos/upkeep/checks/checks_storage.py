"""Checks of the data directory: configuration, file access, disk space, databases, layout and clock."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from lithos.kernel.databases.lock import has_locks
from lithos.kernel.databases.migrations import CURRENT
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.operating_system import user_id
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import (
    CONFIGURATION,
    DOCTOR,
    SYSTEM,
    CheckFinding,
    check,
    checks_of,
    fail,
    has_data,
    name_some,
    ok,
    warn,
)
from lithos.kernel.values.times import format_time, to_microseconds
from lithos.notes.files.replacing import check_writable
from lithos.search.embedding.transformer_models import MODELS
from lithos.upkeep.checks.checks import Installed, look_aside
from lithos.upkeep.files.probes import (
    check_integrity,
    free_space,
    newest_event_time,
    read_layout_version,
    try_folder,
)


@check("configuration", DOCTOR, SYSTEM, place=10)
def check_configuration(patient: Installed) -> Iterator[CheckFinding]:
    """Report invalid values, unknown keys and unprotected access in the configuration."""
    for problem in patient.problems:
        yield fail(f"{problem}.", "Correct the configuration. Lithos cannot start until it is valid.")
    for warning in patient.warnings:
        yield warn(f"{warning}.", "Correct the name, or remove the setting.")
    for each in checks_of(CONFIGURATION):
        if each.when(patient):
            yield from each.look(patient)
    for remark in patient.remarks():
        yield warn(remark, "")
    yield ok("All settings are known and have valid values.")


_MIB: Final = 1024 * 1024
#: Minimum free bytes and inodes. With less free space, a write may fail at any moment.
_LEAST = (32 * _MIB, 100)
_LITTLE = (512 * _MIB, 10_000)
#: Maximum difference between two readings of the same clock. A larger difference is an error.
_CLOCK_SLACK: Final = timedelta(minutes=1)
_FAR_FUTURE: Final = timedelta(days=1)

_ASIDE = (
    "Restore the file from a backup, or start the server. The server moves the damaged file aside, with its "
    "bytes intact, and creates a new one."
)
#: Advice for each database, shown if the database is damaged.
_DATABASES: Final[Mapping[str, str]] = {
    "coordination.db": "This database holds tasks, claims and events, and no server starts while "
    "it is damaged. Restore it from a backup (`lithos restore`), or move it "
    "away to start without this data.",
    "edges.db": _ASIDE,
    "stats.db": _ASIDE,
    "history.db": _ASIDE,
    "manifest.db": "This database can be rebuilt: the next start moves it aside and reads all notes again.",
}


@check("data directory", DOCTOR, SYSTEM, place=20)
def check_data_directory(patient: Installed) -> Iterator[CheckFinding]:
    """Report whether Lithos can write, lock and rename files in its folders.

    In a vault, only the permissions are queried, and no file is written.
    """
    data, storage, lockless = patient.data, patient.config.of(StorageConfig), list[Path]()
    notes, vault = storage.notes_folder, storage.vault
    if not data.is_dir():
        yield _missing_data_directory(data)
        return
    if vault is not None and vault.is_dir():
        try:
            check_writable(vault)
        except OSError as failure:
            cause = f"Notes in {vault} can be read, but not written: {failure.strerror}."
            yield warn(cause, _way_to_write(failure))
    for place in (data, data / ".lithos", notes) if vault is None else (data, data / ".lithos"):
        if not place.exists() and place != data:
            continue  # the first start creates this folder
        try:
            if not try_folder(place):
                lockless.append(place)
        except OSError as failure:
            yield fail(f"{place} cannot be written: {failure.strerror or failure}.", _way_to_write(failure))
    lockless += [place for place in (data, vault) if place is not None and not has_locks(place)]
    if lockless:
        yield warn(
            f"The file system of {lockless[0]} does not support file locks.",
            "A server does not start on it without --no-lock (storage.lock: false). Use a local disk, or "
            "make sure that only one server runs.",
        )
    yield ok(f"Files in {data.absolute()} can be written, locked and renamed.")


def _way_to_write(failure: OSError) -> str:
    if failure.errno == errno.ENOTDIR:
        return "A file has the name of a required folder. Move the file away."
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full. Free some space on it."
    if failure.errno == errno.EROFS:
        return "The file system is mounted read-only: mount it for writing, or choose another --data-dir."
    return f"Give user {user_id()} write permission for this folder, or choose another --data-dir."


def _missing_data_directory(data: Path) -> CheckFinding:
    if data.exists():
        return fail(
            f"{data.absolute()} is a file, not a directory.",
            "Set --data-dir or LITHOS_DATA_DIR to a directory, or move the file aside.",
        )
    return fail(
        f"There is no data directory {data.absolute()}.",
        "Set --data-dir or LITHOS_DATA_DIR to your data directory, or create a new one with `lithos serve`.",
    )


@check("disk space", DOCTOR, SYSTEM, place=30, when=has_data)
def check_space(patient: Installed) -> Iterator[CheckFinding]:
    """Report the free bytes and inodes of the disk."""
    data = patient.data
    space = free_space(data)
    for free, name, least, little in (
        (space.bytes, "bytes", _LEAST[0], _LITTLE[0]),
        (space.inodes, "inodes (files)", _LEAST[1], _LITTLE[1]),
    ):
        if free is not None and free < little:
            cause = f"Only {free:,} {name} are free on the disk of {data.absolute()}."
            way_out = (
                "Free some space on that disk. Until then Lithos may refuse writes, but it "
                "completes each accepted write."
            )
            yield fail(cause, way_out) if free < least else warn(cause, way_out)
    inodes = "" if space.inodes is None else f" and {space.inodes:,} inodes"
    yield ok(f"{space.bytes // _MIB:,} MiB{inodes} are free.")


@check("databases", DOCTOR, SYSTEM, place=90, when=has_data)
def check_databases(patient: Installed) -> Iterator[CheckFinding]:
    """Report damaged databases, and damaged files that earlier starts moved aside."""
    private, is_live, sound = patient.private, patient.is_live, list[str]()
    for name, way_out in _DATABASES.items():
        path = private / name
        is_rebuildable = name == "manifest.db"
        try:
            damage = _examine_database(path, is_live=is_live)
        except (DatabaseFailed, OSError) as failure:
            yield fail(f"{path.absolute()} cannot be read now ({failure}).", _UNREADABLE)
            continue
        if damage is not None:
            cause = f"{path.absolute()} is damaged ({damage})."
            yield warn(cause, way_out) if is_rebuildable else fail(cause, way_out)
        elif path.exists() and not path.stat().st_size and not is_live and not is_rebuildable:
            yield warn(f"{path.absolute()} is empty: a server would start from scratch.", _EMPTY)
        elif path.exists():
            sound.append(name)
    vectors = private.parent / ".usearch"
    aside = sorted(
        path.name
        for folder in (private, vectors, *(vectors / model.name for model in MODELS))
        for path in folder.glob("*.corrupt-*")
        if not path.name.endswith(("-wal", "-shm"))
    )
    if aside:
        yield warn(
            f"An earlier start moved {name_some(aside)} aside as damaged.",
            "Check whether a backup contains their data, then move these files out of the data directory.",
        )
    yield ok(
        f"{', '.join(sound)} are sound."
        if sound
        else "There are no databases yet. The first start creates them."
    )


#: Advice for unreadable databases. On a full disk, this advice prevents operators from deleting intact files.
_UNREADABLE: Final = (
    "The file may be undamaged: a full disk, a lack of free inodes or missing permissions have "
    "the same effect. Fix the problems that the other checks report, and run doctor again. Do "
    "not replace the file before that."
)
_EMPTY = "If the database held data, do not start a server. Restore the database from a backup."


def _examine_database(path: Path, *, is_live: bool) -> str | None:
    """Return a description of the damage, or None if the database is intact or missing.

    Raises `DatabaseFailed` and `OSError`.
    """
    try:
        return check_integrity(path, is_live=is_live)
    except CorruptDatabase as damage:
        return str(damage).removeprefix(f"{path} is damaged (").removesuffix(")")


@check("layout", DOCTOR, SYSTEM, place=40, when=has_data)
def check_layout(patient: Installed) -> Iterator[CheckFinding]:
    """Report whether this version supports the stored layout."""
    path = patient.private / "migrations" / "registry.json"
    try:
        version = read_layout_version(path)
    except ValueError as problem:
        yield warn(
            f"{path.absolute()} is not a valid layout file: {problem}.",
            "Restore the file from a backup, or let the next start move it aside and create a new one.",
        )
        return
    if version is not None and version > CURRENT:
        yield fail(
            f"{patient.data.absolute()} was last used by a newer Lithos: its layout is {version}, "
            f"but this version knows only {CURRENT}.",
            "Install that Lithos version or a later one, or choose another --data-dir.",
        )
        return
    yield ok("There is no stored layout yet." if version is None else f"Layout {version} is known.")


@check("clock", DOCTOR, SYSTEM, place=220, when=has_data)
async def check_clock(patient: Installed) -> AsyncIterator[CheckFinding]:
    """Report whether the clock is behind the newest event or behind the modification times of note files."""
    now, path, is_live = patient.clock(), patient.private / "coordination.db", patient.is_live
    newest = await look_aside(lambda: _newest_event(path, is_live=is_live))
    if newest is not None and newest - now > _CLOCK_SLACK:
        yield fail(
            f"The clock says {format_time(now)}, but the newest event is from {format_time(newest)}.",
            "Set the clock of this machine, for example with a time server, and restart the "
            "server. Otherwise claims expire late.",
        )
    latest = to_microseconds(now + _FAR_FUTURE) * 1_000
    future = [each.path for each in patient.known_notes if each.state.mtime_ns > latest]
    if future:
        yield warn(
            f"{len(future)} note files are dated in the future: {name_some(future)}.",
            "Check the clocks of this machine and of the machine that wrote the files. `touch` "
            "gives a file the current date.",
        )
    yield ok(f"The clock says {now:%Y-%m-%d %H:%M:%S} UTC, which is later than the newest event.")


def _newest_event(path: Path, *, is_live: bool) -> datetime | None:
    try:
        return newest_event_time(path, is_live=is_live)
    except (CorruptDatabase, DatabaseFailed, OSError):
        return None  # the check of the databases reports this error
