"""The accurate tier in a complete server: its setting, stale notes, resumption and failures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.search.indexing.accurate
from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import EmbedderUnavailable
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.ranking.ranking import blend
from lithos.search.settings import SearchConfig
from lithos.server.service_state import Gauges
from tests.search.service.transformers import FakeTransformer, model_health, stored, until
from tests.servers import Lithos, put_note, serving


@pytest.fixture
def model() -> FakeTransformer:
    return FakeTransformer()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries and saves happen without a delay."""
    monkeypatch.setattr(lithos.search.indexing.accurate, "RETRY", 0.05)
    monkeypatch.setattr(lithos.search.indexing.accurate, "SAVE_LEAST", 0.0)
    monkeypatch.setattr(lithos.search.indexing.accurate, "SAVE_IDLE", 0.0)


async def meant(lithos: Lithos, query: str, **more: Any) -> list[str]:
    return await lithos.found(query, mode="semantic", threshold=0.5, **more)


def make_vault(data: Path, notes: int = 6) -> None:
    for number in range(notes):
        put_note(data, f"n{number}.md", f"# Note{number}\n\nword{number} cat{number}\n")


async def test_auto_tier_uses_the_accurate_model_with_onnxruntime(
    tmp_path: Path, model: FakeTransformer
) -> None:
    """behaviour 262"""
    put_note(tmp_path, "pets.md", "# Pets\n\ncat\n")
    async with serving(tmp_path, transformer=model.load) as lithos:
        told = await model_health(lithos)
        assert (told["status"], told["tier"], told["done"], told["total"]) == ("ok", "accurate", 1, 1)
        assert await meant(lithos, "pets kitten") == ["Pets"]
        stats = await lithos.call("lithos_stats")
        assert [stats[f"embedding_{name}"] for name in ("tier", "done", "total")] == ["accurate", 1, 1]
        scrape = (await lithos.server.get(Gauges).scrape()).decode()
        assert 'lithos_embedding_tier{tier="accurate"} 1.0' in scrape
        assert "lithos_embedding_done_chunks 1.0" in scrape
    assert model.threads == [1]


async def test_auto_tier_is_static_and_healthy_without_onnxruntime(tmp_path: Path) -> None:
    """behaviour 262"""
    put_note(tmp_path, "pets.md", "# Pets\n\ncat\n")
    async with serving(tmp_path) as lithos:
        told = await model_health(lithos)
        assert (told["status"], told["tier"], told["done"], told["total"]) == ("ok", "static", 0, 1)
        assert "error" not in told
    assert not (tmp_path / ".usearch" / "accurate").exists()


async def test_accurate_tier_is_degraded_to_static_without_onnxruntime(tmp_path: Path) -> None:
    """behaviour 262"""
    put_note(tmp_path, "pets.md", "# Pets\n\na cat\n")

    def load(_: int) -> Any:
        raise EmbedderUnavailable("accurate", "onnxruntime is not installed. To install it: pip install it")

    async with serving(
        tmp_path, transformer=load, search=SearchConfig(tier="accurate", semantic_threshold=0.1)
    ) as lithos:
        told = await model_health(lithos)
        assert (told["status"], told["tier"]) == ("degraded", "static")
        assert "pip install it" in told["error"]
        assert await lithos.found("a cat", mode="semantic") == ["Pets"]
        await lithos.create("Later", "a dog")
        assert "Later" in await lithos.found("later dog", mode="semantic")


async def test_static_tier_never_loads_the_accurate_model(tmp_path: Path, model: FakeTransformer) -> None:
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=model.load, search=SearchConfig(tier="static")) as lithos:
        assert lithos.server.get(SemanticBackend).accurate is None
        assert (await model_health(lithos))["tier"] == "static"
    assert model.threads == []


async def test_model_is_not_loaded_before_the_first_note(tmp_path: Path, model: FakeTransformer) -> None:
    async with serving(tmp_path, transformer=model.load, settled=False) as lithos:
        await lithos.server.searchable()
        await trio.testing.wait_all_tasks_blocked()
        assert model.threads == []
        await lithos.create("Pets", "cat")
        await until(lithos, 1, "accurate")
    assert model.threads == [1]


async def test_static_tier_answers_until_almost_all_notes_are_embedded(
    tmp_path: Path, model: FakeTransformer
) -> None:
    """behaviour 262"""
    put_note(tmp_path, "pets.md", "# Pets\n\ncat\n")
    model.gate.clear()
    async with serving(tmp_path, transformer=model.load, settled=False) as lithos:
        await lithos.server.searchable()
        await trio.to_thread.run_sync(partial(model.begun.wait, 10))
        assert (await model_health(lithos))["tier"] == "static"
        assert await lithos.found("pets cat", mode="semantic") == ["Pets"]
        model.gate.set()
        await until(lithos, 1, "accurate")


