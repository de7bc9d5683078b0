"""`lithos_cache_lookup`: hits, stale answers and misses (behaviour 73)."""

from __future__ import annotations

import math
from pathlib import Path

from lithos.search.settings import SearchConfig
from tests.servers import Clock, Lithos, refusal, serving

MISS = {"hit": False, "document": None, "stale_exists": False, "stale_id": None, "because": None}
#: The threshold is lower, because notes with equal text are hard to distinguish in a vault of two or three
#: notes.
TWINS_ANSWER = SearchConfig(cache_confidence=0.65)
QUERY = "how do zebras get their stripes"
TEXT = "How zebras get their stripes: melanocytes in the skin of the zebra make the stripes."
URL = "https://example.org/zebra"


async def look_up(lithos: Lithos, query: str = QUERY, **more: object) -> dict[str, object]:
    answer = await lithos.call("lithos_cache_lookup", query=query, **more)
    candidates = answer.pop("candidates", [])
    assert not (answer["hit"] and candidates), answer
    assert list(answer) == ["hit", "document", "stale_exists", "stale_id", "probability", "because"], answer
    chance = answer.pop("probability")
    assert (chance is None) == (answer["because"] != "match"), answer
    return answer


async def test_fresh_answer_is_a_cache_hit(lithos: Lithos, clock: Clock) -> None:
    """behaviour 73"""
    assert await look_up(lithos) == MISS
    note = await lithos.create("Zebra stripes", TEXT, tags=["zoo"], confidence=0.8, ttl_hours=2)
    answer = await look_up(lithos)
    document = answer.pop("document")
    assert answer == {"hit": True, "stale_exists": False, "stale_id": None, "because": "match"}
    expiry = Clock(clock.text)
    expiry.advance(hours=2)
    assert isinstance(document, dict)
    assert list(document.items()) == [
        ("id", note), ("title", "Zebra stripes"), ("content", TEXT), ("confidence", 0.8),
        ("updated_at", clock.text), ("expires_at", expiry.text), ("tags", ["zoo"]), ("source_url", ""),
    ]  # fmt: skip
    assert await look_up(lithos, "income tax return forms") == MISS
    assert await look_up(lithos, " ") == MISS
    assert await lithos.audit() == []
    assert (await lithos.call("lithos_stats"))["agents"] == 1


async def test_stale_answer_is_reported_with_its_id(tmp_path: Path, clock: Clock) -> None:
    """behaviour 73"""
    async with serving(tmp_path, clock=clock, search=TWINS_ANSWER) as lithos:
        note = await lithos.create("Zebra stripes", TEXT, ttl_hours=2)
        clock.advance(hours=2)
        assert (await look_up(lithos))["hit"]
        clock.advance(microseconds=1)
        assert await look_up(lithos) == MISS | {"stale_exists": True, "stale_id": note}
        fresh = await lithos.create("Zebra skin", TEXT)
        answer = await look_up(lithos)
        assert answer["document"]["id"] == fresh
        assert (answer["stale_exists"], answer["stale_id"]) == (False, None)


async def test_note_older_than_the_maximum_age_is_stale(lithos: Lithos, clock: Clock) -> None:
    """behaviour 73"""
    note = await lithos.create("Zebra stripes", TEXT)
    clock.advance(hours=3)
    for age in (3, 3.5, "4", math.inf, None):
        assert (await look_up(lithos, max_age_hours=age))["hit"]
    assert (await look_up(lithos, max_age_hours=2.9))["stale_id"] == note


