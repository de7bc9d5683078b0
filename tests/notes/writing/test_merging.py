"""Merging of updates with later changes by other agents and by people with editors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import InvalidInput, SlugCollision, VersionConflict
from lithos.notes.files.files import NoteFiles
from lithos.notes.format.document import parse_document
from lithos.notes.model.note import Document
from lithos.notes.service.merging import Merging
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import MERGE, PatchNote, WriteNote, WriteOutcome
from tests.kernel.actors.watched import WatchedHouse

TEXT = "first\n\nsecond\n\nthird"


class Editor:
    """Another program, which saves a file just before the writer changes that file."""

    def __init__(self) -> None:
        self.saves: Callable[[], None] | None = None

    def watch(self, patch: pytest.MonkeyPatch) -> Editor:
        write = NoteFiles.apply

        def apply(files: NoteFiles, operations: Any) -> Any:
            saves, self.saves = self.saves, None
            if saves is not None:
                saves()
            return write(files, operations)

        patch.setattr(NoteFiles, "apply", apply)
        return self


class Kept:
    """A history that returns the same bytes for every version of every note."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data

    def content(self, note_id: str, version: int) -> bytes | None:
        return self._data


@pytest.fixture
def editor(monkeypatch):
    return Editor().watch(monkeypatch)


def document(house: WatchedHouse, path: str) -> Document:
    return parse_document((house.folder / path).read_bytes(), path, house.clock())


def save(house: WatchedHouse, path: str, old: str, new: str) -> None:
    """Save a file in the way of an editor: write a temporary file, then rename it over the note."""
    file = house.folder / path
    text = file.read_text()
    assert old in text
    beside = file.with_name(".editor.tmp")
    beside.write_text(text.replace(old, new))
    os.replace(beside, file)


class Agent:
    """An agent that updates one note and merges conflicts."""

    def __init__(self, house: WatchedHouse, history: Any, name: str = "ann") -> None:
        self._house, self._name = house, name
        self._merging = Merging(house.catalogue, history, Inline())

    async def write(self, note: str, expected: int, **fields: Any) -> WriteOutcome:
        request = WriteNote(agent=self._name, id=note, expected_version=expected, on_conflict=MERGE, **fields)
        return await self._merging.submit(request, self._house.ask)

    async def patch(self, note: str, expected: int, **fields: Any) -> WriteOutcome:
        request = PatchNote(agent=self._name, id=note, expected_version=expected, on_conflict=MERGE, **fields)
        return await self._merging.submit(request, self._house.ask)


async def test_overlap_is_refused_with_three_texts_and_nothing_is_written(house):
    """behaviour 218"""
    async with house.with_note(TEXT, status="active", metadata={"k": 1}) as made:
        await house.update(
            made.id, "Note", TEXT.replace("second", "theirs"), status="archived", metadata={"k": 2}
        )
        before, told = (house.folder / made.path).read_bytes(), house.told()
        with pytest.raises(VersionConflict) as refused:
            await Agent(house, house.history).write(
                made.id,
                1,
                content=TEXT.replace("second", "mine").replace("first", "new"),
                status="quarantined",
                metadata={"k": None},
            )
        assert refused.value.extras.pop("current_updated_at") is not None
        assert refused.value.extras == {
            "current_version": 2,
            "conflicts": [
                {"key": "status", "base": "active", "mine": "quarantined", "theirs": "archived"},
                {"key": "k", "base": 1, "mine": None, "theirs": 2},
                {"line": 3, "base": "second\n", "mine": "mine\n", "theirs": "theirs\n"},
            ],
        }
        assert "3 places" in refused.value.message
        assert (house.folder / made.path).read_bytes() == before
        assert house.told() == told


