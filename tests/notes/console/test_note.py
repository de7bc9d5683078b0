"""The note page: text, links, versions, restore and quarantine (docs/spec/console.md §2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lithos.events.journal.coordinator import Coordinator
from lithos.history.settings import HistoryConfig
from lithos.memory.settings import LcmaConfig
from lithos.notes.format.document import derive_id
from tests.server.console.injections import LONG_LINE, PAYLOADS
from tests.server.console.pages import Element, check, parse
from tests.server.console.visiting import Visitor, form_of, visiting
from tests.servers import MISSING_ID, put_note

PERSON = "person"


def prose_of(page: Element) -> Element:
    (found,) = page.all("article", "prose")
    return found


async def versions_of(person: Visitor, note_id: str) -> list[dict[str, Any]]:
    answer = await person.lithos.call("lithos_history", id=note_id, limit=50)
    return list(answer["versions"])


def authors_of(person: Visitor, kind: str) -> list[str]:
    """Return the authors of all events of one type, oldest first."""
    store = person.lithos.server.get(Coordinator)._store
    return [
        event.draft.agent for event in store.events_after(person.lithos.first_seq) if event.draft.type == kind
    ]


# -- looking ------------------------------------------------------------


async def test_note_page_shows_text_frontmatter_links_and_lineage(tmp_path: Path) -> None:
    """behaviour 235: the note page renders, and it loads nothing from other hosts."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        source = await lithos.create("The source")
        note_id = await lithos.create(
            "The note",
            "## First\n\nSee [[The source]] and [[Not there]].\n\n## Second\n\nMore.",
            tags=["one", "two"],
            derived_from_ids=[source],
            metadata={"reviewed_by": "Kim", "due_at": "one day"},
        )
        reader = await lithos.create("The reader", "From [[The note]].", derived_from_ids=[note_id])
        await lithos.read(note_id, agent_id="ann")
        page = await person.look(f"/console/notes/{note_id}")
        prose = prose_of(page)
        (link,) = prose.all("a", "wikilink", href=f"/console/notes/{source}")
        assert link.text == "The source"
        assert [one.text for one in prose.all("a", "broken")] == ["Not there"]
        assert "First" in [one.text for one in page.all("a", href="#n-first")]
        for expected in (
            "reviewed_by Kim", "due_at one day", "Links here 1 The reader", "Not there note not found",
            "Depends on The source", "Notes that depend on this note 1 The reader", "ann 1 time",
        ):  # fmt: skip
            assert expected in page.told, expected
        assert f"/console/notes/{reader}" in page.links
        assert any("tags=one" in link for link in page.links)
        pictured = await lithos.create("Pictures", "![a](https://other.example/a.png)\n\n![b](pic.png)")
        prose = prose_of(await person.look(f"/console/notes/{pictured}"))
        assert [one.attributes["src"] for one in prose.has("src")] == ["/console/files/pic.png"]
        assert prose.all("a", "external")


async def test_standing_section_lists_causes_that_raised_or_lowered_a_note(tmp_path: Path) -> None:
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
        shown = (await person.look(f"/console/notes/{note_id}")).told
        for told in (
            "Agents reported once that the note misled them", "Tasks cited the note once.",
            "Cited for kettle water",
            "cited 1", "misleading 1",
        ):  # fmt: skip
            assert told in shown, told


