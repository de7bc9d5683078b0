"""Samples. Each has the expected counts and is recognised as exactly one kind (behaviours 240, 241)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lithos.imports.model.importing import ImportedAttachment, ImportRefused, Record
from tests.imports.files.samples import DATA, EXPECTED, SOURCES, read, records, skipped


@pytest.mark.parametrize("sample", EXPECTED)
def test_sample_has_the_expected_contents(sample: str) -> None:
    """behaviours 240 and 241"""
    expected: dict[str, Any] = EXPECTED[sample]
    items = read(expected["kind"], DATA / sample)
    found = [item for item in items if isinstance(item, Record)]
    assert {
        "kind": expected["kind"],
        "notes": len(records(items)),
        "titles": [record.title for record in found],
        "links": sum(record.links for record in found),
        "tags": sum(len(record.tags) for record in found),
        "dates": sum(record.created_at is not None for record in found),
        "edges": sum(len(record.edges) for record in found),
        "attachments": sum(isinstance(item, ImportedAttachment) for item in items),
    } == {key: value for key, value in expected.items() if key != "skipped"}
    told = skipped(items)
    assert told.keys() == expected["skipped"].keys()
    assert all(told[position].startswith(reason) for position, reason in expected["skipped"].items())


@pytest.mark.parametrize("sample", EXPECTED)
def test_sample_is_recognised_only_as_its_own_kind(sample: str) -> None:
    """behaviour 240"""
    path = DATA / sample
    assert [kind for kind, source in SOURCES.items() if source.recognises(path)] == [EXPECTED[sample]["kind"]]


@pytest.mark.parametrize("sample", EXPECTED)
def test_sample_is_read_identically_from_any_folder(sample: str, tmp_path: Path) -> None:
    """behaviour 240"""
    kind = EXPECTED[sample]["kind"]
    copied = tmp_path / Path(sample).name
    shutil.copytree(DATA / sample, copied)
    before = {record.id: record.hash for record in records(read(kind, DATA / sample)).values()}
    assert {record.id: record.hash for record in records(read(kind, copied)).values()} == before
    assert all(int(digest, 16) for digest in before.values())


@pytest.mark.parametrize("question", json.loads((DATA / "questions.json").read_text(encoding="utf-8")))
def test_named_note_contains_the_answer_to_the_question(question: dict[str, str]) -> None:
    """behaviour 240"""
    found = records(read(question["kind"], DATA / question["sample"])).values()
    (note,) = [record for record in found if record.title == question["title"]]
    text = f"{note.title}\n{note.content}".lower()
    assert sum(word.lower() in text for word in question["query"].split()) >= 2
    assert note.title in EXPECTED[question["sample"]]["titles"]


NEITHER = {
    "markdown": {"a.md": "# A\n\n- [x] done\n- see [[b]]\n", "b.md": "---\ntitle: B\ntags: [x]\n---\ntext\n"},
    "obsidian": {".obsidian/app.json": "{}", "CLAUDE.md": "# Vault\n", "a.md": "text"},
    "obsidian publish": {"a.md": "---\npermalink: a\n---\n\ntext\n"},
    "mem0": {"memory.jsonl": '{"id": "1", "memory": "likes tea", "created_at": "2024-01-01"}\n'},
    "lines": {"memory.jsonl": '{"text": "says \\"entityType\\": x", "type": "entity of some sort"}\n'},
    "json": {"conversations.json": '[{"title": "x", "messages": []}]'},
    "empty": {"readme.txt": ""},
}


@pytest.mark.parametrize("name", NEITHER)
def test_unknown_file_is_not_recognised_as_any_kind(name: str, tmp_path: Path) -> None:
    """behaviour 240"""
    for path, text in NEITHER[name].items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    inner = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "CLAUDE.md"]
    for path in (tmp_path, *inner, tmp_path / "missing"):
        assert [kind for kind, source in SOURCES.items() if source.recognises(path)] == []


@pytest.mark.parametrize("kind", SOURCES)
def test_unknown_source_is_refused_with_advice(kind: str, tmp_path: Path) -> None:
    """behaviour 241"""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.bin").write_bytes(bytes(range(256)))
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 nothing")
    for path in (tmp_path / "missing", tmp_path / "empty", tmp_path / "file.bin", tmp_path / "no.zip"):
        if kind == "claude-memory" and path.is_file():
            continue  # `claude-memory` accepts any file that the user names
        with pytest.raises(ImportRefused, match=r"Name|Download|Check"):
            read(kind, path)


@pytest.mark.parametrize("kind", ["server-memory", "chatgpt", "claude"])
@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[",
        b"{}\n[]\n",
        b"[null, 1, [], {}]",
        b'{"type": "entity"}\n{"type": "relation", "from": 1}\n{"type": "entity", "name": "x", '
        b'"observations": 5}',
        b'{"mapping": {"a": {"parent": {}, "children": 3, "message": []}}, "current_node": []}',
        b'[{"mapping": {"a": {"message": {"author": 1, "content": [], "metadata": 2}}}}]',
        b'[{"chat_messages": [1, null, {"content": [1, {"type": []}], "files": 4, "uuid": []}]}]',
        b'[{"chat_messages": [{"sender": {}, "text": "\\ud800\\u0000", "uuid": "a"}], "name": 5, '
        b'"created_at": {}}]',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" + b"\x00" * 1000,
        b'{"type":"entity","name":"' + b"\xff" * 10 + b'"}',
    ],
)
def test_damaged_file_is_read_or_refused(kind: str, data: bytes, tmp_path: Path) -> None:
    """behaviour 241"""
    path = tmp_path / "conversations.json"
    path.write_bytes(data)
    try:
        items = read(kind, path)
    except ImportRefused:
        return
    assert items
