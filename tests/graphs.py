"""Vaults for graph tests, and a simple reference implementation of the specification."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.catalogue.index_links import Placeholder
from lithos.notes.catalogue.note_graph import NoteGraph
from lithos.notes.links.links import LinkTable
from tests.fakes import make_entry


def note_id(serial: int) -> str:
    return f"00000000-0000-4000-8000-{serial:012}"


def generate_entries(notes: int, links: int, seed: int = 1) -> list[Entry]:
    """Create notes that share stems.

    Links use path, stem, title, alias or id. Some are ambiguous or broken.
    """
    rng = random.Random(seed)
    entries = []
    for serial in range(1, notes + 1):
        targets = [_target(rng, notes) for _ in range(rng.randrange(2 * links + 1))]
        sources = {note_id(rng.randrange(1, notes + 20)) for _ in range(rng.choice((0, 0, 1, 3)))}
        entries.append(
            make_entry(
                serial,
                f"folder{serial % 7}/{_stem(serial)}.md",
                title=f"Title-of {serial - serial % 9}" if serial % 9 < 2 else f"Title of {serial}",
                aliases=(f"Alias {serial}",) if serial % 3 == 0 else (),
                links=tuple(targets),
                derived_from_ids=tuple(sorted(sources - {note_id(serial)})),
            )
        )
    return entries


def _stem(serial: int) -> str:
    return "readme" if serial % 50 < 2 else f"n{serial}"


def _target(rng: random.Random, notes: int) -> str:
    serial = rng.randrange(1, notes + 1)
    return rng.choice(
        (
            f"folder{serial % 7}/{_stem(serial)}",
            f"{_stem(serial)}#Heading",
            f"title of {serial}",
            f"ALIAS {serial}",
            note_id(serial),
            f"nowhere {serial % 30}",
        )
    )


@attrs.frozen
class Reference:
    """Reference for all notes: neighbours from pairs, distances from repeated relaxation of every pair."""

    entries: Mapping[str, Entry]
    pairs: frozenset[tuple[str, str]]
    missing: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Reference:
        known = {entry.note.id: entry for entry in entries}
        table = LinkTable()
        for entry in known.values():
            table.add(entry.note.id, entry.path, entry.note.title, entry.note.aliases)
        meant = [(e.note.id, target, table.resolve(target)) for e in known.values() for target in e.links]
        return cls(
            known,
            frozenset((source, found) for source, _, found in meant if found is not None),
            frozenset((source, target) for source, target, found in meant if found is None),
        )

    def derivations(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (e.note.id, source)
            for e in self.entries.values()
            for source in e.note.derived_from_ids
            if source in self.entries
        )

    def within(
        self, starts: Iterable[str], depth: int, pairs: Iterable[tuple[str, str]], direction: str
    ) -> dict[str, int]:
        """Return all notes within `depth`, with the number of steps to each."""
        ways = {"outgoing": set(pairs), "incoming": {(end, start) for start, end in pairs}}
        ways["both"] = ways["outgoing"] | ways["incoming"]
        steps = {start: 0 for start in starts if start in self.entries}
        for step in range(1, depth + 1):
            reached = {end for start, end in ways[direction] if start in steps}
            steps = dict.fromkeys(reached - steps.keys(), step) | steps
        return steps


def described(graph: NoteGraph) -> dict[str, Any]:
    """Return all facts that a graph reports, for comparison."""
    return {
        "nodes": graph.links.nodes(),
        "edges": graph.links.edges(),
        "provenance nodes": graph.provenance.nodes(),
        "provenance": graph.provenance.edges(),
        "counts": graph.counts(),
        "resolved": graph.resolved(),
    }


def fresh_graph(entries: Iterable[Entry]) -> NoteGraph:
    graph = NoteGraph()
    graph.load(list(entries))
    return graph


def expected_pairs(reference: Reference) -> set[tuple[str, str | Placeholder]]:
    missing = {(source, Placeholder(target)) for source, target in reference.missing}
    return {*reference.pairs, *missing}
