"""Opening of the full-text index."""

from __future__ import annotations

from pathlib import Path

from lithos.kernel.databases.open_stores import Occasion
from lithos.kernel.log import get_logger
from lithos.kernel.settings import StorageConfig
from lithos.notes.files.manifest import Manifest
from lithos.notes.opening import style_of
from lithos.notes.settings import IndexConfig
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import remove_index
from lithos.search.settings import SearchConfig

log = get_logger("lithos.app")


def open_fulltext(
    storage: StorageConfig, index: IndexConfig, search: SearchConfig, occasion: Occasion, manifest: Manifest
) -> FulltextIndex:
    """Open the full-text index.

    The indexes are deleted first if their notes were parsed with rules other than the current rules.
    """
    style = style_of(storage)
    # The notes in the indexes were parsed with older rules. The indexes are deleted before the manifest is
    # updated, because a crash may follow.
    is_read_otherwise = manifest.reading != style.reading and not manifest.is_new
    if is_read_otherwise or index.rebuild_on_start:
        _drop_indexes(occasion.data)
    manifest.read_by(style.reading)
    fulltext = FulltextIndex.open(occasion.data / ".tantivy", search.note_language)
    if fulltext.was_rebuilt and not manifest.is_new:
        log.warning("full-text index rebuilt", reason=fulltext.rebuild_reason)
    return fulltext


def _drop_indexes(data: Path) -> None:
    """Delete the indexes, which the server start rebuilds from the notes."""
    for name in (".tantivy", ".usearch"):
        if (data / name).exists():
            remove_index(data / name)
