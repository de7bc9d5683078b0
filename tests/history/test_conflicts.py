"""The command `lithos conflicts`: copies are listed, shown and merged at a terminal (behaviour 285)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.history.commands_merge_driver import conflicts
from lithos.kernel.configuration.catalogue import Config
from lithos.server.command.session import CommandFailed, CommandSession
from tests.notes.service.test_copy_merging import BODY, COPY, OTHER, copies, make, said, vault


async def test_copies_are_listed_shown_and_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """behaviour 285"""
    async with vault(tmp_path) as lithos:

        async def type_in(*words: str, code: int = 0) -> str:
            capsys.readouterr()
            session = CommandSession(parse_arguments(("conflicts", *words)), Config())
            done = await conflicts(session, LocalServer(lithos.server))
            printed = capsys.readouterr()
            assert done == code, printed
            return printed.out + printed.err

        assert await type_in() == "No note has a conflict copy.\n"
        assert await type_in("merge", "--all") == "No note has a conflict copy.\n"
        note_id = await make(lithos, "three", "3 by them")
        await lithos.write("Plan", id=note_id, content=BODY.replace("three", "3 by us"))
        text = (lithos.knowledge / COPY).read_text()
        (lithos.knowledge / OTHER).write_text(text.replace("3 by them", "three").replace("five", "5"))
        assert await copies(lithos, 2) == [COPY, OTHER]
        assert await type_in() == f"{COPY}  of plan.md\n{OTHER}  of plan.md\n"
        assert [each["path"] for each in json.loads(await type_in("--json"))["copies"]] == [COPY, OTHER]
        shown = await type_in("show", COPY)
        assert "both sides changed 1 place; choose a side" in shown
        assert "<<<<<<< plan.md\n3 by us\n=======\n3 by them\n>>>>>>>" in shown
        assert "can be merged automatically" in await type_in("show", OTHER)
        shown = await type_in("show", COPY, "--json")
        assert json.loads(shown)["copies"][0]["copy"]["named_only"] is False
        for words in (("keep",), ("drop",), ("list", COPY), ("show",), ("merge",), ("merge", COPY, "--all")):
            with pytest.raises(CommandFailed):
                await type_in(*words)
        told = await type_in("merge", "--all", code=1)
        assert f"{OTHER}: merged into plan.md, version 5" in told
        assert f"{COPY}: {COPY} and its note both changed 1 place." in told
        assert "merged into plan.md" in await type_in("merge", COPY, "--keep", "both", "--by", "ann")
        assert await said(lithos, note_id) == "one two 3 by us 3 by them four 5"
        assert "Unknown conflict copy" in await type_in("merge", COPY, "--keep", "note", code=1)


async def test_copy_with_human_name_is_merged_or_kept_when_specified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """behaviours 341 and 344"""
    async with vault(tmp_path) as lithos:

        async def type_in(*words: str, code: int = 0) -> str:
            capsys.readouterr()
            session = CommandSession(parse_arguments(("conflicts", *words)), Config())
            done = await conflicts(session, LocalServer(lithos.server))
            printed = capsys.readouterr()
            assert done == code, printed
            return printed.out + printed.err

        await make(lithos, "three", "3 by them", path="plan 2.md")
        text = (lithos.knowledge / "plan.md").read_text()
        (lithos.knowledge / "plan-HOST.md").write_text(text.replace("five", "5 by them"))
        assert await copies(lithos, 2) == ["plan 2.md", "plan-HOST.md"]
        assert "keep PATH" in await type_in()
        told = await type_in("merge", "--all")
        assert "plan 2.md: not merged (copy of plan.md)" in told
        assert "lithos conflicts keep PATH" in told
        assert [each["path"] for each in json.loads(await type_in("merge", "--all", "--json"))["left"]] == [
            "plan 2.md", "plan-HOST.md",
        ]  # fmt: skip
        assert await copies(lithos, 2) == ["plan 2.md", "plan-HOST.md"]
        assert (lithos.knowledge / "plan.md").read_text() == text
        assert "merged into plan.md" in await type_in("merge", "plan 2.md")
        assert "kept as a separate note, with a new id" in await type_in("keep", "plan-HOST.md")
        assert await copies(lithos, 0) == []
        assert (await lithos.call("lithos_list"))["total"] == 2
        assert "Neither a conflict copy nor a note" in await type_in("keep", "plan 2.md", code=1)
