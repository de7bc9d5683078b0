"""Storage that refuses to write: the call says so, the server lives, and all is well once it writes again."""

from __future__ import annotations

import errno
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen

import lithos.actors.indexing.indexer
import lithos.actors.remembering.actor
from tests.e2e.clients import WireClient
from tests.e2e.faults import Outcome
from tests.e2e.faults.injection import (
    DATABASE_ERRORS,
    ERRORS,
    SITES,
    failing_calls,
    failing_indexes,
    faulty_disk,
)
from tests.e2e.faults.journal import count_notes, read_journal
from tests.e2e.process import Lithos as Process
from tests.e2e.process import running_lithos
from tests.servers import Lithos, serving

#: What `/health` tries after a refusal.
TRIED = ("open", "write", "fsync", "folder fsync")
#: Bytes that a file may have in a process whose files may not grow: enough for nothing that matters.
SMALL = 1
PATIENCE = 60.0


async def note_files_refuse(folder: Path) -> Outcome:
    """Every system call of a note change fails with every error, once."""
    tried = 0
    async with serving(folder / "data") as lithos:
        updated = await lithos.create("Updated", "first text")
        for code in ERRORS:
            for site in SITES:
                await _refuse_one(lithos, site, code, updated)
                tried += 1
        told = count_notes(read_journal(lithos.data))
        assert max(number for key, number in told.items() if key[0] != "note.updated") == 1, told
    return Outcome(
        f"{tried}: {', '.join(SITES)}, each with ENOSPC, EIO and EACCES",
        "internal_error with the reason, nothing changed and no file left behind (folder fsync: written, and "
        "the answer says so); /health degraded where its own trial fails too (not where a name is changed); "
        "the same call works afterwards, /health ok, one event for each change",
    )


async def _refuse_one(lithos: Lithos, site: str, code: int, updated: str) -> None:
    title = f"{site} {code}"
    gone = await lithos.create(f"Gone {title}") if site == "unlink" else ""
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "rename": ("lithos_write", {"id": updated, "title": "Updated", "content": title, "agent": "a"}),
        "exchange": ("lithos_write", {"id": updated, "title": "Updated", "content": title, "agent": "a"}),
        "unlink": ("lithos_delete", {"id": gone, "agent": "a"}),
    }
    tool, arguments = calls.get(site, ("lithos_write", {"title": title, "content": "text", "agent": "a"}))
    before, heard = lithos.files(), len(lithos.events())
    with failing_calls(site, code):
        answer = await lithos.call(tool, **arguments)
        _expect_words(answer, code)
        if site in TRIED:
            status, health = await lithos.server.state.report()
            assert (status, health["status"]) == (200, "degraded"), (site, health)
            assert os.strerror(code) in health["components"]["kb_directory"]["error"]
        with trio.fail_after(PATIENCE):  # an unconfirmed change is answered before it is indexed
            while (await lithos.call("lithos_stats"))["index_drift_detected"]:
                await trio.sleep(0.01)
    if site == "folder fsync":  # it is there, and the answer said so
        assert (answer["path"], answer["version"]) == (f"folder-fsync-{code}.md", 1)
    else:
        assert lithos.files() == before
        assert len(lithos.events()) == heard
        answer = await lithos.call(tool, **arguments)
        assert answer.get("status") != "error", answer
    with trio.fail_after(PATIENCE):
        while len(lithos.events()) == heard:
            await trio.sleep(0.01)
    assert len(lithos.events()) == heard + 1
    status, health = await lithos.server.state.report()
    assert (status, health["status"]) == (200, "ok"), health


def _expect_words(answer: dict[str, Any], code: int) -> None:
    assert (answer["status"], answer["code"]) == ("error", "internal_error"), answer
    # SQLite has one word for it.
    assert os.strerror(code) in answer["message"] or "history.db does not answer" in answer["message"], answer
    assert len(answer["message"].split(". ")) > 1, f"what to do next is missing: {answer}"


