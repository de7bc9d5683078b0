"""`lithos wait`, `events`, `audit` and `inspect tasks` with a real server, and across its restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lithos.app.main import main
from tests.e2e.feeds import await_clients, call_tool, command, write_notes
from tests.e2e.process import Lithos, run_lithos, running_lithos

KEYS = ["id", "seq", "type", "agent", "payload", "tags", "timestamp"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lithos]:
    with running_lithos(tmp_path_factory.mktemp("wait") / "data") as server:
        yield server


@pytest.fixture
def data(server: Lithos) -> Path:
    return server.stderr.with_name("data")


@pytest.mark.slow
def test_wait_in_another_process_ends_with_the_finding(server: Lithos, data: Path) -> None:
    """behaviours 208, 335, Show 1: events of other tasks do not end the wait."""
    mine, other = (
        call_tool(server, "lithos_task_create", title=title, agent="ada")["task_id"] for title in "ab"
    )
    with command(data, "wait", "--types", "finding.posted", "--task", mine[:8], "--timeout", "20") as waiting:
        await_clients(server, 1)
        call_tool(server, "lithos_finding_post", task_id=other, agent="bob", summary="not this")
        call_tool(server, "lithos_task_update", task_id=mine, agent="bob", title="c")
        posted = call_tool(server, "lithos_finding_post", task_id=mine, agent="bob", summary="this")
        (event,) = waiting.end(0)
    assert list(event) == KEYS
    assert (event["type"], event["agent"]) == ("finding.posted", "bob")
    assert event["payload"]["task_id"] == mine
    assert event["payload"]["finding_id"] == posted["finding_id"]


@pytest.mark.slow
def test_wait_without_an_event_exits_with_3_at_its_timeout(
    server: Lithos, data: Path, tmp_path: Path
) -> None:
    """behaviours 208, 209: covers a wait with a server and a wait without one."""
    for place in (data, tmp_path / "nowhere"):
        waited = run_lithos("-d", place, "--json", "wait", "--types", "no.such", "--timeout", "0.3")
        assert (waited.returncode, waited.stdout, waited.stderr) == (3, "", "")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_event_cursor_neither_skips_nor_repeats_events_between_calls(server: Lithos, data: Path) -> None:
    """behaviour 208"""
    arguments = ("wait", "--types", "note.created", "--cursor", "show", "--timeout")
    assert run_lithos("-d", data, *arguments, "0.5").returncode == 3
    titles = [f"Cursor {n}" for n in range(3)]
    write_notes(server, titles)
    for title in titles:
        waited = run_lithos("-d", data, *arguments, "20")
        assert (waited.returncode, json.loads(waited.stdout)["payload"]["title"]) == (0, title)
    assert run_lithos("-d", data, *arguments, "0.5").returncode == 3


@pytest.mark.slow
def test_since_option_includes_earlier_events_and_reports_unknown_positions(
    server: Lithos, data: Path
) -> None:
    """behaviour 208"""
    write_notes(server, ["Since 1", "Since 2"])
    events = [
        json.loads(line) for line in run_lithos("-d", data, "events", "--no-follow").stdout.splitlines()
    ]
    first, second = events[-2:]
    waited = run_lithos("-d", data, "wait", "--since", first["id"], "--timeout", "20")
    assert (waited.returncode, json.loads(waited.stdout)) == (0, second)
    lost = run_lithos("-d", data, "wait", "--since", "17", "--task", "x", "--timeout", "20")
    assert lost.returncode == 0
    assert json.loads(lost.stdout)["type"] == "resync"


@pytest.mark.slow
def test_wait_command_waits_for_a_server_and_survives_its_restart(tmp_path: Path) -> None:
    """behaviour 208"""
    data = tmp_path / "data"
    data.mkdir()
    with command(data, "wait", "--types", "note.created", "--timeout", "60") as waiting:
        with running_lithos(data) as server:
            await_clients(server, 1)
        assert waiting.process.poll() is None
        with running_lithos(data) as server:
            write_notes(server, ["After the restart"])
            (event,) = waiting.end(0)
    assert event["payload"]["title"] == "After the restart"


@pytest.mark.slow
def test_events_command_follows_the_server_and_stops_at_its_limit(server: Lithos, data: Path) -> None:
    """behaviour 209"""
    with command(data, "--json", "events", "--types", "note.created", "--limit", "2") as following:
        await_clients(server, 1)
        call_tool(server, "lithos_agent_register", id="eve")
        write_notes(server, ["Followed 1"])
        assert following.line()["payload"]["title"] == "Followed 1"
        write_notes(server, ["Followed 2"])
        (event,) = following.end(0)
    assert list(event) == KEYS
    assert event["payload"]["title"] == "Followed 2"


@pytest.mark.slow
def test_events_command_reads_the_journal_without_a_server(tmp_path: Path) -> None:
    """behaviour 209"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        write_notes(server, ["One", "Two", "Three"])
        beside = run_lithos("-d", data, "events", "--no-follow", "--types", "note.created")
    alone = run_lithos("-d", data, "events", "--types", "note.created", "--json")
    assert (alone.returncode, alone.stderr, alone.stdout) == (0, "", beside.stdout)
    events = [json.loads(line) for line in alone.stdout.splitlines()]
    assert [event["payload"]["title"] for event in events] == ["One", "Two", "Three"]
    later = run_lithos("-d", data, "events", "--since", events[0]["id"], "--limit", "1")
    assert json.loads(later.stdout) == events[1]
    assert json.loads(run_lithos("-d", data, "events", "--since", "x").stdout)["type"] == "resync"
    missing = run_lithos("-d", tmp_path / "nowhere", "events")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "--data-dir" in missing.stderr


