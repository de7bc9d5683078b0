"""Disk without free space or inodes during writes, which has free space again later."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import running_lithos

SIZE = 24 * 1024 * 1024


@contextmanager
def small_tmpfs(folder: Path, inodes: int = 0) -> Iterator[tuple[Path | None, str]]:
    """Yield a small file system, or None and the reason. If `inodes` is 0, inodes are not limited."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},nr_inodes={inodes}", "tmpfs", str(folder)]
    if os.geteuid() != 0:
        yield None, "mounting a small tmpfs needs root"
        return
    done = subprocess.run(mount, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        yield None, f"a small tmpfs cannot be mounted here: {done.stderr.strip()}"
        return
    try:
        yield folder, ""
    finally:
        subprocess.run(["umount", str(folder)], timeout=60, check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_tmpfs(tmp_path / "disk") as (folder, reason):
        if folder is None:
            pytest.skip(reason)
        yield folder


def fill(ballast: Path) -> None:
    """Use up all remaining space."""
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


@pytest.mark.slow
async def test_server_refuses_writes_on_a_full_disk_and_recovers(small_disk: Path) -> None:
    """behaviours 1, 193"""
    await fill_and_heal(small_disk)


async def fill_and_heal(small_disk: Path) -> tuple[int, int]:
    """Fill the disk during writes. Then free the space and check the data.

    Return the numbers of confirmed and refused writes.
    """
    data, ballast = small_disk / "data", small_disk / "ballast"
    acknowledged: dict[str, str] = {}
    refusals: list[dict[str, object]] = []

    async def write(agent: int, numbers: range) -> None:
        async with WireClient.open(server.address) as client:
            for number in numbers:
                text = f"disk{agent}x{number} " + "filler " * 300
                answer = await client.call(
                    "lithos_write", title=f"Note {agent} {number}", content=text, agent=f"a{agent}"
                )
                if answer["status"] == "created":
                    acknowledged[answer["path"]] = text.strip()
                else:
                    refusals.append(answer)
                if agent == 0 and number == 10:
                    await trio.to_thread.run_sync(fill, ballast)

    with running_lithos(data, stderr=small_disk.with_name("stderr")) as server:
        async with trio.open_nursery() as nursery:
            for agent in range(8):
                nursery.start_soon(write, agent, range(25))
        assert refusals
        assert {answer["code"] for answer in refusals} == {"internal_error"}
        assert all(
            "disk" in str(answer["message"]) or "space" in str(answer["message"]) for answer in refusals
        )
        assert not list((data / "knowledge").glob(".lithos-*"))
        ballast.unlink()
        refused = len(refusals)
        async with trio.open_nursery() as nursery:
            for agent in range(8):
                nursery.start_soon(write, agent, range(100, 110))
        assert len(refusals) == refused
        async with WireClient.open(server.address) as client:
            await client.settled_stats(within=30)
            for path, text in acknowledged.items():
                token = text.split()[0]
                found = await client.call("lithos_search", query=token, mode="fulltext")
                assert path in [row["path"] for row in found["results"]], path
                assert (await client.call("lithos_read", path=path))["content"] == text
            stats = await client.call("lithos_stats")
            assert stats["documents"] >= len(acknowledged)
        assert server.stop() == 0
        assert "Traceback" not in server.log()
    for path, text in acknowledged.items():
        assert text in (data / "knowledge" / path).read_text()
    with running_lithos(data, stderr=small_disk.with_name("stderr")) as server:
        async with WireClient.open(server.address) as client:
            for path, text in acknowledged.items():
                assert (await client.call("lithos_read", path=path))["content"] == text
    return len(acknowledged), len(refusals)


class InodesGone:
    """Filler files that use up all remaining inodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def take(self) -> None:
        with suppress(OSError):
            for number in range(100_000):
                (self.folder / str(number)).touch()

    def free(self) -> None:
        for each in self.folder.iterdir():
            each.unlink()


class SpaceGone:
    """Filler file that uses up all remaining blocks."""

    def __init__(self, folder: Path) -> None:
        self.file = folder

    def take(self) -> None:
        fill(self.file)

    def free(self) -> None:
        self.file.unlink()


PROPOSING = """
agents:
  junior: {propose: ["**"]}
"""


@pytest.mark.slow
@pytest.mark.deadline(300)
@pytest.mark.parametrize("gone", [InodesGone, SpaceGone])
async def test_changes_are_refused_without_inodes_or_space_and_work_later(
    tmp_path: Path, gone: type[InodesGone | SpaceGone]
) -> None:
    """Behaviour 411: covers writes, moves, restores and proposals.

    Each refusal names its cause, and no data is lost.
    """
    with small_tmpfs(tmp_path / "disk", inodes=400) as (disk, reason):
        if disk is None:
            pytest.skip(reason)
        data, ballast = disk / "data", gone(disk / "ballast")
        data.mkdir()
        (data / "config.yaml").write_text(PROPOSING)
        with running_lithos(data, stderr=tmp_path / "stderr") as server:
            async with WireClient.open(server.address) as client:
                await change_without(client, ballast)
                before = await everything(client)
            assert server.stop() == 0
        assert "Traceback" not in (tmp_path / "stderr").read_text()
        assert not list(data.rglob(".lithos-*"))
        with running_lithos(data, stderr=tmp_path / "stderr") as server:
            async with WireClient.open(server.address) as client:
                assert await everything(client) == before


async def change_without(client: WireClient, ballast: InodesGone | SpaceGone) -> None:
    """Make every kind of change before, during and after the disk is full."""
    filler = "filler " * 600
    notes = []
    for number in range(4):
        made = await client.call("lithos_write", title=f"N{number}", content=f"one {filler}", agent="a")
        notes.append(made["id"])
    for note in notes:
        await client.call("lithos_note_edit", id=note, op="append", text="two", agent="a")
    calls: dict[str, dict[str, Any]] = {
        "create": {"tool": "lithos_write", "title": "New", "content": filler, "agent": "a"},
        "edit": {"tool": "lithos_note_edit", "id": notes[0], "op": "append", "text": filler, "agent": "a"},
        "move": {"tool": "lithos_note_move", "id": notes[1], "path": "deep/er", "agent": "a"},
        "restore": {"tool": "lithos_restore", "id": notes[2], "version": 1, "agent": "a"},
        "propose": {
            "tool": "lithos_note_edit", "id": notes[3], "op": "append", "text": filler, "agent": "junior",
        },
        "task": {"tool": "lithos_task_create", "title": "T", "description": filler, "agent": "a"},
    }  # fmt: skip
    before = await everything(client)
    await trio.to_thread.run_sync(ballast.take)
    refused, done = 0, set[str]()
    for _ in range(3):
        for name, arguments in calls.items():
            if name in done:  # this change was made, because the server's own clean-up freed space
                continue
            answer = await client.call(**arguments)
            if answer.get("status") == "error":
                refused += 1
                told = str(answer["message"])
                assert answer["code"] in ("internal_error", "update_failed", "storage_failed"), (name, answer)
                assert any(word in told for word in ("space", "disk")), (name, told)
            else:  # this change succeeded, because a database had free space inside
                done.add(name)
                before = await everything(client)
            assert await everything(client) == before, name
    assert refused, "there was room"
    await trio.to_thread.run_sync(ballast.free)
    for name, arguments in calls.items():
        if name in done:
            continue
        with trio.fail_after(60):
            while (answer := await client.call(**arguments)).get("status") == "error":
                assert answer["code"] not in ("doc_not_found", "invalid_input"), (name, answer)
                await trio.sleep(0.2)


async def everything(client: WireClient) -> dict[str, Any]:
    """Return the stored data: notes with their versions, proposals and tasks."""
    found: dict[str, Any] = {}
    for row in (await client.call("lithos_list", limit=100))["items"]:
        read = await client.call("lithos_read", id=row["id"])
        history = await client.call("lithos_history", id=row["id"])
        versions = [(each["version"], each["op"]) for each in history["versions"]]
        found[row["id"]] = (read["path"], read["content"], versions)
    proposals = await client.call("lithos_proposals")
    found["proposals"] = [each["id"] for each in proposals["proposals"]]
    found["tasks"] = [each["id"] for each in (await client.call("lithos_task_list"))["tasks"]]
    return found