async def test_long_text_is_shown_in_parts_linked_from_its_outline(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        body = "\n\n".join(f"## Day {i}\n\n" + "Words and words. " * 120 for i in range(60))
        note_id = await person.lithos.create("Chronicle", body)
        page = await person.look(f"/console/notes/{note_id}")
        first = prose_of(page).text
        assert ("Day 0" in first, "Day 50" in first) == (True, False)
        assert len(first) < 60_000
        there = next(one.attributes["href"] for one in page.all("a") if one.text == "Day 50")
        later = prose_of(await person.look(f"/console/notes/{note_id}{there.removesuffix('#text')}")).text
        assert later.index("Day 50") < 200
        assert prose_of(await person.look(f"/console/notes/{note_id}?section=Day+50")).text == later
        # The concatenated parts equal the whole text.
        seen, query = list[str](), "?"
        while query:
            page = await person.look(f"/console/notes/{note_id}{query}")
            seen += [one.text for one in prose_of(page).all("h2")]
            query = next((one.attributes["href"] for one in page.all("a", rel="next")), "")
        assert seen == [f"Day {i}" for i in range(60)]


@pytest.mark.slow
async def test_note_page_never_exceeds_200_kb(tmp_path: Path) -> None:
    bodies = (
        "[^a]: b\n\n" + "[^a] " * 7_000,
        "".join(f"<b id={i}>" for i in range(1_500)) + "<p>x" * 5_000,
        "[[a]] " * 6_500,
        "&" * 60_000,
        "# a\n" * 11_000,
        "\u4e2d" * 60_000,
    )
    async with visiting(tmp_path) as person:
        for number, body in enumerate(bodies):
            note_id = await person.lithos.create(f"Large {number}", body)
            for query in ("", "?from=20000"):
                await person.look(f"/console/notes/{note_id}{query}")


@pytest.mark.slow
async def test_long_names_shorten_the_lists_of_the_note_page(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos, long = person.lithos, "&\u4e2d" * 400
        keys = {f"{'&' * 60}{number}": "&" * 900 for number in range(60)}
        note_id = await lithos.create(
            f"0 {long}", "&" * 60_000, tags=[f"{number}{'&' * 180}" for number in range(60)], metadata=keys,
            agent="\u4e2d" * 190,
        )  # fmt: skip
        for number in range(1, 40):
            agent = f"{number}{'&' * 180}"
            await lithos.write(f"{number} {long}", f"[[{note_id}]]", agent=agent, derived_from_ids=[note_id])
            await lithos.read(note_id, agent_id=agent)
        for address in ("", "?from=1000", "/quarantine", "/diff", "/restore?version=1"):
            await person.look(f"/console/notes/{note_id}{address}")


async def test_earlier_version_and_diff_of_two_versions_are_shown(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id, agent="bob")
        address = f"/console/notes/{note_id}"
        old = await person.look(f"{address}?version=1")
        assert "The first text." in prose_of(old).text
        assert "This is version 1, created by tester" in old.told
        for query in ("?from=1&to=2", "?to=2"):
            diff = await person.look(f"{address}/diff{query}")
            assert "-The first text." in [one.text for one in diff.all("del")]
            assert "+The second text." in [one.text for one in diff.all("ins")]
        for odd in ("", "?from=x&to=" + "9" * 30, "?from=1"):
            await person.look(f"{address}/diff{odd}")
        (person.lithos.knowledge / "note.md").rename(person.lithos.data / "away")
        gone = await person.look(address, 404)  # behaviour 235: the page reports the missing file
        assert "is missing or cannot be read" in gone.text
        (person.lithos.data / "away").rename(person.lithos.knowledge / "note.md")
        await person.lithos.call("lithos_delete", id=note_id, agent="eve")
        removed = await person.look(f"{address}/diff")
        assert any("-The second text." in one.text for one in removed.all("del"))
        assert "has no version 77" in (await person.look(f"{address}/diff?from=1&to=77", 404)).told
        for wanted in ("nothing", MISSING_ID, "<script>", "x" * 3_000, "by-path?path=../x", "a\x00b"):
            wrong = await person.look(f"/console/notes/{quote(wanted, safe='?=')}", 404)
            assert "/console/notes" in wrong.links


async def test_note_page_renders_without_history_or_learning(tmp_path: Path) -> None:
    """behaviour 235: the note pages render on a server with history or learning switched off."""
    sections = {"history": HistoryConfig(enabled=False), "lcma": LcmaConfig(enabled=False)}
    for name, section in sections.items():
        async with visiting(tmp_path / name, **{name: section}) as person:
            note_id = await person.lithos.create("Note", "Its text.", derived_from_ids=[])
            page = await person.look(f"/console/notes/{note_id}")
            assert "Its text." in prose_of(page).text
            await person.look(f"/console/notes/{note_id}/quarantine")
            await person.look("/console/notes?view=deleted")
            assert ("because history.enabled is off." in page.text) is (name == "history")
            if name == "history":
                await person.look(f"/console/notes/{note_id}/restore?version=1", 409)


# -- restore -----------------------------------------------------------------


async def test_restore_shows_its_effects_and_is_recorded_once_for_person(tmp_path: Path) -> None:
    """behaviour 239: the effects are shown first, and the restore is recorded under the person's name."""
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id, agent="bob")
        await person.submit("/console/identity", agent="Ann B")
        address = f"/console/notes/{note_id}/restore?version=1"
        asked = await person.page(address)
        page = check(asked)
        for told in ("become version 3", "version 2 (updated by bob )", "recorded under the name Ann B"):
            assert told in page.told, told
        assert "+The first text." in [one.text for one in page.all("ins")]
        assert "-The second text." in [one.text for one in page.all("del")]
        assert (await person.lithos.read(note_id))["version"] == 2, "looking changes nothing"
        action, fields = form_of(asked)
        await person.press(action, **fields)
        after = await person.post(action, **fields)  # Reloading the page sends the form a second time.
        assert after.status_code == 200
        assert "The first text." in prose_of(check(after.text)).text
        versions = await versions_of(person, note_id)
        assert [row["version"] for row in versions] == [3, 2, 1]
        assert (versions[0]["agent"], versions[0]["op"]) == ("Ann B", "restored")
        assert authors_of(person, "note.updated") == ["bob", "Ann B"]


async def test_restore_is_refused_when_the_note_changed_meanwhile(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Note", "The first text.")
        await person.lithos.write("Note", "The second text.", id=note_id)
        action, fields = form_of(await person.page(f"/console/notes/{note_id}/restore?version=1"))
        await person.lithos.write("Note", "The third text.", id=note_id, agent="eve")
        answer = await person.post(action, **fields)
        assert "Nothing was restored: the note was changed in the meantime." in parse(answer.text).told
        assert "-The third text." in [one.text for one in parse(answer.text).all("del")]
        assert (await person.lithos.read(note_id))["content"] == "The third text."
        again, fields = form_of(answer.text)
        await person.post(again, **fields)
        assert (await person.lithos.read(note_id))["content"] == "The first text."


async def test_deleted_note_is_listed_and_can_be_restored(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("Gone <b>note</b>", "Its text.", path="folder/gone.md")
        await person.lithos.call("lithos_delete", id=note_id, agent="eve")
        assert "deleted by eve" in (await person.look("/console/notes?view=deleted")).told
        page = await person.look(f"/console/notes/{note_id}")
        assert "This note is deleted" in page.told
        (link,) = page.all("a", "primary")
        asked = await person.page(link.attributes["href"])
        assert "is restored as version" in check(asked).told
        action, fields = form_of(asked)
        await person.post(action, **fields)
        again = await person.post(action, **fields)
        assert "Its text." in prose_of(check(again.text)).text
        assert (await person.lithos.read(note_id))["path"] == "folder/gone.md"
        assert (await versions_of(person, note_id))[0]["agent"] == PERSON


# -- quarantine ------------------------------------------------------------


async def test_quarantine_shows_dependents_and_is_recorded_once_for_the_person(tmp_path: Path) -> None:
    """behaviour 239: the effects are shown first, and the change is recorded under the person's name."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note_id = await lithos.create("The source", "Numbers.")
        near = await lithos.create("Near", derived_from_ids=[note_id])
        far = await lithos.create("Far", derived_from_ids=[near])
        await person.submit("/console/identity", agent="Ann")
        asked = await person.page(f"/console/notes/{note_id}/quarantine")
        page = check(asked)
        for told in ("Near 1 step", "Far 2 steps", "record this change under the name Ann"):
            assert told in page.told, told
        assert f"/console/notes/{far}" in page.links
        assert (await lithos.read(note_id))["metadata"]["status"] == "active"
        blank = await person.submit(f"/console/notes/{note_id}/quarantine", reason="  ")
        assert blank.status_code == 400
        assert "the reason is blank" in blank.text
        assert (await lithos.read(note_id))["version"] == 1
        action, fields = form_of(asked)
        fields |= {"reason": "wrong <i>numbers</i>", "open_tasks": "yes"}
        await person.press(action, **fields)
        after = await person.post(action, **fields)
        assert "wrong <i>numbers</i>" in check(after.text).told
        versions = await versions_of(person, note_id)
        assert [row["version"] for row in versions] == [2, 1]
        assert versions[0]["agent"] == "Ann"
        assert authors_of(person, "note.updated") == ["Ann"]
        tasks = (await lithos.call("lithos_task_list", status="open"))["tasks"]
        assert len(tasks) == 2  # The open tasks are the epic and one task for the direct dependent.
        assert {task["created_by"] for task in tasks} == {"Ann"}

        ended = await person.submit(f"/console/notes/{note_id}/clear")
        assert "The quarantine has ended" in ended.text
        assert (await lithos.read(note_id))["metadata"]["status"] == "active"


# -- bad input ------------------------------------------------------------


@pytest.mark.slow
async def test_note_pages_neutralise_payloads_in_note_fields(tmp_path: Path) -> None:
    """behaviour 236: payloads in notes, titles, tags and names have no effect."""
    async with visiting(tmp_path) as person:
        pages: list[str] = []
        for number, each in enumerate(PAYLOADS):
            payload = each.replace("\x00", " ")  # No tool accepts a NUL character.
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
            if "id" not in answer:  # No file can have this title.
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
            await person.look(page)
        first = pages[3].rpartition("/")[2]
        await person.lithos.write("Payload again", LONG_LINE, id=first)
        for address in ("?version=1", "/diff?to=2", "/restore?version=1", "/quarantine"):
            await person.look(f"/console/notes/{first}{address}")


async def test_missing_author_is_not_shown_as_unknown(tmp_path: Path) -> None:
    put_note(tmp_path, "plain.md", "A text.\n")
    async with visiting(tmp_path, settled=True) as person:
        page = await person.look(f"/console/notes/{derive_id('plain.md')}")
        (head,) = page.all("div", "note-head")
        assert "unknown" not in head.text
        assert "unknown" not in (await person.look("/console/notes")).told


async def test_backlink_sentence_is_shown_without_markup(tmp_path: Path) -> None:
    texts = {
        "Item": "Before.\n\n> - [ ] know **old names** too (see [[Target]])\nlast",
        "Table": "| what | count |\n|---|---|\n| [[Target|aim]] | `3` |",
    }
    async with visiting(tmp_path, settled=True) as person:
        target = await person.lithos.create("Target", "The end.")
        for title, content in texts.items():
            await person.lithos.create(title, content)
        (links,) = (await person.look(f"/console/notes/{target}")).all("ul", "backlinks")
        assert [row.told for row in links.all("li")] == [
            "Item know old names too (see Target)",
            "Table aim · 3",
        ]


async def test_backlinks_are_sorted_and_paged_with_their_sentence(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        target = await person.lithos.create("Target", "The end.")
        for number in range(23, 0, -1):
            await person.lithos.create(
                f"Note {number:02}", f"Before. It depends on [[Target]], says {number}. After."
            )
        page = await person.look(f"/console/notes/{target}")
        (links,) = page.all("ul", "backlinks")
        rows = [row.told for row in links.all("li")]
        assert rows[0] == "Note 01 It depends on Target, says 1."
        assert len(rows) == 20
        assert "Links here 23" in page.told
        (more,) = [link.attributes["href"] for link in page.all("a") if link.text == "next →"]
        page = await person.look(f"/console/notes/{target}{more}")
        assert [row.told for row in page.all("ul", "backlinks")[0].all("li")] == [
            f"Note {number} It depends on Target, says {number}." for number in (21, 22, 23)
        ]
        assert any(link.text == "← previous" for link in page.all("a"))
