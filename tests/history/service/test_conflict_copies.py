"""Conflict copies are not notes (docs/spec/copies.md §1; behaviour 284)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue.catalogue import Catalogue
from tests.servers import Lithos, put_note, refusal, serving, until

BODY = "One.\n\nTwo.\n\nThree.\n\nFour.\n\nFive.\n"
NAMES = (
    "plan.sync-conflict-20260304-050607-ABCDEFG.md",
    "plan (Ann's conflicted copy 2026-03-04).md",
    "plan (In Konflikt stehende Kopie von Ann 2026-03-04).md",
    "plan (conflicted copy 2026-03-04 050607).md",
    "plan-LAPTOP.md",
    "plan 2.md",
    "plan (1).md",
    "plan (Conflicted copy laptop 202603040506).md",
)
NOTE = "---\nid: {}\ntitle: Plan\n---\n" + BODY
OWN_ID = "11111111-1111-4111-8111-111111111111"
CHANGED = BODY.replace("Three", "3")


@pytest.fixture(scope="module", params=["with ids", "as it lies"])
def vault(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def note(kind: str, body: str) -> str:
    """Return the text of a note file. It has the id of the original or has no id."""
    return NOTE.format(OWN_ID).replace(BODY, body) if kind == "with ids" else body


async def paths(lithos: Lithos) -> list[str]:
    return [item["path"] for item in (await lithos.call("lithos_list"))["items"]]


async def expect_copy(lithos: Lithos, name: str, words: str = "three four") -> dict[str, Any]:
    """Check that the copy is not served as a note, and that its note lists the copy.

    Return the note as read.
    """
    assert await paths(lithos) == ["plan.md"]
    read = await lithos.call("lithos_read", path="plan.md")
    assert read["conflict_copies"] == [{"path": name, "differs": True}]
    assert [each["kind"] for each in read["warnings"]] == ["conflict_copy"]
    assert name in read["warnings"][0]["reason"]
    (item,) = (await lithos.call("lithos_list"))["items"]
    assert item["conflict_copies"] == read["conflict_copies"]
    for mode in ("fulltext", "semantic", "hybrid"):
        rows = (await lithos.call("lithos_search", query=words, mode=mode))["results"]
        assert {row["path"] for row in rows} <= {"plan.md"}
    briefing = await lithos.call("lithos_context", query=words)
    assert "conflict_copy" in {each["kind"] for each in briefing["warnings"]}
    assert name in refusal(await lithos.call("lithos_read", path=name), "doc_not_found")
    return dict(read)


#: People also choose such names. At a first start, only an id makes such a file a copy.
WEAK = NAMES[4:7]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WEAK])
async def test_every_documented_copy_name_is_recognised(tmp_path: Path, vault: str, name: str) -> None:
    """behaviour 284"""
    put_note(tmp_path, "plan.md", note(vault, BODY))
    put_note(tmp_path, name, note(vault, CHANGED))
    async with serving(tmp_path) as lithos:
        await expect_copy(lithos, name)
        assert (lithos.knowledge / name).read_text() == note(vault, CHANGED)


@pytest.mark.parametrize("name", WEAK)
async def test_file_with_human_name_is_copy_when_ids_are_equal(tmp_path: Path, name: str) -> None:
    """behaviour 284"""
    put_note(tmp_path, "plan.md", note("with ids", BODY))
    put_note(tmp_path, name, note("with ids", CHANGED))
    async with serving(tmp_path) as lithos:
        await expect_copy(lithos, name)


async def test_copy_name_alone_does_not_make_a_copy(tmp_path: Path) -> None:
    """behaviour 284"""
    files = [f"{folder}/{name}" for folder, each in enumerate(NAMES) for name in ("plan.md", each)]
    other = "Nothing of that.\n\nNor of this.\n\nQuite another text.\n"
    for file in files:
        put_note(tmp_path, file, BODY if file.endswith("/plan.md") else other)
    async with serving(tmp_path) as lithos:
        assert sorted(await paths(lithos)) == sorted(files)
        for file in files:
            assert "conflict_copies" not in await lithos.call("lithos_read", path=file)


STRONG = (NAMES[0], NAMES[1], NAMES[7])


@pytest.mark.parametrize(("name", "first"), list(itertools.product(STRONG, ["copy", "original"])))
async def test_original_keeps_its_id_regardless_of_the_arrival_order(
    tmp_path: Path, vault: str, name: str, first: str
) -> None:
    """behaviour 284"""
    texts = {"plan.md": note(vault, BODY), name: note(vault, CHANGED)}
    order = [name, "plan.md"] if first == "copy" else ["plan.md", name]
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        put_note(tmp_path, order[0], texts[order[0]])
        await until(lambda: len(lithos.server.get(Catalogue)) == 1)
        put_note(tmp_path, order[1], texts[order[1]])
        await until(lambda: bool(list(lithos.server.get(Catalogue).copied())))
        await until(lambda: len(lithos.server.get(Catalogue)) == 1)
        read = await expect_copy(lithos, name)
        if vault == "with ids":
            assert read["id"] == OWN_ID
        told = [payload for kind, payload in lithos.events() if kind == "note.conflict_copy"]
        assert [(each["path"], each["copy"]) for each in told] == [("plan.md", name)]
    async with serving(tmp_path) as lithos:  # The result is the same after a restart.
        assert (await expect_copy(lithos, name))["id"] == read["id"]


async def test_copy_without_its_note_becomes_a_note(tmp_path: Path, vault: str) -> None:
    """behaviour 284"""
    put_note(tmp_path, "plan.md", note(vault, BODY))
    put_note(tmp_path, NAMES[0], note(vault, CHANGED))
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        read = await expect_copy(lithos, NAMES[0])
        await lithos.call("lithos_delete", id=read["id"], agent="ann")
        await until(lambda: lithos.server.get(Catalogue).at_path(NAMES[0]) is not None)
        assert await paths(lithos) == [NAMES[0]]
        assert "3." in (await lithos.call("lithos_read", path=NAMES[0]))["content"]


async def test_history_identifies_copy_of_an_earlier_version(tmp_path: Path) -> None:
    """behaviour 284: a kept version relates the copy to the note."""
    put_note(tmp_path, "plan.md", BODY)
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        (entry,) = lithos.server.get(Catalogue)
        await lithos.call(
            "lithos_write", id=entry.note.id, agent="ann", content="All of it is new.\n\nAnd this."
        )
        put_note(tmp_path, NAMES[0], CHANGED)
        await until(lambda: bool(list(lithos.server.get(Catalogue).copied())))
        await expect_copy(lithos, NAMES[0], "all new")


async def test_copies_are_notes_when_conflict_copy_detection_is_off(tmp_path: Path) -> None:
    put_note(tmp_path, "plan.md", BODY)
    put_note(tmp_path, NAMES[0], CHANGED)
    storage = {"conflict_copies": "ignore"}
    assert StorageConfig(**storage).conflict_copies == "ignore"  # type: ignore[arg-type]
    async with serving(tmp_path, storage=storage) as lithos:
        assert sorted(await paths(lithos)) == sorted(["plan.md", NAMES[0]])
        assert "conflict_copies" not in await lithos.call("lithos_read", path="plan.md")


async def test_note_that_an_agent_wrote_next_to_similar_note_stays(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        for title in ("Plan", "Plan 2", "Plan LAPTOP"):
            await lithos.create(title, BODY)
    async with serving(tmp_path) as lithos:
        assert sorted(await paths(lithos)) == ["plan-2.md", "plan-laptop.md", "plan.md"]


CONFLICT = "Before.\n\n<<<<<<< HEAD\nKites fly.\n=======\nKites sail.\n>>>>>>> other\n"


async def kinds(lithos: Lithos, **which: Any) -> list[str]:
    read = await lithos.call("lithos_read", **which)
    return [each["kind"] for each in read.get("warnings", ())]


async def test_git_conflict_markers_cause_a_warning(tmp_path: Path) -> None:
    """behaviour 286: read, list and briefing warn from the next call on.

    Markers in fences cause no warning.
    """
    put_note(tmp_path, "torn.md", CONFLICT)
    put_note(tmp_path, "fenced.md", f"An example:\n\n```\n{CONFLICT}```\n")
    async with serving(tmp_path) as lithos:
        assert await kinds(lithos, path="torn.md") == ["conflict_markers"]
        assert await kinds(lithos, path="fenced.md") == []
        rows = {row["path"]: row for row in (await lithos.call("lithos_list"))["items"]}
        assert [each["kind"] for each in rows["torn.md"]["warnings"]] == ["conflict_markers"]
        assert "warnings" not in rows["fenced.md"]
        briefing = await lithos.call("lithos_context", query="kites fly or sail")
        assert "conflict_markers" in {each["kind"] for each in briefing["warnings"]}
        assert "has_conflict_markers" not in str(await lithos.call("lithos_read", path="torn.md"))
        made = await lithos.create("Made", content=CONFLICT)
        assert await kinds(lithos, id=made) == ["conflict_markers"]
        await lithos.write("Made", id=made, content="Kites fly.")
        assert await kinds(lithos, id=made) == []
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        assert await kinds(lithos, path="torn.md") == ["conflict_markers"], "known from the manifest"
        put_note(tmp_path, "torn.md", "Kites fly.\n")
        while await kinds(lithos, path="torn.md"):
            await trio.sleep(0.01)
    assert (tmp_path / "knowledge" / "torn.md").read_text() == "Kites fly.\n"
