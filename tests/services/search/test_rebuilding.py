"""Search indexes that are missing, foreign or damaged are made anew from the notes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lithos.config.sections import IndexConfig
from tests.servers import Lithos, serving


async def check(lithos: Lithos) -> None:
    """Both indexes find both notes."""
    for mode in ("fulltext", "semantic", "hybrid"):
        assert set(await lithos.found("zebra", mode=mode)) == {"Zebra one", "Zebra two"}
    stats = await lithos.call("lithos_stats")
    assert (stats["documents"], stats["tantivy_doc_count"], stats["chunks"]) == (2, 2, 2)
    assert not stats["index_drift_detected"]


async def write_two(data: Path) -> None:
    async with serving(data) as lithos:
        await lithos.create("Zebra one", "striped")
        await lithos.create("Zebra two", "striped")


def was_rebuilt(lithos: Lithos) -> bool:
    rebuilt: bool = lithos.server.fulltext_indexer.index.index.was_rebuilt
    return rebuilt


@pytest.mark.parametrize("marker", [None, "L0", ""])
async def test_another_format_marker_rebuilds(tmp_path: Path, marker: str | None) -> None:
    """behaviour 64"""
    await write_two(tmp_path)
    file = tmp_path / ".tantivy" / ".schema_version"
    if marker is None:
        file.unlink()
    else:
        file.write_text(marker)
    async with serving(tmp_path) as lithos:
        assert was_rebuilt(lithos)
        await check(lithos)
        assert lithos.events() == []
    async with serving(tmp_path) as lithos:
        assert not was_rebuilt(lithos)
        await check(lithos)


async def test_a_damaged_full_text_index_is_made_anew(tmp_path: Path) -> None:
    """behaviour 65"""
    await write_two(tmp_path)
    for file in (tmp_path / ".tantivy").iterdir():
        if file.name != ".schema_version":
            file.write_bytes(b"damage")
    async with serving(tmp_path) as lithos:
        assert was_rebuilt(lithos)
        await check(lithos)


async def test_a_damaged_vector_store_is_set_aside(tmp_path: Path) -> None:
    """behaviour 65"""
    await write_two(tmp_path)
    store = tmp_path / ".usearch"
    damaged = max(store.glob("*"), key=lambda file: file.stat().st_size)
    damaged.write_bytes(b"damage")
    async with serving(tmp_path) as lithos:
        await check(lithos)
    aside = [path for path in tmp_path.rglob("*.corrupt-*") if path.is_file() or any(path.iterdir())]
    assert aside
    kept = [
        path for root in aside for path in ([root] if root.is_file() else root.rglob("*")) if path.is_file()
    ]
    assert b"damage" in [path.read_bytes() for path in kept]


@pytest.mark.parametrize(
    "names", [[".tantivy"], [".usearch"], [".tantivy", ".usearch", ".lithos/manifest.db"]]
)
async def test_rebuildable_folders_may_be_deleted(tmp_path: Path, names: list[str]) -> None:
    """behaviour 64"""
    await write_two(tmp_path)
    for name in names:
        path = tmp_path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    async with serving(tmp_path) as lithos:
        await check(lithos)
        assert lithos.events() == []


async def test_a_rebuild_can_be_asked_for(tmp_path: Path) -> None:
    """behaviour 64"""
    await write_two(tmp_path)
    async with serving(tmp_path, index=IndexConfig(rebuild_on_start=True)) as lithos:
        assert was_rebuilt(lithos)
        await check(lithos)
