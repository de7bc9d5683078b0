"""Agent list and timeline of an agent (docs/spec/console.md §2)."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from lithos.history.settings import HistoryConfig
from tests.server.console.injections import HOSTILE
from tests.server.console.pages import Element
from tests.server.console.visiting import visiting
from tests.servers import Clock


def entries_of(page: Element) -> list[str]:
    """Return the text of each timeline entry, in order."""
    return [one.told for one in page.all("li") if one.attributes.get("class", "").startswith("k-")]


async def test_agent_list_shows_claims_and_activity_of_each_agent(tmp_path: Path) -> None:
    """behaviour 235: every page renders, even with an empty vault."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        assert "No agent has connected yet." in (await person.look("/console/agents")).text
        assert "No agent has this name" in (await person.look("/console/agents/nobody", 404)).text
        await person.look("/console/agents/nobody?show=all", 404)
        await call("lithos_agent_register", id="ann", name="Ann", type="codex")
        await call("lithos_agent_register", id="bob", type="claude-code")
        note = await person.lithos.create("A note", agent="ann")
        await call("lithos_read", id=note, agent_id="bob")
        task = (await call("lithos_task_create", title="The task", agent="ann"))["task_id"]
        await call("lithos_task_claim", task_id=task, aspect="code", agent="bob")
        await person.lithos.audit()  # flushed
        page = await person.look("/console/agents")
        rows = [[cell.told for cell in row.all("td")] for row in page.all("tr")]
        told = {row[0].split()[0]: row[1:] for row in rows if row}
        assert told["ann"] == ["codex", "just now", "nothing", "0", "0", "1"]
        assert told["bob"] == ["claude-code", "just now", "The task code", "1", "0", "0"]
        codex = (await person.look("/console/agents?type=codex")).links
        assert ("/console/agents/ann" in codex, "/console/agents/bob" in codex) == (True, False)


async def test_archived_agents_are_folded(tmp_path: Path) -> None:
    """behaviour 333"""
    async with visiting(tmp_path) as person:
        for name in ("ann", "bob"):
            await person.lithos.call("lithos_agent_register", id=name, name=name.title())
        await person.lithos.call("lithos_agent_archive", id="ann", agent="bob")
        page = await person.look("/console/agents")
        told = [row.all("td")[0].told for row in page.all("tr") if row.all("td")]
        assert ("bob Bob" in told, "ann Ann" in told) == (True, False)
        (folded,) = [one for one in page.all("details") if "archived" in one.told]
        assert "ann" in folded.told
        assert "archived" in (await person.look("/console/agents/ann")).text
        assert "bob archived ann" in (await person.look("/console/?type=agent.archived")).text


async def test_timeline_shows_all_activities_of_an_agent_newest_first(tmp_path: Path) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock, settled=True) as person:

        async def call(tool: str, **arguments: object) -> dict[str, str]:
            clock.advance(minutes=1)
            answer: dict[str, str] = await person.lithos.call(tool, **arguments)
            assert answer.get("status") != "error", answer
            return answer

        source = (await call("lithos_write", title="Source", content="Numbers.", agent="bob"))["id"]
        await person.lithos.server.searchable()
        task = (await call("lithos_task_create", title="The task", agent="bob"))["task_id"]
        await call("lithos_task_claim", task_id=task, aspect="code", agent="ann")
        await call("lithos_search", query="numbers", agent_id="ann")
        await call("lithos_retrieve", query="which numbers", agent_id="ann", task_id=task)
        await call("lithos_read", id=source, agent_id="ann")
        note = (await call("lithos_write", title="Report", content="One.", agent="ann"))["id"]
        await call("lithos_write", id=note, title="Report", content="Two.", agent="ann")
        await call("lithos_finding_post", task_id=task, agent="ann", summary="Written", knowledge_id=note)
        await call("lithos_task_complete", task_id=task, agent="ann", outcome="Well", cited_nodes=[source])
        await call("lithos_delete", id=note, agent="ann")
        html = await person.page("/console/agents/ann")
        page = await person.look("/console/agents/ann")
        assert [one.text for one in page.all("h2", id="day-1")] == ["Wednesday, 4 March 2026"]
        told = entries_of(page)
        expected = (
            "deleted Report version 3", "completed The task : Well cited Source",
            "reported on The task with Report : Written", "changed Report version 2",
            "created Report version 1", "read Source", "asked which numbers 1 note for The task",
            "searched numbers and was shown 1 note: Source", "claimed The task code",
        )  # fmt: skip
        assert [
            line.split(" ", 1)[1].startswith(part) for line, part in zip(told, expected, strict=True)
        ] == [True] * len(expected), told
        # The timeline shows what ann read before this write.
        assert "in the hour before: asked which numbers ; read Source · all earlier activity" in told[4]
        assert "read no other notes since the change below" in told[3]
        assert f"/console/notes/{note}?version=1" in page.links

        for view, count in (("read", 1), ("search", 2), ("write", 3), ("task", 3)):
            assert len(entries_of(await person.look(f"/console/agents/ann?show={view}"))) == count, view
        (before,) = set(re.findall(r'href="(\?before=[^"]+)"', html.split("created</span>")[1])[:1])
        ahead = entries_of(await person.look(f"/console/agents/ann{before}"))
        assert ahead == told[5:]


