"""Review page, on which people view, approve, change and reject agent proposals (behaviours 281 to 283)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lithos.proposals import pages as review_page
from lithos.proposals.pages import MOST_DRAFTS, MOST_PICKED, MOST_REPORTS, SHOWN, ReviewPages
from lithos.proposals.pages_proposal import LARGEST_EDITED, read_signs, write_signs
from tests.server.console.injections import HOSTILE, LONG_LINE
from tests.server.console.pages import Element, check
from tests.server.console.proposing import bind, decide, propose, propose_note, propose_text, row_of
from tests.server.console.visiting import Visitor, browser, form_of, make_token, visiting
from tests.servers import MISSING_ID, Clock

FORM = re.compile(r"<form\b[^>]*>.*?</form>", re.S)


def rows_of(page: Element) -> list[Element]:
    return page.all("li", "proposal")


def names_of(page: Element) -> list[str]:
    """Return the titles in the queue. A star precedes each proposal that can be ticked."""
    return [
        f"{'*' if one.all('input', type='checkbox') else ''}{one.all('h3')[0].text}" for one in rows_of(page)
    ]


def outcomes_of(page: Element) -> list[str]:
    (told,) = page.all("section", "decided")
    return [one.told.removesuffix(" Undo") for one in told.all("li")]


def form_for(html: str, proposal_id: str, act: str) -> dict[str, str]:
    """Return the hidden fields and the button of the queue form that decides one proposal."""
    for form in FORM.findall(html):
        if f'value="{proposal_id} ' in form and f'value="{act}"' in form:
            _, fields = form_of(form)
            return {**fields, "act": act}
    raise AssertionError(f"no form to {act} {proposal_id}")


async def press(person: Visitor, proposal_id: str, act: str, **fields: str) -> Element:
    """Press a button of one proposal in the queue. Return the next page."""
    fields = form_for(await person.page("/console/review"), proposal_id, act) | fields
    answer = await person.post("/console/review", **fields)
    assert answer.status_code == 200, answer.text
    return check(answer.text)


async def many(person: Visitor, act: str, picks: list[str], reason: str = "") -> Element:
    """Tick several proposals in the queue, and decide them all at once."""
    html = await person.page("/console/review")
    _, fields = form_of(html[html.index('id="many"') - 60 :])
    boxes = dict(re.findall(r'type="checkbox" name="pick" value="(\S+) (\w+)"', html))
    data = {**fields, "act": act, "reason": reason, "pick": [f"{one} {boxes[one]}" for one in picks]}
    answer = await person.client.post("/console/review", data=data, follow_redirects=True)
    assert answer.status_code == 200, answer.text
    return check(answer.text)


async def change(person: Visitor, proposal_id: str, act: str, text: str, **more: str) -> Element:
    """Submit a text on the page of a proposal. Return the next page."""
    address = f"/console/review/{proposal_id}"
    action, fields = form_of(await person.page(address), address)
    answer = await person.post(action, **(fields | {"act": act, "text": text} | more))
    assert answer.status_code == 200, answer.text
    return check(answer.text)


def typed_in(page: Element) -> str:
    """Return the text in the field, as a browser submits it."""
    (area,) = page.all("textarea")
    text = "".join(text for text, _ in area.texts())
    assert text.startswith("\n")
    return text[1:]


async def text_of(person: Visitor, note: str) -> str:
    return str((await person.lithos.read(note))["content"])


async def test_review_queue_shows_change_author_and_expiry(tmp_path: Path) -> None:
    """behaviour 280: the note itself does not change."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        empty = await person.look("/console/review")
        assert "No proposals are waiting." in empty.text
        assert "Review" in [one.text for one in empty.all("nav")[0].all("a")]
        note = await lithos.create("Plan", "one\n\nWe wait 4 s.\n\nend", agent="ann", path="plan.md")
        gone = await lithos.create("Old", "stale", agent="ann")
        bind(lithos)
        first = await propose_text(lithos, note, "one\n\nWe wait 5 s.\n\nend\n\nmore")
        await propose_note(lithos, "Fresh", "Its text.", "bee", tags=["a"])
        await propose(lithos, "lithos_delete", "bee", id=gone)
        await propose(lithos, "lithos_note_move", "bee", id=gone, path="attic/old.md")
        page = await person.look("/console/review")
        assert names_of(page) == ["*Plan", "*Fresh", "*Old", "*Old"]
        assert [one.all("h2")[0].told for one in page.all("section", "proposals")] == [
            "bot 1 proposal Tick all", "bee 3 proposals Tick all",
        ]  # fmt: skip
        plan, fresh, old, moved = rows_of(page)
        assert "change +3 −1 lines plan.md proposed just now expires in 29 d" in plan.told
        changes = plan.all("div", "diff")[0]
        assert [(one.tag, one.text) for one in changes.walk() if one.tag in ("ins", "del", "strong")] == [
            ("del", "We wait 4 s."), ("strong", "4"), ("ins", "We wait 5 s."), ("strong", "5"),
            ("ins", ""), ("ins", "more"),
        ]  # fmt: skip
        assert [one.text for one in fresh.all("div", "diff")[0].all("ins")] == [
            "---", "title: Fresh", "author: bee", "tags:", "- a", "---", "", "# Fresh", "", "Its text.",
        ]  # fmt: skip
        assert [one.text for one in old.all("del")[1:]] == ["# Old", "", "stale"]
        assert "from old.md to attic/old.md" in moved.told
        assert "Review 4 waiting" in page.all("nav")[0].told
        by_note = await person.look("/console/review?by=note")
        assert [one.all("h2")[0].told for one in by_note.all("section", "proposals")] == [
            "Plan 1 proposal Tick all", "Fresh 1 proposal Tick all", "Old 2 proposals Tick all",
        ]  # fmt: skip
        assert "by bee" in rows_of(by_note)[1].told
        assert await text_of(person, note) == "one\n\nWe wait 4 s.\n\nend"
        alone = await person.look(f"/console/review/{first}")
        assert "change by bot +3 −1 lines" in alone.told
        assert [one.text for one in alone.all("a", "button")] == ["Next", "The note"]
        overview = await person.look("/console/")
        (way,) = overview.all("p", "knowledge")[0].all("a")
        assert (way.text, way.attributes["href"]) == ("4 proposals to review", "/console/review")


