"""The page of a note: text, surroundings, versions, restoring, quarantine (docs/spec/console.md §2)."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.config.sections import HistoryConfig, LcmaConfig
from tests.front.console.injections import LONG_LINE, PAYLOADS, assert_inert
from tests.front.console.visiting import Visitor, form_of, visiting
from tests.servers import MISSING_ID

PERSON = "person"


def text_of(html: str) -> str:
    """What a page says, without its elements."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def prose_of(html: str) -> str:
    found = re.search(r'<article class="prose".*?</article>', html, re.S)
    assert found
    return found[0]


async def versions_of(person: Visitor, note_id: str) -> list[dict[str, Any]]:
    answer = await person.lithos.call("lithos_history", id=note_id, limit=50)
    return list(answer["versions"])


def authors_of(person: Visitor, kind: str) -> list[str]:
    """Who made the events of a type, oldest first."""
    store = person.lithos.server.coordinator._store
    return [
        event.draft.agent for event in store.events_after(person.lithos.first_seq) if event.draft.type == kind
    ]


# -- looking ------------------------------------------------------------


async def test_a_note_is_shown_with_its_text_frontmatter_links_and_lineage(tmp_path: Path) -> None:
    """behaviour 235: the page of a note renders."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        source = await lithos.create("The source")
        note_id = await lithos.create(
            "The note",
            "## First\n\nSee [[The source]] and [[Not there]].\n\n## Second\n\nMore.",
            tags=["one", "two"],
            derived_from_ids=[source],
            metadata={"reviewed_by": "Kim"},
        )
        reader = await lithos.create("The reader", "From [[The note]].", derived_from_ids=[note_id])
        await lithos.read(note_id, agent_id="ann")
        html = await person.page(f"/console/notes/{note_id}")
        prose = prose_of(html)
        assert f'href="/console/notes/{source}" class="wikilink"' in prose
        assert 'class="wikilink broken"' in prose
        assert 'href="#n-first">First</a>' in html
        shown = text_of(html)
        for expected in (
            "reviewed_by Kim",
            "Links here 1 The reader",
            "Not there no such note",
            "Rests on The source",
        ):
            assert expected in shown, expected
        assert f"/console/notes/{reader}" in html
        assert re.search(r"Rest on it 1 The reader", shown)
        assert re.search(r"ann 1 time", shown)
        assert "tags=one" in html
        assert_inert(html)


async def test_standing_names_what_raised_and_lowered_a_note(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note_id = await lithos.create("Kettle", "Water boils in the kettle.")
        for list_name in ("cited_nodes", "misleading_nodes"):
            task = (await lithos.call("lithos_task_create", title="Boil", agent="ann"))["task_id"]
            got = await lithos.call("lithos_retrieve", query="kettle water", agent_id="ann", task_id=task)
            done = await lithos.call(
                "lithos_task_complete",
                task_id=task,
                agent="ann",
                receipt_id=got["receipt_id"],
                **{list_name: [note_id]},
            )
            assert done.get("success", True)
        shown = text_of(await person.page(f"/console/notes/{note_id}"))
        assert "Agents said once that it misled them" in shown
        assert "Tasks cited it once." in shown
        assert "Cited for kettle water" in shown
        assert "cited 1" in shown
        assert "misleading 1" in shown


async def test_a_long_text_is_shown_in_parts_which_its_outline_chooses(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        body = "\n\n".join(f"## Day {i}\n\n" + "Words and words. " * 120 for i in range(60))
        note_id = await person.lithos.create("Chronicle", body)
        html = await person.page(f"/console/notes/{note_id}")
        assert "Day 0" in prose_of(html)
        assert "Day 50" not in prose_of(html)
        assert len(prose_of(html)) < 60_000
        there = re.search(r'<a href="(\?from=\d+#text)"[^>]*>Day 50</a>', html)
        assert there
        later = await person.page(f"/console/notes/{note_id}{unescape(there[1])}")
        assert prose_of(later).index("Day 50") < 200
        by_name = await person.page(f"/console/notes/{note_id}?section=Day+50")
        assert prose_of(by_name) == prose_of(later)
        # The parts one after another are the whole text.
        seen, at = list[str](), f"/console/notes/{note_id}"
        while at:
            page = await person.page(at)
            seen += re.findall(r"<h2 id=[^>]*>(Day \d+)</h2>", page)
            after = re.search(r'rel="next" href="([^"]*)"', page)
            at = f"/console/notes/{note_id}{unescape(after[1])}" if after else ""
        assert seen == [f"Day {i}" for i in range(60)]


@pytest.mark.parametrize(
    "body",
    [
        "[^a]: b\n\n" + "[^a] " * 7_000,
        "".join(f"<b id={i}>" for i in range(1_500)) + "<p>x" * 5_000,
        "[[a]] " * 6_500,
        "&" * 300_000,
        "# a\n" * 60_000,
        "\u4e2d" * 200_000,
    ],
    ids=["footnotes", "formatting", "links", "entities", "headings", "han"],
)
async def test_no_text_makes_a_page_of_more_than_200_kb(tmp_path: Path, body: str) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Large", body)
        for query in ("", "?from=20000"):
            assert_inert(await person.page(f"/console/notes/{note_id}{query}"), where=body[:20])


async def test_long_names_around_a_note_make_shorter_lists(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos, long = person.lithos, "&\u4e2d" * 400
        keys = {f"{'&' * 60}{number}": "&" * 900 for number in range(60)}
        note_id = await lithos.create(
            f"0 {long}", "&" * 60_000, tags=[f"{number}{'&' * 180}" for number in range(60)], metadata=keys,
            agent="\u4e2d" * 190,
        )  # fmt: skip
        for number in range(1, 40):
            await lithos.write(
                f"{number} {long}", f"[[{note_id}]]", agent=f"{number}{'&' * 180}", derived_from_ids=[note_id]
            )
            await lithos.read(note_id, agent_id=f"{number}{'&' * 180}")
        for address in ("", "?from=1000", "/quarantine", "/diff", "/restore?version=1"):
            assert_inert(await person.page(f"/console/notes/{note_id}{address}"), where=address)


async def test_an_earlier_version_and_the_difference_of_two_are_shown(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id, agent="bob")
        old = await person.page(f"/console/notes/{note_id}?version=1")
        assert "The first text." in prose_of(old)
        assert "This is version 1, created by tester" in text_of(old)
        diff = await person.page(f"/console/notes/{note_id}/diff?from=1&to=2")
        assert re.search(r"<del>-The first text\.</del>", diff)
        assert re.search(r"<ins>\+The second text\.</ins>", diff)
        assert "<ins>+The second text.</ins>" in await person.page(f"/console/notes/{note_id}/diff?to=2")
        assert_inert(diff)
        for odd in ("", "?from=x&to=" + "9" * 30, "?from=1"):
            assert_inert(await person.page(f"/console/notes/{note_id}/diff{odd}"))
        await person.lithos.call("lithos_delete", id=note_id, agent="eve")
        removed = await person.page(f"/console/notes/{note_id}/diff")
        assert re.search(r"<del>[^<]*-The second text\.</del>", removed)
        wrong = await person.get(f"/console/notes/{note_id}/diff?from=1&to=77")
        assert wrong.status_code == 404
        assert "There is no version 77" in text_of(wrong.text)


@pytest.mark.parametrize(
    "wanted", ["nothing", MISSING_ID, "%3Cscript%3E", "x" * 3_000, "by-path?path=../x", "a%00b"]
)
async def test_a_wrong_id_leads_to_a_page_that_helps(tmp_path: Path, wanted: str) -> None:
    async with visiting(tmp_path) as person:
        answer = await person.get(f"/console/notes/{wanted}")
        assert answer.status_code == 404, answer.text
        assert_inert(answer.text)
        assert "/console/notes" in answer.text


@pytest.mark.parametrize("off", ["history", "lcma"])
async def test_a_note_is_shown_without_a_history_and_without_learning(tmp_path: Path, off: str) -> None:
    """behaviour 235: the pages of notes render on a server with parts switched off."""
    sections = (
        {"history": HistoryConfig(enabled=False)} if off == "history" else {"lcma": LcmaConfig(enabled=False)}
    )
    async with visiting(tmp_path, **sections) as person:
        note_id = await person.lithos.create("Note", "Its text.", derived_from_ids=[])
        html = await person.page(f"/console/notes/{note_id}")
        assert "Its text." in prose_of(html)
        assert_inert(html)
        assert_inert(await person.page(f"/console/notes/{note_id}/quarantine"))
        assert_inert(await person.page("/console/notes?view=deleted"))
        if off == "history":
            assert "No versions are kept: history.enabled is off." in html
            assert (await person.get(f"/console/notes/{note_id}/restore?version=1")).status_code == 409


async def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    """behaviour 235: degraded, a page says what is wrong."""
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "Its text.")
        (person.lithos.knowledge / "note.md").unlink()
        answer = await person.get(f"/console/notes/{note_id}")
        assert answer.status_code == 404
        assert "is missing or cannot be read" in text_of(answer.text)
        assert_inert(answer.text)


# -- bringing back ------------------------------------------------------------


async def test_restoring_shows_its_consequences_happens_once_and_carries_the_name(tmp_path: Path) -> None:
    """behaviour 239: restore shows its consequences first, happens once and carries the person's name."""
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id, agent="bob")
        await person.submit("/console/identity", agent="Ann B")
        address = f"/console/notes/{note_id}/restore?version=1"
        asked = await person.page(address)
        shown = text_of(asked)
        for told in ("become version 3", "version 2 (updated by bob )", "recorded as a change by Ann B"):
            assert told in shown, told
        assert "<ins>+The first text.</ins>" in asked
        assert "<del>-The second text.</del>" in asked
        assert (await person.lithos.read(note_id))["version"] == 2, "looking changes nothing"
        action, fields = form_of(asked)
        async with trio.open_nursery() as nursery:  # a double click
            for _ in range(2):
                nursery.start_soon(lambda: person.post(action, **fields))
        after = await person.post(action, **fields)  # and a reload
        assert after.status_code == 200
        assert "The first text." in prose_of(after.text)
        versions = await versions_of(person, note_id)
        assert [row["version"] for row in versions] == [3, 2, 1]
        assert (versions[0]["agent"], versions[0]["op"]) == ("Ann B", "restored")
        assert authors_of(person, "note.updated") == ["bob", "Ann B"]


