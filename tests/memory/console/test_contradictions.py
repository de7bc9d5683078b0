"""Resolution of a contradiction between two notes in the console (behaviour 402)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.history.recording.backfill import CatchingUp
from tests.server.console.pages import Element, check
from tests.server.console.visiting import Visitor, form_of, visiting

PLACE = "/console/contradictions"


async def contradict(person: Visitor, one: str, other: str, **more: Any) -> str:
    """Record as an agent that note `one` contradicts note `other`. Return the id of the new edge."""
    edge = {"type": "contradicts", "weight": 0.8, "namespace": "default", "provenance_actor": "reviewer"}
    answer = await person.lithos.call("lithos_edge_upsert", from_id=one, to_id=other, **edge | more)
    return str(answer["edge_id"])


async def state_of(person: Visitor, edge: str) -> str | None:
    rows = (await person.lithos.call("lithos_edge_list", type="contradicts"))["edges"]
    return next(str(row["conflict_state"]) for row in rows if row["edge_id"] == edge)


async def warned(person: Visitor, note: str) -> list[str]:
    """Return the kinds of warnings that agents get about a note."""
    return [each["kind"] for each in (await person.lithos.read(note)).get("warnings", ())]


def way_to(page: Element) -> str:
    """Return the address of the only `Settle…` link on the page."""
    (link,) = {each.attributes["href"] for each in page.all("a", "do") if each.text == "Settle…"}
    return link


@pytest.mark.parametrize("ending", ["one", "other", "accepted_dual", "refuted", "merged"])
async def test_each_settlement_is_applied_once_under_the_users_name(tmp_path: Path, ending: str) -> None:
    """behaviour 402: the settlement starts on the note page and uses the same tool as agents."""
    async with visiting(tmp_path) as person:
        await person.submit("/console/identity", agent="Ann Person")
        one = await person.lithos.create("Four seconds", "We wait 4 s.", agent="ben")
        other = await person.lithos.create("Nine seconds", "We wait 9 s.", agent="bob")
        edge = await contradict(person, one, other, evidence={"why": "4 is not <b>9</b>"})
        page = await person.look(f"/console/notes/{other}")
        asked = await person.look(way_to(page))
        for told in ("Four seconds", "We wait 4 s.", "We wait 9 s.", "reviewer", "4 is not <b>9</b>"):
            assert told in asked.told, told
        assert "recorded under the name Ann Person" in asked.told
        # The settlement page was opened from the other note, so it lists that note first.
        action, fields = form_of(await person.page(way_to(page)), PLACE)
        assert (fields["one"], fields["other"]) == (other, one)
        shown = await person.press(action, **(fields | {"ending": ending}))
        assert any("The contradiction was settled: " in each.text for each in shown)
        assert await state_of(person, edge) == {"one": "superseded", "other": "superseded"}.get(
            ending, ending
        )
        assert "contradicted" not in await warned(person, one) + await warned(person, other)
        versions = {
            note: (await person.lithos.call("lithos_history", id=note))["versions"] for note in (one, other)
        }
        winner = {"one": other, "other": one}.get(ending)
        assert {note: len(rows) for note, rows in versions.items()} == {
            note: 1 + (note == winner) for note in versions
        }
        if winner:
            loser = one if winner == other else other
            assert (await person.lithos.read(winner))["metadata"]["supersedes"] == loser
            assert versions[winner][0]["agent"] == "Ann Person"
            assert await warned(person, loser) == ["superseded"]
        feed = await person.look("/console/")
        assert "Ann Person connected Four seconds → Nine seconds contradicts" in feed.told
        assert "No two notes contradict each other." in feed.text


async def test_each_list_of_contradictions_links_to_the_settlement_page(tmp_path: Path) -> None:
    """behaviour 402: the overview, the Care page and both notes link to the settlement page.

    After the settlement, the notes no longer link to it.
    """
    async with visiting(tmp_path) as person:
        await person.lithos.server.get(CatchingUp).done.wait()
        one = await person.lithos.create("One", "It is so.")
        other = await person.lithos.create("Other", "It is not.")
        edges = [await contradict(person, one, other), await contradict(person, other, one)]
        pages = ("/console/", "/console/care?look=1", f"/console/notes/{one}", f"/console/notes/{other}")
        for address in pages:
            links = {each.attributes["href"] for each in (await person.look(address)).all("a", "do")}
            settling = [each for each in links if each.startswith(PLACE)]
            assert settling, address
            assert "Why agents report a contradiction" in (await person.look(settling[0])).told
        await person.submit(f"{PLACE}?one={one}&other={other}", PLACE, ending="refuted")
        assert [await state_of(person, edge) for edge in edges] == ["refuted"] * 2, "either way round"
        assert "no open contradiction" in (await person.look(f"{PLACE}?one={one}&other={other}", 404)).text
        for address in pages[2:]:  # the first two pages may be a few seconds out of date
            assert PLACE not in await person.page(address), address


async def test_contradiction_settled_meanwhile_is_reported_and_not_overwritten(tmp_path: Path) -> None:
    """behaviour 402: the form applies only to the contradiction that it shows."""
    async with visiting(tmp_path) as person:
        one, other = await person.lithos.create("One"), await person.lithos.create("Other")
        edge = await contradict(person, one, other)
        action, fields = form_of(await person.page(f"{PLACE}?one={one}&other={other}"), PLACE)
        await person.lithos.call("lithos_conflict_resolve", edge_id=edge, resolution="merged", resolver="ben")
        page = check((await person.post(action, **(fields | {"ending": "refuted"}))).text)
        assert "Nothing was settled. The contradiction was changed or settled meanwhile." in page.text
        assert await state_of(person, edge) == "merged"
        # A contradiction that was recorded in the meantime is shown before anything is settled.
        again = await contradict(person, other, one)
        late = fields | {"once": "another", "ending": "refuted"}
        page = check((await person.post(action, **late)).text)
        assert "Nothing was settled" in page.text
        assert page.all("input", name="ending"), "the form with what there is now"
        assert await state_of(person, again) == "None"


async def test_settlement_form_without_choice_or_session_changes_nothing(tmp_path: Path) -> None:
    """behaviour 402"""
    async with visiting(tmp_path) as person:
        one, other = await person.lithos.create("One"), await person.lithos.create("Other")
        edge = await contradict(person, one, other)
        action, fields = form_of(await person.page(f"{PLACE}?one={one}&other={other}"), PLACE)
        for wrong, status in (
            ({"ending": ""}, 400),
            ({"ending": "superseded"}, 400),
            ({"ending": "refuted", "csrf": "x"}, 403),
        ):
            answer = await person.post(action, **(fields | {"once": str(wrong)} | wrong))
            assert answer.status_code == status, (wrong, answer.status_code, answer.text)
        assert await state_of(person, edge) == "None"
        assert (await person.get(f"{PLACE}?one={one}&other=none")).status_code == 404
        assert (await person.get(PLACE)).status_code in (400, 404)
