"""Vault with files of other programs. It is served, searched, changed in one note, and stopped."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import call, connected
from tests.e2e.process import running_lithos
from tests.e2e.vault import COMMENTED, MTIME_NS, NOTES, make_vault, snapshot

QUERIES = {
    "fulltext": [("leader election", "Raft.md"), ("cafe", "notes/Café culture.md"), ("東京", "日本/東京.md")],
    "semantic": [("replicated log consensus leader", "Raft.md")],
    "hybrid": [
        ("quokka", "notes/bom.md"),
        ("zanzibar", "notes/windows.md"),
        ("canal", "journal/2026-01-05.md"),
    ],
}


async def use_everything(transport: str, url: str, data: Path) -> None:
    """List tools, write a note, search in three modes, and read the note."""
    async with connected(transport, url=url, data=data) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"lithos_write", "lithos_read", "lithos_search", "lithos_restore"} <= listed
        content = f"Written by the {transport} client about the aardvark."
        written = await call(
            client, "lithos_write", title=f"Aardvark {transport}", content=content, agent="a", path="agents"
        )
        assert written["status"] == "created"
        for mode, expectations in QUERIES.items():
            for query, path in expectations:
                answer = await call(client, "lithos_search", query=query, mode=mode)
                assert path in [row["path"] for row in answer["results"]], (mode, query, answer)
        answer = await call(client, "lithos_search", query="aardvark", mode="fulltext")
        assert written["id"] in [row["id"] for row in answer["results"]]
        read = await call(client, "lithos_read", id=written["id"])
        assert content in read["content"]
        with trio.fail_after(60):  # until then, the first index may be incomplete
            while (stats := await call(client, "lithos_stats"))["index_drift_detected"]:
                await trio.sleep(0.05)
        assert stats["documents"] >= NOTES


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["mcp", "sse", "stdio"])
async def test_served_vault_keeps_all_foreign_bytes_and_modification_times(
    transport: str, tmp_path: Path
) -> None:
    """behaviours 176, 180, 181, 195, 204"""
    data = tmp_path / "data"
    folder = make_vault(data)
    before = snapshot(folder)
    if transport == "stdio":
        await use_everything(transport, "", data)
        log = data.with_name("data.stdio-stderr").read_text()
    else:
        with running_lithos(data) as server:
            await use_everything(transport, server.url, data)
            assert server.stop() == 0
            log = server.log()
    after = snapshot(folder)
    new = set(after) - set(before)
    assert new == {f"agents/aardvark-{transport}.md"}
    assert {path: after[path] for path in before} == before
    assert "Traceback" not in log
    assert '"exception"' not in log


@pytest.mark.slow
async def test_tool_update_changes_only_the_intended_parts_of_a_file(tmp_path: Path) -> None:
    """behaviours 10, 175, 176"""
    data = tmp_path / "data"
    folder = make_vault(data)
    before = snapshot(folder)
    with running_lithos(data) as server:
        async with connected("mcp", url=server.url) as client:
            for path, tags in (
                ("Reading list.md", ["reading", "now"]),
                ("notes/windows.md", ["crlf", "old"]),
            ):
                note = await call(client, "lithos_read", path=path)
                answer = await call(
                    client,
                    "lithos_write",
                    id=note["id"],
                    title=note["title"],
                    content=note["content"],
                    agent="editor",
                    tags=tags,
                )
                assert answer["status"] == "updated"
    after = snapshot(folder)
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {"Reading list.md", "notes/windows.md"}
    assert all(after[path][1] == MTIME_NS for path in before if path not in changed)
    assert removed_lines(COMMENTED, after["Reading list.md"][0]) == [b"  - someday\n"]
    assert removed_lines(before["notes/windows.md"][0], after["notes/windows.md"][0]) == [b"tags: [crlf]\r\n"]
    assert after["notes/windows.md"][0].count(b"\n") == after["notes/windows.md"][0].count(b"\r\n")
    for kept in (b"# kept by hand", b"   # shown in the sidebar", b"rating: 007", b"{a: 1,   b: [x,y]}"):
        assert kept in after["Reading list.md"][0]
    assert b"color: '#ff0000'" in after["notes/windows.md"][0]


def removed_lines(old: bytes, new: bytes) -> list[bytes]:
    """Return the lines of `old` that a line diff reports as missing in `new`."""
    before, after = old.splitlines(True), new.splitlines(True)
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [line for kind, start, end, _, _ in changes if kind != "equal" for line in before[start:end]]
