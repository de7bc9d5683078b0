"""Enrichment worker: jobs, retries, sweeps and schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import attrs
import pytest
import trio

from lithos.kernel.values.errors import StorageFailed
from lithos.memory.enrich.drain import Drain
from lithos.memory.enrich.worker import Enrichment
from lithos.memory.model.memory import ClaimJobs, Enqueue, EnrichTrigger
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.server.service_state import Gauges
from tests.servers import Clock, Lithos, put_note, serving

PROSE = "Later Ada Lovelace wrote to Charles Babbage. Then Ada Lovelace met Charles Babbage."


def worker(lithos: Lithos) -> Enrichment:
    assert lithos.server.find(Enrichment) is not None
    return lithos.server.find(Enrichment)


async def drain(lithos: Lithos) -> None:
    await worker(lithos).drain()


async def entities(lithos: Lithos, note_id: str) -> list[str]:
    return (await lithos.read(note_id))["metadata"].get("entities") or []


async def _enqueue(lithos: Lithos, *notes: str) -> None:
    triggers = [EnrichTrigger(trigger_type="note.updated", node_id=note) for note in notes]
    await lithos.server.get(Learning).submit(Enqueue(tuple(triggers)))


# -- jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writes", [False, True])
async def test_drain_extracts_entities_without_triggering_new_jobs(tmp_path: Path, writes: bool) -> None:
    """behaviours 157, 158"""
    file = put_note(tmp_path, "curated.md", f"---\ntitle: Curated\nentities: [Mine]\n---\n{PROSE}\n")
    async with serving(tmp_path, lcma=LcmaConfig(write_entities=writes)) as lithos:
        note = await lithos.create("Note", PROSE)
        curated = lithos.server.get(Catalogue).at_path("curated.md").note.id
        await _enqueue(lithos, curated)
        await drain(lithos)
        assert "Lovelace" not in file.read_text().partition("\n---\n")[0]
        assert await entities(lithos, note) == ["Ada Lovelace", "Charles Babbage"]
        assert await entities(lithos, curated) == ["Mine"]
        assert [kind for kind, _ in lithos.events()].count("note.updated") == int(writes)
        await drain(lithos)
        assert await lithos.server.get(Learning).read(lambda tables: tables.queue.length()) == 0
        assert (await lithos.read(note))["metadata"]["version"] == 1 + int(writes)


class _Entities:
    """Entity extractor that records its requests and can fail on demand."""

    def __init__(self, asked: list[str], failing: set[str] = frozenset(), crash: bool = False) -> None:  # type: ignore[assignment]
        self.asked = asked
        self.failing = set(failing)
        self.crash = crash

    async def refresh(self, note_id: str) -> bool:
        self.asked.append(note_id)
        if note_id in self.failing:
            raise (RuntimeError("a bug") if self.crash else StorageFailed("The disk is full."))
        return True

    async def refresh_stale(self) -> int:
        return 0


def _drain_with(lithos: Lithos, entities: Any, attempts: int = 3) -> Drain:
    return attrs.evolve(worker(lithos)._drain, entities=entities)


@pytest.mark.parametrize("crash", [False, True], ids=["refusal", "bug"])
async def test_failing_note_is_tried_three_times_without_blocking_other_notes(
    tmp_path: Path, crash: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """behaviour 156"""
    async with serving(tmp_path) as lithos:
        bad, good = await lithos.create("Bad", PROSE), await lithos.create("Good", PROSE)
        asked: list[str] = []
        job = _drain_with(lithos, _Entities(asked, {bad}, crash))
        for _ in range(5):
            await job.run()
        assert Counter(asked) == {bad: 3, good: 1}
        warnings = [record for record in caplog.records if "enrichment stopped" in record.getMessage()]
        assert len(warnings) == 1
        text = (await lithos.server.get(Gauges).scrape()).decode()
        assert "lithos_lcma_enrich_exhausted_total 1.0" in text
        assert "lithos_lcma_enrich_queue_depth 1.0" in text
        await lithos.write("Bad", PROSE + " More.", id=bad)  # a changed note gets new attempts
        await job.run()
        assert asked.count(bad) == 4


async def test_note_is_enriched_after_a_temporary_failure(tmp_path: Path) -> None:
    """behaviour 156"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Note", PROSE)
        asked: list[str] = []
        entities = _Entities(asked, {note})
        job = _drain_with(lithos, entities)
        await job.run()
        assert await lithos.server.get(Learning).read(lambda tables: tables.queue.length()) == 1
        entities.failing.clear()
        await job.run()
        assert asked == [note, note]
        assert await lithos.server.get(Learning).read(lambda tables: tables.queue.length()) == 0


