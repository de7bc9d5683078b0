"""The graph of notes: build, change, walk and rank, without a server.

`python -m bench.graph --notes 10000 --links 4`. `loop_*` is the longest turn of the event loop, in
milliseconds, that graph searches and related notes of the deepest kind take; half of the links lead to a
hundred popular notes, so that three steps reach most of the vault.
"""

from __future__ import annotations

import argparse
import random
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import attrs
import trio

from bench.report import middle, print_report
from lithos.actors.blocking import Threads
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.catalogue.note_graph import NoteGraph
from lithos.core.notes.model import Note
from lithos.services.notes.relations import SECTIONS, Graph
from lithos.services.search.graph_search import GraphSearch, Nearest
from lithos.stores.indexes.fulltext_schema import Filters
from lithos.stores.notes.values import FileState, digest_of

POPULAR = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.graph", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    entries = make_entries(options.notes, options.links)
    graph = NoteGraph()
    build = _seconds(lambda: graph.load(entries))
    recalled = NoteGraph()
    recalled.recall(graph.remembered())
    recall = _seconds(lambda: recalled.load(entries))
    print_report(
        "graph",
        notes=options.notes,
        edges=graph.counts().edges,
        placeholders=graph.counts().nodes - options.notes,
        build_s=round(build, 3),
        build_from_cache_s=round(recall, 3),
        traced_mib=round(_traced_mib(entries), 1),
        **_change(graph, entries[: options.rounds]),
        copy_ms=round(1000 * _seconds(graph.links.copy), 2),
        pagerank_ms=round(1000 * _seconds(graph.links.order_by_pagerank), 2),
        **trio.run(_read, entries, options.rounds // 10),
    )


def make_entries(notes: int, links: int, seed: int = 7) -> list[Entry]:
    """Notes that link by title, stem or path; one link in eight leads nowhere."""
    rng = random.Random(seed)
    return [
        _entry(number, [_target(rng, notes) for _ in range(links)], rng, notes) for number in range(notes)
    ]


def _entry(number: int, links: Sequence[str], rng: random.Random, notes: int) -> Entry:
    sources = (_id(rng.randrange(notes)),) if rng.random() < 0.5 else ()
    title = f"Some longer title of note {number}"
    note = Note(id=_id(number), title=title, derived_from_ids=sources)
    path = f"folder{number % 9}/note-{number}.md"
    return Entry(number + 1, path, note, digest_of(str(number).encode()), FileState(1, 1), True, tuple(links))


def _target(rng: random.Random, notes: int) -> str:
    number = rng.randrange(min(POPULAR, notes) if rng.random() < 0.5 else notes)
    return rng.choice(
        (
            f"Some longer title of note {number}",
            f"some-longer-title-of-note-{number}",
            f"Some longer title of note {number}#Results",
            f"note-{number}",
            f"folder{number % 9}/note-{number}",
            f"folder{number % 9}/note-{number}.md",
            f"note-{number}#^block",
            f"nothing called {number}",
        )
    )


def _id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _change(graph: NoteGraph, entries: Sequence[Entry]) -> dict[str, float]:
    """Milliseconds for one change, on average and at most: popular notes, which are linked most, first."""
    changes: dict[str, Callable[[Entry], object]] = {
        "relink": lambda entry: graph.put(attrs.evolve(entry, links=(*entry.links[1:], "new"))),
        "retitle": lambda entry: graph.put(attrs.evolve(entry, note=attrs.evolve(entry.note, title="Else"))),
        "remove": lambda entry: graph.remove(entry.note.id),
        "put": graph.put,
    }
    figures: dict[str, float] = {}
    for name, change in changes.items():
        times = [1000 * _seconds(lambda entry=entry, change=change: change(entry)) for entry in entries]
        figures |= {f"{name}_ms": round(sum(times) / len(times), 4), f"{name}_max_ms": round(max(times), 3)}
    return figures


async def _read(entries: Sequence[Entry], rounds: int) -> dict[str, float]:
    catalogue = Catalogue()
    catalogue.load(entries)
    graph = Graph(catalogue)
    search = GraphSearch(catalogue, Nearest(catalogue, cast(Any, None)), Threads(2))
    figures: dict[str, float] = {}

    async def relate(entry: Entry) -> None:
        await graph.relate(entry.note.id, SECTIONS, 3, None)

    async def find(entry: Entry) -> None:
        await search.search("", [entry.note.id], 3, Filters(), 0.3)

    async def find_filtered(entry: Entry) -> None:
        await search.search("", [entry.note.id], 3, Filters(path_prefix="folder1/"), 0.3)

    async def find_after_write(entry: Entry) -> None:
        catalogue.put(attrs.evolve(entry, links=(*entry.links[1:], "new")))
        await find(entry)

    for work in (relate, find, find_filtered, find_after_write):
        times, turns = [], []
        for entry in entries[:rounds]:
            seconds, turn = await _watched(lambda work=work, entry=entry: work(entry))
            times.append(1000 * seconds)
            turns.append(1000 * turn)
        figures |= {f"{work.__name__}_ms": middle(times), f"loop_{work.__name__}_ms": round(max(turns), 2)}
    return figures


async def _watched(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Seconds the work took, and the longest time another task had to wait for its turn meanwhile."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await trio.lowlevel.checkpoint()
            longest = max(longest, time.perf_counter() - last)
            last = time.perf_counter()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await trio.lowlevel.checkpoint()
        began = time.perf_counter()
        await work()
        seconds = time.perf_counter() - began
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    return seconds, longest


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _traced_mib(entries: Sequence[Entry]) -> float:
    """Memory of a graph as Python counts it; what rustworkx takes beside is a few megabytes."""
    tracemalloc.start()
    graph = NoteGraph()
    graph.load(entries)
    traced = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return traced


if __name__ == "__main__":
    main()
