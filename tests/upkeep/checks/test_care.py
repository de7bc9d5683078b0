"""`lithos care`. It changes nothing and opens each task only once (behaviour 288)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.events.journal.coordinator import Coordinator
from lithos.history.recording.backfill import CatchingUp
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.values.findings import CARE, checks_of
from lithos.kernel.values.principals import COMMAND
from lithos.search.commands_queries import care
from lithos.search.indexing.indexer import VectorIndexer
from lithos.server.command.session import CommandSession
from lithos.upkeep.settings import CareConfig
from tests.servers import Clock, Lithos, put_note, serving
from tests.text.words.test_similarity import ON_PUMPS, PUMP


def long(thing: str) -> str:
    """Return a text. It shares no two neighbouring words with the text about any other `thing`."""
    return " ".join(f"{thing}{number} {thing}{number * 7}." for number in range(1, 60))


def write_vault(data: Path) -> None:
    """Write one note without defects, and one note for each kind of defect."""
    old = "updated_at: 2025-01-01T00:00:00+00:00\ncreated_at: 2025-01-01T00:00:00+00:00\n"
    put_note(data, "hub.md", f"# Hub\n\n[[Pump]], [[On pumps]], [[stub]], [[Wind station]] {long('thing')}")
    put_note(data, "pump.md", f"# Pump\n\n{PUMP} See [[Hub]].")
    put_note(
        data, "pump-again.md", f"# The cellar pump\n\nSee [[Hub]]. {'. '.join(reversed(PUMP.split('. ')))}"
    )
    put_note(data, "on-pumps.md", f"# On pumps\n\n{ON_PUMPS} See [[Hub]].")
    put_note(data, "stub.md", "# Stub\n\nTo be written. See [[Hub]].")
    put_note(data, "wind.md", f"# Wind stations\n\n{long('mast')} See [[Hub]].")
    put_note(data, "alone.md", f"# Alone\n\n{long('chair')}")
    put_note(data, "old.md", f"---\ntitle: Old\n{old}---\n\n{long('lamp')} See [[Hub]].")
    put_note(data, "broken.md", f"---\ntitle: [\n---\n\n# Broken\n\n{long('door')} See [[Hub]].")
    put_note(
        data,
        "late.md",
        f"---\ntitle: Late\nexpires_at: 2026-01-01T00:00:00+00:00\n---\n\n{long('cup')} [[Hub]]",
    )
    put_note(
        data,
        "git.md",
        f"# Git\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n\n{long('key')} [[Hub]]",
    )


@asynccontextmanager
async def cared_for(data: Path, **more: Any) -> AsyncIterator[Lithos]:
    write_vault(data)
    clock = Clock("2026-03-04T08:00:00+00:00")
    async with serving(data, clock=clock, care=CareConfig(days=180), **more) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        yield lithos


async def command(lithos: Lithos, tool: str, **given: Any) -> dict[str, Any]:
    return dict(await lithos.server.tools.call(tool, given, COMMAND) or {})


def paths(answer: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Return the note paths of each row, by group."""
    found: dict[str, list[list[str]]] = {}
    for row in answer["rows"]:
        found.setdefault(row["group"], []).append(sorted(note["path"] for note in row["notes"]))
    return found


def bytes_of(lithos: Lithos) -> dict[str, bytes]:
    return {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()}


async def test_care_finds_each_defect_and_changes_nothing(tmp_path: Path) -> None:
    """behaviour 288"""
    async with cared_for(tmp_path) as lithos:
        before, head = bytes_of(lithos), lithos.server.get(Coordinator).head
        answer = await command(lithos, "lithos_care")
        assert paths(answer) == {
            "broken": [["broken.md"]],
            "conflict_markers": [["git.md"]],
            "expired": [["late.md"]],
            "duplicates": [["pump-again.md", "pump.md"]],
            "dead_links": [["hub.md"]],
            "stubs": [["stub.md"]],
            "unlinked": [["alone.md"]],
            "unused": [["old.md"]],
        }
        assert (answer["notes"], answer["troubles"]) == (10, [])
        assert answer["totals"] == dict.fromkeys(paths(answer), 1)
        (dead,) = [row for row in answer["rows"] if row["group"] == "dead_links"]
        assert (dead["link"], dead["likely"]["path"]) == ("Wind station", "wind.md")
        assert all(row["why"] for row in answer["rows"])
        assert (bytes_of(lithos), lithos.server.get(Coordinator).head) == (before, head)
        assert await lithos.audit() == []


def templated(subject: str) -> str:
    """Return a page whose template is more than half of its text."""
    asked = " ".join(f"form{number} asks{number}" for number in range(20))
    return f"# {subject}\n\n{asked}\n\n{' '.join(f'{subject}{number}' for number in range(14))}"


