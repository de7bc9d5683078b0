"""Usage counts of a scripted day. The expected numbers were counted by hand (behaviour 289)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lithos.app.options import parse_arguments
from lithos.app.serving.here import LocalServer
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.values.principals import COMMAND, PERSON_AGENT
from lithos.search.commands_queries import worth
from lithos.server.command.session import CommandSession
from lithos.upkeep.model.worth import COUNTED
from tests.servers import Clock, Lithos, serving

QUESTION = "how is the database backed up"
NOWHERE = ["elsewhere"]


@frozen
class Day:
    """A server after the scripted day, and the briefing tokens of each agent."""

    lithos: Lithos
    clock: Clock
    tokens: dict[str, int]


@asynccontextmanager
async def scripted_day(data: Path) -> AsyncIterator[Day]:
    clock = Clock("2026-03-04T08:00:00+00:00")
    async with serving(data, clock=clock) as lithos:

        async def task(agent: str) -> str:
            return str((await lithos.call("lithos_task_create", title="A task", agent=agent))["task_id"])

        async def complete(task_id: str, agent: str, *cited: str) -> None:
            clock.advance(minutes=1)
            done = await lithos.call(
                "lithos_task_complete", task_id=task_id, agent=agent, cited_nodes=[*cited]
            )
            assert done["success"], done

        async def retrieve(agent: str, query: str, **more: Any) -> dict[str, Any]:
            clock.advance(minutes=1)
            answer = await lithos.call("lithos_retrieve", query=query, agent_id=agent, **more)
            return dict(answer)

        backup = await lithos.create("Backup", "The database is backed up every night.", agent="ann")
        wind = await lithos.create("Wind stations", "They stand on the roof.", agent="ann")
        # Agent ben makes one retrieval for a task, one search with results and one without, and cites a note
        # by ann. He reads two notes, one of them twice.
        first = await task("ben")
        shown = await retrieve("ben", QUESTION, task_id=first)
        assert backup in [row["id"] for row in shown["results"]]
        for query in ("roof", "zzqx"):
            clock.advance(minutes=1)
            await lithos.call("lithos_search", query=query, mode="fulltext", agent_id="ben")
        for note in (backup, backup, wind):
            await lithos.read(note, agent_id="ben")
        await complete(first, "ben", backup)
        # Agent cem asks the same question in a retrieval and in a briefing. The cited note is among the first
        # three results. He also asks twice in a namespace without notes. A request for news is not a
        # question.
        await retrieve("cem", QUESTION)
        await retrieve("cem", QUESTION, namespace_filter=NOWHERE)
        await retrieve("cem", "what is nowhere", namespace_filter=NOWHERE)
        await retrieve("cem", "what is nowhere", namespace_filter=NOWHERE)
        clock.advance(minutes=1)
        brief = await lithos.call("lithos_context", query=QUESTION, agent_id="cem")
        assert backup in [item["id"] for item in brief["items"]]
        clock.advance(minutes=1)
        news = await lithos.call("lithos_context", query=QUESTION, agent_id="cem", since=brief["cursor"])
        # Agent ann cites two of her own notes. Agent cem has posted a finding about one of them.
        second = await task("ann")
        await lithos.call(
            "lithos_finding_post",
            task_id=second,
            agent="cem",
            summary="It is on the roof.",
            knowledge_id=wind,
        )
        await complete(second, "ann", wind, backup)
        # A person who reads a note in the console is not an agent.
        await lithos.server.tools.call("lithos_read", {"id": wind, "agent_id": PERSON_AGENT}, COMMAND)
        # On the next day, there is one read.
        clock.advance(days=1)
        await lithos.read(wind, agent_id="ann")
        yield Day(lithos, clock, {"cem": brief["tokens"] + news["tokens"]})


def counts(row: dict[str, Any]) -> dict[str, int]:
    """Return the counts of a row that are not zero."""
    return {name: row[name] for name in COUNTED if row[name]}


async def test_scripted_day_has_the_expected_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """behaviour 289"""
    async with scripted_day(tmp_path) as day:
        answer: dict[str, Any] = dict(await day.lithos.server.tools.call("lithos_worth", {}, COMMAND) or {})
        rows = {(row["day"], row["agent"]): counts(row) for row in answer["rows"]}
        assert day.tokens["cem"] > 0
        assert rows == {
            ("2026-03-04", "ben"): {
                "retrievals": 1, "searches": 1, "notes_read": 2, "notes_cited": 1, "taken_over": 1,
            },
            ("2026-03-04", "cem"): {
                "retrievals": 4, "briefings": 2, "tokens": day.tokens["cem"], "asked_again": 4,
                "cited_before": 3, "found_again": 2, "found_nothing": 2,
            },
            ("2026-03-04", "ann"): {"notes_cited": 2, "taken_over": 1},
            ("2026-03-05", "ann"): {"notes_read": 1},
        }  # fmt: skip
        assert (answer["since"], answer["until"]) == ("2026-02-27", "2026-03-05")
        assert answer["total"]["notes_cited"] == 3

        async def type_in(*words: str) -> str:
            capsys.readouterr()
            assert (
                await worth(
                    CommandSession(parse_arguments(("worth", *words)), Config()),
                    LocalServer(day.lithos.server),
                )
                == 0
            )
            return capsys.readouterr().out

        lines = (await type_in()).splitlines()
        assert lines[0].split()[:2] == ["day", "agent"]
        assert lines[1].split() == ["2026-03-05", "ann", "0", "0", "0", "0", "1", "0", "0"]
        assert lines[-1] == (
            "Asked again: 4. Cited before: 3. Of these, found among the first three again: 2. "
            "Found nothing again: 2."
        )
        told = json.loads(await type_in("--days", "1", "--json"))
        assert [(row["day"], row["agent"]) for row in told["rows"]] == [("2026-03-05", "ann")]
        day.clock.advance(days=30)
        quiet = "Since 2026-04-04, no agent has searched, read or cited a note.\n"
        assert await type_in("--days", "1") == quiet


async def test_usage_counts_survive_restart_and_old_file_gets_tables(tmp_path: Path) -> None:
    async with scripted_day(tmp_path) as day:
        before = await day.lithos.server.tools.call("lithos_worth", {}, COMMAND)
        clock = day.clock
    async with serving(tmp_path, clock=clock) as lithos:
        assert await lithos.server.tools.call("lithos_worth", {}, COMMAND) == before
