"""Rebuilding of missing, foreign or damaged search indexes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.events import REINDEX_COMPLETE
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.settings import IndexConfig
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.settings import SearchConfig
from tests.servers import Lithos, serving


async def check(lithos: Lithos) -> None:
    """Check that both indexes find both notes without any warning."""
    for mode in ("fulltext", "semantic", "hybrid"):
        assert set(await lithos.found("zebra", mode=mode)) == {"Zebra one", "Zebra two"}
    stats = await lithos.call("lithos_stats")
    assert (stats["documents"], stats["tantivy_doc_count"], stats["chunks"]) == (2, 2, 2)
    assert not stats["index_drift_detected"]
    assert lithos.events() == []


@pytest.fixture(scope="module")
def two_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data directory with two notes, for copying."""
    data = tmp_path_factory.mktemp("two")

    async def write() -> None:
        async with serving(data) as lithos:
            await lithos.create("Zebra one", "striped")
            await lithos.create("Zebra two", "striped")

    trio.run(write)
    return data


@pytest.fixture
def data(two_notes: Path, tmp_path: Path) -> Path:
    return shutil.copytree(two_notes, tmp_path / "data")


def was_rebuilt(lithos: Lithos) -> bool:
    rebuilt: bool = lithos.server.get(FulltextIndexer).index.index.was_rebuilt
    return rebuilt


def mark(data: Path, marker: str | None) -> None:
    file = data / ".tantivy" / ".schema_version"
    file.unlink() if marker is None else file.write_text(marker)


def damage(data: Path) -> None:
    for file in (data / ".tantivy").iterdir():
        if file.name != ".schema_version":
            file.write_bytes(b"damage")


def remove(data: Path, *names: str) -> None:
    for path in (data / name for name in names):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


#: Kinds of damage. The flag states whether the damage makes the server rebuild the full-text index.
ACCIDENTS: dict[str, tuple[Callable[[Path], None], bool]] = {
    "no marker": (lambda data: mark(data, None), True),
    "another marker": (lambda data: mark(data, "L0"), True),
    "an empty marker": (lambda data: mark(data, ""), True),
    "damage": (damage, True),
    "no full text": (lambda data: remove(data, ".tantivy"), False),
    "no vectors": (lambda data: remove(data, ".usearch"), False),
    "nothing": (lambda data: remove(data, ".tantivy", ".usearch", ".lithos/manifest.db"), False),
}


@pytest.mark.parametrize("accident", ACCIDENTS)
async def test_missing_foreign_or_damaged_index_is_rebuilt(data: Path, accident: str) -> None:
    """behaviours 64, 65"""
    happen, rebuilds = ACCIDENTS[accident]
    happen(data)
    async with serving(data) as lithos:
        assert was_rebuilt(lithos) or not rebuilds
        await check(lithos)
    if accident == "another marker":
        async with serving(data) as lithos:
            assert not was_rebuilt(lithos)
            await check(lithos)


async def test_damaged_vector_store_is_set_aside(data: Path) -> None:
    """behaviour 65"""
    damaged = max((data / ".usearch").glob("*"), key=lambda file: file.stat().st_size)
    damaged.write_bytes(b"damage")
    async with serving(data) as lithos:
        await check(lithos)
    aside = [path for found in data.rglob("*.corrupt-*") for path in (found, *found.rglob("*"))]
    assert b"damage" in [path.read_bytes() for path in aside if path.is_file()]


async def test_rebuild_can_be_requested_by_a_setting(data: Path) -> None:
    """behaviour 64"""
    async with serving(data, index=IndexConfig(rebuild_on_start=True)) as lithos:
        assert was_rebuilt(lithos)
        await check(lithos)


async def test_rebuild_is_journalled_when_every_note_is_searchable(data: Path) -> None:
    """Behaviour 405."""
    async with serving(data, index=IndexConfig(rebuild_on_start=True)) as lithos:
        await lithos.server.complete_reindex()
        await lithos.server.complete_reindex()
        drafts = [each.draft for each in lithos.server.get(Coordinator)._store.events_after(0)]
        (payload,) = [each.payload for each in drafts if each.type == REINDEX_COMPLETE]
        assert payload["documents"] == len(lithos.server.get(Catalogue)) > 0
        assert payload["chunks"] >= payload["documents"]


async def test_changed_language_of_all_notes_rebuilds_the_fulltext_index(data: Path) -> None:
    """Behaviour 319: `search.language`. The same language at the next start keeps the index."""
    async with serving(data, search=SearchConfig(language="german")) as lithos:
        assert was_rebuilt(lithos)
        await lithos.create("Post", "Katzen")
        assert await lithos.found("Katze", mode="fulltext") == ["Post"]
    async with serving(data, search=SearchConfig(language="german")) as lithos:
        assert not was_rebuilt(lithos)
    async with serving(data) as lithos:
        assert was_rebuilt(lithos)
        assert await lithos.found("Katze", mode="fulltext") == []
