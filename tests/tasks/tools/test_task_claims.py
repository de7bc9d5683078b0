"""`lithos_task_claim`, `lithos_task_renew` and `lithos_task_release` on a complete server."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from lithos.tasks.settings import CoordinationConfig
from tests.memory.tools.task_calls import call, create, record
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving


async def claim(lithos: Lithos, task: str, agent: str = "ann", aspect: str = "code", **more: Any) -> Any:
    """Claim an aspect. Return the answer, which may be a refusal."""
    return await lithos.call("lithos_task_claim", task_id=task, aspect=aspect, agent=agent, **more)


async def claims(lithos: Lithos, task: str) -> list[dict[str, Any]]:
    (row,) = (await call(lithos, "task_status", task_id=task))["tasks"]
    found: list[dict[str, Any]] = row["claims"]
    return found


async def test_claim_lasts_one_hour_and_returns_its_end(lithos: Lithos, clock: Clock) -> None:
    """behaviours 93, 192"""
    task = await create(lithos)
    answer = await claim(lithos, task)
    clock.advance(hours=1)
    assert list(answer) == ["success", "expires_at", "fence", "ttl_minutes"]
    assert answer["ttl_minutes"] == 60
    assert (answer["success"], answer["expires_at"]) == (True, clock.text)
    assert isinstance(answer["fence"], int)
    fence = answer["fence"]
    expected = ("task.claimed", {"task_id": task, "agent": "ann", "aspect": "code", "fence": fence})
    assert lithos.events()[2:] == [expected]
    assert list(lithos.events()[2][1]) == ["task_id", "agent", "aspect", "fence"]


async def test_refusal_for_a_held_aspect_names_holder_and_end(lithos: Lithos, clock: Clock) -> None:
    """behaviours 93, 127, 174"""
    task = await create(lithos)
    held = await claim(lithos, task)
    events = lithos.events()
    answer = await claim(lithos, task, "bob")
    message = refusal(answer, "claim_failed")
    assert list(answer.items())[3:] == [
        ("reason", "held"), ("held_by", "ann"), ("expires_at", held["expires_at"]),
    ]  # fmt: skip
    assert "ann" in message
    assert held["expires_at"] in message
    assert lithos.events() == events
    assert [row["agent"] for row in await claims(lithos, task)] == ["ann"]
    assert (await claim(lithos, task, "bob", "docs"))["success"]
    for spelling in ("Code", " CODE\t"):
        assert refusal(await claim(lithos, task, "bob", spelling), "claim_failed")


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
async def test_unicode_forms_of_an_aspect_count_as_equal(
    lithos: Lithos, clock: Clock, forms: tuple[str, str]
) -> None:
    """behaviour 351: covers claims, renewals and releases."""
    one, other = (normalize(form, "\u00c4rger.md") for form in forms)
    task = await create(lithos)
    await claim(lithos, task, "ann", one)
    assert refusal(await claim(lithos, task, "bob", other.upper()), "claim_failed")
    for tool in ("lithos_task_renew", "lithos_task_release"):
        answer = await lithos.call(tool, task_id=task, aspect=other, agent="ann")
        assert answer["success"] is True
    assert (await claim(lithos, task, "bob", other))["success"]


async def test_unknown_or_closed_task_cannot_be_claimed(lithos: Lithos, clock: Clock) -> None:
    """behaviours 92, 127"""
    done, dropped = await create(lithos), await create(lithos)
    await call(lithos, "task_complete", task_id=done)
    await call(lithos, "task_cancel", task_id=dropped)
    events = lithos.events()
    for task, reason in ((MISSING_ID, "task_not_found"), (done, "task_closed"), (dropped, "task_closed")):
        answer = await claim(lithos, task, "bob")
        assert refusal(answer, "claim_failed")
        assert list(answer.items())[3:] == [("reason", reason)]
    assert lithos.events() == events
    await call(lithos, "task_reopen", task_id=done)
    assert (await claim(lithos, done))["success"]


async def test_repeated_claim_starts_again_with_a_new_fence(lithos: Lithos, clock: Clock) -> None:
    """behaviours 93, 192"""
    task = await create(lithos)
    first = await claim(lithos, task)
    clock.advance(minutes=59)
    second = await claim(lithos, task, ttl_minutes=30)
    assert second["fence"] > first["fence"]
    assert second["expires_at"] == (clock.now + timedelta(minutes=30)).isoformat(timespec="microseconds")
    assert [row["fence"] for row in await claims(lithos, task)] == [second["fence"]]
    assert [event for event, _ in lithos.events()[2:]] == ["task.claimed", "task.claimed"]


async def test_repeated_claim_with_a_shorter_duration_ends_earlier(lithos: Lithos, clock: Clock) -> None:
    """behaviours 93, 96"""
    task = await create(lithos)
    await claim(lithos, task, ttl_minutes=60)
    second = await claim(lithos, task, ttl_minutes=1)
    assert refusal(await claim(lithos, task, "bob"), "claim_failed")
    clock.advance(minutes=1)
    given = await call(lithos, "task_next", agent="bob", aspect="code")
    assert given["task"]["id"] == task
    assert given["fence"] > second["fence"]


async def test_claim_duration_is_limited_instead_of_refused(lithos: Lithos, clock: Clock) -> None:
    """behaviour 95"""
    task = await create(lithos)
    wishes: list[tuple[Any, float]] = [
        (None, 60), (90, 90), (0.5, 0.5), (0.1, 0.1), (0.0999, 1), (0, 1), (-5, 1), (480, 480),
        (481, 480), (1e300, 480), ("30", 30), (1.5, 1.5), ("inf", 480), ("-inf", 1), ("nan", 1),
    ]  # fmt: skip
    for wanted, minutes in wishes:
        until = (clock.now + timedelta(minutes=minutes)).isoformat(timespec="microseconds")
        answer = await claim(lithos, task, ttl_minutes=wanted)
        assert (answer["expires_at"], answer["ttl_minutes"]) == (until, minutes), wanted
        answer = await call(lithos, "task_renew", task_id=task, aspect="code", ttl_minutes=wanted)
        assert (answer["new_expires_at"], answer["ttl_minutes"]) == (until, minutes), wanted


async def test_claim_durations_are_configurable(tmp_path: Path) -> None:
    """behaviour 95"""
    clock = Clock()
    settings = CoordinationConfig(claim_default_ttl_minutes=5, claim_max_ttl_minutes=10)
    async with serving(tmp_path, clock=clock, coordination=settings) as lithos:
        task = await create(lithos)
        for wanted, minutes in ((None, 5), (60, 10)):
            answer = await claim(lithos, task, ttl_minutes=wanted)
            assert datetime.fromisoformat(answer["expires_at"]) == clock.now + timedelta(minutes=minutes)


async def test_expired_claim_is_hidden_and_can_be_taken_over(lithos: Lithos, clock: Clock) -> None:
    """behaviours 96, 192"""
    task = await create(lithos)
    first = await claim(lithos, task, ttl_minutes=10)
    clock.advance(minutes=10, microseconds=-1)
    assert refusal(await claim(lithos, task, "bob"), "claim_failed")
    assert len(await claims(lithos, task)) == 1
    stats = await lithos.call("lithos_stats")
    assert (stats["open_claims"], stats["expired_claims"]) == (1, 0)
    clock.advance(microseconds=1)
    assert await claims(lithos, task) == []
    stats = await lithos.call("lithos_stats")
    assert (stats["open_claims"], stats["expired_claims"]) == (0, 1)
    second = await claim(lithos, task, "bob")
    assert second["fence"] > first["fence"]
    assert [(row["agent"], row["fence"]) for row in await claims(lithos, task)] == [("bob", second["fence"])]
    for tool in ("lithos_task_renew", "lithos_task_release"):
        answer = await lithos.call(tool, task_id=task, aspect="code", agent="ann")
        assert refusal(answer, "claim_not_found")


async def test_renewal_keeps_the_fence_and_emits_no_event(lithos: Lithos, clock: Clock) -> None:
    """behaviours 97, 127, 192"""
    task = await create(lithos)
    held = await claim(lithos, task)
    clock.advance(minutes=30)
    events = lithos.events()
    answer = await call(lithos, "task_renew", task_id=task, aspect="code")
    until = (clock.now + timedelta(hours=1)).isoformat(timespec="microseconds")
    assert list(answer.items()) == [
        ("success", True), ("new_expires_at", until), ("fence", held["fence"]), ("ttl_minutes", 60),
    ]  # fmt: skip
    assert await claims(lithos, task) == [
        {"agent": "ann", "aspect": "code", "expires_at": until, "fence": held["fence"]}
    ]
    assert lithos.events() == events
    clock.advance(minutes=60)
    answer = await lithos.call("lithos_task_renew", task_id=task, aspect="code", agent="ann")
    assert "expired" in refusal(answer, "claim_not_found")
    again = await claim(lithos, task)
    assert again["fence"] > held["fence"]


async def test_claim_of_another_agent_is_not_found(lithos: Lithos, clock: Clock) -> None:
    """behaviours 97, 127"""
    task = await create(lithos)
    await claim(lithos, task)
    events, held = lithos.events(), await claims(lithos, task)
    for tool in ("lithos_task_renew", "lithos_task_release"):
        for where in (
            {"task_id": task, "aspect": "code", "agent": "bob"},
            {"task_id": task, "aspect": "docs", "agent": "ann"},
            {"task_id": MISSING_ID, "aspect": "code", "agent": "ann"},
        ):
            answer = await lithos.call(tool, **where)
            assert refusal(answer, "claim_not_found")
            assert list(answer) == ["status", "code", "message"]
    assert lithos.events() == events
    assert await claims(lithos, task) == held


async def test_release_frees_the_aspect_even_if_the_claim_has_expired(lithos: Lithos, clock: Clock) -> None:
    """behaviours 96, 97"""
    task = await create(lithos)
    for minutes in (5, 90):
        await claim(lithos, task)
        clock.advance(minutes=minutes)
        answer = await call(lithos, "task_release", task_id=task, aspect="code")
        assert list(answer.items()) == [("success", True)]
        told = {"task_id": task, "agent": "ann", "aspect": "code"}
        assert lithos.events()[-1] == ("task.released", told)
        assert await claims(lithos, task) == []
    assert (await claim(lithos, task, "bob"))["success"]


async def test_closed_task_frees_its_claims_without_further_events(lithos: Lithos, clock: Clock) -> None:
    """behaviour 98"""
    other = await create(lithos)
    await claim(lithos, other)
    for close in ("task_complete", "task_cancel"):
        task = await create(lithos)
        await claim(lithos, task)
        await claim(lithos, task, "bob", "docs")
        told = len(lithos.events())
        await call(lithos, close, task_id=task)
        assert len(lithos.events()) == told + 1
        assert await claims(lithos, task) == []
        answer = await lithos.call("lithos_task_renew", task_id=task, aspect="code", agent="ann")
        assert refusal(answer, "claim_not_found")
    assert len(await claims(lithos, other)) == 1
    assert (await record(lithos, other))["status"] == "open"


async def test_claims_and_fences_survive_a_restart(tmp_path: Path) -> None:
    """behaviours 51, 191, 192"""
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        task = await create(lithos)
        last = (await claim(lithos, task))["fence"]
        held = await claims(lithos, task)
    for _ in range(3):
        async with serving(tmp_path, clock=clock) as lithos:
            assert await claims(lithos, task) == held
            assert refusal(await claim(lithos, task, "bob"), "claim_failed")
            fence = (await claim(lithos, task))["fence"]
            assert fence > last
            last, held = fence, await claims(lithos, task)


async def test_blank_claim_arguments_are_refused(lithos: Lithos) -> None:
    """behaviour 173"""
    given = {"task_id": await create(lithos), "aspect": "code", "agent": "bob"}
    for blank in given:
        for tool in ("lithos_task_claim", "lithos_task_renew", "lithos_task_release"):
            assert blank in refusal(await lithos.call(tool, **given | {blank: " "}), "invalid_input")
    assert await lithos.call("lithos_agent_info", id="bob") is None
