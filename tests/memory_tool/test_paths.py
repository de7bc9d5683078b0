"""Paths: every spelling that may leave `/memories` is refused, and no file outside is read or written."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.memory_tool import LithosMemory
from lithos.memory_tool.paths import parse_path
from lithos.memory_tool.refusals import Refusal
from tests.memory_tool.backends import ask, refused

pytestmark = pytest.mark.needs("memory_tool")

#: Spellings of dots and slashes: as they are, percent-encoded, in other widths, with invisible characters.
DOTS = ("..", ".\u200b.", "%2e%2e", "%2E.", "．．", "‥", "․․", "%252e%252e", "%EF%BC%8E．", ".%00.")
SLASHES = ("/", "\\", "%2f", "%5C", "／", "＼", "∕", "⧵", "%25%32%66", "//", "/./")
PIECES = (
    *DOTS,
    *SLASHES,
    "a",
    "b.md",
    ".",
    " ",
    "etc",
    "passwd",
    "\0",
    "~",
    "...",
    "é",
    "%",
    "%2",
    "memories",
)

REFUSED = (
    "", "/", "memories", "memories/a", "/memoriesx", "/memoriesx/a", "/Memories/a", " /memories/a",
    "/etc/passwd",
    "//memories/a", "/memories/..", "/memories/../memories/a", "/memories/a/../b", "/memories/a/..",
    "/memories\\a", "/memories/..\\a", "/memories/a\\..\\b", "/memories/\0", "/memories/a\nb",
    "/memories/a\r",
    "/memories/%2e%2e/a", "/memories/%2E%2E%2Fa", "/memories/..%2fa", "/memories/%252e%252e%252fa",
    "/memories/%5c..%5c", "/memories/a%00.md", "/memories/．．/a", "/memories/‥/a", "/memories/․․/a",
    "/memories/a／b", "/memories/a∕..∕b", "/memories/.\u200b./a", "/memories/a\u2028b", "/memories/.git",
    "/memories/…",
    "/memories/.hidden/a", "/memories/．hidden", "/memories/a.", "/memories/a ", "/memories/ a",
    "/memories/a/...",
    "/memories/\ud800", "/memories/" + "a/" * 17, "/memories/" + "a" * 201, "/memories/" + "é" * 101,
    "/memories/" + "a/" * 1000, "file:///memories/a", "C:\\memories", None, 7, b"/memories/a", ["/memories"],
)  # fmt: skip


@pytest.mark.parametrize("path", REFUSED, ids=ascii)
def test_path_outside_the_memory_is_refused(path: object) -> None:
    """behaviour 326"""
    with pytest.raises(Refusal) as refusal:
        parse_path(path)
    assert "\0" not in str(refusal.value)
    str(refusal.value).encode()


@pytest.mark.parametrize(
    "path",
    [
        "/memories", "/memories/", "/memories//a", "/memories/./a", "/memories/a b.md", "/memories/50%.md",
        "/memories/100%25.md", "/memories/日本語.txt", "/memories/naïve..md", "/memories/a..b/c",
        "/memories/👩‍💻.md",
        "/memories/½ cup.md", "/memories/a/b/c/d.xml",
    ],
)  # fmt: skip
def test_usual_name_is_accepted(path: str) -> None:
    names = tuple(name for name in path.split("/")[2:] if name not in ("", "."))
    assert parse_path(path).names == names


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.booleans())
def test_accepted_path_has_no_spelling_that_leaves_the_memory(tail: str, is_encoded: bool) -> None:
    """behaviour 326"""
    path = "/memories/" + (quote(tail) if is_encoded else tail)
    try:
        parsed = parse_path(path)
    except Refusal:
        return
    assert os.path.normpath(path).startswith("/memories")
    for name in parsed.names:
        form = name
        for _ in range(12):
            assert "." not in form or form.strip(" .") != "", ascii(name)
            assert not set(form) & set("/\\\0∕⧵"), ascii(name)
            form = unicodedata.normalize("NFKC", unquote(form).replace("\u200b", ""))


@given(st.text(max_size=40))
def test_any_text_is_a_path_inside_or_refused(tail: str) -> None:
    try:
        parsed = parse_path(f"/memories/{tail}")
    except Refusal:
        return
    assert os.path.normpath(f"/m/{parsed.relative}").startswith("/m")
    assert all(len(name.encode()) <= 200 and not name.startswith(".") for name in parsed.names)


@pytest.mark.parametrize("path", ["/memories/../secret.txt", "/memories/%2e%2e/secret.txt", "/secret.txt"])
def test_every_command_refuses_a_path_outside(memory: LithosMemory, path: str) -> None:
    """behaviour 326"""
    ask(memory, "create", "/memories/a.md", file_text="inside")
    messages = [
        refused(memory, "view", path),
        refused(memory, "create", path, file_text="x"),
        refused(memory, "str_replace", path, old_str="a", new_str="b"),
        refused(memory, "insert", path, insert_line=0, insert_text="x"),
        refused(memory, "delete", path),
        refused(memory, "rename", old_path=path, new_path="/memories/b.md"),
        refused(memory, "rename", old_path="/memories/a.md", new_path=path),
    ]
    assert all("/memories" in message for message in messages)
    assert "inside" in ask(memory, "view", "/memories/a.md")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text("secret")
    return folder


def test_link_in_a_folder_leads_nowhere(tmp_path: Path, outside: Path) -> None:
    """behaviour 326"""
    memory = LithosMemory(path=tmp_path / "memories")
    ask(memory, "create", "/memories/a.md", file_text="inside")
    (tmp_path / "memories" / "link").symlink_to(outside)
    (tmp_path / "memories" / "link.md").symlink_to(outside / "secret.md")
    (tmp_path / "memories" / "loop").symlink_to(tmp_path / "memories")
    assert "link" not in ask(memory, "view")
    for path in ("/memories/link/secret.md", "/memories/link.md", "/memories/link", "/memories/loop/a.md"):
        assert "does not exist" in refused(memory, "view", path)
        assert "does not exist" in refused(memory, "str_replace", path, old_str="secret", new_str="x")
        assert "does not exist" in refused(memory, "insert", path, insert_line=0, insert_text="x")
    assert "already exists" in refused(memory, "create", "/memories/link.md", file_text="x")
    assert "is not a directory" in refused(memory, "create", "/memories/link/new.md", file_text="x")
    assert "does not exist" in refused(memory, "delete", "/memories/link/secret.md")
    assert "already exists" in refused(
        memory, "rename", old_path="/memories/a.md", new_path="/memories/link.md"
    )
    assert "is not a directory" in refused(
        memory, "rename", old_path="/memories/a.md", new_path="/memories/link/b.md"
    )
    ask(memory, "delete", "/memories/link")
    ask(memory, "delete", "/memories/link.md")
    assert [each.name for each in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text() == "secret"


def test_deleting_a_directory_does_not_follow_links(tmp_path: Path, outside: Path) -> None:
    memory = LithosMemory(path=tmp_path / "memories")
    ask(memory, "create", "/memories/old/a.md", file_text="x")
    (tmp_path / "memories" / "old" / "link").symlink_to(outside)
    ask(memory, "delete", "/memories/old")
    assert (outside / "secret.md").read_text() == "secret"
    assert not (tmp_path / "memories" / "old").exists()
