"""People's own properties under keys of Lithos.

Every operation keeps the properties, and an undo leaves no trace.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from lithos.history.service.undo import UndoRun, plan_undo
from lithos.kernel.values.principals import COMMAND
from lithos.notes.format.document import derive_id, parse_document
from lithos.notes.model.note import OWNED_KEYS
from lithos.text.yaml.vault_style import VaultStyle
from tests.servers import VAULT, Lithos, put_note, refusal, serving

#: Properties that people use under the names of Lithos keys. Each entry has whole lines.
FOREIGN: dict[str, tuple[str, ...]] = {
    "id": ("id: intro", "id: 1", "id: [a, b]", "id: 2026-11-28"),
    "title": ("title:\n  - One\n  - Two", "title: {de: Eins}", "title: [[Page]]"),
    "author": ("author: [Ann, Ben]", "author:\n  name: Ann  # her"),
    "created_at": ("created_at: 28.11.2026", "created_at: long ago"),
    "updated_at": ("updated_at: 28.11.2026", "updated_at: 2026-11-28", "updated_at: [a]"),
    "tags": ("tags: {a: 1}", "tags: [[a, b], {c: d}]"),
    "aliases": ("aliases: {a: 1}",),
    "confidence": ("confidence: high", "confidence: 85", "confidence: [1]"),
    "contributors": ("contributors: {ann: 1}", "contributors: [Ann, Ben]"),
    "source": ("source: https://example.org/book", "source: {page: 3}"),
    "supersedes": ("supersedes: v1.2", "supersedes: [a]"),
    "version": ("version: 1.4.2", "version: 2", "version: '3'  # of the app", "version: [1]"),
    "source_url": ("source_url: the blue book", "source_url: [a]"),
    "derived_from_ids": ("derived_from_ids: [intro, other]",),
    "expires_at": ("expires_at: when it is done", "expires_at: [a]"),
    "schema_version": ("schema_version: v2",),
    "namespace": ("namespace: [a, b]", "namespace: {a: b}"),
    "access_scope": ("access_scope: public",),
    "note_type": ("note_type: recipe",),
    "status": ("status: in progress", "status: reading  # since May", "status: [a]"),
    "quarantine_reason": ("quarantine_reason: mould",),
    "summaries": ("summaries: none", "summaries: {short: a, other: b}", "summaries: [a]"),
    "entities": ("entities: {a: 1}",),
    "entities_extractor": ("entities_extractor: spacy",),
}  # fmt: skip
OTHERS = ("mood: good", "# a comment", "type: book", "agent: 007", "cssclass:   wide", "empty:", "")
BODIES = ("", "Text.", "# Heading\n\nText\n\n\n", "\n\n- [ ] one\n- two", "Text without end", "Last\n")


def make_file(chance: random.Random) -> bytes:
    keys = chance.sample(sorted(FOREIGN), chance.randrange(0, len(FOREIGN)))
    lines = [chance.choice(FOREIGN[key]) for key in keys] + chance.sample(OTHERS, chance.randrange(4))
    chance.shuffle(lines)
    head = "---\n" + "".join(f"{line}\n" for line in lines) + "---\n" if lines else ""
    newline = chance.choice(("\n", "\n", "\r\n"))
    text = (head + chance.choice(BODIES)).replace("\n", newline)
    return (chance.choice(("", "", "\ufeff")) + text).encode()


def change_of(chance: random.Random, note: str) -> tuple[str, dict[str, Any]]:
    """Return a randomly chosen change of a note as a tool name with arguments."""
    by = {"id": note, "agent": chance.choice(("eve", "bob"))}
    return chance.choice(
        (
            ("lithos_note_edit", by | {"op": "append", "text": f"More {chance.randrange(99)}."}),
            ("lithos_note_edit", by | {"op": "prepend", "text": "First."}),
            ("lithos_note_update", by | {"tags": ["x", "y"]}),
            ("lithos_note_update", by | {"status": "archived"}),
            ("lithos_note_update", by | {"metadata": {"mine": chance.randrange(99)}}),
            ("lithos_write", by | {"content": "Other text.", "confidence": 0.5, "source_task": "t-1"}),
            ("lithos_write", by | {"note_type": "concept", "summaries": {"short": "s"}, "namespace": "n"}),
            ("lithos_write", by | {"expires_at": "2030-01-01T00:00:00Z", "access_scope": "task",
                                   "source_task": "t-2", "schema_version": 3}),
            ("lithos_write", by | {"source_url": f"https://example.org/{note}"}),
            ("lithos_write", by | {"derived_from_ids": [derive_id("no.md")]}),
            ("lithos_note_move", by | {"path": f"moved/{note}.md"}),
        )
    )  # fmt: skip


def foreign_of(data: bytes) -> dict[str, Any]:
    """Return the values of a person's own properties."""
    style = VaultStyle.of_foreign()
    return dict(parse_document(data, "n.md", datetime(2026, 1, 1, tzinfo=UTC), style=style).note.extra)


