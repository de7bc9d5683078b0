"""The notes of a configuration: which folder holds them, what in it is no note, how they are understood.

What of a style is not set follows from serving somebody else's folder.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from lithos.config.sections import StorageConfig
from lithos.core.notes.ignored import Ignored
from lithos.core.notes.style import VaultStyle
from lithos.stores.lock import OwnerLock, lock_of
from lithos.stores.notes.files import EXCHANGED, NoteFiles
from lithos.stores.notes.vault_settings import VaultSettings

if TYPE_CHECKING:
    from lithos.config.catalogue import Config
    from lithos.services.upkeep.validation import Survey


def style_of(storage: StorageConfig) -> VaultStyle:
    """How notes are understood and written."""
    base = VaultStyle() if storage.vault is None else VaultStyle.of_foreign()

    def chosen(value: str | None, means: str, otherwise: bool) -> bool:
        return otherwise if value is None else value == means

    return VaultStyle(
        titles_from_files=chosen(storage.title_from, "file", base.titles_from_files),
        titles_per_folder=chosen(storage.titles, "folder", base.titles_per_folder),
        inline_tags=base.inline_tags if storage.inline_tags is None else storage.inline_tags,
        serves_broken=chosen(storage.broken_frontmatter, "serve", base.serves_broken),
        minimal_frontmatter=chosen(storage.frontmatter, "minimal", base.minimal_frontmatter),
        titles_name_files=chosen(storage.file_names, "title", base.titles_name_files),
        knows_copies=storage.conflict_copies != "ignore",
    )


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
    from lithos.services.upkeep.validation import survey_notes  # noqa: PLC0415 - loads slowly

    storage, fraction = config.storage, config.index.max_vanished_fraction
    return survey_notes(storage.data_dir, open_notes(storage), fraction, now, style_of(storage))
