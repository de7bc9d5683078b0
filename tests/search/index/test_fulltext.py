"""Storage of the full-text index: format, damage, batches, errors and threads."""

from __future__ import annotations

import math
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
import tantivy

from lithos.kernel.values.errors import IndexFailed
from lithos.notes.model.plan import IndexPlan, plan_index
from lithos.search.index import fulltext, fulltext_schema
from lithos.search.index.fulltext import INCOMPLETE, FulltextIndex
from lithos.search.index.fulltext_schema import FulltextEntry, remove_index
from tests.kernel.databases.fulltext_entries import entry, found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / ".tantivy"


@pytest.fixture
def index(directory: Path) -> Iterator[FulltextIndex]:
    opened = FulltextIndex.open(directory)
    yield opened
    opened.close()


def test_missing_index_starts_empty_and_writes_its_marker(directory: Path) -> None:
    """behaviour 64"""
    index = FulltextIndex.open(directory)
    assert index.was_rebuilt
    assert index.rebuild_reason == "no index exists"
    assert (index.stamps(), index.document_count(), index.last_updated) == ({}, 0, None)
    assert (directory / ".schema_version").read_text().strip() == fulltext_schema.FORMAT


def test_index_with_a_matching_marker_is_kept(index: FulltextIndex, directory: Path) -> None:
    """behaviour 64"""
    index.apply([entry(1, "granite"), entry(2, "basalt")], [])
    index.close()
    again = FulltextIndex.open(directory)
    assert not again.was_rebuilt
    assert found(again, "granite") == [1]
    assert again.stamps() == {1: 11, 2: 21}


@pytest.mark.parametrize("marker", ["L0", "", None])
def test_index_with_a_different_or_missing_marker_is_emptied(
    index: FulltextIndex, directory: Path, marker: str | None
) -> None:
    """behaviour 64"""
    index.apply([entry(1, "granite")], [])
    index.close()
    path = directory / ".schema_version"
    path.unlink() if marker is None else path.write_text(marker)
    again = FulltextIndex.open(directory)
    assert again.was_rebuilt
    assert "format" in str(again.rebuild_reason)
    assert again.stamps() == {}
    again.apply([entry(1, "granite")], [])
    assert found(again, "granite") == [1]


def test_index_of_another_schema_is_emptied(directory: Path) -> None:
    directory.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("something")
    tantivy.Index(builder.build(), path=str(directory))
    fulltext_schema.write_marker(directory, fulltext_schema.FORMAT)
    index = FulltextIndex.open(directory)
    assert "cannot be opened" in str(index.rebuild_reason)


def damage(data: bytes) -> dict[str, bytes | None]:
    """Return damaged variants of a file's bytes by name. `None` is a missing file."""
    middle = len(data) // 3
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    ways = {"garbage": b"\x00garbage" * 20, "truncated": data[:middle], "emptied": b"", "gone": None}
    return ways if data.startswith(b"{") else {**ways, "one bit": flipped}


def test_index_with_a_damaged_file_is_emptied_and_remains_usable(
    index: FulltextIndex, tmp_path: Path
) -> None:
    """behaviour 65"""
    index.apply([entry(n, f"granite {n}") for n in range(5)], [])
    index.apply([], [3])
    index.close()
    whole, copy = tmp_path / ".tantivy", tmp_path / "copy"
    names = [p.name for p in whole.iterdir() if p.name[0] != "." and p.suffix not in (".lock", ".db")]
    assert len(names) > 5
    for name in names:
        for way, data in damage((whole / name).read_bytes()).items():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(whole, copy)
            (copy / name).unlink()
            if data is not None:
                (copy / name).write_bytes(data)
            again = FulltextIndex.open(copy)
            assert again.was_rebuilt, (name, way)
            again.apply([entry(1, "granite")], [])
            assert found(again, "granite") == [1]
            again.close()


def test_leftover_files_of_a_crash_are_ignored(index: FulltextIndex, directory: Path) -> None:
    index.apply([entry(1, "granite")], [])
    index.close()
    (directory / "0123456789abcdef0123456789abcdef.idx").write_bytes(b"half")
    again = FulltextIndex.open(directory)
    assert not again.was_rebuilt
    assert found(again, "granite") == [1]


