"""Length limits for texts in every tool call (docs/spec/tools.md §1.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.app.capabilities import all_tools
from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.limits import DESCRIPTION, JSON_VALUES, METADATA_BYTES, NAME, OUTCOME, TITLE
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.server.tools.arguments import ArgumentFault
from lithos.server.tools.bounds import Elsewhere, Json, Text, Texts, Values
from tests.inventory import argument_classes
from tests.servers import Lithos, serving

#: Seven megabytes, as in issue 11.
HUGE = 7_000_000
#: Size of one frontmatter value in characters. Lithos stores only a part of such a value.
LARGE = 300_000


def refusal(answer: Any) -> str:
    assert answer["code"] == "invalid_input", str(answer)[:300]
    return str(answer["message"])


def too_large(bound: Any) -> Any:
    if isinstance(bound, Text):
        return "x" * (bound.characters + 1)
    if isinstance(bound, Texts):
        return ["x"] * (bound.items + 1)
    if isinstance(bound, Json):
        return {"k": "x" * bound.size}
    assert isinstance(bound, Values)
    return {"short": "x" * (bound.characters + 1)}


def limit_of(bound: Any) -> str:
    largest = {Text: "characters", Texts: "items", Json: "size", Values: "characters"}
    return f"{getattr(bound, largest[type(bound)]):,}"


def test_request_limit_admits_all_arguments_at_their_limits() -> None:
    """The limit for JSON values in a body must be large enough for the argument limits of every tool."""
    for tool, arguments in argument_classes():
        bounds = [each.metadata["bound"] for each in arguments.__attrs_attrs__ if each.metadata["bound"]]
        lists = sum(bound.items for bound in bounds if isinstance(bound, Texts))
        objects = sum(min(bound.size, METADATA_BYTES) // 2 for bound in bounds if isinstance(bound, Json))
        assert lists + objects + 2 * len(bounds) + 10 <= JSON_VALUES, tool


async def test_argument_with_too_many_json_values_is_not_parsed(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some clients encode lists and objects twice.

    Values are therefore also counted before the second decoding.
    """
    assert (await lithos.call("lithos_list", tags='["a","b"]'))["total"] == 0
    with pytest.raises(ArgumentFault, match="list of texts"):
        await lithos.call("lithos_list", tags="[" + ",".join(["{}"] * 60_000) + "]")


