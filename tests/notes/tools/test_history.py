"""`lithos_history`, `lithos_restore`, and `lithos_read` with `version` and `as_of`, on a full server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.history.rows.store import HistoryStore
from lithos.history.service.history import NoteHistory
from lithos.history.settings import HistoryConfig
from lithos.server.tools.arguments import ArgumentFault
from lithos.text.outline.differences import LONGEST_DIFF
from tests.servers import MISSING_ID, VAULT, Clock, Lithos, put_note, refusal, serving

#: Keys whose values may differ between a version and its restored state.
OWN = ("id:", "version:", "updated_at:", "created_at:", "author:")


async def history(lithos: Lithos, **arguments: Any) -> Any:
    answer = await lithos.call("lithos_history", **arguments)
    assert "status" not in answer, answer
    return answer


async def restore(lithos: Lithos, note: str, version: int, **more: Any) -> Any:
    return await lithos.call("lithos_restore", id=note, version=version, agent="mender", **more)


def body_of(data: bytes) -> list[str]:
    """Return the lines of a note file without the lines that a restore may change."""
    return [line for line in data.decode().split("\n") if not line.startswith(OWN)]


async def three_versions(lithos: Lithos, clock: Clock) -> str:
    """Create a note with three versions, one minute apart."""
    note = await lithos.create("Raft", "one", tags=["a"])
    clock.advance(minutes=1)
    await lithos.write("Raft", "two", id=note, agent="bob")
    clock.advance(minutes=1)
    await lithos.call("lithos_note_update", id=note, agent="cat", tags=["b"], title="Rafts")
    clock.advance(minutes=1)
    return note


async def test_versions_are_listed_newest_first(lithos: Lithos, clock: Clock) -> None:
    start = clock.text
    note = await three_versions(lithos, clock)
    answer = await history(lithos, id=note)
    assert list(answer) == ["id", "versions", "total"]
    assert (answer["id"], answer["total"]) == (note, 3)
    told = [(row["version"], row["agent"], row["op"], row["title"]) for row in answer["versions"]]
    assert told == [
        (3, "cat", "updated", "Rafts"),
        (2, "bob", "updated", "Raft"),
        (1, "tester", "created", "Raft"),
    ]
    first = answer["versions"][2]
    keys = ["version", "at", "agent", "op", "title", "path", "size", "hash", "changed", "row"]
    assert list(first) == keys
    assert (first["at"], first["path"], len(first["hash"])) == (start, "raft.md", 64)
    page = await history(lithos, id=note, limit=1, before=3)
    assert [row["version"] for row in page["versions"]] == [2]
    assert await history(lithos, path="raft") == answer
    only = await history(lithos, id=note, changed_by="bob", since=start)
    assert ([row["version"] for row in only["versions"]], only["total"]) == ([2], 1)
    assert await history(lithos, id=note, changed_by=" ", since="", diff=" ", path="") == answer


async def test_read_of_a_version_or_time_returns_its_exact_text(lithos: Lithos, clock: Clock) -> None:
    """behaviour 221"""
    times = [clock.text]
    note = await lithos.create("Raft", "one", tags=["a"])
    clock.advance(minutes=1)
    times.append(clock.text)
    await lithos.write("Raft", "two", id=note)
    for arguments in ({"id": note}, {"path": "raft.md"}, {"title": "raft"}):
        first = await lithos.call("lithos_read", **arguments, version=1)
        assert (first["content"], first["version"], first["current_version"]) == ("one", 1, 2)
        assert first["metadata"]["version"] == 1
    second = await lithos.read(note, version=2)
    now = await lithos.read(note)
    assert second == {**now, "current_version": 2, "retrieval_count": second["retrieval_count"]}
    assert "current_version" not in now
    assert (await lithos.read(note, as_of=times[0]))["content"] == "one"
    assert (await lithos.read(note, as_of=times[1]))["content"] == "two"
    clock.advance(minutes=1)
    assert (await lithos.read(note, as_of=clock.text, version=None))["content"] == "two"
    cut = await lithos.read(note, version=1, max_length=2)
    assert cut["truncated"]


async def test_missing_version_error_names_the_oldest_version(lithos: Lithos, clock: Clock) -> None:
    """behaviour 221"""
    note = await three_versions(lithos, clock)
    for version in (0, -1, 4, 2**63, 10**30):
        answer = await lithos.call("lithos_read", id=note, version=version)
        assert "oldest kept version is 1 of" in refusal(answer, "version_not_found")
        assert answer["oldest_version"] == 1
    refusal(await lithos.call("lithos_read", id=note, as_of="2020-01-01"), "version_not_found")
    refusal(await lithos.call("lithos_read", id=note, as_of="then"), "invalid_input")
    refusal(await lithos.call("lithos_read", id=note, as_of="2020-01-01", version=1), "invalid_input")
    refusal(await lithos.call("lithos_read", version=1), "invalid_input")
    for arguments in ({"id": MISSING_ID}, {"path": "nowhere"}):
        refusal(await lithos.call("lithos_read", **arguments, version=1), "doc_not_found")
        refusal(await lithos.call("lithos_history", **arguments), "doc_not_found")
    refusal(await restore(lithos, MISSING_ID, 1), "doc_not_found")
    refusal(await restore(lithos, note, 9), "version_not_found")
    refusal(await lithos.call("lithos_history"), "invalid_input")
    refusal(await lithos.call("lithos_history", id=note, limit=0), "invalid_input")
    refusal(await lithos.call("lithos_history", diff="1"), "invalid_input")
    with pytest.raises(ArgumentFault):
        await lithos.call("lithos_history", id=note, version=1)


async def test_deleted_note_is_listed_and_can_be_read_by_id(lithos: Lithos, clock: Clock) -> None:
    """behaviours 221, 223"""
    note = await three_versions(lithos, clock)
    kept = await lithos.create("Kept")
    before = clock.text
    clock.advance(minutes=1)
    await lithos.call("lithos_delete", id=note, agent="bad")
    clock.advance(minutes=1)
    read = await lithos.read(note, version=3)
    assert (read["content"], read["path"], read["current_version"]) == ("two", "raft.md", None)
    assert (await lithos.read(note, as_of=before))["version"] == 3
    gone = await lithos.read(note, as_of=clock.text)
    assert (gone["deleted"], gone["version"], gone["content"]) == (True, 4, "two")
    deleted = await history(lithos, deleted=True)
    assert [(row["id"], row["op"], row["agent"]) for row in deleted["versions"]] == [(note, "deleted", "bad")]
    assert deleted["id"] is None
    assert [row["version"] for row in (await history(lithos, path="raft.md"))["versions"]] == [4, 3, 2, 1]
    recent = await history(lithos, changed_by="tester")
    assert [(row["id"], row["version"]) for row in recent["versions"]] == [(kept, 1), (note, 1)]
    assert (await history(lithos, since=clock.text))["versions"] == []


async def test_diff_shows_the_changes_between_versions(lithos: Lithos, clock: Clock) -> None:
    """behaviour 222"""
    note = await three_versions(lithos, clock)
    answer = await history(lithos, id=note, diff="1..2")
    assert list(answer) == ["id", "from", "to", "diff", "truncated"]
    assert (answer["id"], answer["from"], answer["to"], answer["truncated"]) == (note, 1, 2, False)
    lines = answer["diff"].split("\n")
    assert lines[:2] == ["--- raft.md\tversion 1", "+++ raft.md\tversion 2"]
    assert {"-one", "+two", "-version: 1", "+version: 2"} <= set(lines)
    assert await history(lithos, id=note, diff="2") == answer
    for same in ("1...2", "1-2", " 1 .. 2 "):
        assert await history(lithos, id=note, diff=same) == answer
    first = await history(lithos, id=note, diff="1")
    assert first["from"] is None
    assert first["diff"].startswith("--- /dev/null\n")
    newest = await history(lithos, id=note, diff="1..")
    assert (newest["from"], newest["to"]) == (1, 3)
    back = await history(lithos, id=note, diff="2..1")
    assert {"-two", "+one"} <= set(back["diff"].split("\n"))
    for wrong in ("a..b", "..", "..2", "1.2", "-1"):
        refusal(await lithos.call("lithos_history", id=note, diff=wrong), "invalid_input")
    refusal(await lithos.call("lithos_history", id=note, diff="1..9"), "version_not_found")
    await lithos.write("Rafts", "\n".join(map(str, range(20_000))), id=note)
    long = await history(lithos, id=note, diff="4")
    assert long["truncated"]
    assert len(long["diff"]) == LONGEST_DIFF


async def test_restored_version_has_the_old_bytes(tmp_path: Path, lithos: Lithos, clock: Clock) -> None:
    """behaviour 223"""
    note = await three_versions(lithos, clock)
    old = (await lithos.read(note, version=1))["metadata"]
    first = (tmp_path / "knowledge" / "raft.md").read_bytes()
    answer = await restore(lithos, note, 1, expected_version=3)
    assert answer == {"status": "updated", "id": note, "path": "raft.md", "version": 4, "warnings": []}
    now = await lithos.read(note)
    assert (now["content"], now["title"]) == ("one", "Raft")
    assert now["metadata"] == {**old, "version": 4, "updated_at": clock.text}
    (row,) = (await history(lithos, id=note, limit=1))["versions"]
    assert (row["version"], row["op"], row["agent"]) == (4, "restored", "mender")
    assert lithos.events()[-1] == ("note.updated", {"id": note, "title": "Raft", "path": "raft.md"})
    stale = await restore(lithos, note, 3, expected_version=3)
    assert stale["current_version"] == 4
    refusal(stale, "version_conflict")
    await restore(lithos, note, 3)
    assert body_of((tmp_path / "knowledge" / "raft.md").read_bytes()) == body_of(first)


FOREIGN_TEXTS = {
    "crlf": b"---\r\ntags: [a, 'b']  # mine\r\nowner: me\r\n---\r\n\r\n# T\r\n\r\nx  \r\n\r\n\r\n",
    "no frontmatter": b"# T\n\nx",
    "emoji and tabs": b"# T\n\n\xf0\x9f\x98\x80\tx\n\n\n",
    "setext": b"---\nname: t\n---\nT\n===\n\n\tx\n---\n",
}


@pytest.mark.parametrize("name", FOREIGN_TEXTS)
async def test_restore_of_a_persons_bytes_changes_nothing_else(name: str, tmp_path: Path) -> None:
    """behaviour 223"""
    text = FOREIGN_TEXTS[name]
    file = put_note(tmp_path, "mine.md", text)
    async with serving(tmp_path, settled=False) as lithos:
        note = (await lithos.call("lithos_read", path="mine.md"))["id"]
        await lithos.write("Other", "Other text.", id=note, tags=["z"])
        oldest = (await history(lithos, id=note))["versions"][-1]["version"]
        await restore(lithos, note, oldest)
        lines = file.read_bytes().splitlines(keepends=True)
        kept = b"".join(line for line in lines if not line.decode().startswith(OWN))
        gap = b"" if text.startswith(b"---") else b"---\n---\n\n"
        assert kept == gap + text


async def test_deleted_note_is_restored_with_id_times_and_links(lithos: Lithos, clock: Clock) -> None:
    """behaviour 223"""
    note = await three_versions(lithos, clock)
    linking = await lithos.create("Linking", "See [[raft]].")
    old = (await lithos.read(note))["metadata"]
    await lithos.call("lithos_delete", id=note, agent="bad")
    taken = await lithos.create("Rafters", path="raft.md")
    collision = await restore(lithos, note, 3)
    assert collision["existing_id"] == taken
    refusal(collision, "path_collision")
    await lithos.call("lithos_delete", id=taken, agent="tester")
    clock.advance(minutes=1)
    conflict = await restore(lithos, note, 3, expected_version=3)
    assert conflict["current_version"] == 4
    refusal(conflict, "version_conflict")
    answer = await restore(lithos, note, 3, expected_version=4)
    assert (answer["status"], answer["path"], answer["version"]) == ("created", "raft.md", 5)
    now = await lithos.read(note)
    assert now["metadata"] == {**old, "version": 5, "updated_at": clock.text}
    assert lithos.events()[-1] == ("note.created", {"id": note, "title": "Rafts", "path": "raft.md"})
    links = await lithos.call("lithos_related", id=note, include=["links"])
    assert [row["id"] for row in links["links"]["incoming"]] == [linking]
    assert await lithos.found("two") == ["Rafts"]
    assert (await history(lithos, id=note, limit=1))["versions"][0]["op"] == "restored"
    assert [row["id"] for row in (await history(lithos, deleted=True))["versions"]] == [taken]
    await lithos.write("Rafts", "three", id=note)


async def test_restore_is_refused_when_its_title_or_url_is_taken(lithos: Lithos) -> None:
    note = await lithos.create("Raft", "one", source_url="https://example.org/a")
    await lithos.write("Boat", "two", id=note, source_url="")
    other = await lithos.create("Raft", "mine", path="other.md")
    assert (await restore(lithos, note, 1))["existing_id"] == other
    await lithos.write("Else", "mine", id=other, source_url="https://example.org/a")
    refusal(await restore(lithos, note, 1), "duplicate")
    await lithos.write("Else", "mine", id=other, source_url="")
    assert (await restore(lithos, note, 1))["version"] == 3


async def test_unnoticed_edit_survives_a_restore(tmp_path: Path, lithos: Lithos) -> None:
    """behaviour 219"""
    note = await lithos.create("Raft", "one")
    await lithos.write("Raft", "two", id=note)
    file = tmp_path / "knowledge" / "raft.md"
    file.write_text(file.read_text().replace("two", "by hand"))
    refusal(await restore(lithos, note, 1, expected_version=2), "version_conflict")
    answer = await restore(lithos, note, 1)
    assert answer["version"] == 4
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".md"]
    versions = (await history(lithos, id=note))["versions"]
    texts = [(await lithos.read(note, version=row["version"]))["content"] for row in versions]
    assert "by hand" in texts or any("by hand" in text for text in kept)


BROKEN = b"---\ntags: [a\n: : x\n---\n\n# T\n\ntext\n"


async def test_bytes_with_uneditable_frontmatter_are_restored_unchanged(tmp_path: Path) -> None:
    """behaviour 223"""
    file = put_note(tmp_path, "mine.md", "# T\n\nx\n")
    async with serving(tmp_path, settled=False, storage=VAULT) as lithos:
        note = (await lithos.call("lithos_read", path="mine.md"))["id"]
        await lithos.write("T", "y", id=note)
        identified = file.read_bytes()
        file.write_bytes(BROKEN)
        broken = (await lithos.read(note))["version"]
        await restore(lithos, note, broken - 1)
        assert body_of(file.read_bytes()) == body_of(identified)
        answer = await restore(lithos, note, broken)
        assert answer["version"] == broken + 2
        assert file.read_bytes() == BROKEN
        read = await lithos.read(note)
        assert (read["version"], read["content"]) == (broken + 2, "# T\n\ntext")
        await lithos.call("lithos_delete", id=note, agent="bad")
        back = await restore(lithos, note, broken + 3)
        assert (back["status"], back["version"]) == ("created", broken + 4)
        assert (await lithos.read(note))["version"] == broken + 4
        assert file.read_bytes() == BROKEN


async def test_version_pruned_during_its_restore_is_still_restored(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = await lithos.create("Raft", "one")
    await lithos.call("lithos_delete", id=note, agent="bad")
    newest = NoteHistory.newest

    async def pruned(service: NoteHistory, note_id: str) -> Any:
        store = service._reader
        assert isinstance(store, HistoryStore)
        rows = store._writer.execute("SELECT place FROM versions").fetchall()
        store.drop([place for (place,) in rows])
        assert await newest(service, note_id) is None
        return None

    monkeypatch.setattr(NoteHistory, "newest", pruned)
    answer = await restore(lithos, note, 1)
    assert answer["status"] == "created"
    assert (await lithos.read(note))["content"] == "one"


async def test_undo_of_one_version_keeps_later_changes_by_others(lithos: Lithos) -> None:
    """behaviour 224"""
    note = await lithos.create("List", "one\n\ntwo\n\nthree", tags=["a"])
    await lithos.write("List", "one\n\nBAD\n\nthree", id=note, agent="bad", tags=["a", "bad"])
    await lithos.write("List", "one\n\nBAD\n\nthree\n\nfour", id=note, tags=["a", "bad", "good"])
    tried = await restore(lithos, note, 1, base=2, dry_run=True)
    assert (tried["status"], tried["merged_with"]) == ("updated", 3)
    assert (await lithos.read(note))["version"] == 3
    answer = await restore(lithos, note, 1, base=2)
    assert (answer["version"], answer["merged_with"]) == (4, 3)
    now = await lithos.read(note)
    assert now["content"] == "one\n\ntwo\n\nthree\n\nfour"
    assert now["metadata"]["tags"] == ["a", "good"]
    again = await restore(lithos, note, 1, base=2)
    assert (again["status"], again["version"]) == ("unchanged", 4)
    await lithos.write("List", "one\n\nBAD\n\nthree", id=note, agent="bob")
    assert (await restore(lithos, note, 1, base=2))["status"] == "unchanged"  # The change is undone already.


async def test_overlapping_undo_is_reported_and_nothing_is_written(lithos: Lithos) -> None:
    """behaviour 224"""
    note = await lithos.create("List", "one\n\ntwo\n\nthree")
    await lithos.write("List", "one\n\nBAD\n\nthree", id=note, agent="bad")
    await lithos.write("List", "one\n\nBAD, says ann\n\nthree", id=note, agent="ann")
    answer = await restore(lithos, note, 1, base=2)
    refusal(answer, "version_conflict")
    assert [set(each) for each in answer["conflicts"]] == [{"line", "base", "mine", "theirs"}]
    assert (await lithos.read(note))["version"] == 3


async def test_history_tools_are_refused_but_writes_succeed_without_history(tmp_path: Path) -> None:
    """behaviour 225"""
    async with serving(tmp_path, settled=False, history=HistoryConfig(enabled=False)) as lithos:
        note = await lithos.create("Raft", "one")
        await lithos.write("Raft", "two", id=note, expected_version=1)
        for tool, arguments in (
            ("lithos_history", {"id": note}),
            ("lithos_history", {"deleted": True}),
            ("lithos_history", {"id": note, "diff": "1"}),
            ("lithos_read", {"id": note, "version": 1}),
            ("lithos_read", {"id": note, "as_of": "2026-01-01"}),
            ("lithos_restore", {"id": note, "version": 1, "agent": "a"}),
        ):
            refusal(await lithos.call(tool, **arguments), "history_disabled")
        assert (await lithos.read(note))["content"] == "two"


async def test_cut_version_list_continues_at_the_next_offset(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False, server={"max_answer_chars": 4_000}) as lithos:
        note = await lithos.create("Raft", "0")
        for number in range(1, 25):
            await lithos.write("Raft", str(number), id=note)
        answer = await history(lithos, id=note, limit=100)
        assert answer["truncated"]
        seen = [row["version"] for row in answer["versions"]]
        while "next_offset" in answer:
            answer = await history(lithos, id=note, limit=100, offset=answer["next_offset"])
            seen += [row["version"] for row in answer["versions"]]
        assert seen == list(range(25, 0, -1))


async def test_section_of_an_earlier_version_can_be_read(lithos: Lithos) -> None:
    """behaviours 214, 221"""
    note = await lithos.create("Raft", "## Logs\n\nold\n\n## Votes\n\nv")
    await lithos.call("lithos_note_edit", id=note, agent="a", op="replace", section="Logs", text="new")
    old = await lithos.read(note, version=1, section="Logs", outline=True)
    assert "old" in old["content"]
    assert "v" not in old["content"].removeprefix("## Logs")
    assert [row["section"] for row in old["outline"]][-2:] == ["Logs", "Votes"]
    assert "new" in (await lithos.read(note, version=2, section="Logs"))["content"]


async def test_edit_move_and_undo_of_one_version_have_separate_rows(tmp_path: Path) -> None:
    """behaviour 354: rows have permanent numbers, which diff and restore accept."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Plan", "One.")
        await lithos.call("lithos_note_edit", id=note, op="append", text="Two.", agent="ann")
        for path in ("sub/plan.md", "plan.md", "sub/plan.md"):
            moved = await lithos.call("lithos_note_move", id=note, path=path, agent="ann")
            assert moved["version"] == 2
        await lithos.create("Other", "Between.")
        rows = (await lithos.call("lithos_history", id=note))["versions"]
        assert [(row["version"], row["op"]) for row in rows] == [
            (2, "renamed"), (2, "renamed"), (2, "renamed"), (2, "updated"), (1, "created"),
        ]  # fmt: skip
        numbers = [row["row"] for row in rows]
        assert numbers == sorted(numbers, reverse=True)
        assert len(set(numbers)) == 5

        async def diff(text: str) -> Any:
            return await lithos.call("lithos_history", id=note, diff=text)

        newest, back, first, edit, made = (f"r{number}" for number in numbers)
        assert (await diff(newest))["diff"] == "rename from plan.md\nrename to sub/plan.md\n"
        assert (await diff(back))["diff"] == "rename from sub/plan.md\nrename to plan.md\n"
        assert "+Two." in (await diff(edit))["diff"]
        whole = await diff(f"{made}..{newest}")
        assert whole["diff"].startswith("rename from plan.md\nrename to sub/plan.md\n--- ")
        assert (whole["from"], whole["to"], whole["from_row"], whole["to_row"]) == (
            1, 2, numbers[-1], numbers[0],
        )  # fmt: skip
        assert "+Two." in (await diff(f"1..{first}"))["diff"]
        assert list(await diff("1..2")) == ["id", "from", "to", "diff", "truncated"]
        assert refusal(await diff("r999"), "version_not_found")
        other = (await lithos.call("lithos_history", path="other.md"))["versions"][0]["row"]
        assert refusal(await diff(f"r{other}"), "version_not_found")

        restored = await lithos.call("lithos_restore", id=note, row=numbers[-1], agent="ann")
        assert (restored["version"], restored["path"]) == (3, "sub/plan.md")
        assert (await lithos.read(note))["content"] == "One."
        for given in ({}, {"row": numbers[0], "version": 2}):
            answer = await lithos.call("lithos_restore", id=note, agent="ann", **given)
            assert "version, or row" in refusal(answer, "invalid_input")
    async with serving(tmp_path) as lithos:
        rows = (await lithos.call("lithos_history", id=note))["versions"]
        assert [row["row"] for row in rows][1:] == numbers
