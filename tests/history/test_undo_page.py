"""The undo page of the console: a preview, then one run under the person's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lithos.history import pages_undo as undo_page
from lithos.history.service.undo import UndoRun, plan_undo
from tests.server.console.pages import check
from tests.server.console.visiting import Visitor, form_of, visiting
from tests.servers import MISSING_ID, Clock

SINCE = "2026-03-04T05:06"
LOOK = f"/console/undo?agent=bad&span=custom&since={SINCE}"


def ahead_of(html: str) -> dict[str, list[str]]:
    """Return the note titles by previewed outcome. A star marks ticked notes."""
    found: dict[str, list[str]] = {}
    for name, row in re.findall(r'<li class="choice(?: r-([a-z-]+))?">(.*?)</li>', html, re.S):
        (title,) = re.findall(r"<bdi>([^<]*)</bdi>", row)
        found.setdefault(name, []).append(("*" if " checked>" in row else "") + title)
    return found


def parts_of(html: str) -> dict[str, list[str]]:
    """Return the note titles below each heading of the report."""
    found = {}
    for name, part in re.findall(r'consequences r-([a-z-]+)"(.*?)</section>', html, re.S):
        found[name] = re.findall(r'<a class="note"[^>]*><bdi>([^<]*)</bdi>', part)
    return found


async def agents_of(person: Visitor, note: str) -> list[tuple[str, str]]:
    """Return the (op, agent) pair of each version of a note, newest first."""
    rows = (await person.lithos.call("lithos_history", id=note))["versions"]
    return [(row["op"], row["agent"]) for row in rows]


async def spoil(person: Visitor, clock: Clock) -> dict[str, str]:
    """Create notes of ann.

    The agent bad then changes, deletes and extends these notes, and bob edits two of them.
    """

    async def write(agent: str, title: str, content: str, **more: Any) -> str:
        clock.advance(seconds=1)
        return str((await person.lithos.write(title, content, agent=agent, **more))["id"])

    notes = {
        "Changed": await write("ann", "Changed", "good"),
        "Shared": await write("ann", "Shared", "one\n\ntwo\n\nthree"),
        "Clash": await write("ann", "Clash", "one"),
        "Deleted": await write("ann", "Deleted", "d"),
    }
    await write("bad", "Changed", "bad", id=notes["Changed"])
    await write("bad", "Shared", "BAD\n\ntwo\n\nthree", id=notes["Shared"])
    await write("bob", "Shared", "BAD\n\ntwo\n\nthree and four", id=notes["Shared"])
    await write("bad", "Clash", "BAD", id=notes["Clash"])
    await write("bob", "Clash", "BAD, indeed", id=notes["Clash"])
    notes["Made"] = await write("bad", "Made", "spam")
    clock.advance(seconds=1)
    await person.lithos.call("lithos_delete", id=notes["Deleted"], agent="bad")
    clock.advance(seconds=1)
    return notes


EXPECTED: Mapping[str, list[str]] = {
    "reverted": ["Changed"], "merged": ["Shared"], "deleted": ["Made"], "restored": ["Deleted"],
}  # fmt: skip


async def test_undo_page_shows_preview_and_runs_once_under_persons_name(tmp_path: Path) -> None:
    """behaviour 239: the page shows the consequences first. The undo runs once, under the person's name."""
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        await person.submit("/console/identity", agent="Ann Person")
        notes = await spoil(person, clock)
        before = {name: (person.lithos.knowledge / name).read_bytes() for name in person.lithos.files()}
        html = await person.page(LOOK)
        told = check(html).told
        assert ahead_of(html) == {
            "deleted": ["*Made"], "restored": ["*Deleted"], "not-reverted": ["Clash"], "merged": ["*Shared"],
            "reverted": ["*Changed"],
        }  # fmt: skip
        assert "cannot be undone: others changed the same places: line 1" in told
        assert "The new versions will be recorded under your name, Ann Person" in told
        after = {name: (person.lithos.knowledge / name).read_bytes() for name in person.lithos.files()}
        assert before == after

        action, fields = form_of(html)
        answers = await person.press(action, **fields)
        assert [answer.status_code for answer in answers] == [200] * 3
        assert len({str(answer.url) for answer in answers}) == 1
        done = answers[0].text
        assert parts_of(done) == EXPECTED
        assert "by Ann Person" in check(done).told

        read = person.lithos.read
        assert (await read(notes["Changed"]))["content"] == "good"
        assert (await read(notes["Shared"]))["content"] == "one\n\ntwo\n\nthree and four"
        assert (await read(notes["Clash"]))["content"] == "BAD, indeed"
        assert (await read(notes["Deleted"]))["content"] == "d"
        assert await agents_of(person, notes["Changed"]) == [
            ("restored", "Ann Person"), ("updated", "bad"), ("created", "ann"),
        ]  # fmt: skip
        assert (await agents_of(person, notes["Made"]))[0] == ("deleted", "Ann Person")
        assert (await agents_of(person, notes["Deleted"]))[0] == ("restored", "Ann Person")

        again = await person.page(LOOK)
        assert ahead_of(again) == {
            "nothing-to-do": ["Deleted", "Made", "Shared", "Changed"], "not-reverted": ["Clash"],
        }  # fmt: skip
        refused = await person.submit(LOOK, "/console/undo")
        assert refused.status_code == 400
        assert "No change is selected, so nothing was changed." in refused.text