async def test_every_argument_of_every_tool_refuses_oversized_values(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.2: the message names the argument and its limit."""
    tried, schemas = 0, {each.name: each.reader.schema for each in all_tools()}
    async with serving(tmp_path, server={"legacy_tools": True, "tools": "connector"}) as lithos:
        for tool, arguments in argument_classes():
            schema = schemas[tool]
            given = {
                name: {"string": "x", "number": 1, "integer": 1}[schema["properties"][name]["type"]]
                for name in schema.get("required", ())
            }
            for attribute in arguments.__attrs_attrs__:
                bound = attribute.metadata["bound"]
                if bound is None or isinstance(bound, Elsewhere) or attribute.metadata["is_own"]:
                    continue
                answer = await lithos.call(tool, **given | {attribute.name: too_large(bound)})
                message = refusal(answer)
                assert attribute.name in message
                assert limit_of(bound) in message
                tried += 1
        assert lithos.files() == []
        assert lithos.events() == []
        assert (await lithos.call("lithos_agent_list"))["agents"] == []
    assert tried > 120


async def test_list_items_have_a_length_limit(lithos: Lithos) -> None:
    answer = await lithos.call("lithos_write", title="T", content="", agent="a", tags=["x", "y" * 201])
    assert "Item 2 of tags" in refusal(answer)


async def test_registration_with_a_huge_name_stores_nothing(tmp_path: Path, lithos: Lithos) -> None:
    """issue 11, defect 7: 40 registrations with a 7 MB name took 300 MB of memory and 316 MB on disk"""
    for number in range(40):
        answer = await lithos.call("lithos_agent_register", id=f"a{number}", name="x" * HUGE)
        assert f"{NAME:,}" in refusal(answer)
    for place in ("id", "type"):
        refusal(await lithos.call("lithos_agent_register", **{"id": "a"} | {place: "x" * HUGE}))
    refusal(await lithos.call("lithos_agent_register", id="a", metadata={"k": "x" * HUGE}))
    refusal(await lithos.call("lithos_task_create", title="T", agent="x" * HUGE))
    refusal(await lithos.call("lithos_read", id="x", agent_id="x" * HUGE))
    refusal(await lithos.call("lithos_search", query="x", agent_id="x" * HUGE))
    assert lithos.server.get(Coordinator).agents == {}
    assert lithos.events() == []
    stored = sum(path.stat().st_size for path in (tmp_path / ".lithos").glob("coordination.db*"))
    assert stored < 2_000_000


async def test_text_of_exactly_the_limit_is_accepted(lithos: Lithos) -> None:
    answer = await lithos.call(
        "lithos_agent_register", id="ä" * NAME, name="ö" * NAME, type="ü" * NAME,
        metadata={"k": "x" * (METADATA_BYTES - len('{"k": ""}'))},
    )  # fmt: skip
    assert answer == {"success": True, "created": True}
    task = await lithos.call(
        "lithos_task_create", title="t" * TITLE, description="d" * DESCRIPTION, agent="a"
    )
    finding = await lithos.call(
        "lithos_finding_post", task_id=task["task_id"], agent="a", summary="s" * DESCRIPTION
    )
    assert "finding_id" in finding
    done = await lithos.call(
        "lithos_task_complete", task_id=task["task_id"], agent="a", outcome="o" * OUTCOME
    )
    assert done["success"] is True


@pytest.mark.parametrize("kind", ["note", "task"])
async def test_patches_cannot_make_metadata_larger_than_its_limit(lithos: Lithos, kind: str) -> None:
    half = "x" * (METADATA_BYTES // 2)
    if kind == "note":
        note = await lithos.create(metadata={"one": half})
        tool, given = "lithos_note_update", {"id": note, "agent": "a"}
    else:
        task = await lithos.call("lithos_task_create", title="T", agent="a", metadata={"one": half})
        tool, given = "lithos_task_update", {"task_id": task["task_id"], "agent": "a"}
    answer = await lithos.call(tool, **given, metadata={"two": half})
    assert f"{METADATA_BYTES:,}" in refusal(answer)
    answer = await lithos.call(tool, **given, metadata={"two": half, "one": None})
    assert "code" not in answer


async def test_number_of_task_aspects_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithos.tasks.board.task_claims.ASPECTS", 3)
    async with serving(tmp_path) as lithos:
        task = (await lithos.call("lithos_task_create", title="T", agent="a"))["task_id"]
        for aspect in "xyz":
            claim = await lithos.call("lithos_task_claim", task_id=task, aspect=aspect, agent="a")
            assert claim["success"] is True
        refusal(await lithos.call("lithos_task_claim", task_id=task, aspect="more", agent="a"))
        again = await lithos.call("lithos_task_claim", task_id=task, aspect="x", agent="a")
        assert again["success"] is True


async def test_receipt_stores_the_beginning_of_a_long_query(lithos: Lithos) -> None:
    answer = await lithos.call("lithos_retrieve", query="zebra " * 10_000, agent_id="a")
    receipt = await lithos.server.get(Learning).receipt(answer["receipt_id"])
    assert receipt is not None
    assert len(receipt.query) == 20_000


@pytest.mark.slow
async def test_file_with_huge_frontmatter_is_served_unchanged(tmp_path: Path) -> None:
    """issue 11: external files are never rejected. Lithos stores only a limited part of their frontmatter."""
    knowledge = tmp_path / "knowledge"
    knowledge.mkdir()
    head = {
        "title": "Big",
        "id": "i" * LARGE,
        "author": "a" * LARGE,
        "namespace": "n" * LARGE,
        "source_url": "https://e.org/" + "p" * LARGE,
        "tags": ["t" * LARGE, "short"],
        "contributors": [f"c{number}" for number in range(30_000)],
        "summaries": {"short": "s" * LARGE},
        "small": "kept",
        "big": "b" * LARGE,
        "after": "kept too",
    }
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in head.items())
    file = knowledge / "big.md"
    file.write_text(f"---\n{lines}---\n\n# Big\n\nzebra text\n")
    before = file.read_text()
    async with serving(tmp_path) as lithos:
        assert await lithos.found("zebra") == ["Big"]
        (entry,) = lithos.server.get(Catalogue)
        assert len(json.dumps(lithos.server.get(Catalogue).get(entry.note.id).note.extra)) < 300_000  # type: ignore[union-attr]
        note = entry.note
        assert len(note.id) == 36
        assert (len(note.author), len(note.namespace or ""), note.source_url) == (1_000, 1_000, None)
        assert [len(tag) for tag in note.tags] == [1_000, 5]
        assert len(note.contributors) == 20_000
        assert len((note.summaries or {})["short"]) == 20_000
        assert note.extra == {"small": "kept", "after": "kept too"}
        manifest = (tmp_path / ".lithos" / "manifest.db").stat().st_size
        assert manifest < 2_000_000
        # A tool that changes other fields does not remove the huge frontmatter from the file.
        await lithos.call("lithos_note_update", id=note.id, agent="c1", metadata={"small": "new"})
        after = file.read_text()
        for letter in "bansptp":
            assert letter * LARGE in after
        assert len(after) > len(before) - LARGE - 1_000  # only the unusable id was replaced
        assert (await lithos.read(note.id))["metadata"]["extra"]["small"] == "new"