async def test_patch_is_merged_and_leaves_the_body_unchanged(house):
    """behaviour 218"""
    async with house.with_note(TEXT, tags=("a",), metadata={"k": "x", "gone": 1}) as made:
        save(house, made.path, "second", "by hand  \r\n\r\n\r\nmore")
        await house.settle_paths(made.path)
        body = (house.folder / made.path).read_bytes().partition(b"\n# ")[2]
        outcome = await Agent(house, house.history).patch(
            made.id, 1, title="Title", tags=("a", "b"), status="archived", metadata={"gone": None, "new": [1]}
        )
        assert (outcome.version, outcome.merged_with) == (3, 2)
        found = document(house, made.path).note
        assert (found.title, found.tags, found.status) == ("Title", ("a", "b"), "archived")
        assert found.extra == {"k": "x", "new": [1]}
        assert (house.folder / made.path).read_bytes().partition(b"\n# ")[2] == body.replace(
            b"Note", b"Title", 1
        )


@pytest.mark.parametrize("is_taken_up", [False, True])
async def test_external_edit_between_read_and_write_is_merged(house, is_taken_up):
    """behaviour 219"""
    async with house.with_note(TEXT) as made:
        save(house, made.path, "first", "by hand")
        if is_taken_up:
            await house.settle_paths(made.path)
        outcome = await Agent(house, house.history).write(made.id, 1, content=TEXT.replace("third", "by ann"))
        assert (outcome.version, outcome.merged_with) == (3, 2)
        assert document(house, made.path).content == "by hand\n\nsecond\n\nby ann"
        await house.settle_paths(made.path)
    assert await house.becomes_consistent()


@pytest.mark.parametrize("is_outdated", [False, True])
async def test_external_save_just_before_the_replacement_is_merged_too(house, editor, is_outdated):
    """behaviour 219: another program saves after the writer has read and merged the note."""
    async with house.with_note(TEXT) as made:
        if is_outdated:
            await house.update(made.id, "Note", TEXT.replace("second", "second, by bob"))
        editor.saves = lambda: save(house, made.path, "first", "by hand")
        outcome = await Agent(house, house.history).write(made.id, 1, content=TEXT.replace("third", "by ann"))
        middle = "second, by bob" if is_outdated else "second"
        assert document(house, made.path).content == f"by hand\n\n{middle}\n\nby ann"
        assert outcome.merged_with == outcome.version - 1
        await house.settle_paths(made.path)
    assert await house.becomes_consistent()


async def test_update_of_an_externally_edited_line_is_refused(house, editor):
    """behaviour 219"""
    async with house.with_note(TEXT) as made:
        editor.saves = lambda: save(house, made.path, "second", "by hand")
        with pytest.raises(VersionConflict) as refused:
            await Agent(house, house.history).write(made.id, 1, content=TEXT.replace("second", "by ann"))
        assert refused.value.extras["conflicts"] == [
            {"line": 3, "base": "second\n", "mine": "by ann\n", "theirs": "by hand\n"}
        ]
        assert document(house, made.path).content == TEXT.replace("second", "by hand")


async def test_external_edit_read_before_ingestion_is_the_merge_base(house):
    """behaviour 219: an agent read the edit before its ingestion, and another client overwrote the edit."""
    async with house.with_note(TEXT) as made:
        save(house, made.path, "first", "by hand")
        loaded = await NoteTexts(house.files, house.catalogue).load(house.catalogue.get(made.id))
        assert loaded is not None
        assert loaded.document.note.version == 2
        bob = Agent(house, house.history, "bob")
        theirs = loaded.document.content.replace("second", "by bob")
        assert (await bob.write(made.id, 2, content=theirs)).merged_with is None
        mine = loaded.document.content.replace("third", "by ann")
        outcome = await Agent(house, house.history).write(made.id, 2, content=mine)
        assert (outcome.version, outcome.merged_with) == (4, 3)
        assert document(house, made.path).content == "by hand\n\nby bob\n\nby ann"


async def test_update_is_not_merged_when_its_base_is_missing(house):
    """history §3: the base is no longer kept, or the history is switched off."""
    async with house.with_note(TEXT) as made:
        await house.update(made.id, "Note", TEXT.replace("first", "FIRST"))
        cases = {
            "version 1 is not in the history": (Kept(None), 1),
            "version 9 is not in the history": (house.history, 9),
            f"version {2**80} is not in the history": (house.history, 2**80),
            "version -1 is not in the history": (house.history, -1),
            "history.enabled is off": (None, 1),
        }
        for reason, (history, expected) in cases.items():
            with pytest.raises(VersionConflict) as refused:
                await Agent(house, history).write(made.id, expected, content=TEXT)
            assert reason in refused.value.message
            assert list(refused.value.extras) == ["current_version", "current_updated_at"]
            assert refused.value.extras["current_version"] == 2