async def test_approval_writes_the_shown_text_and_names_both_authors(tmp_path: Path) -> None:
    """behaviour 281: the agent is the author, and the person is the approver.

    Changes elsewhere in the note survive.
    """
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one\n\ntwo\n\nthree", agent="ann")
        bind(lithos)
        proposal = await propose_text(lithos, note, "one\n\ntwo\n\nthree!")
        other = await propose_note(lithos, "Fresh")
        await lithos.write("Plan", "one!\n\ntwo\n\nthree", id=note, agent="ann")
        shown = rows_of(await person.look("/console/review"))[0]
        assert [one.text for one in shown.all("ins")] == ["+1", "three!"]
        page = await press(person, proposal, "approve")
        assert outcomes_of(page) == ["plan.md is approved: version 3"]
        assert names_of(page) == ["*Fresh"]
        assert await text_of(person, note) == "one!\n\ntwo\n\nthree!"
        newest = (await lithos.call("lithos_history", id=note))["versions"][0]
        assert (newest["agent"], newest["approved_by"]) == ("bot", "person")
        assert (await row_of(lithos, other))["status"] == "pending"
        assert "Review 1 waiting" in page.all("nav")[0].told


async def test_several_proposals_are_approved_together_and_conflicts_stay_pending(tmp_path: Path) -> None:
    """behaviour 281: the page shows the result for each proposal."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        notes = [await lithos.create(f"N{number}", "one\n\ntwo") for number in range(4)]
        bind(lithos)
        ids = [await propose_text(lithos, note, "one\n\ntwo, says bot") for note in notes]
        html = await person.page("/console/review")
        await lithos.write("N1", "one\n\ntwo, says tester", id=notes[1])
        boxes = dict(re.findall(r'type="checkbox" name="pick" value="(\S+) (\w+)"', html))
        assert list(boxes) == ids
        _, fields = form_of(html[html.index('id="many"') - 60 :])
        picks = [f"{one} {boxes[one]}" for one in ids[:3]]
        data = {**fields, "act": "approve", "pick": picks}
        page = check((await person.client.post("/console/review", data=data, follow_redirects=True)).text)
        assert outcomes_of(page) == [
            "n0.md is approved: version 2",
            "n1.md has changed since you opened the page. Check it again",
            "n2.md is approved: version 2",
        ]
        assert "Decided 2 of 3" in page.told
        assert names_of(page) == ["N1", "*N3"]
        conflicting = rows_of(page)[0]
        assert "This proposal cannot be approved in its current form, because others have" in conflicting.told
        assert "Line 3 was two is now two, says tester proposed two, says bot" in conflicting.told
        assert not conflicting.all("button", data_do="approve")
        # The client sends an approval, although the page has no button for it.
        seal = (await lithos.call("lithos_proposals", id=ids[1]))["seal"]
        answer = await person.post(
            "/console/review", **{**fields, "once": "x", "act": "approve", "pick": f"{ids[1]} {seal}"}
        )
        (told,) = outcomes_of(check(answer.text))
        assert told == "n1.md conflicts with changes by others (line 3); it stays pending"
        assert (await row_of(lithos, ids[1]))["status"] == "pending"
        assert await text_of(person, notes[1]) == "one\n\ntwo, says tester"


async def test_approval_covers_only_the_shown_text(tmp_path: Path) -> None:
    """A change of the note or the proposal between view and click is reported. Nothing is approved."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one\n\ntwo\n\nthree")
        bind(lithos)
        proposal = await propose_text(lithos, note, "one\n\ntwo\n\nthree!")
        for act in ("approve", "reject"):
            fields = form_for(await person.page("/console/review"), proposal, act)
            await propose_text(lithos, note, f"one\n\ntwo\n\nthree! {act}")
            page = check((await person.post("/console/review", **(fields | {"reason": "no"}))).text)
            assert outcomes_of(page) == ["plan.md has changed since you opened the page. Check it again"]
            assert names_of(page) == ["*Plan"]
        assert (await row_of(lithos, proposal))["status"] == "pending"
        assert await text_of(person, note) == "one\n\ntwo\n\nthree"
        fields = form_for(await person.page("/console/review"), proposal, "approve")
        pages = await person.press("/console/review", **fields)
        assert [outcomes_of(check(one.text)) for one in pages] == [["plan.md is approved: version 2"]] * 3
        assert (await lithos.call("lithos_history", id=note))["total"] == 2


