"""The two models of the accurate tier in a complete server: choice, switch, and failures (behaviour 420)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.search.indexing.accurate
import lithos.search.indexing.accurate_models
from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import EmbedderUnavailable
from lithos.search.embedding.transformer_models import ENGLISH, MULTILINGUAL
from lithos.search.index.vectors import VectorIndex
from lithos.search.settings import SearchConfig
from lithos.vaults.service.joining import model_of
from tests.search.service.transformers import FakeTransformer, model_health, stored
from tests.servers import Lithos, put_note, serving

GERMAN = "Der Zug fährt um acht und ist nicht immer pünktlich."


@pytest.fixture
def english() -> FakeTransformer:
    return FakeTransformer(ENGLISH)


@pytest.fixture
def other() -> FakeTransformer:
    return FakeTransformer(MULTILINGUAL)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries, saves and looks at the languages happen without a delay."""
    monkeypatch.setattr(lithos.search.indexing.accurate, "RETRY", 0.05)
    monkeypatch.setattr(lithos.search.indexing.accurate, "SAVE_LEAST", 0.0)
    monkeypatch.setattr(lithos.search.indexing.accurate, "SAVE_IDLE", 0.0)
    monkeypatch.setattr(lithos.search.indexing.accurate_models, "RETRY", 0.05)
    monkeypatch.setattr(lithos.search.indexing.accurate_models, "PAUSE", 0.0)
    monkeypatch.setattr(lithos.search.indexing.accurate_models, "CHANGES", 1)


def make_vault(data: Path, english: int = 8, german: int = 2) -> None:
    for number in range(english):
        put_note(data, f"en{number}.md", f"# Note{number}\n\nword{number} cat{number}\n")
    for number in range(german):
        put_note(data, f"de{number}.md", f"# Notiz{number}\n\n{GERMAN} wort{number}\n")


async def until_told(lithos: Lithos, **wanted: Any) -> dict[str, Any]:
    """Wait until the health of the model has these values. None means that a key is absent."""
    with trio.fail_after(60):
        while True:
            told = await model_health(lithos)
            if all(told.get(key) == value for key, value in wanted.items()):
                return told
            await trio.sleep(0.01)


async def until_gone(folder: Path) -> None:
    with trio.fail_after(60):
        while folder.exists():
            await trio.sleep(0.01)


async def test_vault_with_a_tenth_of_other_languages_gets_the_multilingual_model(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer
) -> None:
    """behaviour 420: `/health` names the model and the reason. The other model is not loaded."""
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=english.load, multilingual=other.load) as lithos:
        told = await until_told(lithos, tier="accurate", done=10)
        assert told["accurate_model"] == "multilingual"
        assert told["accurate_because"] == "20% of the notes are not English"
        assert model_of(lithos.server, calibration="accurate-multi") == "accurate-multi"
    assert (english.threads, other.threads) == ([], [1])
    assert (tmp_path / ".usearch" / "accurate-multi" / "manifest.json").exists()
    assert not (tmp_path / ".usearch" / "accurate").exists()


async def test_english_vault_gets_the_english_model(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer
) -> None:
    """behaviour 420"""
    make_vault(tmp_path, english=12, german=1)
    async with serving(tmp_path, transformer=english.load, multilingual=other.load) as lithos:
        told = await until_told(lithos, tier="accurate", done=13)
        assert told["accurate_model"] == "english"
        assert told["accurate_because"] == "8% of the notes are not English"
    assert (english.threads, other.threads) == ([1], [])


async def test_health_names_the_command_for_the_missing_model(
    tmp_path: Path, english: FakeTransformer
) -> None:
    """behaviour 420: the English model answers, and the server is healthy."""
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=english.load) as lithos:
        told = await until_told(lithos, tier="accurate", done=10)
        assert (told["status"], told["accurate_model"]) == ("ok", "english")
        assert "pip install ./models/accurate-multi" in told["accurate_because"]


async def test_former_model_answers_during_a_switch(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer
) -> None:
    """behaviour 420: searches find all notes at all times, also notes written during the switch."""
    make_vault(tmp_path)
    put_note(tmp_path, "pets.md", "# Pets\n\nkitten\n")
    async with serving(tmp_path, transformer=english.load) as lithos:
        await until_told(lithos, tier="accurate", done=11)
    again = FakeTransformer(ENGLISH)
    other.gate.clear()
    async with serving(tmp_path, transformer=again.load, multilingual=other.load, settled=False) as lithos:
        await lithos.server.searchable()
        await trio.to_thread.run_sync(partial(other.begun.wait, 10))
        told = await until_told(lithos, tier="accurate", accurate_former="english")
        assert (told["status"], told["accurate_model"], told["done"]) == ("ok", "multilingual", 0)
        assert await lithos.found("pets cat", mode="semantic", threshold=0.5, limit=1) == ["Pets"]
        await lithos.create("Hound", "puppy")
        assert await lithos.found("hound puppy", mode="semantic", threshold=0.5, limit=1) == ["Hound"]
        other.gate.set()
        told = await until_told(lithos, accurate_former=None, done=12)
        assert told["tier"] == "accurate"
        assert await lithos.found("hound dog", mode="semantic", threshold=0.5, limit=1) == ["Hound"]
        await until_gone(tmp_path / ".usearch" / "accurate")
        assert (await model_health(lithos))["tier"] == "accurate"
    assert len(again.embedded) <= 1, "only the new note is embedded by the former model"


