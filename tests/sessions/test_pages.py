"""The console pages of sessions: list, search, conversation, note panel and removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from attrs import evolve

from lithos.kernel.values.principals import OWNER
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.model.session import session_id
from lithos.sessions.settings import SessionsConfig
from tests.fakes import Clock
from tests.server.console.visiting import Visitor, visiting
from tests.sessions.served import DECISION, NOW, QUESTION, SECRET, put_sessions
from tests.sessions.transcripts import prompt

SHOP, BAKERY = session_id("claude-code", "shop"), session_id("claude-code", "bakery")


@asynccontextmanager
async def _visiting(folder: Path, **more: Any) -> AsyncIterator[Visitor]:
    put_sessions(folder / "transcripts")
    config = SessionsConfig(folders=(str(folder / "transcripts"),))
    async with visiting(folder / "data", clock=Clock(NOW), sessions=config, **more) as person:
        await person.lithos.server.get(SessionFollower).caught_up()
        yield person


@pytest.fixture
def person(tmp_path: Path) -> AbstractAsyncContextManager[Visitor]:
    return _visiting(tmp_path)


async def test_sessions_are_listed_by_day_and_filter(person: Visitor) -> None:
    page = await person.page("/console/sessions")
    assert "2026-11-28" in page
    assert page.index(BAKERY) < page.index(SHOP)  # the newest first
    for wanted, shown in (
        ("project=bakery", [BAKERY]),
        ("day=2026-11-28", [BAKERY, SHOP]),
        ("day=2026-11-27", []),
        ("client=codex", []),
        ("client=claude-code&agent=claude-code&project=shop", [SHOP]),
    ):
        found = await person.page(f"/console/sessions?{wanted}")
        assert [each for each in (BAKERY, SHOP) if each in found] == shown, wanted
    assert "such as 2026-11-29" in (await person.get("/console/sessions?day=noon")).text


async def test_question_leads_to_the_turn(person: Visitor) -> None:
    page = await person.look(f"/console/sessions?q={quote(QUESTION)}")
    assert f"/console/sessions/{SHOP}?turn=2#turn-2" in page.links
    for more, is_shown in (("&client=codex", False), ("&day=2026-11-27", False), ("&day=2026-11-28", True)):
        found = await person.page(f"/console/sessions?q={quote(QUESTION)}{more}")
        assert (SHOP in found) == is_shown, more
    assert 'class="badge ok">' in await person.page(f"/console/sessions?q={quote(QUESTION)}")


async def test_session_is_shown_as_a_conversation(person: Visitor) -> None:
    await person.look(f"/console/sessions/{SHOP}?turn=2")
    page = await person.page(f"/console/sessions/{SHOP}?turn=2")
    assert page.index('id="turn-1"') < page.index('id="turn-2"') < page.index(DECISION)
    assert 'aria-current="true"' in page
    assert "&lt;b&gt;now&lt;/b&gt;" in page
    assert "<b>now</b>" not in page
    assert SECRET not in page
    assert '<mark class="secret">[secret: ' in page


async def test_long_session_is_shown_in_parts(tmp_path: Path) -> None:
    async with _visiting(tmp_path) as person:
        said = [
            prompt(f"Prompt <i>{number}</i>" + " word" * 14_000 * (number == 7), "long")
            for number in range(100)
        ]
        (tmp_path / "transcripts" / "long.jsonl").write_text("".join(said))
        await person.lithos.server.get(SessionFollower).caught_up()
        address, seen = f"/console/sessions/{session_id('claude-code', 'long')}", set[int]()
        for first in (1, 42, 83):
            await person.look(f"{address}?first={first}")
            page = await person.page(f"{address}?first={first}")
            seen |= {number for number in range(1, 101) if f'id="turn-{number}"' in page}
            assert (f"?first={first + 41}" in page) == (first < 83)
        assert seen == set(range(1, 101))
        alone = await person.page(f"{address}?turn=8&view=turn")
        assert alone.count('id="turn-') == 1
        assert "further characters were not stored" in alone


async def test_note_leads_to_its_turn_and_back(tmp_path: Path) -> None:
    async with _visiting(tmp_path) as person:
        given = {"title": "Kept", "content": "Kept.", "agent": "claude"}
        caller = evolve(OWNER, session="shop")
        written = await person.lithos.server.tools.call("lithos_write", given, caller)
        assert written is not None
        page = await person.look(f"/console/notes/{written['id']}")
        assert f"/console/sessions/{SHOP}?turn=4#turn-4" in page.links
        back = await person.look(f"/console/sessions/{SHOP}")
        assert f"/console/notes/{written['id']}" in back.links


async def test_session_is_removed_after_a_question(tmp_path: Path) -> None:
    async with _visiting(tmp_path) as person:
        done = await person.submit(f"/console/sessions/{SHOP}/remove")
        assert "was removed from the index" in done.text
        assert SHOP not in done.text
        assert (await person.get(f"/console/sessions/{SHOP}")).status_code == 404
        assert (tmp_path / "transcripts" / "shop.jsonl").exists()


async def test_unknown_session_is_explained(person: Visitor) -> None:
    for name in ("ses_0", "ses_0%23x", "%3Cscript%3E"):
        answer = await person.get(f"/console/sessions/{name}")
        assert answer.status_code == 404
        assert "<script>" not in answer.text.replace("<script src", "")


async def test_page_without_transcripts_says_how_to_add_some(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        assert "lithos sessions add claude-code" in await person.page("/console/sessions")