async def test_longer_undo_recognises_an_earlier_undo_by_a_person(
    tmp_path: Path,
) -> None:
    """A short undo runs before a longer undo that includes its time span.

    A note created in the longer time span is deleted.
    """
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        made = str((await person.lithos.write("Made", "spam", agent="bad"))["id"])
        clock.advance(minutes=90)
        await person.lithos.write("Made", "more spam", id=made, agent="bad")
        clock.advance(seconds=1)
        html = await person.page("/console/undo?agent=bad&span=hour")
        assert ahead_of(html) == {"reverted": ["*Made"]}
        await person.submit("/console/undo?agent=bad&span=hour")
        assert (await person.lithos.read(made))["content"] == "spam"
        clock.advance(seconds=1)
        html = await person.page("/console/undo?agent=bad&span=today")
        assert ahead_of(html) == {"nothing-to-do": ["Made"], "deleted": ["*Made"]}
        await person.submit("/console/undo?agent=bad&span=today")
        assert (await person.lithos.call("lithos_read", id=made))["code"] == "doc_not_found"


async def test_changes_undone_by_command_line_are_not_undone_again(tmp_path: Path) -> None:
    """Edits made with knowledge of an undo stay, no matter which person starts the next undo."""
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        notes = await spoil(person, clock)
        tools, since = person.lithos.server.tools, datetime(2026, 3, 4, tzinfo=UTC)
        run = UndoRun(tools)
        for step in await plan_undo(tools, ["bad"], since, clock()):
            await run.carry_out(step)
        clock.advance(seconds=1)
        # bob makes the same change deliberately
        await person.lithos.write("Changed", "bad", id=notes["Changed"], agent="bob")
        clock.advance(seconds=1)
        html = await person.page(LOOK)
        assert ahead_of(html) == {
            "nothing-to-do": ["Deleted", "Made", "Shared", "Changed"], "not-reverted": ["Clash"],
        }  # fmt: skip


async def test_changes_made_after_the_preview_are_not_undone(tmp_path: Path) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        note = str((await person.lithos.write("Page", "a\n\nb\n\nc", agent="ann"))["id"])
        clock.advance(seconds=1)
        await person.lithos.write("Page", "BAD\n\nb\n\nc", id=note, agent="bad")
        clock.advance(seconds=1)
        action, fields = form_of(await person.page(LOOK), "/console/undo")
        clock.advance(seconds=1)
        await person.lithos.write("Page", "BAD\n\nb\n\nlater", id=note, agent="bad")
        clock.advance(seconds=1)
        done = await person.post(action, **fields)
        assert parts_of(done.text) == {"merged": ["Page"]}
        assert (await person.lithos.read(note))["content"] == "a\n\nb\n\nlater"


