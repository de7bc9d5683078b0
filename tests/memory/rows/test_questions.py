"""Remembered questions in `stats.db`, and their vectors in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import apsw
import numpy as np
import pytest

from lithos.memory.model.memory import ApplyFeedback, AskedQuestion, NodeStats
from lithos.memory.model.questions import (
    QuestionFilter,
    digest_question,
    entry_weight,
    evidence,
    kernel,
    sketch_of,
)
from lithos.memory.rows import question_matrix
from lithos.memory.rows.question_matrix import QuestionMatrix, QuestionVector
from lithos.memory.rows.stats import StatsStore
from lithos.search.index.chunk_rows import encode_rows
from tests.fakes import START

DIMS = 8


def codes(*direction: float) -> bytes:
    vector = np.zeros(DIMS, np.float32)
    vector[: len(direction)] = direction
    return encode_rows(vector[None]).tobytes()


def asked(text: str, vector: bytes, **more: Any) -> AskedQuestion:
    given = {"codes": vector, "embedder": "e", "theta": 0.6} | more
    return AskedQuestion(text=text, digest=digest_question(text), **given)


def feedback(question: AskedQuestion | None, *cited: str, **more: Any) -> ApplyFeedback:
    spaces = dict.fromkeys(cited, "n")
    return ApplyFeedback(task_id="t", cited=cited, question=question, namespaces=spaces, **more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StatsStore]:
    store = StatsStore.open(tmp_path / "stats.db", START)
    store.remembered.begin("e", DIMS)
    yield store
    store.close()


def apply(store: StatsStore, taught: ApplyFeedback, most: int = 100, now: datetime = START) -> None:
    with store.transaction():
        store.writing.questions.apply(taught, most, now)
    store.publish()


def counts(store: StatsStore) -> dict[tuple[str, str], tuple[float, float]]:
    notes = store.reading.questions.notes()
    entries = [entry for note in notes for entry in store.reading.questions.of_note(note, 100)]
    return {(each.question, each.note_id): (round(each.a, 4), round(each.b, 4)) for each in entries}


#: Cosine similarities: 0.8 for ONE and NEAR, 0 for ONE and FAR.
ONE, NEAR, FAR = codes(1), codes(0.8, 0.6), codes(0, 0, 1)


def test_feedback_creates_and_changes_question_entries(store: StatsStore) -> None:
    """behaviour 267"""
    apply(store, feedback(asked("one", ONE), "a", ignored=("b",)))
    apply(store, feedback(asked("far", FAR), "b"))
    assert counts(store) == {("one", "a"): (1, 0), ("far", "b"): (1, 0)}
    # k = (0.8 - 0.6) / 0.4 = 0.5
    apply(store, feedback(asked("near", NEAR), "a", ignored=("b",)))
    assert counts(store)["one", "a"] == (pytest.approx(1.25, abs=0.01), 0)
    assert counts(store)["near", "a"] == (1, 0)
    assert counts(store)["far", "b"] == (1, 0)
    apply(store, feedback(asked("near", NEAR), "b", misleading=("a",)))
    found = counts(store)
    # ONE gets 0.3 x 0.5 because it was not cited, and 0.5 because it was misleading. NEAR itself gets 0.3 and
    # 1.
    assert found["one", "a"] == (pytest.approx(1.25, abs=0.01), pytest.approx(0.65, abs=0.02))
    assert found["near", "a"] == (1, pytest.approx(1.3, abs=0.001))
    assert found["near", "b"] == (1, 0)


def test_receipt_without_a_question_teaches_nothing(store: StatsStore) -> None:
    apply(store, feedback(None, "a"))
    apply(store, feedback(asked("one", ONE), ignored=("a",)))
    apply(store, feedback(asked("one", ONE), "a"), most=0)
    assert counts(store) == {}


def test_feedback_without_a_model_counts_only_for_equal_questions(store: StatsStore) -> None:
    apply(store, feedback(asked("one", ONE), "a"))
    apply(store, feedback(asked("near", b"", embedder=""), "a"))
    apply(store, feedback(asked("near", b"", embedder=""), misleading=("a",)))
    assert counts(store) == {("one", "a"): (1, 0), ("near", "a"): (1, 1)}
    assert [each.question for each in store.reading.questions.unembedded("e")] == ["near"]
    with store.transaction():
        (waiting,) = store.writing.questions.unembedded("e")
        store.writing.questions.embed("e", [(waiting.id, NEAR)])
        assert store.writing.questions.unembedded("e") == []
    store.publish()
    assert len(store.remembered) == 2


def test_oldest_questions_are_deleted_first(store: StatsStore) -> None:
    """behaviour 268"""
    for number in range(5):
        now = START + timedelta(minutes=number)
        apply(store, feedback(asked(f"q{number}", FAR), f"n{number}", sketches={f"n{number}": b"x"}), 3, now)
    assert [question for question, _ in counts(store)] == ["q2", "q3", "q4"]
    assert len(store.remembered) == 3
    assert store.reading.questions.sketch("n0") is None
    assert store.reading.questions.sketch("n4") == b"x"


def test_question_entries_are_deleted_by_note_agent_and_time(store: StatsStore) -> None:
    for number, (note, agent) in enumerate((n, a) for n in "ab" for a in ("ann", "bob", None)):
        question = asked(f"q{number}", FAR, agent_id=agent)
        apply(store, feedback(question, note), now=START + timedelta(days=number))

    def forget(**wanted: Any) -> int:
        with store.transaction():
            number = store.reading.questions.count(QuestionFilter(**wanted))
            assert store.writing.questions.forget(QuestionFilter(**wanted)) == number
        store.publish()
        return number

    assert forget(agent_id="ann", note_ids=("b",)) == 1
    assert forget(agent_id="ann") == 1
    assert forget(agent_id="nobody") == 0
    assert forget(since=START + timedelta(days=4), until=START + timedelta(days=4)) == 1
    assert forget(until=START + timedelta(days=1)) == 1
    assert forget(note_ids=("b",)) == 1
    assert len(store.remembered) == len(counts(store)) == 1
    assert forget(since=datetime(2000, 1, 1, tzinfo=UTC)) == 1
    assert len(store.remembered) == 0


def test_rewrite_of_a_note_halves_its_entries_once(store: StatsStore) -> None:
    """behaviour 268"""
    old, new = sketch_of("what it said"), sketch_of("something else")
    apply(store, feedback(asked("one", ONE), "a", sketches={"a": old}))
    apply(store, feedback(asked("far", FAR), "b"))
    apply(store, feedback(asked("one", ONE), misleading=("a",)))
    for halved in (1, 0):
        with store.transaction():
            assert store.writing.questions.halve("a", old, new) == halved
    assert counts(store) == {("one", "a"): (0.5, 0.5), ("far", "b"): (1, 0)}
    apply(store, feedback(asked("near", NEAR), "a", sketches={"a": old}))
    assert store.reading.questions.sketch("a") == new


def test_question_that_was_once_asked_openly_stays_open(store: StatsStore) -> None:
    for is_private, expected in ((True, True), (False, False), (True, False)):
        apply(store, feedback(asked("one", ONE, is_private=is_private), "a"))
        (entry,) = store.reading.questions.of_note("a", 5)
        assert entry.is_private is expected
    apply(store, feedback(asked("private", NEAR, is_private=True), "b"))
    apply(store, feedback(asked("one", ONE), "b"))
    assert [each.is_private for each in store.reading.questions.of_note("b", 5)] == [True, False]


def test_rolled_back_transaction_does_not_change_a_vector(store: StatsStore) -> None:
    apply(store, feedback(asked("one", ONE), "a"))
    (before,) = store.remembered.weigh(np.frombuffer(ONE, np.int8), 0.6)

    def give_up() -> None:
        with store.transaction():
            store.writing.questions.apply(feedback(asked("one", ONE), "a", "b"), 100, START)
            store.writing.questions.forget(QuestionFilter())
            raise RuntimeError("undone")

    with pytest.raises(RuntimeError, match="undone"):
        give_up()
    store.publish()
    assert store.remembered.weigh(np.frombuffer(ONE, np.int8), 0.6) == [before]


def test_vectors_loaded_page_by_page_equal_the_vectors_in_memory(store: StatsStore) -> None:
    for number in range(7):
        apply(store, feedback(asked(f"q{number}", codes(1, number / 10)), f"n{number % 3}"))
    fresh = QuestionMatrix()
    fresh.begin("e", DIMS)
    after: int | None = 0
    while after is not None:
        after = store.reading.questions.load(fresh, after, 2)
    query = np.frombuffer(ONE, np.int8)
    assert fresh.weigh(query, 0.6) == store.remembered.weigh(query, 0.6) != []
    other = QuestionMatrix()
    other.begin("another model", DIMS)
    store.reading.questions.load(other, 0, 100)
    assert len(other) == 0


def test_older_file_gets_the_question_tables(tmp_path: Path) -> None:
    path = tmp_path / "stats.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE node_stats(node_id TEXT PRIMARY KEY, salience REAL)")
    connection.execute("INSERT INTO node_stats VALUES('a', 0.7)")
    connection.close()
    store = StatsStore.open(path, START)
    apply(store, feedback(asked("one", ONE), "a"))
    assert store.reading.nodes.get(["a"]) == {"a": NodeStats(node_id="a")}
    assert counts(store) == {("one", "a"): (1, 0)}
    store.close()


# -- the matrix ----------------------------------------------------------------------------------


def test_matrix_evidence_follows_the_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 267"""
    random, made = np.random.default_rng(4), Random(4)
    matrix = QuestionMatrix()
    matrix.begin("e", DIMS)
    entries: dict[int, QuestionVector] = {}
    for round_ in range(30):
        some = [
            QuestionVector(
                made.randrange(200),
                f"n{made.randrange(20)}",
                encode_rows(random.normal(size=(1, DIMS)).astype(np.float32)).tobytes(),
                made.uniform(0, 5),
                made.choice([0.0, 2.0]),
            )
            for _ in range(20)
        ]
        some = list({each.id: each for each in some}.values())
        matrix.put(some)
        entries |= {each.id: each for each in some}
        gone = made.sample(sorted(entries), len(entries) // 10)
        matrix.drop([*gone, 999])
        for one in gone:
            del entries[one]
        assert len(matrix) == len(entries)
        query = encode_rows(random.normal(size=(1, DIMS)).astype(np.float32))[0]
        theta = 0.6 if round_ % 2 else 0.75
        assert matrix.weigh(query, theta) == _by_formula(entries, query, theta)
    monkeypatch.setattr(question_matrix, "MOST_NOTES", 2)
    assert len(matrix.weigh(query, 0.1)) == 2


def _by_formula(entries: dict[int, QuestionVector], query: Any, theta: float) -> list[Any]:
    parts: dict[str, list[tuple[float, float, int]]] = {}
    for each in entries.values():
        row = np.frombuffer(each.codes, np.int8).astype(float)
        cosine = float(row @ query / np.linalg.norm(row) / np.linalg.norm(query.astype(float)))
        if (k := kernel(cosine, theta)) > 0:
            parts.setdefault(each.note_id, []).append((entry_weight(each.a, each.b), k, each.id))
    expected = [
        (note, evidence((w, k) for w, k, _ in of_note), max(of_note, key=lambda part: part[0] * part[1])[2])
        for note, of_note in parts.items()
    ]
    expected.sort(key=lambda each: -each[1])
    return [(note, pytest.approx(value, abs=1e-4), entry) for note, value, entry in expected if value > 0]


def test_matrix_without_matching_entries_gives_no_evidence() -> None:
    matrix = QuestionMatrix()
    query = np.frombuffer(ONE, np.int8)
    assert matrix.weigh(query, 0.6) == []
    matrix.begin("e", DIMS)
    matrix.put([QuestionVector(1, "a", ONE, 1, 0), QuestionVector(2, "b", bytes(DIMS), 1, 0)])
    matrix.put([QuestionVector(3, "c", b"short", 1, 0)])
    assert [each.note_id for each in matrix.weigh(query, 0.6)] == ["a"]
    assert matrix.weigh(query, 1.0) == matrix.weigh(np.zeros(DIMS, np.int8), 0.6) == []
    assert matrix.weigh(np.ones(5, np.int8), 0.6) == []
    matrix.drop([1, 2])
    assert (len(matrix), matrix.weigh(query, 0.6)) == (0, [])