async def test_new_notes_in_another_language_change_the_model(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer
) -> None:
    """behaviour 420: and back again, once fewer than a twentieth remain."""
    make_vault(tmp_path, english=9, german=0)
    async with serving(tmp_path, transformer=english.load, multilingual=other.load) as lithos:
        await until_told(lithos, tier="accurate", accurate_model="english", done=9)
        note_id = await lithos.create("Zug", GERMAN)
        await until_told(
            lithos, tier="accurate", accurate_model="multilingual", accurate_former=None, done=10
        )
        await until_gone(tmp_path / ".usearch" / "accurate")
        await lithos.write("Zug", "The train leaves at eight and is not always on time.", id=note_id)
        await until_told(lithos, tier="accurate", accurate_model="english", accurate_former=None, done=10)
        await until_gone(tmp_path / ".usearch" / "accurate-multi")
        assert await lithos.found("note1 word1 cat1", mode="semantic", threshold=0.5, limit=1) == ["Note1"]


async def test_interrupted_switch_continues(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer
) -> None:
    """behaviour 420: vectors of the new model that were saved are not computed again."""
    make_vault(tmp_path, english=100, german=20)
    async with serving(tmp_path, transformer=english.load) as lithos:
        await until_told(lithos, tier="accurate", done=120)
    other.hold_at = 48
    async with serving(tmp_path, transformer=english.load, multilingual=other.load, settled=False) as lithos:
        with trio.fail_after(60):
            while not (tmp_path / ".usearch" / "accurate-multi" / "manifest.json").exists():
                await trio.sleep(0.005)
        other.failure = "the end"
        other.released.set()
    again = FakeTransformer(MULTILINGUAL)
    async with serving(tmp_path, transformer=english.load, multilingual=again.load) as lithos:
        await until_told(lithos, tier="accurate", accurate_former=None, done=120)
        assert 0 < len(again.embedded) <= 120 - 48
    assert stored(tmp_path, "accurate-multi")["chunks"] == 120


async def test_former_model_answers_if_the_new_one_cannot_be_loaded(
    tmp_path: Path, english: FakeTransformer
) -> None:
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=english.load) as lithos:
        await until_told(lithos, tier="accurate", done=10)

    def load(_: int) -> Any:
        raise EmbedderUnavailable("accurate-multi", "model.onnx is damaged")

    async with serving(tmp_path, transformer=english.load, multilingual=load) as lithos:
        told = await until_told(lithos, tier="accurate", status="degraded")
        assert "so the english model answers: model.onnx is damaged" in told["error"]
        assert await lithos.found("note1 word1 cat1", mode="semantic", threshold=0.5, limit=1) == ["Note1"]
    assert (tmp_path / ".usearch" / "accurate").exists()


async def test_former_vectors_are_kept_until_the_new_ones_are_saved(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_vault(tmp_path)
    async with serving(tmp_path, transformer=english.load) as lithos:
        await until_told(lithos, tier="accurate", done=10)
    is_full, tried = True, trio.Event()
    real = VectorIndex.save

    def save(index: Any) -> None:
        if is_full and index.identity.name == "accurate-multi":
            trio.from_thread.run_sync(tried.set, trio_token=token)
            raise IndexFailed("no space left on device")
        real(index)

    monkeypatch.setattr(VectorIndex, "save", save)
    token = trio.lowlevel.current_trio_token()
    async with serving(tmp_path, transformer=english.load, multilingual=other.load) as lithos:
        await tried.wait()
        await until_told(lithos, tier="accurate", accurate_former=None, done=10)
        assert (tmp_path / ".usearch" / "accurate" / "manifest.json").exists()
        is_full = False
        await until_gone(tmp_path / ".usearch" / "accurate")
    assert stored(tmp_path, "accurate-multi")["chunks"] == 10


@pytest.mark.parametrize(("wanted", "model"), [("english", "english"), ("multilingual", "multilingual")])
async def test_setting_decides_whatever_the_notes_are(
    tmp_path: Path, english: FakeTransformer, other: FakeTransformer, wanted: Any, model: str
) -> None:
    make_vault(tmp_path)
    search = SearchConfig(accurate_model=wanted)
    async with serving(tmp_path, transformer=english.load, multilingual=other.load, search=search) as lithos:
        told = await until_told(lithos, tier="accurate", done=10)
        assert (told["accurate_model"], told["accurate_because"]) == (
            model,
            f"search.accurate_model is {wanted}",
        )
