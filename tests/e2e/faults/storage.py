"""Storage that refuses writes. Calls report the failure, and the server recovers when storage works again."""

from __future__ import annotations

import errno
import os
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import trio

from tests.e2e.clients import WireClient
from tests.e2e.faults import Outcome
from tests.e2e.faults.journal import count_notes, read_journal
from tests.e2e.process import Lithos as Process
from tests.e2e.process import running_lithos

#: Maximum file size in bytes for the limited process. One byte is too small for every write.
SMALL = 1
PATIENCE = 60.0


def _expect_words(answer: dict[str, Any], code: int) -> None:
    assert (answer["status"], answer["code"]) == ("error", "internal_error"), answer
    # SQLite reports this error with only one message
    assert os.strerror(code) in answer["message"] or "history.db does not answer" in answer["message"], answer
    assert len(answer["message"].split(". ")) > 1, f"what to do next is missing: {answer}"


async def limits_are_reached(folder: Path) -> Outcome:
    """Let a running server write no byte, and later open no file. Then remove both limits."""
    data = folder / "data"
    with running_lithos(data) as server:
        async with WireClient.open(server.address) as client:
            kept = [(await _write(client, number))["path"] for number in range(20)]
            # Indexes process notes in batches. Wait until they contain the notes that the test searches for
            # below.
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
    # The limit permits only the standard streams, so the server cannot open another file.
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
