"""Backup of a data directory, even while a server runs, and restore (docs/spec/lifecycle.md §8)."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from lithos import __version__
from lithos.history.rows.store import HISTORY
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import is_owned
from lithos.kernel.databases.private_files import PRIVATE_FOLDER, TOKEN_FILES
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.times import format_time
from lithos.notes.files.displaced import DISPLACED
from lithos.notes.opening import make_lock, open_notes
from lithos.upkeep.files import backup
from lithos.upkeep.files.backup import (
    PRIVATE,
    VAULT,
    BackupIndex,
    BackupProgress,
    BackupRefused,
    FoundLinks,
    SavedFile,
)

__all__ = ["BackupRefused", "RestoredBackup", "back_up", "back_up_to_tar", "restore"]

#: Databases in copy order. An event leaves the outbox of `edges.db` only after the journal contains it, so
#: `edges.db` is copied before the journal. The notes are copied last. Versions of later changes are caught up
#: from them.
DATABASES = ("edges.db", "stats.db", HISTORY, "coordination.db")


def _ignore(done: int, total: int) -> None:
    """Ignore progress reports."""


def back_up(config: Config, target: Path, *, told: BackupProgress = _ignore) -> BackupIndex:
    """Copy all data that cannot be rebuilt to `target`, which must be empty or missing. Blocks.

    The backup contains every change that was acknowledged before the backup began. Raises `BackupRefused`,
    `OSError` and `CorruptDatabase`. After an error, the copied files have no `backup.json`.
    """
    data, vault = config.of(StorageConfig).data_dir, config.of(StorageConfig).vault
    notes = config.of(StorageConfig).notes_folder
    _check_target(config.of(StorageConfig), target)
    started = utc_now()
    target.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    is_live = is_owned(data / PRIVATE / "lock")
    saved: dict[str, SavedFile] = {}
    for name in DATABASES:
        copied = backup.copy_database(data / PRIVATE / name, target / PRIVATE / name, is_live=is_live)
        if copied is not None:
            saved[f"{PRIVATE}/{name}"] = copied
    prefix = VAULT if vault is not None else notes.relative_to(data).as_posix()
    sources = {f"{prefix}/{path}": notes / path for path in _list_notes(config.of(StorageConfig))}
    # Linked folders are not part of the restored vault, so their notes become files of the vault.
    files = open_notes(config.of(StorageConfig))
    sources |= {f"{prefix}/{path}": Path(files.place(path)) for path in files.linked_notes()}
    sources |= {path: data / path for path in _list_state(data)}
    for number, (path, source) in enumerate(sources.items(), start=1):
        copied = backup.copy_file(source, target / path)
        if copied is not None:
            saved[path] = copied
        told(number, len(sources))
    links = backup.find_links(notes) if vault is None else _links_of_vault(config.of(StorageConfig), saved)
    index = BackupIndex(
        format=backup.FORMAT,
        version=__version__,
        started_at=format_time(started),
        finished_at=format_time(utc_now()),
        journal_head=backup.journal_head(target / PRIVATE / "coordination.db"),
        counts=_count(saved, prefix),
        files=saved,
        links={f"{prefix}/{link}": target for link, target in links.inside.items()},
        left_out=tuple(f"{prefix}/{link}" for link in links.elsewhere),
        notes=prefix,
    )
    backup.write_index(target, index)
    return index


def back_up_to_tar(config: Config, target: Path, *, told: BackupProgress = _ignore) -> BackupIndex:
    """Write a backup as one archive. The archive appears only when it is complete. Blocks."""
    if target.exists():
        raise BackupRefused(f"{target} already exists. Choose another file.")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.absolute().parent) as folder:
        staged = Path(folder)
        index = back_up(config, staged / "backup", told=told)
        archive = staged / target.name
        with tarfile.open(archive, "w") as tar:
            tar.add(staged / "backup", arcname=".")
        with archive.open("rb") as written:
            os.fsync(written.fileno())
        archive.replace(target)
    return index


def _check_target(storage: StorageConfig, target: Path) -> None:
    data, notes = storage.data_dir, storage.notes_folder
    if not notes.is_dir():
        if storage.vault is not None:
            raise BackupRefused(f"There is no folder {notes}. Set --vault to the folder of your notes.")
        raise BackupRefused(
            f"There are no notes in {data}: the folder {notes.name} is missing. Set --data-dir to "
            "the data directory, or put the folder back."
        )
    if target.resolve().is_relative_to(notes.resolve()):
        raise BackupRefused(
            f"{target} is in the notes folder, so the backup would become part of the notes. "
            "Choose another place."
        )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} is not empty. Choose an empty or a new directory.")


def _list_notes(storage: StorageConfig) -> list[str]:
    """Return the files in the notes folder.

    In a vault, return only the notes, and skip paths through symbolic links.
    """
    if storage.vault is None:
        return list(backup.walk_files(storage.notes_folder))
    root, files = os.path.realpath(storage.vault), open_notes(storage)
    found = (file.path for file in files.list_notes() if not files.is_linked(file.path))
    return [path for path in found if os.path.realpath(f"{root}/{path}") == f"{root}/{path}"]


def _links_of_vault(storage: StorageConfig, saved: Mapping[str, SavedFile]) -> FoundLinks:
    """Return the links in a vault that lead to notes and have their targets in the backup."""
    assert storage.vault is not None
    links, files = backup.find_links(storage.vault), open_notes(storage)
    kept: dict[str, str] = {}
    for link, target in links.inside.items():
        if any(part.startswith(".") for part in link.split("/")) or files.ignored.covers(link):
            continue
        reached = os.path.normpath(f"{VAULT}/{os.path.dirname(link)}/{target}")
        if reached in saved or any(path.startswith(f"{reached}/") for path in saved):
            kept[link] = target
    return FoundLinks(kept)


def _list_state(data: Path) -> Iterator[str]:
    """Yield files that are copied unchanged: configuration, token hashes, migrations, displaced texts."""
    if (data / "config.yaml").is_file():
        yield "config.yaml"
    yield from (f"{PRIVATE}/{name}" for name in TOKEN_FILES if (data / PRIVATE / name).is_file())
    for name in ("migrations", DISPLACED):
        folder = data / PRIVATE / name
        if folder.is_dir():
            yield from (f"{PRIVATE}/{name}/{path}" for path in backup.walk_files(folder))


def _count(saved: dict[str, SavedFile], notes: str) -> dict[str, int]:
    return {
        "files": len(saved),
        "notes": sum(path.startswith(f"{notes}/") and path.endswith(".md") for path in saved),
        "bytes": sum(file.size for file in saved.values()),
    }


@frozen
class RestoredBackup:
    """The index of the restored backup, and the folder with the former content, if there was any."""

    index: BackupIndex
    aside: Path | None


def restore(
    config: Config, source: Path, *, force: bool = False, told: BackupProgress = _ignore
) -> RestoredBackup:
    """Verify all hashes of a backup (directory or tar), then replace the data directory with the backup.

    Blocks.

    With `force`, the existing content is moved aside within the data directory. A `vault` receives the notes,
    and its folder must be empty or missing. The backup of a vault is refused if `vault` is not given. Raises
    `AlreadyOwned`, `BackupRefused` and `OSError`.
    """
    data, vault = config.of(StorageConfig).data_dir, config.of(StorageConfig).vault
    with _as_directory(source) as directory:
        index = backup.read_index(directory)
        _check_vault(vault, data, index)
        backup.verify_files(directory, index, told)
        data.mkdir(parents=True, exist_ok=True)
        if not force:
            _require_empty(data)
        if vault is not None:
            vault.mkdir(parents=True, exist_ok=True)
        lock = make_lock(config.of(StorageConfig))
        lock.acquire(format_time(utc_now()))
        try:
            backup.finish_restore(data)  # a process may have been killed during an earlier restore
            if not force:
                _require_empty(data)
            return RestoredBackup(index, _replace_content(data, vault, directory, index, utc_now()))
        finally:
            lock.release()


def _require_empty(data: Path) -> None:
    occupied = _content(data)
    if occupied:
        raise BackupRefused(
            f"{data} is not empty ({', '.join(sorted(occupied)[:5])}). Choose an empty directory "
            "with --data-dir, or add --force to move the content aside. It is not deleted."
        )


def _check_vault(vault: Path | None, data: Path, index: BackupIndex) -> None:
    """Raise an error if the vault folder contains files, because a restore never replaces them."""
    if vault is None:
        if index.notes == VAULT:
            raise BackupRefused(
                "This backup contains the notes of a vault. Choose an empty or a new folder for "
                "the notes with --vault PATH."
            )
        return
    if vault.exists() and (not vault.is_dir() or any(vault.iterdir())):
        raise BackupRefused(
            f"The vault {vault} is not empty, and Lithos never replaces files in a vault. Choose "
            "an empty or a new folder with --vault, then copy missing files from there."
        )
    if os.path.realpath(vault).startswith(os.path.realpath(data) + os.sep):
        raise BackupRefused(
            f"The vault {vault} is inside the data directory {data}. Choose another folder with --vault."
        )


@contextmanager
def _as_directory(source: Path) -> Iterator[Path]:
    if source.is_dir():
        yield source
        return
    if not source.exists():
        raise BackupRefused(f"{source} does not exist. Choose the directory or tar file of a backup.")
    with tempfile.TemporaryDirectory(prefix="lithos-restore-") as folder:
        try:
            with tarfile.open(source) as tar:
                tar.extractall(folder, filter="data")
        except (tarfile.TarError, EOFError) as damage:
            raise BackupRefused(
                f"{source} is not a readable tar file ({damage}). Choose another backup."
            ) from damage
        yield Path(folder)


def _content(data: Path) -> list[str]:
    """Return the entries of the data directory that a restore would replace.

    The lock, and content that earlier restores moved aside, are left out.
    """
    names = [path.name for path in data.iterdir() if not path.name.startswith(backup.ASIDE)]
    private = data / PRIVATE
    if PRIVATE in names and private.is_dir() and {path.name for path in private.iterdir()} <= {"lock"}:
        names.remove(PRIVATE)
    return names


def _replace_content(
    data: Path, vault: Path | None, source: Path, index: BackupIndex, now: datetime
) -> Path | None:
    """Copy a backup, move the existing content aside, and move the copy to its path.

    Return the folder with the former content.
    """
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    staged = Path(tempfile.mkdtemp(prefix=backup.STAGED, dir=data))
    try:
        for name, saved in index.files.items():
            copied = backup.copy_file(source / name, staged / name)
            if copied is None or copied.sha256 != saved.sha256:
                raise BackupRefused(f"{name} changed during the restore. Nothing was replaced. Try again.")
        backup.make_links(staged, index.links)
        if vault is not None:
            _fill_vault(vault, staged / index.notes)
        backup.move_counters_ahead(staged / PRIVATE / "coordination.db", now)
        backup.sync_folders(staged)
        staged.rename(data / f"{backup.READY}{stamp}")
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return backup.finish_restore(data)


def _fill_vault(vault: Path, staged: Path) -> None:
    """Copy all staged notes, or none, to the empty vault. The vault may be on another disk."""
    if not staged.is_dir():
        return
    try:
        for top in sorted(staged.iterdir()):
            if top.is_dir() and not top.is_symlink():
                shutil.copytree(top, vault / top.name, symlinks=True)
            else:
                shutil.copy2(top, vault / top.name, follow_symlinks=False)
        for path in backup.walk_files(vault):
            with (vault / path).open("rb") as written:
                os.fsync(written.fileno())
        backup.sync_folders(vault)
    except BaseException:
        for top in vault.iterdir():
            shutil.rmtree(top) if top.is_dir() and not top.is_symlink() else top.unlink()
        raise
    shutil.rmtree(staged)
