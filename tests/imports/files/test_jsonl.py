"""JSON lines as import sources (behaviours 240 and 241)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.imports.files import jsonl
from lithos.imports.files.jsonl import JsonLinesSource, title_of
from lithos.imports.files.reading import read_moment
from lithos.imports.model.importing import Degraded, ImportRefused, Item, Malformed, Record
from tests.imports.files.samples import DATA, measure_peak


def read(path: Path) -> list[Item]:
    return list(JsonLinesSource().read(path))


def test_damaged_lines_are_reported_with_position_and_reason() -> None:
    """Behaviour 241"""
    items = read(DATA / "damaged.jsonl")
    told = {item.position: item.reason for item in items if isinstance(item, Malformed)}
    assert list(told) == [f"line {n}" for n in (3, 4, 5, 6, 9, 10, 11, 12)]
    assert "not valid JSON" in told["line 3"]
    assert "not a JSON object" in told["line 5"]
    assert "no text" in told["line 6"]
    assert "surrogate" in told["line 9"]
    assert "NaN" in told["line 10"]
    assert "not valid UTF-8" in told["line 11"]
    assert "may be truncated" in told["line 12"]
    kept = [item for item in items if isinstance(item, Record)]
    assert [record.id for record in kept][1:] == ["7", "d", "7"]
    odd = next(record for record in kept if record.id == "d")
    assert (odd.created_at, odd.properties["created_at"]) == (None, "yesterday")
    assert [item.position for item in items if isinstance(item, Degraded)] == ["line 7"]


def test_object_without_id_gets_its_id_from_its_content(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('\ufeff{"text": "one"}\n\n{"text": "two"}\n', encoding="utf-8")
    one, two = (item for item in read(file) if isinstance(item, Record))
    assert one.id != two.id
    assert (one.position, two.position) == ("line 1", "line 3")
    again = [item for item in read(file) if isinstance(item, Record)]
    assert [(each.id, each.hash) for each in again] == [(one.id, one.hash), (two.id, two.hash)]


def test_line_above_the_size_limit_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 100)
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({"text": "x" * 300_000}) + "\n" + json.dumps({"text": "fits"}) + "\n")
    items = read(file)
    assert isinstance(items[0], Malformed)
    assert (items[0].position, "more than 100 bytes" in items[0].reason) == ("line 1", True)
    assert isinstance(items[1], Record)
    assert items[1].content == "fits"


def test_memory_use_does_not_grow_with_the_file_size(tmp_path: Path) -> None:
    file, peaks = tmp_path / "x.jsonl", []
    for lines in (20, 100, 600):  # the first run warms up and is not compared
        file.write_text(
            "".join(json.dumps({"id": at, "text": f"text {at} " + "x" * 2_000}) + "\n" for at in range(lines))
        )
        found, peak = measure_peak(JsonLinesSource(), file)
        assert found == lines
        peaks.append(peak)
    assert peaks[2] < peaks[1] + 200_000


def test_file_without_any_json_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match="cannot be read"):
        read(tmp_path / "nothing")
    with pytest.raises(ImportRefused, match="not a file of JSON lines"):
        read(tmp_path)
    assert not JsonLinesSource().recognises(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"type": "entity", "name": "x"}\n')
    assert not JsonLinesSource().recognises(tmp_path / "other.jsonl")
    (tmp_path / "text.jsonl").write_text('damaged\n{"text": "x"}\n')
    assert JsonLinesSource().recognises(tmp_path / "text.jsonl")


MOMENTS: list[tuple[object, datetime | None]] = [
    ("2024-05-03", datetime(2024, 5, 3, tzinfo=UTC)),
    ("2024-05-03T10:00:00+02:00", datetime(2024, 5, 3, 8, tzinfo=UTC)),
    ("2024-05-03 10:00", datetime(2024, 5, 3, 10, tzinfo=UTC)),
    (1714730400, datetime(2024, 5, 3, 10, tzinfo=UTC)),
    (1714730400.5, datetime(2024, 5, 3, 10, 0, 0, 500_000, tzinfo=UTC)),
    (1714730400000, datetime(2024, 5, 3, 10, tzinfo=UTC)),
    (1714730400000000, datetime(2024, 5, 3, 10, tzinfo=UTC)),
    ("1714730400", datetime(2024, 5, 3, 10, tzinfo=UTC)),
    ("20240503", datetime(2024, 5, 3, tzinfo=UTC)),
    ("", None),
    ("soon", None),
    (True, None),
    (None, None),
    (-5, None),
    (1e300, None),
    ("nan", None),
    ([2024], None),
]


def test_dates_in_all_supported_formats_are_read() -> None:
    assert [(value, read_moment(value)) for value, _ in MOMENTS] == MOMENTS


def test_title_is_taken_from_the_first_line() -> None:
    assert title_of("\n\n## Heading here\nmore") == "Heading here"
    assert title_of("- ") == "Untitled"
    cut = title_of("word " * 50)
    assert set(cut.split()) == {"word"}
    assert 70 < len(cut) <= 80
