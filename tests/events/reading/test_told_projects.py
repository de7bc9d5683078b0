"""The projects that hooks name, and the calls without a project that they apply to (behaviour 312)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.model.told_projects import MOST_TOLD, TOLD_KEPT, TOLD_VALID, ToldProject, ToldSessions
from lithos.events.reading.retention import Upkeep
from lithos.events.reading.told_projects import ToldProjects
from lithos.kernel.values.principals import COMMAND, OWNER, Principal
from tests.fakes import START
from tests.servers import Clock, Lithos, serving

SHOP, API = "github.com/acme/shop", "github.com/acme/api"


async def hook(
    lithos: Lithos, session: str, project: str | None, agent: str = "ann", who: Principal = OWNER
) -> None:
    """Make the call of a hook."""
    by = evolve(who, project=project, session=session)
    await lithos.server.tools.call("lithos_context", {"query": "news", "agent": agent}, by)


async def project_of_new_note(
    lithos: Lithos, agent: str = "ann", by: Principal = OWNER, **more: Any
) -> object:
    """Write a note and return its project. The call itself has no project unless `by` has one."""
    number = len(lithos.files())
    arguments = {"title": f"Note {number}", "content": "Text.", "agent": agent, **more}
    answer = await lithos.server.tools.call("lithos_write", arguments, by)
    assert answer is not None
    assert answer["status"] == "created", answer
    return (await lithos.read(answer["id"]))["metadata"].get("project")


async def stored(lithos: Lithos) -> list[tuple[object, ...]]:
    """Return the stored sessions, ordered by time."""
    await lithos.server.get(Coordinator).mailbox.ask(Flush())
    store = lithos.server.get(Coordinator)._store
    return store._reader.execute(
        "SELECT session,agent,project FROM told_projects ORDER BY last_seen"
    ).fetchall()


async def test_hook_names_project_for_calls_without_one(lithos: Lithos) -> None:
    """Only the same agent gets the project, and an explicit project is not changed."""
    assert await project_of_new_note(lithos) is None
    await hook(lithos, "s1", SHOP)
    assert await project_of_new_note(lithos) == SHOP
    assert await project_of_new_note(lithos, " ann ") == SHOP
    assert await project_of_new_note(lithos, "ben") is None
    assert await project_of_new_note(lithos, by=evolve(OWNER, project=API)) == API
    assert await project_of_new_note(lithos, project="") is None
    assert await project_of_new_note(lithos, by=COMMAND) is None, "a person's command"
    assert await project_of_new_note(lithos, by=Principal("t", "write", "ann"), agent="ann") == SHOP


async def test_header_without_session_is_not_remembered(lithos: Lithos) -> None:
    """A client with a fixed header is not a hook, so it does not determine the project of other clients."""
    await project_of_new_note(lithos, by=evolve(OWNER, project=SHOP))
    assert await project_of_new_note(lithos) is None
    await hook(lithos, "s1", None)
    assert lithos.server.get(ToldProjects).rows() == []


async def test_only_an_agent_itself_or_a_writer_names_its_project(lithos: Lithos) -> None:
    """A token that may only read does not decide where the notes of other agents belong."""
    await hook(lithos, "s1", API, who=Principal("reader", "read"))
    assert await project_of_new_note(lithos) is None
    await hook(lithos, "s2", SHOP, who=Principal("ann's", "read", "ann"))
    assert await project_of_new_note(lithos) == SHOP
    await hook(lithos, "s3", SHOP, "unknown")
    assert await project_of_new_note(lithos, "unknown") is None, "several agents may use this name"


async def test_sessions_in_two_projects_give_no_project(tmp_path: Path, clock: Clock) -> None:
    """One agent id works in two projects, so a call may belong to either of them."""
    async with serving(tmp_path, clock=clock) as lithos:
        await hook(lithos, "s1", SHOP)
        await hook(lithos, "s2", SHOP.upper())
        assert str(await project_of_new_note(lithos)).lower() == SHOP, "the same project"
        clock.now += timedelta(hours=1)
        await hook(lithos, "s2", API)
        assert await project_of_new_note(lithos) is None
        clock.now += TOLD_VALID - timedelta(hours=1)
        assert await project_of_new_note(lithos) == API, "the first session is over"
        clock.now += timedelta(hours=2)
        assert await project_of_new_note(lithos) is None


async def test_session_that_changes_its_folder_has_the_new_project(lithos: Lithos) -> None:
    await hook(lithos, "s1", SHOP)
    await hook(lithos, "s1", API)
    assert await project_of_new_note(lithos) == API
    assert [row.project for row in lithos.server.get(ToldProjects).rows()] == [API]


async def test_projects_of_sessions_survive_restart(tmp_path: Path, clock: Clock) -> None:
    async with serving(tmp_path, clock=clock) as lithos:
        await hook(lithos, "s1", SHOP)
        await hook(lithos, "s2", API, "ben")
    async with serving(tmp_path, clock=clock) as lithos:
        rows = lithos.server.get(ToldProjects).rows()
        assert {(row.session, row.agent, row.project) for row in rows} == {
            ("s1", "ann", SHOP),
            ("s2", "ben", API),
        }
        assert {row.last_seen for row in rows} == {clock.now}
        assert await project_of_new_note(lithos) == SHOP


async def test_sessions_are_stored_soon_and_at_most_once_a_minute(tmp_path: Path, clock: Clock) -> None:
    async with serving(tmp_path, clock=clock) as lithos:
        told = lithos.server.get(Coordinator).told
        await hook(lithos, "s1", SHOP)
        assert await stored(lithos) == [("s1", "ann", SHOP)]
        clock.now += timedelta(seconds=59)
        await hook(lithos, "s1", SHOP)
        assert not told.has_unsaved
        clock.now += timedelta(seconds=1)
        lithos.server.get(ToldProjects).tell("s1", "ann", SHOP)
        assert told.has_unsaved


async def test_old_and_surplus_sessions_are_deleted(tmp_path: Path, clock: Clock) -> None:
    """docs/spec/projects.md §7"""
    async with serving(tmp_path, clock=clock) as lithos:
        told = lithos.server.get(ToldProjects)
        for number in range(MOST_TOLD + 20):
            clock.now += timedelta(seconds=1)
            told.tell(f"s{number}", "ann", SHOP)
            if number % 100 == 0:
                await stored(lithos)
        assert len(told.rows()) == MOST_TOLD
        rows = await stored(lithos)
        assert len(rows) == MOST_TOLD
        assert rows[0][0] == "s20"
        for _ in range(TOLD_KEPT.days + 1):  # a clock that jumps ahead deletes nothing
            clock.now += timedelta(days=1)
            told.tell("new", "ben", API)
            await lithos.server.get(Upkeep).look()
        assert await stored(lithos) == [("new", "ben", API)]
        assert [row.session for row in told.rows()] == ["new"]


async def test_tasks_get_project_of_session(lithos: Lithos) -> None:
    await hook(lithos, "s1", SHOP)
    task = await lithos.call("lithos_task_create", title="T", agent="ann")
    found = await lithos.call("lithos_task_get", task_id=task["task_id"])
    assert found["task"]["metadata"] == {"project": SHOP}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("st"), st.sampled_from("PQp"), st.integers(0, 40)),
        max_size=30,
    ),
    st.sampled_from("abc"),
)
def test_agent_has_project_only_if_its_current_sessions_agree(
    calls: list[tuple[str, str, str, int]], agent: str
) -> None:
    """Compare with a plain search through all calls."""
    told, now, last = ToldSessions(), START, dict[str, tuple[str, Any]]()
    for who, session, project, hours in calls:
        now += timedelta(hours=hours)
        told.tell(ToldProject(session, who, project, now))
        if who == agent:
            last[session] = project, now
    current = {project.lower() for project, at in last.values() if now - at < TOLD_VALID}
    found = told.project_of(agent, now)
    assert {found.lower() if found else None} == (current if len(current) == 1 else {None})
    again = ToldSessions(told.rows())
    assert again.project_of(agent, now) == found or found is not None
    assert {*again.rows()} == {*told.rows()}
