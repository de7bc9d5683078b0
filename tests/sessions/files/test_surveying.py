"""Surveys: which files are transcripts, and which are left out. Symbolic links are not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.sessions.files.added_folders import (
    ADDED,
    AddedFolder,
    FoldersUnreadable,
    all_folders,
    client_folders,
    find_folder,
    read_added,
    write_added,
)
from lithos.sessions.files.surveying import LINKS, SPECIAL, TOO_DEEP, project_hint, survey_folder


def put(path: Path, text: str = "{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(survey_of: AddedFolder) -> list[str]:
    return sorted(os.path.basename(each.path) for each in survey_folder(survey_of).found)


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("claude-code", ["a.jsonl", "chat.jsonl"]),
        ("codex", ["a.jsonl", "b.jsonl.zst", "chat.jsonl"]),
        ("gemini", ["chat.json", "chat.jsonl"]),
        ("other", ["a.jsonl", "b.jsonl.zst", "c.ndjson", "chat.jsonl"]),
    ],
)
def test_transcripts_are_found_by_their_names(tmp_path: Path, client: str, expected: list[str]) -> None:
    for name in (
        "a.jsonl",
        "b.jsonl.zst",
        "c.ndjson",
        "logs.json",
        "x/chats/chat.json",
        "x/chats/chat.jsonl",
    ):
        put(tmp_path / name)
    put(tmp_path / "notes.md")
    assert names(AddedFolder("n", client, (tmp_path,))) == expected


def test_links_out_of_the_folder_are_left_out_and_counted(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "secret.jsonl")
    inside = put(tmp_path / "in" / "a.jsonl")
    (tmp_path / "in" / "file.jsonl").symlink_to(outside)
    (tmp_path / "in" / "folder").symlink_to(outside.parent)
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "same.jsonl").symlink_to(inside)
    os.mkfifo(tmp_path / "in" / "pipe.jsonl")
    survey = survey_folder(AddedFolder("n", "other", (tmp_path / "in",)))
    assert [each.path for each in survey.found] == [str(inside)]
    assert survey.left_out == {LINKS: 2, SPECIAL: 1}


def test_added_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real" / "a.jsonl")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(AddedFolder("n", "other", (tmp_path / "link",))) == ["a.jsonl"]


def test_very_deep_folders_are_counted(tmp_path: Path) -> None:
    put(tmp_path / Path(*"abcdefghijklmn") / "a.jsonl")
    survey = survey_folder(AddedFolder("n", "other", (tmp_path,)))
    assert (survey.found, survey.left_out) == ([], {TOO_DEEP: 1})


def test_missing_folder_is_a_problem_only_if_no_other_place_exists(tmp_path: Path) -> None:
    there = put(tmp_path / "a" / "a.jsonl").parent
    assert survey_folder(AddedFolder("n", "codex", (there, tmp_path / "b"))).problem == ""
    assert "No such file" in survey_folder(AddedFolder("n", "codex", (tmp_path / "b",))).problem


def test_folders_of_clients_follow_their_environment_variables(tmp_path: Path) -> None:
    given = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_DATA_HOME": "/d"}
    found = client_folders(given)
    assert found["claude-code"] == (Path("/c/projects"),)
    assert found["codex"] == (Path("/x/sessions"), Path("/x/archived_sessions"))
    assert found["opencode"] == (Path("/d/opencode"),)
    assert client_folders({})["claude-code"] == (Path("~/.claude/projects").expanduser(),)
    assert find_folder("codex", given).places == found["codex"]
    assert find_folder("/some/where", given) == AddedFolder("/some/where", "other", (Path("/some/where"),))


def test_added_folders_are_kept_and_named_once(tmp_path: Path) -> None:
    write_added(tmp_path, [find_folder("/a", {}), find_folder("codex", {"CODEX_HOME": "/x"})])
    assert [each.name for each in read_added(tmp_path)] == ["/a", "codex"]
    found = all_folders(tmp_path, ["/a", "/b"], {})
    assert [(each.name, each.is_setting) for each in found] == [("/a", True), ("/b", True), ("codex", False)]


@pytest.mark.parametrize(
    "damaged", ["", "{", "[]", '{"folders": 1}', '{"folders": [{"name": "a", "places": ["relative"]}]}']
)
def test_damaged_list_of_folders_is_refused(tmp_path: Path, damaged: str) -> None:
    (tmp_path / ADDED).write_text(damaged)
    with pytest.raises(FoldersUnreadable, match="add the folders again"):
        read_added(tmp_path)


def test_folder_of_a_gemini_project_is_read_from_its_marker(tmp_path: Path) -> None:
    chat = put(tmp_path / "shop" / "chats" / "parent" / "x.jsonl")
    (tmp_path / "shop" / ".project_root").write_text("/srv/shop\n")
    assert project_hint(str(chat), "gemini") == "/srv/shop"
    assert project_hint(str(chat), "codex") == ""
    assert project_hint(str(tmp_path / "lone.jsonl"), "gemini") == ""
