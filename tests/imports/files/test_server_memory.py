"""File of the MCP memory server as an import source (behaviours 240, 241)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.imports.files import server_memory
from lithos.imports.files.server_memory import ServerMemory
from lithos.imports.model.importing import Record, RecordEdge
from tests.imports.files.samples import DATA, SOURCES, measure_peak, read, records, skipped


def write(folder: Path, *values: Any, name: str = "memory.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def entity(name: str, *observations: Any, kind: str = "thing") -> dict[str, Any]:
    return {"type": "entity", "name": name, "entityType": kind, "observations": [*observations]}


def relation(source: str, target: str, kind: str = "knows") -> dict[str, Any]:
    return {"type": "relation", "from": source, "to": target, "relationType": kind}


def test_entity_becomes_a_note_with_observations_and_relations() -> None:
    """behaviour 240"""
    found = records(read("server-memory", DATA / "server-memory"))
    ada = found["Ada Lindqvist"]
    assert ada.content == (
        "- Speaks Swedish and Portuguese\n- Prefers meetings before ten\n  and none on Friday\n"
        "- Ruft Zürich jeden Dienstag an\n- Designed the interlocking in 2019\n\n"
        "## Relations\n\n- works at [[Northwind Rail]]\n- wants_to_visit [[Lisbon]]"
    )
    assert ada.tags == ("person", "engineer")
    assert ada.edges == (RecordEdge("works_at", "Northwind Rail"), RecordEdge("wants_to_visit", "Lisbon"))
    assert found["Northwind Rail"].edges == (RecordEdge("operates", "Signal [Box] 7"),)
    assert "- operates Signal [Box] 7" in found["Northwind Rail"].content
    assert found["Signal [Box] 7"].content == "*No observations.*"


def test_relation_is_reported_only_if_its_start_entity_is_unknown(tmp_path: Path) -> None:
    """behaviour 241"""
    items = read("server-memory", write(tmp_path, relation("b", "a"), entity("a"), relation("a", "gone")))
    assert records(items)["a"].edges == (RecordEdge("knows", "gone"),)
    assert skipped(items) == {"line 1": "the relation knows to 'a' begins at the unknown entity 'b'"}


def test_observations_in_the_formats_of_forks_are_read(tmp_path: Path) -> None:
    """behaviour 240"""
    path = write(
        tmp_path, entity("a", {"content": "dated", "timestamp": "2024"}, 5, None, {"x": 1}, "", "a\0b")
    )
    assert records(read("server-memory", path))["a"].content == '- dated\n- 5\n- {"x": 1}\n- ab'


def test_changed_relation_changes_only_the_hash_of_its_start_note(tmp_path: Path) -> None:
    """behaviour 240"""
    before = records(read("server-memory", write(tmp_path, entity("a"), entity("b"), relation("a", "b"))))
    after = records(
        read("server-memory", write(tmp_path, entity("a"), entity("b"), relation("a", "b", "likes")))
    )
    assert [before[key].hash == after[key].hash for key in "ab"] == [False, True]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252"])
def test_memory_files_in_other_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    """behaviour 241"""
    path = tmp_path / "memory.json"
    text = "\n".join(
        json.dumps(each, ensure_ascii=False) for each in (entity("Zürich", "schön"), entity("b"))
    )
    path.write_bytes(text.encode(encoding))
    assert SOURCES["server-memory"].recognises(tmp_path)
    assert records(read("server-memory", tmp_path))["Zürich"].content == "- schön"


def test_long_entity_is_split_into_several_notes(tmp_path: Path) -> None:
    """behaviour 240"""
    path = write(
        tmp_path, entity("a", *(f"fact{number} {'x' * 90}" for number in range(200))), relation("a", "b")
    )
    parts = [item for item in ServerMemory(12_000).read(path) if isinstance(item, Record)]
    assert [part.id for part in parts] == ["a", "a#2", "a#3"]
    assert parts[1].edges == (RecordEdge("continues", "a"),)
    assert all(f"- fact{number} " in "".join(part.content for part in parts) for number in range(200))


def test_memory_use_does_not_grow_with_the_file_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 241: names and relations are not kept in memory. The 600 names alone take 0.6 MB."""
    monkeypatch.setattr(server_memory, "_BATCH", 50)  # maximum number of lines in memory before a disk write
    peaks = []
    for count in (50, 200, 800):  # the first run warms up and is not compared
        names = [f"entity {number} {'x' * 1_000}" for number in range(count)]
        lines = [
            each
            for at, name in enumerate(names)
            for each in (entity(name, "o"), relation(name, names[at // 2]))
        ]
        found, peak = measure_peak(ServerMemory(), write(tmp_path, *lines))
        assert found == count
        peaks.append(peak)
    assert peaks[2] < peaks[1] + 300_000
