"""Merging of conflict copies into their notes (docs/spec/copies.md §2; behaviour 285)."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryStore
from lithos.history.service.conflict_copies import ConflictCopies
from lithos.history.settings import HistoryConfig
from lithos.kernel.values.principals import COMMAND
from lithos.notes.files.displaced import CopyMerges
from tests.fakes import Killed
from tests.servers import Lithos, serving

COPY = "plan.sync-conflict-20260304-050607-ABCDEFG.md"
OTHER = "plan.sync-conflict-20260305-050607-ABCDEFG.md"
BODY = "one\n\ntwo\n\nthree\n\nfour\n\nfive"


@asynccontextmanager
async def vault(data: Path, **sections: Any) -> AsyncIterator[Lithos]:
    """Start a server that keeps versions and watches the files."""
    async with serving(data, server={"watch_files": True}, **sections) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        yield lithos


async def command(lithos: Lithos, tool: str, **given: Any) -> dict[str, Any]:
    return dict(await lithos.server.tools.call(tool, given, COMMAND) or {})


async def merge(lithos: Lithos, path: str = COPY, **given: Any) -> dict[str, Any]:
    return await command(lithos, "lithos_conflict_copy_merge", path=path, by="ann", **given)


async def show(lithos: Lithos, path: str = COPY) -> dict[str, Any]:
    return await command(lithos, "lithos_conflict_copies", path=path)


async def copies(lithos: Lithos, number: int = 1) -> list[str]:
    """Wait until there are `number` conflict copies, and return their paths."""
    with trio.fail_after(30):
        while len(found := (await command(lithos, "lithos_conflict_copies"))["copies"]) != number:
            await trio.sleep(0.01)
    return [each["path"] for each in found]


async def make(lithos: Lithos, old: str, theirs: str, path: str = COPY) -> str:
    """Create a note and a conflict copy of it. Return the note's id."""
    note_id = await lithos.create("Plan", BODY)
    text = (lithos.knowledge / "plan.md").read_text()
    assert old in text
    (lithos.knowledge / path).write_text(text.replace(old, theirs))
    await copies(lithos)
    return note_id


async def ops(lithos: Lithos, note_id: str) -> list[tuple[int, str, str]]:
    rows = (await lithos.call("lithos_history", id=note_id))["versions"]
    return [(row["version"], row["op"], row["agent"]) for row in rows]


async def said(lithos: Lithos, note_id: str) -> str:
    """Return the text of a note."""
    return " ".join(str((await lithos.read(note_id))["content"]).split())


async def test_merged_note_has_both_changes_and_history_has_the_copy(tmp_path: Path) -> None:
    """behaviour 285"""
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "four", "4 by them")
        theirs = (lithos.knowledge / COPY).read_bytes()
        await lithos.write("Plan", id=note_id, content=BODY.replace("two", "2 by us"))
        shown = await show(lithos)
        assert (shown["conflicts"], shown["adds_nothing"], shown["has_ancestor"]) == ([], False, True)
        done = await merge(lithos)
        assert done == {
            "status": "merged", "path": COPY, "note_id": note_id, "note_path": "plan.md", "version": 5,
            "changed": True,
        }  # fmt: skip
        assert await said(lithos, note_id) == "one 2 by us three 4 by them five"
        assert not (lithos.knowledge / COPY).exists()
        assert await copies(lithos, 0) == []
        assert "conflict_copies" not in await lithos.read(note_id)
        assert await ops(lithos, note_id) == [
            (5, "outside", "watcher"), (4, "copy", "ann"), (3, "updated", "ann"), (2, "updated", "tester"),
            (1, "created", "tester"),
        ]  # fmt: skip
        assert lithos.server.get(HistoryStore).content(note_id, 4) == theirs
        events = await lithos.call("lithos_list")
        assert events["total"] == 1
        # Another machine may send the same file again. The second arrival has no effect.
        before = (lithos.knowledge / "plan.md").read_bytes()
        await lithos.write("Plan", id=note_id, content=BODY)
        after = (lithos.knowledge / "plan.md").read_bytes()
        assert before != after
        (lithos.knowledge / COPY).write_bytes(theirs)
        await copies(lithos)
        again = await merge(lithos)
        assert (again["status"], again["changed"]) == ("merged", False)
        assert (lithos.knowledge / "plan.md").read_bytes() == after
        assert len(await ops(lithos, note_id)) == 6


