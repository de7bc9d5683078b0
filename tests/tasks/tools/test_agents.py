"""`lithos_agent_register`, `lithos_agent_info`, `lithos_agent_list`, and automatic registration."""

from __future__ import annotations

from pathlib import Path

from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving


async def test_repeated_registration_merges_the_agent_data(tmp_path: Path) -> None:
    """behaviour 90"""
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        assert await lithos.call("lithos_agent_info", id="ann") is None
        first = clock.text
        answer = await lithos.call("lithos_agent_register", id="ann", name="Ann", metadata={"k": [1]})
        assert list(answer.items()) == [("success", True), ("created", True)]
        clock.advance(hours=1)
        answer = await lithos.call("lithos_agent_register", id="ann", type="claude", metadata={})
        assert answer == {"success": True, "created": False}
        info = await lithos.call("lithos_agent_info", id="ann")
        expected = [
            ("id", "ann"), ("name", "Ann"), ("type", "claude"), ("first_seen_at", first),
            ("last_seen_at", clock.text), ("metadata", {"k": [1]}), ("archived_at", None),
        ]  # fmt: skip
        assert list(info.items()) == expected
        assert lithos.events() == [("agent.registered", {"agent_id": "ann", "name": "Ann"})] * 2
        await lithos.call("lithos_agent_register", id="bob")
        assert lithos.events()[2:] == [("agent.registered", {"agent_id": "bob", "name": ""})]
    async with serving(tmp_path, clock=clock) as lithos:
        assert await lithos.call("lithos_agent_info", id="ann") == info


async def test_any_change_registers_its_agent_without_an_event(tmp_path: Path) -> None:
    """behaviours 91, 127"""
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        start = clock.text
        await lithos.call("lithos_write", id=MISSING_ID, title="T", content="x", agent="fails")
        await lithos.call("lithos_delete", id=MISSING_ID, agent="deletes")
        await lithos.call("lithos_write", title="T", content="x", agent="refused", status="bad")
        await lithos.call("lithos_read", id=MISSING_ID, agent_id="reads")
        await lithos.call("lithos_search", query="x", agent_id="searches")
        agents = (await lithos.call("lithos_agent_list"))["agents"]
        assert {agent["id"] for agent in agents} == {"fails", "deletes"}
        assert lithos.events() == []
        clock.advance(hours=1)
        await lithos.write(agent="fails")
        info = await lithos.call("lithos_agent_info", id="fails")
        assert (info["first_seen_at"], info["last_seen_at"]) == (start, clock.text)
        assert (info["name"], info["type"], info["metadata"]) == (None, None, {})
        assert (await lithos.call("lithos_agent_register", id="fails"))["created"] is False
    async with serving(tmp_path, clock=clock) as lithos:
        assert (await lithos.call("lithos_agent_info", id="deletes"))["last_seen_at"] == start


async def test_agent_list_is_filtered_and_sorted_by_recent_activity(lithos: Lithos, clock: Clock) -> None:
    """behaviour 91"""
    for name, kind in (("a", "x"), ("b", "y"), ("c", "x")):
        await lithos.call("lithos_agent_register", id=name, type=kind)
        clock.advance(hours=1)
    await lithos.write(agent="a")
    answer = await lithos.call("lithos_agent_list")
    assert list(answer) == ["agents", "total"]
    keys = ["id", "name", "type", "last_seen_at", "first_seen_at", "metadata", "archived_at"]
    assert list(answer["agents"][0]) == keys

    async def ids(**filters: str) -> list[str]:
        return [agent["id"] for agent in (await lithos.call("lithos_agent_list", **filters))["agents"]]

    assert await ids() == ["a", "c", "b"]
    assert await ids(type="x") == ["a", "c"]
    assert await ids(type="X") == []
    assert await ids(active_since="2026-01-01T02:00:00") == ["a", "c"]
    assert await ids(active_since="2026-01-01T03:00:01+00:00") == []
    assert await ids(type="x", active_since="2026-01-01T04:30:00+02:00") == ["a"]
    answer = await lithos.call("lithos_agent_list", active_since="soon")
    assert "active_since" in refusal(answer, "invalid_input")