async def test_base_that_is_not_a_readable_note_is_refused(house):
    async with house.with_note(TEXT) as made:
        await house.update(made.id, "Note", TEXT.replace("first", "FIRST"))
        with pytest.raises(VersionConflict) as refused:
            await Agent(house, Kept(b"---\na: [\n---\n\nText")).write(made.id, 1, content=TEXT)
        assert "cannot be read as a note" in refused.value.message
        assert refused.value.extras["current_version"] == 2


async def test_values_that_are_invalid_after_a_merge_are_refused(house):
    """The title of another note, a text that exceeds the limit only after the merge, and an invalid URL."""
    async with house.with_note("a" * 450 + "\n\nb") as made:
        await house.create("Taken")
        await house.update(made.id, "Note", "a" * 450 + "\n\nb\n\n" + "c" * 450)
        agent = Agent(house, house.history)
        with pytest.raises(SlugCollision):
            await agent.write(made.id, 1, title="Taken")
        with pytest.raises(InvalidInput):
            await agent.write(made.id, 1, source_url="nonsense")
        with pytest.raises(Exception, match="bytes, more than"):
            await agent.write(made.id, 1, content="d" * 300 + "\n\n" + "a" * 450 + "\n\nb")
        assert house.catalogue.get(made.id).note.version == 2


async def test_concurrent_changes_of_different_paragraphs_are_all_kept(house):
    """behaviour 218: every agent merges its change with the version it read, while an editor saves.

    The version that an agent has read may be old.
    """
    agents, rounds = 8, 6
    async with house.watching():
        paragraphs = [f"paragraph {n}: begin" for n in range(agents)]
        text = "by hand 0\n\n" + "\n\n".join(paragraphs)
        made = await house.create("Note", text)
        merged: list[int] = []
        overlaps: list[Any] = []
        texts = NoteTexts(house.files, house.catalogue)

        async def work(number: int) -> None:
            agent = Agent(house, house.history, f"agent-{number}")
            turn = 0
            while turn < rounds:
                loaded = await texts.load(house.catalogue.get(made.id))
                if loaded is None:  # The editor is writing the file.
                    await trio.sleep(0.01)
                    continue
                mine, version = loaded.document.content, loaded.document.note.version
                line = next(each for each in mine.split("\n") if each.startswith(f"paragraph {number}:"))
                changed = mine.replace(line, f"{line} {number}.{turn}")
                try:
                    outcome = await agent.write(made.id, version, content=changed)
                except VersionConflict as conflict:
                    # If the first of two successive saves was never ingested, it has no base. No change
                    # overlaps.
                    overlaps.extend(conflict.extras.get("conflicts", ()))
                    continue
                turn += 1
                if outcome.merged_with is not None:
                    merged.append(outcome.version)

        async with trio.open_nursery() as workers:
            for number in range(agents):
                workers.start_soon(work, number)
            for turn in range(4):
                save(house, made.path, f"by hand {turn}", f"by hand {turn + 1}")
                for _ in range(20):
                    await trio.lowlevel.checkpoint()
        await house.settle_paths(made.path)
        found = document(house, made.path).content.split("\n\n")
        assert found == ["by hand 4"] + [
            f"paragraph {n}: begin" + "".join(f" {n}.{turn}" for turn in range(rounds)) for n in range(agents)
        ]
        assert overlaps == []
        assert len(merged) > agents
    assert await house.becomes_consistent()


async def test_request_without_a_base_is_never_merged(house):
    """The writer itself refuses the request. Only the service supplies a base."""
    async with house.with_note(TEXT) as made:
        await house.update(made.id, "Note", "other")
        request = WriteNote(agent="a", id=made.id, content="x", expected_version=1, on_conflict=MERGE)
        with pytest.raises(VersionConflict):
            await house.ask(request)
        based = attrs.evolve(request, expected_version=2, base=house.history.content(made.id, 1))
        assert (await house.ask(based)).merged_with is None, "it is current"
