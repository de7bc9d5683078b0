"""Composition of the import service."""

from __future__ import annotations

from lithos.actors.blocking import Threads
from lithos.app.actors import Actors
from lithos.services.importing.importing import Importing
from lithos.services.importing.tables import Tables
from lithos.services.notes.edges import Edges
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.texts import NoteTexts
from lithos.stores.imported import ImportLedger


def make_importing(actors: Actors, knowledge: Knowledge, edges: Edges, texts: NoteTexts) -> Importing:
    """The service behind `lithos import`."""
    storage, files = actors.config.storage, actors.stores.files
    return Importing(
        actors.catalogue,
        knowledge,
        edges,
        texts,
        ImportLedger(storage.data_dir / ".lithos"),
        Threads(),
        actors.clock,
        tables=Tables(actors.coordinator.mailbox, actors.memory.mailbox),
        notes_folder=files.root.absolute(),
        ignored=files.ignored,
        content_limit=storage.max_content_size_bytes,
        gather=actors.fulltext_indexer.gather,
    )
