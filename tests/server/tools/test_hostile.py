"""Clumsy and hostile clients: every call gets an envelope or a protocol error, and no note is lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from lithos.app.capabilities import all_tools
from lithos.events.journal.coordinator import Coordinator
from lithos.notes.writing.actor_writer import Writer
from lithos.server.tools.arguments import ArgumentFault, ToolSpec
from lithos.server.tools.declaring import PROFILES
from tests.servers import Lithos, refusal, serving

UNSTORABLE = {"a NUL": "a\0b", "a lone surrogate": "a\ud800b", "the other half": "\udc00"}


def whole_specs() -> list[ToolSpec]:
    """Return every tool of the profile `full`, with its rarely needed parameters."""
    return [tool.spec() for tool in all_tools() if tool.profile in PROFILES and not tool.is_legacy]


def required_of(spec: ToolSpec) -> dict[str, Any]:
    """Return required arguments of the right type for any tool, including tools that are added later."""
    plain = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    properties = spec.input_schema["properties"]
    return {name: plain[properties[name]["type"]] for name in spec.input_schema.get("required", ())}


def nested(depth: int) -> dict[str, Any]:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return {"deep": value}


async def outcome(lithos: Lithos, tool: str, arguments: dict[str, Any]) -> str:
    """Return the message of a refusal or protocol error. Return an empty text if the call succeeded."""
    try:
        answer = await lithos.call(tool, **arguments)
    except ArgumentFault as fault:
        return fault.message
    return str(answer.get("message", "")) if isinstance(answer, dict) else ""


async def call_all(lithos: Lithos, values: tuple[Any, ...]) -> int:
    """Pass each value to every parameter of every tool.

    Return the number of calls. No call may raise.
    """
    calls = 0
    for spec in whole_specs():
        for name in spec.input_schema["properties"]:
            for value in values:
                message = await outcome(lithos, spec.name, required_of(spec) | {name: value})
                assert len(message) < 1100, (spec.name, name, message[:300])
                calls += 1
    return calls


async def test_every_tool_refuses_text_that_files_cannot_store(lithos: Lithos) -> None:
    """behaviour 173"""
    for spec in whole_specs():
        for name, schema in spec.input_schema["properties"].items():
            for text in UNSTORABLE.values():
                value: Any = text
                kind = schema.get("type", "object")  # a parameter of several types accepts an object too
                if kind == "array":
                    value = ["fine", text]
                elif kind == "object":
                    value = {"k": [{text: 1}]}
                elif kind != "string":
                    continue
                answer = await lithos.call(spec.name, **required_of(spec) | {name: value})
                assert name in refusal(answer, "invalid_input")
    assert lithos.files() == []
    assert lithos.events() == []


@pytest.mark.parametrize(
    "values",
    [
        (-1, 0, 1, 10**18, -(10**18), 2**63, 10**400, 0.5, -0.0, 1e308),
        (math.nan, math.inf, -math.inf, "NaN", "1e999", "-1", "0x10", "१२", True),
        (
            "",
            " ",
            "\n",
            "x" * 100_000,
            "../..",
            "*",
            '"',
            "\u202e\u200f",
            "🚀",
            "\ufeff",
            "a" + "\u0301" * 500,
        ),
        (
            [],
            [""],
            ["x"] * 1000,
            [[]],
            {},
            {"": ""},
            {"k": None},
            {"k": {"k": []}},
            {"k": math.nan},
            nested(5000),
        ),
    ],
    ids=["numbers", "not quite numbers", "texts", "collections"],
)
async def test_absurd_values_do_not_break_a_tool(lithos: Lithos, values: tuple[Any, ...]) -> None:
    """behaviour 173"""
    note = await lithos.create("Kept", "kept zebra")
    assert await call_all(lithos, values) > 300
    # After these calls, the server must still work.
    assert (await lithos.read(note))["content"] == "kept zebra"
    assert "Kept" in await lithos.found("kept zebra", limit=50)
    await lithos.write("Kept again", "more", id=note)
    stats = await lithos.call("lithos_stats")
    assert stats["documents"] == stats["tantivy_doc_count"] == len(lithos.files())
    assert lithos.server.get(Writer).mailbox.stats.restarts == 0
    assert lithos.server.get(Coordinator).mailbox.stats.restarts == 0


async def test_values_that_files_or_json_cannot_store_are_refused(lithos: Lithos) -> None:
    """behaviour 39"""
    note = await lithos.create()
    infinite: list[Any] = [{"k": math.nan}, {"k": [1e999]}]
    for value in (nested(150), nested(5000), *infinite, {"k": 10**400}, {"k": -(10**5000)}):
        for target in ({"title": "New"}, {"title": "A note", "id": note}):
            answer = await lithos.call("lithos_write", content="x", agent="a", metadata=value, **target)
            assert "metadata" in refusal(answer, "invalid_input")
        answer = await lithos.call("lithos_agent_register", id="a", metadata=value)
        assert "metadata" in refusal(answer, "invalid_input")
    assert (await lithos.read(note))["version"] == 1
    assert lithos.files() == ["a-note.md"]


async def test_unusual_metadata_is_returned_unchanged(tmp_path: Path) -> None:
    """behaviour 39"""
    odd: dict[str, Any] = {
        "true": "true", "1": "1", "no": "no", "~": "~", "<<": {"a": 1}, "a: b": "c: d",
        "#": "# x",
        "- x": "- y", "k\nl": "m\nn\n", " lead": " trail ", "é\u2028": "\u2028\u0085", "quote'\"": "'\"\\",
        "empty": "", "list": [], "object": {}, "nested": nested(60), "big": 2**63, "neg": -(2**70),
        "float": 1e-300, "exp": 1e300, "zero": -0.0, "date": "2024-01-01", "time": "12:30", "octal": "017",
        "yes": ["y", "n", "~", ""],
        "created": "2020-01-01", "---": "---", "...": "...", "x" * 3000: "long key", "emoji": "🚀",
        "ctl": "\x01\x1b\x7f",
        "bom": "\ufeff", "tab": "\t", "under_score": "1_000", "sexagesimal": "190:20:30",
        "&a": "*a", "!!str": "!x",
    }  # fmt: skip
    async with serving(tmp_path) as lithos:
        note = await lithos.create(metadata=odd)
        assert (await lithos.read(note))["metadata"]["extra"] == odd
        for begin in range(4):
            some = dict(list(odd.items())[begin::4])
            await lithos.write(id=note, metadata=dict.fromkeys(some))
            await lithos.write(id=note, metadata=some)
        assert (await lithos.read(note))["metadata"]["extra"] == odd
        assert (await lithos.call("lithos_list"))["items"][0]["metadata"] == odd
    async with serving(tmp_path) as lithos:
        assert (await lithos.read(note))["metadata"]["extra"] == odd


async def test_very_many_tags_are_stored_or_refused(lithos: Lithos) -> None:
    """behaviour 29"""
    tags = [f"tag {number}" for number in range(1_000)]
    note = await lithos.create(tags=tags)
    assert (await lithos.read(note))["metadata"]["tags"] == tags
    assert await lithos.found("text", tags=tags[-200:]) == ["A note"]
    too_many = [str(number) for number in range(1_001)]
    answer = await lithos.call("lithos_write", title="B", content="x", agent="a", tags=too_many)
    assert "1,000" in refusal(answer, "invalid_input")
    assert lithos.files() == ["a-note.md"]


async def test_texts_of_the_maximum_length_are_stored_in_every_field(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.2: a text of exactly the limit is accepted."""
    title, name, summary = ("wörd " * 200).strip(), "ä" * 200, "ß" * 20_000
    async with serving(tmp_path, server={"max_answer_chars": 0}) as lithos:
        note = await lithos.create(
            title, tags=[name], agent=name, namespace="n" * 1_000, source_task=name,
            metadata={"k" * 200: "m" * 60_000}, summaries={"short": summary, "long": summary},
            source_url="https://e.org/" + "p" * 8_000,
        )  # fmt: skip
        read = await lithos.read(note)
        assert read["title"] == title
        assert read["metadata"]["source"] == read["metadata"]["author"] == name
        assert (read["metadata"]["tags"], read["metadata"]["extra"]) == ([name], {"k" * 200: "m" * 60_000})
        assert await lithos.found("text", author=name) == [title]
        assert await lithos.found("text", tags=[name]) == [title]
        assert await lithos.found(title) == [title]
        await lithos.write("Short", id=note, tags=[], metadata={})
        assert await lithos.found("text") == ["Short"]
