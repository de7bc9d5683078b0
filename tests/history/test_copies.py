"""The page Copies: a person chooses a side for each difference and merges conflict copies (behaviour 285)."""

from __future__ import annotations

from pathlib import Path

from lithos.history.recording.backfill import CatchingUp
from tests.notes.service.test_copy_merging import BODY, COPY, copies, make, said
from tests.server.console.visiting import visiting


async def test_user_resolves_each_difference_on_the_copies_page(tmp_path: Path) -> None:
    """behaviour 285"""
    async with visiting(tmp_path, server={"watch_files": True}) as person:
        lithos = person.lithos
        await lithos.server.get(CatchingUp).done.wait()
        assert "No note has a conflict copy." in (await person.look("/console/copies")).text
        note_id = await make(lithos, "three", "3 <b>by them</b>")
        await lithos.write("Plan", id=note_id, content=BODY.replace("three", "3 by us"))
        page = await person.look("/console/copies")
        (link,) = [each for each in page.links if each.startswith("/console/copies/one")]
        alone = await person.look(link)
        assert "3 <b>by them</b>" in alone.text, "as text"
        assert "both versions changed it" in alone.text
        refused = await person.submit(link, "/console/copies/one", **{"keep-0": ""})
        assert (refused.status_code, "choose a version for every conflict" in refused.text) == (400, True)
        assert await copies(lithos) == [COPY]
        done = await person.submit(link, "/console/copies/one", **{"keep-0": "copy"})
        assert "was merged, as version 5" in done.text
        assert await said(lithos, note_id) == "one two 3 <b>by them</b> four five"
        assert await copies(lithos, 0) == []
        await person.look(link, 404)


async def test_user_keeps_a_file_as_a_note(tmp_path: Path) -> None:
    """behaviour 341"""
    async with visiting(tmp_path, server={"watch_files": True}) as person:
        lithos = person.lithos
        await lithos.server.get(CatchingUp).done.wait()
        await make(lithos, "three", "3 by them", path="plan 2.md")
        page = await person.look("/console/copies")
        assert "a person may have chosen this name" in page.text
        (link,) = [each for each in page.links if each.startswith("/console/copies/one")]
        assert 'name="act" value="keep"' in await person.page(link)
        done = await person.submit(link, "/console/copies/one", act="keep")
        assert "plan 2.md is now a separate note." in done.text
        assert await copies(lithos, 0) == []
        assert (await lithos.call("lithos_list"))["total"] == 2
        assert "3 by them" in (lithos.knowledge / "plan 2.md").read_text()
