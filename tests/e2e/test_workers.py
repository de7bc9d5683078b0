"""The workers in docs/tasks.md with a real server. Despite kills, each task runs once and in order."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.feeds import call_tool
from tests.e2e.pages import read_blocks
from tests.e2e.process import Lithos, run_lithos, running_lithos, until

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
#: A tenth of a minute, which is the shortest possible claim duration.
MINUTES = "0.1"
#: The work on a task. It prints its begin and its end. The slow task hangs only the first time.
WORK = """
echo "begin $1 $(date +%s.%N) $PPID" >> "$LOG"
if [ "$2" = slow ] && mkdir "$LOG.hung" 2> /dev/null; then sleep 600; fi
sleep 0.02
echo "end $1 $(date +%s.%N) $PPID" >> "$LOG"
"""


def program(name: str) -> str:
    (block,) = [block for block in read_blocks(PAGE.read_text(encoding="utf-8")) if block.name == name]
    return block.text


def strip_types(source: str) -> str:
    """Remove the worker's type annotations, as Node 22.18 does on its own."""
    stripped = re.sub(r"(?<=[\w)]): (?:string|object|Promise<any>)(?=[,) ])", "", source)
    assert stripped != source
    return stripped


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the start command of each worker kind that can run on this machine."""
    (folder / "work.sh").write_text(WORK)
    (folder / "worker.py").write_text(program("worker.py"))
    (folder / "worker.mjs").write_text(strip_types(program("worker.ts")))
    found = {"python": [sys.executable, str(folder / "worker.py")]}
    if node := shutil.which("node"):
        found["typescript"] = [node, str(folder / "worker.mjs")]
    return found


@contextmanager
def worker(command: list[str], server: Lithos, agent: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a running worker. Its own process group makes it possible to kill its children."""
    process = subprocess.Popen(
        [*command, server.url, agent, MINUTES, "sh", str(folder / "work.sh")],
        env=os.environ | {"LOG": str(folder / "log")},
        start_new_session=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def logged(folder: Path, what: str) -> list[tuple[str, float]]:
    """Return task and time of each begin or each end, in order."""
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [(task, float(moment)) for kind, task, moment, _ in lines if kind == what]


def completed(data: Path) -> list[str]:
    """Return the tasks whose completion was reported."""
    told = run_lithos("-d", data, "events", "--types", "task.completed", "--since", "0", "--no-follow")
    return re.findall(r'"task_id": "([^"]+)"', told.stdout)


def test_example_workers_are_short() -> None:
    for name in ("worker.py", "worker.ts"):
        assert len(program(name).splitlines()) <= 35


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["python", "typescript"])
def test_worker_completes_all_tasks_in_order_and_exits(tmp_path: Path, kind: str) -> None:
    """behaviour 258"""
    command = commands(tmp_path).get(kind)
    if command is None:
        pytest.skip("node is not installed")
    with running_lithos(tmp_path / "data") as server:
        tasks: list[str] = []
        for _ in range(3):
            made = call_tool(server, "lithos_task_create", title="T", agent="a", depends_on=tasks)
            tasks.append(made["task_id"])
        with worker(command, server, "w", tmp_path) as process:
            assert process.wait(30) == 0
        assert [task for task, _ in logged(tmp_path, "end")] == tasks
        assert completed(tmp_path / "data") == tasks


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["python", "typescript"])
def test_failing_task_is_tried_three_times_and_then_marked_failed(tmp_path: Path, kind: str) -> None:
    """Behaviour 404."""
    command = commands(tmp_path).get(kind)
    if command is None:
        pytest.skip("node is not installed")
    (tmp_path / "work.sh").write_text('echo "end $1 $(date +%s.%N) $PPID" >> "$LOG"; echo boom; exit 3\n')
    with running_lithos(
        tmp_path / "data", env=os.environ | {"LITHOS_COORDINATION__RETRY_MINUTES": "0.1"}
    ) as server:
        task = call_tool(server, "lithos_task_create", title="T", agent="a")["task_id"]
        with worker(command, server, "w", tmp_path) as process:
            assert process.wait(120) == 0
        assert len(logged(tmp_path, "end")) == 3
        (record,) = call_tool(server, "lithos_task_list", status="failed")["tasks"]
        assert (record["id"], record["outcome"]) == (task, "boom\n")