async def test_overlapping_change_is_not_merged_until_a_person_chooses(tmp_path: Path) -> None:
    """behaviour 285"""
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "three", "3 by them")
        await lithos.write("Plan", id=note_id, content=BODY.replace("three", "3 by us"))
        before = (lithos.knowledge / "plan.md").read_bytes(), (lithos.knowledge / COPY).read_bytes()
        refused = await merge(lithos)
        assert refused["code"] == "version_conflict"
        (place,) = refused["conflicts"]
        assert (place["note"], place["copy"]) == ("3 by us\n", "3 by them\n")
        assert before == ((lithos.knowledge / "plan.md").read_bytes(), (lithos.knowledge / COPY).read_bytes())
        assert (await merge(lithos, keep=["both"]))["code"] == "invalid_input", "without what was seen"
        seal = (await show(lithos))["seal"]
        assert (await merge(lithos, keep=["mine"], seal=seal))["code"] == "invalid_input"
        assert (await merge(lithos, keep=["note", "copy"], seal=seal))["code"] == "invalid_input"
        with (lithos.knowledge / COPY).open("a") as file:
            file.write("\nsix\n")
        changed = await merge(lithos, keep=["both"], seal=seal)
        assert (changed["code"], "conflicts" in changed) == ("version_conflict", False)
        seal = (await show(lithos))["seal"]
        assert (await merge(lithos, keep=["both"], seal=seal))["status"] == "merged"
        words = await said(lithos, note_id)
        assert words == "one two 3 by us 3 by them four five six"
    # A restart does not change this state.
    async with vault(tmp_path) as lithos:
        assert await said(lithos, note_id) == words
        assert await copies(lithos, 0) == []


async def test_copy_with_equal_text_is_deleted_without_a_merge(tmp_path: Path) -> None:
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "four", "four")
        assert (await show(lithos))["adds_nothing"]
        assert (await merge(lithos))["changed"] is False
        assert await ops(lithos, note_id) == [(1, "created", "tester")]
        assert not (lithos.knowledge / COPY).exists()
        assert (await merge(lithos))["code"] == "doc_not_found"


async def test_local_version_that_became_the_copy_is_merged(tmp_path: Path) -> None:
    """Syncthing kept the other machine's file, so the copy contains the text of the local agent."""
    async with vault(tmp_path) as lithos:
        note_id = await lithos.create("Plan", BODY)
        path = lithos.knowledge / "plan.md"
        theirs = path.read_text().replace("four", "4 by them")
        await lithos.write("Plan", id=note_id, content=BODY.replace("two", "2 by us"))
        path.rename(lithos.knowledge / COPY)
        path.write_text(theirs)
        await copies(lithos)
        assert (await merge(lithos))["changed"] is True
        assert await said(lithos, note_id) == "one 2 by us three 4 by them five"


async def test_merge_uses_the_latest_state_of_a_changed_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "four", "4 by them")
        rest = [BODY.replace("one", f"1 in write {number}") for number in range(2)]
        service = lithos.server.get(ConflictCopies)
        carry_out = service._carry_out

        async def overtaken(*given: Any) -> Any:
            if rest:
                await lithos.write("Plan", id=note_id, content=rest.pop())
            return await carry_out(*given)

        monkeypatch.setattr(service, "_carry_out", overtaken)
        assert (await merge(lithos))["status"] == "merged"
        assert not rest
        assert await said(lithos, note_id) == "1 in write 0 two three 4 by them five"


