"""Related notes and graph search, compared with a reference.

A slow reference checks all note pairs of a generated vault.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, cast

import pytest
import trio

from lithos.kernel.actors.threads import Inline
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.relations import Graph
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.ranking import reciprocal_rank
from lithos.search.service.graph_search import GraphSearch
from tests.fakes import make_entry
from tests.graphs import Reference, generate_entries

SIZES = [
    pytest.param(300, 4, 60, id="300 notes"),
    pytest.param(6_000, 7, 12, id="6000 notes", marks=[pytest.mark.slow, pytest.mark.deadline(300)]),
]


def make_catalogue(entries: Iterable[Entry]) -> Catalogue:
    catalogue = Catalogue()
    catalogue.load(entries)
    return catalogue


def make_search(catalogue: Catalogue) -> GraphSearch:
    """Create a search without an embedding model, because a blank query needs no model."""
    return GraphSearch(catalogue, cast(Any, None), Inline())


def ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.note.id for entry in entries]


@pytest.mark.parametrize(("notes", "links", "samples"), SIZES)
async def test_related_notes_equal_the_reference(notes: int, links: int, samples: int) -> None:
    """behaviours 76, 78, 79, 81"""
    entries = generate_entries(notes, links)
    reference, graph = Reference.of(entries), Graph(make_catalogue(entries))
    derivations = reference.derivations()
    for number, entry in enumerate(random.Random(2).sample(entries, samples)):
        note, depth = entry.note.id, 1 + number % 3
        related = await graph.relate(note, ("links", "provenance", "edges"), depth, None)
        assert related.links is not None
        assert related.provenance is not None
        for direction, found in (("outgoing", related.links.outgoing), ("incoming", related.links.incoming)):
            steps = reference.within([note], depth, reference.pairs, direction)
            wanted = sorted(steps.keys() - {note}, key=lambda other: (steps[other], other))
            assert ids(found) == wanted
        for direction, found in (
            ("outgoing", related.provenance.sources),
            ("incoming", related.provenance.derived),
        ):
            steps = reference.within([note], depth, derivations, direction)
            assert ids(found) == sorted(steps.keys() - {note})
        missing = [source for source in entry.note.derived_from_ids if source not in reference.entries]
        assert list(related.provenance.unresolved) == sorted(missing)


@pytest.mark.parametrize(("notes", "links", "samples"), SIZES)
async def test_graph_search_finds_the_notes_reached_by_the_reference(
    notes: int, links: int, samples: int
) -> None:
    """behaviour 66"""
    entries = generate_entries(notes, links)
    reference, catalogue = Reference.of(entries), make_catalogue(entries)
    search, rng = make_search(catalogue), random.Random(3)
    scores = catalogue.graph.links.pagerank()
    central = sorted(scores, key=lambda note_id: (-scores[note_id], note_id))
    for number in range(samples):
        seeds = [*ids(rng.sample(entries, 1 + number % 3)), "unknown"]
        depth, folder = 1 + number % 3, f"folder{number % 7}/"
        steps = reference.within(seeds, depth, reference.pairs, "both")
        for filters, wanted in (
            (Filters(), set(steps)),
            (
                Filters(path_prefix=folder),
                {note for note in steps if reference.entries[note].path.startswith(folder)},
            ),
        ):
            found = await search.search("", seeds, depth, filters, 0.3)
            order = [note for note in central if note in wanted]
            scores = reciprocal_rank([order, sorted(order, key=steps.__getitem__)])
            assert found == [(reference.entries[note].serial, score) for note, score in scores]


async def test_ranking_started_before_a_write_is_not_cached() -> None:
    """behaviour 50"""
    catalogue = make_catalogue(generate_entries(100, 3))
    search = make_search(catalogue)
    everything = ids(catalogue)

    async def ask() -> list[tuple[int, float]]:
        return await search.search("", everything, 1, Filters(), 0.3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.lowlevel.checkpoint()
        for note in everything[:50]:
            catalogue.remove(note)
    assert await ask() == await make_search(catalogue).search("", everything, 1, Filters(), 0.3)
    assert len(await ask()) == 50


class FakeNearest:
    """Fake semantic search in which the last notes are the nearest, including unlinked notes."""

    def __init__(self, serials: list[int]) -> None:
        self.serials = serials

    async def search(self, query: str, filters: Filters, notes: int, threshold: float) -> list[VectorHit]:
        return [VectorHit(serial, 0, 0.5) for serial in sorted(self.serials, reverse=True)[:notes]]


async def test_semantic_rank_orders_linked_notes_in_a_large_vault() -> None:
    """behaviour 66"""
    linked = [make_entry(serial) for serial in range(2, 702)]
    hub = make_entry(1, links=tuple(f"n{entry.serial}" for entry in linked))
    catalogue = make_catalogue([hub, *linked, make_entry(702), make_entry(703)])
    nearest = FakeNearest(list(range(1, 704)))
    search = GraphSearch(catalogue, cast(Any, nearest), Inline())
    plain = dict(await search.search("", [hub.note.id], 1, Filters(), 0.3))
    found = dict(await search.search("query", [hub.note.id], 1, Filters(), 0.3))
    assert found.keys() == plain.keys() == set(range(1, 702))
    gained = {serial: found[serial] - plain[serial] for serial in found if found[serial] > plain[serial]}
    assert sorted(gained, key=lambda serial: -gained[serial])[:3] == [701, 700, 699]
    assert len(gained) == 200
