"""basic-memory folders and memory files of coding agents (behaviours 240, 241)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.imports.model.importing import ImportedAttachment, Record, RecordEdge
from tests.imports.files.samples import DATA, SOURCES, read, records, skipped


def put(folder: Path, **files: str | bytes) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path = path.with_name(path.name.replace("_md", ".md"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_basic_memory_note_keeps_its_text_and_gets_tags() -> None:
    """behaviour 240"""
    items = read("basic-memory", DATA / "basic-memory")
    found = records(items)
    search = found["specs/Search Design.md"]
    before = (DATA / "basic-memory" / "specs" / "Search Design.md").read_bytes()
    address = b"[[memory://archive/old-search]]"
    assert search.text == before.replace(address, b"[[archive/old-search|memory://archive/old-search]]")
    assert search.tags == (
        "search", "full text", "decision", "ranking", "fusion", "tech", "performance", "loose",
    )  # fmt: skip
    assert search.edges == (
        RecordEdge("implements", "specs/storage.md"),
        RecordEdge("related_to", "notes/coffee.md"),
        RecordEdge("is_blocked_by", "Missing Thing"),
        RecordEdge("contradicts", "archive/old-search.md"),
    )
    assert search.aliases == ("specs/search-design",)
    assert search.path == "specs/Search Design.md"
    assert search.created_at == datetime(2024, 3, 5, tzinfo=UTC)
    assert found["notes/coffee.md"].created_at == datetime(2023, 11, 20, 7, 15, tzinfo=UTC)
    assert [item.path for item in items if isinstance(item, ImportedAttachment)] == ["notes/curve.png"]


def test_unreadable_frontmatter_is_kept_as_text() -> None:
    """behaviour 241"""
    found = records(read("basic-memory", DATA / "basic-memory"))["notes/damaged.md"]
    assert found.text is None
    assert found.content.startswith("```yaml\ntitle: [never closed\npermalink: notes/damaged\n```")
    assert found.content.endswith("The text of a note in Latin-1: café.")


def test_unreadable_memory_note_is_reported(tmp_path: Path) -> None:
    """behaviour 241"""
    put(tmp_path, a_md="---\npermalink: a\ntype: note\n---\nx\n")
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    os.symlink(tmp_path, tmp_path / "circle")
    items = read("basic-memory", tmp_path)
    assert list(records(items)) == ["a.md"]
    assert "more than 32 MB" in skipped(items)["huge.md"]


def test_invalid_utf8_is_converted_and_valid_files_stay_unchanged(tmp_path: Path) -> None:
    """behaviour 241"""
    head = "---\npermalink: a\ntype: note\n---\n"
    put(
        tmp_path,
        wide_md=f"{head}Rösten".encode("utf-16"),
        nul_md=f"{head}a\0b",
        crlf_md=f"{head}a\nb".replace("\n", "\r\n"),
    )
    found = records(read("basic-memory", tmp_path))
    assert found["wide.md"].text == f"{head}Rösten".encode()
    assert found["nul.md"].text == f"{head}ab".encode()
    assert b"\r\n" in (found["crlf.md"].text or b"")
    assert found["crlf.md"].content == "a\nb"


def test_hash_changes_with_the_content_but_not_the_time(tmp_path: Path) -> None:
    """behaviour 240"""
    put(tmp_path, a_md="---\npermalink: a\ntype: note\n---\nx\n")
    before = records(read("basic-memory", tmp_path))["a.md"].hash
    os.utime(tmp_path / "a.md", (1, 1))
    assert records(read("basic-memory", tmp_path))["a.md"].hash == before
    put(tmp_path, a_md="---\npermalink: a\ntype: note\n---\ny\n")
    assert records(read("basic-memory", tmp_path))["a.md"].hash != before


def test_project_memories_are_read_with_their_scopes() -> None:
    """behaviour 240"""
    found = records(read("claude-memory", DATA / "claude-memory" / "shop"))
    assert {key: (record.namespace, record.properties["memory_scope"]) for key, record in found.items()} == {
        "CLAUDE.md": ("shop", "project"),
        "CLAUDE.local.md": ("shop", "local"),
        ".claude/agent-memory/reviewer/MEMORY.md": ("shop/agents/reviewer", "agent"),
        ".claude/rules/testing.md": ("shop", "rules"),
        "packages/api/AGENTS.md": ("shop/packages/api", "project"),
        "docs/architecture.md": ("shop", "project"),
        "docs/glossary.md": ("shop", "project"),
    }
    assert found["CLAUDE.md"].edges == (RecordEdge("imports", "docs/architecture.md"),)
    assert found[".claude/rules/testing.md"].path == "claude/rules/testing.md"
    assert b"src/**/*.test.ts" in (found[".claude/rules/testing.md"].text or b"")


def test_home_memories_are_read_for_the_user_and_each_project() -> None:
    """behaviour 240"""
    found = records(read("claude-memory", DATA / "claude-memory-home"))
    memory = "projects/-home-ann-work-shop/memory"
    assert {key: record.namespace for key, record in found.items()} == {
        "CLAUDE.md": "user",
        "rules/git.md": "user",
        **{
            f"{memory}/{name}.md": "home-ann-work-shop"
            for name in ("MEMORY", "damaged", "feedback_refunds", "project_launch")
        },
    }
    assert found[f"{memory}/MEMORY.md"].links == 2
    assert found[f"{memory}/feedback_refunds.md"].tags == ("feedback",)
    assert found[f"{memory}/project_launch.md"].title == "Launch in Tromsø"


@pytest.mark.parametrize(
    ("path", "namespace", "count"),
    [
        ("claude-memory-home/projects/-home-ann-work-shop/memory", "home-ann-work-shop", 4),
        ("claude-memory-home/projects/-home-ann-work-shop/memory/project_launch.md", "home-ann-work-shop", 1),
        ("claude-memory/shop/CLAUDE.md", "shop", 3),
    ],
)
def test_single_memory_folder_or_file_gets_scope_of_its_location(
    path: str, namespace: str, count: int
) -> None:
    """behaviour 240"""
    found = records(read("claude-memory", DATA / path))
    assert {record.namespace for record in found.values()} == {namespace}
    assert len(found) == count


def test_claude_memory_imports_stay_in_the_folder_and_terminate(tmp_path: Path) -> None:
    """behaviour 241"""
    root = put(
        tmp_path / "p",
        CLAUDE_md="@a.md @../secret.md @~/x.md @/etc/passwd @missing.md @CLAUDE.md",
        a_md="@b.md",
        b_md="@a.md @CLAUDE.md",
    )
    (tmp_path / "secret.md").write_text("secret")
    os.symlink(tmp_path / "secret.md", root / "missing.md")
    found = records(read("claude-memory", root))
    assert list(found) == ["CLAUDE.md", "a.md", "b.md"]
    assert found["CLAUDE.md"].edges == (RecordEdge("imports", "a.md"),)
    assert found["b.md"].edges == (RecordEdge("imports", "a.md"), RecordEdge("imports", "CLAUDE.md"))


def test_folder_that_contains_only_settings_is_not_a_memory(tmp_path: Path) -> None:
    """behaviour 240"""
    put(tmp_path, **{".claude__settings": "{}", "readme_md": "x"})
    assert not SOURCES["claude-memory"].recognises(tmp_path)
    put(tmp_path, **{".claude__rules__a_md": "# A\n\nx"})
    assert SOURCES["claude-memory"].recognises(tmp_path)
    assert isinstance(read("claude-memory", tmp_path)[0], Record)
