"""The Care page of the console, and note usage on the overview (behaviours 288 and 289)."""

from __future__ import annotations

from pathlib import Path

from lithos.history.recording.backfill import CatchingUp
from tests.server.console.visiting import visiting
from tests.servers import put_note
from tests.upkeep.checks.test_care import write_vault


async def test_care_page_shows_issues_and_opens_tasks(tmp_path: Path) -> None:
    """behaviour 288"""
    async with visiting(tmp_path) as person:
        page = await person.look("/console/care")
        assert "No note needs attention." in page.text
        write_vault(tmp_path)
    async with visiting(tmp_path) as person:
        page = await person.look("/console/care")
        for told in (
            "Stubs",
            "5 words",
            "Links without a target",
            "[[Wind station]] may mean Wind stations wind.md; in Hub",
            "Near duplicates",
        ):
            assert told in page.text, told
        stub = next(
            item for item in (await person.lithos.call("lithos_list"))["items"] if item["path"] == "stub.md"
        )
        assert f"/console/notes/{stub['id']}" in page.links
        done = await person.submit("/console/care", "/console/care")
        assert "tasks were opened" in done.text
        again = await person.submit("/console/care", "/console/care")
        assert "0 tasks were opened" in again.text
        # The page shows the last report until someone requests a new report.
        await person.lithos.write("Stub", id=stub["id"], content="One two three. " * 20)
        assert "5 words" in (await person.look("/console/care")).text
        assert "5 words" not in (await person.look("/console/care?look=1")).text


async def test_long_groups_are_collapsed_and_have_jump_links(tmp_path: Path) -> None:
    """behaviour 400: the first rows of every group are easy to reach, even if other groups are long."""
    for number in range(12):
        put_note(tmp_path, f"stub-{number}.md", f"# Stub {number}\n\nTo be written by {number}.")
    async with visiting(tmp_path) as person:
        await person.lithos.server.get(CatchingUp).done.wait()
        page = await person.look("/console/care?look=1")
        (stubs,) = page.all("section", id="stubs")
        (folded,) = stubs.all("details")
        assert folded.all("summary")[0].text == "Show 7 more"
        assert (len(stubs.all("li")), len(folded.all("li"))) == (12, 7)
        jumps = page.all("nav", "jumps")[0].links
        assert jumps == [f"#{each.attributes['id']}" for each in page.all("section", "card")]


async def test_overview_shows_note_usage(tmp_path: Path) -> None:
    """behaviour 289"""
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Backup", "The database is backed up every night.")
        await person.lithos.read(note_id, agent_id="ben<i>")
        page = await person.look("/console/")
        assert "Use of the notes" in page.text
        assert "ben<i>" in page.text, "as text"
