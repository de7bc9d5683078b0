"""Running claims, and journal pages with the newest event first, from the ring buffer and the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lithos.events.reading.event_stream as activity_module
from lithos.events.journal.coordinator import Coordinator
from lithos.events.reading.event_stream import Activity, EventSelection
from lithos.events.settings import EventsConfig
from lithos.tasks.service.running_claims import Claims
from tests.servers import Lithos, serving


async def fill(lithos: Lithos, count: int) -> list[int]:
    """Journal `count` events with alternating agents and tags.

    Return their sequence numbers, newest first.
    """
    for number in range(count):
        agent, tag = ("ann", "even") if number % 2 == 0 else ("bob", "odd")
        await lithos.write(f"Note {number}", agent=agent, tags=[tag])
    store = lithos.server.get(Coordinator)._store
    return [event.seq for event in reversed(store.events_after(lithos.first_seq))]


@pytest.mark.parametrize("ring", [500, 3], ids=["from the ring", "from the ring and the journal"])
async def test_activity_pages_are_newest_first_without_duplicates_or_unwanted_events(
    tmp_path: Path, ring: int
) -> None:
    async with serving(tmp_path, settled=False, events=EventsConfig(event_buffer_size=ring)) as lithos:
        seqs, activity = await fill(lithos, 10), lithos.server.get(Activity)
        whole = await activity.page(EventSelection(), 100)
        assert [event.seq for event in whole.events] == seqs
        assert (whole.head, whole.is_cut) == (seqs[0], False)
        some = await activity.page(EventSelection(), 4)
        assert [event.seq for event in some.events] == seqs[:4]
        assert some.is_cut
        later = await activity.page(EventSelection(), 100, after=seqs[6])
        assert [event.seq for event in later.events] == seqs[:6]
        assert not later.is_cut
        assert (await activity.page(EventSelection(), 100, after=seqs[0])).events == ()
        wanted: dict[str, EventSelection] = {
            "agent": EventSelection(agent="ann"),
            "tag": EventSelection(tag="even"),
            "type": EventSelection(types=frozenset({"note.created"}), agent="ann"),
        }
        for name, each in wanted.items():
            page = await activity.page(each, 100)
            assert [event.seq for event in page.events] == seqs[1::2], name
        assert (await activity.page(EventSelection(types=frozenset({"task.created"})), 9)).events == ()


async def test_past_activity_has_a_limited_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_module, "LOOKED", 4)
    monkeypatch.setattr(activity_module, "PAGE", 2)
    async with serving(tmp_path, settled=False, events=EventsConfig(event_buffer_size=2)) as lithos:
        await fill(lithos, 9)
        page = await lithos.server.get(Activity).page(EventSelection(agent="nobody"), 100)
        assert page.events == ()
        assert page.is_cut


async def test_claims_are_listed_with_their_tasks_sorted_by_end(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        activity, clock = lithos.server.get(Activity), lithos.server.clock
        claims_now = lithos.server.get(Claims)
        ids = [(await lithos.call("lithos_task_create", title=f"T{n}", agent="a"))["task_id"] for n in (1, 2)]
        claims: list[dict[str, Any]] = [
            {"task_id": ids[0], "agent": "late", "aspect": "work", "ttl_minutes": 50},
            {"task_id": ids[1], "agent": "soon", "aspect": "review", "ttl_minutes": 5},
        ]
        for claim in claims:
            assert (await lithos.call("lithos_task_claim", **claim))["success"]
        held = await claims_now.holdings(clock(), 10)
        assert [(each.claim.agent, each.title) for each in held.shown] == [("soon", "T2"), ("late", "T1")]
        cut = await claims_now.holdings(clock(), 1)
        assert (len(cut.shown), cut.total) == (1, 2)
        page = await activity.page(EventSelection(), 10)
        assert await claims_now.task_titles(page.events) == {ids[0]: "T1", ids[1]: "T2"}
