"""Every source kind: the sample is imported and answers questions over MCP (behaviours 240 and 241)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from lithos.imports.files.kinds import known_kinds
from tests import upstream
from tests.e2e.feeds import call_tool
from tests.e2e.imports import bring, numbers
from tests.e2e.process import running_lithos
from tests.imports.files.samples import DATA, EXPECTED, read, records
from tests.repeats import first_of

QUESTIONS: Final[list[dict[str, str]]] = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
#: Samples that other tests count, with a question each: kind, source, query, and title of the note.
OTHERS: Final = (
    ("markdown", "markdown", "atlas", "Atlas"),
    ("jsonl", "mem0.jsonl", "", ""),
    ("lithos", "", "zanzibar", "Raft"),
)


@pytest.mark.slow
@pytest.mark.parametrize("sample", first_of([*EXPECTED], 3))
def test_sample_is_planned_imported_and_answers_its_questions(sample: str, tmp_path: Path) -> None:
    """Behaviours 240 and 241: a server runs, and `lithos import` detects the source kind."""
    data, source, expected = tmp_path / "data", tmp_path / Path(sample).name, EXPECTED[sample]
    shutil.copytree(DATA / sample, source)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    planned = bring(data, source, "--dry-run")
    assert planned["kind"] == expected["kind"]
    with running_lithos(data) as server:
        first = bring(data, source, "--into", "moved")
        assert first["notes"] == planned["notes"]
        assert first["notes"]["created"] == expected["notes"]
        assert first["notes"]["malformed"] == len(expected["skipped"])
        read_again = records(read(expected["kind"], source)).values()
        dates = [date for note in read_again for date in (note.created_at, note.updated_at) if date]
        assert first["carried"] == {"links": expected["links"], "tags": expected["tags"], "dates": len(dates)}
        assert {path: path.read_bytes() for path in before} == before
        assert numbers(bring(data, source, "--into", "moved")).keys() <= {
            "unchanged", "malformed", "duplicate"
        }  # fmt: skip
        asked = [question for question in QUESTIONS if question["sample"] == sample]
        for question in asked:
            found = call_tool(server, "lithos_search", query=question["query"], mode="fulltext")
            assert question["title"] in [row["title"] for row in found["results"]], question
    assert asked or "damaged" in sample or sample == "claude-memory-home"


@pytest.mark.slow
def test_upstream_data_and_other_samples_answer_their_questions(tmp_path: Path) -> None:
    """Behaviour 240"""
    data, theirs = tmp_path / "data", tmp_path / "theirs"
    upstream.build(theirs)
    with running_lithos(data) as server:
        for kind, name, query, title in OTHERS:
            report = bring(data, DATA / name if name else theirs)
            assert report["kind"] == kind
            assert report["notes"]["created"] > 0
            if query:
                found = call_tool(server, "lithos_search", query=query, mode="fulltext")
                assert title in [row["title"] for row in found["results"]]


@pytest.mark.slow
def test_changed_source_updates_only_notes_without_local_changes(tmp_path: Path) -> None:
    """Behaviour 240: covers a source that is not Markdown."""
    data, source = tmp_path / "data", tmp_path / "memory"
    shutil.copytree(DATA / "server-memory", source)
    (file,) = source.iterdir()
    with running_lithos(data) as server:
        assert numbers(bring(data, source)) == {"created": 3}
        rows = {row["title"]: row for row in call_tool(server, "lithos_list")["items"]}
        mine = rows["Northwind Rail"]
        call_tool(server, "lithos_note_edit", id=mine["id"], agent="ann", op="append", text="Mine.")
        text = file.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            if line["type"] == "entity":
                line["observations"].append("is told anew")
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        assert numbers(bring(data, source)) == {"updated": 2, "changed_here": 1}
        kept = call_tool(server, "lithos_read", id=mine["id"])["content"]
        assert "Mine." in kept
        assert "told anew" not in kept
        other = call_tool(server, "lithos_read", id=rows["Ada Lindqvist"]["id"])["content"]
        assert "told anew" in other


def test_every_source_kind_has_a_sample() -> None:
    kinds = {expected["kind"] for expected in EXPECTED.values()} | {kind for kind, *_ in OTHERS} | {"jsonl"}
    assert kinds == set(known_kinds())