@pytest.mark.parametrize("notes", [1, 60], ids=["static", "accurate"])
async def test_every_write_has_semantic_results_immediately(
    tmp_path: Path, model: FakeTransformer, notes: int
) -> None:
    """behaviour 262: new and changed text is found, but former text and deleted notes are not."""
    make_vault(tmp_path, notes)
    async with serving(tmp_path, transformer=model.load) as lithos:
        model.gate.clear()
        note_id = await lithos.create("Fresh", "zebra savannah")
        assert (await model_health(lithos))["tier"] == ("static" if notes == 1 else "accurate")
        assert (await lithos.found("fresh zebra savannah", mode="semantic", limit=1)) == ["Fresh"]
        await lithos.write("Fresh", "volcano eruption", id=note_id)
        assert (await lithos.found("fresh volcano eruption", mode="semantic", limit=1)) == ["Fresh"]
        model.gate.set()
        await until(lithos, notes + 1, "accurate")
        assert await meant(lithos, "fresh volcano eruption") == ["Fresh"]
        model.gate.clear()
        await lithos.write("Fresh", "zebra savannah", id=note_id)
        assert "Fresh" not in await lithos.found("volcano eruption", mode="semantic", threshold=0.6)
        await lithos.call("lithos_delete", id=note_id, agent="tester")
        assert "Fresh" not in await lithos.found("fresh zebra savannah", mode="semantic", threshold=0.0)
        model.gate.set()
        await until(lithos, notes, "accurate")


async def test_filters_and_graph_searches_use_the_accurate_tier(
    tmp_path: Path, model: FakeTransformer
) -> None:
    make_vault(tmp_path, 60)
    async with serving(tmp_path, transformer=model.load) as lithos:
        await lithos.create("Cats", "cat", tags=["t"])
        await until(lithos, 61, "accurate")
        assert await meant(lithos, "cats kitten", tags=["t"]) == ["Cats"]
        model.gate.clear()
        await lithos.create("Stale", "giraffe neck", tags=["t"])
        assert (await model_health(lithos))["tier"] == "accurate"
        assert (await lithos.found("stale giraffe neck", mode="semantic", tags=["t"]))[0] == "Stale"
        model.gate.set()


async def test_restart_embeds_only_new_texts(tmp_path: Path, model: FakeTransformer) -> None:
    """behaviour 262"""
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=model.load):
        assert len(model.embedded) == 6
    assert (stored(tmp_path)["chunks"], stored(tmp_path)["embedder"]["name"]) == (6, "accurate")
    put_note(tmp_path, "n3.md", "# Note3\n\nnothing as before\n")
    (tmp_path / "knowledge" / "n4.md").unlink()
    again = FakeTransformer()
    async with serving(tmp_path, transformer=again.load) as lithos:
        assert len(again.embedded) == 1
        assert "nothing as before" in again.embedded[0]
        assert (await model_health(lithos))["tier"] == "accurate"
    assert stored(tmp_path)["chunks"] == 5


async def test_interrupted_embedding_run_continues(tmp_path: Path, model: FakeTransformer) -> None:
    """behaviour 262: saved vectors are not computed again, even if other vectors were lost."""
    make_vault(tmp_path, 120)
    model.hold_at = 48
    async with serving(tmp_path, transformer=model.load, settled=False) as lithos:
        with trio.fail_after(60):
            while not (tmp_path / ".usearch" / "accurate" / "manifest.json").exists():
                await trio.sleep(0.005)
        lithos.server.get(SemanticBackend).accurate.close = trio.lowlevel.checkpoint  # type: ignore[method-assign, union-attr]
        model.failure = "the end"
        model.released.set()
    kept = stored(tmp_path)["chunks"]
    assert 48 <= kept < 120
    again = FakeTransformer()
    async with serving(tmp_path, transformer=again.load) as lithos:
        assert len(again.embedded) == 120 - kept
        assert (await model_health(lithos))["done"] == 120


async def test_changed_metadata_needs_no_embedding_even_after_a_restart(
    tmp_path: Path, model: FakeTransformer
) -> None:
    async with serving(tmp_path, transformer=model.load) as lithos:
        note_id = await lithos.create("Pets", "cat")
        await until(lithos, 1, "accurate")
        await lithos.write("Pets", "cat", id=note_id, tags=["one"])
        assert (await model_health(lithos))["tier"] == "accurate"
    (note,) = (tmp_path / "knowledge").rglob("*.md")
    note.write_text(note.read_text().replace("one", "two"))
    async with serving(tmp_path, transformer=model.load) as lithos:
        assert await lithos.listed(tags=["two"]) == ["Pets"]
        assert (await model_health(lithos))["tier"] == "accurate"
    assert len(model.embedded) == 1


async def test_damaged_store_is_set_aside_and_rebuilt(tmp_path: Path, model: FakeTransformer) -> None:
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=model.load):
        pass
    (vectors,) = (tmp_path / ".usearch" / "accurate").glob("vectors.*")
    vectors.write_bytes(vectors.read_bytes()[:-100])
    async with serving(tmp_path, transformer=model.load) as lithos:
        assert (await model_health(lithos))["tier"] == "accurate"
        assert len(model.embedded) == 12
    assert list((tmp_path / ".usearch" / "accurate").glob("vectors.*.corrupt-*"))


