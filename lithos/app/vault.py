"""The notes of a configuration: which folder holds them, and what in it is no note."""

from __future__ import annotations

from lithos.config.sections import StorageConfig
from lithos.core.notes.ignored import Ignored
from lithos.stores.lock import OwnerLock
from lithos.stores.notes.files import EXCHANGED, NoteFiles
from lithos.stores.notes.tree import read_ignored
from lithos.stores.vault_lock import lock_of


def open_notes(storage: StorageConfig) -> NoteFiles:
    """The note files, with what is ignored as of now. Blocks."""
    place = storage.data_dir / ".lithos" / EXCHANGED
    if storage.vault is None:
        return NoteFiles(storage.notes_folder, ignored=Ignored.of(storage.ignore or ()), place=place)
    ignored = read_ignored(storage.vault, storage.ignore)
    return NoteFiles(storage.vault, ignored=ignored, is_foreign=True, place=place)


def make_lock(storage: StorageConfig) -> OwnerLock:
    """The lock of the data directory, and of the vault, if one is served; not taken yet."""
    return lock_of(storage.data_dir, storage.vault)
