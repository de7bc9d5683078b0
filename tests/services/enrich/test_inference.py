"""Edges that a language model proposes, and all the ways in which it may not answer."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from lithos.config.sections import LcmaConfig, LlmConfig
from lithos.core.learning.memory import SpendTokens
from tests.servers import Clock, Lithos, serving
from tests.services.chat_server import ChatServer, chatting, completion, http, judging, saying
from tests.services.enrich.test_enrichment import drain

KEY = "sk-very-secret-0123456789"
#: Similar enough to be neighbours, and different enough.
TEXTS = {
    "Coffee brewing": "Water for coffee should be just below boiling when it is poured over the grounds.",
    "Espresso": "Espresso is coffee brewed with hot water under pressure through finely ground beans.",
    "Grinding beans": "Coffee beans are ground finer for [[Espresso]], and coarser for a French press.",
}


@asynccontextmanager
async def inferring(
    data: Path, chat: ChatServer, clock: Any = None, **settings: Any
) -> AsyncIterator[Lithos]:
    given = {"min_similarity": 0.2, "max_similarity": 0.98, "timeout_seconds": 5.0} | settings
    llm = LlmConfig(**({"base_url": chat.url, "model": "judge-1", "api_key": KEY} | given))
    async with serving(data, clock=clock or Clock(), lcma=LcmaConfig(llm=llm)) as lithos:
        yield lithos


async def write_all(lithos: Lithos, folder: str = "drinks") -> dict[str, str]:
    return {title: await lithos.create(title, text, path=f"{folder}/") for title, text in TEXTS.items()}


async def edges(lithos: Lithos, **wanted: str) -> list[dict[str, Any]]:
    return (await lithos.call("lithos_edge_list", **wanted))["edges"]


async def edges_of(lithos: Lithos, ids: dict[str, str]) -> list[dict[str, Any]]:
    return [edge for note in ids.values() for edge in await edges(lithos, from_id=note)]


async def test_a_model_is_asked_once_about_each_note_and_its_edges_are_kept(tmp_path: Path) -> None:
    async with chatting() as chat, inferring(tmp_path, chat) as lithos:
        ids = await write_all(lithos)
        await drain(lithos)
        assert sorted(chat.subjects()) == sorted(TEXTS)
        assert set(chat.paths) == {"/v1/chat/completions"}
        assert {headers["authorization"] for headers in chat.headers} == {f"Bearer {KEY}"}
        question = chat.questions[0]
        assert (question["model"], question["max_tokens"]) == ("judge-1", 1024)
        assert question["response_format"] == {"type": "json_object"}
        found = await edges(lithos, type="supports")
        assert {(edge["from_id"], edge["to_id"]) for edge in found} == {
            (one, other) for one in ids.values() for other in ids.values() if one != other
        }
        assert {edge["provenance_type"] for edge in found} == {"inferred"}
        assert {edge["namespace"] for edge in found} == {"drinks"}
        evidence = json.loads(found[0]["evidence"])
        assert evidence == {"rationale": "so", "model": "judge-1", "confidence": 0.9}
        await drain(lithos)
        assert len(chat.questions) == len(TEXTS)
        await lithos.call(
            "lithos_note_update", id=ids["Espresso"], agent="a", tags=["new"]
        )  # another version
        await drain(lithos)
        assert chat.subjects()[len(TEXTS) :] == ["Espresso"]


async def test_only_near_but_not_equal_notes_of_the_namespace_are_compared(tmp_path: Path) -> None:
    narrow = {"neighbour_k": 2, "snippet_chars": 60, "max_similarity": 0.8}
    async with chatting() as chat, inferring(tmp_path, chat, **narrow) as lithos:
        await write_all(lithos)
        await lithos.create("Coffee brewing elsewhere", TEXTS["Coffee brewing"], path="other/")
        await lithos.create("Coffee brewing again", TEXTS["Coffee brewing"], path="drinks/")
        await lithos.create("Tax law", "Depreciation of office furniture in annual accounts.", path="drinks/")
        await drain(lithos)
        position = chat.subjects().index("Espresso")
        assert len(chat.shown(position)) == 2
        everything = {title for number in range(len(chat.questions)) for title in chat.shown(number)}
        assert "Tax law" not in everything
        assert "Coffee brewing elsewhere" not in everything
        texts = [note["text"] for note in json.loads(chat.questions[0]["messages"][1]["content"])["notes"]]
        assert {len(text) for text in texts} == {60}
        # Its copy is too similar to be worth a question.
        assert "Coffee brewing again" not in chat.shown(chat.subjects().index("Coffee brewing"))
        assert "Coffee brewing again" in everything


async def reset(stream: trio.SocketStream, question: dict[str, Any]) -> None:
    await stream.aclose()


async def hang(stream: trio.SocketStream, question: dict[str, Any]) -> None:
    await trio.sleep_forever()


async def trickle(stream: trio.SocketStream, question: dict[str, Any]) -> None:
    """Alive, but it would take for ever."""
    await stream.send_all(http(b"", length=10_000))
    while True:
        await stream.send_all(b" ")
        await trio.sleep(0.01)


async def flood(stream: trio.SocketStream, question: dict[str, Any]) -> None:
    await stream.send_all(http(b"", length=1 << 30))
    while True:
        await stream.send_all(b"x" * 65536)


OUTAGES = {
    "500": saying(http(f'{{"error": "{KEY}"}}'.encode(), "500 Internal Server Error")),
    "401": saying(http(f'{{"error": "Incorrect API key {KEY}"}}'.encode(), "401 Unauthorized")),
    "redirect": saying(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
    "hang": hang,
    "trickle": trickle,
    "flood": flood,
    "reset": reset,
    "no_http": saying(b"220 mail.example ESMTP\r\n"),
    "cut_off": saying(http(b'{"choices": [{"message"', length=500)),
    "truncated_json": saying(http(b'{"choices": [{"message": {"content": "{}')),
    "login_page": saying(http(b"<html>Please log in</html>")),
    "no_choices": saying(http(b'{"choices": []}')),
    "no_text": saying(http(b'{"choices": [{"message": {"content": null}}]}')),
    "list": saying(http(b"[]")),
}


@pytest.mark.parametrize("endless", [False, True])
async def test_an_outage_skips_inference_only_and_it_is_made_up_for_later(
    tmp_path: Path, endless: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"timeout_seconds": 0.3 if endless else 30.0, "daily_token_budget": 1_000_000}
    outages = {name: way for name, way in OUTAGES.items() if (name in ("hang", "trickle")) is endless}
    async with chatting() as chat, inferring(tmp_path, chat, **settings) as lithos:
        for outage, behave in outages.items():
            ids = await write_all(lithos)
            drains = 4 if outage in ("500", "hang") else 1  # more than a note has attempts
            chat.behave = behave
            chat.questions.clear()
            caplog.clear()
            with caplog.at_level(logging.DEBUG):
                for _ in range(drains):
                    await drain(lithos)
            assert len(chat.questions) == drains, outage  # one per drain: it is not asked again in vain
            assert await edges_of(lithos, ids) == [], outage
            assert "Espresso" in (await lithos.read(ids["Grinding beans"]))["metadata"]["entities"]
            logged = " ".join(str(vars(record)) for record in caplog.records)
            assert "asked again at a later drain" in logged, outage
            assert KEY not in logged, outage
            chat.behave = judging()
            await drain(lithos)
            found = await edges_of(lithos, ids)
            assert {(edge["from_id"], edge["to_id"]) for edge in found} == set(
                permutations(ids.values(), 2)
            ), outage
            for note in ids.values():
                await lithos.call("lithos_delete", id=note, agent="a")
            await drain(lithos)
            assert await lithos.server.learning.read(lambda tables: tables.queue.length()) == 0


@pytest.mark.parametrize(
    "text",
    ["I am sorry, but", '{"edges": [{"note": 1, "rel', '{"edges": {}}'],
    ids=["prose", "cut_off", "shape"],
)
async def test_a_useless_answer_is_paid_for_once(tmp_path: Path, text: str) -> None:
    async with chatting() as chat, inferring(tmp_path, chat) as lithos:
        await write_all(lithos)
        chat.behave = saying(completion(text, total_tokens=50))
        await drain(lithos)
        await drain(lithos)
        assert len(chat.questions) == len(TEXTS)
        assert await edges(lithos) == []


async def test_nothing_is_written_for_a_note_that_changed_while_the_model_thought(tmp_path: Path) -> None:
    async with chatting() as chat, inferring(tmp_path, chat, max_calls_per_drain=1) as lithos:
        ids = await write_all(lithos)
        (first,) = [ids[title] for title in TEXTS][:1]

        async def meanwhile(stream: trio.SocketStream, question: dict[str, Any]) -> None:
            await lithos.call("lithos_note_update", id=first, agent="a", tags=["changed"])
            await judging()(stream, question)

        chat.behave = meanwhile
        await drain(lithos)
        assert chat.subjects() == ["Coffee brewing"]
        assert await edges(lithos) == []
        chat.behave = judging()
        for _ in range(3):
            await drain(lithos)
        assert sorted(chat.subjects()[1:]) == sorted(TEXTS)
        assert len(await edges(lithos, from_id=first)) == 2


async def test_a_neighbour_that_was_deleted_meanwhile_gets_no_edge(tmp_path: Path) -> None:
    async with chatting() as chat, inferring(tmp_path, chat, max_calls_per_drain=1) as lithos:
        ids = await write_all(lithos)

        async def meanwhile(stream: trio.SocketStream, question: dict[str, Any]) -> None:
            await lithos.call("lithos_delete", id=ids["Espresso"], agent="a")
            await judging()(stream, question)

        chat.behave = meanwhile
        await drain(lithos)
        assert {edge["to_id"] for edge in await edges(lithos)} == {ids["Grinding beans"]}


async def test_calls_per_drain_are_bounded_and_the_rest_waits_without_using_up_attempts(
    tmp_path: Path,
) -> None:
    async with chatting() as chat, inferring(tmp_path, chat, max_calls_per_drain=1) as lithos:
        for number in range(6):
            await lithos.create(f"Coffee {number}", f"{TEXTS['Espresso']} Number {number}.")
        for calls in range(1, 7):
            await drain(lithos)
            assert len(chat.questions) == calls
        assert len(set(chat.subjects())) == 6
        assert await lithos.server.learning.read(lambda tables: tables.queue.length()) == 0


async def test_the_budget_of_a_day_is_never_exceeded_and_a_new_day_has_its_own(tmp_path: Path) -> None:
    clock = Clock("2026-03-04T23:30:00+00:00")
    async with chatting() as chat, inferring(tmp_path, chat, clock, daily_token_budget=8_000) as lithos:
        await write_all(lithos)
        chat.behave = judging()
        read = lithos.server.learning.read
        await lithos.server.learning.submit(SpendTokens(day="2026-03-04", tokens=4_000))
        while not chat.questions:
            await drain(lithos)
        tokens, _ = await read(lambda tables: tables.ledgers.spent("2026-03-04"))
        assert tokens == 4_000 + 100 * len(chat.questions)  # what the service said, not what was booked
        await lithos.server.learning.submit(SpendTokens(day="2026-03-04", tokens=3_000, calls=0))
        asked = len(chat.questions)
        await lithos.create("Coffee again", TEXTS["Espresso"] + " Again.", path="drinks/")
        await drain(lithos)
        assert len(chat.questions) == asked
        assert (await read(lambda tables: tables.ledgers.spent("2026-03-04")))[0] <= 8_000
        clock.advance(hours=1)
        await drain(lithos)
        assert "Coffee again" in chat.subjects()[asked:]
        assert (await read(lambda tables: tables.ledgers.spent("2026-03-05")))[1] == len(
            chat.questions
        ) - asked


async def test_a_call_without_an_answer_counts_with_all_that_it_may_have_cost(tmp_path: Path) -> None:
    async with chatting() as chat, inferring(tmp_path, chat, timeout_seconds=0.2) as lithos:
        await write_all(lithos)
        chat.behave = hang
        await drain(lithos)
        tokens, calls = await lithos.server.learning.read(lambda tables: tables.ledgers.spent("2026-03-04"))
        size = sum(len(message["content"].encode()) for message in chat.questions[0]["messages"])
        assert tokens >= size + 1024
        assert calls == 1


async def test_an_unreachable_model_costs_nothing(tmp_path: Path) -> None:
    async with chatting() as chat:
        gone = attrs.evolve(chat, url="http://127.0.0.1:1/v1")
        async with inferring(tmp_path, gone) as lithos:
            await write_all(lithos)
            await drain(lithos)
            assert await lithos.server.learning.read(lambda tables: tables.ledgers.spent("2026-03-04")) == (
                0,
                1,
            )


async def test_edges_of_other_provenance_and_settled_ones_stand(tmp_path: Path) -> None:
    async with chatting() as chat, inferring(tmp_path, chat) as lithos:
        ids = await write_all(lithos)
        one, other = sorted([ids["Espresso"], ids["Coffee brewing"]])
        pair = {"from_id": one, "to_id": other, "type": "contradicts", "namespace": "drinks"}
        await lithos.call("lithos_edge_upsert", **pair, weight=0.25, provenance_type="human")
        chat.behave = judging("contradicts")
        await drain(lithos)
        (kept,) = await edges(lithos, from_id=one, to_id=other)
        assert (kept["weight"], kept["provenance_type"]) == (0.25, "human")
        assert len(await edges(lithos, type="contradicts")) == 3


async def test_without_an_address_nobody_is_asked(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        ids = await write_all(lithos)
        await drain(lithos)
        assert await edges(lithos, from_id=ids["Espresso"]) == []
        assert await lithos.server.learning.read(lambda tables: tables.queue.length()) == 0