async def test_full_disk_stops_no_search_and_the_save_is_retried(
    tmp_path: Path, model: FakeTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """issue 13, failures."""
    make_vault(tmp_path)
    real, is_full, refused = VectorIndex.save, True, trio.Event()
    token = trio.lowlevel.current_trio_token()

    def save(index: VectorIndex) -> None:
        if is_full and index.identity.name == "accurate":
            token.run_sync_soon(refused.set)
            raise IndexFailed("No space left on device")
        real(index)

    monkeypatch.setattr(VectorIndex, "save", save)
    async with serving(tmp_path, transformer=model.load) as lithos:
        await refused.wait()
        assert (await model_health(lithos))["tier"] == "accurate"
        await lithos.create("More", "cat")
        await until(lithos, 7, "accurate")
        assert not (tmp_path / ".usearch" / "accurate" / "manifest.json").exists()
        is_full = False
        with trio.fail_after(60):
            while not (tmp_path / ".usearch" / "accurate" / "manifest.json").exists():
                await trio.sleep(0.02)
    assert stored(tmp_path)["chunks"] == 7


async def test_static_tier_answers_while_a_failing_model_is_retried(
    tmp_path: Path, model: FakeTransformer
) -> None:
    """issue 13, failures."""
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=model.load) as lithos:
        model.failure = "no memory for the accurate model"
        assert "Note1" in await lithos.found("note1 word1", mode="semantic")
        told = await model_health(lithos)
        assert (told["status"], told["tier"]) == ("degraded", "static")
        assert "no memory" in told["error"]
        await lithos.create("More", "cat")
        model.failure = None
        await until(lithos, 7, "accurate")
        assert (await model_health(lithos))["status"] == "ok"


async def test_notes_rewritten_during_embedding_end_with_their_last_text(
    tmp_path: Path, model: FakeTransformer
) -> None:
    """issue 13, failures: 5,000 notes are rewritten during embedding. This test uses fewer notes."""
    make_vault(tmp_path, 30)
    async with serving(tmp_path, transformer=model.load, settled=False) as lithos:
        await lithos.server.searchable()
        ids = [item["id"] for item in (await lithos.call("lithos_list", limit=100))["items"]]
        for turn in range(2):
            async with trio.open_nursery() as nursery:
                for number, note_id in enumerate(ids):
                    text = f"turn{turn} text{number}"
                    nursery.start_soon(partial(lithos.write, f"Again{number}", text, id=note_id))
        await until(lithos, 30, "accurate")
        for number in (0, 17, 29):
            assert (await meant(lithos, f"again{number} turn1 text{number}", limit=1)) == [f"Again{number}"]
        assert await meant(lithos, "note5 word5 cat5") == []


async def test_unreadable_note_is_retried_without_delaying_other_notes(
    tmp_path: Path, model: FakeTransformer
) -> None:
    make_vault(tmp_path, 4)
    model.gate.clear()
    async with serving(tmp_path, transformer=model.load, settled=False) as lithos:
        await lithos.server.searchable()
        await trio.to_thread.run_sync(partial(model.begun.wait, 10))
        await lithos.create("Nine", "cat")
        (hidden,) = (tmp_path / "knowledge").rglob("nine.md")
        away = hidden.rename(hidden.with_suffix(".away"))
        model.gate.set()
        await until(lithos, 4, "static")
        away.rename(hidden)
        await until(lithos, 5, "accurate")


@pytest.mark.parametrize(("tier", "given"), [("static", None), ("auto", None), ("auto", 0.7)])
async def test_semantic_weight_depends_on_the_tier_unless_configured(
    tmp_path: Path, model: FakeTransformer, monkeypatch: pytest.MonkeyPatch, tier: Any, given: float | None
) -> None:
    weights: list[float] = []

    def spy(lexical: Any, semantic: Any, weight: float) -> Any:
        weights.append(weight)
        return blend(lexical, semantic, weight)

    monkeypatch.setattr("lithos.search.service.hybrid.blend", spy)
    put_note(tmp_path, "a.md", "# Alpha\n\ncat\n")
    config = SearchConfig(tier=tier, semantic_weight=given)
    async with serving(tmp_path, transformer=model.load, search=config) as lithos:
        assert await lithos.found("alpha cat") == ["Alpha"]
    by_tier = {"static": 0.2, "auto": 0.4}
    assert weights == [by_tier[tier] if given is None else given]


async def test_static_query_vectors_are_available_in_either_tier(
    tmp_path: Path, model: FakeTransformer
) -> None:
    put_note(tmp_path, "a.md", "# Transaction\n\nA database commits a transaction.\n")
    async with serving(tmp_path, transformer=model.load) as lithos:
        found = await lithos.server.get(SemanticBackend).with_static_question(
            "database transaction", lambda asked: asked
        )
        assert found.codes.shape == (256,)
        assert 0.3 < found.highest <= 1
        assert (await model_health(lithos))["tier"] == "accurate"
        assert not (
            await lithos.server.get(SemanticBackend).with_static_question("", lambda asked: asked)
        ).codes.any()
