"""The vector index in memory: nearest notes, indexed notes, and searches during changes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.search.embedding.embedder import EmbedderIdentity
from lithos.search.index.chunk_rows import VectorEntry, VectorHit, VectorQuery, best_per_note
from lithos.search.index.vectors import VectorIndex

DIMS = 8
IDENTITY = EmbedderIdentity("tiny", DIMS, "int8", "ab" * 32)


def unit(*rows: np.ndarray | list[float]) -> np.ndarray:
    """Return the rows, padded to `DIMS` and normalised. Rows of zeros stay zeros."""
    matrix = np.zeros((len(rows), DIMS), np.float32)
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(norms > 0, norms, 1)).astype(np.float32)


def random_units(rng: np.random.Generator, count: int) -> np.ndarray:
    return unit(*(rng.normal(size=DIMS) + 0.5 for _ in range(count))) if count else unit()


X, Y = unit([1, 0])[0], unit([0, 1])[0]


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex.open(tmp_path / ".usearch", IDENTITY)


def brute_force(
    notes: Mapping[int, np.ndarray], query: np.ndarray, limit: int | None, threshold: float
) -> list[VectorHit]:
    """Return the expected search results, computed by comparing all vectors after rounding to bytes."""
    hits = []
    for serial, rows in notes.items():
        scores = [(-max(0.0, cosine(row, query)), chunk) for chunk, row in enumerate(rows) if row.any()]
        if scores and -min(scores)[0] >= threshold:
            hits.append(VectorHit(serial, min(scores)[1], -min(scores)[0]))
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.serial))[:limit]


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    a, b = (np.rint(row * (127 / np.abs(row).max())).astype(np.float64) for row in (one, other))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def assert_same(found: list[VectorHit], expected: list[VectorHit]) -> None:
    np.testing.assert_allclose([h.similarity for h in found], [h.similarity for h in expected], atol=1e-5)
    for hit, wanted in zip(found, expected, strict=True):
        # Scores that are equal in single precision may be in either order.
        is_tie = abs(hit.similarity - wanted.similarity) < 2e-7
        assert hit[:2] == wanted[:2] or is_tie, (hit, wanted)


def test_each_note_is_one_hit_with_its_best_chunk(index: VectorIndex) -> None:
    """behaviour 58"""
    index.apply(
        [
            VectorEntry(7, 1, unit([0, 1], [4, 3], [1, 0])),
            VectorEntry(3, 1, unit([3, 4], [0, 1])),
            VectorEntry(5, 1, unit([0, 1])),
        ],
        [],
    )
    hits = index.search(X, 10, 0.3)
    assert [(hit.serial, hit.chunk) for hit in hits] == [(7, 2), (3, 0)]
    np.testing.assert_allclose([hit.similarity for hit in hits], [1, 0.6], atol=5e-3)
    assert all(0 <= hit.similarity <= 1 for hit in hits)


def test_threshold_filters_and_negative_cosines_count_as_zero(index: VectorIndex) -> None:
    """behaviour 58"""
    index.apply([VectorEntry(1, 1, unit([4, 3])), VectorEntry(2, 1, unit([-1, 0]))], [])
    assert [hit.serial for hit in index.search(X, 10, 0.75)] == [1]
    assert index.search(X, 10, 0.85) == []
    assert index.search(X, 10, 0.0)[1] == VectorHit(2, 0, 0.0)


def test_ties_are_ordered_by_serial_at_every_limit(index: VectorIndex) -> None:
    for serial in (9, 3, 7, 1, 5):
        index.apply([VectorEntry(serial, 1, unit([1, 0], [1, 0]))], [])
    for limit in range(1, 7):
        hits = index.search(X, limit, 0.3)
        assert [(hit.serial, hit.chunk) for hit in hits] == [(s, 0) for s in [1, 3, 5, 7, 9][:limit]]


@given(
    rows=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5), st.integers(0, 40)), max_size=30),
    most=st.none() | st.integers(0, 12),
)
def test_notes_are_ranked_by_their_most_similar_chunk(
    rows: list[tuple[int, int, int]], most: int | None
) -> None:
    """Ties are ordered by serial number and chunk. Each note counts once, with its best chunk."""
    similarities = np.array([row[2] / 40 for row in rows], np.float32)
    serials = np.array([row[0] for row in rows], np.uint64)
    chunks = np.array([row[1] for row in rows], np.uint32)
    order = sorted(range(len(rows)), key=lambda i: (-similarities[i], serials[i], chunks[i]))
    expected: dict[int, VectorHit] = {}
    for i in order:
        expected.setdefault(rows[i][0], VectorHit(rows[i][0], rows[i][1], float(similarities[i])))
    assert best_per_note(serials, chunks, similarities, most) == list(expected.values())[:most]


def test_note_with_many_chunks_does_not_hide_other_notes(index: VectorIndex) -> None:
    """docs/spec/search.md §4: the search examines more chunks until it has found enough notes."""
    rng = np.random.default_rng(0)
    crowd = unit(*([1, *(rng.normal(size=DIMS - 1) * 0.01)] for _ in range(3000)))
    index.apply([VectorEntry(1, 1, crowd), *(VectorEntry(n, 1, unit([1, 1])) for n in range(2, 30))], [])
    assert [hit.serial for hit in index.search(X, 25, 0.3)] == list(range(1, 26))


def test_last_batch_entry_for_a_serial_number_takes_effect(index: VectorIndex) -> None:
    index.apply([VectorEntry(1, 1, unit([1, 0])), VectorEntry(2, 2, unit([1, 0]))] * 2, [1])
    index.apply([VectorEntry(1, 1, unit([1, 0], [1, 0])), VectorEntry(1, 9, unit([0, 1]))], [])
    assert index.stamps() == {1: 9, 2: 2}
    assert index.chunk_count() == 2
    assert [hit.serial for hit in index.search(X, 10, 0.5)] == [2]


def test_zero_vectors_are_indexed_but_never_found(index: VectorIndex) -> None:
    index.apply(
        [
            VectorEntry(1, 11, unit([0, 0], [1, 0])),
            VectorEntry(2, 22, unit([0, 0])),
            VectorEntry(3, 33, unit()),
        ],
        [],
    )
    assert index.stamps() == {1: 11, 2: 22, 3: 33}
    assert index.chunk_count() == 1
    assert [(hit.serial, hit.chunk) for hit in index.search(X, 10, 0.0)] == [(1, 1)]
    assert [(hit.serial, hit.chunk) for hit in index.search_among(X, [1, 2, 3, 4], 0.0)] == [(1, 1)]
    index.apply([VectorEntry(2, 23, unit([1, 0]))], [1, 3])
    assert index.stamps() == {2: 23}
    assert [hit.serial for hit in index.search(X, 10, 0.5)] == [2]


def test_zero_vector_and_empty_index_find_nothing(index: VectorIndex) -> None:
    assert index.search(X, 10, 0.0) == []
    assert index.search_among(X, [1], 0.0) == []
    index.apply([VectorEntry(1, 1, unit([1, 0]))], [])
    nothing = np.zeros(DIMS, np.float32)
    assert index.search(nothing, 10, 0.0) == index.search_among(nothing, [1], 0.0) == []
    assert index.search(X, 0, 0.0) == index.search_among(X, [], 0.0) == []


def test_largest_serial_and_chunk_do_not_collide(index: VectorIndex) -> None:
    rows = np.tile(Y, (1500, 1))
    rows[1499] = X
    index.apply([VectorEntry(2**40, 2**63 - 1, rows), VectorEntry(2**40 - 1, 0, unit([4, 3]))], [])
    hits = index.search(X, 10, 0.5)
    assert [(hit.serial, hit.chunk) for hit in hits] == [(2**40, 1499), (2**40 - 1, 0)]
    assert index.stamps() == {2**40: 2**63 - 1, 2**40 - 1: 0}


@pytest.mark.parametrize(
    "rows", [np.ones((1, DIMS + 1), np.float32), np.full((1, DIMS), np.nan, np.float32)], ids=["dims", "nan"]
)
def test_vectors_of_a_wrong_size_are_refused_before_any_change(index: VectorIndex, rows: np.ndarray) -> None:
    """behaviour 185"""
    index.apply([VectorEntry(1, 1, unit([1, 0]))], [])
    with pytest.raises(ValueError, match="vectors of"):
        index.apply([VectorEntry(2, 2, unit([1, 0])), VectorEntry(3, 3, rows)], [1])
    assert index.stamps() == {1: 1}


@given(seed=st.integers(0, 2**32 - 1))
def test_search_after_random_changes_equals_brute_force(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    index = VectorIndex.open(tmp_path_factory.mktemp("store"), IDENTITY)
    notes: dict[int, np.ndarray] = {}
    for _ in range(12):
        fresh = {int(s): random_units(rng, int(rng.integers(0, 5))) for s in rng.integers(0, 30, 6)}
        gone = {int(s) for s in rng.integers(0, 30, 4)}
        index.apply([VectorEntry(s, s + 1, rows) for s, rows in fresh.items()], gone)
        notes = {s: rows for s, rows in notes.items() if s not in gone} | fresh
        if rng.random() < 0.3:
            index.save()
            index = VectorIndex.open(index._directory, IDENTITY)
        query, limit, threshold = (
            random_units(rng, 1)[0],
            int(rng.integers(1, 20)),
            float(rng.random() * 0.7),
        )
        assert index.stamps() == {s: s + 1 for s in notes}
        assert index.chunk_count() == sum(map(len, notes.values()))
        assert_same(index.search(query, limit, threshold), brute_force(notes, query, limit, threshold))
        some = {int(s) for s in rng.integers(0, 35, int(rng.integers(1, 25)))}
        among = {s: notes[s] for s in some if s in notes}
        assert_same(index.search_among(query, some, threshold), brute_force(among, query, None, threshold))
        assert_same(index.search_among(query, some, threshold, 3), brute_force(among, query, 3, threshold))


def test_searches_during_batches_see_only_complete_notes(index: VectorIndex) -> None:
    first, second = unit(*[[1, 0]] * 20), unit(*[[4, 3]] * 30)
    index.apply([VectorEntry(n, 1, first) for n in range(20)], [])
    done = threading.Event()

    def write() -> None:
        for round_ in range(30):
            rows = second if round_ % 2 == 0 else first
            index.apply([VectorEntry(n, round_, rows) for n in range(20)], [])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        hits = index.search(X, 50, 0.5)
        assert [hit.serial for hit in sorted(hits)] == list(range(20))
        assert all(min(abs(hit.similarity - 1), abs(hit.similarity - 0.8)) < 2e-3 for hit in hits)
        assert len(index.search_among(X, range(20), 0.5)) == 20
        assert len(index.stamps()) == 20
    writer.join()
    assert index.chunk_count() == 400


def test_closed_index_finds_nothing_and_saves_nothing(index: VectorIndex) -> None:
    index.apply([VectorEntry(1, 1, unit([1, 0]))], [])
    index.close()
    assert not index.dirty
    assert index.search(X, 5, 0.0) == []


def test_batched_queries_match_single_queries(index: VectorIndex) -> None:
    """The batch contains different kinds of queries. The index has freed rows and rows with equal scores."""
    rng = np.random.default_rng(5)
    twins = random_units(rng, 3)
    index.apply([VectorEntry(serial, 1, random_units(rng, 5)) for serial in range(1, 900)], [])
    index.apply([VectorEntry(serial, 1, twins) for serial in (950, 940, 930)], list(range(1, 900, 3)))
    queries = [
        VectorQuery(vector, notes, threshold)
        for vector, notes, threshold in zip(
            [*random_units(rng, 8), twins[0], np.zeros(DIMS, np.float32)],
            [1, 2, 7, 30, 200, 600, 5, 0, 3, 5],
            [0.0, 0.3, 0.0, 0.1, 0.0, 0.0, 0.9, 0.0, 0.5, 0.0],
            strict=True,
        )
    ]
    together = index.search_together(queries)
    assert together == [index.search(*query) for query in queries]
    everything = [index.search_among(query.vector, range(1, 1000), query.threshold) for query in queries]
    assert together == [hits[: query.notes] for query, hits in zip(queries, everything, strict=True)]
    assert [hit.serial for hit in together[8]] == [930, 940, 950]


def test_notes_with_many_similar_chunks_hide_no_other_note(index: VectorIndex) -> None:
    """A sample of the similarities decides only where the search starts. It does not affect the result."""
    rng = np.random.default_rng(6)
    near = unit(*(X + 0.01 * random_units(rng, 4_000)))
    index.apply([VectorEntry(1, 1, near)], [])
    index.apply([VectorEntry(serial, 1, random_units(rng, 1)) for serial in range(2, 500)], [])
    found = index.search(X, 300, 0.0)
    assert found == index.search_among(X, range(1, 500), 0.0)[:300]
    assert len(found) == 300
