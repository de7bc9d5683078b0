"""Internal names, times and values, which every console page shows in readable words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lithos.kernel.values.principals import PERSON_AGENT, RESERVED
from lithos.notes.settings import AgentsConfig
from lithos.server.console.labels import OWN_AGENTS, agent_name, in_words, with_times, worded
from lithos.upkeep.checks.care import OverviewWarnings
from tests.server.console.visiting import form_of, visiting
from tests.servers import take_up


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("conflict_copy", "conflict copy"),
        ("accepted_dual", "both are right"),
        ("derived_from_ids", "derived from"),
        ("blocked_by_2", "blocked by 2"),
        ("My_Own Type", "My_Own Type"),
        ("", ""),
    ],
)
def test_internal_names_are_shown_in_words(name: str, told: str) -> None:
    assert worded(name) == told


def test_times_in_sentences_are_readable() -> None:
    assert with_times("expired at 2026-11-28T12:10:02.821537+00:00") == "expired at 2026-11-28 12:10 UTC"
    assert with_times("at 2026-11-28T12:10:02Z, and 2026-11-28") == "at 2026-11-28 12:10 UTC, and 2026-11-28"


def test_every_reserved_agent_name_has_a_label() -> None:
    assert RESERVED - OWN_AGENTS.keys() == {PERSON_AGENT, "enrich"}
    assert agent_name("undo") == "Undo"
    assert agent_name("ann") == "ann"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "none"),
        ({}, "none"),
        (True, "on"),
        (["a", "b"], "a, b"),
        ({"read": "r", "write": None}, "read: r; write: none"),
        ({"bot": {"write": ["a/*", "b"], "propose": []}}, "bot: (write: (a/*, b); propose: none)"),
        (["x", ["y", "z"]], "x, (y, z)"),
        (3.5, "3.5"),
    ],
)
def test_settings_are_shown_without_python_syntax(value: object, told: str) -> None:
    assert in_words(value) == told


#: Raw texts that no page may show: internal names, Python syntax, and ISO times.
RAW = re.compile(
    r"\b[a-z]+_[a-z_]+\b|\bnote\.[a-z]+\b|\{'|\['|\bNone\b|\bTrue\b|<built-in|\d{4}-\d\d-\d\dT\d|<bound"
)
#: Setting keys and commands. Pages may show them because people type them.
TYPED = re.compile(r"[a-z]+\.[a-z_.]+|lithos_[a-z_]+")


async def test_console_pages_show_no_raw_names(tmp_path: Path) -> None:
    """Covers warnings, versions, edges, events, settings and agents."""
    scopes = {"bot": {"write": ["projects/*"], "propose": ["*"]}}
    async with visiting(tmp_path, agents=AgentsConfig(agents=scopes)) as person:
        lithos = person.lithos
        one = await lithos.create("Plan", "one\n\ntwo\n\nthree\n\nfour", agent="ann")
        other = await lithos.create("Old plan", "one", agent="ann", derived_from_ids=[one])
        edge = {"weight": 1.0, "namespace": "default", "provenance_actor": "ann"}
        await lithos.call("lithos_edge_upsert", from_id=one, to_id=other, type="is_example_of", **edge)
        made = await lithos.call("lithos_edge_upsert", from_id=one, to_id=other, type="contradicts", **edge)
        await lithos.call(
            "lithos_conflict_resolve", edge_id=made["edge_id"], resolution="accepted_dual", resolver="ann"
        )
        await lithos.write("Plan", "spam", id=one, agent="bad")
        copy = "plan.sync-conflict-20260304-050607-ABCDEFG.md"
        (lithos.knowledge / copy).write_bytes((lithos.knowledge / "plan.md").read_bytes() + b"\nmore\n")
        await take_up(lithos, copy)
        (lithos.knowledge / "outside.md").write_text("# Outside\n\n<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n")
        await take_up(lithos, "outside.md")
        action, fields = form_of(await person.page("/console/undo?agent=bad"), "/console/undo")
        await person.post(action, **fields)
        await lithos.server.get(OverviewWarnings).report(60.0)  # the overview does not wait for this report
        pages = {
            address: await person.look(address)
            for address in (
                "/console/", "/console/system?run=1", "/console/agents", f"/console/notes/{one}",
                f"/console/notes/{other}", "/console/agents/ann", "/console/care?look=1",
                "/console/search?q=plan", "/console/copies", f"/console/graph?note={one}",
            )
        }  # fmt: skip
        overview = pages["/console/"].all("main")[0].told
        assert "1 with a conflict copy" in overview
        assert "Another program left a conflict copy of Plan" in overview
        assert "both are right" in overview
        assert "conflict copy" in pages[f"/console/notes/{one}"].all("ul", "warnings")[0].told
        for address, page in pages.items():
            main = page.all("main")[0]
            for text, element in main.texts():
                shown = [each for each in RAW.findall(text) if not TYPED.fullmatch(each)]
                is_typed = element.tag in ("code", "pre", "option") or element.prose
                above = [element, *element.ancestors()]
                is_key = any(one.tag == "dt" or one.attributes.get("id") == "configuration" for one in above)
                assert is_typed or is_key or not shown, (address, text, element)


async def test_reserved_agents_are_not_shown_as_working(tmp_path: Path) -> None:
    """Reserved agent names appear only in the agent list, where they have readable labels."""
    async with visiting(tmp_path) as person:
        note = await person.lithos.create("Plan", agent="ann")
        tools = person.lithos.server.tools
        for agent in ("cli", "undo"):
            await tools.call("lithos_note_edit", {"id": note, "agent": agent, "op": "append", "text": "x"})
        page = await person.look("/console/")
        (work,) = page.all("section", id="at-work")
        assert [one.text for one in work.all("a", "agent")] == ["ann"]
        agents = await person.look("/console/agents")
        rows = {one.all("td")[0].text: one.all("td")[1].text for one in agents.all("tr") if one.all("td")[1:]}
        assert rows["Command line"] == rows["Undo"] == "Lithos itself"
