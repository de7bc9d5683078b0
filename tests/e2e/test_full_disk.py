"""A disk that fills up during writes, and has space again later."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import running_lithos

SIZE = 24 * 1024 * 1024


@contextmanager
def small_tmpfs(folder: Path) -> Iterator[tuple[Path | None, str]]:
    """A small file system for the block, or None and the reason why there is none."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
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
    """Take all the space that is left."""
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


@pytest.mark.slow
async def test_a_full_disk_refuses_writes_loses_nothing_and_heals_without_restart(small_disk: Path) -> None:
    """behaviours 1, 193"""
    await fill_and_heal(small_disk)


async def fill_and_heal(small_disk: Path) -> tuple[int, int]:
    """Fill the disk under writes, free it, verify; how many writes were acknowledged and refused."""
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
