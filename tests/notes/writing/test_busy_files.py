"""Busy files: a note that another program is writing delays only the requests for this note."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import trio

import lithos.notes.service.knowledge
from lithos.notes.files.protection import probe_protection
from lithos.notes.files.system_calls import KernelCalls
from tests.servers import refusal, serving


@pytest.fixture(autouse=True)
def _leases(tmp_path: Path) -> None:
    if not probe_protection(KernelCalls(), str(tmp_path)).leases:
        pytest.skip("this file system does not tell who has a file open")


async def test_write_waits_for_the_editor_without_delaying_other_notes(tmp_path: Path) -> None:
    """Issue 11, defect 2."""
    async with serving(tmp_path) as lithos:
        busy, free = await lithos.create("Busy"), await lithos.create("Free")
        outcomes: list[str] = []

        async def patch(note: str, tag: str) -> None:
            answer = await lithos.call("lithos_note_update", id=note, agent="a", tags=[tag])
            assert answer["status"] == "updated", answer
            outcomes.append(tag)

        with (lithos.data / "knowledge" / "busy.md").open("ab") as editor:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(patch, busy, "busy")
                for number in range(5):
                    await patch(free, f"free{number}")
                assert "busy" not in outcomes
                editor.write(b"by hand\n")
                editor.close()
        assert outcomes[-1] == "busy"
        assert "by hand" in (await lithos.read(busy))["content"]


async def test_request_fails_when_another_program_keeps_the_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lithos.notes.service.knowledge, "BUSY_PATIENCE", 0.1)
    async with serving(tmp_path) as server:
        note = await server.create("Busy", "text")
        path = server.data / "knowledge" / "busy.md"
        before = path.read_bytes()
        with path.open("ab"):
            for tool, more in (
                ("lithos_note_update", {"tags": ["x"]}),
                ("lithos_write", {"title": "Busy", "content": "new"}),
                ("lithos_delete", {}),
            ):
                message = refusal(await server.call(tool, id=note, agent="a", **more), "internal_error")
                assert "open for writing in another program" in message
                assert "Nothing was changed" in message
                assert "retry" in message
        assert path.read_bytes() == before
        assert (await server.call("lithos_note_update", id=note, agent="a", tags=["x"]))[
            "status"
        ] == "updated"


async def test_both_parts_of_a_two_step_save_are_kept(tmp_path: Path) -> None:
    """Issue 11, defect 2, in its original form."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Note", "text")
        path = lithos.data / "knowledge" / "note.md"
        begun = threading.Event()

        def save(text: str) -> None:
            with path.open("w") as file:
                file.write(text[: len(text) // 2])
                file.flush()
                begun.set()
                time.sleep(0.03)
                file.write(text[len(text) // 2 :])

        for number in range(4):
            begun.clear()
            text = path.read_text() + f"saved {number} by hand\n"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, save, text)
                await trio.to_thread.run_sync(begun.wait)
                answer = await lithos.call("lithos_note_update", id=note, agent="a", tags=[f"t{number}"])
                assert answer["status"] == "updated"
        content = (await lithos.read(note))["content"]
        assert [number for number in range(4) if f"saved {number} by hand" not in content] == []


async def test_adopted_note_that_is_briefly_empty_keeps_its_text(tmp_path: Path) -> None:
    """Issue 11, defect 2."""
    path = tmp_path / "knowledge" / "adopted.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Adopted\n\nThe text.\n")
    async with serving(tmp_path) as lithos:
        note = str((await lithos.call("lithos_read", path="adopted.md"))["id"])

        def save_again() -> None:
            path.write_text("")
            time.sleep(0.01)
            path.write_text("# Adopted\n\nThe text, again.\n")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, save_again)
            answer = await lithos.call("lithos_note_update", id=note, agent="a", tags=["x"])
        assert answer["status"] == "updated"
        assert "The text" in path.read_text()


@pytest.mark.parametrize("lacks_exchange", [False, True])
async def test_watcher_does_not_treat_a_replacement_as_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks_exchange: bool
) -> None:
    """The watcher reports no deletion, even if the name of the note is missing for a moment."""

    def refuse(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    if lacks_exchange:
        monkeypatch.setattr(KernelCalls, "exchange", refuse)
    async with serving(tmp_path, server={"watch_files": True}) as lithos:
        notes = [await lithos.create(f"Note {number}") for number in range(3)]
        for number in range(3):
            for note in notes:
                answer = await lithos.call("lithos_note_update", id=note, agent="a", tags=[f"t{number}"])
                assert answer["status"] == "updated"
        (lithos.data / "knowledge" / "seen.md").write_text("# Seen\n")
        while not any(payload.get("path") == "seen.md" for _, payload in lithos.events()):
            await trio.sleep(0.02)
        kinds = {kind for kind, _ in lithos.events()}
        assert kinds == {"note.created", "note.updated"}
        assert [(await lithos.read(note))["version"] for note in notes] == [4] * 3