async def test_blank_agent_ids_are_refused(lithos: Lithos) -> None:
    """behaviour 173"""
    for tool in ("lithos_agent_register", "lithos_agent_info"):
        for blank in ("", " ", "\n"):
            assert "id" in refusal(await lithos.call(tool, id=blank), "invalid_input")


async def listed(lithos: Lithos, **filters: object) -> list[str]:
    return [row["id"] for row in (await lithos.call("lithos_agent_list", **filters))["agents"]]


async def archive(lithos: Lithos, agent_id: str, agent: str) -> dict[str, object]:
    answer: dict[str, object] = await lithos.call("lithos_agent_archive", id=agent_id, agent=agent)
    return answer


async def test_archived_agent_is_hidden_until_it_acts_again(tmp_path: Path) -> None:
    """behaviour 333: the state survives a restart, and a second call changes nothing."""
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        await lithos.call("lithos_agent_register", id="ann", name="Ann")
        clock.advance(hours=1)
        at = clock.text
        answer = await archive(lithos, "ann", "bob")
        assert list(answer.items()) == [
            ("success", True), ("id", "ann"), ("archived_at", at), ("already_archived", False),
        ]  # fmt: skip
        clock.advance(hours=1)
        again = await archive(lithos, " ann ", "bob")
        assert again == answer | {"already_archived": True}
        events = [one for one in lithos.events() if one[0] == "agent.archived"]
        assert events == [("agent.archived", {"agent_id": "ann", "name": "Ann", "archived_at": at})]
    async with serving(tmp_path, clock=clock) as lithos:
        assert await listed(lithos) == ["bob"]
        assert await listed(lithos, include_archived=True) == ["bob", "ann"]
        assert (await lithos.call("lithos_agent_info", id="ann"))["archived_at"] == at
        await lithos.write(agent="ann")
        assert await listed(lithos) == ["bob", "ann"]
        assert (await lithos.call("lithos_agent_info", id="ann"))["archived_at"] is None
        await archive(lithos, "ann", "bob")
        assert await listed(lithos) == ["bob"]
        assert (await lithos.call("lithos_agent_register", id="ann"))["created"] is False
        assert "ann" in await listed(lithos)
    async with serving(tmp_path, clock=clock) as lithos:
        assert (await lithos.call("lithos_agent_info", id="ann"))["archived_at"] is None


async def test_archiving_is_an_activity_unless_it_is_of_itself(lithos: Lithos, clock: Clock) -> None:
    """behaviour 333"""
    await lithos.call("lithos_agent_register", id="ann")
    before = clock.text
    clock.advance(hours=1)
    assert (await archive(lithos, "ann", "ann"))["already_archived"] is False
    info = await lithos.call("lithos_agent_info", id="ann")
    assert (info["last_seen_at"], info["archived_at"]) == (before, clock.text)
    refused = await archive(lithos, "nobody", "bob")
    assert "nobody" in refusal(refused, "agent_not_found")
    assert await listed(lithos) == ["bob"]
    await archive(lithos, "bob", "bob")
    await archive(lithos, "ann", "bob")
    assert await listed(lithos) == ["bob"]


async def test_registration_names_the_active_agent_with_the_same_name(lithos: Lithos) -> None:
    """behaviour 336"""

    async def warnings(agent_id: str, name: str | None = None) -> list[str]:
        answer = await lithos.call("lithos_agent_register", id=agent_id, name=name)
        told: list[str] = answer.get("warnings", [])
        return told

    assert await warnings("one", "Ann") == []
    assert await warnings("one", "Ann") == []
    assert await warnings("two", "Bob") == []
    (warning,) = await warnings("three", "ANN")
    assert "'one'" in warning
    await archive(lithos, "one", "two")
    await archive(lithos, "three", "two")
    assert await warnings("four", "ann") == []
    assert await warnings("five") == []
    assert await warnings("six") == []
