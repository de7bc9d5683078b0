"""What several vaults in one process cost beside a server of one: memory, start, and calls.

`python -m bench.vault_costs` prints three reports. `empty`: one server with an empty vault, then a process
with that one and 1, 2, 5 and 10 further empty ones (aim: at most 15 MiB and 0.3 s for each further one).
`notes`: a server of 10,000 notes, and ten vaults of 1,000 (aim: at most 1.6 times the memory). `calls`: calls
to one of the ten, by its own door and by `vault` at the common one, in turn with calls to a server of 1,000
notes alone; then searches over all ten. `--only` takes some of the three.

Memory is the proportional set size (PSS) in MiB, from `SETTLING` seconds after everything is searchable:
pages of files that other processes use too count in parts. What is private to the process (`own`: anonymous
memory) does not depend on others. `first_s` is from the start of the process to the answer of the first call,
`all_s` until every vault has answered one.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import urlopen

import trio
from attrs import frozen

from bench.client import RawClient, Request, ToolFailed
from bench.corpus import generate, queries
from bench.report import middle, print_report
from bench.server import launched

FURTHER: Final = (0, 1, 2, 5, 10)
PARTS: Final = 10
#: Notes of each part; the one vault beside them has `PARTS` times as many.
NOTES: Final = 1_000
#: Seconds after which everything that a start does later is there, as the MCP SDK is.
SETTLING: Final = 4.0
#: Seconds between two looks whether a vault answers.
PAUSE: Final = 0.01
#: Calls of a round, and those before that do not count.
CALLS, WARM_UP = 200, 40
KINDS: Final = ("empty", "notes", "calls")


@frozen
class Process:
    """A server: of the vaults named, or of one without a name."""

    pid: int
    host: str
    port: int
    vaults: tuple[str, ...]
    began: float

    def path(self, vault: str | None = None) -> str:
        """The address of MCP, of one vault if there are several."""
        return f"/v/{vault}/mcp" if vault is not None else "/mcp"

    def memory(self) -> dict[str, float]:
        """MiB as the module tells; threads and open files beside it."""
        proc = Path(f"/proc/{self.pid}")
        lines = (line.split() for line in (proc / "smaps_rollup").read_text().splitlines()[1:])
        kib = {name.rstrip(":"): int(size) for name, size, _ in lines}
        own = kib["Private_Dirty"] + kib["Shared_Dirty"]
        return {
            "pss_mib": round(kib["Pss"] / 1024, 1),
            "own_mib": round(own / 1024, 1),
            "threads": len(list((proc / "task").iterdir())),
            "files": len(list((proc / "fd").iterdir())),
        }

    def wait_searchable(self) -> None:
        """Wait until full text and meaning cover all notes of all vaults."""
        while True:
            with urlopen(f"http://{self.host}:{self.port}/health") as response:
                told: dict[str, Any] = json.load(response)["components"]
            parts = [told[name] for name in self.vaults] if self.vaults else [{"components": told}]
            states = [each.get("components", {}).get("embedding_model", {}) for each in parts]
            if all(state.get("status", "warming") != "warming" for state in states):
                return
            time.sleep(0.05)


@contextmanager
def served(folder: Path, vaults: Mapping[str, Path]) -> Iterator[Process]:
    """A process with these vaults, or with the only one, if its name is empty; entered when it listens."""
    config = None
    if "" not in vaults:
        config = folder / f"{len(vaults)}.json"  # which is YAML as well
        entries = {
            name: {"path": str(data / "knowledge"), "data_dir": str(data)} for name, data in vaults.items()
        }
        config.write_text(json.dumps({"vaults": entries}))
    data = next(iter(vaults.values()))
    with launched(data, config=config) as (process, address, began):
        url = urlsplit(address)
        assert url.hostname is not None
        assert url.port is not None
        names = tuple(name for name in vaults if name)
        yield Process(process.pid, url.hostname, url.port, names, began)


async def first_calls(process: Process) -> dict[str, float]:
    """Seconds to the first answer of any vault, and of all, from the start of the process."""
    answered: list[float] = []

    async def ask(vault: str | None) -> None:
        while True:
            try:
                async with RawClient(process.host, process.port, process.path(vault)) as client:
                    await client.call("lithos_search", {"query": "a first question", "mode": "fulltext"})
            except ToolFailed:  # it is being opened
                await trio.sleep(PAUSE)
            else:
                answered.append(time.perf_counter() - process.began)
                return

    async with trio.open_nursery() as nursery:
        for vault in process.vaults or (None,):
            nursery.start_soon(ask, vault)
    return {"first_s": round(answered[0], 3), "all_s": round(answered[-1], 3)}


def look(folder: Path, vaults: Mapping[str, Path]) -> dict[str, float]:
    """One start of a process: its seconds and its memory."""
    with served(folder, vaults) as process:
        seconds = trio.run(first_calls, process)
        process.wait_searchable()
        time.sleep(SETTLING)
        return {**seconds, **process.memory()}


def middle_of(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Each figure's own median."""
    return {name: middle([row[name] for row in rows]) for name in rows[0]}