async def test_searches_are_shown_even_without_results(tmp_path: Path) -> None:
    """docs/spec/console.md §2: the page shows an agent's queries next to a retrieval of the same time."""
    async with visiting(tmp_path, settled=True) as person:
        call = person.lithos.call
        await call("lithos_write", title="Source", content="Numbers.", agent="bob")
        await person.lithos.server.searchable()
        await call("lithos_search", query="numbers", agent_id="ann")
        await call("lithos_retrieve", query="which numbers", agent_id="ann")
        await call("lithos_search", query="zebra", mode="fulltext", agent_id="ann")
        await call("lithos_search", query="of another", mode="fulltext", agent_id="bob")
        page = await person.look("/console/agents/ann?show=search")
        assert sorted(line.split(" ", 1)[1] for line in entries_of(page)) == [
            "asked which numbers 1 note",
            "searched numbers and was shown 1 note: Source",
            "searched zebra and found nothing",
        ]
        assert "/console/search?q=zebra" in page.links


async def test_long_timeline_has_pages_without_gaps(tmp_path: Path) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock, history=HistoryConfig(enabled=False)) as person:
        call = person.lithos.call
        notes = [await person.lithos.create(f"Note {n}", agent="bob") for n in range(5)]
        for n in range(230):
            clock.advance(seconds=7)
            await call("lithos_read", id=notes[n % 5], agent_id="ann")
            if n % 10 == 0:
                await call("lithos_task_create", title=f"Task {n}", agent="ann")
        query, seen = "", list[str]()
        for _ in range(10):
            page = await person.look(f"/console/agents/ann{query}")
            entries = entries_of(page)
            assert len(entries) <= 110
            seen += entries
            query = next((one.attributes["href"] for one in page.all("a", rel="next")), "")
            if not query:
                break
        assert len(seen) == 230 + 23
        assert sum(" read Note" in one for one in seen) == 230
        await person.look("/console/agents/ann?before=yesterday", 400)
        assert "history.enabled is off" in page.text


@pytest.mark.slow
async def test_hostile_agent_names_and_texts_have_no_effect(tmp_path: Path) -> None:
    """behaviour 236: covers agent names, titles, queries and texts on the agent pages."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        for text in HOSTILE:
            await call("lithos_agent_register", id=text, name=text, type=text, metadata={text: [text]})
            note = (
                await call("lithos_write", title=f"pwned {HOSTILE.index(text)}", content=text, agent=text)
            )["id"]
            titled = await call("lithos_write", title=text, content="x", agent=text)
            await call("lithos_read", id=note, agent_id=text)
            await call("lithos_search", query=text, agent_id=text)
            task = (await call("lithos_task_create", title=text, agent=text))["task_id"]
            await call("lithos_retrieve", query=text, agent_id=text, task_id=task)
            await call("lithos_task_claim", task_id=task, aspect=text, agent=text)
            await call("lithos_finding_post", task_id=task, agent=text, summary=text, knowledge_id=text)
            await call(
                "lithos_task_complete", task_id=task, agent=text, outcome=text, cited_nodes=[text, note]
            )
            if "id" in titled:
                await call("lithos_delete", id=titled["id"], agent=text)
            span = ("", "&span=today", "&span=custom&since=2020-01-01")[HOSTILE.index(text) % 3]
            for path in (f"agents/{quote(text, safe='')}", f"undo?agent={quote(text)}{span}"):
                assert "pwned" in (await person.look(f"/console/{path}")).text, path
        assert (await person.look("/console/agents")).text.count("pwned") >= len(HOSTILE)
