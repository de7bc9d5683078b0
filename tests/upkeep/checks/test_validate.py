"""Command `lithos validate`, and the file changes that `--fix` makes."""

from __future__ import annotations

import io
import uuid
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.values.findings import VALIDATE, checks_of
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.format.document import amend_document, derive_id, parse_document
from lithos.notes.model.note import Note
from lithos.upkeep.checks import validation
from lithos.upkeep.checks.validation import Fixing, fix_notes, validate_notes
from lithos.upkeep.model.note_issues import CheckedFile, NoteFolder, plan_amendments
from tests.app.program import Program, make_program
from tests.e2e.vault import FILES, make_vault, snapshot
from tests.servers import put_note, serving

program = pytest.fixture(make_program)


@pytest.fixture(autouse=True)
def _nobody_else_opens_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "GRACE", 0.01)


#: Prefixes of the lines that `--fix` may add.
KEYS = (b"id", b"lithos_id", b"title", b"author", b"---", b"")
NEW = "22222222-2222-4222-8222-22222222222{}"
WHOLE = "---\nid: {id}\ntitle: {title}\nauthor: me\n{more}---\n{body}\n"


def put_whole(data: Path, path: str, *, note_id: str, title: str, more: str = "", body: str = "") -> Path:
    given = note_id if is_id(note_id) else uuid.uuid5(uuid.NAMESPACE_URL, note_id)
    return put_note(data, path, WHOLE.format(id=given, title=title, more=more, body=body))


def put_one_of_each(data: Path) -> None:
    """Write at least one issue for every group."""
    put_note(data, "bare.md", "No frontmatter.\n")
    put_note(data, "binary.md", b"\x00")
    url = "source_url: https://example.org/Page{}\n"
    put_whole(data, "one.md", note_id="id-1", title="First", more=url.format("/"))
    put_whole(data, "two.md", note_id="id-1", title="Second", more=url.format("?utm_source=mail"))
    put_whole(data, "x/same.md", note_id="id-3", title="Same one")
    put_whole(
        data, "x/torn.md", note_id="id-5", title="Torn", body="<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs"
    )
    put_whole(data, "y/same.md", note_id="id-4", title="same  ONE", body="[[same]] [[Nowhere]] [[Nowhere]]")


def issues_of(answer: Any) -> dict[str, list[str]]:
    return {group: [each["path"] for each in issues] for group, issues in answer["groups"].items()}


def test_validate_finds_issues_of_every_group_and_changes_nothing(program: Program) -> None:
    put_one_of_each(program.data)
    copy = "x/same.sync-conflict-20260304-050607-ABCDEFG.md"
    put_whole(program.data, copy, note_id="id-3", title="Same one", body="as another machine wrote it")
    (program.data / "knowledge" / "z.md").symlink_to(Path(__file__))
    before = snapshot(program.data)
    done = program.run("validate", "--json")
    assert snapshot(program.data) == before
    assert list(done.answer["groups"]) == [each.name for each in checks_of(VALIDATE)]
    assert issues_of(done.answer) == {
        "PARSE_ERROR": ["binary.md"],
        "MISSING_ID": ["bare.md"],
        "MISSING_TITLE": ["bare.md"],
        "MISSING_AUTHOR": ["bare.md"],
        "DUPLICATE_ID": ["two.md"],
        "CONFLICT_COPY": [copy],
        "CONFLICT_MARKERS": ["x/torn.md"],
        "BROKEN_LINK": ["y/same.md"],
        "AMBIGUOUS": ["y/same.md"],
        "SLUG_COLLISION": ["y/same.md"],
        "DUPLICATE_URL": ["two.md"],
        "ESCAPE": ["z.md"],
    }
    assert done.answer["groups"]["AMBIGUOUS"][0]["detail"] == "[[same]] may mean x/same.md, y/same.md"
    assert done.answer["summary"] == {"error": 3, "warning": 6, "info": 3}
    assert (done.answer["total"], done.code) == (12, 1)


