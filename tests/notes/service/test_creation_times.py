"""Creation times: Lithos keeps them, even if the time of the file changes (issue 25, number 7)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.note import Note, with_creation
from tests.servers import VAULT, Lithos, put_note, serving

OLD = 1_600_000_000
CREATED = datetime.fromtimestamp(OLD, UTC).isoformat(timespec="microseconds")


def put_old(data: Path, path: str = "n.md", text: str = "# N\n\nText.\n") -> Path:
    file = put_note(data, path, text)
    os.utime(file, (OLD, OLD))
    return file


async def times(lithos: Lithos, note: str) -> tuple[str, str]:
    """Return the creation and update times of a note. Reading and listing must agree on the creation time."""
    read = (await lithos.read(note))["metadata"]
    (row,) = (await lithos.call("lithos_list"))["items"]
    entry = lithos.server.get(Catalogue).get(note)
    assert entry is not None
    assert entry.note.created_at == datetime.fromisoformat(read["created_at"])
    assert row["updated"] == read["updated_at"]
    return read["created_at"], read["updated_at"]


async def id_of(lithos: Lithos) -> str:
    return str((await lithos.call("lithos_list"))["items"][0]["id"])


async def change(lithos: Lithos, note: str, how: str) -> None:
    answer = await {
        "edit": lambda: lithos.call("lithos_note_edit", id=note, agent="a", op="append", text="More."),
        "update": lambda: lithos.call("lithos_note_update", id=note, agent="a", tags=["x"]),
        "write": lambda: lithos.call("lithos_write", id=note, agent="a", title="n", content="New."),
        "restore": lambda: lithos.call("lithos_restore", id=note, agent="a", version=1),
        "move": lambda: lithos.call("lithos_note_move", id=note, agent="a", path="other.md"),
    }[how]()
    assert answer["status"] in ("updated", "restored"), answer


@pytest.mark.parametrize("style", [{}, VAULT], ids=["full", "minimal"])
async def test_creation_time_survives_agent_changes_and_restarts(
    tmp_path: Path, style: dict[str, Any]
) -> None:
    file = put_old(tmp_path)
    async with serving(tmp_path, storage=style) as lithos:
        note = await id_of(lithos)
        for how in ("edit", "update", "write", "restore", "move", "edit"):
            await change(lithos, note, how)
            created, updated = await times(lithos, note)
            assert created == CREATED < updated, how
        file = lithos.knowledge / "other.md"
        assert ("created_at" in file.read_text()) == (style == {})
    (tmp_path / ".lithos" / "manifest.db").unlink()  # The manifest may be lost at any time.
    async with serving(tmp_path, storage=style) as lithos:
        assert (await times(lithos, note))[0] == CREATED


@pytest.mark.parametrize("watches", [True, False])
async def test_creation_time_survives_edits_by_people(tmp_path: Path, watches: bool) -> None:
    """Either the watcher or the next start detects the edit."""
    file = put_old(tmp_path)
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = await id_of(lithos)
        if watches:
            file.write_text("# N\n\nBy hand.\n")
            await lithos.call("lithos_note_update", id=note, agent="a", tags=["x"])
            assert (await times(lithos, note))[0] == CREATED
    file.write_text(file.read_text() + "\nBy hand, again.\n")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert (await times(lithos, note))[0] == CREATED


async def test_creation_time_in_the_file_takes_precedence(tmp_path: Path) -> None:
    file = put_old(tmp_path)
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = await id_of(lithos)
        await change(lithos, note, "edit")
        text = file.read_text()
        file.write_text(text.replace("---\n", "---\ncreated: 2021-02-03T04:05:06Z\n", 1))
        await change(lithos, note, "update")
        assert (await times(lithos, note))[0].startswith("2021-02-03T04:05:06")


async def test_note_at_the_path_of_a_deleted_note_is_new(tmp_path: Path) -> None:
    put_old(tmp_path)
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = await id_of(lithos)
        await change(lithos, note, "edit")
        await lithos.call("lithos_delete", id=note, agent="a")
    put_note(tmp_path, "n.md", "# N\n\nAnother.\n")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert (await times(lithos, await id_of(lithos)))[0] > CREATED


def test_earliest_known_creation_time_is_used_when_file_lacks_one() -> None:
    early, late, later = (datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2, 3))
    derived = Note(id="x", title="x", created_at=late, updated_at=later)
    assert with_creation(derived, late) is derived
    assert with_creation(derived, late, None, early).created_at == early
    assert with_creation(derived, late, later) is derived
    given = Note(id="x", title="x", created_at=late, updated_at=late)
    assert with_creation(given, later, early) is given
    edited = Note(id="x", title="x", created_at=later, updated_at=late)
    assert with_creation(edited, later).created_at == late, "never later than the update"


async def test_undo_writes_no_creation_time_into_a_persons_note(tmp_path: Path) -> None:
    """behaviour 254: the substitute for a missing creation time is not a difference between versions."""
    file = put_old(tmp_path, text="---\ntags: [a]\n---\nText.\n")
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = await id_of(lithos)
        await change(lithos, note, "edit")
        await change(lithos, note, "edit")
        answer = await lithos.call("lithos_restore", id=note, agent="b", version=1, base=3)
        assert (answer["status"], "merged_with" in answer) == ("updated", False)
        assert file.read_text() == "---\ntags: [a]\n---\nText.\n"
