"""Benchmark of reach: prompts are the same for a seed, and its figures and first turns are right."""

from __future__ import annotations

from bench.judged import Chunk, Collection
from bench.reach import Outcome, figures
from bench.reach_notes import project_notes
from bench.reach_prompts import Prompt, related, unrelated
from bench.reach_turns import CLIENTS, turns
from lithos.server.mcp.trigger import TRIGGER
from lithos.server.tools.arguments import ToolSpec
from tests.servers import Lithos

NOTES = Collection("n", (Chunk("a", "a", "The pump of the fountain needs new oil every spring. " * 9),), ())


def test_prompts_are_equal_for_the_same_seed() -> None:
    projects, asked = project_notes(1)
    assert project_notes(1)[0].fingerprint() == projects.fingerprint() != project_notes(2)[0].fingerprint()
    assert (
        related(projects, asked, 40, 1) == related(projects, asked, 40, 1) != related(projects, asked, 40, 2)
    )
    assert unrelated(NOTES, 40, 1) == unrelated(NOTES, 40, 1) != unrelated(NOTES, 40, 2)


def test_prompts_have_answers_only_if_they_are_related() -> None:
    assert {prompt.answers for prompt in related(NOTES, [], 5, 1)} == {frozenset({"a"})}
    some = unrelated(NOTES, 8, 1)
    assert ({prompt.answers for prompt in some}, len(some)) == ({frozenset[str]()}, 8)


def test_figures_count_silence_and_right_passages() -> None:
    about, other, none = Prompt("related", "q", frozenset("a")), Prompt("task", "t"), frozenset[str]()
    found = figures(
        [
            *(Outcome(about, frozenset("a"), 9), Outcome(about, frozenset("b"), 7), Outcome(about, none, 0)),
            *(Outcome(other, frozenset("a"), 5), Outcome(other, none, 0)),
        ]
    )
    assert {key: found[key] for key in ("silent", "speaks", "right", "most_tokens")} == {
        "silent": 50.0, "speaks": 66.7, "right": 50.0, "most_tokens": 9
    }  # fmt: skip


async def test_first_turns_show_only_documented_text(lithos: Lithos) -> None:
    tools: list[ToolSpec] = list(lithos.server.tools.listed())
    first = {
        (client.name, turn.tools, turn.with_hook, turn.with_block): turn.text
        for client in CLIENTS
        for turn in turns(client, tools, "BRIEFING")
    }
    assert first["Copilot CLI", "deferred", False, False] == ""
    assert first["Cursor", "deferred", True, False].split("\n") == [
        *(tool.name for tool in tools),
        "BRIEFING",
    ]
    assert ("Zed", "deferred", False, False) not in first
    assert all(TRIGGER in text for (_, _, _, with_block), text in first.items() if with_block)
    assert "inputSchema" in first["Claude Code", "deferred", False, False]
