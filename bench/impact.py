"""`lithos_impact` through `/mcp`: a preview where very much rests on a note, a quarantine with tasks.

`python -m bench.impact --notes 10000 --dependents 2000`. `hub`: so many notes rest on it, 2,000 tasks
found or cited it, and 300 agents read it 20,000 times, among 200,000 accesses. `chain`: 250 notes, each
derived from the one before. `leaf`: a note on which nothing rests. Milliseconds; `open` creates 200 tasks and
their epic, `again` finds them.
"""

from __future__ import annotations

import argparse
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio

from bench.client import RawClient
from bench.report import print_report
from bench.server import Serving, data_directory, serving
from lithos.core.tasks.model import READ, AuditRow, Finding, Task
from lithos.stores.coordination.store import CoordinationStore

START = datetime(2026, 1, 1, tzinfo=UTC)
TASKS, AGENTS, READS, ACCESSES, CHAIN = 2_000, 300, 20_000, 200_000, 250
HUB, FIRST, LEAF = (str(uuid.UUID(int=number)) for number in (1, 1_000_000, 2))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.impact", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--dependents", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with data_directory(options.notes - options.dependents - CHAIN - 2) as data:
        _add_lineage(data / "knowledge" / "lineage", options.dependents)
        _add_rows(data)
        with serving(data) as server:
            figures = trio.run(_measure, server, options)
    print_report("impact", notes=options.notes, dependents=options.dependents, **figures)


def _add_lineage(folder: Path, dependents: int) -> None:
    folder.mkdir()

    def add(number: int, sources: list[str]) -> str:
        note = str(uuid.UUID(int=number))
        front = f"id: {note}\ntitle: Lineage {number}\nderived_from_ids: {sources}"
        (folder / f"{number}.md").write_text(f"---\n{front}\n---\nA note of the lineage.\n")
        return note

    add(1, [])
    add(2, [])
    for number in range(dependents):
        add(1_000 + number, [HUB])
    before = add(1_000_000, [])
    for number in range(1, CHAIN):
        before = add(1_000_000 + number, [before])


def _add_rows(data: Path) -> None:
    """Tasks that found or cited the hub in turn, and accesses, a tenth of them reads of the hub."""
    (data / ".lithos").mkdir()
    store = CoordinationStore.open(data / ".lithos" / "coordination.db", START)
    with store.transaction():
        rows = store.task_rows()
        for number in range(TASKS):
            now = START + timedelta(seconds=number)
            task = Task(id=str(uuid.UUID(int=number)), title=f"Task {number}", created_by="a", created_at=now)
            rows.put_task(task)
            if number % 2:
                rows.impact.cite(task.id, "bench", [HUB], now)
            else:
                rows.add_finding(
                    Finding(
                        id=f"f{number}",
                        task_id=task.id,
                        agent="a",
                        summary="Found.",
                        knowledge_id=HUB,
                        created_at=now,
                    )
                )
        store.add_audit(
            AuditRow(
                f"agent-{number // 10 % AGENTS}",
                HUB if number % (ACCESSES // READS) == 0 else str(uuid.UUID(int=1_000 + number % 1_000)),
                READ,
                START + timedelta(seconds=number),
            )
            for number in range(ACCESSES)
        )
    store.close()


async def _measure(server: Serving, options: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with RawClient(server.host, server.port) as client:
        for name, note in (("hub", HUB), ("chain", FIRST), ("leaf", LEAF)):
            times = []
            for _ in range(options.rounds):
                began = time.perf_counter()
                await client.call("lithos_impact", {"id": note})
                times.append((time.perf_counter() - began) * 1_000)
            times.sort()
            figures |= {f"{name}_p50": _at(times, 0.5), f"{name}_p99": _at(times, 0.99)}
        doubt = {"id": HUB, "action": "quarantine", "agent": "a", "reason": "r", "open_tasks": True}
        for name in ("open", "again"):
            began = time.perf_counter()
            await client.call("lithos_impact", doubt)
            figures[f"{name}_ms"] = round((time.perf_counter() - began) * 1_000, 1)
    return figures


def _at(times: list[float], share: float) -> float:
    return round(times[min(len(times) - 1, int(share * len(times)))], 2)


if __name__ == "__main__":
    main()
