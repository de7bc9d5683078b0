"""`lithos conflicts`: copies are listed, shown, and merged at a terminal (behaviour 285)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithos.cli.commands.asking import Here
from lithos.cli.commands.merging import conflicts
from lithos.cli.options import parse_arguments
from lithos.cli.session import CommandFailed, Session
from lithos.config.catalogue import Config
from tests.services.notes.test_copy_merging import BODY, COPY, OTHER, copies, make, said, vault


async def test_copies_are_listed_shown_and_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """behaviour 285"""
    async with vault(tmp_path) as lithos:

        async def type_in(*words: str, code: int = 0) -> str:
            capsys.readouterr()
            session = Session(parse_arguments(("conflicts", *words)), Config())
            done = await conflicts(session, Here(lithos.server))
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
        assert "both changed 1 place, which you have to decide" in shown
        assert "<<<<<<< plan.md\n3 by us\n=======\n3 by them\n>>>>>>>" in shown
        assert "merges by itself" in await type_in("show", OTHER)
        for words in (("drop",), ("list", COPY), ("show",), ("merge",), ("merge", COPY, "--all")):
            with pytest.raises(CommandFailed):
                await type_in(*words)
        told = await type_in("merge", "--all", code=1)
        assert f"{OTHER}: merged into plan.md, version 5" in told
        assert f"{COPY}: {COPY} and its note both changed 1 place." in told
        assert "merged into plan.md" in await type_in("merge", COPY, "--keep", "both", "--by", "ann")
        assert await said(lithos, note_id) == "one two 3 by us 3 by them four 5"
        assert "no conflict copy" in await type_in("merge", COPY, "--keep", "note", code=1)
