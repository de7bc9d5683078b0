"""Health and metrics of the notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import trio

from lithos.events.journal.reading import JournalThread
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import CHECK_DEADLINE, OK, Component, Number
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.watching.watcher import Watcher
from lithos.notes.writing.actor_writer import Writer


async def look_at_folder(storage: StorageConfig, reading: JournalThread, writer: Writer) -> Component:
    """Return whether the notes folder can be read and written, as a component of `/health`."""
    folder = storage.notes_folder
    try:
        with trio.fail_after(CHECK_DEADLINE):
            await reading.run(lambda: next(iter(folder.iterdir()), None))
    except (OSError, trio.TooSlowError) as failure:
        return Component("unavailable", f"{folder} cannot be read: {failure}")
    try:
        with trio.fail_after(CHECK_DEADLINE):
            trouble = await writer.trouble()
    except trio.TooSlowError:
        trouble = "the disk does not answer"
    return Component("degraded", f"notes cannot be written to {folder}: {trouble}") if trouble else OK


def look_at_notes(catalogue: Catalogue) -> Component:
    """Return the number of notes, and the number of notes with unreadable frontmatter.

    Notes with unreadable frontmatter are served, too.

    The component also counts notes with duplicate ids or conflict copies. Only the warnings of the notes name
    these files, because anyone may read `/health`.
    """
    told: dict[str, Any] = {"documents": len(catalogue), "unreadable": len(catalogue.broken)}
    if catalogue.broken:
        told["list"] = "lithos validate, or /console/notes?status=broken"
    copied = {note_id for note_id, _, _ in catalogue.copied()}
    duplicated = sum(1 for note_id in catalogue.doubles if catalogue.duplicates_of(note_id))
    counts = {"duplicated": duplicated, "conflict_copies": len(copied)}
    return Component("ok", None, told | {name: count for name, count in counts.items() if count})


def look_at_watcher(watcher: Watcher) -> Component:
    """Return whether Lithos detects changes by other programs, as a component of `/health`."""
    details = {"mode": watcher.mode}
    if watcher.failure:
        return Component("degraded", watcher.failure, details)
    return Component("ok" if watcher.is_settled else "warming", None, details)


def count_notes(catalogue: Catalogue, clock: Clock) -> Iterator[Number]:
    """Yield the numbers of notes, tags and links for the statistics."""
    now, links = clock(), catalogue.graph.counts()
    expiring = catalogue.at_serials(catalogue.facets.expiring())
    yield Number(10, "documents", len(catalogue))
    yield Number(50, "tags", len(catalogue.tags))
    yield Number(51, "duplicate_urls", catalogue.urls.surplus)
    yield Number(70, "unresolved_links", links.unresolved)
    yield Number(71, "expired_docs", sum(entry.note.is_stale(now) for entry in expiring))
    yield Number(100, "graph_node_count", links.nodes)
    yield Number(101, "graph_edge_count", links.edges)


def measure_notes(catalogue: Catalogue, clock: Clock) -> Iterator[GaugeSample]:
    """Yield samples of the number of notes."""
    now = clock()
    yield GaugeSample("documents", len(catalogue))
    yield GaugeSample("stale_documents", sum(entry.note.is_stale(now) for entry in catalogue))


def measure_links(catalogue: Catalogue) -> Iterator[GaugeSample]:
    """Yield samples of the number of links between notes."""
    links = catalogue.graph.counts()
    yield GaugeSample("graph_nodes", links.nodes)
    yield GaugeSample("graph_edges", links.edges)