async def test_rejection_needs_a_reason_that_is_suggested_again_later(tmp_path: Path) -> None:
    """behaviour 282"""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        notes = [await lithos.create(f"N{number}", "one") for number in range(5)]
        bind(lithos)
        ids = [await propose_text(lithos, note, "two") for note in notes]
        fields = form_for(await person.page("/console/review"), ids[0], "reject")
        for reason, told in (
            ("", "a rejection needs a reason"),
            ("x" * 501, "501 characters, and at most 500"),
        ):
            answer = await person.post("/console/review", **(fields | {"reason": reason}))
            assert answer.status_code == 400
            assert told in check(answer.text).told
        page = await press(person, ids[0], "reject", reason="Say where it is <from>.")
        assert outcomes_of(page) == ["n0.md is rejected; the agent gets the reason"]
        assert [one.attributes["value"] for one in page.all("datalist")[0].all("option")] == [
            "Say where it is <from>."
        ]
        row = await row_of(lithos, ids[0])
        assert (row["status"], row["reason"], row["decided_by"]) == (
            "rejected",
            "Say where it is <from>.",
            "person",
        )
        # On the page of another proposal, one click inserts the same reason.
        alone = await person.page(f"/console/review/{ids[1]}")
        again = [form for form in FORM.findall(alone) if 'name="again"' in form]
        _, fields = form_of(again[0])
        assert fields["again"] == "Say where it is <from>."
        page = check((await person.post("/console/review", **fields)).text)
        assert (await row_of(lithos, ids[1]))["reason"] == "Say where it is <from>."
        page = await many(person, "reject", ids[2:4], "Too long.")
        assert outcomes_of(page) == [
            f"n{number}.md is rejected; the agent gets the reason" for number in (2, 3)
        ]
        assert names_of(page) == ["*N4"]
        assert [await text_of(person, note) for note in notes] == ["one"] * 5
        events = [payload for kind, payload in lithos.events() if kind == "proposal.rejected"]
        assert [(one["agent"], one["by"], one["reason"]) for one in events[-2:]] == [
            ("bot", "person", "Too long.")
        ] * 2