def test_report_lists_ten_entries_per_group_and_strict_exits_1(program: Program) -> None:
    links = " ".join(f"[[Missing {chr(97 + number)}]]" for number in range(12))
    put_whole(program.data, "a.md", note_id="id-1", title="A", body=links)
    done = program.run("validate")
    lines = done.out.splitlines()
    assert lines[:3] == [
        "Validating 1 files...",
        "BROKEN_LINK (warning): 12",
        "  a.md: [[Missing a]] leads to no note",
    ]
    assert len([line for line in lines if line.startswith("  a.md")]) == 10
    assert lines[-3:] == [
        "  ... and 2 more (--all lists them)", "0 errors, 12 warnings, 0 infos", "Total issues: 12"
    ]  # fmt: skip
    assert len(program.run("validate", "--all").out.splitlines()) == 16
    assert (done.code, program.run("validate", "--strict").code) == (0, 1)
    put_whole(program.data, "a.md", note_id="id-1", title="A")
    clean = program.run("validate", "--strict")
    assert (clean.out, clean.code) == ("Validating 1 files...\nNo issues found\n", 0)


def test_fix_adds_missing_fields_once_and_keeps_other_bytes(program: Program) -> None:
    """The vault is in the form that people write. All existing lines stay in order."""
    folder = make_vault(program.data)
    before = snapshot(folder)
    first = program.run("validate", "--fix", "ids", "--yes", "--json").answer
    assert first["fixed"] == sum(
        len(paths) for group, paths in issues_of(first).items() if "MISSING" in group
    )
    after = snapshot(folder)
    for path, (old, mtime) in before.items():
        new, new_mtime = after[path]
        assert new_mtime == mtime
        if not path.endswith(".md"):
            assert new == old
            continue
        assert b"id: not-a-uuid\n" not in old or b"id: not-a-uuid\n" in new, "a person's own id"
        added = [line for line in new.splitlines() if line not in old.splitlines()]
        assert all(line.split(b":")[0] in KEYS for line in added), path
        kept = iter(new.splitlines(keepends=True))
        assert all(line in kept or line == old.splitlines(keepends=True)[-1]
                   for line in old.splitlines(keepends=True)), path  # fmt: skip
    assert set(after) == set(before) == set(FILES)
    again = program.run("validate", "--fix", "ids")
    assert "Fixed 0 issues\n" in again.out
    assert snapshot(folder) == after


async def test_fix_writes_the_id_that_the_server_already_used(tmp_path: Path) -> None:
    """Behaviour 177."""
    file = put_note(tmp_path, "inbox/idea.md", "An idea about zebras.\n")
    async with serving(tmp_path) as lithos:
        first = (await lithos.call("lithos_read", path="inbox/idea.md"))["id"]
    async with serving(tmp_path) as lithos:
        assert (await lithos.call("lithos_read", path="inbox/idea.md"))["id"] == first
    assert first == "647ceeaa-b2f4-5f08-9b41-0701a41c063d" == derive_id("inbox/idea.md")
    fix(tmp_path)
    assert f"id: {first}\n" in file.read_text()
    file.rename(file.with_name("moved.md"))
    async with serving(tmp_path) as lithos:
        read = await lithos.read(first)
        assert (read["metadata"]["author"], read["title"]) == ("unknown", "idea")


def test_moved_note_gets_its_earlier_id(tmp_path: Path, program: Program) -> None:
    """behaviour 270: covers moves that happened while no server ran, before the next server start."""
    file = put_note(tmp_path, "inbox/idea.md", "An idea about zebras.\n")
    trio.run(_start_once, tmp_path)
    file.rename(file.with_name("moved.md"))
    program.run("validate", "--fix", "ids", "--yes")
    assert f"id: {derive_id('inbox/idea.md')}\n" in file.with_name("moved.md").read_text()


async def _start_once(data: Path) -> None:
    async with serving(data):
        pass


def fix(data: Path) -> Fixing:
    """Call `fix_notes` without the command line, for tests inside an event loop."""
    files = NoteFiles(data / "knowledge")
    before = validate_notes(files)
    return fix_notes(
        files, before, tuple(plan_amendments(before.folder, iter([NEW.format(1), NEW.format(2)]).__next__))
    )