async def test_pages_from_one_template_are_not_reported_as_duplicates(tmp_path: Path) -> None:
    """behaviour 400: covers a few pages in one folder, and one page in each of many folders.

    Copies are reported as duplicates. Small groups come first.
    """
    for number in range(5):
        put_note(tmp_path, f"few/{number}.md", templated(f"few{number}x"))
    for number in range(12):
        put_note(tmp_path, f"many/{number}/page.md", templated(f"many{number}x"))
    for number in range(3):
        put_note(tmp_path, f"copy/{number}.md", f"# {number}\n\n{PUMP} {'Again. ' * number}")
    for number in range(5):
        put_note(tmp_path, f"list/{number}.md", f"# List {number}\n\n{long('chair')}")
    async with serving(tmp_path) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        answer = await command(lithos, "lithos_care")
        assert paths(answer)["duplicates"] == [
            [f"copy/{number}.md" for number in range(3)],
            [f"list/{number}.md" for number in range(5)],
        ]
        assert list(answer["totals"]) == [each["name"] for each in answer["checks"]]
        groups = [each.name for each in checks_of(CARE)]
        assert groups.index("dead_links") < groups.index("duplicates") < groups.index("stubs")


async def test_read_notes_and_settled_notes_are_not_reported(tmp_path: Path) -> None:
    """behaviour 288"""
    async with cared_for(tmp_path) as lithos:
        ids = {item["path"]: item["id"] for item in (await lithos.call("lithos_list"))["items"]}
        await lithos.read(ids["old.md"], agent_id="ben")
        await lithos.write("Pump", id=ids["pump.md"], derived_from_ids=[ids["pump-again.md"]], content=PUMP)
        await lithos.server.get(VectorIndexer).converged()
        await lithos.audit()  # Wait until the read has been stored.
        found = paths(await command(lithos, "lithos_care"))
        assert "unused" not in found
        assert "duplicates" not in found


async def test_contradicted_notes_doubtful_notes_and_copies_are_reported(tmp_path: Path) -> None:
    """behaviour 288"""
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        one = await lithos.create("One", long("thing"))
        other = await lithos.create("Other", long("mast"))
        child = await lithos.create("Child", long("cup"), derived_from_ids=[one])
        edge = {"weight": 1.0, "namespace": "default"}
        await lithos.call("lithos_edge_upsert", from_id=one, to_id=other, type="contradicts", **edge)
        impact = await lithos.call("lithos_impact", id=one, action="quarantine", agent="ann", reason="wrong")
        assert impact["status"] == "quarantined", impact
        found = paths(await command(lithos, "lithos_care"))
        assert found["contradicted"] == [["one.md", "other.md"]]
        assert found["suspect"] == [["child.md", "one.md"]]
        assert child


async def test_each_group_gets_one_task_until_its_rows_change(tmp_path: Path) -> None:
    """behaviour 288"""
    async with cared_for(tmp_path) as lithos:
        assert (await command(lithos, "lithos_care_tasks", by="ann"))["code"] == "invalid_input"
        await command(lithos, "lithos_care")
        opened = (await command(lithos, "lithos_care_tasks", by="ann"))["tasks"]
        assert len(opened) == 8
        assert all(task["is_new"] for task in opened)
        again = (await command(lithos, "lithos_care_tasks", by="ben"))["tasks"]
        assert [(task["task_id"], task["is_new"]) for task in again] == [
            (task["task_id"], False) for task in opened
        ]
        stubs = next(task["task_id"] for task in opened if task["group"] == "stubs")
        shown = (await lithos.call("lithos_task_status", task_id=stubs))["tasks"][0]
        assert shown["title"] == "Care for notes: stubs"
        assert "stub.md: 5 words" in shown["description"]
        # A completed task is not opened again for the same notes. It is opened again for other notes.
        await lithos.call("lithos_task_complete", task_id=stubs, agent="ann")
        assert not any(
            task["is_new"] for task in (await command(lithos, "lithos_care_tasks", by="ann"))["tasks"]
        )
        await lithos.create("Another stub", "Later. [[Hub]]")
        await command(lithos, "lithos_care")
        fresh = [
            task for task in (await command(lithos, "lithos_care_tasks", by="ann"))["tasks"] if task["is_new"]
        ]
        assert [task["group"] for task in fresh] == ["stubs"]


async def test_care_command_shows_reasons_and_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """behaviour 288"""
    async with cared_for(tmp_path) as lithos:

        async def type_in(*words: str) -> str:
            capsys.readouterr()
            session = CommandSession(parse_arguments(("care", *words)), Config())
            assert await care(session, LocalServer(lithos.server)) == 0
            return capsys.readouterr().out

        lines = (await type_in()).splitlines()
        assert "Stubs: 1" in lines
        assert "  stub.md: 5 words" in lines
        assert "  hub.md: [[Wind station]] leads nowhere; wind.md may be meant" in lines
        assert lines[-1] == "10 notes were checked."
        told = json.loads(await type_in("--open-tasks", "--by", "ann", "--json"))
        assert len(told["tasks"]) == 8
        assert "there already" in await type_in("--open-tasks")
        for path in lithos.knowledge.glob("*.md"):
            path.unlink()
    async with serving(tmp_path / "other") as lithos:
        assert await type_in() == "0 notes were checked. No note needs care.\n"
