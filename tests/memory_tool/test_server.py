"""Memory files as notes of a server."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lithos.memory_tool import LithosMemory
from lithos.memory_tool.client import ServerClient, ToolAnswer
from lithos.notes.settings import AgentsConfig
from tests.memory_tool.backends import ServedMemory, ask, fresh_folder, refused, served, text_of

pytestmark = pytest.mark.needs("memory_tool")

TEXTS = (
    "plain", "# Heading\n\ntext\n", "# Heading\n", "## Two\n# One\n",
    "---\nname: x\ntype: user\n---\n\nbody\n",
    "---\n", "\n\n  indented\n", "<!-- memory -->\ntext", "- [ ] do\n",
    "[[Link]] #tag %% hidden %%\n", "<xml><name>John Doe</name></xml>", "\ttab\n\n\nend", "```\n---\n```\n",
    "\ufefftext", "{\"a\": 1}", "日本 ☕\n",
    "# notes.md (memory/api)\n\ntext\n",
)  # fmt: skip


@pytest.fixture(params=["data", "vault"])
def server(request: pytest.FixtureRequest) -> ServedMemory:
    found: ServedMemory = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def folder() -> str:
    return fresh_folder()


@pytest.fixture
def tool(server: ServedMemory, folder: str) -> LithosMemory:
    return LithosMemory(url=f"{server.url}/mcp", agent="claude", folder=folder)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_text_is_shown_as_it_was_created_and_edited(tool: LithosMemory, text: str) -> None:
    """behaviour 326"""
    ask(tool, "create", "/memories/a.md", file_text=text)
    assert text_of(tool, "/memories/a.md") == text.removesuffix("\n")
    ask(tool, "insert", "/memories/a.md", insert_line=0, insert_text="first\n---")
    ask(tool, "str_replace", "/memories/a.md", old_str="first\n---\n", new_str="")
    assert text_of(tool, "/memories/a.md") == text.removesuffix("\n")
    lines = len(text.removesuffix("\n").split("\n"))
    ask(tool, "insert", "/memories/a.md", insert_line=lines, insert_text="last")
    assert text_of(tool, "/memories/a.md") == text.removesuffix("\n") + "\nlast"


def test_line_endings_of_another_system_stay(tool: LithosMemory, server: ServedMemory, folder: str) -> None:
    ask(tool, "create", "/memories/a.md", file_text="a\r\nb\r\nc\r\n")
    ask(tool, "str_replace", "/memories/a.md", old_str="b", new_str="B")
    assert text_of(tool, "/memories/a.md") == "a\r\nB\r\nc\r"
    assert (server.lithos.knowledge / folder / "a.md").read_bytes().endswith(b"\na\r\nB\r\nc\r\n")


def test_file_is_a_note_with_versions(tool: LithosMemory, server: ServedMemory, folder: str) -> None:
    ask(tool, "create", "/memories/people/ann.md", file_text="Ann likes tea.\n")
    ask(tool, "str_replace", "/memories/people/ann.md", old_str="tea", new_str="coffee")
    note = server.call("lithos_read", path=f"{folder}/people/ann.md")
    assert (note["title"], note["content"]) == (f"ann ({folder}/people)", "Ann likes coffee.")
    assert note["metadata"]["author"] == "claude"
    versions = server.call("lithos_history", id=note["id"])["versions"]
    assert [(each["version"], each["agent"]) for each in versions] == [(2, "claude"), (1, "claude")]
    found = server.call("lithos_search", query="Ann likes coffee", path_prefix=folder)
    assert found["results"][0]["id"] == note["id"]


def test_deleted_file_can_be_restored(tool: LithosMemory, server: ServedMemory, folder: str) -> None:
    ask(tool, "create", "/memories/a.md", file_text="kept\n")
    note = server.call("lithos_read", path=f"{folder}/a.md")
    ask(tool, "delete", "/memories/a.md")
    assert "does not exist" in refused(tool, "view", "/memories/a.md")
    server.call("lithos_restore", id=note["id"], version=1, agent="ann")
    assert text_of(tool, "/memories/a.md") == "kept"


def test_note_of_a_person_is_a_memory_file(tool: LithosMemory, server: ServedMemory, folder: str) -> None:
    server.call(
        "lithos_write", title=f"Mine {folder}", content="One.\n\nTwo.", agent="ann", path=f"{folder}/m.md"
    )
    assert ask(tool, "view").endswith("\n11B\t/memories/m.md")
    ask(tool, "insert", "/memories/m.md", insert_line=1, insert_text="More.")
    assert server.call("lithos_read", path=f"{folder}/m.md")["content"] == "One.\nMore.\n\nTwo."
    server.call("lithos_write", title=f"Other {folder}", content="x", agent="ann", path=f"{folder}x/other.md")
    assert "other" not in ask(tool, "view")


def test_names_of_other_kinds_are_kept_with_a_suffix(
    tool: LithosMemory, server: ServedMemory, folder: str
) -> None:
    for name in ("notes.txt", "todo", "v1.2", "data.json", "READ.MD", "a b.md"):
        ask(tool, "create", f"/memories/{name}", file_text=name)
        assert text_of(tool, f"/memories/{name}") == name
    listed = [row.partition("\t")[2] for row in ask(tool, "view").split("\n")[2:]]
    names = ("READ.MD", "a b.md", "data.json", "notes.txt", "todo.md", "v1.2.md")
    assert listed == [f"/memories/{name}" for name in names]
    assert [text_of(tool, path) for path in listed] == [
        "READ.MD",
        "a b.md",
        "data.json",
        "notes.txt",
        "todo",
        "v1.2",
    ]
    for path in ("/memories/notes.txt.md", "/memories/todo.md", "/memories/NOTES.txt"):
        assert "already exists" in refused(tool, "create", path, file_text="x")
    assert server.call("lithos_read", path=f"{folder}/notes.txt.md")["title"] == f"notes.txt ({folder})"


def test_title_follows_a_rename_unless_a_person_changed_it(
    tool: LithosMemory, server: ServedMemory, folder: str
) -> None:
    for name in ("a", "b", "c"):
        ask(tool, "create", f"/memories/{name}.md", file_text=name)
    mine = server.call("lithos_read", path=f"{folder}/b.md")
    server.call("lithos_note_update", id=mine["id"], title=f"Chosen {folder}", agent="ann")
    ask(tool, "rename", old_path="/memories/a.md", new_path="/memories/new/x.txt")
    ask(tool, "rename", old_path="/memories/b.md", new_path="/memories/new/y.md")
    titles = [server.call("lithos_read", path=f"{folder}/new/{n}.md")["title"] for n in ("x.txt", "y")]
    assert titles == [f"x.txt ({folder}/new)", f"Chosen {folder}"]
    ask(tool, "create", "/memories/a.md", file_text="again")
    assert text_of(tool, "/memories/a.md") == "again"


def test_directory_is_renamed_and_deleted_with_its_files(tool: LithosMemory) -> None:
    for name in ("old/a.md", "old/b/c.txt", "old/b/d.md", "older/e.md"):
        ask(tool, "create", f"/memories/{name}", file_text=f"{name}\n")
    assert "already exists" in refused(tool, "rename", old_path="/memories/old", new_path="/memories/older")
    ask(tool, "rename", old_path="/memories/old", new_path="/memories/new/place")
    assert "does not exist" in refused(tool, "view", "/memories/old")
    assert text_of(tool, "/memories/new/place/b/c.txt") == "old/b/c.txt"
    assert ask(tool, "view", "/memories/new").split("\n")[1:] == [
        "32B\t/memories/new", "32B\t/memories/new/place/", "9B\t/memories/new/place/a.md",
        "23B\t/memories/new/place/b/",
    ]  # fmt: skip
    ask(tool, "delete", "/memories/new")
    assert [row.partition("\t")[2] for row in ask(tool, "view").split("\n")[1:]] == [
        "/memories", "/memories/older/", "/memories/older/e.md",
    ]  # fmt: skip
    assert tool.clear_all_memory() == "All memory cleared"
    assert ask(tool, "view").endswith("\n0B\t/memories")


def test_long_text_is_read_whole_and_edited_at_its_end(tool: LithosMemory) -> None:
    lines = [f"{number:05} {'x' * 90}" for number in range(1_500)]
    ask(tool, "create", "/memories/long.md", file_text="\n".join(lines) + "\n")
    ask(tool, "str_replace", "/memories/long.md", old_str="01499 ", new_str="LAST ")
    ask(tool, "insert", "/memories/long.md", insert_line=1_500, insert_text="more")
    view = ask(tool, "view", "/memories/long.md", view_range=[1_499, -1])
    assert [row.split("\t")[1][:5] for row in view.split("\n")[1:]] == ["01498", "LAST ", "more"]


def test_text_above_the_limit_of_the_server_is_refused(tool: LithosMemory) -> None:
    message = refused(tool, "create", "/memories/big.md", file_text="x" * 1_000_001)
    assert "max_content_size_bytes" in message
    assert "does not exist" in refused(tool, "view", "/memories/big.md")


def test_size_of_a_changed_file_is_read_again(tool: LithosMemory, server: ServedMemory, folder: str) -> None:
    ask(tool, "create", "/memories/a.md", file_text="12345\n")
    assert ask(tool, "view").endswith("6B\t/memories/a.md")
    ask(tool, "str_replace", "/memories/a.md", old_str="12345", new_str="1")
    assert ask(tool, "view").endswith("2B\t/memories/a.md")


def test_change_is_made_once_if_the_connection_fails(
    tool: LithosMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 326"""
    ask(tool, "create", "/memories/a.md", file_text="top\n")
    exchange: Callable[[ServerClient, bytes], tuple[int, bytes]] = ServerClient._exchange
    failures: list[bytes] = []

    def lose(client: ServerClient, body: bytes) -> tuple[int, bytes]:
        answer = exchange(client, body)
        if b"lithos_write" in body and len(failures) < 2:
            failures.append(body)
            raise http.client.RemoteDisconnected("the answer was lost")
        return answer

    monkeypatch.setattr(ServerClient, "_exchange", lose)
    ask(tool, "insert", "/memories/a.md", insert_line=1, insert_text="once")
    assert text_of(tool, "/memories/a.md") == "top\nonce"
    assert len(failures) == 2
    assert failures[0] == failures[1]


