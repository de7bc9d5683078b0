"""Resources over HTTP in all protocol versions (behaviours 204, 205)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from lithos.server.mcp import resource_pages as paging
from tests.server.whole import HANDSHAKE, MODERN, VERSIONS, Whole, whole_server
from tests.servers import MISSING_ID, Clock, put_note


async def listed(whole: Whole, version: str = MODERN, cursor: str | None = None) -> tuple[list[str], Any]:
    """Return the names on one page, and the cursor for the next page."""
    page = await whole.result(version, "resources/list", **({} if cursor is None else {"cursor": cursor}))
    return [row["name"] for row in page["resources"]], page.get("nextCursor")


async def read(whole: Whole, uri: str, version: str = MODERN) -> dict[str, Any]:
    (content,) = (await whole.result(version, "resources/read", uri=uri))["contents"]
    assert content["uri"] == uri
    return dict(content)


async def test_resources_for_notes_tasks_and_tags_are_listed_and_read(tmp_path: Path) -> None:
    """behaviours 204, 205"""
    async with whole_server(tmp_path, clock=Clock()) as whole:
        note = await whole.lithos.create("A note", "Körper", tags=["b", "a"])
        task = (await whole.lithos.call("lithos_task_create", title="A task", agent="ann"))["task_id"]
        stored = (whole.lithos.knowledge / "a-note.md").read_bytes()
        for version in VERSIONS:
            rows = (await whole.result(version, "resources/list"))["resources"]
            assert [(row["uri"], row["mimeType"]) for row in rows] == [
                ("lithos://tags", "application/json"),
                (f"lithos://note/{note}", "text/markdown"),
                (f"lithos://task/{task}", "application/json"),
            ]
            content = await read(whole, f"lithos://note/{note}", version)
            assert (content["mimeType"], content["text"].encode()) == ("text/markdown", stored)
            assert rows[1]["size"] == len(stored)
            tags = await read(whole, "lithos://tags", version)
            assert tags["text"] == '{"tags":{"a":1,"b":1}}'
            sheet = await read(whole, f"lithos://task/{task}", version)
            assert sheet["mimeType"] == "application/json"
            assert json.loads(sheet["text"])["task"]["title"] == "A task"
        assert await whole.lithos.audit() == [("unknown", note, "read")] * len(VERSIONS)


async def test_resource_templates_cache_times_and_errors_are_correct(tmp_path: Path) -> None:
    """behaviours 204, 205"""
    keeping = (
        ("resources/list", {}, (0, "private")),
        ("resources/read", {"uri": "lithos://tags"}, (0, "private")),
        ("resources/templates/list", {}, (3_600_000, "public")),
        ("prompts/list", {}, (3_600_000, "public")),
        ("tools/list", {}, (3_600_000, "public")),
    )
    unknown = (f"lithos://note/{MISSING_ID}", "lithos://task/t", "lithos://nothing", "file:///etc/passwd")
    forged = base64.b64encode(b'["note","x","y"]').decode()
    async with whole_server(tmp_path) as whole:
        for version in VERSIONS:
            found = await whole.result(version, "resources/templates/list")
            uris = [row["uriTemplate"] for row in found["resourceTemplates"]]
            assert uris == ["lithos://note/{id}", "lithos://task/{id}"]
            for uri in unknown:
                error = await whole.error(version, "resources/read", uri=uri)
                assert error["code"] == (-32602 if version == MODERN else -32002)
                assert error["data"] == {"uri": uri}
                assert "lithos" in error["message"]
        for method, params, keeps in keeping:
            answer = await whole.result(MODERN, method, **params)
            assert (answer["ttlMs"], answer["cacheScope"]) == keeps, method
            assert answer["resultType"] == "complete"
            assert "ttlMs" not in await whole.result("2025-06-18", method, **params)
        for version in (HANDSHAKE[0], MODERN):
            for cursor in ("", "x", "AAAA", forged, "é"):
                error = await whole.error(version, "resources/list", cursor=cursor)
                assert error["code"] == -32602
                assert "List again" in error["message"]
        assert await whole.lithos.audit() == []


async def test_task_resource_has_all_details(tmp_path: Path) -> None:
    """behaviour 205"""
    clock = Clock()
    async with whole_server(tmp_path, clock=clock) as whole:
        call = whole.lithos.call
        before = (await call("lithos_task_create", title="Before", agent="ann"))["task_id"]
        task = (await call("lithos_task_create", title="Then", agent="ann", depends_on=[before]))["task_id"]
        claim = await call("lithos_task_claim", task_id=task, aspect="all", agent="bob")
        found = await call("lithos_finding_post", task_id=task, agent="bob", summary="Done: x")
        sheet = json.loads((await read(whole, f"lithos://task/{task}"))["text"])
        assert list(sheet) == ["task", "claims", "findings", "blockers"]
        assert sheet["task"] == (await call("lithos_task_get", task_id=task))["task"]
        expected = {
            "agent": "bob",
            "aspect": "all",
            "expires_at": claim["expires_at"],
            "fence": claim["fence"],
        }
        assert sheet["claims"] == [expected]
        assert [finding["id"] for finding in sheet["findings"]] == [found["finding_id"]]
        blocked = (await call("lithos_task_blocked"))["tasks"]
        assert sheet["blockers"] == blocked[0]["blockers"]
        assert sheet["blockers"][0]["task_id"] == before
        await call("lithos_task_cancel", task_id=task, agent="bob")
        sheet = json.loads((await read(whole, f"lithos://task/{task}"))["text"])
        assert (sheet["task"]["status"], sheet["claims"], sheet["blockers"]) == ("cancelled", [], [])


async def test_files_are_served_byte_for_byte_under_any_id(tmp_path: Path) -> None:
    """behaviour 205: unusual ids survive. The text equals the file even if the metadata is unreadable."""
    odd = "ü /%2F?#100%"
    head = f'---\r\nlithos_id: "{odd}"\r\ntitle: Odd # comment\r\nstatus: archived\r\n---\r\n'
    file = put_note(tmp_path, "odd.md", f"\ufeff{head}# Odd\r\n\r\nBody \U0001f600")
    async with whole_server(tmp_path) as whole:
        page = await whole.result(MODERN, "resources/list")
        (uri,) = [row["uri"] for row in page["resources"] if row["name"] == "Odd"]
        assert uri.isascii()
        assert (await read(whole, uri))["text"].encode() == file.read_bytes()
        assert [note for _, note, _ in await whole.lithos.audit()] == [odd]
        file.write_bytes(b"\xff\xfe no text any more")
        assert base64.b64decode((await read(whole, uri))["blob"]) == file.read_bytes()
        file.unlink()
        error = await whole.error(MODERN, "resources/read", uri=uri)
        assert "missing" in error["message"]


async def test_next_page_continues_after_the_previous_page_despite_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 205"""
    monkeypatch.setattr(paging, "PAGE", 3)
    clock = Clock()
    async with whole_server(tmp_path, clock=clock) as whole:
        notes, tasks = [], []
        for n in range(4):
            notes.append(await whole.lithos.create(f"note {n}"))
            answer = await whole.lithos.call("lithos_task_create", title=f"task {n}", agent="ann")
            tasks.append(answer["task_id"])
            clock.advance(seconds=n // 2)  # several notes get the same time
        everything, cursor = [], None
        while True:
            names, cursor = await listed(whole, cursor=cursor)
            everything += names
            if cursor is None:
                break
            assert len(names) == 3
        assert sorted(everything) == sorted(
            ["tags", *(f"{k} {n}" for k in ("note", "task") for n in range(4))]
        )
        assert [name[:4] for name in everything] == ["tags"] + ["note"] * 4 + ["task"] * 4
        assert everything[1] == "note 3"
        assert everything[5] == "task 3"

        first, cursor = await listed(whole)
        last, other = (int(name[-1]) for name in (first[-1], everything[3]))
        await whole.lithos.create("newer")
        await whole.lithos.call("lithos_delete", id=notes[last], agent="ann")
        await whole.lithos.write(f"note {other}", id=notes[other])
        await whole.lithos.call("lithos_task_complete", task_id=tasks[3], agent="ann")
        rest: list[str] = []
        while cursor is not None:
            names, cursor = await listed(whole, cursor=cursor)
            rest += names
        assert not set(first) & set(rest)
        assert set(rest) == set(everything) - set(first) - {"task 3"}
