"""The accurate model: results, limits, and messages when the model cannot be loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lithos.models
from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding import transformer
from lithos.search.embedding.embedder import EmbedderUnavailable
from lithos.search.embedding.transformer import (
    LONGEST,
    QUERIES_KEPT,
    TOKENS_AT_ONCE,
    Centres,
    Transformer,
    find_trouble,
    is_installed,
    load_transformer,
)
from lithos.search.embedding.transformer_models import DIMS, ENGLISH, MULTILINGUAL, TransformerModel
from lithos.search.ranking import calibrations

FOLDER = Path(next(iter(lithos.models.__path__))) / "accurate"


@pytest.fixture(scope="module")
def model() -> Transformer:
    return load_transformer()


class Words:
    """A tokenizer with one token per word."""

    def encode(self, text: str) -> Any:
        return SimpleNamespace(ids=[1] * min(LONGEST, len(text.split())))


class Session:
    """A fake session that returns the number of tokens per text and records the input shapes."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.value = 1.0

    def run(self, _: list[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        mask = inputs["attention_mask"]
        self.shapes.append(mask.shape)
        return [np.repeat(mask.sum(axis=1, dtype=np.float32)[:, None] * self.value, DIMS, axis=1)]


def test_vectors_have_length_one_and_separate_meanings(model: Transformer) -> None:
    texts = ["how to renew a passport", "extending your travel document", "a recipe for onion soup"]
    rows = model.encode(texts)
    assert rows.shape == (3, DIMS)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2


def test_vector_of_a_text_is_independent_of_its_batch(model: Transformer) -> None:
    """The padding is masked. Activations in int8 are quantised per batch, so the last digits may differ."""
    texts = ["one", "two words and some more of them " * 12, "three"]
    together = model.encode(texts)
    for text, row in zip(texts, together, strict=True):
        assert float(model.encode([text])[0] @ row) > 0.97


def test_texts_of_every_length_have_vectors(model: Transformer) -> None:
    rows = model.encode(["", "x" * 100_000, "word " * 20_000, "日本語のテキスト"])
    assert np.isfinite(rows).all()
    assert model.encode([]).shape == (0, DIMS)


def test_batches_never_exceed_the_padded_token_limit() -> None:
    session = Session()
    texts = ["w " * count for count in [1, 300, 7, 256, 100, 100, 100, 100, 100, 3, 200]]
    rows = Transformer(Words(), session).encode(texts)
    assert max(count * longest for count, longest in session.shapes) <= TOKENS_AT_ONCE
    assert len(session.shapes) < len(texts)
    assert rows[:, 0].tolist() == [1, 256, 7, 256, 100, 100, 100, 100, 100, 3, 200]


def test_repeated_query_is_cached_in_a_small_cache() -> None:
    session = Session()
    model = Transformer(Words(), session)
    first = model.encode_query("one two")
    assert model.encode_query("one two") is first
    assert len(session.shapes) == 1
    for number in range(QUERIES_KEPT):
        model.encode_query(f"query {number}")
    assert len(model._queries) == QUERIES_KEPT
    model.encode_query("one two")
    assert len(session.shapes) == QUERIES_KEPT + 2


def test_query_of_100000_characters_is_cut_before_caching() -> None:
    model = Transformer(Words(), Session())
    model.encode_query("w " * 50_000)
    assert max(map(len, model._queries)) <= 16 * LONGEST


def test_runtime_failure_is_reported_as_index_failure() -> None:
    session = Session()
    session.value = np.nan
    with pytest.raises(IndexFailed, match="not finite"):
        Transformer(Words(), session).encode(["one"])


def test_packaged_model_is_complete_and_has_the_expected_dimensions() -> None:
    assert is_installed()
    assert find_trouble() is None
    assert (FOLDER / "LICENSE").read_text().count("Apache License")
    assert ENGLISH.identity.dims == DIMS


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", sorted(ENGLISH.hashes))
def test_damaged_weights_are_never_loaded(copied: Path, name: str) -> None:
    """issue 13, failures."""
    with (copied / name).open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff")
    with pytest.raises(EmbedderUnavailable, match="is damaged") as refused:
        load_transformer(1, ENGLISH, copied)
    assert name in refused.value.reason
    assert ENGLISH.install in refused.value.reason


def test_missing_weights_are_reported(copied: Path) -> None:
    (copied / "model.onnx").unlink()
    with pytest.raises(EmbedderUnavailable, match="cannot be read"):
        load_transformer(1, ENGLISH, copied)


def test_missing_onnxruntime_is_reported_with_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert not is_installed()
    with pytest.raises(EmbedderUnavailable) as refused:
        load_transformer()
    assert refused.value.reason == f"onnxruntime is not installed. To install it: {ENGLISH.install}"
    assert ENGLISH.install in (find_trouble() or "")


def test_broken_onnxruntime_is_reported_with_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise OSError('libonnxruntime.so: file too short')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    assert is_installed()
    with pytest.raises(EmbedderUnavailable) as refused:
        load_transformer()
    assert "OSError: libonnxruntime.so: file too short" in refused.value.reason
    assert ENGLISH.install in refused.value.reason
    assert "file too short" in (find_trouble() or "")


@pytest.mark.parametrize("version", ["1.3.0", "2.0.0"])
def test_unsupported_version_of_onnxruntime_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(__version__=version, __spec__=SimpleNamespace(name="onnxruntime"))
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)  # type: ignore[arg-type]
    with pytest.raises(
        EmbedderUnavailable,
        match=f"onnxruntime {version} is installed, but for the english model it must be from 1.20",
    ):
        load_transformer()


def test_runtime_with_wrong_results_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transformer, "encode", lambda *_, **__: np.zeros((1, DIMS), np.float32))
    with pytest.raises(EmbedderUnavailable, match="different vectors"):
        transformer.load_transformer()


