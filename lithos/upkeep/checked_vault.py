"""A survey of all notes of a configured server."""

from __future__ import annotations

from datetime import datetime

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.opening import open_notes, style_of
from lithos.upkeep.checks.validation import CheckedVault, survey_notes


def survey_of(config: Config, now: datetime) -> CheckedVault:
    """Return the notes that a server would find if it scanned the notes folder now.

    Blocks. Raises `FileNotFoundError` if the notes folder does not exist.
    """
    storage = config.of(StorageConfig)
    return survey_notes(storage.data_dir, open_notes(storage), now, style_of(storage))