async def test_minimum_confidence_filters_and_highest_confidence_wins(tmp_path: Path, clock: Clock) -> None:
    """behaviour 73"""
    async with serving(tmp_path, clock=clock, search=TWINS_ANSWER) as lithos:
        low = await lithos.create("Zebra stripes low", TEXT, confidence=0.3, ttl_hours=1)
        assert await look_up(lithos) == MISS
        assert (await look_up(lithos, min_confidence=0.3))["hit"]
        clock.advance(hours=2)
        assert await look_up(lithos) == MISS
        assert (await look_up(lithos, min_confidence=0))["stale_id"] == low
        await lithos.call("lithos_delete", id=low, agent="ann")
        await lithos.create("Zebra stripes", TEXT, confidence=0.6)
        best = await lithos.create("Other words on zebra stripes", TEXT, confidence=0.9)
        await lithos.create("Zebra stripes as well", TEXT, confidence=0.9 - 1e-9)
        assert (await look_up(lithos, limit=10))["document"]["id"] == best
        assert (await look_up(lithos, limit=10**18))["document"]["id"] == best
        assert await look_up(lithos, min_confidence=0.95, limit=10) == MISS


async def test_owner_of_the_source_url_is_the_first_candidate(lithos: Lithos, clock: Clock) -> None:
    """behaviour 73"""
    other = await lithos.create("Zebra stripes", TEXT, tags=["zoo"])
    owner = await lithos.create("Page", "Of something else.", source_url=URL, tags=["a", "b"], confidence=0.6)
    answer = await look_up(lithos, source_url=URL + "/?utm_source=x")
    assert (answer["document"]["id"], answer["document"]["source_url"]) == (owner, URL)
    # The owner of the URL is the only candidate, even if the confidence of the note is too low.
    assert await look_up(lithos, source_url=URL, min_confidence=0.7) == MISS
    assert (await look_up(lithos, source_url=URL, tags=["a", "b"]))["document"]["id"] == owner
    # If a tag is missing, or no note has the URL, semantic similarity decides.
    assert (await look_up(lithos, source_url=URL, tags=["zoo"]))["document"]["id"] == other
    assert await look_up(lithos, source_url=URL, tags=["a", "zoo"]) == MISS
    assert (await look_up(lithos, source_url=URL + "/none"))["document"]["id"] == other
    assert (await look_up(lithos, source_url=""))["document"]["id"] == other
    clock.advance(hours=5)
    assert (await look_up(lithos, source_url=URL, max_age_hours=1))["stale_id"] == owner


async def test_invalid_cache_lookup_arguments_are_refused(lithos: Lithos) -> None:
    """behaviour 73"""
    bad: dict[str, tuple[object, ...]] = {
        "max_age_hours": (0, -1, math.nan),
        "min_confidence": (-0.1, 1.1, math.nan),
        "limit": (0, -1),
        "source_url": ("ftp://x",),
        "max_length": (-1,),
    }
    for name, values in bad.items():
        for value in values:
            answer = await lithos.call("lithos_cache_lookup", query=QUERY, **{name: value})
            assert name in refusal(answer, "invalid_input")


async def test_nearest_candidate_is_returned_first(lithos: Lithos, clock: Clock) -> None:
    """behaviour 73: the nearest candidate wins if several answers are equally confident or all are stale."""
    far = await lithos.create("Savanna", "Of zebras and their stripes, and lions, and grass.", ttl_hours=1)
    near = await lithos.create(QUERY, TEXT, ttl_hours=1)
    rows = await lithos.call("lithos_search", query=QUERY, mode="semantic")
    assert [row["id"] for row in rows["results"]] == [near, far]
    assert (await look_up(lithos))["document"]["id"] == near
    clock.advance(hours=2)
    assert (await look_up(lithos))["stale_id"] == near
    assert (await look_up(lithos, limit=1, min_confidence=1))["stale_id"] == near


async def test_merely_similar_note_is_not_an_answer(tmp_path: Path) -> None:
    """behaviour 264, search.cache_confidence: an answer contains the words of the question.

    A note with only the same topic is not an answer.
    """
    near = "how much does a zebra weigh at birth"
    async with serving(tmp_path / "a") as lithos:
        await lithos.create("Zebra stripes", TEXT, ttl_hours=1)
        assert await lithos.found(near, mode="semantic") == ["Zebra stripes"]
        assert await look_up(lithos, near) == MISS
        assert (await look_up(lithos, "What are the stripes of a zebra?"))["hit"]
    async with serving(tmp_path / "b", search=SearchConfig(cache_confidence=0)) as lithos:
        await lithos.create("Zebra stripes", TEXT)
        assert (await look_up(lithos, near))["hit"]


