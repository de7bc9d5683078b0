"""Folder renames by a person while agents work.

Every call of an agent succeeds or asks the agent to retry (issue 25, number 10).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.notes.writing.actor_writer
from lithos.notes.catalogue.note_reading import examine_renamed
from tests.servers import Lithos, put_note, refusal, serving

AGENTS, EDITS, NOTES = 4, 7, 6


@pytest.mark.parametrize("watches", [False, True])
async def test_edits_succeed_or_retry_while_their_folder_is_renamed(tmp_path: Path, watches: bool) -> None:
    """Regression: 142 of 182 edits failed, and 136 hidden files stayed in the folder for minutes."""
    for number in range(NOTES):
        put_note(tmp_path, f"one/note{number}.md", f"# Note {number}\n\nText.\n")
    async with serving(tmp_path, server={"watch_files": watches}) as lithos:
        ids = [row["id"] for row in (await lithos.call("lithos_list"))["items"]]
        marks: list[tuple[str, str]] = []
        answered = 0

        async def edit(agent: int) -> None:
            nonlocal answered
            for number in range(EDITS):
                note, mark = ids[(agent + number) % NOTES], f"[{agent}.{number}]"
                answer = await append(lithos, note, mark)
                answered += 1
                if answer["status"] == "updated":
                    marks.append((note, mark))
                else:
                    assert "repeat" in refusal(answer, "version_conflict"), answer

        async def rename(folder: Path) -> None:
            names = ["one", "two"]
            while answered < AGENTS * EDITS:
                until = answered + 5
                os.rename(folder / names[0], folder / names[1])
                names.reverse()
                while answered < min(until, AGENTS * EDITS):
                    await trio.sleep(0.001)

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rename, lithos.knowledge)
                for agent in range(AGENTS):
                    nursery.start_soon(edit, agent)
        assert len(marks) > AGENTS * EDITS // 2
        assert [path for path in lithos.knowledge.rglob(".lithos-*") if path.suffix == ".swap"] == []
        files = {path: path.read_text() for path in lithos.knowledge.rglob("*.md")}
        assert len(files) == NOTES
        assert [mark for _, mark in marks if sum(text.count(mark) for text in files.values()) != 1] == []
        assert len([path for path in lithos.knowledge.iterdir() if path.is_dir()]) == 1
    assert list(lithos.knowledge.rglob(".lithos-*")) == []
    assert not list((tmp_path / ".lithos" / "displaced").glob("*"))


@pytest.mark.parametrize("identified", [False, True])
async def test_moved_file_is_edited_and_deleted_at_its_new_path(tmp_path: Path, identified: bool) -> None:
    """The server has received no notification of the move yet, so it finds the note by its bytes."""
    put_note(tmp_path, "one/note.md", "# Note\n\nText.\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_list"))["items"][0]["id"]
        if identified:
            await append(lithos, note, "first")
        (lithos.knowledge / "one").rename(lithos.knowledge / "two")
        answer = await append(lithos, note, "here")
        assert (answer["status"], answer["path"]) == ("updated", "two/note.md")
        assert lithos.files() == ["two/note.md"]
        assert "here" in (await lithos.read(note))["content"]
        assert "note.renamed" in [kind for kind, _ in lithos.events()]
        (lithos.knowledge / "two" / "note.md").rename(lithos.knowledge / "other.md")
        deleted = await lithos.call("lithos_delete", id=note, agent="a")
        assert deleted == {"success": True}
        assert lithos.files() == []


async def test_notes_at_their_known_paths_cause_no_search_for_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: list[Any] = []

    def count(*arguments: Any) -> Any:
        walks.append(arguments)
        return examine_renamed(*arguments)

    monkeypatch.setattr(lithos.notes.writing.actor_writer, "examine_renamed", count)
    async with serving(tmp_path) as server:
        note = await server.create("Note")
        await append(server, note, "more")
        assert walks == []
        (server.knowledge / "note.md").rename(server.knowledge / "other.md")
        await append(server, note, "even more")
        assert len(walks) == 1


async def append(lithos: Lithos, note: str, text: str) -> dict[str, Any]:
    answer: dict[str, Any] = await lithos.call("lithos_note_edit", id=note, agent="a", op="append", text=text)
    return answer
