"""Hook that checks commit messages (`.ci/commit_message.py`)."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / ".ci" / "commit_message.py"
BODY = "\n\nThe reason is here.\n"


def load_hook() -> object:
    spec = spec_from_file_location("commit_message", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_problems(message: str) -> list[str]:
    found: list[str] = load_hook().find_problems(message)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(
    "message",
    [
        f"Fix flaky quiet-file test: use ctime as clock{BODY}",
        f"{'Add'.ljust(72, 'x')}{BODY}",
        f"Pass the address on{BODY}",
        f"Embed notes in batches{BODY}",
        f"# a comment of git\nFix it{BODY}# Please enter the message; {'x ' * 40}",
        f"Fix it\n\nhttps://example.org/{'x' * 80}",
        "Merge branch 'a' into b",
        'Revert "Add a thing"',
        "fixup! Add a thing.",
        "# only comments: git stops",
    ],
)
def test_good_commit_messages_are_accepted(message: str) -> None:
    assert find_problems(message) == []


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (f"{'Add'.ljust(73, 'x')}{BODY}", "73 characters"),
        (f"Fix it.{BODY}", "full stop"),
        (f"Fix it; add that{BODY}", "semicolon"),
        (f"Fixes it{BODY}", "'Fixes'"),
        (f"Fixed it{BODY}", "'Fixed'"),
        (f"What nobody passes is no parameter{BODY}", "'What'"),
        (f"fix it{BODY}", "'fix'"),
        ("Fix it\n", "no body"),
        ("Fix it\nbecause", "second line"),
        (f"Fix it\n\n{'word ' * 20}", "wrap it"),
    ],
)
def test_problems_of_bad_commit_messages_are_reported(message: str, word: str) -> None:
    (problem,) = find_problems(message)
    assert word in problem


def test_hook_rejects_a_commit_with_a_bad_message(tmp_path: Path) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("Fixed it.", encoding="utf-8")
    bad = subprocess.run([sys.executable, HOOK, file], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert bad.stderr.count("commit message: ") == 3
    file.write_text(f"Fix it{BODY}", encoding="utf-8")
    good = subprocess.run([sys.executable, HOOK, file], capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr.strip()) == (0, "")