def measure_empty(folder: Path, rounds: int) -> None:
    """What each further empty vault costs; a vault starts for the second time, as most do."""
    for each in range(1 + FURTHER[-1]):
        (folder / f"empty-{each}" / "knowledge").mkdir(parents=True)
    found: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds + 1):
        for further in FURTHER:
            name = f"{further} further" if further else "one"
            vaults = {f"v{each}": folder / f"empty-{each}" for each in range(1 + further)}
            if not further:
                vaults = {"": folder / "empty-0"}
            row = look(folder, vaults)
            if number:
                found.setdefault(name, []).append(row)
    figures = {name: middle_of(rows) for name, rows in found.items()}
    most, least = figures[f"{FURTHER[-1]} further"], figures[f"{FURTHER[1]} further"]
    steps = FURTHER[-1] - FURTHER[1]
    each = {
        name: round((most[name] - least[name]) / steps, 3)
        for name in ("pss_mib", "own_mib", "all_s", "threads", "files")
    }
    print_report("vault_costs", kind="empty", **figures, each_further=each)


def make_parts(folder: Path) -> dict[str, Path]:
    """Ten vaults of 1,000 notes."""
    parts = {f"part{number}": folder / f"part{number}" for number in range(PARTS)}
    for number, data in enumerate(parts.values()):
        generate(data / "knowledge", NOTES, seed=100 + number)
    return parts


def measure_notes(folder: Path) -> None:
    """Memory and start of ten vaults beside those of one with as many notes."""
    whole = folder / "whole"
    generate(whole / "knowledge", PARTS * NOTES)
    parts = make_parts(folder)
    os.sync()
    rows: dict[str, dict[str, float]] = {}
    for start in ("first", "second"):
        rows[f"one, {start} start"] = look(folder, {"": whole})
        rows[f"ten, {start} start"] = look(folder, parts)
    ratios = {
        start: round(rows[f"ten, {start} start"]["pss_mib"] / rows[f"one, {start} start"]["pss_mib"], 2)
        for start in ("first", "second")
    }
    print_report("vault_costs", kind="notes", **rows, ratios=ratios)


@frozen
class Way:
    """How a vault is reached: a connection, and what its calls name."""

    client: RawClient
    vault: Mapping[str, str]

    async def ids(self) -> list[str]:
        """Those of some notes."""
        told = json.loads(await self.client.exchange("lithos_list", {"limit": CALLS, **self.vault}))
        return [each["id"] for each in told["result"]["structuredContent"]["items"]]

    async def drive(self, request: Callable[[int], Request], calls: int) -> list[float]:
        """Seconds of so many calls, one after another."""
        taken = []
        for number in range(calls):
            tool, arguments = request(number)
            began = time.perf_counter()
            await self.client.call(tool, {**arguments, **self.vault})
            taken.append(time.perf_counter() - began)
        return taken


async def measure_calls(single: Process, ten: Process, rounds: int) -> None:
    """Time calls by each way in turn, so that what else the machine does falls on all of them."""
    vault = ten.vaults[0]
    async with AsyncExitStack() as stack:

        async def connect(process: Process, path: str, **named: str) -> Way:
            client = await stack.enter_async_context(RawClient(process.host, process.port, path))
            return Way(client, named)

        ways = {
            "alone": await connect(single, "/mcp"),
            "own door": await connect(ten, ten.path(vault)),
            "common door": await connect(ten, "/mcp", vault=vault),
        }
        every = {"ten as one": await connect(ten, "/mcp", vault="*")}
        texts, ids = queries(3, WARM_UP + CALLS), await ways["own door"].ids()
        if sorted(ids) != sorted(await ways["alone"].ids()):
            raise RuntimeError("the server alone has other notes than the vault beside others")
        kinds: dict[str, Callable[[int], Request]] = {
            "hybrid": lambda number: ("lithos_search", {"query": texts[number]}),
            "read": lambda number: ("lithos_read", {"id": ids[number % len(ids)]}),
            "list": lambda number: ("lithos_list", {"limit": 50}),
        }
        told: dict[str, Any] = {}
        for kind, request in kinds.items():
            taken: dict[str, list[float]] = {}
            rates: dict[str, list[float]] = {}
            asked = ways if kind == "read" else {**ways, **every}
            for number in range(rounds + 1):
                for name, way in asked.items():
                    seconds = await way.drive(request, CALLS if number else WARM_UP)
                    if number:
                        taken.setdefault(name, []).append(1_000 * median(seconds))
                        rates.setdefault(name, []).append(len(seconds) / sum(seconds))
            told[kind] = {
                name: {"p50_ms": middle(values), "rate": middle(rates[name], 1)}
                for name, values in taken.items()
            }
    print_report("vault_costs", kind="calls", notes=NOTES, **told)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.vault_costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="lithos-bench-") as temporary:
        folder = Path(temporary)
        if "empty" in options.only:
            measure_empty(folder, options.rounds)
        if "notes" in options.only:
            measure_notes(folder)
        if "calls" in options.only:
            with ExitStack() as stack:
                alone = folder / "alone"
                generate(alone / "knowledge", NOTES, seed=100)
                parts = make_parts(folder)
                single = stack.enter_context(served(folder, {"": alone}))
                ten = stack.enter_context(served(folder, parts))
                for process in (single, ten):
                    trio.run(first_calls, process)
                    process.wait_searchable()
                time.sleep(SETTLING)
                trio.run(measure_calls, single, ten, options.rounds)


if __name__ == "__main__":
    main()