async def test_copy_is_not_deleted_when_changed_during_the_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No saved byte is lost. The copy is deleted only if its bytes are the bytes that were merged."""
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "four", "4 by them")
        service = lithos.server.get(ConflictCopies)
        keep, saves = service._keep, 0

        async def overtaken(*given: Any) -> None:
            nonlocal saves
            await keep(*given)
            saves += 1  # The count is 2 if the background task retries the merge before the next call.
            with (lithos.knowledge / COPY).open("a") as file:
                file.write("\nsaved just now\n")

        monkeypatch.setattr(service, "_keep", overtaken)
        assert (await merge(lithos))["code"] == "internal_error"
        assert "saved just now" in (lithos.knowledge / COPY).read_text()
        assert await copies(lithos) == [COPY]
        monkeypatch.setattr(service, "_keep", keep)
        assert (await merge(lithos))["status"] == "merged"
        assert await said(lithos, note_id) == "one two three 4 by them five" + " saved just now" * saves


@pytest.mark.parametrize("step", ["write", "keep", "remove"])
async def test_interrupted_merge_is_either_complete_or_absent_after_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """behaviour 285: the server is killed before each step and then started again."""

    async def killed(*_: Any, **__: Any) -> Any:
        raise Killed

    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "four", "4 by them")
        await lithos.write("Plan", id=note_id, content=BODY.replace("two", "2 by us"))
        service = lithos.server.get(ConflictCopies)
        if step == "write":
            monkeypatch.setattr(service._knowledge, "write", killed)
        elif step == "keep":
            monkeypatch.setattr(service, "_keep", killed)
        else:
            keep = service._keep

            async def keep_then_die(*given: Any) -> None:
                await keep(*given)
                raise Killed

            monkeypatch.setattr(service, "_keep", keep_then_die)
        with pytest.raises(Killed):
            await service.merge(COPY, "ann")
        assert CopyMerges(tmp_path / ".lithos").pending() is not None
        monkeypatch.undo()
    async with vault(tmp_path) as lithos:
        await lithos.server.get(ConflictCopies).resumed.wait()
        assert CopyMerges(tmp_path / ".lithos").pending() is None
        words = await said(lithos, note_id)
        if step == "write":
            assert words == "one 2 by us three four five"
            assert await copies(lithos) == [COPY]
        else:
            assert words == "one 2 by us three 4 by them five"
            assert await copies(lithos, 0) == []
            assert not (lithos.knowledge / COPY).exists()
            assert [op for _, op, _ in await ops(lithos, note_id)].count("copy") == 1


async def test_automatic_merge_handles_copies_without_conflicts(tmp_path: Path) -> None:
    """behaviour 285: `storage.conflict_copies: merge`."""
    async with vault(tmp_path, storage={"conflict_copies": "merge"}) as lithos:
        note_id = await lithos.create("Plan", BODY)
        text = (lithos.knowledge / "plan.md").read_text()
        await lithos.write("Plan", id=note_id, content=BODY.replace("three", "3 by us"))
        (lithos.knowledge / COPY).write_text(text.replace("three", "3 by them"))
        (lithos.knowledge / OTHER).write_text(text.replace("five", "5 by them"))
        assert await copies(lithos, 2) == [COPY, OTHER]
        assert await copies(lithos, 1) == [COPY]
        assert await said(lithos, note_id) == "one two 3 by us four 5 by them"
        assert (3, "updated", "merge") in await ops(lithos, note_id)


async def test_copies_are_not_merged_without_a_history(tmp_path: Path) -> None:
    async with serving(
        tmp_path, server={"watch_files": True}, history=HistoryConfig(enabled=False)
    ) as lithos:
        await make(lithos, "five", "five\n\nsix by them")
        assert (await merge(lithos))["code"] == "history_disabled"
        assert (lithos.knowledge / COPY).exists()
        (lithos.knowledge / COPY).write_bytes((lithos.knowledge / "plan.md").read_bytes())
        while (await command(lithos, "lithos_conflict_copies"))["copies"][0]["differs"]:
            await trio.sleep(0.01)
        assert (await merge(lithos))["status"] == "merged", "of the same bytes nothing is lost"


async def test_merge_choice_that_yields_an_invalid_note_is_refused(tmp_path: Path) -> None:
    async with vault(tmp_path) as lithos:
        note_id = await make(lithos, "status: active", "status: archived")
        await lithos.write("Plan", id=note_id, content=BODY, status="quarantined")
        shown = await show(lithos)
        assert [each["copy"] for each in shown["conflicts"]] == ["status: archived\n"]
        before = (lithos.knowledge / "plan.md").read_bytes()
        refused = await merge(lithos, keep=["both"], seal=shown["seal"])
        assert refused["code"] == "invalid_input"
        assert (lithos.knowledge / COPY).exists()
        assert (lithos.knowledge / "plan.md").read_bytes() == before
        assert CopyMerges(tmp_path / ".lithos").pending() is None
        assert (await show(lithos, "no such.md"))["code"] == "doc_not_found"


async def test_merge_on_full_disk_leaves_both_files_and_explains_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with vault(tmp_path) as lithos:
        await make(lithos, "four", "4 by them")
        before = (lithos.knowledge / "plan.md").read_bytes(), (lithos.knowledge / COPY).read_bytes()

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(CopyMerges, "write", full)
        refused = await merge(lithos)
        assert refused["code"] == "internal_error"
        assert "No space left on device" in refused["message"]
        assert "Free space" in refused["message"]
        assert before == ((lithos.knowledge / "plan.md").read_bytes(), (lithos.knowledge / COPY).read_bytes())
        monkeypatch.undo()
        assert (await merge(lithos))["status"] == "merged"
