"""Further kinds of clients for a soak: the official SDK, stdio, subscribers and the editor of a person.

Each client runs until it is cancelled. It records every call in the samples that `bench.soak` judges.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import trio
from attrs import Factory, define

from bench.client import Request, SdkClient, ToolFailed
from bench.corpus import queries
from bench.events import Delays, listen_sse, listen_websocket
from bench.server import Serving
from bench.stdio import started

#: Maximum seconds between two calls, and seconds between two saves of the editor.
THINKING, SAVING = 0.1, 3.0
#: Number of files that the person edits in turn.
FILES: Final = 5
SHOWN: Final = 300


@define
class Samples:
    """Calls as (seconds since `begin`, duration in seconds), memory as (seconds, MiB), and counts by kind."""

    begin: float
    calls: list[tuple[float, float]] = Factory(list)
    memory: list[tuple[float, float]] = Factory(list)
    tools: Counter[str] = Factory(Counter)
    failures: list[str] = Factory(list)

    def note(self, what: str, begun: float) -> None:
        """Record a call that began at `begun` (`perf_counter`) and has just ended."""
        ended = time.perf_counter()
        self.calls.append((ended - self.begin, ended - begun))
        self.tools[what] += 1


Kind = Callable[[Serving, Path, Samples, int], Awaitable[None]]


def _looks(number: int) -> Iterator[Request]:
    """Yield the calls of a client that only reads: searches, lists and briefings."""
    texts = queries(1_000 + number, 500)
    for turn in count():
        text = texts[turn % len(texts)]
        yield "lithos_search", {"query": text}
        yield "lithos_list", {"limit": 50, "title_contains": text.split()[0].strip('"')}
        yield "lithos_context", {"query": text}
        yield "lithos_tags", {}
        yield "lithos_cache_lookup", {"query": text}
        yield "lithos_agent_info", {"id": f"soak{number}"}


async def be_sdk_client(server: Serving, data: Path, samples: Samples, number: int) -> None:
    """Run the official client with its own session."""
    async with SdkClient(server.host, server.port) as client:
        for tool, arguments in _looks(number):
            begun = time.perf_counter()
            try:
                await client.call(tool, arguments)
            except ToolFailed as failure:
                samples.failures.append(f"sdk, {tool}: {str(failure)[:SHOWN]}")
            samples.note(f"sdk {tool}", begun)
            await trio.sleep(random.random() * THINKING)


async def be_stdio(server: Serving, data: Path, samples: Samples, number: int) -> None:
    """Run a stdio server on the same directory. It forwards calls to the measured server."""
    starting = started(data, patience=24 * 3_600)
    server_on_stdio = await trio.to_thread.run_sync(starting.__enter__)
    try:
        for asked, (tool, arguments) in enumerate(_looks(number), start=10):
            begun = time.perf_counter()
            answer = await trio.to_thread.run_sync(
                lambda tool=tool, arguments=arguments, asked=asked: server_on_stdio.request(
                    "tools/call", asked, name=tool, arguments=arguments
                )
            )
            if "result" not in answer or answer["result"].get("isError"):
                samples.failures.append(f"stdio, {tool}: {str(answer)[:SHOWN]}")
            samples.note(f"stdio {tool}", begun)
            await trio.sleep(random.random() * THINKING)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(starting.__exit__, None, None, None)


async def be_subscriber(server: Serving, data: Path, samples: Samples, number: int) -> None:
    """Receive all events over SSE or WebSocket. A disconnection counts as an error."""
    delays = Delays()
    try:
        await (listen_sse, listen_websocket)[number % 2](server, delays)
        samples.failures.append(f"subscriber {number} was cut off after {len(delays.taken)} events")
    finally:
        samples.tools["event received"] += len(delays.taken)
        samples.failures.extend(["subscriber: overflow"] * delays.cut_off)


async def be_person(server: Serving, data: Path, samples: Samples, number: int) -> None:
    """Save files directly, like an editor, without using the server."""
    texts = queries(2_000 + number, 500)
    for saved in count():
        path = data / "knowledge" / f"person-{number}-{saved % FILES}.md"
        text = "\n\n".join(texts[(saved + line) % len(texts)] for line in range(20))
        await trio.to_thread.run_sync(_save, path, f"# Person {number} {saved % FILES}\n\n{text}\n")
        samples.tools["file saved"] += 1
        await trio.sleep(random.random() * SAVING)


def _save(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_text(text)
    temporary.rename(path)


#: In a soak with clients of all kinds, these are the last clients. All earlier clients are agents.
KINDS: Final[tuple[Kind, ...]] = (
    be_sdk_client, be_sdk_client, be_stdio, be_subscriber, be_subscriber, be_person,
)  # fmt: skip
