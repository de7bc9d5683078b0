"""Attachments: search, reading by place, and removal when the file is deleted.

docs/spec/attachments.md.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from lithos.attachments.extraction.actor import Attaching
from lithos.attachments.settings import AttachmentsConfig
from lithos.notes.settings import AgentsConfig
from tests.attachments.extraction.pdf_files import pdf
from tests.servers import Lithos, serving

#: Timeout of one test step in seconds. It is far above the expected duration.
PATIENCE = 20
NOTE = "# Lease\n\nThe contract: ![[lease.pdf]]\n\nThe floor plan of the office:\n\n![[plan.png]]\n"
DRAWING = {
    "type": "excalidraw",
    "elements": [{"id": "e1", "type": "text", "text": "Valve manifold of boiler four"}],
}


def fill(vault: Path) -> None:
    vault.mkdir()
    (vault / "Lease.md").write_text(NOTE)
    for number in range(12):
        (vault / f"Note {number}.md").write_text(f"# Note {number}\n\nAbout cooking dish number {number}.\n")
    texts = ["Parties", "Rent", "Costs", "Use", "Repairs", "Insurance", "The notice period is nine months"]
    (vault / "lease.pdf").write_bytes(pdf(*texts))
    card = {"id": "c1", "type": "text", "text": "Zebra migration planned for spring"}
    (vault / "board.canvas").write_text(json.dumps({"nodes": [card], "edges": []}))
    (vault / "boiler.excalidraw").write_text(json.dumps(DRAWING))
    (vault / "plan.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))


@asynccontextmanager
async def served(tmp_path: Path, **config: Any) -> AsyncIterator[tuple[Lithos, Path]]:
    vault = tmp_path / "vault"
    if not vault.exists():
        fill(vault)
    sections = {"storage": {"vault": vault}, "server": {"watch_files": True}} | config
    async with serving(tmp_path / "data", **sections) as lithos:
        with trio.fail_after(PATIENCE):
            await lithos.server.get(Attaching).caught_up()
        yield lithos, vault


async def until(lithos: Lithos, query: str, holds: Callable[[list[dict[str, Any]]], bool]) -> None:
    with trio.fail_after(PATIENCE):
        while True:
            found = await lithos.call("lithos_search", query=query, kinds=["attachment"])
            if holds(found["results"]):
                return
            await trio.sleep(0.02)


async def test_pages_cards_and_elements_are_found_and_read_by_place(tmp_path):
    """Behaviour 290."""
    async with served(tmp_path) as (lithos, _):
        for query, path, place in (
            ("notice period", "lease.pdf", "7"),
            ("zebra migration", "board.canvas", "c1"),
            ("valve manifold", "boiler.excalidraw", "e1"),
        ):
            first = (await lithos.call("lithos_search", query=query, kinds=["attachment"]))["results"][0]
            assert (first["kind"], first["path"], first["place"]) == ("attachment", path, place)
            mixed = (await lithos.call("lithos_search", query=query))["results"]
            assert first["id"] in {row["id"] for row in mixed}
            read = await lithos.call("lithos_read", path=path, place=place)
            assert query.split()[0] in read["content"].casefold()
        paper = (await lithos.call("lithos_search", query="notice period", kinds=["attachment"]))["results"][
            0
        ]
        assert paper["page"] == 7
        assert [note["title"] for note in paper["embedded_in"]] == ["Lease"]
        whole = await lithos.call("lithos_read", id=paper["id"])
        assert "[page 7]\nThe notice period" in whole["content"]


async def test_image_is_found_by_surrounding_text(tmp_path):
    async with served(tmp_path) as (lithos, _):
        found = await lithos.call("lithos_search", query="floor plan of the office", kinds=["attachment"])
        assert found["results"][0]["path"] == "plan.png"


async def test_deleted_file_disappears_and_changed_file_is_found(tmp_path):
    """Behaviour 290."""
    async with served(tmp_path) as (lithos, vault):
        (vault / "board.canvas").unlink()
        await until(
            lithos, "zebra migration", lambda rows: all(row["path"] != "board.canvas" for row in rows)
        )
        (vault / "lease.pdf").write_bytes(pdf("The deposit is four thousand"))
        await until(lithos, "deposit", lambda rows: bool(rows) and rows[0]["path"] == "lease.pdf")
        told = await lithos.call("lithos_list", kinds=["attachment"])
        assert [item["path"] for item in told["items"]] == ["boiler.excalidraw", "lease.pdf", "plan.png"]


async def test_vault_files_are_not_changed(tmp_path):
    """Behaviour 290: Lithos writes no additional files next to the attachments."""
    vault = tmp_path / "vault"
    fill(vault)
    before = {path: path.read_bytes() for path in vault.iterdir()}
    assert before
    async with served(tmp_path):
        pass
    assert {path: path.read_bytes() for path in vault.iterdir()} == before


async def test_extracted_text_is_reused_after_a_restart(tmp_path):
    async with served(tmp_path) as (lithos, _):
        numbers = {path: file.number for path, file in lithos.server.get(Attaching).files.items()}
        assert len(numbers) == 4
    async with served(tmp_path) as (lithos, _):
        files = lithos.server.get(Attaching).files
        assert {path: file.number for path, file in files.items()} == numbers
        found = await lithos.call("lithos_search", query="notice period", kinds=["attachment"])
        assert found["results"][0]["place"] == "7"


async def test_broken_file_reports_its_reason_and_is_not_retried(tmp_path):
    """Behaviour 291."""
    vault = tmp_path / "vault"
    fill(vault)
    (vault / "broken.pdf").write_bytes(b"\x89PNG no paper at all")
    async with served(tmp_path) as (lithos, _):
        attaching = lithos.server.get(Attaching)
        told = await lithos.call("lithos_list", kinds=["attachment"], path_prefix="broken")
        assert told["items"][0]["state"] == "failed"
        assert told["items"][0]["reason"]
        number = attaching.files["broken.pdf"].number
    async with served(tmp_path) as (lithos, _):
        assert lithos.server.get(Attaching).files["broken.pdf"].number == number


async def test_note_rows_are_the_same_with_and_without_attachments(tmp_path):
    """Behaviour 292."""
    answers: list[dict[str, Any]] = []
    for enabled in (False, True):
        async with served(tmp_path, attachments=AttachmentsConfig(enabled=enabled)) as (lithos, _):
            notes = {"kinds": ["note"]}
            answer = {
                query: await lithos.call("lithos_search", query=query, **notes)
                for query in ("notice period", "cooking dish", "floor plan", "zebra")
            }
            answer["list"] = await lithos.call("lithos_list")
            answer["tags"] = await lithos.call("lithos_tags")
            answer["stats"] = (await lithos.call("lithos_stats"))["documents"]
            answers.append(answer)
    assert answers[0]["cooking dish"]["results"]
    assert answers[0] == answers[1]


async def test_result_pages_contain_each_row_exactly_once(tmp_path):
    """docs/spec/attachments.md §2: attachments on the first page must not displace notes on the second."""
    async with served(tmp_path) as (lithos, _):
        for tool in ("lithos_search", "lithos_retrieve"):
            asked = {"query": "zebra migration dish number", "limit": 5}
            whole = (await lithos.call(tool, **asked | {"limit": 40}))["results"]
            seen: list[str] = []
            while rows := (await lithos.call(tool, **asked, offset=len(seen)))["results"]:
                seen += [row["id"] + row.get("place", "") for row in rows]
            assert any(each.startswith("att_") for each in seen)
            assert len(set(seen)) == len(seen) > 10
            notes = {row["id"] for row in whole if row.get("kind") != "attachment"}
            assert notes <= set(seen)


async def test_answer_reports_attachments_as_disabled(tmp_path):
    async with served(tmp_path, attachments=AttachmentsConfig(enabled=False)) as (lithos, _):
        found = await lithos.call("lithos_search", query="notice period", kinds=["attachment"])
        assert found["results"] == []
        assert "attachments.enabled" in found["message"]


async def test_unknown_attachment_kind_is_refused(tmp_path):
    async with served(tmp_path) as (lithos, _):
        refused = await lithos.call("lithos_search", query="x", kinds=["picture"])
        assert refused["code"] == "invalid_input"


def test_git_status_stays_clean_after_attachments_are_read(tmp_path):
    """Behaviour 290: the output of `git status` stays empty."""
    vault = tmp_path / "vault"
    fill(vault)

    def git(*words: str) -> str:
        given = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(vault), *words]
        return subprocess.run(given, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "vault")

    async def serve() -> None:
        async with served(tmp_path):
            pass

    trio.run(serve)
    assert git("status", "--porcelain") == ""


async def test_attachment_belongs_to_the_project_of_its_folder(tmp_path):
    """Behaviour 319: also after the configuration gives the folder another project."""
    fill(tmp_path / "vault")
    (tmp_path / "vault/work").mkdir()
    (tmp_path / "vault/work/rack.txt").write_text("Zebra rack wiring in the cellar.")
    for project in ("shop", "blog"):
        folders = AgentsConfig(projects={"work": project})
        async with served(tmp_path, projects=folders) as (lithos, _):
            for asked, paths in (
                (project, {"work/rack.txt"}),
                ("", {"board.canvas"}),
                ("other", set()),
                (None, {"work/rack.txt", "board.canvas"}),
            ):
                for mode in ("hybrid", "fulltext", "semantic"):
                    for kinds in (["attachment"], ["note", "attachment"]):
                        found = await lithos.call(
                            "lithos_search", query="zebra", mode=mode, kinds=kinds, project=asked, limit=50
                        )
                        zebras = {row["path"] for row in found["results"] if "ebra" in row["snippet"]}
                        assert zebras == paths, (mode, kinds, asked)
                listed = await lithos.call("lithos_list", kinds=["attachment"], project=asked)
                there = {item["path"] for item in listed["items"]}
                assert there & {"work/rack.txt", "board.canvas"} == paths