async def test_several_triggers_for_a_note_become_one_job(tmp_path: Path) -> None:
    for number in range(60):
        put_note(tmp_path, f"{number}.md", f"# Note {number}\n\n{PROSE}\n")
    async with serving(tmp_path) as lithos:
        notes = [entry.note.id for entry in lithos.server.get(Catalogue)]
        for _ in range(3):
            await _enqueue(lithos, *notes)
        asked: list[str] = []
        await _drain_with(lithos, _Entities(asked)).run()
        assert sorted(asked) == sorted(notes)
        assert await lithos.server.get(Learning).read(lambda tables: tables.queue.length()) == 0


# -- the sweep -------------------------------------------------------------------------------------


def _refusing(submit: Callable[[Any], Any], kind: type) -> Callable[[Any], Any]:
    async def refuse(command: Any) -> Any:
        if isinstance(command, kind):
            raise StorageFailed("The disk is full.")
        return await submit(command)

    return refuse


async def test_sweep_continues_when_one_of_its_parts_fails(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        source = await lithos.create("Source")
        note = await lithos.create("Note", derived_from_ids=[source])
        submit = lithos.server.get(Learning).submit
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lithos.server.get(Learning), "submit", _refusing(submit, ClaimJobs))
            await worker(lithos).sweep()
        found = await lithos.call("lithos_edge_list", type="derived_from")
        assert [edge["from_id"] for edge in found["edges"]] == [note]


class FakeMemory:
    """Memory without any work. It records the hours at which it was called."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, type]] = []

    async def submit(self, command: Any) -> Any:
        self.asked.append((trio.current_time() / 60, type(command)))
        return [] if isinstance(command, ClaimJobs) else None

    def hours(self, kind: type) -> list[float]:
        return [round(minute, 3) for minute, asked in self.asked if asked is kind]


class NoFeed:
    async def run(self) -> None:
        await trio.sleep_forever()

    async def catch_up(self) -> None:
        await trio.lowlevel.checkpoint()


class NoProjection:
    async def reconcile(self) -> None:
        raise RuntimeError("a bug must not end the worker")


class NoRetention:
    def __init__(self) -> None:
        self.hours: list[float] = []

    async def forget_receipts(self) -> None:
        self.hours.append(round(trio.current_time() / 60, 3))
        raise RuntimeError("a bug must not end the worker")

    async def fail(self) -> None:
        raise RuntimeError("a bug must not end the worker")

    forget_jobs = forget_notes = fail


@pytest.mark.autojump
async def test_drains_and_sweeps_follow_their_schedule_after_failures() -> None:
    config = LcmaConfig(
        enrich_drain_interval_minutes=5, sweep_startup_delay_minutes=12, sweep_interval_hours=0.5
    )
    memory, clock = FakeMemory(), Clock()
    keeping: Any = NoRetention()
    drain = Drain(
        clock=clock,
        metrics=MagicMock(),
        feed=NoFeed(),
        memory=memory,
        projection=NoProjection(),
        entities=_Entities([]),
        questions=_NoQuestions(),
    )
    enrichment = Enrichment(drain, keeping, config, keeping.fail)
    began = trio.current_time() / 60
    with trio.move_on_after(60 * 61):
        await enrichment.run()
    drains = [round(minute - began, 3) for minute in memory.hours(ClaimJobs)]
    assert [round(minute - began, 3) for minute in keeping.hours] == [12, 42]
    assert drains == [5, 10, 12, 17, 22, 27, 32, 37, 42, 47, 52, 57]


class _NoQuestions:
    async def tidy(self) -> None:
        raise StorageFailed("the disk is full")


# -- switches --------------------------------------------------------------------------------------


async def test_server_runs_without_enrichment_worker_when_lcma_is_off(tmp_path: Path) -> None:
    async with serving(tmp_path, lcma=LcmaConfig(enabled=False)) as lithos:
        assert lithos.server.find(Enrichment) is None
        await lithos.create("Note", PROSE)
        assert not (tmp_path / ".lithos" / "stats.db").exists()


async def test_enrichment_worker_runs_automatically_in_a_server(tmp_path: Path) -> None:
    config = LcmaConfig(enrich_drain_interval_minutes=0.001)
    async with serving(tmp_path, lcma=config) as lithos:
        note = await lithos.create("Note", PROSE)
        with trio.fail_after(60):
            while not await entities(lithos, note):
                await trio.sleep(0.05)