def test_failure_in_a_directory_says_how_far_the_change_is(
    tool: LithosMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        ask(tool, "create", f"/memories/old/{name}.md", file_text=name)
    change = ServerClient.change

    def refuse(client: ServerClient, name: str, **arguments: Any) -> dict[str, Any]:
        if arguments.get("path", "").endswith("/b.md"):
            raise ToolAnswer({"code": "internal_error", "message": "The disk is full."})
        return change(client, name, **arguments)

    monkeypatch.setattr(ServerClient, "change", refuse)
    moved = refused(tool, "rename", old_path="/memories/old", new_path="/memories/new")
    assert moved.startswith("1 of 3 files of /memories/old were moved to /memories/new: The disk is full.")
    deleted = refused(tool, "delete", "/memories/old")
    assert deleted.startswith(
        "0 of 2 files of /memories/old were deleted, the others were not: The disk is full."
    )


def test_token_of_the_server_is_needed(tmp_path: Path) -> None:
    with served(tmp_path, vault=False, auth_token="s3cret-token") as server:
        assert ask(LithosMemory(url=server.url, token="s3cret-token"), "view").endswith("0B\t/memories")
        for token in (None, "wrong"):
            assert "requires a token that may write" in refused(
                LithosMemory(url=server.url, token=token), "view"
            )


def test_server_that_does_not_answer_is_named() -> None:
    tool = LithosMemory(url="http://127.0.0.1:9")
    assert "http://127.0.0.1:9 does not answer" in refused(tool, "view")


def test_server_that_is_not_lithos_is_named(server: ServedMemory) -> None:
    tool = LithosMemory(url=f"{server.url}/elsewhere")
    assert "Check that it is a Lithos server" in refused(tool, "view")


@pytest.mark.needs("proposals")
def test_change_that_needs_approval_says_so(tmp_path: Path) -> None:
    rules = AgentsConfig(agents={"claude": {"propose": ("memory/**",)}})
    with served(tmp_path, vault=False, agents=rules) as server:
        tool = LithosMemory(url=server.url, agent="claude")
        message = refused(tool, "create", "/memories/a.md", file_text="x")
        assert "waits for a person's approval" in message
        assert ask(tool, "view").endswith("\n0B\t/memories")
