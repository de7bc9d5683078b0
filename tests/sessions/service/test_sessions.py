"""The service `Sessions`: searches, filters, the caller's reach, lists and excerpts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import Principal
from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.sessions.service.sessions import reach_of
from tests.sessions.transcripts import Index, answer, following, prompt

pytestmark = pytest.mark.autojump


@asynccontextmanager
async def _two_projects(folder: Path) -> AsyncIterator[Index]:
    async with following(folder) as index:
        index.put(
            "shop.jsonl",
            prompt("Why are customers signed out at midnight?", "shop"),
            answer("The login cookie expires at local midnight. It should use UTC.", "shop"),
            prompt("Then the database migration for invoices, please.", "shop", at="11:00"),
        )
        index.put(
            "bakery.jsonl",
            prompt("How hot is the oven for the cookie recipe?", "bakery", "/srv/made-up/bakery", "10:00"),
            answer("Bake the cookies at 180 degrees for twelve minutes.", "bakery", at="10:01"),
        )
        index.put("none.jsonl", prompt("A cookie without a project", "none", "/", "10:30"))
        await index.follower.caught_up()
        yield index


@pytest.fixture
def index(tmp_path: Path) -> AbstractAsyncContextManager[Index]:
    return _two_projects(tmp_path)


async def test_turn_is_found_by_its_words(index: Index) -> None:
    hit = (await index.sessions.search("login cookie expires at local midnight"))[0]
    assert (hit.session.project, hit.number, hit.strength) == ("shop", 2, "strong")
    assert hit.snippet == "The login cookie expires at local midnight. It should use UTC."


async def test_turn_is_found_by_its_meaning(index: Index) -> None:
    found = await index.found("baking temperature of biscuits")
    assert found[0] == "Bake the cookies at 180 degrees for twelve minutes."


async def test_unrelated_question_has_no_strong_hit(index: Index) -> None:
    hits = await index.sessions.search("quarterly revenue of the steel industry in Norway")
    assert [hit for hit in hits if hit.strength == "strong"] == []


async def test_project_filter_finds_only_sessions_of_the_project(index: Index) -> None:
    async def projects(key: str) -> set[str | None]:
        hits = await index.sessions.search("cookie", ProjectFilter(key))
        return {hit.session.project for hit in hits}

    assert await projects("bakery") == {"bakery"}
    assert await projects("") == {None}
    assert await projects("unknown") == set()


async def test_since_leaves_out_older_turns(index: Index) -> None:
    since = datetime(2026, 11, 28, 10, 30, tzinfo=UTC)
    found = await index.found("cookie database migration oven", since=since)
    assert set(found) == {
        "A cookie without a project",
        "Then the database migration for invoices, please.",
    }
    assert await index.found("cookie", since=datetime(2026, 12, 1, tzinfo=UTC)) == []


async def test_limited_agent_sees_only_sessions_of_its_projects(index: Index) -> None:
    """docs/spec/sessions.md §5: neither searches nor lists nor excerpts show more."""
    scopes = WriteScopes(
        agents={"baker": Scope(write=("bakery/",))}, projects={"bakery": "bakery", "shop": "shop"}
    )
    reach = reach_of(scopes, Principal("token", "write", "baker"), "baker")
    hits = await index.sessions.search("cookie midnight oven", reach=reach)
    assert {hit.session.project for hit in hits} == {"bakery"}
    page = await index.sessions.list(reach=reach)
    assert ([each.project for each in page.sessions], page.total) == (["bakery"], 1)
    for session in (await index.sessions.list()).sessions:
        part = await index.sessions.turns(session.id, reach=reach)
        assert (part is not None) == (session.project == "bakery")


async def test_caller_without_a_scope_sees_all_sessions(index: Index) -> None:
    reach = reach_of(WriteScopes(projects={"shop": "shop"}), Principal("token", "write", "ann"), "ann")
    assert (await index.sessions.list(reach=reach)).total == 3


async def test_sessions_are_listed_by_day_client_and_agent(index: Index) -> None:
    listed = index.sessions.list
    assert [each.project for each in (await listed()).sessions] == ["shop", None, "bakery"]
    assert (await listed(day=date(2026, 11, 28))).total == 3
    assert (await listed(day=date(2026, 11, 27))).total == 0
    assert (await listed(client="claude-code")).total == 3
    assert (await listed(client="codex")).total == 0
    assert (await listed(agent="claude-code/a1")).total == 0
    page = await listed(limit=1, offset=1)
    assert ([each.project for each in page.sessions], page.total) == ([None], 3)


async def test_turns_are_read_with_their_neighbours(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", *[prompt(f"Prompt {n}") for n in range(1, 201)])
        await index.follower.caught_up()
        (session,) = (await index.sessions.list()).sessions

        async def numbers(around: int | None, span: int = 2) -> list[int]:
            part = await index.sessions.turns(session.id, around, span)
            assert part is not None
            assert part.total == 200
            assert all(turn.text == f"Prompt {turn.number}" for turn in part.turns)
            return [turn.number for turn in part.turns]

        assert await numbers(None) == [1, 2, 3, 4, 5]
        assert await numbers(64) == [62, 63, 64, 65, 66]
        assert await numbers(1, 1) == [1, 2]
        assert await numbers(200, 0) == [200]
        assert await numbers(999, 1) == [199, 200]
        assert len(await numbers(100, 1_000)) == 99
        assert await index.sessions.turns("ses_unknown") is None


@pytest.mark.parametrize(("query", "limit"), [("", 10), ("  ", 10), ("cookie", 0), ("cookie", 101)])
async def test_bad_searches_are_refused(tmp_path: Path, query: str, limit: int) -> None:
    async with following(tmp_path) as index:
        with pytest.raises(InvalidInput):
            await index.sessions.search(query, limit=limit)


async def test_since_finds_new_turns_among_many_older_ones(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("old.jsonl", *[prompt(f"cookie cookie {n}", "old", at="08:00") for n in range(300)])
        index.put("new.jsonl", prompt("A remark about one cookie", "new", at="12:00"))
        await index.follower.caught_up()
        since = datetime(2026, 11, 28, 11, tzinfo=UTC)
        assert await index.found("cookie", limit=1, since=since) == ["A remark about one cookie"]