async def test_long_undo_is_interrupted_and_continues_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request works for some seconds. The next request continues and repeats no step."""
    clock = Clock()
    monkeypatch.setattr(undo_page, "RUN_SECONDS", -1.0)  # each request runs one step
    async with visiting(tmp_path, clock=clock) as person:
        notes = [str((await person.lithos.write(f"N{n}", "spam", agent="bad"))["id"]) for n in range(3)]
        clock.advance(seconds=1)
        done = await person.submit(LOOK)
        assert parts_of(done.text) == {"deleted": ["N2"]}
        assert "2 notes are not processed yet" in done.text
        assert ahead_of(await person.page(LOOK)) == {"deleted": ["*N1", "*N0"], "nothing-to-do": ["N2"]}
        monkeypatch.setattr(undo_page, "RUN_SECONDS", 20.0)
        done = await person.submit(str(done.url), "/console/undo")
        assert parts_of(done.text) == {"deleted": ["N1", "N0"]}
        for note in notes:
            assert [op for op, _ in await agents_of(person, note)] == ["deleted", "created"]


async def test_long_preview_lists_notes_that_are_not_checked_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(undo_page, "LOOK_SECONDS", -1.0)
    monkeypatch.setattr(undo_page, "MOST_CHANGES", 3)
    async with visiting(tmp_path, clock=clock) as person:
        for n in range(3):
            await person.lithos.write(f"N{n}", "spam", agent="bad")
        clock.advance(seconds=1)
        html = await person.page(LOOK)
        assert ahead_of(html) == {"deleted": ["*N2"], "": ["*N1", "*N0"]}
        assert html.count("will be checked during the undo") == 2
        assert "Older changes are not shown." not in html
        await person.lithos.write("N3", "spam", agent="bad")
        clock.advance(seconds=1)
        html = await person.page(LOOK)
        assert ahead_of(html) == {"deleted": ["*N3"], "": ["*N2", "*N1"]}
        assert "Older changes are not shown." in html


async def test_undo_page_lists_changes_by_session_with_the_newest_ticked(tmp_path: Path) -> None:
    """One change can be undone without later changes. The feed links to a single change."""
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        write = person.lithos.write
        page = str((await write("Page", "a\n\nb\n\nc", agent="ann"))["id"])
        await write("Page", "BAD\n\nb\n\nc", id=page, agent="bad")
        await write("Old", "spam", agent="bad")
        clock.advance(minutes=31)
        await write("Page", "BAD\n\nb\n\nWORSE\n\nd", id=page, agent="bad")
        clock.advance(minutes=30)
        await write("New", "spam", agent="bad")
        clock.advance(seconds=1)
        html = await person.page("/console/undo?agent=bad")
        assert ahead_of(html) == {"deleted": ["*New", "Old"], "reverted": ["*Page", "Page"]}
        told = check(html).told
        assert "Page +3 −1 diff version 3" in told
        assert f"/console/notes/{page}/diff?from=2&amp;to=3" in html
        one = await person.page(f"/console/undo?agent=bad&note={page}&version=2")
        assert ahead_of(one) == {"reverted": ["Page", "*Page"]}
        assert "This page shows only the changes to Page . All changes of the agent" in check(one).told
        done = await person.post(*form_of(one, "/console/undo")[:1], **form_of(one, "/console/undo")[1])
        assert parts_of(done.text) == {"merged": ["Page"]}
        assert (await person.lithos.read(page))["content"] == "a\n\nb\n\nWORSE\n\nd"
        assert (await person.look("/console/undo?agent=bad&note=missing", 409)).text


async def test_undo_page_reports_that_nothing_is_left_to_undo(tmp_path: Path) -> None:
    """behaviour 399: the page has no button if there is nothing to undo."""
    async with visiting(tmp_path) as person:
        note = str((await person.lithos.write("Page", "good", agent="ann"))["id"])
        await person.lithos.write("Page", "bad", id=note, agent="bad")
        address = "/console/undo?agent=bad"
        html = await person.page(address)
        assert [one.text for one in check(html).all("button", "danger")] == ["Undo the ticked changes"]
        assert "are already undone" not in html
        action, fields = form_of(html, "/console/undo")
        await person.post(action, **fields)
        page = await person.look(address)
        assert "All changes shown here are already undone" in page.text
        assert not page.all("main")[0].all("button", "danger")
        assert "Back to the agent" in page.text


async def test_failed_undo_step_shows_a_page_for_repeating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        await person.lithos.write("N0", "spam", agent="bad")
        await person.lithos.write("N1", "spam", agent="bad")
        clock.advance(seconds=1)
        action, fields = form_of(await person.page(LOOK), "/console/undo")
        carry_out, calls = UndoRun.carry_out, list[str]()

        async def fail(run: UndoRun, step: Any) -> Any:
            calls.append(step.last.title)
            if len(calls) == 2:
                raise undo_page.UndoFailed("The history cannot be read.")
            return await carry_out(run, step)

        monkeypatch.setattr(UndoRun, "carry_out", fail)
        refused = await person.post(action, **fields)
        assert refused.status_code == 409
        assert "after 1 note: The history cannot be read." in refused.text
        done = await person.post(action, **fields)
        assert parts_of(done.text) == {"deleted": ["N0"], "nothing-to-do": ["N1"]}


async def test_undo_page_refuses_invalid_addresses_and_forms(tmp_path: Path) -> None:
    """behaviour 235, also for an empty vault."""
    async with visiting(tmp_path) as person:
        await person.look("/console/undo?agent=bad")
        assert "This agent has changed no notes." in (await person.look("/console/undo?agent=bad")).text
        empty = await person.look("/console/undo?agent=bad&span=hour")
        assert "This agent changed no notes in that time." in empty.text
        await person.look("/console/undo", 404)
        await person.look("/console/undo?agent=bad&span=custom&since=then", 400)
        assert "no longer kept" in (await person.look(f"/console/undo/{MISSING_ID}", 404)).text
        _, fields = form_of(await person.page("/console/identity"))
        for wrong in (
            {"agent": "", "since": SINCE, "until": SINCE},
            {"agent": "bad", "since": "x", "until": "y"},
        ):
            answer = await person.post("/console/undo", **(fields | wrong))
            assert answer.status_code == 400
