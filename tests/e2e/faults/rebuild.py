"""Comparison of indexes that survived failures with indexes that are rebuilt from the same files."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from tests.e2e.clients import WireClient
from tests.e2e.process import Lithos, running_lithos

COUNTS = (
    "documents",
    "chunks",
    "tags",
    "duplicate_urls",
    "index_drift_detected",
    "tantivy_doc_count",
    "unresolved_links",
    "graph_node_count",
    "graph_edge_count",
)
ASKERS = 8


@frozen
class Picture:
    """A snapshot of all answers of search, lists and graph."""

    counts: dict[str, Any]
    notes: dict[str, tuple[Any, ...]]
    links: dict[str, tuple[list[str], list[str]]]
    found: dict[str, list[str]]


async def take_picture(server: Lithos, tokens: Iterable[str]) -> Picture:
    """Query everything on the server. `tokens` are the words for full-text search."""
    links: dict[str, tuple[list[str], list[str]]] = {}
    found: dict[str, list[str]] = {}
    async with WireClient.open(server.address) as client:
        # Semantic search waits until every note is embedded.
        await client.call("lithos_search", query="anything", mode="semantic")
        stats = await client.settled_stats()
        items = (await client.call("lithos_list", limit=1_000_000))["items"]
    notes = {item["id"]: (item["path"], item["title"], item["version"], item["tags"]) for item in items}

    async def ask(ids: list[str], words: list[str]) -> None:
        async with WireClient.open(server.address) as client:
            for note in ids:
                said = (await client.call("lithos_related", id=note, include=["links"]))["links"]
                links[note] = (
                    sorted(one["id"] for one in said["outgoing"]),
                    sorted(one["id"] for one in said["incoming"]),
                )
            for word in words:
                answer = await client.call("lithos_search", query=word, mode="fulltext")
                found[word] = sorted(row["id"] for row in answer["results"])

    ids, words = list(notes), list(tokens)
    async with trio.open_nursery() as nursery:
        for number in range(ASKERS):
            nursery.start_soon(ask, ids[number::ASKERS], words[number::ASKERS])
    return Picture({name: stats[name] for name in COUNTS}, notes, links, found)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database consistently, even while it is written."""
    target.parent.mkdir(parents=True)
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copied:
        live.backup(copied)


async def compare_with_fresh(server: Lithos, data: Path, tokens: Iterable[str], copy: Path) -> Picture:
    """Serve a copy without rebuildable data and compare the answers. No data may change meanwhile.

    `coordination.db` is copied. It contains versions of external edits, and ids of files without an id.
    """
    words = list(tokens)
    lived = await take_picture(server, words)
    shutil.copytree(data / "knowledge", copy / "knowledge", symlinks=True)
    _copy_database(data / ".lithos" / "coordination.db", copy / ".lithos" / "coordination.db")
    with running_lithos(copy, "--no-watch") as fresh:
        made = await take_picture(fresh, words)
    shutil.rmtree(copy)
    assert lived.counts == made.counts
    assert lived.notes == made.notes
    assert lived.links == made.links
    assert lived.found == made.found
    return lived