@pytest.mark.slow
@pytest.mark.deadline(180)
def test_four_workers_complete_a_hundred_tasks_despite_a_kill(tmp_path: Path) -> None:
    """Issue 14, Show 4; behaviours 258, 259, 260."""
    kinds = list(commands(tmp_path).values())
    with running_lithos(tmp_path / "data") as server, ExitStack() as stack:
        before: dict[str, list[str]] = {}
        for number in range(100):
            known = list(before)
            waits_for = [known[number // 2], known[-1]] if number % 4 == 3 else known[:1] * (number > 50)
            title = "slow" if number == 20 else str(number)
            made = call_tool(server, "lithos_task_create", title=title, agent="a", depends_on=waits_for)
            before[made["task_id"]] = waits_for
        slow = list(before)[20]
        workers = {
            f"worker-{number}": stack.enter_context(
                worker(kinds[number % len(kinds)], server, f"worker-{number}", tmp_path)
            )
            for number in range(4)
        }
        until((tmp_path / "log.hung").exists)
        (row,) = call_tool(server, "lithos_task_status", task_id=slow)["tasks"]
        dead = workers.pop(row["claims"][0]["agent"])
        os.killpg(dead.pid, signal.SIGKILL)
        (row,) = call_tool(server, "lithos_task_status", task_id=slow)["tasks"]
        expires = datetime.fromisoformat(row["claims"][0]["expires_at"]).timestamp()
        for process in workers.values():
            assert process.wait(90) == 0
        done = completed(tmp_path / "data")
        assert sorted(done) == sorted(before)
        ended = logged(tmp_path, "end")
        assert sorted(task for task, _ in ended) == sorted(before)
        first, again = [moment for task, moment in logged(tmp_path, "begin") if task == slow]
        assert first < expires <= again
        late = again - expires
        print(f"the dead worker's task went on {late:.2f} s after its claim")  # noqa: T201 - for `pytest -s`
        place = {task: number for number, (task, _) in enumerate(ended)}
        begun = dict(logged(tmp_path, "begin"))
        for task, waits_for in before.items():
            assert all(begun[task] >= ended[place[one]][1] for one in waits_for)


@pytest.mark.slow
async def test_32_agents_compete_for_tasks_of_a_real_server(tmp_path: Path) -> None:
    """behaviour 258: each task is claimed once, oldest first, and never while it is blocked. Fences grow."""
    with running_lithos(tmp_path / "data") as server:
        first = call_tool(server, "lithos_task_create", title="first", agent="a")["task_id"]
        tasks = [first]
        for number in range(1, 160):
            fields = {"depends_on": [first]} if number % 5 == 0 else {}
            made = call_tool(server, "lithos_task_create", title=str(number), agent="a", **fields)
            tasks.append(made["task_id"])
        given: list[tuple[int, str]] = []

        async def race(agent: str, begin: trio.Event) -> None:
            async with WireClient.open(server.address) as client:
                await begin.wait()
                while (got := await client.call("lithos_task_next", agent=agent))["task"]:
                    given.append((got["fence"], got["task"]["id"]))
                assert got == {"task": None, "waiting": 129, "blocked": 31}

        async with trio.open_nursery() as nursery:
            begin = trio.Event()
            for number in range(32):
                nursery.start_soon(race, f"agent-{number}", begin)
            await trio.sleep(0.2)
            begin.set()
        free = [task for number, task in enumerate(tasks) if number == 0 or number % 5]
        assert [task for _, task in sorted(given)] == free
        assert len({fence for fence, _ in given}) == len(free)


@pytest.mark.nightly
@pytest.mark.deadline(120)
def test_expiry_is_reported_only_once_despite_repeated_kills(tmp_path: Path) -> None:
    """behaviour 260: covers claims that expire while no server runs."""
    data = tmp_path / "data"
    fences: list[int] = []
    for _ in range(5):
        with running_lithos(data) as server:
            for number in range(20):
                call_tool(server, "lithos_task_create", title=str(number), agent="a")
                got = call_tool(server, "lithos_task_next", agent="a", ttl_minutes=MINUTES)
                fences.append(got["fence"])
            time.sleep(len(fences) % 3)
            server.kill()
    time.sleep(6)
    with running_lithos(data) as server:
        time.sleep(2)
        told = run_lithos(
            "-d", data, "events", "--types", "task.claim_expired", "--since", "0", "--no-follow"
        )
        assert [int(fence) for fence in re.findall(r'"fence": (\d+)', told.stdout)] == fences
        ready = run_lithos("-d", data, "events", "--types", "task.ready", "--since", "0", "--no-follow")
        assert len(ready.stdout.splitlines()) == len(fences)
