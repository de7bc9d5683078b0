"""Inverted lists of a large vector store: recall, exactness of the rest, changes meanwhile, the file."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lithos.stores.indexes.chunk_rows import Codes, VectorEntry, VectorHit, VectorQuery
from lithos.stores.indexes.embedder import EmbedderIdentity, Matrix
from lithos.stores.indexes.lists import clustering, list_files, searching
from lithos.stores.indexes.lists.clustering import Stopped, assign, train_centres
from lithos.stores.indexes.vectors import VectorIndex

DIMS = 32
IDENTITY = EmbedderIdentity("tiny", DIMS, "int8", "ab" * 32)
#: Chunks of a note, rows and notes of the usual index, and rows from which on there are lists.
CHUNKS, ROWS, NOTES, FROM = 4, 8_000, 2_000, 2_000


@pytest.fixture(autouse=True, scope="module")
def _few() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "FROM", FROM)
        patch.setattr(searching, "MERGED_LEAST", 200)
        yield


def clustered(seed: int, rows: int, centres: int = 60, width: float = 0.25) -> np.ndarray:
    """Vectors around topics, some of which are much more frequent than others."""
    random = np.random.default_rng(seed)
    topics = np.random.default_rng(99).normal(size=(centres, DIMS))
    chosen = topics[np.minimum(random.zipf(1.6, rows), centres) - 1]
    vectors: np.ndarray = (chosen + width * random.normal(size=(rows, DIMS))).astype(np.float32)
    return vectors


def entries(vectors: np.ndarray, first: int = 1, stamp: int = 1) -> list[VectorEntry]:
    parts = vectors.reshape(-1, CHUNKS, DIMS)
    return [VectorEntry(first + number, stamp, part) for number, part in enumerate(parts)]


def filled(directory: Path, vectors: np.ndarray) -> VectorIndex:
    index = VectorIndex.open(directory, IDENTITY)
    index.apply(entries(vectors), [])
    return index


def go_on() -> None:
    """A check that lets the work go on."""


def exact(index: VectorIndex, vector: np.ndarray, notes: int, threshold: float = 0.0) -> list[VectorHit]:
    return index.search_among(vector, index.stamps(), threshold, notes)


def recall(index: VectorIndex, queries: np.ndarray, notes: int) -> float:
    found, wanted = 0, 0
    for query in queries:
        right = {hit.serial: hit for hit in exact(index, query, notes)}
        hits = index.search(query, notes, 0.0)
        # What is found is right, whatever is missed.
        assert all(right.get(hit.serial, hit) == hit for hit in hits)
        found, wanted = found + len(right.keys() & {hit.serial for hit in hits}), wanted + len(right)
    return found / wanted


@pytest.fixture(scope="module")
def saved(_few: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The usual index on disk, once without lists and once with them."""
    folder = tmp_path_factory.mktemp("saved")
    index = filled(folder / "plain", clustered(1, ROWS))
    index.save()
    shutil.copytree(folder / "plain", folder / "listed")
    index = VectorIndex.open(folder / "listed", IDENTITY)
    index.build_lists(go_on)
    index.save_lists()
    return folder


def opened(folder: Path, tmp_path: Path) -> VectorIndex:
    shutil.copytree(folder, tmp_path / ".usearch")
    return VectorIndex.open(tmp_path / ".usearch", IDENTITY)


@pytest.fixture
def plain(saved: Path, tmp_path: Path) -> VectorIndex:
    return opened(saved / "plain", tmp_path)


@pytest.fixture
def index(saved: Path, tmp_path: Path) -> VectorIndex:
    """With lists."""
    index = opened(saved / "listed", tmp_path)
    assert not index.lists_due
    return index


def test_below_the_threshold_there_are_no_lists_and_searches_are_exact(tmp_path: Path) -> None:
    index = filled(tmp_path, clustered(1, FROM - CHUNKS))
    assert not index.lists_due
    for query in clustered(2, 20):
        assert index.search(query, 30, 0.1) == exact(index, query, 30, 0.1)
    index.apply(entries(clustered(3, 4), first=5_000), [])
    assert index.lists_due


