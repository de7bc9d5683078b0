"""Worker that lets a language model propose edges. The answers of the model are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trio

from examples import infer_edges
from tests.server.whole import Whole, whole_server

#: The texts are similar enough to be neighbours, but they differ enough to be separate notes.
TEXTS = {
    "Coffee brewing": "Water for coffee should be just below boiling when it is poured over the grounds.",
    "Espresso": "Espresso is coffee brewed with hot water under pressure through finely ground beans.",
    "Grinding beans": "Coffee beans are ground finer for [[Espresso]], and coarser for a French press.",
}
EDGE = {
    "note": 1,
    "relation": "supports",
    "direction": "subject_to_note",
    "confidence": 0.9,
    "rationale": "so",
}


class Model(HTTPServer):
    """A language model that gives one and the same recorded answer to every question."""

    def __init__(self, answer: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer if isinstance(answer, str) else json.dumps({"edges": answer})
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def notes(self) -> list[dict[str, Any]]:
        """Return the subject and the neighbours of each question."""
        return [json.loads(question["messages"][1]["content"]) for question in self.asked]


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.asked.append(json.loads(self.rfile.read(length)))
        self.server.keys.append(self.headers["Authorization"])
        body = json.dumps({"choices": [{"message": {"content": self.server.answer}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output clean."""


@contextmanager
def answering(answer: Any) -> Iterator[Model]:
    with Model(answer) as model:
        thread = Thread(target=model.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


async def run(whole: Whole, model: Model, *options: str) -> None:
    given = [whole.url, model.url, "judge-1", "--min-similarity", "0.2", "--max-similarity", "0.98", *options]
    await trio.to_thread.run_sync(infer_edges.main, given)


async def write_all(whole: Whole) -> dict[str, str]:
    return {title: await whole.lithos.create(title, text, path="drinks/") for title, text in TEXTS.items()}


async def edges(whole: Whole, **wanted: str) -> list[dict[str, Any]]:
    return (await whole.lithos.call("lithos_edge_list", **wanted))["edges"]


async def test_proposed_edges_are_stored_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "a-key")
    async with whole_server(tmp_path) as whole:
        ids = await write_all(whole)
        await whole.lithos.create("Coffee elsewhere", TEXTS["Coffee brewing"], path="other/")
        with answering([EDGE]) as model:
            await run(whole, model)
            found = await edges(whole, type="supports")
            await run(whole, model)
        assert await edges(whole, type="supports") == [
            each | {"updated_at": new["updated_at"]}
            for each, new in zip(found, await edges(whole, type="supports"), strict=True)
        ]
        assert capsys.readouterr().out == "3 questions, 3 edges\n" * 2
        assert {edge["from_id"] for edge in found} == set(ids.values())
        assert {edge["to_id"] for edge in found} <= set(ids.values())
        assert {edge["provenance_type"] for edge in found} == {"inferred"}
        assert {edge["namespace"] for edge in found} == {"drinks"}
        assert json.loads(found[0]["evidence"]) == {"rationale": "so", "model": "judge-1", "confidence": 0.9}
        assert set(model.keys) == {"Bearer a-key"}
        assert "Coffee elsewhere" not in {one["title"] for asked in model.notes() for one in asked["notes"]}


async def test_disputed_edges_and_edges_of_other_agents_are_unchanged(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as whole:
        ids = list((await write_all(whole)).values())
        common = {"namespace": "drinks", "weight": 0.1}
        for one in ids:
            for other in ids:
                kind = {"provenance_type": "asserted"} if one < other else {
                    "provenance_type": "inferred", "conflict_state": "refuted"
                }  # fmt: skip
                if one != other:
                    pair = {"from_id": one, "to_id": other, "type": "supports"}
                    await whole.lithos.call("lithos_edge_upsert", **pair, **common, **kind)
        before = await edges(whole)
        with answering([EDGE]) as model:
            await run(whole, model)
        assert await edges(whole) == before


async def test_number_of_calls_and_length_of_texts_are_limited(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as whole:
        await write_all(whole)
        with answering([]) as model:
            await run(whole, model, "--calls", "1", "--neighbours", "1", "--chars", "40")
        (asked,) = model.notes()
        assert len(asked["notes"]) == 1
        assert len(asked["notes"][0]["text"]) <= 60
        with answering([]) as model:
            await run(whole, model, "--since", "2999-01-01")
        assert model.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        "no JSON", "[]", '{"edges": 1}', [1], [EDGE | {"note": 99}], [EDGE | {"note": "1"}],
        [EDGE | {"note": 0}], [EDGE | {"relation": "hates"}], [EDGE | {"relation": []}],
        [EDGE | {"confidence": 0.1}], [EDGE | {"confidence": 7}], [{}], [EDGE | {"direction": "up"}],
    ],
)  # fmt: skip
async def test_unusable_model_answers_store_nothing(tmp_path: Path, answer: Any) -> None:
    async with whole_server(tmp_path) as whole:
        await write_all(whole)
        with answering(answer) as model:
            await run(whole, model)
        assert len(model.asked) == len(TEXTS)
        assert await edges(whole, type="supports") == []


async def test_directions_are_kept_and_symmetric_edges_start_at_lower_id(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as whole:
        await write_all(whole)
        with answering(
            [EDGE | {"direction": "note_to_subject"}, EDGE | {"relation": "contradicts"}]
        ) as model:
            await run(whole, model, "--calls", "1")
        (asked,) = model.notes()
        subject, other = [
            (await whole.lithos.call("lithos_list", title_contains=title))["items"][0]["id"]
            for title in (asked["subject"]["title"], asked["notes"][0]["title"])
        ]
        found = {edge["type"]: (edge["from_id"], edge["to_id"]) for edge in await edges(whole)}
        assert found["supports"] == (other, subject)
        assert found["contradicts"] == (min(subject, other), max(subject, other))


async def test_refused_call_ends_the_worker_with_its_reason(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as whole:
        with answering([]) as model, pytest.raises(SystemExit, match="lithos_list failed"):
            await run(whole, model, "--since", "yesterday-ish")