async def test_passage_of_a_note_may_be_the_answer(lithos: Lithos) -> None:
    """behaviour 264"""
    parts = ["## Care\n" + "Brush the coat twice a week and look at the hooves. " * 12]
    parts += ["## Prices\n" + "A saddle costs three hundred coins at the market in spring. " * 12]
    parts += ["## Food\n" + "Feed hay and a handful of oats in the evening. " * 12]
    note = await lithos.create("Zebra keeping", "\n\n".join(parts))
    assert (await look_up(lithos, "care of the coat when keeping a zebra"))["document"]["id"] == note


async def test_note_cited_for_a_similar_question_is_a_hit(lithos: Lithos) -> None:
    """behaviour 264: the reason (`because`) is `cited_before` until the citation is forgotten."""
    asked, again = "who carries the green umbrella on Mondays", "on Mondays who carries the green umbrella"
    note = await lithos.create("Rota", "Ada, then Bob, then Cleo.", tags=["team"])
    await lithos.create("Bicycles", "Two of them have a flat tyre.")
    assert await look_up(lithos, again) == MISS
    for _ in range(2):
        task = (await lithos.call("lithos_task_create", title="T", agent="ann"))["task_id"]
        await lithos.call(
            "lithos_finding_post", task_id=task, agent="ann", summary="this helps", knowledge_id=note
        )
        found = await lithos.call("lithos_retrieve", query=asked, task_id=task, agent_id="ann")
        assert note in [row["id"] for row in found["results"]]
        await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=[note])
    answer = await look_up(lithos, again)
    assert (answer["document"]["id"], answer["because"]) == (note, "cited_before")
    assert await look_up(lithos, again, tags=["other"]) == MISS
    assert await look_up(lithos, "how does a bicycle stay upright") == MISS
    await lithos.call("lithos_delete", id=note, agent="ann")
    assert await look_up(lithos, again) == MISS


async def test_cache_miss_lists_the_best_candidates(lithos: Lithos, clock: Clock) -> None:
    """behaviour 306: uncertain and stale candidates come first, each with one line of its best passage."""
    assert "candidates" not in await lithos.call("lithos_cache_lookup", query=QUERY)
    sure = await lithos.create("Zebra stripes", f"Of horses.\n\n{TEXT}", confidence=0.4, ttl_hours=1)
    others = [await lithos.create(f"Zebra {number}", f"{number} zebras." * 80) for number in range(4)]
    hidden = await lithos.create("Zebra skin", TEXT, status="quarantined", confidence=0.1)
    for more in ({}, {"min_confidence": 0.45}, {"min_confidence": 0.0, "limit": 1}):
        answer = await lithos.call("lithos_cache_lookup", query=QUERY, **more)
        if answer["hit"]:  # With a minimum confidence of 0.0, the note is a hit.
            assert "candidates" not in answer
            clock.advance(hours=2)
            answer = await lithos.call("lithos_cache_lookup", query=QUERY, **more)
            assert answer["stale_exists"]
        named = answer["candidates"]
        assert [list(each) for each in named] == [["id", "title", "snippet"]] * 3
        assert named[0] == {"id": sure, "title": "Zebra stripes", "snippet": f"Of horses. {TEXT}"}
        assert {each["id"] for each in named[1:]} < set(others)
        assert hidden not in {each["id"] for each in named}
        assert all(len(each["snippet"]) <= 120 and "\n" not in each["snippet"] for each in named)


async def test_cache_miss_for_a_source_url_lists_the_owner_note(lithos: Lithos) -> None:
    """behaviour 306"""
    owner = await lithos.create("Page", TEXT, source_url=URL, confidence=0.2)
    answer = await lithos.call("lithos_cache_lookup", query="", source_url=URL)
    assert answer["candidates"] == [{"id": owner, "title": "Page", "snippet": TEXT}]
    await lithos.call("lithos_note_update", id=owner, agent="ann", status="quarantined")
    answer = await lithos.call("lithos_cache_lookup", query="", source_url=URL)
    assert "candidates" not in answer
