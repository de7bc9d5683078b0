"""Notes of a served vault: unique titles per folder, few keys, file names from titles, partial updates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lithos.server.mcp.resource_pages import Library
from tests.servers import VAULT, Clock, Lithos, put_note, refusal, serving

#: Time of the test clock, as a note's frontmatter shows it.
NOW = "2026-03-04T05:06:07.000008+00:00"


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit_all(folder: Path) -> None:
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "as it was")


def changed_lines(folder: Path) -> list[str]:
    """Return the lines that `git diff` shows as added or removed."""
    lines = git(folder, "diff", "--unified=0").splitlines()
    return [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]


async def id_of(lithos: Lithos, path: str) -> str:
    return str((await lithos.call("lithos_read", path=path))["id"])


async def test_title_is_unique_per_folder_in_a_served_vault(tmp_path: Path) -> None:
    """behaviour 253"""
    async with serving(tmp_path, storage=VAULT) as lithos:
        first = await lithos.write("Notes", path="one")
        second = await lithos.write("Notes", path="two")
        assert (first["path"], second["path"]) == ("one/Notes.md", "two/Notes.md")
        again = {"title": "notes!", "content": "x", "agent": "a"}
        answer = await lithos.call("lithos_write", path="two/", **again)
        assert "in the folder 'two'" in refusal(answer, "slug_collision")
        assert answer["existing_id"] == second["id"]
        assert (await lithos.write("notes!", path="two/Other.md"))["status"] == "created"
        answer = await lithos.call("lithos_write", path="two/Other.md", **again | {"title": "Else"})
        assert "two/Other.md" in refusal(answer, "path_collision")
        other = await lithos.write("Plan", path="one")
        for tool, more in (("lithos_write", {"content": "x"}), ("lithos_note_update", {})):
            answer = await lithos.call(tool, id=other["id"], title="Notes", agent="a", **more)
            assert answer["existing_id"] == first["id"], answer
        await lithos.call("lithos_delete", id=first["id"], agent="a")
        await lithos.write("Notes", id=other["id"])


async def test_title_is_unique_across_a_vault_created_by_lithos(lithos: Lithos) -> None:
    await lithos.write("Notes", path="one")
    for path in ("two", "two/Other.md"):
        answer = await lithos.call("lithos_write", title="Notes", content="x", agent="a", path=path)
        refusal(answer, "slug_collision")


BODY = """\


Intro with  odd spacing\t
* one
\t* two

## Part

