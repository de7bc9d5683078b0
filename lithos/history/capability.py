"""The history capability: its components and the functions that build them."""

from __future__ import annotations

import attrs

from lithos.events.journal.settled_clock import SettledClock
from lithos.history.recording.backfill import CatchingUp
from lithos.history.recording.recorder import Recorder
from lithos.history.rows.reading import HistoryReading
from lithos.history.rows.store import HISTORY as HISTORY_FILE
from lithos.history.rows.store import HistoryStore
from lithos.history.service.conflict_copies import ConflictCopies
from lithos.history.service.history import NoteHistory
from lithos.history.service.restoring import Restoring
from lithos.history.service.retention import HistoryUpkeep
from lithos.history.settings import HistoryConfig
from lithos.history.state import look_at_history, measure_history
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Background, Capability, Pages, Store
from lithos.kernel.databases.open_stores import Occasion
from lithos.kernel.state import Gauge, HealthCheck
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.versions import VersionLimits
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.ports import EarlierVersions
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.deferred_removal import Keeper
from lithos.notes.writing.ports import VersionRecorder, VersionStore


def open_history(history: HistoryConfig, occasion: Occasion) -> HistoryStore | None:
    """Open the history store. Return None if `history.enabled` is off."""
    return HistoryStore.open(occasion.private / HISTORY_FILE, occasion.now) if history.enabled else None


def make_reading(store: HistoryStore | None) -> HistoryReading | None:
    """Build the reader of versions."""
    return store


def make_version_store(store: HistoryStore | None) -> VersionStore | None:
    """Build the version store that notes read from. Return None if `history.enabled` is off."""
    return store


def make_recorder(store: HistoryStore | None) -> Recorder:
    """Build the recorder of versions."""
    return Recorder(store, Threads())


def make_version_recorder(recorder: Recorder) -> VersionRecorder:
    """Build the recorder that the note writer uses to store versions."""
    return recorder


def make_catching_up(recorder: Recorder, catalogue: Catalogue, keeper: Keeper, writer: Writer) -> CatchingUp:
    """Build the background task that records versions missing from the history."""
    return CatchingUp(recorder, catalogue, keeper, writer.mailbox)


def make_history(store: HistoryStore | None, catalogue: Catalogue) -> NoteHistory:
    """Build the history service, which reads versions."""
    return NoteHistory(store, Threads(2), catalogue)


def make_earlier_versions(history: NoteHistory) -> EarlierVersions:
    """Build the service that reads earlier versions for the notes package."""
    return history


def make_restoring(
    history: NoteHistory, knowledge: Knowledge, catalogue: Catalogue, texts: NoteTexts
) -> Restoring:
    """Build the service that restores earlier states."""
    return Restoring(history, knowledge, catalogue, texts, Threads())


def make_history_upkeep(
    store: HistoryStore | None, recorder: Recorder, settled: SettledClock, history: HistoryConfig
) -> HistoryUpkeep | None:
    """Build the retention task of `history.db`. Return None if `history.enabled` is off."""
    if store is None:
        return None
    kept = {each.name: getattr(history, each.name) for each in attrs.fields(VersionLimits)}
    return HistoryUpkeep(store, recorder.blocking, Threads(), settled, VersionLimits(**kept))


HISTORY = Capability(
    name="history",
    makers=(
        make_version_store,
        make_reading,
        make_recorder,
        make_version_recorder,
        make_catching_up,
        make_history,
        make_earlier_versions,
        make_restoring,
        make_history_upkeep,
        ConflictCopies,
    ),
    background=(
        Background(ConflictCopies, ConflictCopies.run),
        Background(HistoryUpkeep, HistoryUpkeep.run),
    ),
    pages=Pages(modules=("lithos.history.pages_undo",)),
    tools=("lithos.history.tools", "lithos.history.tools_copies"),
    stores=(Store(40, open_history),),
    health=(HealthCheck("history", 10, look_at_history),),
    gauges=(Gauge(90, measure_history),),
)
