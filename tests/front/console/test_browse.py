"""Notes by folder, tag, name and state (docs/spec/console.md §2)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.front.console.injections import PAYLOADS, assert_inert
from tests.front.console.test_note import text_of
from tests.front.console.visiting import Visitor, visiting


def listed(html: str) -> list[str]:
    return [text_of(found) for found in re.findall(r'<div class="line"><a class="note"[^>]*>(.*?)</a>', html)]


async def fill(person: Visitor) -> None:
    write = person.lithos.create
    await write("Alpha", path="ops/db/", tags=["db", "deploy"], agent="ann")
    await write("Beta", path="ops/", tags=["db"], agent="bob", confidence=0.4)
    await write("Gamma", path="lab/", tags=["lab"], agent="ann", expires_at="2020-01-01T00:00:00+00:00")


async def test_an_empty_vault_says_what_to_do(tmp_path: Path) -> None:
    """behaviour 235: the list of notes renders on an empty vault."""
    async with visiting(tmp_path) as person:
        for address in ("/console/notes", "/console/notes?q=x", "/console/notes?view=deleted"):
            assert_inert(await person.page(address), where=address)
        assert "There is no note yet." in await person.page("/console/notes")


async def test_folders_tags_and_filters_reduce_the_list(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await fill(person)
        html = await person.page("/console/notes?sort=title")
        assert listed(html) == ["Alpha", "Beta", "Gamma"]
        shown = text_of(html)
        for expected in ("lab 1", "ops / 2", "db 2", "3 notes"):
            assert expected in shown, expected
        below = await person.page("/console/notes?path_prefix=ops/&sort=title")
        assert listed(below) == ["Alpha", "Beta"]
        assert re.search(r"\bdb\b\s+1\b", text_of(below)), "the folder in the folder"
        for query, expected in {
            "path_prefix=ops/db/": ["Alpha"],
            "tags=db,deploy": ["Alpha"],
            "author=ann&sort=title": ["Alpha", "Gamma"],
            "namespace=lab": ["Gamma"],
            "status=expired": ["Gamma"],
            "status=quarantined": [],
            "note_type=concept": [],
            "sort=confidence&limit=1&path_prefix=ops/": ["Beta", "Alpha"],
            "q=ALPH": ["Alpha"],
            "sort=nothing&status=nothing&offset=x": ["Gamma", "Beta", "Alpha"],
        }.items():
            assert listed(await person.page(f"/console/notes?{query}")) == expected, query


async def test_a_link_to_a_missing_note_leads_to_notes_near_its_name(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("Leader election")
        await person.lithos.write("Sourdough")
        html = await person.page("/console/notes?q=Leader+elektion")
        assert "No note has the name Leader elektion yet." in text_of(html)
        assert "Near it Leader election" in text_of(html)
        assert "Sourdough" not in html
        found = await person.page("/console/notes?q=leader+election")
        assert "No note has the name" not in found


async def test_the_folder_counts_follow_the_notes(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        note_id = await person.lithos.create("One", path="a/")
        await person.lithos.create("Two", path="a/")
        assert "a 2" in text_of(await person.page("/console/notes"))
        await person.lithos.call("lithos_delete", id=note_id, agent="ann")
        assert "a 1" in text_of(await person.page("/console/notes"))


async def test_a_list_goes_on_page_by_page_and_shows_every_note_once(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        for number in range(130):
            await person.lithos.create(f"Note {number:03}")
        seen, address = list[str](), "/console/notes?sort=title"
        while address:
            html = await person.page(address)
            seen += listed(html)
            after = re.search(r'rel="next" href="([^"]*)"', html)
            address = f"/console/notes{after[1].replace('&amp;', '&')}" if after else ""
        assert seen == [f"Note {number:03}" for number in range(130)]


async def test_long_titles_make_shorter_pages(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        for number in range(101):
            await person.lithos.call(
                "lithos_write",
                title=f"{number} " + "&\u4e2d" * 400,
                content="x",
                agent="&" * 190,
                tags=["&" * 190, "\u4e2d" * 190],
            )
        html = await person.page("/console/notes")
        assert_inert(html)


async def test_nothing_that_is_written_in_a_note_does_anything_in_the_list(tmp_path: Path) -> None:
    """behaviour 236: payloads in titles, tags, authors and file names do nothing in lists."""
    async with visiting(tmp_path) as person:
        for number, payload in enumerate(PAYLOADS):
            line = " ".join(payload.replace("\x00", " ").split())[:150]
            name = re.sub(r"[/\x00-\x1f]", "_", line)[:60]
            answer = await person.lithos.call(
                "lithos_write",
                title=f"{line} {number}",
                content="x",
                agent=line,
                tags=[line],
                path=f"{name}.md",
            )
            if "id" not in answer:
                await person.lithos.call(
                    "lithos_write", title=f"{line} {number}", content="x", agent=line, tags=[line]
                )
        for query in ("", "?offset=100", "?sort=title", "?tags=%3Cscript%3Epwned()%3C/script%3E"):
            assert_inert(await person.page(f"/console/notes{query}"), where=query)


@pytest.mark.parametrize("key", ["q", "path_prefix", "tags", "author", "namespace", "status", "sort", "view"])
async def test_a_filter_is_shown_as_text(tmp_path: Path, key: str) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("A note")
        for payload in (*PAYLOADS[::9], "\udcff".encode("utf-8", "replace").decode(), "x" * 5_000):
            answer = await person.client.get("/console/notes", params={key: payload})
            assert answer.status_code == 200, (key, payload)
            assert_inert(answer.text, where=payload[:60])