@pytest.mark.slow
def test_recall_is_99_of_10_and_98_of_200_whatever_the_notes_are_like(tmp_path: Path) -> None:
    kinds = {
        "topics": (clustered(1, ROWS), clustered(2, 40)),
        "wide topics": (clustered(1, ROWS, width=0.8), clustered(2, 40, width=0.8)),
        "queries from elsewhere": (clustered(1, ROWS), clustered(7, 40, width=3.0)),
        "no topics": (clustered(1, ROWS, width=20.0), clustered(2, 20, width=20.0)),
        "all alike": (clustered(1, ROWS, 1, 0.02), clustered(2, 20, 1, 0.02)),
        "the same": (np.tile(clustered(1, 1), (ROWS, 1)), clustered(2, 20)),
    }
    for name, (rows, queries) in kinds.items():
        index = filled(tmp_path / name, rows)
        index.build_lists(go_on)
        assert not index.lists_due
        assert recall(index, queries, 10) >= 0.99, name
        assert recall(index, queries, 200) >= 0.98, name


def count_rows(index: VectorIndex, patch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are compared, call by call, from now on."""
    seen: list[int] = []
    compare = index._rows.compare_rows

    def count(query: Codes, rows: NDArray[np.intp]) -> Matrix:
        seen.append(len(rows))
        return compare(query, rows)

    patch.setattr(index._rows, "compare_rows", count)
    return seen


def test_a_search_by_lists_grows_less_than_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows compared, not time: in 4 times the notes it is some twice as many."""
    topics = np.random.default_rng(4).normal(size=(150, DIMS))
    looked: list[int] = []
    for rows in (8_000, 32_000):
        random = np.random.default_rng(rows)
        vectors = topics[random.integers(0, 150, rows)] + 0.2 * random.normal(size=(rows, DIMS))
        index = filled(tmp_path / str(rows), vectors.astype(np.float32))
        index.build_lists(go_on)
        shares = []
        for query in topics[:30].astype(np.float32):
            with monkeypatch.context() as patch:
                seen = count_rows(index, patch)
                index.search(query, 10, 0.0)
            shares.append(sum(seen))
        looked.append(int(np.median(shares)))
    assert looked[0] < 8_000 / 8
    assert looked[1] < 2.5 * looked[0]


def test_new_and_changed_notes_are_found_and_removed_ones_are_not(index: VectorIndex) -> None:
    query = clustered(5, 1)[0]
    near = index.search(query, 10, 0.0)
    gone, changed = near[0].serial, near[1].serial
    far = np.tile(-query, (CHUNKS, 1))
    index.apply([VectorEntry(changed, 2, far), VectorEntry(99_999, 1, np.tile(query, (CHUNKS, 1)))], [gone])
    hits = index.search(query, 10, 0.0)
    assert hits[0][:2] == (99_999, 0)
    assert {gone, changed}.isdisjoint(hit.serial for hit in hits)
    assert hits == exact(index, query, 10)
    assert index.search(-query, 1, 0.0)[0].serial == changed


def test_many_changes_keep_recall_before_and_after_each_merge(index: VectorIndex) -> None:
    trained = index._search.lists
    assert trained is not None
    random = np.random.default_rng(8)
    queries = clustered(9, 15)
    for round_ in range(4):
        serials = random.choice(NOTES, 150, replace=False) + 1
        news = [
            VectorEntry(int(serial), round_ + 2, rows.vectors)
            for serial, rows in zip(serials[:100], entries(clustered(20 + round_, 400)), strict=True)
        ]
        index.apply(news, [int(serial) for serial in serials[100:]])
        index.apply(entries(clustered(40 + round_, 400), first=10_000 + 100 * round_), [])
        assert recall(index, queries, 30) >= 0.98
        due = [index.lists_due]
        index.build_lists(go_on)
        assert [*due, index.lists_due] == [True, False]
        assert recall(index, queries, 30) >= 0.98
    lists = index._search.lists
    assert lists is not None
    assert lists.centres is trained.centres, "merges train no centres"
    assert len(index._rows.strays) == 0
    live = np.flatnonzero(index._rows.are_alive(np.arange(index._rows.used)))
    assert sorted(lists.rows.tolist()) == live.tolist(), "each row is in one list"


def test_twice_as_many_rows_train_the_centres_anew(index: VectorIndex) -> None:
    before = index._search.lists
    index.apply(entries(clustered(3, ROWS + 400), first=50_000), [])
    index.build_lists(go_on)
    after = index._search.lists
    assert before is not None
    assert after is not None
    assert len(after.centres) > len(before.centres)
    assert recall(index, clustered(4, 15), 30) >= 0.98


@pytest.mark.parametrize("is_first", [True, False])
def test_changes_during_a_build_are_found_at_once_and_after_it(
    saved: Path, tmp_path: Path, is_first: bool
) -> None:
    """Rows are freed and given to other notes while the rows are assigned."""
    index = opened(saved / ("plain" if is_first else "listed"), tmp_path)
    if not is_first:
        index.apply(entries(clustered(6, 2_000), first=20_000), [])
    random, calls = np.random.default_rng(1), 0
    queries = clustered(2, 200)

    def change() -> None:
        nonlocal calls
        calls += 1
        serial = int(random.integers(1, NOTES))
        query = queries[calls % 200]
        index.apply([VectorEntry(serial, calls, np.tile(query, (CHUNKS, 1)))], [])
        index.apply([], [int(random.integers(1, NOTES))] if calls % 2 else [])
        if index.stamp_of(serial) == calls:
            assert serial in {hit.serial for hit in index.search(query, 300, 0.99)}

    index.build_lists(change)
    assert calls >= (50 if is_first else 2)
    assert recall(index, queries[:20], 30) >= 0.98
    index._search._covered = 0  # all of them once more, whatever is due
    index.build_lists(go_on)
    assert recall(index, queries[:20], 30) >= 0.98


def test_a_build_that_is_stopped_leaves_the_lists_as_they_were(plain: VectorIndex) -> None:
    index = plain

    def stop_after(calls: int) -> None:
        left = iter(range(calls))

        def check() -> None:
            if next(left, None) is None:
                raise Stopped

        with pytest.raises(Stopped):
            index.build_lists(check)

    query = clustered(5, 1)[0]
    for calls in (0, 10, 40):
        stop_after(calls)
        assert index._search.lists is None
        assert index.search(query, 50, 0.0) == exact(index, query, 50)
    index.build_lists(go_on)
    rows = lists_of(index)
    index.apply(entries(clustered(6, 2_000), first=20_000), [])
    stop_after(1)
    assert lists_of(index) == rows
    index.apply(entries(clustered(7, 12), first=1), [])
    assert recall(index, clustered(4, 10), 30) >= 0.98


def test_searches_beside_a_build_see_whole_notes_and_wait_little(index: VectorIndex) -> None:
    done = threading.Event()
    failures: list[Exception] = []

    def build() -> None:
        try:
            for _ in range(3):
                index._search.lists = None
                index.build_lists(go_on)
        except Exception as failure:  # noqa: BLE001 - raised where the test sees it
            failures.append(failure)
        finally:
            done.set()

    queries = clustered(2, 8)
    right = [exact(index, query, 5) for query in queries]
    builder = threading.Thread(target=build)
    builder.start()
    searches = 0
    while not done.is_set():
        for query, hits in zip(queries, right, strict=True):
            assert index.search(query, 5, 0.0) == hits
            searches += 1
    builder.join()
    assert not failures
    assert searches > 8


def test_queries_together_find_what_each_finds_alone(index: VectorIndex) -> None:
    index.apply(entries(clustered(6, 400), first=3), [1, 2])
    queries = [
        VectorQuery(vector, notes, threshold)
        for vector, notes, threshold in zip(
            [*clustered(3, 5), *clustered(4, 3, width=4.0), np.zeros(DIMS, np.float32)],
            [1, 5, 200, 30, 10, 10, 200, 7, 3],
            [0.0, 0.5, 0.0, 0.99, 0.3, 0.0, 0.0, 0.2, 0.0],
            strict=True,
        )
    ]
    assert index.search_together(queries) == [index.search(*query) for query in queries]


def test_filters_and_similarities_stay_exact(plain: VectorIndex, saved: Path) -> None:
    query = clustered(5, 1)[0]
    among = range(1, NOTES, 7)
    before = plain.search_among(query, among, 0.2, 20), plain.similarities(query, range(1, 40))
    index = VectorIndex.open(saved / "listed", IDENTITY)
    assert (index.search_among(query, among, 0.2, 20), index.similarities(query, range(1, 40))) == before


# -- on disk ---------------------------------------------------------------------------------------


def lists_of(index: VectorIndex) -> list[list[tuple[int, int]]]:
    """The chunks of each list."""
    lists = index._search.lists
    assert lists is not None
    serials, chunks = index._rows.owners(lists.rows.astype(np.intp))
    pairs = list(zip(serials.tolist(), chunks.tolist(), strict=True))
    ends: Sequence[int] = lists.starts.tolist()
    return [sorted(pairs[a:b]) for a, b in pairwise(ends)]


def test_lists_are_there_again_after_a_start(index: VectorIndex, tmp_path: Path) -> None:
    index.apply(entries(clustered(6, 40), first=30_000), [5])
    index.save()
    again = VectorIndex.open(tmp_path / ".usearch", IDENTITY)
    assert not again.lists_due
    assert [{*some} - {*other} for some, other in zip(lists_of(again), lists_of(index), strict=True)] == [
        set() for _ in lists_of(index)
    ]
    assert len(again._rows.strays) == 40, "what was in no list is scanned"
    for query in clustered(2, 10):
        assert again.search(query, 30, 0.0) == index.search(query, 30, 0.0)
    again.apply(entries(clustered(7, 400), first=40_000), [])
    again.build_lists(go_on)
    assert recall(again, clustered(2, 15), 30) >= 0.98


def test_lists_built_after_a_save_are_kept_unless_notes_changed_since(
    index: VectorIndex, tmp_path: Path
) -> None:
    directory = tmp_path / ".usearch"
    (directory / list_files.lists_name(1)).unlink()
    index.apply([], [1])
    index.save_lists()
    assert not (directory / list_files.lists_name(1)).exists()
    index.save()
    assert sorted(path.name for path in directory.iterdir()) == [
        "lists.2.npz", "manifest.json", "notes.2.npy", "vectors.2.usearch",
    ]  # fmt: skip


def test_a_damaged_or_foreign_file_means_no_lists_and_nothing_else(
    index: VectorIndex, tmp_path: Path
) -> None:
    directory = tmp_path / ".usearch"
    path = directory / list_files.lists_name(1)
    good = path.read_bytes()
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    for content in (b"", b"\0" * 40, good[:middle], flipped, good + b"\0"):
        path.write_bytes(content)
        again = VectorIndex.open(directory, IDENTITY)
        assert again._search.lists is None
        assert again.quarantined is None
        assert again.stamps() == index.stamps()
        assert again.lists_due
        query = clustered(2, 1)[0]
        assert again.search(query, 9, 0.0) == exact(index, query, 9)
    lists = index._search.lists
    assert lists is not None
    list_files.write_lists(directory, 1, lists.centres, np.zeros(7, np.uint16), 7)
    assert VectorIndex.open(directory, IDENTITY)._search.lists is None
    list_files.write_lists(directory, 1, lists.centres[:, :5], np.zeros(ROWS, np.uint16), 7)
    assert VectorIndex.open(directory, IDENTITY)._search.lists is None
    path.write_bytes(good)
    assert VectorIndex.open(directory, IDENTITY)._search.lists is not None


def test_a_full_disk_costs_the_lists_only(plain: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.build_lists(go_on)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", fail)
    plain.save_lists()
    assert not plain.dirty


# -- clustering ------------------------------------------------------------------------------------


def test_a_row_goes_to_the_nearest_centre_and_training_repeats_itself() -> None:
    random = np.random.default_rng(3)
    rows = random.integers(-127, 128, (3_000, DIMS)).astype(np.int8)
    centres = train_centres(rows, 900, go_on)
    assert (train_centres(rows, 900, go_on) == centres).all()
    products = rows.astype(np.int64) @ centres.T.astype(np.int64)
    assert (assign(rows, centres) == products.argmax(axis=1)).all()
    lengths = np.linalg.norm(centres.astype(np.float64), axis=1)
    assert lengths.max() / lengths.min() < 1.05


def test_memory_beside_the_vectors_is_at_most_twenty_bytes_a_row(index: VectorIndex) -> None:
    lists, rows = index._search.lists, index._rows
    assert lists is not None
    beside = lists.rows.nbytes + sum(
        array[: rows.used].nbytes for array in (rows._inverse, rows._serials, rows._chunks)
    )
    assert beside / rows.used <= 20
    assert lists.starts.nbytes + lists.centres.nbytes < rows._codes[: rows.used].nbytes / 10


def test_the_build_can_be_stopped_and_searched_between_small_pieces(
    plain: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So long, at most, a stop waits, and the lock is held for less."""
    pieces = [0]

    def count(rows: Codes, centres: Codes) -> clustering.Numbers:
        pieces[-1] += len(rows)
        return assign(rows, centres)

    for module in (clustering, searching):
        monkeypatch.setattr(module, "assign", count)
    plain.build_lists(lambda: pieces.append(0))
    assert sum(pieces) > 6 * ROWS
    assert max(pieces) <= clustering.ROWS_AT_ONCE
