"""What a server lets clients read beside its tools, and what it tells them of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from lithos.actors.blocking import Blocking
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import Coordinator
from lithos.services.changes import Changes
from lithos.services.coordination import Coordination
from lithos.services.knowledge import Knowledge
from lithos.services.library import Library
from lithos.services.resources import Resources
from lithos.services.texts import NoteTexts
from lithos.stores.tasks import TaskRows


def make_library(
    catalogue: Catalogue,
    texts: NoteTexts,
    knowledge: Knowledge,
    coordinator: Coordinator,
    rows: TaskRows,
    reading: Blocking,
    clock: Callable[[], datetime],
    broadcaster: Broadcaster | None,
) -> Library:
    """The library of a server; without a broadcaster (no events) nobody is told of changes."""
    tasks = Coordination(coordinator, rows, reading, clock)
    resources = Resources(catalogue, texts, knowledge, tasks, coordinator, clock)
    return Library(resources, None if broadcaster is None else Changes(broadcaster))
