"""A survey of all notes of a configured server."""

from __future__ import annotations

from datetime import datetime

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.opening import open_notes, project_rules, style_of
from lithos.notes.settings import AgentsConfig, IndexConfig
from lithos.upkeep.checks.validation import CheckedVault, survey_notes


def survey_of(config: Config, now: datetime) -> CheckedVault:
    """Return the notes that a server would find if it scanned the notes folder now.

    Blocks. Raises `FileNotFoundError` if the notes folder does not exist.
    """
    storage = config.of(StorageConfig)
    files = open_notes(storage)
    projects = project_rules(config.of(IndexConfig), config.of(AgentsConfig), files)
    return survey_notes(storage.data_dir, files, now, style_of(storage, files), projects)
