"""What is open on disk while a server runs."""

from __future__ import annotations

from contextlib import ExitStack

from attrs import frozen

from lithos.core.notes.style import VaultStyle
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import Database
from lithos.stores.history.store import HistoryStore
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore
from lithos.stores.lock import OwnerLock
from lithos.stores.manifest import Manifest
from lithos.stores.notes.displaced import CopyMerges, Displaced, Moves
from lithos.stores.notes.files import NoteFiles


@frozen
class Stores:
    """What is open on disk; closed in reverse order."""

    lock: OwnerLock
    files: NoteFiles
    displaced: Displaced
    coordination: CoordinationStore
    edges: EdgeStore
    stats: StatsStore
    manifest: Manifest
    fulltext: FulltextIndex
    #: The journal of moves that are under way.
    moves: Moves
    #: The merge of a conflict copy that is under way.
    copy_merges: CopyMerges
    #: None where `history.enabled` is off.
    history: HistoryStore | None
    #: How the notes are understood and written.
    style: VaultStyle
    #: Closes everything, the last one first, whatever of it fails.
    closing: ExitStack

    @property
    def databases(self) -> tuple[Database, ...]:
        """Databases that are checked for removal by other programs while they are open."""
        kept = (self.coordination, self.edges, self.stats, self.manifest)
        return kept if self.history is None else (*kept, self.history)
