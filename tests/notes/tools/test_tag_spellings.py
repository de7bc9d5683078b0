"""Spellings of a tag in a vault.

Every filter and count treats the spellings as one tag. Files keep their own spelling.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from lithos.events.reading.event_stream import EventFilter
from lithos.kernel.values.events import Event, EventDraft
from lithos.kernel.values.times import EPOCH
from tests.servers import VAULT, Lithos, put_note, serving

SPELLINGS = ("W\u00f6rk", "wörk", "#WÖRK", unicodedata.normalize("NFD", "wörk"), "wörk/")


async def test_notes_are_found_by_each_spelling_of_a_tag(tmp_path: Path) -> None:
    """behaviour 377"""
    texts = {
        "a.md": "#Wörk on it, granite\n",
        "b.md": "---\ntags: [wörk]\n---\ngranite\n",
        "c.md": unicodedata.normalize("NFD", "---\ntags: ['#WÖRK/Deep']\n---\ngranite #wörk/deep\n"),
        "d.md": "---\ntags: [work]\n---\ngranite\n",
        "e.md": "---\ntags: [❤️]\n---\ngranite\n",
        "f.md": "---\ntags: [❤, wörk]\n---\ngranite\n",
    }
    files = {put_note(tmp_path, path, text): text for path, text in texts.items()}
    async with serving(tmp_path, storage=VAULT) as lithos:
        for spelling in SPELLINGS:
            assert await lithos.listed(tags=[spelling]) == ["a", "b", "c", "f"]
            for mode in ("fulltext", "semantic", "hybrid"):
                hits = await lithos.found("granite", mode=mode, tags=[spelling], threshold=0)
                assert set(hits) == {"a", "b", "c", "f"}
            context = await lithos.call("lithos_retrieve", query="granite", tags=[spelling])
            assert {row["title"] for row in context["results"]} == {"a", "b", "c", "f"}
        assert await lithos.listed(tags=["❤\ufe0e"]) == ["e", "f"]
        deep = unicodedata.normalize("NFD", "WÖRK/Deep")
        told = (await lithos.call("lithos_tags"))["tags"]
        assert told == {deep: 1, "work": 1, "wörk": 3, min("❤", "❤\ufe0f"): 2}
        assert (await lithos.call("lithos_tags", prefix="WÖRK/"))["tags"] == {deep: 1}
        assert (await lithos.call("lithos_read", path="a.md"))["metadata"]["tags"] == ["Wörk"]
    assert all(file.read_text() == text for file, text in files.items())


@pytest.mark.parametrize("spelling", ["Urgent", "#urgent", "URGENT/"])
async def test_tasks_and_events_are_filtered_by_any_tag_spelling(lithos: Lithos, spelling: str) -> None:
    """behaviour 377"""
    made = [
        (await lithos.call("lithos_task_create", title=f"T{number}", agent="a", tags=[tag]))["task_id"]
        for number, tag in enumerate(("urgent", "Urgent/now", "ÜRGENT", "URGENT"))
    ]
    wanted = {made[0], made[1], made[3]}
    listed = await lithos.call("lithos_task_list", tags=[spelling])
    ready = await lithos.call("lithos_task_ready", tags=[spelling])
    assert {row["id"] for row in listed["tasks"]} == {row["id"] for row in ready["tasks"]} == wanted
    chosen = await lithos.call("lithos_task_next", agent="b", tags=[spelling])
    assert chosen["task"]["id"] == made[0]
    umlaut = await lithos.call("lithos_task_next", agent="b", tags=["ürgent"])
    assert umlaut["task"]["id"] == made[2]
    assert await lithos.call("lithos_task_next", agent="b", tags=["urgen"]) | {"task": None} == {
        "task": None, "waiting": 0, "blocked": 0
    }  # fmt: skip


@pytest.mark.parametrize("spelling", ["Urgent", "#urgent", "URGENT/"])
def test_event_filter_accepts_any_tag_spelling(spelling: str) -> None:
    """behaviour 377"""
    wanted = EventFilter.of(tags=[spelling])
    events = [
        Event(
            seq=1, draft=EventDraft(type="note.created", agent="a", payload={}, timestamp=EPOCH, tags=(tag,))
        )
        for tag in ("urgent", "#Urgent/now", "urgently")
    ]
    assert [wanted.passes(event) for event in events] == [True, True, False]
