"""Rules and calls for native Windows, which is not supported yet (docs/reference/platforms.md).

The tests with the mark `windows` also run on Windows, without conftest.py. So they use only fixtures of
pytest.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lithos.app.main import main
from lithos.kernel import operating_system
from lithos.kernel.operating_system import LONGEST_PLAIN, name_problem, native_path
from lithos.notes.model.paths import is_portable, portable_path

ROOT = Path(__file__).parent.parent
#: Modules that Windows does not have.
POSIX_ONLY = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "termios"})
#: The process that reads attachments. It gets open files over a socket, which Windows does not have.
READER = frozenset(
    {
        "attachments/extraction/extractor.py",
        "attachments/files/worker.py",
        "attachments/files/worker_answers.py",
    }
)
ONLY = "kernel/operating_system.py"

pytestmark = pytest.mark.windows


@pytest.fixture
def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating_system, "SYSTEM", "win32")


@pytest.mark.parametrize("arguments", [["serve"], ["search", "raft"], ["doctor"]])
def test_commands_are_refused_on_windows(
    on_windows: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    data = tmp_path / "data"
    assert main(["--data-dir", str(data), *arguments]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("Lithos does not run on native Windows yet")
    assert "Nothing was started or changed" in told.err
    assert "WSL 2" in told.err
    assert told.out == ""
    assert not data.exists()


def test_help_is_printed_on_windows(on_windows: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "serve" in capsys.readouterr().out


def test_other_systems_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for system in ("linux", "darwin", "freebsd14"):
        monkeypatch.setattr(operating_system, "SYSTEM", system)
        assert operating_system.refusal() is None


@pytest.mark.parametrize("name", ["a:b.md", "why?.md", 'say "no".md', "a|b", "a*", "<a>", "a\\b", "tab\t.md"])
def test_character_is_refused_only_on_windows(name: str) -> None:
    problem = name_problem(name, "win32")
    assert problem is not None
    assert "Windows does not allow" in problem
    assert name_problem(name, "linux") is None
    assert name_problem(name, "darwin") is None


@pytest.mark.parametrize("name", ["Über uns.md", "日本.md", "a (1) [x] #tag.md", "c++.md", "..."])
def test_ordinary_name_is_allowed_on_windows(name: str) -> None:
    assert name_problem(name, "win32") is None


@pytest.mark.parametrize("name", ["AUX.md", "con", "Lpt1.txt", "COM¹.md", "nul.tar.gz", "end.", "end "])
def test_reserved_name_is_changed_on_every_system(name: str) -> None:
    """A vault moves between machines, so these rules do not depend on the system."""
    assert not is_portable(name)
    assert is_portable(portable_path(name))


def test_new_note_with_a_forbidden_character_is_refused_on_windows(on_windows: None) -> None:
    from lithos.kernel.values.errors import InvalidInput  # noqa: PLC0415 - only here
    from lithos.notes.catalogue.new_paths import path_to_make  # noqa: PLC0415 - loads the text package

    with pytest.raises(InvalidInput, match="cannot be stored on this machine: Windows does not allow ':'"):
        path_to_make("plans/a:b.md", [])
    assert path_to_make("plans/a.md", []) == "plans/a.md"


def test_long_path_gets_the_prefix_on_windows() -> None:
    short = "C:\\vault\\a.md"
    long = "C:\\vault/" + "x" * 300 + ".md"
    share = "\\\\server\\share\\" + "x" * 300
    assert native_path(short, "win32") == short
    assert native_path("C:\\" + "x" * (LONGEST_PLAIN - 3), "win32")[:2] == "C:"
    assert native_path(long, "win32") == "\\\\?\\C:\\vault\\" + "x" * 300 + ".md"
    assert native_path(share, "win32") == "\\\\?\\UNC\\server\\share\\" + "x" * 300
    assert native_path(native_path(long, "win32"), "win32") == native_path(long, "win32")
    assert native_path("/vault/" + "x" * 300, "linux") == "/vault/" + "x" * 300


def test_lock_excludes_a_second_lock(tmp_path: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | operating_system.CLOSE_ON_EXEC
    first, second = (os.open(tmp_path / "lock", flags, 0o600) for _ in range(2))
    try:
        assert operating_system.try_lock(first)
        assert not operating_system.try_lock(second)
        assert not operating_system.try_lock(second, shared=True)
        operating_system.unlock(first)
        assert operating_system.try_lock(second)
    finally:
        os.close(first)
        os.close(second)


def test_bytes_are_read_and_written_at_a_place(tmp_path: Path) -> None:
    """On Windows, text mode would change line ends."""
    flags = os.O_RDWR | os.O_CREAT | operating_system.CLOSE_ON_EXEC
    descriptor = os.open(tmp_path / "file", flags, 0o600)
    try:
        assert operating_system.write_at(descriptor, b"one\ntwo\n\x1a", 0) == 9
        assert operating_system.write_at(descriptor, b"T", 4) == 1
        assert operating_system.read_at(descriptor, 100, 3) == b"\nTwo\n\x1a"
        operating_system.sync_file(descriptor)
        operating_system.set_mode(descriptor, 0o600)
    finally:
        os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"one\nTwo\n\x1a"


def test_free_space_and_limits_are_known(tmp_path: Path) -> None:
    room = operating_system.room_in(tmp_path)
    assert room.bytes > 0
    assert not room.is_read_only
    assert operating_system.most_open_files() > 0
    assert operating_system.node_name()


def test_modules_of_posix_are_imported_in_one_module() -> None:
    """Otherwise nothing of Lithos could be imported on Windows, not even the refusal."""
    importing = set()
    for path in (ROOT / "lithos").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if POSIX_ONLY.intersection(name.partition(".")[0] for name in names):
                importing.add(path.relative_to(ROOT / "lithos").as_posix())
    assert importing <= {ONLY, *READER}
    assert ONLY in importing


@pytest.mark.nightly
def test_type_check_for_windows_finds_no_missing_names() -> None:
    """mypy knows which names of the standard library Windows has."""
    check = [sys.executable, "-m", "mypy", "--platform", "win32", "--no-error-summary", "lithos"]
    run = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    wrong = {line.replace("\\", "/") for line in run.stdout.splitlines() if ": error: " in line}
    files = {re.sub(r"^lithos/|:.*", "", line) for line in wrong}
    assert files == READER, sorted(wrong)
    assert run.stderr == ""


def test_windows_job_may_fail_and_runs_these_tests() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["windows"]
    assert job["runs-on"] == "windows-latest"
    assert job["continue-on-error"] is True
    commands = [step.get("run", "") for step in job["steps"]]
    (tests,) = [each for each in commands if "pytest" in each]
    assert f"--noconftest -o addopts= -m windows tests/{Path(__file__).name}" in tests
