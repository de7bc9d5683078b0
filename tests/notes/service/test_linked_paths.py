"""Symbolic links in the paths of notes (behaviours 347 and 348).

The checks use both the given path and the link target. A removal does not follow links.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import FileState, LinkedFile, PathRedirected, Put, Remove, digest_of
from lithos.notes.writing.actor_writer import Writer
from lithos.proposals.model import PendingProposals
from lithos.proposals.service import Proposals
from tests.notes.service.test_copy_merging import COPY, merge, vault
from tests.notes.service.test_copy_merging import make as make_copy
from tests.notes.service.test_write_scopes import (
    AGENTS,
    OPERATIONS,
    PERSONS,
    PLACES,
    by_tool,
    code_of,
    limited,
    look,
    make,
)
from tests.servers import Lithos, put_note, refusal, serving, take_up

#: Kinds of access, from the least strict to the strictest. If the two paths differ, the stricter access
#: applies.
ORDER = ("write", "propose", "outside", "protected")
WANTED = {"write": "done", "propose": "proposed", "outside": "forbidden", "protected": "forbidden"}
BOT = AGENTS[0]


def link(lithos: Lithos, path: str, target: str) -> None:
    """Create a symbolic link in the vault, and the folder of its target."""
    made = lithos.knowledge / path
    made.parent.mkdir(parents=True, exist_ok=True)
    (lithos.knowledge / target).parent.mkdir(parents=True, exist_ok=True)
    made.symlink_to(os.path.relpath(lithos.knowledge / target, made.parent))


def link_folder(lithos: Lithos, spelled: str, real: str) -> str:
    """Create a link inside folder `spelled` to a new folder inside `real`, and return its path."""
    path, target = f"{spelled}/to-{real}", f"{real}/linked-from-{spelled}"
    if not (lithos.knowledge / path).is_symlink():
        (lithos.knowledge / target).mkdir(parents=True)
        link(lithos, path, target)
    return path


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_change_through_a_linked_folder_is_checked_on_both_paths(
    tmp_path: Path, operation: str
) -> None:
    """behaviour 347: for every operation, the stricter access of both paths applies."""
    wrong: dict[str, Any] = {}
    async with limited(tmp_path) as lithos:
        proposals = lithos.server.get(PendingProposals)
        for spelled, real in itertools.product(PLACES, PLACES):
            folder = link_folder(lithos, PLACES[spelled], PLACES[real])
            ask = await OPERATIONS[operation][1](lithos, folder)
            before, waiting = look(lithos), len(proposals)
            answer = await ask(BOT)
            found = code_of(answer)
            if (operation, found) == ("quarantine", "done") and answer["status"] == "active":
                found = "proposed"
            told = found, look(lithos) != before, len(proposals) - waiting
            wanted = WANTED[max(spelled, real, key=ORDER.index)]
            if told != (wanted, wanted == "done", int(wanted == "proposed")):
                wrong[f"{spelled} -> {real}"] = (told, answer)
            for each in proposals.all():
                await lithos.server.get(Proposals).withdraw(each.id, each.agent)
    assert wrong == {}


@pytest.mark.parametrize("operation", ["create", "move in", "import"])
async def test_links_to_hidden_or_ignored_folders_allow_no_changes(tmp_path: Path, operation: str) -> None:
    """behaviour 347: not even people may make such changes."""
    async with serving(tmp_path, storage={"ignore": ["templates/**"]}) as lithos:
        for target in (".obsidian/snippets", "templates", "deep/../.obsidian"):
            folder = "open/" + target.replace("/", "-").replace(".", "")
            (lithos.knowledge / target.replace("deep/../", "")).mkdir(parents=True, exist_ok=True)
            (lithos.knowledge / "open").mkdir(exist_ok=True)
            (lithos.knowledge / folder).symlink_to(lithos.knowledge / target.replace("deep/../", ""))
            for caller in (BOT, PERSONS[1]):
                ask = await OPERATIONS[operation][1](lithos, folder)
                before = look(lithos)
                answer = await ask(caller)
                assert look(lithos) == before
                told = str(answer)
                assert "Hidden folders" in told or "is ignored" in told, answer


async def test_linked_note_is_changed_only_if_both_paths_allow_it(tmp_path: Path) -> None:
    """behaviour 347. Regression: a token for one folder edited and deleted notes of another folder."""
    async with limited(tmp_path) as lithos:
        put_note(tmp_path, "shut/b.md", "# B\n\nText.\n")
        link(lithos, "open/lnk.md", "shut/b.md")
        await take_up(lithos, "open/lnk.md")
        text = (lithos.knowledge / "shut/b.md").read_bytes()
        for tool, more in (
            ("lithos_note_edit", {"op": "append", "text": "More."}),
            ("lithos_note_update", {"tags": ["x"]}),
            ("lithos_delete", {}),
        ):
            answer = await by_tool(lithos, tool, path="open/lnk.md", **more)(BOT)
            assert "leads to shut/b.md" in refusal(answer, "forbidden")
        assert (lithos.knowledge / "shut/b.md").read_bytes() == text
        edited = await by_tool(lithos, "lithos_note_edit", path="open/lnk.md", op="append", text="More.")(
            PERSONS[1]
        )
        assert edited["status"] == "updated"
        assert (lithos.knowledge / "open/lnk.md").is_symlink()
        assert b"More." in (lithos.knowledge / "shut/b.md").read_bytes()


@pytest.mark.parametrize("caller", [BOT, PERSONS[1]], ids=["agent", "owner"])
@pytest.mark.parametrize("place", ["open", "ask"])
async def test_removal_and_move_of_a_symlink_are_refused(tmp_path: Path, caller: Any, place: str) -> None:
    """behaviour 348: a link can be neither deleted nor moved, not even by a proposal.

    The link and its target note stay unchanged.
    """
    async with limited(tmp_path) as lithos:
        put_note(tmp_path, f"{place}/b.md", "# B\n\nText.\n")
        link(lithos, f"{place}/lnk.md", f"{place}/b.md")
        await take_up(lithos, f"{place}/lnk.md")
        for tool, more in (("lithos_delete", {}), ("lithos_note_move", {"to": "side/x.md"})):
            answer = await by_tool(lithos, tool, path=f"{place}/lnk.md", **more)(caller)
            assert "symbolic link" in refusal(answer, "invalid_input")
        assert (lithos.knowledge / f"{place}/lnk.md").is_symlink()
        assert (lithos.knowledge / f"{place}/b.md").read_text() == "# B\n\nText.\n"
        assert not (lithos.knowledge / "side").exists()


async def test_link_created_during_a_change_is_checked(tmp_path: Path) -> None:
    """behaviour 347: the check uses the link targets at the time of the write."""
    async with limited(tmp_path) as lithos:
        note_id = await make(lithos, "open/sub")
        path: str = (await lithos.read(note_id))["path"]
        shut = lithos.knowledge / "shut/sub"
        shut.mkdir(parents=True)
        files = lithos.server.get(Writer)._files
        locate, swapped = files._locate_decided, False

        def swap(path: str, decided: str | None) -> str:
            nonlocal swapped
            if not swapped:
                swapped = True
                folder = lithos.knowledge / "open/sub"
                folder.rename(lithos.knowledge / "shut/other")
                (lithos.knowledge / "shut/other" / Path(path).name).rename(shut / Path(path).name)
                folder.symlink_to(shut)
            return locate(path, decided)

        files._locate_decided = swap  # type: ignore[method-assign]
        answer = await by_tool(lithos, "lithos_note_edit", id=note_id, op="append", text="More.")(BOT)
        assert swapped
        assert "leads to shut/sub" in refusal(answer, "forbidden")
        assert "More." not in (shut / Path(path).name).read_text()


async def test_concurrent_edits_of_a_linked_file_are_checked_separately(tmp_path: Path) -> None:
    """behaviour 347"""
    async with limited(tmp_path) as lithos:
        note_id = await make(lithos, link_folder(lithos, "open", "shut"))
        edit_by = {"id": note_id, "op": "append", "text": "More."}
        answers: list[Any] = []

        async def ask(caller: Any) -> None:
            answers.append(code_of(await by_tool(lithos, "lithos_note_edit", **edit_by)(caller)))

        async with trio.open_nursery() as nursery:
            for caller in (PERSONS[1], BOT, PERSONS[1], AGENTS[2]):
                nursery.start_soon(ask, caller)
        assert sorted(answers) == ["done", "done", "forbidden", "forbidden"]


async def test_merge_of_a_symlinked_copy_keeps_the_target_note(tmp_path: Path) -> None:
    """behaviour 348: the whole merge is refused."""
    async with vault(tmp_path) as lithos:
        note_id = await make_copy(lithos, "four", "4 by them")
        copy = lithos.knowledge / COPY
        copy.rename(lithos.knowledge / "other.md")
        copy.symlink_to("other.md")
        texts = {path: (lithos.knowledge / path).read_bytes() for path in ("plan.md", "other.md")}
        answer = await merge(lithos)
        assert "link" in refusal(answer, "invalid_input")
        assert {path: (lithos.knowledge / path).read_bytes() for path in texts} == texts
        assert copy.is_symlink()
        assert (await lithos.read(note_id))["version"] == 1


def test_chained_links_are_resolved_and_loops_are_refused(tmp_path: Path) -> None:
    """behaviour 347: a link that leads out of the folder or to no file is refused."""
    root = tmp_path / "notes"
    (root / "real").mkdir(parents=True)
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("real")
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to(tmp_path)
    files = NoteFiles(root)
    assert files.real_paths(["one/a.md", "real/a.md"]) == {"one/a.md": "real/a.md"}
    for path in ("loop/a.md", "out/a.md"):
        (failure,) = files.apply([Put(path, b"x", None)])
        assert isinstance(failure, Exception)
    (failure,) = files.apply([Put("one/a.md", b"x", None)])
    assert isinstance(failure, PathRedirected)
    (state,) = files.apply([Put("one/a.md", b"x", None, real="real/a.md")])
    assert isinstance(state, FileState)
    (root / "real/l.md").symlink_to("a.md")
    for change in (
        Remove("real/l.md", digest_of(b"x"), real="real/a.md"),
        Remove("one/a.md", digest_of(b"x")),
    ):
        (failure,) = files.apply([change])
        assert isinstance(failure, LinkedFile | PathRedirected)
    assert (root / "real/a.md").read_bytes() == b"x"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["notes"]


async def test_edit_of_a_hard_link_leaves_the_other_name_unchanged(tmp_path: Path) -> None:
    """behaviour 347: a change writes a new file under the name, so no file outside the scope changes."""
    async with limited(tmp_path) as lithos:
        put_note(tmp_path, "shut/b.md", "# B\n\nText.\n")
        (lithos.knowledge / "open").mkdir()
        os.link(lithos.knowledge / "shut/b.md", lithos.knowledge / "open/b.md")
        await take_up(lithos, "open/b.md")
        edited = await by_tool(lithos, "lithos_note_edit", path="open/b.md", op="append", text="More.")(BOT)
        assert edited["status"] == "updated"
        gone = await by_tool(lithos, "lithos_delete", path="open/b.md")(BOT)
        assert gone["success"] is True
        assert (lithos.knowledge / "shut/b.md").read_text() == "# B\n\nText.\n"
