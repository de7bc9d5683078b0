"""The key `similar` in the answer to the creation of a note (behaviour 287)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.ports import NewNote, Similar
from lithos.notes.writing.messages import WriteNote, WriteOutcome
from lithos.search.indexing.indexer import VectorIndexer
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.service import duplicates
from lithos.search.service.duplicates import TOLD, Duplicates
from tests.servers import Lithos, refusal, serving
from tests.text.words.test_similarity import ON_PUMPS, PUMP


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make writes wait for their duplicate search, even on a busy machine."""
    monkeypatch.setattr(duplicates, "PATIENCE", 60.0)


async def stored(lithos: Lithos) -> None:
    """Wait until every written note is in the vector index."""
    await lithos.server.get(VectorIndexer).converged()


async def test_write_of_a_rewritten_text_succeeds_and_names_the_original(tmp_path: Path) -> None:
    """behaviour 287"""
    async with serving(tmp_path) as lithos:
        assert "similar" not in await lithos.write("Cellar pump", PUMP, path="house")
        original = (await lithos.read((await lithos.call("lithos_list"))["items"][0]["id"]))["id"]
        await lithos.create("On pumps", ON_PUMPS)
        await stored(lithos)
        sentences = PUMP.split(". ")
        answer = await lithos.write("How the pump works", ". ".join(reversed(sentences)))
        assert answer["status"] == "created"
        assert answer["similar"] == [
            {"id": original, "title": "Cellar pump", "path": "house/cellar-pump.md", "match": "strong"}
        ]
        # Neither a note without a similar note nor an update gets a warning.
        assert "similar" not in await lithos.write("Ferry times", "The ferry leaves at nine and at noon.")
        assert "similar" not in await lithos.write("Cellar pump", PUMP + " Twice.", id=original)


async def test_at_most_three_visible_duplicates_are_named(tmp_path: Path) -> None:
    """behaviour 287"""
    async with serving(tmp_path) as lithos:
        for number in range(TOLD + 2):
            await lithos.create(f"Pump {number}", PUMP)
        await lithos.create("Mine", PUMP, agent="eve", access_scope="agent_private")
        await stored(lithos)
        answer = await lithos.write("Pump again", PUMP)
        assert len(answer["similar"]) == TOLD
        assert "Mine" not in [each["title"] for each in answer["similar"]]


async def test_late_duplicate_search_does_not_name_the_new_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 287"""
    async with serving(tmp_path) as lithos:
        for number in range(TOLD - 1):
            await lithos.create(f"Pump {number}", PUMP)
        await stored(lithos)
        search = lithos.server.get(Duplicates).similar
        begun, indexed = threading.Event(), threading.Event()

        def search_late(new: NewNote) -> list[Similar]:
            begun.set()
            assert indexed.wait(60)
            return search(new)

        async def write() -> WriteOutcome:
            outcome = await lithos.server.get(Knowledge).write(
                WriteNote(agent="ann", title="Pump again", content=PUMP)
            )
            await stored(lithos)
            indexed.set()
            return outcome

        monkeypatch.setattr(Duplicates, "similar", lambda self, new: search_late(new))
        outcome, similar = await lithos.server.get(Duplicates).beside(
            NewNote("Pump again", PUMP, "ann"), write
        )
        assert begun.is_set()
        assert len(similar) == TOLD - 1
        assert outcome.id not in [each.entry.note.id for each in similar]


async def test_bulk_writer_gets_only_the_first_duplicate_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:
        await lithos.create("Pump", PUMP)
        await stored(lithos)
        monkeypatch.setattr(duplicates, "RATE", 0.0)  # The allowance is never refilled.
        lithos.server.get(Duplicates)._left = 1.0
        told = ["similar" in await lithos.write(f"Pump {number}", PUMP) for number in range(3)]
        assert told == [True, False, False]
        monkeypatch.setattr(duplicates, "RATE", 1e9)
        assert "similar" in await lithos.write("Pump once more", PUMP)


async def test_note_is_written_without_a_warning_when_vectors_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:
        await lithos.create("Pump", PUMP)
        await stored(lithos)

        def refuse(self: object) -> None:
            raise SemanticUnavailable("no model")

        with monkeypatch.context() as patch:
            patch.setattr(type(lithos.server.get(SemanticBackend)), "_answering", refuse)
            assert "similar" not in await lithos.write("Pump again", PUMP)
        assert "similar" in await lithos.write("Pump once more", PUMP)


async def test_note_is_kept_when_its_duplicate_check_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:

        def fail(*_: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(type(lithos.server.get(SemanticBackend)), "nearest_to", fail)
        answer = await lithos.write("Pump", PUMP)
        assert (answer["status"], "similar" in answer) == ("created", False)
        # The refusal is a single exception, not an exception group.
        again = await lithos.call("lithos_write", title="Pump", content=PUMP, agent="tester")
        refusal(again, "slug_collision")