def test_emptying_the_index_keeps_a_symlinked_directory(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "sub").mkdir(parents=True)
    (elsewhere / "file").write_text("x")
    link = tmp_path / ".tantivy"
    link.symlink_to(elsewhere)
    FulltextIndex.open(link).close()
    assert link.is_symlink()
    assert not (elsewhere / "file").exists()
    assert (elsewhere / ".schema_version").exists()


def test_batch_adds_replaces_and_removes_notes(index: FulltextIndex) -> None:
    index.apply([entry(1, "granite"), entry(2, "granite"), entry(3, "granite")], [])
    index.apply([entry(2, "basalt", stamp=77), entry(4, "granite")], [1, 99])
    assert found(index, "granite") == [3, 4]
    assert found(index, "basalt") == [2]
    assert index.stamps() == {2: 77, 3: 31, 4: 41}
    assert index.document_count() == 3


def test_last_batch_entry_for_a_serial_number_takes_effect(index: FulltextIndex) -> None:
    index.apply([entry(1, "granite"), entry(1, "basalt", stamp=5)], [1])
    assert index.stamps() == {1: 5}
    assert found(index, "granite basalt") == [1]


def test_largest_serial_and_stamp_are_stored_exactly(index: FulltextIndex, directory: Path) -> None:
    index.apply([entry(2**40, "granite", stamp=2**63 - 1), entry(0, "granite", stamp=0)], [])
    index.close()
    again = FulltextIndex.open(directory)
    assert again.stamps() == {2**40: 2**63 - 1, 0: 0}
    again.apply([], [2**40])
    assert again.stamps() == {0: 0}


def test_empty_batch_makes_no_commit(index: FulltextIndex) -> None:
    index.apply([], [])
    assert index.last_updated is None


def test_last_updated_is_the_time_of_the_last_commit(index: FulltextIndex, directory: Path) -> None:
    before = datetime.now(UTC)
    index.apply([entry(1)], [])
    written = index.last_updated
    assert written is not None
    assert before <= written <= datetime.now(UTC)
    index.close()
    reopened = FulltextIndex.open(directory).last_updated
    assert reopened is not None
    assert abs((reopened - written).total_seconds()) < 5


def test_failed_batch_changes_nothing_and_the_next_batch_succeeds(
    index: FulltextIndex, directory: Path, tmp_path: Path
) -> None:
    index.apply([entry(1, "granite")], [])
    away = tmp_path / "away"
    directory.rename(away)
    for _ in range(2):
        with pytest.raises(IndexFailed, match="could not be written"):
            index.apply([entry(2, "granite")], [1])
        assert found(index, "granite") == [1]
    away.rename(directory)
    index.apply([entry(3, "granite")], [])
    assert found(index, "granite") == [1, 3]
    assert index.stamps() == {1: 11, 3: 31}


