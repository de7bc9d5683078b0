"""Passages for prompts: `lithos_search` with `prompt` (behaviour 314, docs/spec/search.md §6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from bench.languages import SHIPPED
from bench.multilingual import read_set
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.values.principals import OWNER
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import PatchNote
from lithos.search.embedding.tokenizer import load_pieces
from lithos.text.words.tokens import count_with
from tests.servers import Clock, Lithos, put_note, serving

PROMPT = "I am back. How do I restore the Heron database from its nightly backup? Then run the linter."
UNRELATED = "Write a Python function that reverses a linked list, with unit tests."
HERON = """Heron dumps its Postgres database every night to the bucket heron-archive.
Dumps are kept for thirty days. To restore, run `restore.sh heron` on the standby host and check the rows."""
#: Notes of other subjects. In a vault of one note no word is rare.
OTHERS = {
    "Release notes": "Releases go out on Tuesdays after the smoke tests. Traffic shifts in steps.",
    "Coffee": "The coffee machine in the kitchen is cleaned on Fridays. Beans are ordered once a month.",
    "Login": "Users sign in with OpenID Connect. Sessions expire after half an hour without activity.",
    "Queue": "Events are published through RabbitMQ, because direct calls to billing timed out too often.",
    "Rate limits": "The public interface allows sixty requests per minute. Others get status 429.",
    "On call": "The rota changes on Mondays at noon. An alert without an answer goes to the second engineer.",
}


async def write(lithos: Lithos, title: str, content: str, **more: Any) -> str:
    answer = await lithos.call("lithos_write", title=title, content=content, agent="writer", **more)
    assert answer["status"] == "created"
    return str(answer["id"])


async def fill(lithos: Lithos, **more: Any) -> str:
    for title, content in OTHERS.items():
        await write(lithos, title, content)
    return await write(lithos, "Heron backups", HERON, path="heron", **more)


async def ask(lithos: Lithos, prompt: str = PROMPT, **more: Any) -> list[dict[str, Any]]:
    answer = await lithos.call("lithos_search", query=prompt, prompt=True, agent_id="reader", **more)
    rows: list[dict[str, Any]] = answer["results"]
    return rows


async def read_log(lithos: Lithos) -> list[str]:
    """Return the notes in the access log that the reader has seen."""
    await lithos.server.get(Coordinator).mailbox.ask(Flush())
    rows = lithos.server.get(CoordinationStore).audit(agent="reader", doc=None, after=None, limit=100)
    return [str(row[2]) for row in rows]


@pytest.mark.parametrize(
    ("language", "unrelated", "words_alone"),
    [
        (
            "de",
            "Wie lange dauert ein Flug von Berlin nach Tokio?",
            "Was ist ein gutes Rezept für Pfannkuchen?",
        ),
        ("vi", "Chuyến bay từ Berlin đến Tokyo mất bao lâu?", "Gợi ý năm cái tên cho một con mèo."),
        ("th", "บินจากเบอร์ลินไปโตเกียวใช้เวลานานเท่าไร", "ใครชนะฟุตบอลโลกปี 1990"),
        ("hi", "बर्लिन से टोक्यो की उड़ान में कितना समय लगता है?", "आसमान नीला क्यों है?"),
    ],
)
async def test_words_that_show_no_subject_in_a_language_do_not_match(
    tmp_path: Path, language: str, unrelated: str, words_alone: str
) -> None:
    """Behaviour 314: a third of the questions, in other words than the notes, get their note."""
    notes = read_set(SHIPPED)[language]
    for number, (title, text) in enumerate(notes.notes):
        put_note(tmp_path, f"{number}.md", f"# {title}\n\n{text}\n")
    async with serving(tmp_path) as lithos:
        assert await ask(lithos, unrelated) == await ask(lithos, words_alone) == []
        given = [(note, await ask(lithos, question)) for _, question, note in notes.questions[:20]]
    found = [(f"{note}.md", rows[0]["path"]) for note, rows in given if rows]
    assert len(found) >= len(given) / 3
    assert sum(right == path for right, path in found) >= 0.8 * len(found)


async def test_prompt_gets_the_passage_of_the_matching_note(lithos: Lithos) -> None:
    heron = await fill(lithos)
    (row,) = await ask(lithos)
    assert (row["id"], row["path"], row["match"]) == (heron, "heron/heron-backups.md", "strong")
    assert "restore.sh heron" in row["snippet"]
    assert await ask(lithos, seen=[row["passage"]]) == []
    assert await ask(lithos, UNRELATED) == []


@pytest.mark.parametrize(
    "prompt",
    [
        "Write a limerick about Heron and everything else that you like today.",
        "Run a check every day at night, and then run it again.",
    ],
)
async def test_common_words_and_one_name_are_not_a_subject(lithos: Lithos, prompt: str) -> None:
    """In a small vault, every word of a note is rare."""
    await fill(lithos)
    assert await ask(lithos, prompt) == []


async def test_only_given_passages_are_recorded(lithos: Lithos) -> None:
    """Hooks ask before each prompt. Most prompts get nothing, and must not fill the access log."""
    heron = await fill(lithos)
    (row,) = await ask(lithos)
    await ask(lithos, UNRELATED)
    await ask(lithos, seen=[row["passage"]])
    assert await read_log(lithos) == [heron]


@pytest.mark.parametrize(
    "more",
    [
        {"access_scope": "agent_private"},
        {"access_scope": "task", "source_task": "t"},
        {"ttl_hours": 1.0},
    ],
)
async def test_private_and_expired_notes_are_never_shown(
    lithos: Lithos, clock: Clock, more: dict[str, Any]
) -> None:
    await fill(lithos, **more)
    clock.now += timedelta(hours=2)
    assert await ask(lithos) == []


async def test_superseded_note_is_never_shown(lithos: Lithos) -> None:
    old = await fill(lithos)
    new = await write(lithos, "Nothing like it", "This text is about something else.")
    await lithos.server.get(Knowledge).write(PatchNote(id=new, agent="w", supersedes=old))
    assert await ask(lithos) == []


async def test_quarantined_note_is_never_shown(lithos: Lithos) -> None:
    heron = await fill(lithos)
    await lithos.call(
        "lithos_write", id=heron, title="Heron backups", content=HERON, agent="w", status="quarantined"
    )
    assert await ask(lithos) == []


async def test_passages_with_names_fit_into_their_tokens(tmp_path: Path) -> None:
    count = count_with(load_pieces())
    async with serving(tmp_path) as running:
        await fill(running)
        title = "Restore the Heron database from its nightly backup " + "λόγος " * 60
        await write(
            running, title, "Restore the Heron database from its nightly backup. " + "数据 x9.{} " * 300
        )
        rows = await ask(running)
        assert rows
        for row in rows:
            assert count(f"{row['title']} ({row['path']})\n{row['snippet']}") <= 190


@pytest.mark.parametrize(
    ("of_note", "at", "is_given"),
    [
        ("github.com/acme/shop", "github.com/acme/shop", True),
        ("github.com/acme/bank", "github.com/acme/shop", False),
        ("", "github.com/acme/shop", True),
        ("github.com/acme/bank", None, True),
    ],
)
async def test_notes_of_other_projects_are_never_shown(
    lithos: Lithos, of_note: str, at: str | None, is_given: bool
) -> None:
    """Behaviours 311, 314."""
    await fill(lithos, metadata={"project": of_note} if of_note else {})
    principal = evolve(OWNER, project=at)
    asked = {"query": PROMPT, "prompt": True}
    answer: Any = await lithos.server.tools.call("lithos_search", asked, principal)
    assert bool(dict(answer)["results"]) == is_given
