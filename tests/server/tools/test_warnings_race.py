"""Promise that no answer lacks a warning, under load and across restarts.

Specified in docs/spec/context.md §2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import PatchNote
from tests.servers import Lithos, serving

READERS = 16
QUERY = "zebra stripes"
VIEWS = ("search", "retrieve", "list", "read", "cache")


class Truth:
    """Expected state of an answer. It is the state during a call, or None while the state changes."""

    def __init__(self) -> None:
        self.is_quarantined: bool | None = False
        #: Number of started and finished changes. If the number is the same before and after a call, the call
        #: saw one state.
        self.changes = 0


class Race:
    """Readers that know the expected answers, and a writer that sets and clears the quarantine."""

    def __init__(self, lithos: Lithos, source: str, dependents: list[str], truth: Truth) -> None:
        self._lithos, self._source, self._dependents, self._truth = lithos, source, dependents, truth
        self.judged: Counter[tuple[str, bool]] = Counter()
        self.calls = 0

    async def run(self, calls: int) -> None:
        numbers = self._numbers(calls)
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as readers:
                for _ in range(READERS):
                    readers.start_soon(self._read_all, numbers)
                nursery.start_soon(self._change)
            nursery.cancel_scope.cancel()

    def _numbers(self, calls: int) -> Iterator[int]:
        """Count up to `calls`. Then continue until every view was checked in both states."""
        for number in count():
            if number >= calls and len(self.judged) == 2 * len(VIEWS):
                return
            yield number

    async def _change(self) -> None:
        """Set or clear the quarantine. Each state lasts until one answer of every view was checked."""
        for turn in count():
            with trio.CancelScope(shield=True):
                await self.set(quarantined=turn % 2 == 0)
            before = self.judged.copy()
            while len({view for view, _ in self.judged - before}) < len(VIEWS):
                await trio.lowlevel.checkpoint()

    async def set(self, *, quarantined: bool) -> None:
        truth = self._truth
        truth.is_quarantined, truth.changes = None, truth.changes + 1
        status = "quarantined" if quarantined else "active"
        reason = "wrong" if quarantined else None
        patch = PatchNote(id=self._source, agent="eve", status=status, quarantine_reason=reason)
        await self._lithos.server.get(Knowledge).write(patch)
        truth.is_quarantined, truth.changes = quarantined, truth.changes + 1

    async def _read_all(self, numbers: Any) -> None:
        reads = self._reads()
        for number in numbers:
            view, read = reads[number % len(reads)]
            expected, changes = self._truth.is_quarantined, self._truth.changes
            rows = await read(number)
            self.calls += 1
            await trio.lowlevel.checkpoint()
            if expected is None or changes != self._truth.changes:
                continue
            mine = [row for row in rows if row["id"] in self._dependents]
            assert mine, f"{view} shows no dependent"
            for row in mine:
                warned = any(
                    each["kind"] == "suspect" and each["id"] == self._source
                    for each in row.get("warnings", ())
                )
                assert warned == expected, f"{view}, call {number}: {row}"
                self.judged[view, expected] += 1

    def _reads(self) -> list[tuple[str, Callable[[int], Awaitable[list[dict[str, Any]]]]]]:
        call, some = self._lithos.call, self._dependents

        async def search(number: int) -> list[dict[str, Any]]:
            mode = ("hybrid", "fulltext", "semantic")[number % 3]
            rows: list[dict[str, Any]] = (await call("lithos_search", query=QUERY, mode=mode))["results"]
            return rows

        async def retrieve(number: int) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = (await call("lithos_retrieve", query=QUERY))["results"]
            return rows

        async def list_notes(number: int) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = (await call("lithos_list"))["items"]
            return rows

        async def read(number: int) -> list[dict[str, Any]]:
            return [await call("lithos_read", id=some[number % len(some)])]

        async def look_up(number: int) -> list[dict[str, Any]]:
            place = number % len(some)
            url = f"https://e.org/{place}"
            answer = await call("lithos_cache_lookup", query="", source_url=url)
            return [answer | {"id": answer["document"]["id"]}]

        # Retrievals are rarer here. Each retrieval writes a receipt and waits for a disk sync.
        return [
            ("search", search), ("read", read), ("list", list_notes), ("cache", look_up), ("read", read),
            ("search", search), ("list", list_notes), ("retrieve", retrieve), ("cache", look_up),
        ]  # fmt: skip


async def make(lithos: Lithos) -> tuple[str, list[str]]:
    """Create a source and its dependents: direct, through two steps, and by a typed edge."""
    source = await lithos.create("Source", "The origin.")
    made: list[str] = []
    for number in range(6):
        sources = [source] if number < 2 else made[:1] if number < 4 else []
        made.append(
            await lithos.create(
                f"Dependent {number}",
                f"{QUERY} number {number}.",
                derived_from_ids=sources,
                source_url=f"https://e.org/{number}",
            )
        )
        if not sources:
            await lithos.call(
                "lithos_edge_upsert",
                from_id=made[-1],
                to_id=source,
                type="depends_on",
                weight=1,
                namespace="n",
            )
    return source, made


async def race(tmp_path: Path, calls: int) -> None:
    truth = Truth()
    async with serving(tmp_path) as lithos:
        source, dependents = await make(lithos)
        first = Race(lithos, source, dependents, truth)
        await first.run(calls // 2)
        await first.set(quarantined=True)
    async with serving(tmp_path) as lithos:
        second = Race(lithos, source, dependents, truth)
        for _, read in second._reads():
            for row in await read(0):
                if row["id"] in dependents:
                    assert [each["id"] for each in row["warnings"]] == [source]
        await second.run(calls // 2)
    judged = first.judged + second.judged
    assert first.calls + second.calls >= calls
    for view in VIEWS:
        for state in (True, False):
            assert judged[view, state] > 0, f"no {view} was judged while quarantined is {state}: {judged}"


async def test_every_answer_has_its_warning_after_a_confirmed_change(tmp_path: Path) -> None:
    """behaviour 231: a short version with few calls."""
    await race(tmp_path, 240)


@pytest.mark.slow
async def test_ten_thousand_answers_have_their_warnings(tmp_path: Path) -> None:
    """behaviour 231: 16 readers, with a restart in the middle."""
    await race(tmp_path, 10_000)
