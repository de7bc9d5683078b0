"""The survey of the notes of a configuration."""

from __future__ import annotations

from datetime import datetime

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.opening import open_notes, style_of
from lithos.upkeep.checks.validation import CheckedVault, survey_notes


def survey_of(config: Config, now: datetime) -> CheckedVault:
    """Return what a server's scan would find now.

    Blocks. Raises `FileNotFoundError` without a folder of notes.
    """
    storage = config.of(StorageConfig)
    return survey_notes(storage.data_dir, open_notes(storage), now, style_of(storage))
