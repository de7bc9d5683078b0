"""What warnings along lineage cost a search: the tool in this process, with and without them in turn.

`python -m bench.warnings --notes 10000 --links 40000`. Each query is asked both ways, one right after the
other, in changing order; `ratio_p50` and `ratio_p95` are medians over the rounds of with to without. Three
lineages over one corpus: `none`, `groups` (notes rest on others of their group of twenty) and `whole` (on any
earlier ones, so that nearly every note is suspect); in each, one note in a hundred is quarantined and as many
are superseded. `changing` adds a new derived note before every search, and `turning` turns one quarantine on
or off, after which it has to be found anew who is suspect. `settle_ms` is how long that takes, `step_ms` the
longest turn of the event loop within.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import attrs
import trio

from bench.corpus import queries
from bench.report import middle, print_report
from bench.server import data_directory
from bench.tiers import search_config, wait_for_tier
from bench.vaults import learning_config
from lithos.app import Server, running_server
from lithos.catalogue.catalogue import Entry
from lithos.catalogue.lineage import Lineage
from lithos.config.catalogue import Config
from lithos.config.sections import StorageConfig
from lithos.tools.contract.rows import warn

GROUP: Final = 20
#: One note in so many is quarantined, and one superseded.
BAD: Final = 100
WARM_UP: Final = 100
LINEAGES: Final = ("none", "groups", "whole")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.warnings", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=300, help="searches of each kind per round")
    options = parser.parse_args()
    with data_directory(options.notes) as data:
        trio.run(_measure, data, options)


async def _measure(data: Path, options: argparse.Namespace) -> None:
    config = Config(
        storage=StorageConfig(data_dir=data),
        search=search_config("static"),
        lcma=learning_config(),
    )
    async with running_server(config) as server:
        await wait_for_tier(server, "static")
        bench = _Bench(server, options)
        figures: dict[str, Any] = {}
        for lineage in LINEAGES:
            bench.wire(lineage)
            figures[lineage] = await bench.compare(lambda: None) | await _settling(server)
            figures[lineage]["warned"] = await bench.share_warned()
        figures["changing"] = await bench.compare(bench.add_leaf)
        bench.wire("groups")
        figures["turning"] = await bench.compare(bench.turn)
    print_report("warnings", notes=options.notes, links=options.links, **figures)


class _Bench:
    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self._server, self._options = server, options
        self._texts = queries(3, 5_000)
        self._rng = random.Random(5)
        self._entries: list[Entry] = list(server.catalogue)
        self._number = 0

    def wire(self, lineage: str) -> None:
        """Give the catalogue's notes a lineage; their files stay as they are."""
        rng, entries = random.Random(11), self._entries
        each = self._options.links // len(entries)
        for place, entry in enumerate(entries):
            start = {"none": place, "groups": place - place % GROUP, "whole": 0}[lineage]
            earlier = range(start, place)
            chosen = rng.sample(earlier, min(each, len(earlier)))
            is_bad = lineage != "none" and not place % BAD
            supersedes = entries[place - BAD // 2].note.id if is_bad and place else None
            note = attrs.evolve(
                entry.note,
                derived_from_ids=tuple(entries[one].note.id for one in chosen),
                status="quarantined" if is_bad else "active",
                supersedes=supersedes,
            )
            self._server.catalogue.put(attrs.evolve(entry, note=note))

    async def compare(self, change: Callable[[], None]) -> dict[str, float]:
        """Both ways, alternating; `change` is done before each search."""
        await self._round(WARM_UP, change)
        rounds = [await self._round(self._options.calls, change) for _ in range(self._options.rounds)]
        figures: dict[str, float] = {}
        for name, place in (("p50", 49), ("p95", 94)):
            of_kind = [tuple(quantiles(taken, n=100)[place] for taken in both) for both in rounds]
            figures |= {
                f"with_{name}": middle([one for one, _ in of_kind]),
                f"without_{name}": middle([other for _, other in of_kind]),
                f"ratio_{name}": middle([one / other for one, other in of_kind]),
            }
        return figures

    async def _round(self, calls: int, change: Callable[[], None]) -> tuple[list[float], list[float]]:
        """Milliseconds of each search with and without warnings."""
        gc.collect()
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(calls):
            text = self._texts[self._rng.randrange(len(self._texts))]
            for kind in (0, 1) if number % 2 else (1, 0):
                change()
                if kind == 0:
                    taken[0].append(await self._search(text))
                else:
                    with _silenced():
                        taken[1].append(await self._search(text))
        return taken

    async def _search(self, text: str) -> float:
        began = time.perf_counter()
        answer = await self._server.tools.call("lithos_search", {"query": text})
        took = (time.perf_counter() - began) * 1_000
        assert answer["results"], "a search that finds nothing measures nothing"
        return took

    async def share_warned(self) -> float:
        """Which part of the rows has a warning."""
        rows = [
            row
            for text in self._texts[:100]
            for row in (await self._server.tools.call("lithos_search", {"query": text}))["results"]
        ]
        return round(sum("warnings" in row for row in rows) / len(rows), 3)

    def add_leaf(self) -> None:
        """A note that nothing rests on says something else of its sources."""
        catalogue = self._server.catalogue
        entry = catalogue.get(self._entries[-1].note.id)
        assert entry is not None
        sources = tuple(each.note.id for each in self._rng.sample(self._entries[:-1], 4))
        catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, derived_from_ids=sources)))

    def turn(self) -> None:
        """Quarantine a note that others rest on, or clear it."""
        catalogue = self._server.catalogue
        entry = catalogue.get(self._entries[3].note.id)
        assert entry is not None
        status = "active" if entry.note.status == "quarantined" else "quarantined"
        catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, status=status)))


async def _settling(server: Server) -> dict[str, float]:
    """Finding out anew who is suspect."""
    lineage, longest = Lineage(server.catalogue), 0.0
    done = trio.Event()

    async def watch() -> None:
        nonlocal longest
        while not done.is_set():
            began = time.perf_counter()
            await trio.lowlevel.checkpoint()
            longest = max(longest, time.perf_counter() - began)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.lowlevel.checkpoint()
        longest, began = 0.0, time.perf_counter()
        await lineage.settle()
        took = time.perf_counter() - began
        done.set()
    return {"settle_ms": round(took * 1_000, 3), "step_ms": round(longest * 1_000, 3)}


@contextmanager
def _silenced() -> Iterator[None]:
    """Nothing is warned of."""

    async def say_nothing(*_: object) -> None:
        pass

    asking: list[Any] = [module for module in sys.modules.values() if getattr(module, "warn", None) is warn]
    for module in asking:
        module.warn = say_nothing
    try:
        yield
    finally:
        for module in asking:
            module.warn = warn


if __name__ == "__main__":
    main()