@frozen
class _Database:
    """A database, a call that writes to it, and the component of `/health` that tells, if any."""

    name: str
    tool: str
    arguments: dict[str, Any]
    component: str | None
    #: False: the call does without what it could not store.
    is_needed: bool = True


async def databases_refuse(folder: Path) -> Outcome:
    """Each database refuses writes and syncs; what does not need it goes on."""
    tried = 0
    with faulty_disk() as disk, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lithos.actors.remembering.actor, "RETRY_DELAY", 0.05)
        async with serving(folder / "data") as server:
            task = (await server.call("lithos_task_create", title="Shared", agent="a"))["task_id"]
            note = await server.create("Cited")
            for code, error in DATABASE_ERRORS.items():
                edge = {
                    "from_id": note,
                    "to_id": f"x{code}",
                    "type": "supports",
                    "weight": 1,
                    "namespace": "n",
                }
                asked = {"query": "cited", "task_id": task}
                title = {"title": f"T{code}", "agent": "a"}
                for database in (
                    _Database("coordination.db", "lithos_task_create", title, "events"),
                    _Database("edges.db", "lithos_edge_upsert", edge, "memory"),
                    _Database("stats.db", "lithos_retrieve", asked, "memory", False),
                    _Database("manifest.db", "", {}, None),
                ):  # fmt: skip
                    refused = disk.refused
                    with disk.refusing(database.name, error):
                        await _expect_refusal(server, database, code)
                        with trio.fail_after(PATIENCE):  # the manifest gathers rows for a moment
                            while disk.refused == refused:
                                await trio.sleep(0.01)
                    await _expect_recovery(server, database)
                    tried += 1
            told = Counter(event.type for event in read_journal(server.data))
            edges = (await server.call("lithos_edge_list", namespace="n"))["edges"]
            assert told["edge.upserted"] == len(edges) == len(DATABASE_ERRORS), told
            assert told["note.created"] == 1 + tried, "one event for each note that was written meanwhile"
    return Outcome(
        f"{tried}: coordination, edges, stats and manifest, each full, with I/O errors, read-only",
        "coordination and edges: internal_error with the reason; stats: a retrieval answers all the same; "
        "/health tells of all three and what to do, and is ok again without another call; notes are written "
        "meanwhile, their events follow, each once",
    )


async def _expect_refusal(lithos: Lithos, database: _Database, code: int) -> None:
    # Notes need none of them; the event of this one waits if it has to.
    note = await lithos.call("lithos_write", title=f"{database.name} {code}", content="meanwhile", agent="a")
    assert note["status"] == "created", (database.name, note)
    if not database.tool:
        return
    answer = await lithos.call(database.tool, **database.arguments)
    if database.is_needed:
        assert (answer.get("status"), answer.get("code")) == ("error", "internal_error"), (
            database.name,
            answer,
        )
        assert "injected" in answer["message"], answer
    else:
        assert answer["results"], answer
    status, health = await lithos.server.state.report()
    if database.component is not None:
        assert health["status"] == "degraded"
        assert "injected" in health["components"][database.component]["error"], health
    assert status == 200, health


async def _expect_recovery(lithos: Lithos, database: _Database) -> None:
    with trio.fail_after(PATIENCE):
        while (await lithos.server.state.report())[1]["status"] != "ok":
            await trio.sleep(0.05)
    if database.tool:
        answer = await lithos.call(database.tool, **database.arguments)
        assert answer.get("status") != "error", answer


