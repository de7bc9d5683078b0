"""Benchmark of indexing transcripts: time, processor time, memory, calls meanwhile, and what is found.

Run `python -m bench.sessions`. The server runs in this process, without a front. `memory` is the growth of
the resident memory in MiB: while indexing at most, and afterwards. `search_p50` and `search_p95` are times of
`lithos_search` in ms before, while and after the transcripts are indexed. `found` is the share of facts whose
turn is the first hit, or one of the first five, for a question in the words of the fact and in other words.
`strong_if_right` is the share of right first hits that are strong, and `strong_without_answer` the share of
questions without an answer whose first hit is strong. `grown` is the time until a search finds a sentence
that was just written.

Without the mask of secrets, nothing is indexed, and the benchmark ends with an error.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from bench.corpus import generate, queries
from bench.report import print_report
from bench.session_corpus import AskedFact, generate_sessions, unanswerable
from lithos.app.server import Server, running_server
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.principals import OWNER
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from lithos.server.settings import ServerConfig
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.rows.schema import SESSIONS
from lithos.sessions.service.sessions import Sessions
from lithos.sessions.settings import SessionsConfig

MIB: Final = 1 << 20
#: Seconds between two searches while transcripts are indexed, and between two looks at the memory.
EVERY: Final = 0.2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--size", type=int, default=200_000, help="bytes of a transcript")
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--questions", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lithos-bench-") as folder:
        data, transcripts = Path(folder, "data"), Path(folder, "transcripts")
        generate(data / "knowledge", options.notes)
        transcripts.mkdir()
        facts = generate_sessions(transcripts, options.sessions, options.size)
        print_report("sessions", **trio.run(_measure, data, transcripts, facts, options))


async def _measure(
    data: Path, transcripts: Path, facts: Sequence[AskedFact], options: argparse.Namespace
) -> dict[str, Any]:
    config = Config(
        storage=StorageConfig(data_dir=data),
        server=ServerConfig(watch_files=False),
        search=attrs.evolve(SearchConfig(), tier="static"),
        sessions=SessionsConfig(folders=()),
    )
    asked = queries(1, 200)
    async with running_server(config) as server:
        await server.get(SemanticBackend).settled.wait()
        before = await _searches(server, asked)
    config = config.replace(SessionsConfig(folders=(str(transcripts),)))
    async with running_server(config) as server:
        await server.get(SemanticBackend).settled.wait()
        start, began, used = _resident(), time.perf_counter(), time.process_time()
        meanwhile = _Meanwhile()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(meanwhile.look, server, asked)
            await server.get(SessionFollower).caught_up()
            seconds, processor = time.perf_counter() - began, time.process_time() - used
            nursery.cancel_scope.cancel()
        sessions = server.get(Sessions)
        status = sessions.status()
        if status.trouble:
            raise SystemExit(status.trouble)
        return {
            "sessions": status.sessions,
            "turns": status.turns,
            "transcripts_mb": round(sum(each.bytes for each in status.folders) / 1e6, 1),
            "database_mb": round((data / ".lithos" / SESSIONS).stat().st_size / 1e6, 1),
            "seconds": round(seconds, 1),
            "processor": round(processor - meanwhile.processor, 1),
            "memory": {"peak": round(meanwhile.peak - start, 1), "after": round(_resident() - start, 1)},
            "search_p50": _part(before, meanwhile.times, after := await _searches(server, asked), 0.5),
            "search_p95": _part(before, meanwhile.times, after, 0.95),
            **await _quality(sessions, facts[:: max(1, len(facts) // options.questions)]),
            "grown": await _grown(server, transcripts),
        }


class _Meanwhile:
    """Searches and looks at the memory while transcripts are indexed."""

    def __init__(self) -> None:
        self.peak = 0.0
        self.processor = 0.0
        self.times: list[float] = []

    async def look(self, server: Server, asked: Sequence[str]) -> None:
        """Search from time to time. The processor time of the searches is estimated from their number."""
        for number in range(1_000_000):
            self.peak = max(self.peak, _resident())
            self.times += await _searches(server, [asked[number % len(asked)]])
            await trio.sleep(EVERY)


async def _searches(server: Server, asked: Sequence[str]) -> list[float]:
    times = list[float]()
    for query in asked:
        began = time.perf_counter()
        await server.tools.call("lithos_search", {"query": query}, OWNER)
        times.append(1_000 * (time.perf_counter() - began))
    return times


def _part(
    before: Sequence[float], meanwhile: Sequence[float], after: Sequence[float], share: float
) -> dict[str, float]:
    named = {"before": before, "meanwhile": meanwhile, "after": after}
    return {
        name: round(sorted(each)[int(share * (len(each) - 1))], 2) for name, each in named.items() if each
    }


async def _quality(sessions: Sessions, facts: Sequence[AskedFact]) -> dict[str, Any]:
    found: dict[str, dict[str, float]] = {}
    times = list[float]()
    for form in ("by_words", "in_other_words"):
        ranks, strong = list[int](), list[bool]()
        for fact in facts:
            began = time.perf_counter()
            hits = await sessions.search(getattr(fact, form), limit=5)
            times.append(1_000 * (time.perf_counter() - began))
            right = [fact.statement in hit.turn.text for hit in hits]
            ranks.append(right.index(True) if True in right else 99)
            if right and right[0]:
                strong.append(hits[0].strength == "strong")
        found[form] = {
            "first": round(statistics.mean(rank == 0 for rank in ranks), 3),
            "five": round(statistics.mean(rank < 5 for rank in ranks), 3),
            "strong_if_right": round(statistics.mean(strong), 3) if strong else 0.0,
        }
    firsts = [(await sessions.search(each, limit=1))[:1] for each in unanswerable(len(facts))]
    wrong = [bool(hits) and hits[0].strength == "strong" for hits in firsts]
    times.sort()
    return {
        "found": found,
        "strong_without_answer": round(statistics.mean(wrong), 3),
        "session_search_ms": {"p50": round(times[len(times) // 2], 1), "most": round(times[-1], 1)},
    }


def _add_sentence(transcripts: Path) -> None:
    path = min(transcripts.rglob("*.jsonl"))
    with path.open("r+") as file:
        line = file.readline().replace("Please look at", "The quagga zithers quietly in")
        file.seek(0, 2)
        file.write(line)


async def _grown(server: Server, transcripts: Path) -> float:
    """Return the seconds until a sentence is found that was added to a transcript."""
    _add_sentence(transcripts)
    began = time.perf_counter()
    for _ in range(1_000):
        hits = await server.get(Sessions).search("quagga zithers", limit=1)
        if any("quagga zithers" in hit.turn.text for hit in hits):
            break
        await trio.sleep(0.1)
    return round(time.perf_counter() - began, 1)


def _resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / MIB
    raise LookupError("RssAnon")


if __name__ == "__main__":
    main()
