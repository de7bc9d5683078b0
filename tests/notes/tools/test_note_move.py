"""`lithos_note_move`: the tool moves the file and rewrites only the links that would break."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.displaced import MoveIntent, Moves
from lithos.notes.files.values import digest_of
from lithos.notes.links.edit import Relinking
from lithos.notes.service.moving import Moving
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.messages import RelinkNote
from tests.notes.tools.test_foreign_notes import changed_lines, commit_all, id_of
from tests.servers import MISSING_ID, Lithos, put_note, refusal, serving
from tests.servers import VAULT as SERVED


async def move(lithos: Lithos, note: str, path: str, **more: Any) -> Any:
    return await lithos.call("lithos_note_move", id=note, path=path, agent="mover", **more)


VAULT = {
    "a/foo.md": "[self](foo.md#x) [beside](beside.md) ![pic](pics/p.png) [out](https://example.org/a/foo.md)\n",
    "a/beside.md": "By path [[a/foo]], [[a/foo.md#Part|shown]], ![[a/foo#^b]], or [[foo]].\n",
    "c/far.md": (
        "---\nx: '[[a/foo]]'\n---\n[far](../a/foo.md#Part 'title') [[a/foo]] `[[a/foo]]`\n"
        "\n```\n[[a/foo]] [x](../a/foo.md)\n```\n| [[a/foo\\|in a table]] |\n"
    ),
    "d.md": "[rooted](</a/foo.md>) [[a/foo]]  \r\nkept",
    "e.md": "[[foo]] and [[elsewhere/foo]] do not break.",
    "a/pics/p.png": "png",
}
MOVED = {
    "new place/foo.md": (
        "[self](foo.md#x) [beside](../a/beside.md) ![pic](../a/pics/p.png) [out](https://example.org/a/foo.md)\n"
    ),
    "a/beside.md": (
        "By path [[new place/foo]], [[new place/foo.md#Part|shown]], ![[new place/foo#^b]], or [[foo]].\n"
    ),
    "c/far.md": (
        "---\nx: '[[new place/foo]]'\n---\n"
        "[far](../new%20place/foo.md#Part 'title') [[new place/foo]] `[[a/foo]]`\n"
        "\n```\n[[a/foo]] [x](../a/foo.md)\n```\n| [[new place/foo\\|in a table]] |\n"
    ),
    "d.md": "[rooted](</new place/foo.md>) [[new place/foo]]  \r\nkept",
    "e.md": VAULT["e.md"],
    "a/pics/p.png": "png",
}


@pytest.mark.parametrize("storage", [{}, SERVED], ids=["own", "foreign"])
async def test_move_rewrites_only_the_links_that_would_break(tmp_path: Path, storage: dict[str, Any]) -> None:
    """behaviour 255"""
    for path, text in VAULT.items():
        put_note(tmp_path, path, text)
    async with serving(tmp_path, storage=storage) as lithos:
        ids = {path: await id_of(lithos, path) for path in VAULT if path.endswith(".md")}
        note = ids["a/foo.md"]
        answer = await move(lithos, note, "new place/")
        assert answer == {
            "status": "updated",
            "id": note,
            "path": "new place/foo.md",
            "version": 2,  # The move also changed the note's own relative links.
            "rewritten": answer["rewritten"],
        }
        assert sorted(answer["rewritten"]) == sorted(
            ids[path] for path in ("a/beside.md", "c/far.md", "d.md")
        )
        there = {path: (lithos.knowledge / path).read_bytes().decode() for path in lithos.files()}
        assert there == MOVED
        assert not list((tmp_path / ".lithos" / "moves").iterdir())
        for path, version in (("a/beside.md", 2), ("c/far.md", 2), ("e.md", 1)):
            assert (await lithos.read(ids[path]))["version"] == version
        assert (await id_of(lithos, "new place/foo")) == note
        events = lithos.events()
        assert events[0] == (
            "note.renamed", {"id": note, "src_path": "a/foo.md", "dest_path": "new place/foo.md"}
        )  # fmt: skip
        assert {kind for kind, _ in events[1:]} == {"note.updated"}
        assert len(events) == 5
    async with serving(tmp_path, storage=storage) as lithos:
        assert lithos.events() == []
        assert (await lithos.read(note))["version"] == 2
        assert (await lithos.read(ids["c/far.md"]))["version"] == 2
        update = await lithos.call("lithos_note_update", id=ids["c/far.md"], agent="a", tags=["x"])
        assert update["version"] == 3


async def test_only_links_to_the_moved_note_are_rewritten(tmp_path: Path) -> None:
    """behaviour 255"""
    ids = [f"0f0f0f0f-1111-4222-8333-44444444444{n}" for n in range(3)]
    files = {
        "x/foo.md": f"---\nid: {ids[0]}\n---\n",
        "y/bar.md": f"---\nid: {ids[1]}\n---\n",
        "z.md": "[[foo]] [[foo#Part|f]] [[bar]] [[Bar Title]]",
        "titled.md": f"---\nid: {ids[2]}\ntitle: Bar Title\n---\n",
    }
    for path, text in files.items():
        put_note(tmp_path, path, text)
    async with serving(tmp_path, storage=SERVED) as lithos:
        assert (await move(lithos, ids[0], "x/bar.md"))["status"] == "updated"
        # `[[bar]]` referred to y/bar and would become ambiguous.
        assert (lithos.knowledge / "z.md").read_text() == "[[x/bar]] [[x/bar#Part|f]] [[y/bar]] [[Bar Title]]"
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 0
        await move(lithos, ids[0], "x/Bar Title.md")
        assert (lithos.knowledge / "z.md").read_text() == (
            "[[x/Bar Title]] [[x/Bar Title#Part|f]] [[y/bar]] [[titled]]"
        )
        graph = lithos.server.get(Catalogue).graph
        assert [graph.resolve(each) for each in ("x/Bar Title", "y/bar", "titled")] == ids


async def test_move_changes_only_lines_with_links(tmp_path: Path) -> None:
    """behaviour 255"""
    put_note(tmp_path, "foo.md", "Foo\n")
    put_note(tmp_path, "other.md", "One\n\n[[foo]] here\t\n\nLast line without end")
    async with serving(tmp_path, storage=SERVED) as lithos:
        commit_all(lithos.knowledge)
        note = await id_of(lithos, "foo")
        answer = await move(lithos, note, "deep/er/New name.md", expected_version=1)
        assert (answer["path"], answer["version"]) == ("deep/er/New name.md", 1)
        assert (lithos.knowledge / "deep/er/New name.md").read_text() == "Foo\n"
        lines = [line for line in changed_lines(lithos.knowledge) if line not in ("-Foo",)]
        assert lines == ["-[[foo]] here\t", "+[[New name]] here\t"]


async def test_move_without_update_links_moves_only_the_file(tmp_path: Path) -> None:
    for path, text in VAULT.items():
        put_note(tmp_path, path, text)
    async with serving(tmp_path) as lithos:
        answer = await move(lithos, await id_of(lithos, "a/foo"), "b/foo.md", update_links=False)
        assert (answer["version"], answer["rewritten"]) == (1, [])
        assert {path: (lithos.knowledge / path).read_bytes().decode() for path in lithos.files()} == {
            "b/foo.md" if path == "a/foo.md" else path: text for path, text in VAULT.items()
        }


async def test_undone_move_restores_links_with_the_full_path(tmp_path: Path) -> None:
    """Found in a real vault: `lithos undo` of a move pointed a person's links to another note.

    While the moved note was missing, links to it resolved to another note with the same file name.
    """
    linking = "[John](./john.md) [[who/john]] [[who/john#Part|him]]\n"
    put_note(tmp_path, "who/john.md", "# John\n")
    put_note(tmp_path, "whither/john.md", "# A place\n")
    put_note(tmp_path, "who/handle.md", linking)
    async with serving(tmp_path, storage=SERVED) as lithos:
        john = await id_of(lithos, "who/john.md")
        await move(lithos, john, "who/away.md", update_links=False)
        moved = await move(lithos, john, "who/john.md")
        assert (moved["rewritten"], (lithos.knowledge / "who/handle.md").read_text()) == ([], linking)
        links = await lithos.call("lithos_related", id=john, include=["links"])
        assert [row["title"] for row in links["links"]["incoming"]] == ["handle"]


async def test_refused_moves_change_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note = await lithos.create("One", path="a")
        await lithos.create("Two", path="b/one.md")
        put_note(tmp_path, "c/one.md", "unknown to the server")
        before = lithos.files()
        assert refusal(await move(lithos, MISSING_ID, "x"), "doc_not_found")
        for path in ("../x", "/x", ".hidden", "a.md/x", "x.md/"):
            assert refusal(await move(lithos, note, path), "invalid_input")
        assert "already" in refusal(await move(lithos, note, "a/one.md"), "invalid_input")
        for path in ("b", "b/one.md", "c/one.md"):
            assert refusal(await move(lithos, note, path), "path_collision")
        assert refusal(await move(lithos, note, "d", expected_version=7), "version_conflict")
        assert lithos.files() == before
        assert not list((tmp_path / ".lithos" / "moves").glob("*.json"))
    async with serving(tmp_path, storage=SERVED) as lithos:
        await lithos.write("One", path="e/Other.md")
        assert "folder 'e'" in refusal(await move(lithos, note, "e"), "slug_collision")
        assert (await move(lithos, note, "e/one.md"))["path"] == "e/one.md"


@pytest.mark.parametrize("storage", [{}, SERVED], ids=["own", "foreign"])
@pytest.mark.parametrize("done", range(4))
async def test_interrupted_move_is_completed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: dict[str, Any], done: int
) -> None:
    """behaviour 255"""
    for path, text in VAULT.items():
        put_note(tmp_path, path, text)
    relink, left = Moving._relink, [done]
    stopped = trio.Event()

    async def relink_some(self: Moving, request: RelinkNote, results: dict[str, Exception | None]) -> None:
        left[0] -= 1
        if left[0] < 0:
            stopped.set()
            await trio.sleep_forever()
        await relink(self, request, results)

    async with serving(tmp_path, storage=storage) as lithos:
        note = await id_of(lithos, "a/foo")
        far = await id_of(lithos, "c/far")
        with monkeypatch.context() as patch:
            patch.setattr(Moving, "_relink", relink_some)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(move, lithos, note, "new place")
                await stopped.wait()
                nursery.cancel_scope.cancel()
    async with serving(tmp_path, storage=storage) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        there = {path: (lithos.knowledge / path).read_bytes().decode() for path in lithos.files()}
        assert there == MOVED
        assert (await id_of(lithos, "new place/foo"), await id_of(lithos, "c/far")) == (note, far)
        assert not list((tmp_path / ".lithos" / "moves").iterdir())
        assert (await lithos.call("lithos_stats"))["documents"] == 5


@pytest.mark.parametrize("is_renamed", [False, True])
async def test_journalled_move_is_completed_if_the_file_was_renamed(tmp_path: Path, is_renamed: bool) -> None:
    """behaviour 255"""
    for path, text in VAULT.items():
        put_note(tmp_path, path, text)
    async with serving(tmp_path, storage=SERVED) as lithos:
        note = await id_of(lithos, "a/foo")
        sources = (note, *[await id_of(lithos, path) for path in ("a/beside", "c/far", "d")])
    pages = {"a/foo": "new place/foo", "a/foo.md": "new place/foo.md"}
    relinking = Relinking(
        old="a/foo.md", new="new place/foo.md", pages=pages, paths={"a/foo.md": "new place/foo.md"}
    )
    file = tmp_path / "knowledge/a/foo.md"
    intent = MoveIntent(
        id=note, agent="m", digest=digest_of(file.read_bytes()), identified=False, relinking=relinking,
        sources=sources,
    )  # fmt: skip
    Moves(tmp_path / ".lithos").write(intent)
    if is_renamed:
        (tmp_path / "knowledge/new place").mkdir()
        file.rename(tmp_path / "knowledge/new place/foo.md")
    async with serving(tmp_path, storage=SERVED) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        there = {path: (lithos.knowledge / path).read_bytes().decode() for path in lithos.files()}
        assert there == (MOVED if is_renamed else VAULT)
        assert await id_of(lithos, "new place/foo" if is_renamed else "a/foo") == note
        assert not Moves(tmp_path / ".lithos").pending()


async def test_refused_move_stays_refused_when_its_move_record_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 255 (seed 653 of the simulation)."""

    def refuse(changes: list[object]) -> list[OSError]:
        return [OSError(errno.ENOSPC, "No space left on device")] * len(changes)

    def refuse_removal(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async with serving(tmp_path) as lithos:
        note = await lithos.create("One")
        with monkeypatch.context() as patch:
            patch.setattr(lithos.server.get(Writer)._files, "apply", refuse)
            patch.setattr(Moves, "remove", refuse_removal)
            answer = await lithos.call("lithos_note_move", id=note, path="there", agent="m")
        assert answer["code"] == "internal_error"
        assert Moves(tmp_path / ".lithos").pending()
    async with serving(tmp_path) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        assert lithos.files() == ["one.md"]
        assert not Moves(tmp_path / ".lithos").pending()


async def test_unreadable_move_record_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / ".lithos" / "moves"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text("{")
    async with serving(tmp_path) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        assert [path.name for path in folder.iterdir()] == ["x.unreadable"]
        note = await lithos.create("One")
        assert (await move(lithos, note, "there"))["path"] == "there/one.md"


async def test_edit_during_a_move_is_kept_with_rewritten_links(tmp_path: Path) -> None:
    """behaviour 255"""
    put_note(tmp_path, "foo.md", "Foo")
    put_note(tmp_path, "other.md", "[[foo]]")
    async with serving(tmp_path, storage=SERVED) as lithos:
        (lithos.knowledge / "other.md").write_text("[[foo]] and what a person adds")
        other = await id_of(lithos, "other")
        answer = await move(lithos, await id_of(lithos, "foo"), "bar.md")
        assert answer["rewritten"] == [other]
        assert (lithos.knowledge / "other.md").read_text() == "[[bar]] and what a person adds"
        assert (await lithos.read(other))["version"] == 3  # One of the versions is the person's edit.


async def test_two_notes_that_swap_paths_keep_all_links(tmp_path: Path) -> None:
    put_note(tmp_path, "a.md", "[[b]] [to b](b.md)")
    put_note(tmp_path, "b.md", "[[a]] [to a](a.md)")
    async with serving(tmp_path, storage=SERVED) as lithos:
        a, b = await id_of(lithos, "a"), await id_of(lithos, "b")
        for note, path in ((a, "c.md"), (b, "a.md"), (a, "b.md")):
            assert (await move(lithos, note, path))["status"] == "updated"
        assert (lithos.knowledge / "b.md").read_text() == "[[a]] [to b](a.md)"
        assert (lithos.knowledge / "a.md").read_text() == "[[b]] [to a](b.md)"


async def test_move_accepts_parameter_to_instead_of_path(tmp_path: Path) -> None:
    """behaviour 353"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("One")

        async def move(**given: Any) -> Any:
            return await lithos.call("lithos_note_move", agent="ann", **given)

        assert (await move(id=note, to="a"))["path"] == "a/one.md"
        assert (await move(path="a/one.md", to="b/two.md"))["path"] == "b/two.md"
        assert (await move(id=note, path="b/two.md", to="c"))["path"] == "c/two.md"
        assert (await move(from_path="c/two.md", to="d"))["path"] == "d/two.md"
        other = await lithos.create("Other")
        assert "name two different notes" in refusal(
            await move(id=other, path="d/two.md", to="e"), "invalid_input"
        )
        assert (await move(id=note, path="f", to=""))["path"] == "f/two.md"
