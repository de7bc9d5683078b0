"""The store of sessions: growth of blocks, whole steps, projects, and deletion from all tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from lithos.search.index.chunk_rows import Codes
from lithos.sessions.model.session import Turn, session_id
from lithos.sessions.rows.blocks import (
    FULL_TURNS,
    BlockVectors,
    pack_turns,
    place_of,
    serial_of,
    unpack_turns,
)
from lithos.sessions.rows.reading import SessionFilter
from lithos.sessions.rows.schema import SESSIONS, TABLES, Progress, SessionFacts
from lithos.sessions.rows.store import Embedding, SessionStore
from lithos.sessions.rows.words import EVERY_TURN
from tests.sessions.transcripts import NOW, builtin_embedding

FACTS = SessionFacts(
    id=session_id("codex", "1"), client="codex", agent="codex", project="shop", path="/a", folder="f"
)
PROGRESS = Progress(path="/a", folder="f", memory={"id": FACTS.id})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    store = SessionStore.open(tmp_path / SESSIONS, NOW)
    yield store
    store.close()


def turn(number: int, text: str = "", **more: Any) -> Turn:
    return Turn(number, "user", NOW + timedelta(minutes=number), text or f"Turn {number}", **more)


def append(store: SessionStore, turns: Sequence[Turn], facts: SessionFacts = FACTS, **more: Any) -> None:
    known = store.all_progress().get(facts.path, evolve(PROGRESS, path=facts.path))
    store.append(facts, known, turns, builtin_embedding(), NOW, **more)


def found(store: SessionStore, word: str) -> list[str]:
    count = store.turn_count()
    hits = store.by_words(store.idf(store.stemmer.stems(word), count), count, 10, EVERY_TURN)
    return [turn.text for _, turn in store.at([serial for serial, _ in hits]).values()]


def count_rows(store: SessionStore) -> dict[str, int]:
    tables = (*TABLES, "words")
    return {name: store._all(f"SELECT COUNT(*) FROM {name}")[0][0] for name in tables}


def test_turns_are_packed_without_loss() -> None:
    turns = [
        Turn(7, "assistant", None, "é 漢字 \U0001f600", ("Read",), ("a/b.py",), ("out",), "key", 3),
        Turn(8, "agent", NOW, ""),
    ]
    assert unpack_turns(pack_turns(turns), 7) == turns
    assert place_of(serial_of(12_345, 17)) == (12_345, 17)


def test_vectors_of_blocks_can_be_joined() -> None:
    some: list[Codes] = [np.full((rows, 4), rows, np.int8) for rows in (2, 0, 1)]
    packed = BlockVectors.of(some).pack()
    joined = BlockVectors.unpack(*(2 * each for each in packed))
    assert joined.places.tolist() == [0, 0, 2, 0, 0, 2]
    assert joined.codes[:, 0].tolist() == [2, 2, 1, 2, 2, 1]
    assert [len(codes) for codes in BlockVectors.unpack(*packed).before(3)] == [2, 0, 1]
    assert BlockVectors.unpack(*BlockVectors.of([]).pack()).codes.size == 0


def test_growing_session_keeps_the_serials_of_its_turns(store: SessionStore) -> None:
    append(store, [turn(n) for n in range(1, 4)])
    before = store.by_words({"turn": 1.0}, 3, 10, EVERY_TURN)
    append(store, [turn(3, "Turn 3 grew"), *[turn(n) for n in range(4, 3 * FULL_TURNS)]])
    assert {serial for serial, _ in before} <= {
        serial for serial, _ in store.by_words({"turn": 1.0}, 3, 1_000, EVERY_TURN)
    }
    known = store.find(FACTS.id)
    assert known is not None
    turns = store.turns(known[0], 1, 1_000)
    assert [each.number for each in turns] == list(range(1, 3 * FULL_TURNS))
    assert turns[2].text == "Turn 3 grew"
    assert known[2].turns == len(turns) == store._all("SELECT COUNT(*) FROM words")[0][0]
    assert (known[2].begun, known[2].ended) == (turns[0].when, turns[-1].when)


def test_replaced_turn_is_found_only_by_its_new_words(store: SessionStore) -> None:
    append(store, [turn(1, "An old zebra")])
    append(store, [turn(1, "A new lion")])
    assert found(store, "zebra") == []
    assert found(store, "lion") == ["A new lion"]


def test_failed_step_leaves_nothing(store: SessionStore) -> None:
    append(store, [turn(1)])
    before = count_rows(store), store.all_progress()

    def fail(_: Sequence[Turn]) -> list[Codes]:
        raise ZeroDivisionError

    progress = evolve(store.all_progress()["/a"], offset=99)
    with pytest.raises(ZeroDivisionError):
        store.append(FACTS, progress, [turn(2)], Embedding("model", fail), NOW)
    assert (count_rows(store), store.all_progress()) == before


def test_project_that_becomes_known_later_applies_to_all_turns(store: SessionStore) -> None:
    append(store, [turn(1, "A zebra")], evolve(FACTS, project=None))
    append(store, [turn(2, "Another zebra")], evolve(FACTS, project="Shop"))
    (number,) = [number for number, key in store.projects().items() if key == "Shop"]
    scope = evolve(EVERY_TURN, projects=frozenset((number,)))
    assert len(store.by_words({"zebra": 1.0}, 2, 10, scope)) == 2
    append(store, [turn(1)], evolve(FACTS, id="ses_2", path="/b", project="SHOP"))
    assert sorted(filter(None, store.projects().values())) == ["Shop"]


def test_deletion_leaves_no_row_of_a_session(store: SessionStore) -> None:
    append(store, [turn(n) for n in range(1, 100)])
    store.mark_gone(["/a"], NOW)
    assert store.delete_gone(NOW - timedelta(seconds=1), 10) == 0
    assert store.delete_gone(NOW, 10) == 1
    assert set(count_rows(store).values()) == {0}


def test_oldest_sessions_are_deleted_beyond_the_limit(store: SessionStore) -> None:
    for n in range(5):
        append(store, [turn(n + 1)], evolve(FACTS, id=f"ses_{n}", path=f"/{n}"))
    assert store.delete_oldest(3, 10) == 2
    assert [each.id for each in store.page(SessionFilter(), 10, 0)] == ["ses_4", "ses_3", "ses_2"]
    assert store.is_forgotten("ses_0")
    store.mark_gone(["/0"], NOW)
    assert not store.is_forgotten("ses_0")


def test_number_of_forgotten_sessions_is_bounded(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithos.sessions.rows.removal.MOST_FORGOTTEN", 2)
    for n in range(5):
        append(store, [turn(1)], evolve(FACTS, id=f"ses_{n}", path=f"/{n}"))
        assert store.forget(f"ses_{n}")
    assert count_rows(store)["forgotten"] == 2


def test_words_in_scripts_without_spaces_are_found(store: SessionStore) -> None:
    append(store, [turn(1, "数据库迁移失败"), turn(2, "Bahnhofstraße in Zürich"), turn(3, "हिन्दी में लिखा")])
    assert found(store, "迁移") == ["数据库迁移失败"]
    assert found(store, "zurich") == ["Bahnhofstraße in Zürich"]
    assert found(store, "हिन्दी") == ["हिन्दी में लिखा"]


def test_damaged_database_is_moved_aside(tmp_path: Path) -> None:
    (tmp_path / SESSIONS).write_bytes(b"damaged" * 1_000)
    store = SessionStore.open(tmp_path / SESSIONS, NOW)
    append(store, [turn(1, "A zebra")])
    assert found(store, "zebra") == ["A zebra"]
    store.close()
    assert any(".corrupt-" in path.name for path in tmp_path.iterdir())