async def test_person_edits_a_proposed_text_and_approves_the_result(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one\n\ntwo", agent="ann")
        bind(lithos)
        proposal = await propose_text(lithos, note, "one\n\ntwo and three")
        text = typed_in(await person.look(f"/console/review/{proposal}"))
        assert text.endswith("\n# Plan\n\none\n\ntwo and three\n")
        mine = text.replace("two and three", "two & <3>").replace("\n", "\r\n")  # browsers send CRLF
        shown = await change(person, proposal, "look", mine)
        assert "Below is the change that your text would make." in shown.told
        assert [one.text for one in shown.all("div", "diff")[0].all("ins")] == ["two & <3>"]
        assert typed_in(shown) == text.replace("two and three", "two & <3>")
        assert await text_of(person, note) == "one\n\ntwo"
        page = await change(person, proposal, "approve", mine)
        assert outcomes_of(page) == ["plan.md is approved: version 2"]
        assert await text_of(person, note) == "one\n\ntwo & <3>"
        assert b"\r" not in (lithos.knowledge / "plan.md").read_bytes()
        newest = (await lithos.call("lithos_history", id=note))["versions"][0]
        assert (newest["agent"], newest["approved_by"]) == ("bot", "person")


async def test_edited_text_that_cannot_be_written_is_not_lost(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one\n\ntwo", agent="ann")
        bind(lithos)
        proposal = await propose_text(lithos, note, "one\n\ntwo and three")
        address = f"/console/review/{proposal}"
        action, fields = form_of(await person.page(address), address)
        text = typed_in(await person.look(address)).replace("two and three", "my own words")
        await lithos.write("Plan", "one\n\ntwo, says ann", id=note, agent="ann")
        page = check((await person.post(action, **(fields | {"act": "approve", "text": text}))).text)
        assert "Nothing was written: it has changed since you opened the page. Check it again" in page.told
        assert "my own words" in typed_in(page)
        assert "This is the agent's own text" in page.told
        # Once the page shows the current note, the person can approve the proposal despite the conflict.
        _, fields = form_of(await person.page(address), address)
        page = check((await person.post(action, **(fields | {"act": "approve", "text": text}))).text)
        assert outcomes_of(page) == ["plan.md is approved: version 3"]
        assert await text_of(person, note) == "one\n\nmy own words"
        # The proposal is already decided, so the page shows the edited text for copying.
        page = check(
            (await person.post(action, **(fields | {"once": "new", "act": "approve", "text": text}))).text
        )
        assert "This proposal is approved, by person, so it cannot be changed any more." in page.told
        assert "my own words" in page.all("pre")[0].text
        broken = await propose_text(lithos, note, "one more")
        page = await change(person, broken, "approve", "---\nid: [\n---\n\nx")
        assert "Nothing was written: it stays pending" in page.told
        assert (await row_of(lithos, broken))["status"] == "pending"


async def test_invisible_characters_are_named_on_every_approval_page(tmp_path: Path) -> None:
    """behaviour 283: the queue, proposal pages, titles, paths and the edit field name such characters."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "pay ann\n\nend", agent="ann")
        bind(lithos)
        proposal = await propose_text(lithos, note, "pay \u202eann\n\np\u0430ypal\u200b\n\nend 👨\u200d👩")
        for address in ("/console/review", f"/console/review/{proposal}"):
            page = await person.look(address)
            told = page.told
            assert told.count("U+202E RIGHT-TO-LEFT OVERRIDE") == 2, address
            assert told.count("U+200B ZERO WIDTH SPACE") == 2
            assert told.count("U+0430 CYRILLIC SMALL LETTER A in a Latin word") == 2
            assert "Also present, and common in many texts: U+200D ZERO WIDTH JOINER." in told
        text = typed_in(page)
        assert "pay ⟦U+202E⟧ann\n\np\u0430ypal⟦U+200B⟧\n" in text
        changed = text.replace("⟦U+202E⟧", "").replace("end", "the \u2066end")
        page = await change(person, proposal, "approve", changed)
        assert "Nothing was decided: your text has invisible or look-alike characters" in page.told
        assert "the ⟦U+2066⟧end" in typed_in(page)
        page = await change(person, proposal, "approve", typed_in(page))
        assert "Nothing was decided: your text has invisible or look-alike characters" in page.told
        assert (await row_of(lithos, proposal))["status"] == "pending"
        page = await change(person, proposal, "approve", typed_in(page), seen=proposal)
        assert outcomes_of(page) == ["plan.md is approved: version 2"]
        assert await text_of(person, note) == "pay ann\n\np\u0430ypal\u200b\n\nthe \u2066end 👨\u200d👩"


async def test_approval_with_a_warning_needs_a_confirmation(tmp_path: Path) -> None:
    """behaviour 397: hidden characters in a text, a path or a ticked proposal cannot be approved unseen."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        notes = [await lithos.create(title, "one\n\ntwo") for title in ("Plain", "Hidden", "Moved")]
        bind(lithos)
        plain = await propose_text(lithos, notes[0], "one\n\ntwo!")
        hidden = await propose_text(lithos, notes[1], "one\n\nt\u200bwo!")
        moved = await propose(lithos, "lithos_note_move", id=notes[2], path="p\u0430y.md")
        queue = await person.look("/console/review")
        boxes = [one.attributes["value"] for one in queue.all("input", name="seen")]
        assert boxes == [hidden, moved], "a box for each with a warning"
        for address in (f"/console/review/{hidden}", f"/console/review/{moved}"):
            assert (await person.look(address)).all("input", name="seen"), address
        assert not (await person.look(f"/console/review/{plain}")).all("input", name="seen")
        for proposal in (hidden, moved):
            (told,) = outcomes_of(await press(person, proposal, "approve"))
            assert "was not approved: it adds invisible or look-alike characters" in told
            (told,) = outcomes_of(await press(person, proposal, "approve", seen=plain))
            assert "was not approved" in told, "another one was seen"
        told = outcomes_of(await many(person, "approve", [plain, hidden]))
        assert told[0] == "plain.md is approved: version 2"
        assert "was not approved: it adds invisible" in told[1]
        assert await text_of(person, notes[1]) == "one\n\ntwo"
        assert outcomes_of(await press(person, hidden, "approve", seen=hidden)) == [
            "hidden.md is approved: version 2"
        ]
        (told,) = outcomes_of(await press(person, moved, "approve", seen=moved))
        assert "is approved" in told
        assert await text_of(person, notes[1]) == "one\n\nt\u200bwo!"


async def test_approval_of_each_kind_links_to_its_undo(tmp_path: Path) -> None:
    """behaviour 398: covers a change, a new note, a move and a deletion."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        changed, moved, gone = [await lithos.create(title, "one", agent="ann") for title in "CMD"]
        bind(lithos)
        ids = {
            "change": await propose_text(lithos, changed, "two"),
            "new": await propose_note(lithos, "Fresh"),
            "move": await propose(lithos, "lithos_note_move", id=moved, path="attic/m.md"),
            "deletion": await propose(lithos, "lithos_delete", id=gone),
        }
        before = {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()}
        rejected = await propose_note(lithos, "Bad")
        page = await press(person, rejected, "reject", reason="no")
        assert not page.all("section", "decided")[0].all("a", "do"), "a rejection has nothing to take back"
        for kind, proposal in ids.items():
            page = await press(person, proposal, "approve")
            (link,) = page.all("section", "decided")[0].all("a", "do")
            assert link.text == "Undo"
            html = await person.page(link.attributes["href"])
            action, fields = form_of(html, "/console/undo")
            assert isinstance(fields.get("change"), str), (kind, link, check(html).all("main")[0].told)
            done = check((await person.post(action, **fields)).text)
            assert "Changes of bot were undone" in done.text, kind
            assert "Could not be undone" not in done.text, (kind, done.text)
        after = {path: (lithos.knowledge / path).read_bytes() for path in lithos.files()}
        assert after.keys() == before.keys()
        assert await text_of(person, changed) == "one"
        assert await text_of(person, gone) == "one"


@pytest.mark.parametrize(
    "text", ["", "plain", "a\u200b\u200bb\u202e", "\x07\x1b\u00ad", "👨\u200d👩 no\u00a0break"]
)
def test_escaped_special_characters_are_read_back_unchanged(text: str) -> None:
    written = write_signs(text)
    assert not set(written) & set("\u200b\u202e\x07\x1b\u00ad")
    assert read_signs(written) == text
    assert read_signs("⟦U+110000⟧ ⟦U+D800⟧ ⟦u+200b⟧") == "⟦U+110000⟧ ⟦U+D800⟧ ⟦u+200b⟧"


async def test_page_names_the_person_who_already_decided_a_proposal(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        notes = [await lithos.create(f"N{number}", "one") for number in range(3)]
        bind(lithos)
        ids = [await propose_text(lithos, note, "two") for note in notes]
        html = await person.page("/console/review")
        forms = [form_for(html, one, "approve") for one in ids]
        await decide(lithos, ids[0], "reject", reason="Not now.")
        await decide(lithos, ids[1], "approve")
        await lithos.call("lithos_proposal_withdraw", id=ids[2], agent="bot")
        told = [outcomes_of(check((await person.post("/console/review", **one)).text)) for one in forms]
        assert told == [
            ["n0.md is rejected already, by Ann"],
            ["n1.md is approved already, by Ann"],
            ["n2.md is withdrawn already"],
        ]
        for one, said in zip(
            ids,
            ("rejected, by Ann, so", "approved, by Ann, so", "withdrawn, so"),
            strict=True,
        ):
            alone = await person.look(f"/console/review/{one}")
            assert f"This proposal is {said}" in alone.told
            assert not alone.all("textarea")
            assert not alone.all("button", data_do="approve")
        assert "Reason: Not now." in (await person.look(f"/console/review/{ids[0]}")).told
        assert [await text_of(person, note) for note in notes] == ["one", "two", "one"]


async def test_invalid_forms_and_addresses_are_reported_and_change_nothing(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one")
        bind(lithos)
        proposal = await propose_text(lithos, note, "two")
        good = form_for(await person.page("/console/review"), proposal, "approve")
        seal = good["pick"].partition(" ")[2]
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"act": ""}, "neither approve nor reject"),
            ({"act": "delete"}, "neither approve nor reject"),
            ({"pick": ""}, "no proposal is chosen"),
            ({"pick": []}, "no proposal is chosen"),
            ({"pick": [f"{number} x" for number in range(MOST_PICKED + 1)]}, f"at most {MOST_PICKED}"),
        ]
        for fields, told in wrong:
            answer = await person.client.post("/console/review", data=good | fields)
            assert answer.status_code == 400, fields
            assert told in check(answer.text).told, fields
        for fields, outcome in (
            ({"pick": f"{MISSING_ID} {seal}"}, f"{MISSING_ID} no longer exists"),
            ({"pick": f"{'x' * 5_000} {seal}"}, None),
            ({"pick": f"<b>\u202e {seal}"}, "<b> U+202E RIGHT-TO-LEFT OVERRIDE no longer exists"),
            ({"pick": proposal}, "plan.md was not approved: you have not seen it yet"),
            ({"pick": f"{proposal} wrong"}, "plan.md has changed since you opened the page. Check it again"),
            (
                {"pick": f"{proposal} wrong", "by": "x", "offset": "y", "next": '"><b>'},
                "plan.md has changed since you opened the page. Check it again",
            ),
        ):
            answer = await person.post(
                "/console/review", **(good | {"once": str(outcome) + str(fields)[:300]} | fields)
            )
            assert answer.status_code in (200, 400), fields
            if outcome is not None:
                assert outcomes_of(check(answer.text)) == [outcome], fields
        address = f"/console/review/{proposal}"
        _, fields = form_of(await person.page(address), address)
        for missing in (
            {"act": "x", "text": "a"},
            {"act": "approve"},
            {"act": "approve", "text": "a", "seal": ""},
        ):
            answer = await person.post(address, **(fields | missing))
            assert answer.status_code == 400, missing
            assert "Nothing was decided: this form has no text." in check(answer.text).told
        for csrf in ("", "x"):
            answer = await person.post("/console/review", **(good | {"csrf": csrf}))
            assert answer.status_code == 403
        assert "Unknown proposal" in (await person.look(f"/console/review/{MISSING_ID}", 404)).told
        for query in ("by=nothing", "offset=9999", "offset=x", "done=nothing", "draft=nothing"):
            await person.look(f"/console/review?{query}")
            await person.look(f"{address}?{query}")
        assert (await row_of(lithos, proposal))["status"] == "pending"
        assert await text_of(person, note) == "one"


@pytest.mark.needs("access")
@pytest.mark.parametrize("rights", ["read", "write"])
async def test_person_without_admin_right_sees_the_queue_and_an_explanation(
    tmp_path: Path, rights: Any
) -> None:
    """behaviour 246"""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one")
        bind(lithos)
        proposal = await propose_text(lithos, note, "two")
        secret = await make_token(person, "guest", rights)
        chief = await make_token(person, "chief", "admin")
        async with browser(person.url) as client:
            await client.post("/console/login", data={"token": secret, "agent": "Eve"})
            for address in ("/console/review", f"/console/review/{proposal}"):
                page = check((await client.get(address)).text)
                assert f"This needs the right admin; you have {rights} (token guest)." in page.told
                buttons = [one.text for one in page.all("button") if one.text not in ("Keys ?", "Close")]
                assert buttons in ([], ["Log out"], ["Log out", "Tick all"])
                assert not page.all("input", type="checkbox")
                assert "two" in [one.text for one in page.all("ins")]
            _, own = form_of((await client.get("/console/")).text, "/console/logout", all_forms=True)
            async with browser(person.url) as boss:
                await boss.post("/console/login", data={"token": chief, "agent": "Ann"})
                html = (await boss.get("/console/review")).text
            fields = form_for(html, proposal, "approve") | {"csrf": own["csrf"]}
            answer = await client.post("/console/review", data=fields)
            assert answer.status_code == 403
            assert "needs the right admin" in answer.text
        assert (await row_of(lithos, proposal))["status"] == "pending"


async def test_hostile_texts_are_plain_text_in_queue_and_proposal_page(tmp_path: Path) -> None:
    """behaviour 236"""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one", agent="ann")
        bind(lithos, "bot", *HOSTILE)
        for payload in HOSTILE:
            await propose_note(lithos, payload, payload, agent=payload)
        last = await propose_text(lithos, note, "\n\n".join([*HOSTILE, LONG_LINE]))
        await decide(lithos, last, "reject", reason=HOSTILE[1])
        last = await propose_text(lithos, note, "\n\n".join([*HOSTILE, LONG_LINE]))
        for by in ("agent", "note"):
            page = await person.look(f"/console/review?by={by}")
            assert len(rows_of(page)) == len(HOSTILE) + 1
        ids = [one.attributes["data-proposal"] for one in rows_of(page)]
        for one in ids[:4]:
            await person.look(f"/console/review/{one}")
        await person.look(f"/console/review/{last}")
        await many(person, "reject", ids[:3], HOSTILE[0])
        await many(person, "approve", ids[3:6])
        await person.look("/console/")


async def test_long_queues_and_texts_fit_the_page_size_limit(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        bind(lithos)
        big = "\n".join(f"line {number} {'w' * 70}" for number in range(3_000))
        for number in range(SHOWN + 5):
            await propose_note(lithos, f"Note {number}", big, agent="bee" if number % 2 else "bot")
        page = await person.look("/console/review")
        assert len(rows_of(page)) == SHOWN
        assert "13 proposals" in page.told
        assert f"1–{SHOWN} of {SHOWN + 5}" in page.told
        assert "more lines, which you approve as well: see all" in page.told
        rest = await person.look(f"/console/review?by=agent&offset={SHOWN}")
        assert len(rows_of(rest)) == 5
        alone = await person.look(rows_of(page)[0].all("p", "more")[0].links[0])
        assert "more lines, which you approve as well" in alone.told
        assert len(alone.all("ins")) > 100
        assert "The text is too long to be changed on this page" in alone.told
        assert len(big.encode()) > LARGEST_EDITED


async def test_unseen_proposals_cannot_be_approved_at_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        bind(lithos)
        ids = [await propose_note(lithos, f"N{number}") for number in range(3)]
        html = await person.page("/console/review")
        monkeypatch.setattr(review_page, "LOOK_SECONDS", -1.0)
        monkeypatch.setattr(review_page, "DECIDE_SECONDS", -1.0)
        page = await person.look("/console/review")
        assert names_of(page) == ["N0", "N1", "N2"]
        assert page.told.count("because the comparison takes too long for this page. Open the proposal") == 3
        boxes = dict(re.findall(r'type="checkbox" name="pick" value="(\S+) (\w+)"', html))
        _, fields = form_of(html[html.index('id="many"') - 60 :])
        data = {**fields, "act": "approve", "pick": [f"{one} {boxes[one]}" for one in ids]}
        page = check((await person.client.post("/console/review", data=data, follow_redirects=True)).text)
        assert outcomes_of(page) == [
            f"n{number}.md is not decided yet: there was no time left" for number in range(3)
        ]
        assert [(await row_of(lithos, one))["status"] for one in ids] == ["pending"] * 3


async def test_proposals_are_sorted_by_expiry_and_next_one_is_visible(tmp_path: Path) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        lithos = person.lithos
        bind(lithos)
        ids = []
        for number, agent in enumerate(("bot", "bee", "bot")):
            ids.append(await propose_note(lithos, f"N{number}", agent=agent))
            clock.advance(days=1)
        page = await person.look("/console/review")
        assert names_of(page) == ["*N0", "*N2", "*N1"]
        assert [one.told.partition("expires in ")[2].partition(" d")[0] for one in rows_of(page)] == [
            "27",
            "29",
            "28",
        ]
        fields = form_for(await person.page("/console/review"), ids[0], "approve")
        answer = await person.client.post("/console/review", data=fields)
        assert answer.status_code == 303
        assert answer.headers["location"].endswith(f"#p-{ids[2]}")
        alone = await person.look(f"/console/review/{ids[2]}?by=agent")
        assert [one.text for one in alone.all("a", "button")] == ["Previous"]


async def test_number_of_stored_reports_and_drafts_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ReviewPages] = []
    begin = ReviewPages.__init__

    def remember(pages: ReviewPages, *given: Any) -> None:
        begin(pages, *given)
        made.append(pages)

    monkeypatch.setattr(ReviewPages, "__init__", remember)
    async with visiting(tmp_path) as person:
        bind(person.lithos)
        proposal = await propose_note(person.lithos, "Fresh")
        html = await person.page("/console/review")
        fields = form_for(html, proposal, "approve") | {"pick": f"{MISSING_ID} x"}
        for number in range(MOST_REPORTS + 2):
            await person.client.post("/console/review", data=fields | {"once": f"r{number}"})
        address = f"/console/review/{proposal}"
        _, fields = form_of(await person.page(address), address)
        for number in range(MOST_DRAFTS + 2):
            await person.client.post(
                address, data=fields | {"once": f"d{number}", "act": "look", "text": "x"}
            )
        assert (len(made[0]._reports), len(made[0]._drafts)) == (MOST_REPORTS, MOST_DRAFTS)