@pytest.mark.slow
def test_audit_command_shows_readers_and_notes(server: Lithos, data: Path) -> None:
    """behaviours 138, 209"""
    title = "Audited"
    note = call_tool(server, "lithos_write", title=title, content="Text.", agent="ada")["id"]
    for agent in ("zoe", "yan"):
        call_tool(server, "lithos_read", id=note, agent_id=agent)
    rows = json.loads(run_lithos("-d", data, "audit", "--doc", note, "--json").stdout)["entries"]
    assert [row["agent_id"] for row in rows] == ["yan", "zoe"]
    (line,) = run_lithos("-d", data, "audit", "-a", "zoe", "-s", "2020-01-01", "-n", "5").stdout.splitlines()
    assert note in line
    assert f"{title}  ({note})" in line
    assert "read" in line
    assert run_lithos("-d", data, "audit", "-a", "nobody").stdout == "No accesses.\n"
    refused = run_lithos("-d", data, "audit", "-s", "yesterday")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--since" in refused.stderr


@pytest.mark.slow
def test_inspect_tasks_shows_only_open_tasks_or_all_tasks(server: Lithos, data: Path) -> None:
    """behaviour 209"""
    done, held = (
        call_tool(server, "lithos_task_create", title=title, agent="ada")["task_id"] for title in ("D", "H")
    )
    call_tool(server, "lithos_task_complete", task_id=done, agent="ada")
    call_tool(server, "lithos_task_claim", task_id=held, agent="zoe", aspect="all of it")
    shown = run_lithos("-d", data, "inspect", "tasks").stdout
    assert done not in shown
    assert "H - zoe on all of it" in shown
    tasks = json.loads(run_lithos("-d", data, "inspect", "tasks", "--all", "--json").stdout)["tasks"]
    assert {done, held} <= {task["id"] for task in tasks}


@pytest.mark.slow
def test_inspect_tasks_shows_findings_and_blockers(server: Lithos, data: Path) -> None:
    first = call_tool(server, "lithos_task_create", title="Lay the pipes", agent="ada")["task_id"]
    then = call_tool(server, "lithos_task_create", title="Fill them", agent="ada", depends_on=[first])
    for summary in ("Dug a trench.", "Half of\nthem " + "lie " * 40):
        call_tool(server, "lithos_finding_post", task_id=first, agent="zoe", summary=summary)
    shown = run_lithos("-d", data, "inspect", "tasks").stdout.splitlines()
    (at,) = [n for n, line in enumerate(shown) if first in line and not line.startswith(" ")]
    assert shown[at + 1].startswith("    findings: 2, the last by zoe: Half of them lie lie")
    assert shown[at + 1].endswith("...")
    (waiting,) = [n for n, line in enumerate(shown) if then["task_id"] in line and not line.startswith(" ")]
    assert shown[waiting + 1].startswith("    waits: ")
    assert '("Lay the pipes")' in shown[waiting + 1]
    tasks = json.loads(run_lithos("-d", data, "inspect", "tasks", "--json").stdout)["tasks"]
    by_id = {task["id"]: task for task in tasks}
    assert [finding["agent"] for finding in by_id[first]["findings"]] == ["zoe", "zoe"]
    assert by_id[then["task_id"]]["blockers"][0]["task_id"] == first
    assert (by_id[first]["blockers"], by_id[first]["claims"]) == ([], [])


def test_wrong_command_line_exits_with_2() -> None:
    for typed in (
        "wait --timeout -1", "wait --timeout nan", "wait --since 1 --cursor x", "events --limit 0",
        "audit -n x",
    ):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(typed.split())
        assert ended.value.code == 2
