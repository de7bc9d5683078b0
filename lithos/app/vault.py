"""The notes of a configuration: which folder holds them, what in it is no note, how they are understood."""

from __future__ import annotations

from datetime import datetime

from attrs import evolve

from lithos.config.catalogue import Config
from lithos.core.notes.ignored import Ignored
from lithos.core.notes.style import PLAIN, VaultStyle
from lithos.kernel.settings import StorageConfig
from lithos.services.upkeep.validation import Survey, survey_notes
from lithos.stores.lock import OwnerLock, lock_of
from lithos.stores.notes.files import EXCHANGED, NoteFiles
from lithos.stores.notes.vault_settings import VaultSettings


def style_of(storage: StorageConfig) -> VaultStyle:
    """How notes are understood and written."""
    base = PLAIN if storage.vault is None else VaultStyle.of_foreign()
    return evolve(base, knows_copies=storage.conflict_copies != "ignore")


def open_notes(storage: StorageConfig) -> NoteFiles:
    """The note files, with what is ignored as of now. Blocks."""
    place = storage.data_dir / ".lithos" / EXCHANGED
    if storage.vault is None:
        return NoteFiles(storage.notes_folder, ignored=Ignored.of(storage.ignore or ()), place=place)
    settings = VaultSettings(storage.vault, storage.ignore)
    return NoteFiles(
        storage.vault, ignored=settings.read(), is_foreign=True, place=place, reread=settings.read_again
    )


def make_lock(storage: StorageConfig) -> OwnerLock:
    """The lock of the data directory, and of the vault, if one is served; not taken yet."""
    return lock_of(storage.data_dir, storage.vault, needs_locks=storage.lock)


def survey_of(config: Config, now: datetime) -> Survey:
    """What a server's scan finds at a time. Blocks. Raises `FileNotFoundError` without a folder of notes."""
    storage = config.of(StorageConfig)
    return survey_notes(storage.data_dir, open_notes(storage), now, style_of(storage))