async def test_later_duplicates_get_new_ids_that_the_server_uses(tmp_path: Path) -> None:
    """The new text may be as long as the old text. A note may be derived from its own old id."""
    old = "11111111-1111-4111-8111-111111111111"
    more = f"derived_from_ids: [{old}]\n"
    put_whole(tmp_path, "a.md", note_id=old, title="A", more=more)
    put_whole(tmp_path, "b.md", note_id=old, title="B", more=more)
    put_note(tmp_path, "c.md", f"---\n# mine\nid: '{old}'  # kept\n---\nText.\n")
    async with serving(tmp_path) as lithos:
        assert await lithos.listed() == ["A"]
    done = fix(tmp_path)
    assert (done.fixed, done.left.total, done.failures) == (4, 0, ())
    assert f"---\n# mine\nid: '{NEW.format(2)}'  # kept\n" in (tmp_path / "knowledge" / "c.md").read_text()
    async with serving(tmp_path) as lithos:
        assert sorted(await lithos.listed()) == ["A", "B", "c"]
        assert (await lithos.read(NEW.format(1)))["metadata"]["derived_from_ids"] == [old]
    assert fix(tmp_path).fixed == 0


def test_unwritable_file_does_not_prevent_fixes_of_other_files(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        put_note(program.data, f"{name}.md", "text\n")
    real = KernelCalls.exchange

    def refuse(calls: KernelCalls, source: str, target: str) -> None:
        if target.endswith("b.md"):
            raise PermissionError(13, "Permission denied")
        real(calls, source, target)

    monkeypatch.setattr(KernelCalls, "exchange", refuse)
    done = program.run("validate", "--fix", "ids", "--yes")
    assert "\n0 errors, 0 warnings, 9 infos (--all lists the infos)\nTotal issues: 9\n" in done.out
    assert done.out.endswith("\nFixed 6 issues\nRemaining issues: 3\n")
    assert done.err.startswith("lithos: not fixed: b.md: the file cannot be written: ")
    assert done.code == 1
    assert (program.data / "knowledge" / "b.md").read_text() == "text\n"
    monkeypatch.undo()
    assert program.run("validate", "--fix", "ids", "--yes", "--json").answer["fixed"] == 3


def test_validate_is_read_only_while_a_server_runs(program: Program) -> None:
    put_note(program.data, "a.md", "text\n")
    lock = OwnerLock(program.data / ".lithos" / "lock")
    lock.acquire("2026-01-01T00:00:00+00:00")
    try:
        before = snapshot(program.data)
        assert program.run("validate", "--json").answer["total"] == 3
        refused = program.run("validate", "--fix")
        assert (refused.code, refused.out) == (4, "")
        assert "Another process uses the data directory: process" in refused.err
        assert snapshot(program.data) == before
    finally:
        lock.release()


def test_validate_creates_nothing_when_the_notes_folder_is_missing(program: Program) -> None:
    for arguments in (["validate"], ["validate", "--fix"]):
        done = program.run(*arguments)
        assert (done.code, done.out) == (1, "")
        assert "knowledge is missing" in done.err
    assert list(program.data.iterdir()) == []


@pytest.mark.parametrize("path", [path for path in FILES if path.endswith(".md")])
def test_amended_document_differs_only_in_the_given_fields(path: str) -> None:
    modified = from_nanoseconds(1_600_000_000_000_000_000)
    old = parse_document(FILES[path], path, modified)
    data = amend_document(FILES[path], path, modified, {"id": NEW.format(9), "author": "somebody"})
    new = parse_document(data, path, modified)
    assert (new.note.id, new.note.author, new.content) == (NEW.format(9), "somebody", old.content)
    assert (new.note.title, new.note.extra, new.note.tags) == (old.note.title, old.note.extra, old.note.tags)


def test_new_id_differs_from_the_ids_of_all_files() -> None:
    given = frozenset({"id", "title", "author"})
    files = [
        CheckedFile(path=f"{number}.md", note=Note(id=note_id, title="T"), given=given)
        for number, note_id in enumerate(["a", "a", "b"])
    ]
    planned = list(plan_amendments(NoteFolder(files), iter(["b", "a", "c"]).__next__))
    assert [(each.path, each.values, each.issues) for each in planned] == [("1.md", {"id": "c"}, 1)]


def test_validation_distinguishes_errors_warnings_and_information(program: Program) -> None:
    """behaviour 261"""
    put_note(program.data, "plain.md", "No frontmatter, as most files of a vault.\n")
    done = program.run("validate", "--strict")
    assert done.out == (
        "Validating 1 files...\n0 errors, 0 warnings, 3 infos (--all lists the infos)\nTotal issues: 3\n"
    )
    assert done.code == 0
    assert "MISSING_ID (info): 1\n  plain.md: the file has no id" in program.run("validate", "--all").out
    put_whole(program.data, "a.md", note_id="id-1", title="A", body="[[Nowhere]]")
    done = program.run("validate")
    assert "BROKEN_LINK (warning): 1\n" in done.out
    assert (done.code, program.run("validate", "--strict").code) == (0, 1)
    put_note(program.data, "binary.md", b"\x00")
    done = program.run("validate")
    assert "PARSE_ERROR (error): 1\n" in done.out
    assert "\n1 errors, 1 warnings, 3 infos" in done.out
    assert done.code == 1


def test_only_a_vault_allows_equal_titles_in_different_folders(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 253, 261"""
    for path in ("x/a.md", "y/a.md", "y/b.md"):
        put_whole(program.data, path, note_id=path, title="Same")
    assert issues_of(program.run("validate", "--json").answer) == {"SLUG_COLLISION": ["y/a.md", "y/b.md"]}
    monkeypatch.setenv("LITHOS_STORAGE__VAULT", str(program.data / "knowledge"))
    assert issues_of(program.run("validate", "--json").answer) == {"SLUG_COLLISION": ["y/b.md"]}


class Terminal(io.StringIO):
    """A terminal where a person types answers."""

    def isatty(self) -> bool:
        return True


def test_fix_shows_its_planned_changes_and_asks_first(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 261"""
    put_note(program.data, "a.md", "text\n")
    before = snapshot(program.data / "knowledge")
    for typed in ("", "n\n", "\n"):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        done = program.run("validate", "--fix")
        assert "Changes to write to 1 files:\n  a.md: title: a, author: unknown\n" in done.out
        assert "Change 1 files? [y/N]" in done.err
        assert done.code == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))  # Without a terminal, the command asks no question.
    done = program.run("validate", "--fix")
    assert "--yes" in done.err
    assert "?" not in done.err
    assert done.code == 1
    done = program.run("validate", "--fix", "--json")
    planned = [{"path": "a.md", "values": {"title": "a", "author": "unknown"}}]
    assert (done.answer["planned"], done.answer["fixed"], done.code) == (planned, 0, 1)
    assert snapshot(program.data / "knowledge") == before
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert "Fixed 2 issues\nRemaining issues: 1\n" in program.run("validate", "--fix").out
    text = (program.data / "knowledge" / "a.md").read_text()
    assert text == "---\ntitle: a\nauthor: unknown\n---\n\ntext\n"


