"""The command `lithos merge-driver`: the merge driver for git (docs/spec/copies.md §3)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lithos.app.main import main

ROOT = Path(__file__).parents[2]
BASE = "---\nid: x\nversion: 1\ntags: [a]\n---\n\n# T\n\none\n\ntwo\n"
OURS = BASE.replace("version: 1", "version: 2").replace("[a]", "[a, o]").replace("one", "ours")
THEIRS = BASE.replace("version: 1", "version: 4").replace("[a]", "[a, t]").replace("two", "theirs")
BOTH = "---\nid: x\nversion: 4\ntags: [a, o, t]\n---\n\n# T\n\nours\n\ntheirs\n"


def drive(folder: Path, base: bytes, ours: bytes, theirs: bytes, *options: str) -> int:
    names = [folder / name for name in ("base", "ours", "theirs")]
    for path, data in zip(names, (base, ours, theirs), strict=True):
        path.write_bytes(data)
    return main(["merge-driver", *map(str, names), *options])


def test_merge_driver_writes_both_sides_without_leaving_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "ours").touch(mode=0o640)
    os.chmod(tmp_path / "ours", 0o640)
    assert drive(tmp_path, BASE.encode(), OURS.encode(), THEIRS.encode()) == 0
    assert (tmp_path / "ours").read_text() == BOTH
    assert (tmp_path / "theirs").read_text() == THEIRS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base", "ours", "theirs"]
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o640


def test_conflict_is_marked_and_reported_with_exit_code_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = drive(tmp_path, b"a\n", b"o\n", b"t\n", "--path", "My note.md", "--marker-size", "9")
    assert code == 1
    assert (tmp_path / "ours").read_text() == ("<<<<<<<<< ours\no\n=========\nt\n>>>>>>>>> theirs\n")
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "lithos: My note.md has a conflict. Choose between the markers, then git add it.\n"


def test_merge_driver_accepts_side_names(tmp_path: Path) -> None:
    assert drive(tmp_path, b"", b"o\n", b"t\n", "--ours-name", "HEAD", "--theirs-name", " ") == 1
    assert (tmp_path / "ours").read_text() == "<<<<<<< HEAD\no\n=======\nt\n>>>>>>> theirs\n"


def test_merge_of_binary_files_keeps_our_version_as_a_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drive(tmp_path, b"\0a", b"\0o", b"\0t", "--json") == 1
    assert (tmp_path / "ours").read_bytes() == b"\0o"
    told = json.loads(capsys.readouterr().out)
    assert told == {"path": str(tmp_path / "ours"), "conflicts": 1, "binary": True}


def test_unreadable_or_unwritable_file_fails_the_merge_and_reports_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the merge did not fail, a person might commit a file that lacks the changes of the other side."""
    assert drive(tmp_path, b"a\n", b"o\n", b"t\n") == 1
    (tmp_path / "theirs").unlink()
    capsys.readouterr()
    assert main(["merge-driver", *(str(tmp_path / name) for name in ("base", "ours", "theirs"))]) == 129
    told = capsys.readouterr().err
    assert told.startswith(f"lithos: {tmp_path}/ours was not merged: ")
    assert "Traceback" not in told
    (tmp_path / "theirs").mkdir()
    assert main(["merge-driver", *(str(tmp_path / name) for name in ("base", "ours", "theirs"))]) == 129


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_uses_the_merge_driver_as_the_guide_describes(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "two-machines.md").read_text()
    driver = next(line for line in guide.split("\n") if "merge.lithos.driver" in line)
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    vault = tmp_path / "vault"
    vault.mkdir()

    def run(command: str, expected: int = 0) -> str:
        told = subprocess.run(
            ["sh", "-c", command], cwd=vault, env=environment, capture_output=True, text=True, check=False
        )
        assert told.returncode == expected, told.stdout + told.stderr
        return told.stdout

    def commit(branch: str, text: str) -> None:
        (vault / "A note.md").write_text(text)
        run(f"git checkout -qB {branch} && git add -A && git commit -qm {branch}")

    run("git init -q -b main")
    run(driver.replace("git config --global", "git config"))
    (vault / ".gitattributes").write_text("*.md merge=lithos\n")
    commit("main", BASE)
    commit("other", THEIRS)
    run("git checkout -q main")
    commit("main", OURS)
    run("git merge -q other")
    assert (vault / "A note.md").read_text() == BOTH
    run("git checkout -q other")
    commit("other", THEIRS.replace("one", "uno"))
    run("git checkout -q main")
    run("git merge other", expected=1)
    text = (vault / "A note.md").read_text()
    assert "<<<<<<< " in text
    assert {"ours", "uno", "theirs"} <= set(text.split("\n"))
    assert "version: 4" in text
