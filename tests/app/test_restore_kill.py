"""Kill -9 at each step of a restore. The next process opens the old or the new content."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lithos.app.stores import close_stores, open_stores
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.upkeep.maintenance.backup import back_up, restore

pytestmark = pytest.mark.slow
#: System calls of a restore that create, rename or remove names.
STEPS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync")


def config(data: Path) -> Config:
    return Config(storage=StorageConfig(data_dir=data))


def fill(data: Path, *names: str) -> None:
    """Create notes, and two databases with a row of the same name."""
    close_stores(open_stores(config(data)))
    for name in names:
        (data / "knowledge" / name).mkdir(parents=True)
        (data / "knowledge" / name / f"{name}.md").write_text(f"# {name}\n")
    (data / "config.yaml").write_text(f"# {names}\n")
    for database in ("coordination.db", "history.db"):
        with closing(sqlite3.connect(data / ".lithos" / database)) as connection, connection:
            connection.execute("CREATE TABLE kept(name)")
            connection.executemany("INSERT INTO kept VALUES(?)", [(name,) for name in names])


def content(data: Path) -> tuple[object, ...]:
    """Return the content that the next process reads from the data directory."""
    close_stores(open_stores(config(data)))
    notes = sorted(path.name for path in (data / "knowledge").rglob("*.md"))
    settings = (data / "config.yaml").read_text()
    rows: list[Any] = []
    for database in ("coordination.db", "history.db"):
        with closing(sqlite3.connect(data / ".lithos" / database)) as connection:
            there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name='kept'").fetchall()
            rows.append(connection.execute("SELECT name FROM kept ORDER BY 1").fetchall() if there else None)
    return notes, settings, rows


def run_killed(at: int, work: Callable[[], object]) -> bool:
    """Run `work` in a process that kills itself before step `at`.

    Return whether the process reached that step.
    """
    child = os.fork()
    if child == 0:
        steps = 0

        def stepping(real: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any, **more: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **more)

            return step

        try:
            for name in STEPS:
                setattr(os, name, stepping(getattr(os, name)))
            work()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status != 0


@pytest.mark.parametrize("is_killed_twice", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_restore_killed_at_any_step_leaves_old_or_new_content(tmp_path: Path, is_killed_twice: bool) -> None:
    """docs/spec/lifecycle.md §8: the second kill hits the process that continues the restore"""
    old, copy = tmp_path / "old", tmp_path / "copy"
    fill(tmp_path / "new", "newer", "newest")
    back_up(config(tmp_path / "new"), copy)
    fill(old, "oldest", "older", "old")
    before, after = content(old), content(tmp_path / "new")
    found: list[str] = []
    for at in range(1, 1_000):
        data = Path(shutil.copytree(old, tmp_path / f"data {at}"))
        is_over = not run_killed(at, partial(restore, config(data), copy, force=True))
        if is_killed_twice:
            run_killed(1 + at % 20, partial(open_stores, config(data)))
        state = content(data)
        found.append("o" if state == before else "n" if state == after else "?")
        left = [path.name for path in data.glob(".before-restore-*")]
        assert len(left) == (found[-1] == "n"), left
        if found[-1] == "n":
            (aside,) = data.glob(".before-restore-*")
            assert (aside / "config.yaml").read_text() == before[1], "the former content is kept whole"
        shutil.rmtree(data, ignore_errors=True)  # a tantivy thread may still be writing its lock file
        if is_over:
            break
    told = "".join(found)
    print(f"{len(told) - 1} kills: {told}")  # noqa: T201 - for `pytest -s`
    assert told.strip("o").strip("n") == ""
    assert len(told) > 20
    assert told[0] == "o"
    assert told.endswith("nn")


def test_second_restore_finishes_a_killed_restore_before_asking(tmp_path: Path) -> None:
    """Files that were created meanwhile in the target folder are moved aside only with consent."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    fill(tmp_path / "new", "newest")
    back_up(config(tmp_path / "new"), copy)
    data.mkdir()
    at = 1
    while not any(data.glob(".before-restore-placing-*")):
        shutil.rmtree(data)
        data.mkdir()
        assert run_killed(at, lambda: restore(config(data), copy))
        at += 1
    with pytest.raises(Exception, match="is not empty"):
        restore(config(data), copy)
    assert content(data) == content(tmp_path / "new")
