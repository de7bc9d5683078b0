"""Memory files in a folder: bytes, permissions, locks and limits."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from lithos.memory_tool import LithosMemory, folder, memory, texts
from tests.memory_tool.backends import ask, refused, text_of

pytestmark = pytest.mark.needs("memory_tool")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memories"


@pytest.fixture
def tool(root: Path) -> LithosMemory:
    return LithosMemory(path=root)


def files(root: Path) -> dict[str, bytes]:
    """Return all files, including hidden ones, except for the lock."""
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != folder.LOCK}


def test_text_is_stored_byte_for_byte(tool: LithosMemory, root: Path) -> None:
    given = {
        "a.txt": "no end",
        "b.md": "---\na: 1\n---\r\n\n\ntext\n\n",
        "c": "",
        "d/e/f.xml": "<a>é☕</a>\n",
    }
    for name, text in given.items():
        ask(tool, "create", f"/memories/{name}", file_text=text)
    assert files(root) == {name: text.encode() for name, text in given.items()}


def test_line_endings_and_permissions_stay(tool: LithosMemory, root: Path) -> None:
    file = root / "crlf.txt"
    file.write_bytes(b"line1\r\nline2\r\nline3\r\n")
    file.chmod(0o640)
    ask(tool, "str_replace", "/memories/crlf.txt", old_str="line2", new_str="LINE2")
    ask(tool, "insert", "/memories/crlf.txt", insert_line=1, insert_text="Inserted")
    assert file.read_bytes() == b"line1\r\nInserted\nLINE2\r\nline3\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert ask(tool, "view", "/memories/crlf.txt", view_range=[1, 1]).endswith("     1\tline1\r")


def test_new_files_belong_only_to_their_user(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        root = tmp_path / "nested" / "memories"
        ask(LithosMemory(path=root), "create", "/memories/a/b.md", file_text="a")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (root, root / "a")] == [0o700, 0o700]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (root / "a/b.md", root / folder.LOCK)] == [
        0o600
    ] * 2


def test_failed_write_changes_nothing(
    tool: LithosMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file is synced before it replaces the old one, and no temporary file is left."""
    ask(tool, "create", "/memories/a.md", file_text="old\n")
    synced: list[int] = []

    def fail(descriptor: int) -> None:
        synced.append(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    for command, more in (
        ("str_replace", {"old_str": "old", "new_str": "new"}),
        ("insert", {"insert_line": 0, "insert_text": "new"}),
    ):
        assert "No space left" in refused(tool, command, "/memories/a.md", **more)
    assert "No space left" in refused(tool, "create", "/memories/b.md", file_text="new")
    assert len(synced) == 3
    assert files(root) == {"a.md": b"old\n"}


def test_text_that_an_editor_saves_meanwhile_is_kept(
    tool: LithosMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor saves after the command read the file. The command is then tried on the new text."""
    ask(tool, "create", "/memories/a.md", file_text="one\n")
    write = folder._write_new
    saved: list[str] = []

    def save_before(*given: Any) -> str:
        if not saved:
            saved.append("one\nby hand\n")
            (root / "a.md").write_text(saved[0])
        return write(*given)

    monkeypatch.setattr(folder, "_write_new", save_before)
    ask(tool, "insert", "/memories/a.md", insert_line=1, insert_text="two")
    assert files(root) == {"a.md": b"one\ntwo\nby hand\n"}


def test_file_is_created_on_a_disk_without_hard_links(
    tool: LithosMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **more: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    ask(tool, "create", "/memories/a.md", file_text="a")
    assert "already exists" in refused(tool, "create", "/memories/a.md", file_text="b")
    assert files(root) == {"a.md": b"a"}


def test_temporary_file_of_a_killed_process_is_deleted(root: Path) -> None:
    ask(LithosMemory(path=root), "create", "/memories/a/b.md", file_text="a")
    for name in (
        ".memory-0123456789abcdef.tmp",
        "a/.memory-0123456789abcdef.tmp",
        ".memory-note.tmp",
        ".other",
    ):
        (root / name).write_text("half")
    ask(LithosMemory(path=root), "view")
    assert sorted(files(root)) == [".memory-note.tmp", ".other", "a/b.md"]


def test_file_that_cannot_be_shown_stays(tool: LithosMemory, root: Path) -> None:
    (root / "blob.bin").write_bytes(b"\xff\xfe\x00")
    (root / "big.md").write_bytes(b"a" * (memory.MOST_BYTES + 1))
    os.mkfifo(root / "pipe")
    assert "not valid UTF-8" in refused(tool, "view", "/memories/blob.bin")
    assert "not valid UTF-8" in refused(tool, "str_replace", "/memories/blob.bin", old_str="a", new_str="b")
    assert "more than 8,000,000 bytes" in refused(tool, "view", "/memories/big.md")
    assert "does not exist" in refused(tool, "view", "/memories/pipe")
    assert "not a regular file" in refused(tool, "rename", old_path="/memories/pipe", new_path="/memories/p")
    assert files(root)["blob.bin"] == b"\xff\xfe\x00"
    assert "the limit is 8,000,000" in refused(
        tool, "create", "/memories/new.md", file_text="a" * (memory.MOST_BYTES + 1)
    )
    assert ask(tool, "view").split("\n")[2:] == ["7.6M\t/memories/big.md", "3B\t/memories/blob.bin"]


def test_listing_is_two_levels_deep_without_hidden_names(tool: LithosMemory, root: Path) -> None:
    for name in ("b/c/d/deep.md", "b/x.md", "a.md", "b.md"):
        ask(tool, "create", f"/memories/{name}", file_text="12345")
    (root / ".hidden").write_text("x")
    (root / "b" / ".git").mkdir()
    assert ask(tool, "view", "/memories/").split("\n")[1:] == [
        "20B\t/memories", "5B\t/memories/a.md", "10B\t/memories/b/", "5B\t/memories/b/c/",
        "5B\t/memories/b/x.md", "5B\t/memories/b.md",
    ]  # fmt: skip
    assert ask(tool, "view", "/memories/b/c").split("\n")[1:] == [
        "5B\t/memories/b/c", "5B\t/memories/b/c/d/", "5B\t/memories/b/c/d/deep.md",
    ]  # fmt: skip


def test_long_listing_and_view_are_cut_with_a_remark(tool: LithosMemory, root: Path) -> None:
    for number in range(1_003):
        (root / f"{number:04}.md").touch()
    rows = ask(tool, "view").split("\n")
    assert len(rows) == 1_003
    assert rows[-1] == "[3 more are not listed. View a directory in this list to see its files.]"
    (root / "long.md").write_text("x" * 999 + "\n" + ("y" * 999 + "\n") * 200)
    view = ask(tool, "view", "/memories/long.md")
    assert len(view) < texts.MOST_VIEWED + 300
    *_, last, remark = view.split("\n")
    number = int(last.partition("\t")[0])
    assert remark.startswith(f"[The view ends at line {number} of 201, its limit is 100,000 characters.")
    rest = ask(tool, "view", "/memories/long.md", view_range=[number + 1, -1])
    assert rest.split("\n")[1].startswith(f"{number + 1:>6}\ty")
    (root / "wide.md").write_text("z" * 200_000)
    assert "ends at line 1 of 1," in ask(tool, "view", "/memories/wide.md")


def test_file_with_too_many_lines_is_not_shown(tool: LithosMemory, root: Path) -> None:
    (root / "huge.txt").write_text("line\n" * 1_000_000)
    message = refused(tool, "view", "/memories/huge.txt")
    assert message == "File /memories/huge.txt exceeds maximum line limit of 999,999 lines."


def test_many_occurrences_are_named_up_to_a_limit(tool: LithosMemory) -> None:
    ask(tool, "create", "/memories/a.md", file_text="aa\n" * 5_000)
    message = refused(tool, "str_replace", "/memories/a.md", old_str="a", new_str="b")
    assert "Multiple occurrences of old_str `a` in lines: 1, 1, 2, 2" in message
    assert message.endswith("50, 50. Please ensure it is unique")
    assert len(refused(tool, "str_replace", "/memories/a.md", old_str="x" * 9_000, new_str="b")) < 3_000
    assert "old_str is empty" in refused(tool, "str_replace", "/memories/a.md", old_str="", new_str="b")


def test_command_waits_for_the_lock_of_another_process(
    tool: LithosMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(tool, "create", "/memories/a.md", file_text="a")
    with (root / folder.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pauses: list[float] = []

        def release(seconds: float) -> None:
            pauses.append(seconds)
            fcntl.flock(lock, fcntl.LOCK_UN)

        monkeypatch.setattr(folder.time, "sleep", release)
        assert text_of(tool, "/memories/a.md") == "a"
        assert len(pauses) == 1
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(folder, "_PATIENCE", -1.0)
        assert "Another process has used the memory folder" in refused(tool, "view", "/memories/a.md")


def test_rename_onto_a_hard_link_of_the_file_is_refused(tool: LithosMemory, root: Path) -> None:
    ask(tool, "create", "/memories/a.md", file_text="a")
    (root / "b.md").hardlink_to(root / "a.md")
    assert "already exists" in refused(tool, "rename", old_path="/memories/a.md", new_path="/memories/b.md")


def test_rename_to_another_spelling_or_its_own_name(tool: LithosMemory, root: Path) -> None:
    ask(tool, "create", "/memories/a.md", file_text="a")
    assert "already exists" in refused(tool, "rename", old_path="/memories/a.md", new_path="/memories//a.md")
    ask(tool, "rename", old_path="/memories/a.md", new_path="/memories/A.md")
    assert files(root) == {"A.md": b"a"}
    assert "is not a directory" in refused(tool, "create", "/memories/A.md/b.md", file_text="b")
    assert "into itself" in refused(tool, "rename", old_path="/memories/A.md", new_path="/memories/A.md/b")
