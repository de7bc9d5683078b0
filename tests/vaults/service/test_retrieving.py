"""Retrieval across several vaults (docs/spec/vaults.md §2)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, LcmaDisabled
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveRequest
from lithos.memory.settings import LcmaConfig
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.search import SearchRequest
from lithos.vaults.service.retrieving import JointRetrieve, JointRetrieved
from lithos.vaults.service.searching import JointSearch
from tests.servers import put_note, serving
from tests.vaults.service.test_searching import QUERIES, make_notes, serving_split


def ids(retrieved: JointRetrieved) -> list[str]:
    return [result.hit.entry.note.id for _, result in retrieved.rows]


async def test_retrieval_equals_joint_search_when_memories_are_empty(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        for query in QUERIES:
            retrieved = await JointRetrieve(vaults).retrieve(RetrieveRequest(query=query, limit=12))
            found = await JointSearch(vaults).look(SearchRequest(query=query, limit=12))
            assert ids(retrieved) == [hit.entry.note.id for _, hit in found.rows]
            assert [name for name, _ in retrieved.rows] == [name for name, _ in found.rows]
            scores = [result.hit.score for _, result in retrieved.rows]
            assert scores == [hit.score for _, hit in found.rows]
            matches = [result.hit.match for _, result in retrieved.rows]
            assert matches == [hit.match for _, hit in found.rows]
            assert all(result.reasons for _, result in retrieved.rows)
            assert not any(answer.degraded for answer in retrieved.answers.values())


async def test_each_vault_stores_a_receipt_of_its_own_rows(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        retrieved = await JointRetrieve(vaults).retrieve(RetrieveRequest(query=QUERIES[0], limit=7))
        assert len(retrieved.rows) == 7
        assert retrieved.answers.keys() == vaults.keys()
        for name, services in vaults.items():
            own = [result.hit.entry.note.id for vault, result in retrieved.rows if vault == name]
            receipt = retrieved.answers[name].receipt
            assert [node.id for node in receipt.final_nodes] == own
            kept = await services.get(Learning).receipt(receipt.id)
            assert kept is not None
            assert [node.id for node in kept.final_nodes] == own
            assert await services.get(Learning).receipt_count() == 1


async def test_retrieval_filters_apply_in_every_vault(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        request = RetrieveRequest(query=QUERIES[0], limit=50, filters=Filters(tags=("t1",)))
        retrieved = await JointRetrieve(vaults).retrieve(request)
        assert {name for name, _ in retrieved.rows} == set(vaults)
        assert all("t1" in result.hit.entry.note.all_tags for _, result in retrieved.rows)
        none = await JointRetrieve(vaults).retrieve(
            RetrieveRequest(query=QUERIES[0], namespaces=("nowhere",))
        )
        assert none.rows == ()


async def test_failed_vault_is_named_and_other_vaults_answer(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        vaults: dict[str, Parts] = {}
        for name, notes in make_notes().items():
            for path, text in notes.items():
                put_note(tmp_path / name, path, text)
            server = serving(tmp_path / name, lcma=LcmaConfig(enabled=name != "home"))
            vaults[name] = (await stack.enter_async_context(server)).server
        retrieve = JointRetrieve(vaults)
        retrieved = await retrieve.retrieve(RetrieveRequest(query=QUERIES[3]))
        assert retrieved.failed.keys() == {"home"}
        assert "lcma.enabled" in retrieved.failed["home"]
        assert {name for name, _ in retrieved.rows} == {"work", "project"}
        assert len(retrieved.rows) == 10

        with pytest.raises(LcmaDisabled):
            await JointRetrieve({"home": vaults["home"]}).retrieve(RetrieveRequest(query=QUERIES[3]))
        with pytest.raises(InvalidInput):
            await retrieve.retrieve(RetrieveRequest(query=QUERIES[3], max_context_nodes=0))


async def test_only_the_vault_without_an_index_is_degraded(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        vaults["home"].get(FulltextIndex).tell_behind("the disk is full")
        retrieved = await JointRetrieve(vaults).retrieve(RetrieveRequest(query=QUERIES[1]))
        degraded = {name for name, answer in retrieved.answers.items() if answer.degraded}
        assert degraded == {"home"}
        assert retrieved.answers["home"].failed_scouts == ("scout_lexical",)
        assert {name for name, _ in retrieved.rows} >= {"work", "project"}


async def test_cited_note_is_found_among_the_notes_of_all_vaults(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        retrieve, request = JointRetrieve(vaults), RetrieveRequest(query=QUERIES[0], limit=20, agent_id="ann")
        before = await retrieve.retrieve(request)
        name, last = next(row for row in reversed(before.rows) if row[0] == "project")
        note_id = last.hit.entry.note.id
        tools = vaults[name].tools  # type: ignore[attr-defined]
        task = await tools.call("lithos_task_create", {"title": "Ask", "agent": "ann"})
        alone = (
            await vaults[name]
            .get(Retrieve)
            .retrieve(RetrieveRequest(query=QUERIES[0], limit=20, agent_id="ann", task_id=task["task_id"]))
        )
        completed = await tools.call(
            "lithos_task_complete",
            {
                "task_id": task["task_id"], "agent": "ann", "cited_nodes": [note_id],
                "receipt_id": alone.receipt.id,
            },
        )  # fmt: skip
        assert completed["success"], completed
        after = await retrieve.retrieve(request)
        assert ids(after).index(note_id) < ids(before).index(note_id)
        assert {name for name, _ in after.rows} == {name for name, _ in before.rows}