def test_rows_committed_before_a_failure_are_not_duplicated(
    index: FulltextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that the searcher does not know needs no deletion.

    After a failure, the searcher may be outdated.
    """
    index.apply([entry(1, "harbour")], [])

    class Unread:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def reload(self) -> None:
            raise OSError("the new segment cannot be read")

    real = index._index
    monkeypatch.setattr(index, "_index", Unread(real))
    with pytest.raises(IndexFailed):
        index.apply([entry(2, "harbour")], [])
    monkeypatch.setattr(index, "_index", real)
    index.apply([entry(2, "harbour")], [])
    assert index.document_count() == 2


def test_index_is_reopened_after_many_commits_and_keeps_notes(
    index: FulltextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tantivy needs 4 KB of memory per commit for opened files, which adds up to a gigabyte after hours."""
    opened = [index._index]
    monkeypatch.setattr(fulltext, "RENEWED_AFTER", 3)
    for number in range(12):
        index.apply([entry(number, "granite")], [number - 5])
        assert found(index, "granite") == list(range(max(0, number - 4), number + 1))
        if index._index is not opened[-1]:
            opened.append(index._index)
    assert len(opened) == 4


def _refuse(directory: Path) -> tantivy.Index:
    raise ValueError(f"too many open files: {directory}")


def test_index_that_cannot_reopen_still_serves_and_accepts_batches(
    index: FulltextIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext, "RENEWED_AFTER", 1)
    index.apply([entry(1, "granite")], [])
    with monkeypatch.context() as broken:
        broken.setattr(fulltext, "_open_tantivy", _refuse)
        for _ in range(2):
            with pytest.raises(IndexFailed, match="too many open files"):
                index.apply([entry(2, "granite")], [])
            assert found(index, "granite") == [1]
    index.apply([entry(1, "granite"), entry(3, "granite")], [])
    assert found(index, "granite") == [1, 3]


def test_index_with_removed_files_is_not_silently_emptied(
    index: FulltextIndex, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext, "RENEWED_AFTER", 1)
    index.apply([entry(1, "granite")], [])
    (directory / "meta.json").unlink()
    for _ in range(2):
        with pytest.raises(IndexFailed, match="files were removed"):
            index.apply([entry(2, "granite")], [])
        assert found(index, "granite") == [1]


def test_second_writer_is_refused_and_the_first_writer_continues(
    index: FulltextIndex, directory: Path
) -> None:
    index.apply([entry(1, "granite")], [])
    other = FulltextIndex.open(directory)
    assert found(other, "granite") == [1]
    with pytest.raises(IndexFailed):
        other.apply([entry(2, "granite")], [])
    index.apply([entry(3, "granite")], [])
    assert found(index, "granite") == [1, 3]


def test_index_can_be_closed_twice_and_keeps_no_file_open(index: FulltextIndex, tmp_path: Path) -> None:
    def kept() -> bool:
        return str(tmp_path) in Path("/proc/self/maps").read_text()

    index.apply([entry(1, "granite")], [])
    assert found(index, "granite") == [1]
    assert kept()
    index.close()
    index.close()
    assert not kept()
    with pytest.raises(IndexFailed, match="closed"):
        found(index, "granite")


def test_searches_during_batches_see_only_complete_batches(index: FulltextIndex) -> None:
    """docs/spec/lifecycle.md §3: reads never wait for a write and never see half of a write."""
    index.apply([entry(n, "granite", stamp=0) for n in range(20)], [])

    def write() -> None:
        for generation in range(1, 15):
            index.apply([entry(n, f"granite g{generation}", stamp=generation) for n in range(20)], [])

    writer = threading.Thread(target=write)
    writer.start()
    seen: set[int] = set()
    while writer.is_alive():
        assert len(found(index, "granite")) == 20
        stamps = index.stamps()
        assert len(stamps) == 20
        assert len(set(stamps.values())) == 1
        seen |= set(stamps.values())
    writer.join()
    assert found(index, "g14") == list(range(20))
    assert seen


def leads_of(index: FulltextIndex, query: str, *serials: int) -> dict[int, float]:
    found = index.coverage(index.idf(index.content_stems(query)), serials)
    return {serial: round(covered.coverage, 6) for serial, covered in found.items()}


def passages(serial: int, *texts: str, stamp: int = 1) -> FulltextEntry:
    return entry(serial, " ".join(texts), passages=texts, stamp=stamp)


def test_lead_coverage_uses_the_stems_of_title_and_passages(index: FulltextIndex) -> None:
    """behaviour 263: words are stemmed as in the index.

    Function words count only if there are no other words.
    """
    index.apply(
        [passages(1, "the granites"), passages(2, "much of what is granite"), passages(3, "slate")], []
    )
    assert leads_of(index, "What is granite?", 1, 2, 3, 4) == {
        1: round(1 / (1 + 1 / 25), 6), 2: round(1 / (1 + 4 / 25), 6), 3: 0.0,
    }  # fmt: skip
    assert leads_of(index, "what is", 2) == {2: round(0.5 * 2 * _mean(index, {"what": 2, "is": 3}), 6)}
    assert leads_of(index, "?!", 1) == {1: 0.0}
    index.apply([], [1])
    assert leads_of(index, "granite", 1) == {}


def _mean(index: FulltextIndex, places: dict[str, int]) -> float:
    idf = index.idf(list(places))
    return sum(idf[stem] / (1 + place / 25) for stem, place in places.items()) / sum(idf.values())


def test_idf_equals_bm25_and_is_highest_for_unknown_words(index: FulltextIndex) -> None:
    """behaviour 263: ln(1 + (N - n + 0.5) / (n + 0.5)), and for unknown words ln(1 + N)."""
    index.apply([entry(n, "granite slate" if n else "granite") for n in range(4)], [])
    found = index.idf(["granit", "slate", "basalt"])
    assert found["granit"] == pytest.approx(math.log(1 + 0.5 / 4.5))
    assert found["slate"] == pytest.approx(math.log(1 + 1.5 / 3.5))
    assert found["basalt"] == pytest.approx(math.log(5))


def test_idf_is_positive_in_empty_index_and_for_deleted_terms(index: FulltextIndex) -> None:
    """The idf weights semantic results before any words are indexed (seed 657 of the simulation)."""
    assert index.idf(["granit"])["granit"] == pytest.approx(math.log(2))
    index.apply([entry(n, "granite") for n in range(6)], [])
    index.apply([entry(n, "granite", stamp=2) for n in range(5)], [])
    assert index.idf(["granit"])["granit"] == pytest.approx(math.log(1 + 0.5 / 6.5))


@pytest.mark.parametrize("way", ["gone", "garbage", "of another format"])
def test_notes_of_an_index_without_stems_are_indexed_again(
    index: FulltextIndex, directory: Path, way: str
) -> None:
    """An index without stems, or with damaged stems, can be searched until its notes are indexed again."""
    index.apply([passages(1, "granite"), passages(2, "slate")], [])
    index.close()
    leads = directory / "leads.db"
    if way == "of another format":
        with closing(apsw.Connection(str(leads))) as connection:
            connection.execute("PRAGMA user_version=77")
    else:
        leads.unlink()
        if way == "garbage":
            leads.write_bytes(b"garbage" * 1000)
    again = FulltextIndex.open(directory)
    assert found(again, "granite") == [1]
    assert leads_of(again, "granite", 1) == {}
    assert again.stamps() == {1: INCOMPLETE, 2: INCOMPLETE}
    again.apply([passages(1, "granite")], [])
    assert again.stamps() == {1: 1, 2: INCOMPLETE}
    assert leads_of(again, "granite", 1) == {1: 1.0}
    again.close()


def test_stems_left_by_a_crash_are_rebuilt(index: FulltextIndex, directory: Path) -> None:
    """The process ended after the commit of tantivy and before the commit of the stems."""
    index.apply([passages(1, "granite")], [])
    index.close()
    leads = (directory / "leads.db").read_bytes()
    index = FulltextIndex.open(directory)
    index.apply([passages(1, "the granite", stamp=2), passages(3, "slate")], [])
    index.close()
    (directory / "leads.db").write_bytes(leads)
    again = FulltextIndex.open(directory)
    assert again.stamps() == {1: INCOMPLETE, 3: INCOMPLETE}
    again.close()


def test_deleted_note_whose_stems_were_lost_is_removed_from_index(
    index: FulltextIndex, directory: Path
) -> None:
    """behaviours 176, 193. Regression: no plan contained such notes, so searches always found them."""
    index.apply([passages(1, "granite")], [])
    index.close()
    leads = (directory / "leads.db").read_bytes()
    index = FulltextIndex.open(directory)
    index.apply([passages(2, "slate")], [])
    index.close()
    (directory / "leads.db").write_bytes(leads)
    again = FulltextIndex.open(directory)
    plan = plan_index({1: 1}, again.stamps())
    assert plan == IndexPlan(add=(), remove=(2,))
    again.apply([], list(plan.remove))
    assert (again.document_count(), again.stamps()) == (1, {1: 1})
    again.close()


def test_stored_stems_follow_every_change(index: FulltextIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.apply([passages(1, "granite"), passages(2, "slate")], [])
    for _ in range(2):
        assert leads_of(index, "granite", 1, 2) == {1: 1.0, 2: 0.0}
    index.apply([passages(2, "granite", stamp=2)], [1])
    assert leads_of(index, "granite", 1, 2) == {2: 1.0}
    monkeypatch.setattr("lithos.search.index.lead_stems.KEPT_BYTES", 1)
    index.apply([passages(2, "the granite", stamp=3)], [])
    for _ in range(2):
        assert leads_of(index, "granite", 2) == {2: round(1 / 1.04, 6)}
    assert index._leads is not None
    assert index._leads._kept == {}


def test_index_is_removed_even_when_a_lock_file_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of tantivy creates this file, because it uses the index for a moment after it is closed."""
    index, times, rmdir = tmp_path / "index", iter(range(3)), os.rmdir
    index.mkdir()

    def rmdir_late(path: str, **options: Any) -> None:
        if next(times, None) is not None:
            (index / ".tantivy-meta.lock").touch()
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", rmdir_late)
    remove_index(index)
    assert not index.exists()