class Calls:
    """Tools that are called in the same way as by `lithos undo`."""

    def __init__(self, lithos: Lithos) -> None:
        self._lithos = lithos

    async def call(self, tool: str, arguments: Any, /) -> Any:
        return await self._lithos.server.tools.call(tool, arguments, COMMAND)


async def undo(lithos: Lithos, agent: str) -> None:
    calls = Calls(lithos)
    run = UndoRun(calls)
    since, until = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2100))
    for step in await plan_undo(calls, [agent], since, until):
        await run.carry_out(step)


@pytest.mark.parametrize("seed", range(3))
async def test_undo_restores_peoples_bytes_under_random_properties(tmp_path: Path, seed: int) -> None:
    """behaviours 355 and 358: two agents change a note in turn, and their changes are then undone.

    Undo runs three times per agent, so that overlapping changes are undone as well.
    """
    chance = random.Random(seed)
    before = {f"note {number}.md": make_file(chance) for number in range(25)}
    for path, data in before.items():
        put_note(tmp_path, path, data)
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        known = {path: (await lithos.call("lithos_read", path=path))["id"] for path in before}
        for path, note in known.items():
            own = foreign_of(before[path])
            for _ in range(chance.randrange(1, 6)):
                tool, arguments = change_of(chance, note)
                answer = await lithos.call(tool, **arguments)
                assert "code" not in answer or answer["code"] in ("slug_collision", "invalid_input"), answer
                now = lithos.knowledge / (await lithos.read(note))["path"]
                said = foreign_of(now.read_bytes())
                assert {key: said.get(key) for key in own} == own, (tool, arguments)
        for agent in ("eve", "bob") * 3:
            await undo(lithos, agent)
        after = {path: (lithos.knowledge / path).read_bytes() for path in before}
    assert {path: data for path, data in after.items() if data != before[path]} == {}


async def test_each_key_of_lithos_can_be_a_persons_own_property(tmp_path: Path) -> None:
    """behaviours 355, 356"""
    for key, forms in FOREIGN.items():
        put_note(tmp_path, f"{key}.md", f"---\n{forms[0]}\n---\nText.\n")
    assert set(FOREIGN) == set(OWNED_KEYS)
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        rows = {row["path"]: row for row in (await lithos.call("lithos_list"))["items"]}
        for key in FOREIGN:
            note = rows[f"{key}.md"]["id"]
            value = rows[f"{key}.md"]["metadata"][key]
            assert (await lithos.read(note))["metadata"]["extra"][key] == value
            if isinstance(value, str | int | float):
                found = await lithos.call("lithos_list", metadata_match={key: value})
                assert [row["path"] for row in found["items"]] == [f"{key}.md"]
            answer = await lithos.call("lithos_note_update", id=note, agent="a", metadata={key: "mine: so"})
            assert answer["status"] == "updated", (key, answer)
            assert (await lithos.read(note))["metadata"]["extra"][key] == "mine: so"
            assert f"{key}: 'mine: so'\n" in (lithos.knowledge / f"{key}.md").read_text()


@pytest.mark.parametrize("style", [{}, VAULT], ids=["full", "minimal"])
async def test_values_of_lithos_and_of_a_person_coexist(tmp_path: Path, style: dict[str, Any]) -> None:
    """behaviour 356, even if the person's value looks like a value of Lithos."""
    file = put_note(tmp_path, "n.md", "---\nstatus: reading\nversion: 1.4.2\n---\nText.\n")
    async with serving(tmp_path, storage=style, settled=False) as lithos:
        note = (await lithos.call("lithos_read", path="n.md"))["id"]
        call = lithos.call
        await call("lithos_note_update", id=note, agent="a", status="archived")
        assert "status: reading\nversion: 1.4.2\n" in file.read_text()
        assert "lithos_status: archived\n" in file.read_text()
        assert ("lithos_version: 2\n" in file.read_text()) == (style == {})
        await call("lithos_note_update", id=note, agent="a", metadata={"status": "active", "version": 2})
        row = (await lithos.read(note))["metadata"]
        assert (row["status"], row["version"], row["extra"]["status"], row["extra"]["version"]) == (
            "archived", 3, "active", 2
        )  # fmt: skip
        for key in ("tags", "lithos_status"):
            answer = await call("lithos_note_update", id=note, agent="a", metadata={key: "x"})
            assert "reserved" in refusal(answer, "invalid_input")
        assert (await call("lithos_write", id=note, agent="a", content="New."))["version"] == 4


