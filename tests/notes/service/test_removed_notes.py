"""Memory use: caches release deleted notes, so the memory of a vault with changing notes does not grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.memory.context.passage_cache import Splits
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.values import Fingerprint
from tests.servers import Lithos, serving

TEXT = "The striped zebra grazes on the savanna.\n\n" * 5


async def look(lithos: Lithos, note_id: str) -> None:
    """Read a note, search for it and request a briefing, so that every cache contains the note."""
    for _ in range(2):
        await lithos.read(note_id)
    await lithos.read(note_id, max_length=50)
    assert (await lithos.call("lithos_search", query="striped zebra", mode="hybrid"))["results"]
    assert "savanna" in (await lithos.call("lithos_context", query="striped zebra"))["text"]


async def test_caches_release_removed_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fingerprint, "is_old", lambda *_: True)  # Recall even recently changed files.
    async with serving(tmp_path) as lithos:
        catalogue = lithos.server.get(Catalogue)
        caches: list[Any] = [cache_of.__self__ for cache_of in catalogue.when_removed]  # type: ignore[attr-defined]
        room = [cache._left for cache in caches]
        assert len(room) == 5
        kept = await lithos.create("Zebra", TEXT)
        gone = [await lithos.create(f"Zebra {number}", TEXT) for number in range(5)]
        for note_id in (kept, *gone):
            await look(lithos, note_id)
        assert all(cache._left < left for cache, left in zip(caches, room, strict=True))
        for note_id in gone:
            await lithos.call("lithos_delete", id=note_id, agent="ann")
        await look(lithos, kept)
        one = [left - cache._left for cache, left in zip(caches, room, strict=True)]
        assert all(0 < size < 2_000 for size in one), one
        await lithos.call("lithos_delete", id=kept, agent="ann")
        assert [cache._left for cache in caches] == room


async def test_note_is_not_cached_when_removed_during_a_briefing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = Splits.split

    def remove_first(splits: Splits, *given: Any) -> Any:
        trio.from_thread.run(remove)
        return split(splits, *given)

    async with serving(tmp_path) as lithos:
        note_id = await lithos.create("Zebra", TEXT)

        async def remove() -> None:
            await lithos.call("lithos_delete", id=note_id, agent="ann")

        monkeypatch.setattr(Splits, "split", remove_first)
        await lithos.call("lithos_context", query="striped zebra")
        catalogue = lithos.server.get(Catalogue)
        owners = [forget.__self__ for forget in catalogue.when_removed]  # type: ignore[attr-defined]
        (splits,) = [owner for owner in owners if isinstance(owner, Splits)]
        assert not splits._kept