async def indexes_refuse(folder: Path) -> Outcome:
    """Full text cannot be committed, then no index at all."""
    tried = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lithos.actors.indexing.indexer, "REPAIR_DELAY", 0.05)
        async with serving(folder / "data") as server:
            for code in ERRORS:
                for both in (False, True):
                    title = f"Index {code} {both}"
                    with failing_indexes(code, both=both):
                        answer = await server.call("lithos_write", title=title, content="zebra", agent="a")
                        assert answer["status"] == ("error" if both else "created"), answer
                        assert (await server.read(answer["id"]))["title"] == title
                        found = await server.call("lithos_search", query=title)
                        assert found.get("degraded") is True or found.get("code") == "search_backend_error", (
                            found
                        )
                        health = (await server.server.state.report())[1]
                        assert health["status"] == "degraded"
                        assert os.strerror(code) in health["components"]["search"]["error"]
                    await server.server.actors.fulltext_indexer.converged()
                    await server.server.actors.vector_indexer.converged()
                    with trio.fail_after(PATIENCE):
                        while (await server.server.state.report())[1]["status"] != "ok":
                            await trio.sleep(0.02)
                    for mode in ("fulltext", "semantic"):
                        assert title in await server.found(title, mode=mode, limit=50)
                    tried += 1
            told = count_notes(read_journal(server.data))
            assert set(told.values()) == {1}
            assert told.total() == tried
    return Outcome(
        f"{tried}: full text alone and with the vectors, each with ENOSPC, EIO and EACCES",
        "one index failing fails no write; both: the answer says that the note is stored; searches say "
        "that they are degraded; repaired by itself, one event for each note",
    )


async def limits_are_reached(folder: Path) -> Outcome:
    """A running server may write no byte more, then open no file more, and then may again."""
    data = folder / "data"
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            kept = [(await _write(client, number))["path"] for number in range(20)]
            # Indexes take notes some at a time: what is searched for below must be in one by now.
            assert (await client.call("lithos_search", query="limit19x", mode="fulltext"))["results"]
            refused = await _without_writing(server, client)
            await _until_healthy(server)
            starved = await _without_descriptors(server, client)
            await _until_healthy(server)
            kept += [(await _write(client, number))["path"] for number in range(100, 120)]
            for path in kept:
                assert (await client.call("lithos_read", path=path))["path"] == path
                token = path.removesuffix(".md").rpartition("-")[2]
                found = await client.call("lithos_search", query=f"limit{token}x", mode="fulltext")
                assert [row["path"] for row in found["results"]] == [path]
        assert server.stop() == 0
        assert "Traceback" not in server.log()
    told = count_notes(read_journal(data))
    assert told == Counter({("note.created", path): 1 for path in kept})
    return Outcome(
        f"{refused} writes while no file of the process may grow, {starved} while it may open none",
        "each refused with internal_error, /health degraded while nothing can be written; "
        "everything works once the limits are lifted",
    )


async def _write(client: WireClient, number: int) -> dict[str, Any]:
    return await client.call(
        "lithos_write", title=f"Limit {number}", content=f"About limit{number}x. " + "word " * 50, agent="a"
    )


async def _without_writing(server: Process, client: WireClient) -> int:
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (SMALL, hard))
    try:
        for number in range(50, 60):
            _expect_words(await _write(client, number), errno.EFBIG)
            answer = await client.call("lithos_task_create", title="No", agent="a")
            assert (answer["status"], answer["code"]) == ("error", "internal_error"), answer
        assert (await client.call("lithos_search", query="limit7x", mode="fulltext"))["results"]
        health = (await trio.to_thread.run_sync(server.health))[1]
        assert {health["kb_directory"]["status"], health["events"]["status"]} == {"degraded"}, health
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    return 20


async def _without_descriptors(server: Process, client: WireClient) -> int:
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    # Below the limit are only the standard streams: whatever is closed meanwhile, nothing can be opened.
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, hard))
    try:
        for number in range(60, 70):
            _expect_words(await _write(client, number), errno.EMFILE)
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    return 10


async def _until_healthy(server: Process) -> None:
    with trio.fail_after(PATIENCE):
        while (told := await trio.to_thread.run_sync(server.health))[0] != 200 or any(
            part["status"] != "ok" for part in told[1].values()
        ):
            await trio.sleep(0.1)
