"""Whether the time of an answer tells of a vault that one may not use.

`python -m bench.vault_timing` serves three vaults and asks with a token of the first, then with one of the
first two: the door of the third and of a name that no vault has, and a note of the third and an id that
nothing has. `--calls` of each kind, in random order. Printed are means and medians in microseconds, and of
each pair p, the share of random divisions of all its times whose means differ at least as much.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from time import perf_counter, sleep
from typing import Any, Final

import numpy as np
import yaml
from attrs import frozen

NAMES: Final = ("alpha", "bravo", "charlie")
#: As long as the name of the third vault.
UNKNOWN: Final = "nothing"
NOTES: Final = 200
DIVISIONS: Final = 10_000
#: Calls before those that count.
WARMING: Final = 200


@frozen
class Request:
    """A POST to an address."""

    path: str
    token: str
    body: bytes

    def answer(self, connection: HTTPConnection) -> bytes:
        """The body of the answer."""
        fields = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
        }
        connection.request("POST", self.path, self.body, fields)
        return connection.getresponse().read()

    def send(self, connection: HTTPConnection) -> float:
        """Seconds until the whole answer is there."""
        began = perf_counter()
        self.answer(connection)
        return perf_counter() - began


def call(tool: str, **arguments: Any) -> bytes:
    """The body of a call."""
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def run(config: Path, *words: str) -> str:
    """A command; what it printed."""
    command = [sys.executable, "-m", "lithos", "--config", str(config), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment()).stdout


def environment() -> dict[str, str]:
    """Without settings of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LITHOS_")}
    return kept | {
        "LITHOS_SEARCH__TIER": "static",
        "LITHOS_SERVER__MAX_ANSWER_CHARS": "0",
        "LITHOS_SERVER__ANSWERS": "full",
    }


def write_vaults(root: Path) -> Path:
    """Three vaults of notes, each of paths of its own, as ids follow from these; the file that names them."""
    vaults = {}
    for name in NAMES:
        folder = root / name
        folder.mkdir()
        for number in range(NOTES):
            text = f"# Note {number}\n\nOn subject {number % 17} of {name}, see [[Note {number + 1}]].\n"
            (folder / f"{name} {number}.md").write_text(text)
        vaults[name] = {"path": str(folder), "data_dir": str(root / f"{name}-data")}
    config = root / "vaults.yaml"
    config.write_text(yaml.safe_dump({"vaults": vaults}))
    return config


@contextmanager
def serving(config: Path) -> Iterator[tuple[str, int]]:
    """The address of a running server."""
    command = [
        sys.executable,
        "-m",
        "lithos",
        "--config",
        str(config),
        "--json",
        "serve",
        "-t",
        "http",
        "-p",
        "0",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), text=True
    ) as process:
        try:
            assert process.stdout is not None
            told = next(line for line in process.stdout if '"url"' in line)
            host, _, port = json.loads(told)["url"].removeprefix("http://").rpartition(":")
            yield host, int(port)
        finally:
            process.terminate()


def measure(
    connection: HTTPConnection, pair: Mapping[str, Sequence[Request]], calls: int
) -> dict[str, np.ndarray]:
    """The times of two kinds of requests, in random order on one connection."""
    chance = Random(7)
    times: dict[str, list[float]] = {name: [] for name in pair}
    for _ in range(WARMING):
        for requests in pair.values():
            chance.choice(requests).send(connection)
    order = [*pair] * calls
    chance.shuffle(order)
    for name in order:
        times[name].append(chance.choice(pair[name]).send(connection))
    connection.close()
    return {name: np.array(measured) for name, measured in times.items()}


def permutation_p(one: np.ndarray, other: np.ndarray) -> float:
    """The share of divisions of all times whose means differ at least as much."""
    numbers = np.random.default_rng(7)
    every = np.concatenate([one, other])
    seen = abs(one.mean() - other.mean())
    most = 0
    for _ in range(DIVISIONS):
        numbers.shuffle(every)
        most += abs(every[: len(one)].mean() - every[len(one) :].mean()) >= seen
    return (most + 1) / (DIVISIONS + 1)


def ranks_of(times: np.ndarray) -> np.ndarray:
    """Their places in order: a pause of the machine counts as one late answer, however long."""
    return np.argsort(np.argsort(times)).astype(float)


def report(title: str, times: Mapping[str, np.ndarray]) -> None:
    """One line for each kind, and p of means and of ranks."""
    print(title)
    for name, measured in times.items():
        print(f"  {name:30} mean {measured.mean() * 1e6:8.1f}  median {np.median(measured) * 1e6:8.1f}")
    one, other = times.values()
    ranks = ranks_of(np.concatenate([one, other]))
    of_ranks = permutation_p(ranks[: len(one)], ranks[len(one) :])
    print(f"  p of means {permutation_p(one, other):.3f}, of ranks {of_ranks:.3f}", flush=True)


def find_ids(connection: HTTPConnection, token: str) -> list[str]:
    """The notes of the third vault, once it has them all."""
    asked = Request("/v/charlie/mcp", token, call("lithos_list", limit=NOTES))
    while True:
        answer = json.loads(asked.answer(connection))
        found = answer.get("result", {}).get("structuredContent", {}).get("items", ())
        if len(found) == NOTES:
            return [row["id"] for row in found]
        sleep(0.1)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.vault_timing", description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000)
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        config = write_vaults(Path(folder))
        first, both, third = (
            run(
                config, "token", "create", name, *(word for vault in vaults for word in ("--vault", vault))
            ).strip()
            for name, vaults in (("first", NAMES[:1]), ("both", NAMES[:2]), ("third", NAMES[2:]))
        )
        with serving(config) as address:

            def connect() -> HTTPConnection:
                return HTTPConnection(*address, timeout=60)

            ids = find_ids(connect(), third)
            unknown = [str(uuid.uuid5(uuid.NAMESPACE_URL, each)) for each in ids]
            for token, whose in ((first, "of the first vault"), (both, "of the first two vaults")):
                doors = {
                    path: [Request(path, token, call("lithos_stats"))]
                    for path in ("/v/charlie/mcp", f"/v/{UNKNOWN}/mcp")
                }
                report(f"A token {whose}, doors", measure(connect(), doors, calls))
                for tool, key in (("lithos_read", "id"), ("lithos_task_status", "task_id")):
                    things = {
                        what: [Request("/mcp", token, call(tool, **{key: each})) for each in known]
                        for what, known in (("an id of the third vault", ids), ("an unknown id", unknown))
                    }
                    report(f"A token {whose}, {tool}", measure(connect(), things, calls))


if __name__ == "__main__":
    main()
