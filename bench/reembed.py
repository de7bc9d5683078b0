"""Another embedding model for a corpus that is searched meanwhile: how long, and what searches feel of it.

`python -m bench.reembed --notes 10000`. The other model is the built-in one with another file beside its
weights, so that it is as quick and yet another embedder. `slowdown` is the p95 of hybrid searches of one
client during the re-embedding to that of the idle server before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import quantiles

import trio

import lithos.models
from bench.client import RawClient, drive
from bench.corpus import queries
from bench.report import print_report
from bench.server import Serving, data_directory, serving

#: Seconds between two looks at `/health`, which cost the server as much as a search.
LOOK = 0.25
WARM_UP, CALLS = 200, 400


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reembed", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    options = parser.parse_args()
    texts = queries(3, 5_000)
    with data_directory(options.notes) as data, tempfile.TemporaryDirectory() as folder:
        with serving(data) as server:
            idle = trio.run(_measure_idle, server, texts)
        other = _copy_model(Path(folder) / "other")
        with serving(data, {"LITHOS_SEARCH__EMBEDDING_MODEL": str(other)}) as server:
            began = time.perf_counter() - server.searchable
            taken = trio.run(_search_meanwhile, server, texts)
            seconds = time.perf_counter() - began
    during = quantiles(taken, n=100)[94] * 1000 if len(taken) > 1 else 0.0
    print_report(
        "reembed",
        notes=options.notes,
        seconds_from_start=round(seconds, 1),
        searches_meanwhile=len(taken),
        idle_p95_ms=round(idle, 2),
        meanwhile_p95_ms=round(during, 2),
        slowdown=round(during / idle, 2),
    )


def _copy_model(target: Path) -> Path:
    """The built-in model under another identity."""
    shutil.copytree(Path(next(iter(lithos.models.__path__))) / "builtin", target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "copied": True}))
    return target


async def _measure_idle(server: Serving, texts: list[str]) -> float:
    def ask(number: int) -> tuple[str, dict[str, str]]:
        return "lithos_search", {"query": texts[number % len(texts)]}

    await drive(server, 1, WARM_UP, ask)
    return (await drive(server, 1, CALLS, ask)).p95


async def _search_meanwhile(server: Serving, texts: list[str]) -> list[float]:
    """Search until the new model answers; seconds of each search."""
    taken: list[float] = []
    looked, number = 0.0, 0
    async with RawClient(server.host, server.port) as client:
        while True:
            if time.perf_counter() - looked > LOOK:
                looked = time.perf_counter()
                if await trio.to_thread.run_sync(_state, server) != "reembedding":
                    return taken
            began = time.perf_counter()
            await client.call("lithos_search", {"query": texts[number % len(texts)]})
            taken.append(time.perf_counter() - began)
            number += 1


def _state(server: Serving) -> str:
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/health") as response:
        return str(json.load(response)["components"]["embedding_model"]["state"])


if __name__ == "__main__":
    main()