async def test_a_change_in_between_is_shown_and_nothing_is_restored(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id)
        action, fields = form_of(await person.page(f"/console/notes/{note_id}/restore?version=1"))
        await person.lithos.write("Note", "The third text.", id=note_id, agent="eve")
        answer = await person.post(action, **fields)
        assert "Nothing was restored: somebody changed the note meanwhile." in text_of(answer.text)
        assert "<del>-The third text.</del>" in answer.text
        assert (await person.lithos.read(note_id))["content"] == "The third text."
        again, fields = form_of(answer.text)
        await person.post(again, **fields)
        assert (await person.lithos.read(note_id))["content"] == "The first text."


async def test_a_deleted_note_is_listed_and_brought_back(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Gone <b>note</b>", "Its text.", path="folder/gone.md")
        await person.lithos.call("lithos_delete", id=note_id, agent="eve")
        listed = await person.page("/console/notes?view=deleted")
        assert "Gone <b>" not in listed
        assert "deleted by eve" in text_of(listed)
        page = await person.page(f"/console/notes/{note_id}")
        assert "This note is deleted" in text_of(page)
        link = re.search(r'class="button primary" href="([^"]+)"', page)
        assert link
        asked = await person.page(unescape(link[1]))
        assert "comes back as version" in text_of(asked)
        action, fields = form_of(asked)
        await person.post(action, **fields)
        again = await person.post(action, **fields)
        assert "Its text." in prose_of(again.text)
        assert (await person.lithos.read(note_id))["path"] == "folder/gone.md"
        assert (await versions_of(person, note_id))[0]["agent"] == PERSON


# -- quarantine ------------------------------------------------------------


async def test_quarantine_shows_its_dependents_happens_once_and_carries_the_name(tmp_path: Path) -> None:
    """behaviour 239: quarantine shows its consequences first, happens once and carries the person's name."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note_id = await lithos.create("The source", "Numbers.")
        near = await lithos.create("Near", derived_from_ids=[note_id])
        far = await lithos.create("Far", derived_from_ids=[near])
        await person.submit("/console/identity", agent="Ann")
        asked = await person.page(f"/console/notes/{note_id}/quarantine")
        shown = text_of(asked)
        for told in ("Near 1 step", "Far 2 steps", "recorded as a change by Ann"):
            assert told in shown, told
        assert f"/console/notes/{far}" in asked
        assert (await lithos.read(note_id))["metadata"]["status"] == "active"
        action, fields = form_of(asked)
        fields |= {"reason": "wrong <i>numbers</i>", "open_tasks": "yes"}
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(lambda: person.post(action, **fields))
        after = await person.post(action, **fields)
        assert "wrong <i>" not in after.text
        assert "wrong <i>numbers</i>" in text_of(after.text)
        versions = await versions_of(person, note_id)
        assert [row["version"] for row in versions] == [2, 1]
        assert versions[0]["agent"] == "Ann"
        assert authors_of(person, "note.updated") == ["Ann"]
        tasks = (await lithos.call("lithos_task_list", status="open"))["tasks"]
        assert len(tasks) == 2  # the epic, and one for the direct dependent
        assert {task["created_by"] for task in tasks} == {"Ann"}

        ended = await person.submit(f"/console/notes/{note_id}/clear")
        assert "The quarantine has ended" in ended.text
        assert (await lithos.read(note_id))["metadata"]["status"] == "active"


async def test_a_quarantine_without_a_reason_changes_nothing(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("The source")
        answer = await person.submit(f"/console/notes/{note_id}/quarantine", reason="  ")
        assert answer.status_code == 400
        assert "the reason is blank" in answer.text
        assert (await person.lithos.read(note_id))["version"] == 1


# -- bad input ------------------------------------------------------------


async def test_nothing_that_is_written_in_a_note_does_anything_on_its_pages(tmp_path: Path) -> None:
    """behaviour 236: script, handlers, links, SVG and HTML in notes, titles, tags and names do nothing."""
    async with visiting(tmp_path) as person:
        pages: list[str] = []
        for number, each in enumerate(PAYLOADS):
            payload = each.replace("\x00", " ")  # which no tool takes
            line = " ".join(payload.split())[:150]
            answer = await person.lithos.call(
                "lithos_write",
                title=f"{number} {line}",
                content=f"{payload}\n\n## {line}\n\n{payload}",
                agent=line,
                tags=[line, f"t{number}"],
                metadata={line: line, f"k{number}": [line]},
                summaries={"short": line},
            )
            if "id" not in answer:  # a title that no file can have
                answer = await person.lithos.write(f"Payload {number}", payload, tags=[f"t{number}"])
            pages.append(f"/console/notes/{answer['id']}")
        (person.lithos.knowledge / "aliases.md").write_text(
            "---\ntitle: Aliases\naliases:\n"
            + "".join(f"  - {one!r}\n" for one in ("<script>pwned()</script>", "x"))
            + "---\n"
            + "\n\n".join(PAYLOADS)
        )
        assert len(pages) == len(PAYLOADS)
        for page in pages:
            assert_inert(await person.page(page), where=page)
        first = pages[3].rpartition("/")[2]
        await person.lithos.write("Payload again", LONG_LINE, id=first)
        for address in ("?version=1", "/diff?to=2", "/restore?version=1", "/quarantine"):
            assert_inert(await person.page(f"/console/notes/{first}{address}"), where=address)


async def test_links_from_notes_to_elsewhere_ask_no_other_host_for_anything(tmp_path: Path) -> None:
    """behaviour 235: no request leaves the origin (what a page loads; a link is followed by a person)."""
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Pictures", "![a](https://other.example/a.png)\n\n![b](pic.png)")
        prose = prose_of(await person.page(f"/console/notes/{note_id}"))
        assert re.findall(r'src="([^"]+)"', prose) == ["/console/files/pic.png"]
        assert 'class="external"' in prose