async def test_versions_outside_files_survive_restarts_and_manual_edits(tmp_path: Path) -> None:
    """behaviour 357"""
    file = put_note(tmp_path, "n.md", "---\nversion: 2\n---\nText.\n")
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        note = (await lithos.call("lithos_read", path="n.md"))["id"]
        for expected in (1, 2, 3):
            more = {"op": "append", "text": f"{expected}.", "expected_version": expected}
            answer = await lithos.call("lithos_note_edit", id=note, agent="a", **more)
            assert answer["version"] == expected + 1, answer
        updated = (await lithos.read(note))["metadata"]["updated_at"]
    assert file.read_text() == f"---\nversion: 2\nid: {note}\n---\nText.\n\n1.\n2.\n3.\n"
    for lost in (False, True):
        if lost:
            (tmp_path / ".lithos" / "manifest.db").unlink()
        async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
            assert (await lithos.read(note))["version"] == 4
            if not lost:
                assert (await lithos.read(note))["metadata"]["updated_at"] == updated
    file.write_text(file.read_text() + "By hand.\n")
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        assert (await lithos.read(note))["version"] == 5
        answer = await lithos.call(
            "lithos_note_edit", id=note, agent="a", op="append", text="x", expected_version=4
        )
        refusal(answer, "version_conflict")


async def test_notes_that_share_a_foreign_id_are_both_served(tmp_path: Path) -> None:
    """behaviours 359, 360"""
    own = "zk-202611281200"
    put_note(tmp_path, "v1/intro.md", "---\nid: intro\n---\nThe zebra release.\n")
    put_note(tmp_path, "v2/intro.md", "---\nid: intro\n---\nThe giraffe release.\n")
    put_note(tmp_path, "one.md", f"---\nid: {own}\n---\nAlone.\n")
    put_note(tmp_path, "two.md", f"See [[{own}]].\n")
    async with serving(tmp_path, storage=VAULT) as lithos:
        rows = {row["path"]: row for row in (await lithos.call("lithos_list"))["items"]}
        assert rows["v1/intro.md"]["id"] == derive_id("v1/intro.md")
        assert len(rows) == 4
        assert await lithos.found("giraffe") == ["intro"]
        assert "2 notes have the property id" in refusal(
            await lithos.call("lithos_read", id="intro"), "invalid_input"
        )
        one = await lithos.read(own)
        assert one["path"] == "one.md"
        related = await lithos.call("lithos_related", id=own, include=["links"])
        assert [row["title"] for row in related["links"]["incoming"]] == ["two"]
        for named in (own, "one.md"):
            more = {"title": "N", "content": "x", "agent": "a"}
            answer = await lithos.call("lithos_write", derived_from_ids=[named], **more)
            assert one["id"] in refusal(answer, "invalid_input")
        await lithos.write("N", "x", derived_from_ids=[one["id"]])
        answer = await lithos.call("lithos_note_edit", id=own, agent="a", op="append", text="More.")
        assert answer["status"] == "updated"
        text = (lithos.knowledge / "one.md").read_text()
        assert text == f"---\nid: {own}\nlithos_id: {one['id']}\n---\nAlone.\n\nMore.\n"
    (lithos.knowledge / "one.md").rename(lithos.knowledge / "moved.md")
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        assert (await lithos.call("lithos_read", path="moved.md"))["id"] == one["id"]


async def test_known_note_keeps_its_invalid_id(tmp_path: Path) -> None:
    """behaviour 361: an earlier Lithos adopted every `id` as its own."""
    put_note(tmp_path, "a.md", "---\nid: intro\n---\nText.\n")
    async with serving(tmp_path, storage=VAULT, settled=False):
        pass
    with apsw.Connection(str(tmp_path / ".lithos" / "manifest.db")) as manifest:
        manifest.execute("UPDATE files SET id='intro', identified=1")
        manifest.execute("UPDATE reading SET rules='as it was'")
    for _ in range(2):
        async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
            assert (await lithos.call("lithos_read", path="a.md"))["id"] == "intro"
            await lithos.call("lithos_note_edit", id="intro", agent="a", op="append", text="More.")
            assert "lithos_id: intro\n" in (lithos.knowledge / "a.md").read_text()


async def test_deleted_note_is_restored_although_another_note_has_its_title(tmp_path: Path) -> None:
    """behaviour 357"""
    text = "---\ntitle: Same\n---\nText.\n"
    first, _ = put_note(tmp_path, "a.md", text), put_note(tmp_path, "b.md", text.replace("Text", "Other"))
    async with serving(tmp_path, storage=VAULT, settled=False) as lithos:
        note = (await lithos.call("lithos_read", path="a.md"))["id"]
        await lithos.call("lithos_note_update", id=note, agent="a", tags=["x"])
        await lithos.call("lithos_delete", id=note, agent="a")
        answer = await lithos.call("lithos_restore", id=note, version=1, agent="a")
        assert answer["status"] == "created", answer
        assert first.read_text() == text
