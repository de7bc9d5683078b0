"""The history of notes as a capability."""

from __future__ import annotations

import attrs

from lithos.actors.blocking import Threads
from lithos.actors.settled_clock import SettledClock
from lithos.actors.writing.catching_up import CatchingUp
from lithos.actors.writing.keeper import Keeper
from lithos.actors.writing.recording import Recorder
from lithos.actors.writing.writer import Writer
from lithos.catalogue.catalogue import Catalogue
from lithos.core.history.versions import VersionLimits
from lithos.history.settings import HistoryConfig
from lithos.kernel.capability import Background, Capability
from lithos.services.notes.conflict_copies import ConflictCopies
from lithos.services.notes.history import NoteHistory
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.restoring import Restoring
from lithos.services.notes.texts import NoteTexts
from lithos.services.upkeep.history import HistoryUpkeep
from lithos.stores.history.store import HistoryStore


def make_recorder(store: HistoryStore | None) -> Recorder:
    """Make what records versions."""
    return Recorder(store, Threads())


def make_catching_up(recorder: Recorder, catalogue: Catalogue, keeper: Keeper, writer: Writer) -> CatchingUp:
    """Make what records the versions that the history lacks."""
    return CatchingUp(recorder, catalogue, keeper, writer.mailbox)


def make_history(store: HistoryStore | None, catalogue: Catalogue) -> NoteHistory:
    """Make the reader of versions."""
    return NoteHistory(store, Threads(2), catalogue)


def make_restoring(
    history: NoteHistory, knowledge: Knowledge, catalogue: Catalogue, texts: NoteTexts
) -> Restoring:
    """Make what brings an earlier state back."""
    return Restoring(history, knowledge, catalogue, texts, Threads())


def make_history_upkeep(
    store: HistoryStore | None, recorder: Recorder, settled: SettledClock, history: HistoryConfig
) -> HistoryUpkeep | None:
    """Make the retention of `history.db`; None where `history.enabled` is off."""
    if store is None:
        return None
    kept = {each.name: getattr(history, each.name) for each in attrs.fields(VersionLimits)}
    return HistoryUpkeep(store, recorder.blocking, Threads(), settled, VersionLimits(**kept))


HISTORY = Capability(
    name="history",
    makers=(
        make_recorder,
        make_catching_up,
        make_history,
        make_restoring,
        make_history_upkeep,
        ConflictCopies,
    ),
    background=(
        Background(ConflictCopies, ConflictCopies.run),
        Background(HistoryUpkeep, HistoryUpkeep.run),
    ),
)