def test_ids_are_written_only_on_request(program: Program) -> None:
    """behaviour 261"""
    put_whole(program.data, "a.md", note_id="id-1", title="A")
    put_whole(program.data, "b.md", note_id="id-1", title="B")
    before = snapshot(program.data / "knowledge")
    done = program.run("validate", "--fix", "--yes", "--json")
    assert (done.answer["fixed"], done.answer["planned"], done.code) == (0, [], 1)
    assert snapshot(program.data / "knowledge") == before
    done = program.run("validate", "--fix", "ids", "--yes", "--json")
    assert (done.answer["fixed"], done.answer["remaining"], done.code) == (1, 0, 0)


def test_served_note_keeps_its_id_when_its_copy_sorts_first(program: Program) -> None:
    async def create() -> str:
        async with serving(program.data) as lithos:
            return str(await lithos.create("Shared", "text", path="shared.md"))

    note = trio.run(create)
    held = program.data / "knowledge/shared.md"
    copy = put_note(program.data, "archive/shared.md", held.read_bytes())
    for manifest in ("kept", "gone"):
        if manifest == "gone":
            (program.data / ".lithos/manifest.db").unlink()
        done = program.run("validate", "--json")
        assert issues_of(done.answer)["DUPLICATE_ID"] == ["archive/shared.md"]
    program.run("validate", "--fix", "ids", "--yes")
    assert f"id: {note}" in held.read_text()
    assert f"id: {note}" not in copy.read_text()
