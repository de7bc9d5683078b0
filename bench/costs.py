"""Benchmark that counts the steps of each call. `costs.json` contains the maximum costs.

`python -m bench.costs --check` fails if a call costs more than its line in the file allows. `--write`
rewrites the lines and keeps the reasons in them. A step is one call of a Python or C function on the event
loop's thread, counted from a request until the loop is idle again. The server (`bench.counting`) has 1,000
notes, and the smallest of several counts is used. Steps vary by less than 1 % between runs under any load,
while processor time varies by 10 to 40 %. All other counts are whole numbers.
"""

from __future__ import annotations

import argparse
import json
import platform
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median_high
from typing import Any, Final
from urllib.parse import urlsplit

import trio
from attrs import asdict, evolve, field, frozen

from bench.client import RawClient, Request, ToolFailed
from bench.corpus import queries
from bench.counting import Counted
from bench.report import print_report
from bench.search import NOOP
from bench.server import data_directory, launched, wait_searchable

FILE: Final = Path(__file__).with_name("costs.json")
NOTES: Final = 1_000
WARM_UP, CALLS = 24, 80
#: Maximum number of calls until the smallest count is within its limit. On a busy machine, nearly every call
#: overlaps with other work of the server, so the smallest of a few counts is 5 % above the smallest of many.
MOST: Final = 400
#: Number of repetitions of each read-only call.
REPEATS: Final = 8
WRITING: Final = ("create", "update", "note_edit", "task_create")
#: Share by which the steps of a call may exceed the steps in its line.
TOLERANCE: Final = 0.02
#: Packages whose versions affect the counts.
LIBRARIES: Final = ("trio", "hypercorn", "quart", "mcp", "pydantic", "tantivy", "attrs", "cattrs")
EXACT: Final = ("hand_overs", "syncs", "commits")
FIGURES: Final = ("steps", *EXACT)


