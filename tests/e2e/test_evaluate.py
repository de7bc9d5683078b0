"""`lithos evaluate` in real processes: over HTTP with a server, on files, and with a worse ranking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.feeds import call_tool
from tests.e2e.process import run_lithos, running_lithos, start_lithos
from tests.e2e.vault import snapshot
from tests.servers import put_note

#: Settings for full-text search without semantic search.
WORSE = {"LITHOS_SEARCH__SEMANTIC_WEIGHT": "0.0", "LITHOS_SEARCH__LEAD_WEIGHT": "0.0"}
NOTES = {
    "spaghetti": "# Spaghetti\n\nBoil the noodles in salted water for nine minutes, then add tomato sauce.\n",
    "car": "# Car\n\nA vehicle with four wheels, brakes and a petrol motor.\n",
    "physician": "# Physician\n\nShe treats patients in the hospital and prescribes medicine.\n",
    "reports": "# Reports\n\nHow to write a report: how long, for whom, how often.\n",
    "drafts": "# Drafts\n\nWhat a draft is, and what is in it.\n",
}
QUESTIONS = {
    "how to cook pasta, and what is in the report": "spaghetti",
    "what is an automobile": "car",
    "how doctors help the sick, and how often": "physician",
}


def make_vault(folder: Path) -> tuple[Path, Path]:
    """Create a data directory, and a test file for `evaluate`. Return both paths."""
    data, tests = folder / "data", folder / "tests.yaml"
    for name, text in NOTES.items():
        put_note(data, f"{name}.md", text)
    tests.write_text(
        "".join(
            f"- question: {asked}\n  expect: [{name}.md]\n  within: 10\n" for asked, name in QUESTIONS.items()
        )
    )
    return data, tests


def evaluate(data: Path, tests: Path, *options: str | Path, code: int, **env: str) -> dict[str, Any]:
    done = run_lithos("-d", data, "evaluate", tests, "--json", *options, env=env, cwd=data.parent)
    assert (done.returncode, done.stderr) == (code, ""), done.stdout
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_worse_ranking_is_detected_by_comparison_with_a_baseline(tmp_path: Path) -> None:
    """Behaviour 234: compares two servers with different settings. Every single test still passes."""
    data, tests = make_vault(tmp_path)
    baseline = tmp_path / "base.json"
    with running_lithos(data):
        told = evaluate(data, tests, "--save", baseline, code=0)
        assert told["passed"] == len(QUESTIONS)
        assert evaluate(data, tests, "--against", baseline, code=0)["against"]["same"] == len(QUESTIONS)
    with running_lithos(data, env=WORSE):
        told = evaluate(data, tests, "--against", baseline, code=1)
    assert told["against"]["worse"]
    assert told["against"]["better"] == []
    assert told["failed"] == 0, "every test still passes: only the baseline tells"


@pytest.mark.slow
def test_evaluation_of_files_equals_the_servers_result_without_changes(tmp_path: Path) -> None:
    """Behaviour 234: covers files of a server that was killed during its work."""
    data, tests = make_vault(tmp_path)
    server = start_lithos(data)
    try:
        call_tool(server, "lithos_write", title="Late", content="Written last.", agent="ann")
        told = evaluate(data, tests, "--mode", "retrieve", code=0)
        server.kill()
    finally:
        server.close()
    before = snapshot(data)
    assert evaluate(data, tests, "--mode", "retrieve", code=0) == told
    assert snapshot(data) == before


@pytest.mark.slow
def test_citations_are_written_to_a_file_while_a_server_runs(tmp_path: Path) -> None:
    """Behaviour 234."""
    data, _ = make_vault(tmp_path)
    made = tmp_path / "made.yaml"
    with running_lithos(data) as server:
        task = call_tool(server, "lithos_task_create", title="Cook", agent="ann")["task_id"]
        found = call_tool(server, "lithos_retrieve", query="salted noodles", agent_id="ann", task_id=task)
        call_tool(
            server, "lithos_task_complete",
            task_id=task, agent="ann", cited_nodes=[found["results"][0]["id"]],
        )  # fmt: skip
        done = run_lithos("-d", data, "evaluate", made, "--from-receipts", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        (asked,) = evaluate(data, made, code=0)["questions"]
    assert (asked["question"], asked["rank"]) == ("salted noodles", 1)
    assert "# Spaghetti\n" in made.read_text()


@pytest.mark.slow
def test_doctor_queries_the_running_server(tmp_path: Path) -> None:
    """Behaviour 234."""
    data, tests = make_vault(tmp_path)
    tests.rename(data / "knowledge-tests.yaml")
    with running_lithos(data):
        done = run_lithos("-d", data, "doctor", "--json", cwd=tmp_path)
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    assert checks["knowledge_tests"]["message"] == "3 of 3 knowledge tests pass."
