"""Decisions of people about conflict copies: keep as a note, or merge (docs/spec/copies.md §1 and §2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from lithos.events.rows.store import CoordinationStore
from lithos.history.recording.backfill import CatchingUp
from lithos.notes.files.files import NoteFiles
from tests.history.service.test_conflict_copies import OWN_ID
from tests.notes.service.test_copy_merging import command, copies
from tests.notes.service.test_peoples_names import (
    LINES,
    SYNCED,
    THERE,
    WATCHED,
    body,
    changed,
    settled,
    with_earlier_version,
)
from tests.servers import Lithos, put_note, refusal, serving, until


async def keep(lithos: Lithos, path: str) -> dict[str, Any]:
    return await command(lithos, "lithos_conflict_copy_keep", path=path)


@pytest.mark.parametrize("name", ["plan 2.md", SYNCED])
async def test_kept_file_permanently_remains_a_note(tmp_path: Path, name: str) -> None:
    """behaviour 341: the decision survives edits, restarts, a lost manifest and a rename.

    The bytes of the file stay unchanged.
    """
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos)
        put_note(tmp_path, name, body(THERE))
        assert await copies(lithos) == [name]
        done = await keep(lithos, name)
        assert (done["status"], done["path"], done["new_id"]) == ("kept", name, False)
        await settled(lithos, "plan.md", name)
        assert (await lithos.call("lithos_read", path=name))["id"] == done["note_id"]
        assert (tmp_path / "knowledge" / name).read_text() == body(THERE)
        await changed(lithos, name, LINES)
        await settled(lithos, "plan.md", name)
        (lithos.knowledge / name).unlink()
        await settled(lithos, "plan.md")
        put_note(tmp_path, name, body(THERE))
        await settled(lithos, "plan.md", name)
    (tmp_path / ".lithos" / "manifest.db").unlink()
    async with serving(tmp_path, server=WATCHED) as lithos:
        await settled(lithos, "plan.md", name)
        (lithos.knowledge / name).rename(lithos.knowledge / "plan-other.md")
        await settled(lithos, "plan.md", "plan-other.md")
    renamed = SYNCED.replace("0304", "0309")
    (tmp_path / "knowledge" / "plan-other.md").rename(tmp_path / "knowledge" / renamed)
    for _ in range(2):
        async with serving(tmp_path) as lithos:
            await settled(lithos, "plan.md", renamed)


@pytest.mark.parametrize("name", ["plan 2.md", SYNCED])
async def test_kept_file_with_duplicate_note_id_gets_a_new_id(tmp_path: Path, name: str) -> None:
    """behaviour 341: all other bytes of the file stay unchanged."""
    head = f"---\ntags: [a]\nid: {OWN_ID}   # ours\n---\n"
    put_note(tmp_path, "plan.md", head + body(LINES))
    put_note(tmp_path, name, head + body(THERE))
    async with serving(tmp_path) as lithos:
        assert await copies(lithos) == [name]
        done = await keep(lithos, name)
        assert done["new_id"]
        text = (tmp_path / "knowledge" / name).read_text()
        assert text.replace(done["note_id"], OWN_ID) == head + body(THERE)
        await settled(lithos, "plan.md", name)
        assert (await lithos.call("lithos_read", path="plan.md"))["id"] == OWN_ID
    async with serving(tmp_path) as lithos:
        await settled(lithos, "plan.md", name)


async def test_keeping_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        assert "a conflict copy nor a note" in refusal(await keep(lithos, "nothing.md"), "doc_not_found")


async def test_file_saved_while_being_kept_loses_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 341: an editor saves the file at the moment when Lithos writes the new id."""
    head = f"---\nid: {OWN_ID}\n---\n"
    put_note(tmp_path, "plan.md", head + body(LINES))
    put_note(tmp_path, SYNCED, head + body(THERE))
    async with serving(tmp_path) as lithos:
        files, saved = lithos.server.get(NoteFiles), [head + "Saved by an editor.\n"]
        apply = type(files).apply

        def save_first(self: Any, changes: Any) -> Any:
            if saved and changes[0].path == SYNCED:
                (tmp_path / "knowledge" / SYNCED).write_text(saved.pop())
            return apply(self, changes)

        monkeypatch.setattr(type(files), "apply", save_first)
        done = await keep(lithos, SYNCED)
        assert not saved
        read = await lithos.call("lithos_read", path=SYNCED)
        assert (read["id"], read["content"].strip()) == (done["note_id"], "Saved by an editor.")


async def test_file_is_not_kept_when_the_decision_is_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 341"""
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos)
        put_note(tmp_path, "plan 2.md", body(THERE))
        assert await copies(lithos) == ["plan 2.md"]
        store = lithos.server.get(CoordinationStore)

        def refuse(rows: Any) -> None:
            raise apsw.FullError("disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(store, "put_along", refuse)
            refusal(await keep(lithos, "plan 2.md"), "internal_error")
        assert await copies(lithos) == ["plan 2.md"]
    async with serving(tmp_path) as lithos:
        assert await copies(lithos) == ["plan 2.md"]


async def test_weakly_named_copies_are_only_merged_on_explicit_request(tmp_path: Path) -> None:
    """behaviour 344: `--all` and `storage.conflict_copies: merge` do not merge such copies."""
    async with serving(tmp_path, server=WATCHED, storage={"conflict_copies": "merge"}) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        await with_earlier_version(lithos)
        put_note(tmp_path, "plan 2.md", body(THERE))
        assert await copies(lithos) == ["plan 2.md"]
        put_note(tmp_path, SYNCED, body([*LINES[:5], "Sentence 5, by a program.", *LINES[6:]]))
        await until(lambda: not (lithos.knowledge / SYNCED).exists())
        assert await copies(lithos) == ["plan 2.md"]
        rows = (await command(lithos, "lithos_conflict_copies"))["copies"]
        assert [(row["path"], row["named_only"]) for row in rows] == [("plan 2.md", True)]
        assert (lithos.knowledge / "plan 2.md").read_text() == body(THERE)
        text = (lithos.knowledge / "plan.md").read_text()
        assert "by a program" in text
        assert "changed there" not in text


async def test_note_contains_a_copy_only_if_it_contains_every_line(tmp_path: Path) -> None:
    """behaviour 345: lines that the note has lost since then do not count."""
    async with serving(tmp_path, server=WATCHED) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        made = await lithos.create("Plan", body(LINES))
        first = (lithos.knowledge / "plan.md").read_bytes()
        (lithos.knowledge / SYNCED).write_bytes(first)
        assert await copies(lithos) == [SYNCED]
        shown = await command(lithos, "lithos_conflict_copies", path=SYNCED)
        assert (shown["adds_nothing"], shown["changes_nothing"]) == (True, True)
        await lithos.write("Plan", body(LINES[1:]), id=made)
        shown = await command(lithos, "lithos_conflict_copies", path=SYNCED)
        assert (shown["adds_nothing"], shown["changes_nothing"]) == (False, True)
