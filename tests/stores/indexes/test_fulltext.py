"""The full-text index as a store: format, damage, batches, failures, threads."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import tantivy

from lithos.core.text.query import Node, parse_query
from lithos.stores.indexes import IndexFailed, fulltext_schema
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.fulltext_query import Filters
from tests.stores.fulltext_entries import entry

ANYTHING = Filters()


def query(text: str) -> Node:
    tree = parse_query(text)
    assert tree is not None
    return tree


def found(index: FulltextIndex, text: str, filters: Filters = ANYTHING) -> list[int]:
    return [serial for serial, _ in index.search(query(text), 50, filters)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / ".tantivy"


@pytest.fixture
def index(directory: Path) -> Iterator[FulltextIndex]:
    opened = FulltextIndex.open(directory)
    yield opened
    opened.close()


def test_a_missing_index_starts_empty_and_leaves_its_marker(directory: Path) -> None:
    """behaviour 64"""
    index = FulltextIndex.open(directory)
    assert index.was_rebuilt
    assert index.rebuild_reason == "there was no index"
    assert (index.stamps(), index.document_count(), index.last_updated()) == ({}, 0, None)
    assert (directory / ".schema_version").read_text().strip() == "L1"


def test_a_matching_marker_keeps_the_index(index: FulltextIndex, directory: Path) -> None:
    """behaviour 64"""
    index.apply([entry(1, "granite"), entry(2, "basalt")], [])
    index.close()
    again = FulltextIndex.open(directory)
    assert not again.was_rebuilt
    assert found(again, "granite") == [1]
    assert again.stamps() == {1: 11, 2: 21}


@pytest.mark.parametrize("marker", ["L0", "", None])
def test_another_or_no_marker_empties_the_index(
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


def test_an_index_of_another_schema_is_emptied(directory: Path) -> None:
    directory.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("something")
    tantivy.Index(builder.build(), path=str(directory))
    fulltext_schema.write_marker(directory, "L1")
    index = FulltextIndex.open(directory)
    assert "does not open" in str(index.rebuild_reason)


def damage(data: bytes) -> dict[str, bytes | None]:
    """Return what may become of a file's bytes; `None` is a file that is gone."""
    middle = len(data) // 3
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    ways = {"garbage": b"\x00garbage" * 20, "truncated": data[:middle], "emptied": b"", "gone": None}
    return ways if data.startswith(b"{") else {**ways, "one bit": flipped}


def test_any_damaged_file_empties_the_index_and_it_works_again(index: FulltextIndex, tmp_path: Path) -> None:
    """behaviour 65"""
    index.apply([entry(n, f"granite {n}") for n in range(5)], [])
    index.apply([], [3])
    index.close()
    whole, copy = tmp_path / ".tantivy", tmp_path / "copy"
    names = [p.name for p in whole.iterdir() if not p.name.startswith(".") and p.suffix != ".lock"]
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


def test_what_a_crash_leaves_beside_the_index_does_not_matter(index: FulltextIndex, directory: Path) -> None:
    index.apply([entry(1, "granite")], [])
    index.close()
    (directory / "0123456789abcdef0123456789abcdef.idx").write_bytes(b"half")
    again = FulltextIndex.open(directory)
    assert not again.was_rebuilt
    assert found(again, "granite") == [1]


def test_wiping_keeps_a_linked_directory_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "sub").mkdir(parents=True)
    (elsewhere / "file").write_text("x")
    link = tmp_path / ".tantivy"
    link.symlink_to(elsewhere)
    FulltextIndex.open(link).close()
    assert link.is_symlink()
    assert not (elsewhere / "file").exists()
    assert (elsewhere / ".schema_version").exists()


def test_a_batch_adds_replaces_and_removes(index: FulltextIndex) -> None:
    index.apply([entry(1, "granite"), entry(2, "granite"), entry(3, "granite")], [])
    index.apply([entry(2, "basalt", stamp=77), entry(4, "granite")], [1, 99])
    assert found(index, "granite") == [3, 4]
    assert found(index, "basalt") == [2]
    assert index.stamps() == {2: 77, 3: 31, 4: 41}
    assert index.document_count() == 3


def test_the_last_entry_of_a_serial_in_a_batch_counts(index: FulltextIndex) -> None:
    index.apply([entry(1, "granite"), entry(1, "basalt", stamp=5)], [1])
    assert index.stamps() == {1: 5}
    assert found(index, "granite basalt") == [1]


def test_the_largest_serial_and_stamp_survive(index: FulltextIndex, directory: Path) -> None:
    index.apply([entry(2**40, "granite", stamp=2**63 - 1), entry(0, "granite", stamp=0)], [])
    index.close()
    again = FulltextIndex.open(directory)
    assert again.stamps() == {2**40: 2**63 - 1, 0: 0}
    again.apply([], [2**40])
    assert again.stamps() == {0: 0}


def test_an_empty_batch_commits_nothing(index: FulltextIndex) -> None:
    index.apply([], [])
    assert index.last_updated() is None


def test_last_updated_is_the_time_of_the_last_commit(index: FulltextIndex, directory: Path) -> None:
    before = datetime.now(UTC)
    index.apply([entry(1)], [])
    written = index.last_updated()
    assert written is not None
    assert before <= written <= datetime.now(UTC)
    index.close()
    reopened = FulltextIndex.open(directory).last_updated()
    assert reopened is not None
    assert abs((reopened - written).total_seconds()) < 5


def test_a_failed_batch_changes_nothing_and_the_next_one_works(
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


def test_a_second_writer_is_refused_without_harm(index: FulltextIndex, directory: Path) -> None:
    index.apply([entry(1, "granite")], [])
    other = FulltextIndex.open(directory)
    assert found(other, "granite") == [1]
    with pytest.raises(IndexFailed):
        other.apply([entry(2, "granite")], [])
    index.apply([entry(3, "granite")], [])
    assert found(index, "granite") == [1, 3]


def test_closing_twice_is_fine_and_searches_still_answer(index: FulltextIndex) -> None:
    index.apply([entry(1, "granite")], [])
    index.close()
    index.close()
    assert found(index, "granite") == [1]


def test_searches_during_batches_see_whole_batches(index: FulltextIndex) -> None:
    """lifecycle spec, section 3: reads never wait for a write and never see half of one."""
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


def test_the_writer_may_live_in_another_thread_than_the_opener(index: FulltextIndex) -> None:
    for n in range(3):
        worker = threading.Thread(target=index.apply, args=([entry(n, "granite")], []))
        worker.start()
        worker.join()
    assert found(index, "granite") == [0, 1, 2]