[[Elsewhere]] #tag
"""
COMMENTED = "---\n# mine\ntags: [a,   b]   # keep\naliases:\n- Old name\ncssclass: wide\n---\n"


@pytest.mark.parametrize("head", ["", COMMENTED, "\ufeff" + COMMENTED], ids=["none", "some", "bom"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_first_update_of_a_foreign_note_adds_its_id(tmp_path: Path, head: str, newline: str) -> None:
    """behaviour 254"""
    before = (head + BODY).replace("\n", newline)
    file = put_note(tmp_path, "folder/Some note.md", before.encode())
    clock = Clock()
    async with serving(tmp_path, storage=VAULT, clock=clock) as lithos:
        commit_all(lithos.knowledge)
        note = await id_of(lithos, "folder/Some note")
        answer = await lithos.call("lithos_write", id=note, agent="a", metadata={"mood": "good"})
        assert answer["version"] == 2, answer
        after = file.read_bytes().decode()
        added = [f"id: {note}", "mood: good"]
        lines = [line[1:].rstrip("\r") for line in changed_lines(lithos.knowledge)]
        fences = [] if head else ["---", "---"]
        assert sorted(lines) == sorted(added + fences)
        assert after.endswith(BODY.replace("\n", newline))
        assert (await lithos.read(note))["version"] == 2
        assert (await lithos.read(note))["metadata"]["contributors"] == []


async def test_later_updates_of_a_foreign_note_change_only_their_lines(tmp_path: Path) -> None:
    """behaviour 254"""
    put_note(tmp_path, "Note.md", "---\ntags: [a]\nconfidence: 0.5\n---\nText.\n")
    clock = Clock()
    async with serving(tmp_path, storage=VAULT, clock=clock) as lithos:
        note = await id_of(lithos, "Note")
        await lithos.call("lithos_note_update", id=note, agent="a", tags=["b"])
        commit_all(lithos.knowledge)
        clock.advance(days=1)
        await lithos.call("lithos_note_update", id=note, agent="b", status="archived")
        assert [line.partition(":")[0] for line in changed_lines(lithos.knowledge)] == ["+status"]
        await lithos.call("lithos_note_update", id=note, agent="b", title="Note", tags=[], status="active")
        text = (lithos.knowledge / "Note.md").read_text()
        assert "title" not in text
        assert "status: active" in text  # The key exists already, so the update replaces its value.
        assert text.endswith("\n---\nText.\n")


async def test_new_content_keeps_surrounding_lines_and_adds_no_heading(tmp_path: Path) -> None:
    """behaviour 254"""
    put_note(tmp_path, "Plain.md", "Old text\n\n\n")
    put_note(tmp_path, "Headed.md", "---\nmood: x\n---\n# Headed\nOld text")
    async with serving(tmp_path, storage=VAULT) as lithos:
        for path, title, content in (
            ("Plain", None, "New\n\ntext"),
            ("Headed", "Better", "New\n\ntext"),
            ("Headed", "Better", "# Better\n\nNewer"),
        ):
            note = await id_of(lithos, path)
            answer = await lithos.call("lithos_write", id=note, agent="a", title=title, content=content)
            assert answer["status"] == "updated", answer
        plain, headed = ((lithos.knowledge / name).read_text() for name in ("Plain.md", "Headed.md"))
        assert plain.endswith("\n---\n\nNew\n\ntext\n\n\n")
        assert headed.endswith("\ntitle: Better\n---\n# Better\n\nNewer")
        assert "title" not in plain


async def test_created_note_contains_only_the_given_keys(tmp_path: Path) -> None:
    """behaviour 254"""
    clock = Clock()
    async with serving(tmp_path, storage=VAULT, clock=clock) as lithos:
        note = await lithos.create("Plain title", "Text.", confidence=1.0, tags=[])
        head = f"---\nid: {note}\nauthor: tester\ncreated_at: {NOW}\nupdated_at: {NOW}\nversion: 1\n---\n"
        assert (lithos.knowledge / "Plain title.md").read_text().replace("'", "").replace('"', "") == (
            head + "\nText.\n"
        )
        await lithos.create("What? A/B", "# What? A/B\n\nText.", tags=["x"], status="archived")
        text = (lithos.knowledge / "What  A B.md").read_text()
        assert "title: What? A/B\n" in text
        assert "tags:" in text
        assert "status: archived" in text
        assert text.endswith("---\n\n# What? A/B\n\nText.\n")
        await lithos.create("Other", "# Something else\n\nText.")
        read = await lithos.call("lithos_read", path="Other")
        assert (read["title"], read["content"]) == ("Other", "# Something else\n\nText.")
        await lithos.write("Plain title", "Text.", id=note, agent="second")
        assert (await lithos.read(note))["metadata"]["contributors"] == ["second"]


async def test_title_used_as_file_name_resolves_as_a_wiki_link(tmp_path: Path) -> None:
    """behaviour 254"""
    async with serving(tmp_path, storage=VAULT) as lithos:
        for title in ("Café au lait", "日本語 ノート", "Dr. Who", "a_b-c"):
            note = await lithos.write(title)
            assert note["path"] == f"{title}.md"
            assert Path(lithos.knowledge / f"{title}.md").is_file()
            assert lithos.server.tools is not None
            assert lithos.server.get(Library) is not None
            assert (await lithos.write(f"To {title}", f"[[{title}]]"))["status"] == "created"
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 0


async def test_title_and_content_are_optional_in_an_update(lithos: Lithos) -> None:
    """tools, section 3: an absent argument keeps the value."""
    note = await lithos.create("Kept", "Kept text.")
    file = lithos.knowledge / "kept.md"
    body = file.read_text().partition("\n---\n")[2]
    assert (await lithos.call("lithos_write", id=note, agent="a", tags=["x"]))["version"] == 2
    assert file.read_text().partition("\n---\n")[2] == body
    assert (await lithos.call("lithos_write", id=note, agent="a", title="New"))["version"] == 3
    assert (await lithos.call("lithos_write", id=note, agent="a", content="Other."))["version"] == 4
    read = await lithos.read(note)
    assert (read["title"], read["content"], read["metadata"]["tags"]) == ("New", "Other.", ["x"])
    for missing, given in (
        ("title", {"content": "x"}),
        ("content", {"title": "T"}),
        ("title and content", {}),
    ):
        assert missing in refusal(await lithos.call("lithos_write", agent="a", **given), "invalid_input")
    assert "copy" in refusal(await lithos.call("lithos_write", id="", agent="a", title="T"), "invalid_input")
