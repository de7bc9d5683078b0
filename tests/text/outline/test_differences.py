"""Unified diffs: equal to the output of GNU diff, and limited in time and size."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.outline.differences import LONGEST_DIFF, unified_diff
from tests.kernel.values.bounds import cpu_bound

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "# h", "a\r"]), max_size=30)
TEXTS = st.tuples(LINES, st.sampled_from(["", "\n"])).map(
    lambda each: ("\n".join(each[0]) + each[1]).encode()
)


def apply_diff(old: bytes, diff: str) -> str:
    """Apply a diff to a text, and return the result. Each context line and removed line must exist."""
    lines = old.decode().split("\n")
    has_end = lines[-1] == ""
    lines = [line + "\n" for line in lines[:-1]] + ([] if has_end else [lines[-1]])
    made: list[str] = []
    at = 0
    shown = diff.split("\n")[2:-1]
    for number, line in enumerate(shown):
        follows = shown[number + 1] if number + 1 < len(shown) else ""
        text = line[1:] + ("" if follows.startswith("\\") else "\n")
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (count != "0")
            made += lines[at:begin]
            at = begin
        elif line.startswith(("-", " ")):
            assert lines[at] == text
            at += 1
        if line.startswith(("+", " ")):
            made.append(text)
    return "".join(made + lines[at:])


@given(TEXTS, TEXTS)
def test_applied_diff_yields_the_new_text(old: bytes, new: bytes) -> None:
    """behaviour 222"""
    diff = unified_diff(old, new, "a", "b")
    assert not diff.is_truncated
    if old == new:
        assert diff.text == ""
    else:
        assert diff.text.startswith("--- a\n+++ b\n@@ -")
        assert apply_diff(old, diff.text) == new.decode()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
def test_patch_command_applies_the_diff(tmp_path: Path) -> None:
    old = b"".join(b"line %d\n" % n for n in range(60)) + b"end"
    new = old.replace(b"line 7\n", b"").replace(b"line 30\n", b"thirty\nmore\n").replace(b"end", b"end\n")
    (tmp_path / "note").write_bytes(old)
    diff = unified_diff(old, new, "note", "note")
    assert diff.text.count("@@ -") == 3
    done = subprocess.run(
        ["patch", "note"], input=diff.text.encode(), cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "note").read_bytes() == new


def test_change_has_three_context_lines_and_near_changes_share_hunk() -> None:
    old = "\n".join(map(str, range(30))).encode()
    new = old.replace(b"\n10\n", b"\nten\n").replace(b"\n14\n", b"\nfourteen\n")
    (hunk,) = unified_diff(old, new, "a", "b").text.split("@@ -")[1:]
    assert hunk.splitlines()[1:] == [
        " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13", "-14", "+fourteen", " 15", " 16", " 17",
    ]  # fmt: skip


def test_diff_with_an_empty_text_is_complete() -> None:
    assert unified_diff(b"", b"a\n", "x", "y").text == "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n"
    assert unified_diff(b"a", b"", "x", "y").text == (
        "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n"
    )


def test_long_diff_is_truncated() -> None:
    """behaviour 222"""
    long = b"".join(b"line %d\n" % n for n in range(10_000))
    diff = unified_diff(b"", long, "a", "b")
    assert diff.is_truncated
    assert len(diff.text) == LONGEST_DIFF
    one = unified_diff(b"", b"x" * 1_000_000, "a", "b")
    assert one.is_truncated
    assert len(one.text) == LONGEST_DIFF


def test_invalid_utf8_is_shown_as_replacement_characters() -> None:
    assert "+\ufffd" in unified_diff(b"a\n", b"\xff\n", "a", "b").text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\n" * 100_000, b"b\na\n" * 100_000),
        (b"a\n" * 200_000, b"b\na\n" * 100_000),
        (
            b"".join(b"%d\n" % (n % 997) for n in range(150_000)),
            b"".join(b"%d\n" % (n * 7 % 991) for n in range(150_000)),
        ),
    ],
    ids=["alternating", "repeated", "shuffled"],
)
def test_diff_of_repeated_lines_takes_limited_time(old: bytes, new: bytes) -> None:
    """difflib alone takes minutes to hours for these texts."""
    with cpu_bound(20):
        unified_diff(old, new, "a", "b")
