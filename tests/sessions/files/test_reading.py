"""Reading of lines and documents in bounded memory."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from lithos.sessions.files.documents import LARGEST_DOCUMENT, read_document
from lithos.sessions.files.lines import (
    LONGEST_LINE,
    TOO_LONG,
    NotReadable,
    has_marks,
    marks_at,
    opened_transcript,
    read_records,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def read_all(path: Path) -> tuple[list[int], dict[str, int]]:
    """Read a file to its end. Return the values of `n` in its records, and what was skipped."""
    found, skipped, offset = list[int](), dict[str, int](), 0
    with opened_transcript(str(path)) as descriptor:
        while True:
            reading = read_records(descriptor, offset)
            found += [record["n"] for record in reading.records]
            for reason, count in reading.skipped.items():
                skipped[reason] = skipped.get(reason, 0) + count
            offset = reading.offset
            if reading.is_done:
                return found, skipped


def test_all_lines_are_read_across_the_borders_of_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"n": n, "x": "y" * (n * 37 % 5_000)}) + "\n" for n in range(2_000)))
    assert read_all(path) == (list(range(2_000)), {})


def test_line_of_50_mb_is_skipped_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"n": 1}\n{"n": 2, "x": "')
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n{"n": 3}\n')
    tracemalloc.start()
    try:
        assert read_all(path) == ([1, 3], {TOO_LONG: 1})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * LONGEST_LINE


def test_byte_order_mark_and_windows_line_breaks_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"n": 1}\r\n\r\n{"n": 2}\r\n')
    assert read_all(path) == ([1, 2], {})


def test_deeply_nested_line_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n' + "[" * 100_000 + "\n")
    assert read_all(path) == ([1], {"damaged lines": 1})


def test_marks_change_with_both_ends_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for text, is_same in (("a" * 999 + "more", True), ("b" + "a" * 998, False), ("a" * 998 + "b", False)):
        path.write_text("a" * 999)
        with opened_transcript(str(path)) as descriptor:
            marks = marks_at(descriptor, 999)
        path.write_text(text)
        with opened_transcript(str(path)) as descriptor:
            assert has_marks(descriptor, marks) is is_same


def test_links_and_special_files_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic links"), opened_transcript(str(tmp_path / "link")):
        pass
    with pytest.raises(NotReadable), opened_transcript(str(tmp_path / "pipe")):
        pass


def test_document_is_one_record(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"n": 1}')
    assert read_document(str(path)).records == [{"n": 1}]


@pytest.mark.parametrize(("text", "reason"), [("{", "not valid JSON"), ("[]", "not an object")])
def test_damaged_document_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(NotReadable, match=reason):
        read_document(str(path))


def test_document_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_DOCUMENT + 1)
    with pytest.raises(NotReadable, match="16 MiB are not read"):
        read_document(str(path))


def test_compressed_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    packed = zstd.compress(b'{"n": 1}\ndamaged\n{"n": 2}\n')
    path.write_bytes(packed)
    reading = read_document(str(path))
    assert (reading.records, dict(reading.skipped)) == ([{"n": 1}, {"n": 2}], {"damaged lines": 1})
    path.write_bytes(b"no zstd")
    with pytest.raises(NotReadable, match="cannot be unpacked"):
        read_document(str(path))