class Letters:
    """A tokenizer that records the texts, with one token per letter."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, text: str) -> Any:
        self.texts.append(text)
        return SimpleNamespace(ids=[1] * min(LONGEST, len(text)))


def test_queries_and_passages_have_their_own_prefix_and_centre() -> None:
    tokenizer = Letters()
    away = np.zeros(DIMS, np.float32)
    away[0] = 1
    model = Transformer(tokenizer, Session(), MULTILINGUAL, Centres(queries=away, passages=-away))
    (passage,), query = model.encode(["one"]), model.encode_query("one")
    assert tokenizer.texts == ["passage: one", "query: one"]
    for row, sign, length in ((passage, 1, len("passage: one")), (query, -1, len("query: one"))):
        assert np.isclose(np.linalg.norm(row), 1)
        assert np.allclose(row[0] / row[1], (length + sign) / length)


def test_models_have_different_identities_and_calibrations() -> None:
    assert ENGLISH.identity.name == calibrations.ACCURATE
    assert MULTILINGUAL.identity.name == calibrations.MULTILINGUAL
    assert ENGLISH.identity.model_sha256 != MULTILINGUAL.identity.model_sha256
    # Vectors of earlier versions have this identity. Another one would embed all notes again.
    assert ENGLISH.identity.model_sha256.startswith("283fdddb1bdf")


def test_missing_multilingual_model_is_reported_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransformerModel, "is_installed", property(lambda _: False))
    with pytest.raises(EmbedderUnavailable) as refused:
        load_transformer(1, MULTILINGUAL)
    told = f"the multilingual model is not installed. To install it: {MULTILINGUAL.install}"
    assert (refused.value.reason, find_trouble(MULTILINGUAL)) == (told, told)


@pytest.fixture(scope="module")
def multilingual() -> Transformer:
    return load_transformer(1, MULTILINGUAL)


@pytest.mark.multilingual
def test_multilingual_model_finds_a_translation(multilingual: Transformer) -> None:
    """behaviour 420: a translation is nearer than another subject, and unrelated texts are far apart."""
    assert find_trouble(MULTILINGUAL) is None
    rows = multilingual.encode(
        ["Der Reisepass wird beim Amt verlängert.", "Zwiebelsuppe braucht viel Butter."]
    )
    assert rows.shape == (2, DIMS)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    for question in ("how to renew a passport", "как продлить паспорт", "パスポートの更新方法"):
        right, wrong = (float(multilingual.encode_query(question) @ row) for row in rows)
        assert right > wrong + 0.1
        assert wrong < 0.3, "without the subtracted mean it is above 0.7"


@pytest.mark.multilingual
def test_damaged_multilingual_model_is_never_loaded(tmp_path: Path) -> None:
    folder = MULTILINGUAL.find_folder()
    for name in MULTILINGUAL.hashes:
        (tmp_path / name).write_bytes((folder / name).read_bytes()[:-1])
    with pytest.raises(EmbedderUnavailable, match="is damaged") as refused:
        load_transformer(1, MULTILINGUAL, tmp_path)
    assert MULTILINGUAL.install in refused.value.reason


@pytest.mark.slow
@pytest.mark.parametrize("first", ["vectors", "model"])
def test_model_and_stored_vectors_can_be_loaded_in_either_order(tmp_path: Path, first: str) -> None:
    """usearch and onnxruntime run in one process, without other libraries of a server.

    The process with both libraries must not crash.
    """
    loads = {
        "vectors": f"VectorIndex(Path({str(tmp_path)!r}), ENGLISH.identity).save()",
        "model": "load_transformer()",
    }
    order = [loads[first], *(step for name, step in loads.items() if name != first)]
    program = "\n".join(
        [
            "from pathlib import Path",
            "from lithos.search.embedding.transformer import load_transformer",
            "from lithos.search.embedding.transformer_models import ENGLISH",
            "from lithos.search.index.vectors import VectorIndex",
            *order,
            "print('both')",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
