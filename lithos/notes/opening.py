"""Opening the notes of a configuration, with their folder, the ignored files and the note format."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from attrs import evolve

from lithos.kernel.databases.lock import OwnerLock, lock_of
from lithos.kernel.databases.open_stores import Occasion, sync_names
from lithos.kernel.log import get_logger
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.files.displaced import DISPLACED, CopyMerges, Displaced, Moves
from lithos.notes.files.files import EXCHANGED, NoteFiles
from lithos.notes.files.manifest import Manifest
from lithos.notes.files.values import Kept
from lithos.notes.files.vault_settings import VaultSettings
from lithos.notes.linked.linked_folders import LINKED_NAME, LinkedFolders
from lithos.notes.model.ignored import Ignored
from lithos.notes.model.note_projects import ProjectRules
from lithos.notes.settings import AgentsConfig, IndexConfig
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

log = get_logger("lithos.app")


def style_of(storage: StorageConfig, files: NoteFiles | None = None) -> VaultStyle:
    """Return the rules for reading and writing the notes of a configuration.

    With `files`, the rules spare the files of linked folders.
    """
    base = PLAIN if storage.vault is None else VaultStyle.of_foreign()
    style = evolve(base, knows_copies=storage.conflict_copies != "ignore")
    return style if files is None else evolve(style, is_kept_elsewhere=files.is_linked)


def project_rules(index: IndexConfig, folders: AgentsConfig, files: NoteFiles | None = None) -> ProjectRules:
    """Return the rules that find the projects of a note. With `files`, linked folders count too."""
    linked = LinkedFolders() if files is None else files.linked
    return ProjectRules(index.project_property, folders.projects, of_linked=linked.project_of)


def open_notes(storage: StorageConfig) -> NoteFiles:
    """Open the note files with the current ignore rules. Blocks."""
    private = storage.data_dir / ".lithos"
    place, linked = private / EXCHANGED, LinkedFolders(private / LINKED_NAME)
    linked.refresh()
    if storage.vault is None:
        ignored = Ignored.of(storage.ignore or ())
        return NoteFiles(storage.notes_folder, ignored=ignored, place=place, linked=linked)
    settings = VaultSettings(storage.vault, storage.ignore)
    return NoteFiles(
        storage.vault,
        ignored=settings.read(),
        is_foreign=True,
        place=place,
        reread=settings.read_again,
        linked=linked,
    )


def make_lock(storage: StorageConfig) -> OwnerLock:
    """Create the lock of the data directory, and of the vault if a vault is served.

    The lock is not taken yet.
    """
    return lock_of(storage.data_dir, storage.vault, needs_locks=storage.lock)


def recover_files(files: NoteFiles, occasion: Occasion) -> Displaced:
    """Clean up after a process that died during a change. Call this before any other work."""
    files.create_root()
    sync_names({occasion.data, *(folder.parent for folder in occasion.fresh)})
    displaced = Displaced(occasion.private / DISPLACED)
    now = max(occasion.now, _last_written(occasion.private))

    def save(kept: Kept, data: bytes) -> None:
        note = files.relative(kept.note)
        path = displaced.save(note, data, now)
        log.warning("external edit moved to displaced files", path=note, kept_as=str(path))

    tidied = files.recover(save)
    if tidied:
        log.info("leftover temporary files removed", files=tidied)
    return displaced


def _last_written(private: Path) -> datetime:
    """Return the time when an earlier process last wrote to a database.

    The clock of the machine may be wrong. For example, it starts in 1970 on a machine without a battery.
    """
    times = [path.stat().st_mtime_ns for path in private.glob("*.db*")]
    return from_nanoseconds(max(times, default=0))


def open_manifest(occasion: Occasion) -> Manifest:
    """Open the manifest, which stores the last known state of each note file."""
    return Manifest.open(occasion.private / "manifest.db", occasion.now)


def make_moves(storage: StorageConfig) -> Moves:
    """Open the journal of unfinished moves."""
    return Moves(storage.data_dir / ".lithos")


def make_copy_merges(storage: StorageConfig) -> CopyMerges:
    """Open the record of an unfinished merge of a conflict copy."""
    return CopyMerges(storage.data_dir / ".lithos")
