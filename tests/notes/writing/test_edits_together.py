"""Waiting edits of one note, which are written together.

The note file changes once. Each edit gets its own version, event and answer.
"""

from __future__ import annotations

import errno
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.history.recording.backfill import settle_pending
from lithos.history.recording.recorder import Recorder
from lithos.history.rows.store import HistoryFailed
from lithos.kernel.values.errors import DocNotFound, StorageFailed, VersionConflict
from lithos.notes.writing import editing
from lithos.notes.writing.messages import EditNote, WriteNote, WriteOutcome
from lithos.text.outline.section_edit import SectionEdit
from lithos.text.yaml.vault_style import VaultStyle
from tests.fakes import Inline, Turns, ask_together, fail_writes, put_file, slip_in
from tests.kernel.actors.house import House

pytestmark = pytest.mark.autojump


def append(note_id: str, text: str, **fields) -> EditNote:
    return EditNote(id=note_id, agent="a", edit=SectionEdit(op="append", text=text), **fields)


async def together(house: House, *requests) -> list[object]:
    return await ask_together(
        house.ask, house.gate, WriteNote(agent="a", title="Holds", content="x"), *requests
    )


@pytest.fixture
def applied(house: House, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the paths of each batch of file changes."""
    batches: list[list[str]] = []
    real = house.files.apply

    def apply(changes):
        batches.append([change.path for change in changes])
        return real(changes)

    monkeypatch.setattr(house.files, "apply", apply)
    return batches


def by_a_person(house: House) -> None:
    put_file(house.files, "shared.md", house.files.read("shared.md").data.decode() + "By a person.\n")


def kept(house: House, note_id: str) -> list[tuple[int, str, str]]:
    rows = house.history.rows(note_id, 100)[0]
    return [(row.version, row.op, house.history.content(note_id, row.version).decode()) for row in rows][::-1]


async def test_waiting_edits_change_the_file_once_but_have_separate_versions(house, applied):
    """behaviour 216"""
    async with house.running():
        note = await house.create("Shared")
        applied.clear()
        outcomes = await together(house, *(append(note.id, f"Text {n}.") for n in range(16)))
        assert applied == [["holds.md"], ["shared.md"]]
        assert [outcome.version for outcome in outcomes] == [*range(2, 18)]
        assert await house.becomes_consistent()
    versions = kept(house, note.id)
    assert [version for version, *_ in versions] == [*range(1, 18)]
    for number, (version, op, text) in enumerate(versions[1:]):
        assert op == "updated"
        assert f"version: {version}" in text
        assert text.count("Text ") == number + 1
    assert versions[-1][2].encode() == house.files.read("shared.md").data
    assert house.told().count(("note.updated", "shared.md")) == 16


async def test_refused_edit_is_decided_after_earlier_edits_are_on_disk(house, applied):
    async with house.running():
        note = await house.create("Shared")
        applied.clear()
        first, stale, last = await together(
            house,
            append(note.id, "One.", expected_version=1),
            append(note.id, "Two.", expected_version=1),
            append(note.id, "Three."),
        )
        assert applied == [["holds.md"], ["shared.md"], ["shared.md"]]
        assert isinstance(stale, VersionConflict)
        assert stale.extras["current_version"] == first.version == 2
        assert last.version == 3
        text = house.files.read("shared.md").data.decode()
        assert "One." in text
        assert "Two." not in text
        assert await house.becomes_consistent()


async def test_other_changes_between_waiting_edits_keep_their_position(house):
    async with house.running():
        note = await house.create("Shared")
        one, update, two, gone, three = await together(
            house,
            append(note.id, "One."),
            WriteNote(agent="a", id=note.id, content="Anew."),
            append(note.id, "Two."),
            append("00000000-0000-4000-8000-00000000dead", "x"),
            append(note.id, "Three."),
        )
        assert [each.version for each in (one, update, two, three)] == [2, 3, 4, 5]
        assert isinstance(gone, DocNotFound)
        text = house.files.read("shared.md").data.decode()
        assert "One." not in text
        assert text.index("Anew.") < text.index("Two.") < text.index("Three.")


async def test_edits_keep_their_order_around_a_refusal_and_a_save(house, monkeypatch):
    """The second edit conflicts if only the first edit precedes it.

    The second edit is valid if a person's save precedes both edits.
    """
    async with house.running():
        note = await house.create("Shared")
        slip_in(monkeypatch, house.files, partial(by_a_person, house), path="shared.md")
        outcomes = await together(
            house,
            append(note.id, "One."),
            append(note.id, "Two.", expected_version=3),
            append(note.id, "Three."),
        )
        assert [outcome.version for outcome in outcomes] == [3, 4, 5]
        text = house.files.read("shared.md").data.decode()
        assert text.index("By a person.") < text.index("One.") < text.index("Two.") < text.index("Three.")


async def test_external_save_after_the_edits_gets_the_next_version(house, monkeypatch):
    """behaviour 216: the edits were on disk only briefly, but each edit has its own version."""
    async with house.running():
        note = await house.create("Shared")
        slip_in(monkeypatch, house.files, partial(by_a_person, house), path="shared.md", after=True)
        one, two = await together(house, append(note.id, "One."), append(note.id, "Two."))
        three = await house.ask(append(note.id, "Three."))
        assert [one.version, two.version, three.version] == [2, 3, 5]
        text = house.files.read("shared.md").data.decode()
        assert text.index("One.") < text.index("Two.") < text.index("By a person.") < text.index("Three.")
        assert await house.becomes_consistent()
    assert [(version, op) for version, op, _ in kept(house, note.id)][1:] == [
        (2, "updated"), (3, "updated"), (4, "outside"), (5, "updated"),
    ]  # fmt: skip


async def test_full_disk_refuses_all_waiting_edits_and_changes_nothing(house, monkeypatch):
    async with house.running():
        note = await house.create("Shared")
        before = house.files.read("shared.md").data
        fail_writes(monkeypatch, b"doomed", errno.ENOSPC)
        answers = await together(
            house, append(note.id, "One."), append(note.id, "doomed"), append(note.id, "x")
        )
        assert [type(answer) for answer in answers] == [StorageFailed] * 3
        assert house.files.read("shared.md").data == before
        assert (await house.ask(append(note.id, "Fine."))).version == 2
        assert await house.becomes_consistent()
    assert [version for version, *_ in kept(house, note.id)] == [1, 2]


async def test_edits_are_not_confirmed_when_their_versions_cannot_be_stored(house, monkeypatch):
    async with house.running():
        note = await house.create("Shared")
        real = house.history.add

        def add(versions, *settled, **how):
            if len(versions) > 1:
                raise HistoryFailed("The disk is full.")
            return real(versions, *settled, **how)

        monkeypatch.setattr(house.history, "add", add)
        answers = await together(house, append(note.id, "One."), append(note.id, "Two."))
        assert [answer.extras["version"] for answer in answers] == [2, 3]
        text = house.files.read("shared.md").data.decode()
        assert text.index("One.") < text.index("Two.")
        assert await house.becomes_consistent()


async def test_cancelled_caller_does_not_affect_the_other_edits(house):
    async with house.running():
        note = await house.create("Shared")
        scope, outcomes = trio.CancelScope(), list[WriteOutcome]()

        async def edit(text: str, scope: trio.CancelScope) -> None:
            with scope:
                outcomes.append(await house.ask(append(note.id, text)))

        async with trio.open_nursery() as nursery:
            house.gate.shut()
            nursery.start_soon(house.create, "Holds")
            for text, one in (("One.", trio.CancelScope()), ("Two.", scope), ("Three.", trio.CancelScope())):
                await wait_all_tasks_blocked()
                nursery.start_soon(edit, text, one)
            await wait_all_tasks_blocked()
            house.gate.let_oldest()  # Let the writer read the sources.
            await wait_all_tasks_blocked()
            house.gate.let_oldest()  # Let the writer make the edits.
            await wait_all_tasks_blocked()
            scope.cancel()
            await wait_all_tasks_blocked()
            house.gate.open()
        assert sorted(outcome.version for outcome in outcomes) == [2, 4]
        assert house.files.read("shared.md").data.decode().count("Two.") == 1
        assert await house.becomes_consistent()
    assert [version for version, *_ in kept(house, note.id)] == [1, 2, 3, 4]


async def test_waiting_edits_in_a_served_vault_each_get_a_version(house, applied):
    house.catalogue.style = VaultStyle.of_foreign()
    async with house.running():
        (house.root / "knowledge" / "theirs.md").write_text("Their words.\n")
        house.settle(house.scan())
        note = next(entry.note for entry in house.catalogue if entry.path == "theirs.md")
        applied.clear()
        outcomes = await together(house, *(append(note.id, f"Text {n}.") for n in range(3)))
        assert applied[1:] == [["theirs.md"]]
        assert [outcome.version for outcome in outcomes] == [2, 3, 4]
        assert [version for version, *_ in kept(house, note.id)] == [1, 2, 3, 4]
        assert (
            house.files.read("theirs.md")
            .data.decode()
            .endswith("Their words.\n\nText 0.\n\nText 1.\n\nText 2.\n")
        )
        assert await house.becomes_consistent()


async def test_edits_yield_to_the_event_loop_and_split_long_files(house, applied, monkeypatch):
    turns, prepared = Turns(), list[int]()
    real = editing.EditPreparation.prepare_edit

    def prepare(self, *given):
        prepared.append(turns.number)
        return real(self, *given)

    monkeypatch.setattr(editing.EditPreparation, "prepare_edit", prepare)
    async with house.running():
        note = await house.create("Shared", "word " * 150)
        trio.lowlevel.add_instrument(turns)
        monkeypatch.setattr(editing, "TURN", 3 * 1024)
        await together(house, *(append(note.id, f"Text {n}.") for n in range(16)))
        trio.lowlevel.remove_instrument(turns)
        assert len(prepared) == 16
        assert max(map(prepared.count, prepared)) in (2, 3)
        applied.clear()
        monkeypatch.setattr(editing, "TOGETHER", 512)
        await together(house, *(append(note.id, f"Text {n}.") for n in range(3)))
        assert applied == [["shared.md"]] * 3


@pytest.mark.parametrize("is_written", [True, False])
async def test_kill_leaves_all_versions_of_the_waiting_edits_or_none(house, monkeypatch, is_written):
    """behaviour 226: only the file decides, although it contains just the bytes of the last edit."""
    async with house.running():
        note = await house.create("Shared")
        before = house.files.read("shared.md").data
        monkeypatch.setattr(Recorder, "_tidy", lambda self: Inline().run(lambda: None))
        await together(house, *(append(note.id, f"Text {n}.") for n in range(4)))
    assert len(house.history.pending()) > 3
    if not is_written:  # Simulate that the process ended before the file was changed.
        put_file(house.files, "shared.md", before.decode())
        house.store._writer.execute("DELETE FROM events WHERE type='note.updated'")
        house.store._writer.execute("DELETE FROM note_intents")
        house.manifest._writer.execute("DELETE FROM files")
    monkeypatch.undo()
    house.restart()
    await settle_pending(Recorder(house.history, Inline()), house.catalogue, house.files, ())
    assert [version for version, *_ in kept(house, note.id)] == ([1, 2, 3, 4, 5] if is_written else [1])
    assert not house.history.pending()