@frozen
class Cost:
    """The cost of one call, or the limit of that cost. `reasons` explain why the limit was raised."""

    steps: int
    hand_overs: int
    syncs: int
    commits: int
    reasons: list[str] = field(factory=list)

    def excess(self, allowed: Cost) -> list[str]:
        """Return the figures that exceed the limit."""
        most = {name: getattr(allowed, name) for name in FIGURES}
        most["steps"] = int(allowed.steps * (1 + TOLERANCE))
        return [
            f"{name}: {getattr(self, name)}, allowed {limit}"
            for name, limit in most.items()
            if getattr(self, name) > limit
        ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.costs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a call costs more than its limit")
    parser.add_argument("--write", action="store_true", help="write costs.json")
    parser.add_argument("--only", nargs="+", help="measure only these kinds of calls")
    parser.add_argument("--rounds", type=int, default=1, help="ignored, because counts need no rounds")
    options = parser.parse_args()
    costs = measure(options.only or (), Allowed.read().calls if options.check else {})
    print_report("costs", notes=NOTES, **{kind: asdict(cost) for kind, cost in costs.items()})
    if options.check:
        sys.exit("\n".join(Allowed.read().complaints(costs, versions())) or None)
    if options.write:
        write_allowed(costs)


def measure(only: Sequence[str] = (), allowed: Mapping[str, Cost] | None = None) -> dict[str, Cost]:
    """Start a server on a new corpus and count the cost of each kind of call.

    Calls are repeated until the smallest count is within `allowed`, but at most `MOST` times.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, data_directory(NOTES) as data, _counted(data, theirs) as (host, port):
        return trio.run(_measure, host, port, ours, only, allowed or {})


@contextmanager
def _counted(data: Path, control: socket.socket) -> Iterator[tuple[str, int]]:
    """Run a server on `data` that reports its counts on `control`. Yield the address of the server."""
    program = [sys.executable, "-m", "bench.counting", str(control.fileno())]
    environment = {"PYTHONHASHSEED": "0"}
    with launched(data, environment, program=program, pass_fds=[control.fileno()]) as (_, address, began):
        url = urlsplit(address)
        wait_searchable(address, began)
        assert url.hostname is not None
        assert url.port is not None
        yield url.hostname, url.port


async def _measure(
    host: str, port: int, control: socket.socket, only: Sequence[str], allowed: Mapping[str, Cost]
) -> dict[str, Cost]:
    async with RawClient(host, port) as client:
        listed = json.loads(await client.exchange("lithos_list", {"limit": NOTES}))
        ids = [each["id"] for each in listed["result"]["structuredContent"]["items"]]
        assert len(ids) == NOTES, len(ids)
        kinds, costs = kinds_of(ids), dict[str, Cost]()
        for kind in only or kinds:
            try:
                costs[kind] = await _cost(client, control, kind, kinds[kind], allowed.get(kind))
            except ToolFailed as failure:
                if "Unknown tool" not in str(failure):
                    raise  # older revisions may lack the tool
        return costs


async def _cost(
    client: RawClient,
    control: socket.socket,
    kind: str,
    request: Callable[[int], Request],
    allowed: Cost | None,
) -> Cost:
    """Return the cost of one call, which is the smallest of many counts.

    Each count ends when the event loop is idle.

    Only equal calls are compared, because other work of the server can only add steps. Read-only calls are
    equal if their arguments are equal. All write calls count as equal.
    """
    alike: dict[int, list[Counted]] = {}
    before = _ask(control)
    for number in range(WARM_UP + MOST):
        question = number if number < WARM_UP else WARM_UP + (number - WARM_UP) % CALLS
        asked = number if kind in WRITING else question // REPEATS
        await client.call(*request(asked))
        now = _ask(control)
        if number >= WARM_UP:
            cost = Counted(*(getattr(now, each) - getattr(before, each) for each in FIGURES))
            alike.setdefault(0 if kind in WRITING else asked, []).append(cost)
        before = now
        if number >= WARM_UP + CALLS - 1 and (allowed is None or not _least(alike).excess(allowed)):
            break
    return _least(alike)


def _least(alike: Mapping[int, Sequence[Counted]]) -> Cost:
    least = {
        each: [min(getattr(cost, each) for cost in costs) for costs in alike.values()] for each in FIGURES
    }
    return Cost(round(mean(least["steps"])), *(median_high(least[each]) for each in EXACT))


def _ask(control: socket.socket) -> Counted:
    control.sendall(b".")
    return Counted(**json.loads(control.recv(1_000)))


def kinds_of(ids: Sequence[str]) -> dict[str, Callable[[int], Request]]:
    """Return the calls by name. Each value is a function from a number to a request."""
    texts = queries(3, 500)

    def searching(**more: Any) -> Callable[[int], Request]:
        return lambda number: ("lithos_search", {"query": texts[number], **more})

    def writing(number: int, series: str = "Made", **more: Any) -> Request:
        body = "\n\n".join(texts[number : number + 8])
        return "lithos_write", {"title": f"{series} {number}", "content": body, "agent": "bench", **more}

    return {
        "noop": lambda number: NOOP,
        "read": lambda number: ("lithos_read", {"id": ids[number]}),
        "list": lambda number: ("lithos_list", {"limit": 50}),
        "tags": lambda number: ("lithos_tags", {}),
        "related": lambda number: ("lithos_related", {"id": ids[number]}),
        "fulltext": searching(mode="fulltext"),
        "semantic": searching(mode="semantic"),
        "hybrid": searching(),
        "retrieve": lambda number: ("lithos_retrieve", {"query": texts[number]}),
        "context": lambda number: ("lithos_context", {"query": texts[number]}),
        "create": writing,
        "update": lambda number: writing(number, "Changed", id=ids[number]),
        "note_edit": lambda number: (
            "lithos_note_edit", {"id": ids[-1], "op": "append", "agent": "bench", "text": f"Line {number}."},
        ),
        "task_create": lambda number: ("lithos_task_create", {"title": f"Do {number}", "agent": "bench"}),
        "task_list": lambda number: ("lithos_task_list", {}),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions that affect the counts, without the version of Lithos."""
    return {"python": ".".join(platform.python_version_tuple()[:2])} | {
        each: version(each) for each in LIBRARIES
    }


@frozen
class Allowed:
    """Content of `costs.json`: maximum cost of each kind of call, and the versions used for counting."""

    calls: Mapping[str, Cost]
    versions: Mapping[str, str]

    @classmethod
    def read(cls, file: Path = FILE) -> Allowed:
        told = json.loads(file.read_text())
        return cls({kind: Cost(**cost) for kind, cost in told["calls"].items()}, told["versions"])

    def complaints(self, costs: Mapping[str, Cost], now: Mapping[str, str]) -> list[str]:
        """Return calls above their limit, calls without a line, and libraries with another version."""
        found = [
            f"{kind}: {excess}" for kind, cost in costs.items() if kind in self.calls
            for excess in cost.excess(self.calls[kind])
        ]  # fmt: skip
        found += [f"{kind}: no line in {FILE.name}" for kind in costs if kind not in self.calls]
        if found:
            found += [
                f"counted with {name} {then}, now {now.get(name)}"
                for name, then in self.versions.items()
                if now.get(name) != then
            ]
            found.append(
                "Make the call cheaper. If the new behaviour is worth the cost, run `python -m "
                "bench.costs --write` and give the reason in `reasons` of its line in "
                f"bench/{FILE.name}."
            )
        return found


def write_allowed(costs: Mapping[str, Cost], file: Path = FILE) -> None:
    """Write the lines of these calls. All other lines, and all reasons, are kept."""
    calls = dict(Allowed.read(file).calls) if file.exists() else {}
    calls |= {
        kind: evolve(cost, reasons=calls[kind].reasons if kind in calls else [])
        for kind, cost in costs.items()
    }
    told = {"versions": versions(), "calls": {kind: asdict(cost) for kind, cost in calls.items()}}
    file.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
