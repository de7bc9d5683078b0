"""Embedding models: text vectors, model sources, and errors during the loading of a model."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import huggingface_hub
import model2vec.persistence.hf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from lithos.search.embedding import embedder as embedder_module
from lithos.search.embedding.embedder import BUILTIN, Embedder, EmbedderUnavailable, load_embedder

WORDS = ["[UNK]", *["red", "green", "blue", "stone", "water", "fire", "light", "dark"]]


def make_model(folder: Path, seed: int = 0, **changes: Any) -> StaticModel:
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(seed).normal(size=(len(WORDS), 6)).astype(np.float32)
    model = StaticModel(**({"vectors": vectors, "tokenizer": tokenizer} | changes))
    model.save_pretrained(folder)
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all network connections and all calls of the model hub fail."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


TEXTS = ["red stone", "", "unheard of", "water " * 40, "fire unknown light", "red", "  ", "red\nred blue"]


def rows(texts: list[str], model: StaticModel) -> np.ndarray:
    return model.encode(texts, normalize=True, use_multiprocessing=False)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_vectors_equal_those_of_model2vec_for_every_model_kind(
    folder: Path, mapped: bool, weighted: bool, dtype: type
) -> None:
    """docs/spec/search.md §2."""
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(4 if mapped else len(WORDS), 6)) * 40).astype(dtype)
    model = make_model(
        folder,
        vectors=vectors,
        token_mapping=rng.integers(0, 4, len(WORDS)) if mapped else None,
        weights=rng.random(len(WORDS)).astype(np.float32) if weighted else None,
    )
    result = load_embedder(str(folder)).encode(TEXTS)
    assert (result.shape, result.dtype) == ((len(TEXTS), 6), np.float32)
    tolerance = 2e-3 if dtype is np.float16 else 1e-5
    np.testing.assert_allclose(result, rows(TEXTS, model), atol=tolerance)


def test_vectors_are_normalised_even_if_the_model_disables_it(folder: Path) -> None:
    make_model(folder, normalize=False)
    result = load_embedder(str(folder)).encode(["red stone", "water"])
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1, atol=1e-6)


def test_text_without_a_known_token_has_a_zero_vector(folder: Path) -> None:
    make_model(folder)
    embedder = load_embedder(str(folder))
    assert not embedder.encode(["", "unheard of", " \n"]).any()
    assert embedder.encode([]).shape == (0, 6)


def test_vectors_that_cancel_out_are_zeros_instead_of_nan(folder: Path) -> None:
    vectors = np.zeros((len(WORDS), 6), np.float32)
    vectors[1], vectors[2] = 1, -1
    make_model(folder, vectors=vectors)
    assert not load_embedder(str(folder)).encode(["red green", "blue"]).any()


def test_text_is_cut_at_the_same_position_as_in_model2vec(folder: Path) -> None:
    model = make_model(folder, max_length=8)
    texts = ["red " * 7 + "blue " * 30, "red " * 3]
    np.testing.assert_allclose(load_embedder(str(folder)).encode(texts), rows(texts, model), atol=1e-5)


@given(
    texts=st.lists(st.lists(st.sampled_from([*WORDS[1:], "nope"]), max_size=12).map(" ".join), max_size=30),
    tokens=st.integers(1, 40),
    at_once=st.integers(1, 10),
)
def test_vectors_are_independent_of_how_texts_are_sliced(
    texts: list[str], tokens: int, at_once: int, shared: Embedder
) -> None:
    whole = shared.encode(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder_module, "_TOKENS_AT_ONCE", tokens)
        patch.setattr(embedder_module, "_TEXTS_AT_ONCE", at_once)
        np.testing.assert_allclose(shared.encode(texts), whole, atol=1e-6)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    folder = tmp_path_factory.mktemp("shared")
    make_model(folder)
    return load_embedder(str(folder))


@given(texts=st.lists(st.text("abcxyz 東", max_size=40), min_size=2, max_size=5))
def test_single_text_has_the_same_vector_as_in_a_batch(texts: list[str]) -> None:
    """Queries are embedded alone and chunks in batches.

    The two vectors of a text must be equal in every bit. Otherwise scores would depend on other callers.
    """
    embedder = _builtin()
    together = embedder.encode(texts)
    for text, row in zip(texts, together, strict=True):
        assert embedder.encode([text]).tobytes() == row.tobytes()


@functools.cache
def _builtin() -> Embedder:
    return load_embedder(BUILTIN)


def test_vectors_are_the_same_on_one_core(folder: Path) -> None:
    make_model(folder)
    embedder = load_embedder(str(folder))
    texts = ["red stone", "", "water light red", "unheard"] * 100
    assert np.array_equal(embedder.encode(texts, one_core=True), embedder.encode(texts))


def test_several_threads_can_encode_texts_concurrently(folder: Path) -> None:
    make_model(folder)
    embedder = load_embedder(str(folder))
    expected = embedder.encode(TEXTS)
    results: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: results.append(embedder.encode(TEXTS * 50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result[: len(TEXTS)], expected)


def test_embedder_identity_contains_name_dimensions_type_and_file_digest(folder: Path) -> None:
    make_model(folder)
    identity = load_embedder(str(folder)).identity
    assert (identity.name, identity.dims, identity.dtype) == (str(folder), 6, "int8")
    assert len(identity.model_sha256) == 64
    assert load_embedder(str(folder)).identity == identity


@pytest.mark.parametrize("changed", ["model.safetensors", "tokenizer.json", "config.json"])
def test_changed_model_file_changes_the_embedder_identity(folder: Path, changed: str) -> None:
    """behaviour 185"""
    make_model(folder)
    before = load_embedder(str(folder)).identity
    if changed == "model.safetensors":
        make_model(folder, seed=1)
    else:
        (folder / changed).write_bytes((folder / changed).read_bytes() + b"\n")
    assert load_embedder(str(folder)).identity != before


def test_other_files_in_the_model_folder_are_ignored(folder: Path) -> None:
    make_model(folder)
    before = load_embedder(str(folder)).identity
    (folder / "notes.txt").write_text("x")
    assert load_embedder(str(folder)).identity == before


@pytest.mark.usefixtures("offline")
def test_builtin_model_works_without_network() -> None:
    """behaviour 184"""
    embedder = load_embedder(BUILTIN)
    assert (embedder.identity.name, embedder.identity.dims) == ("builtin", 256)
    near, far, query = embedder.encode(
        ["restart the database server after an upgrade", "a recipe for apple pie", "database restart"]
    )
    assert near @ query > 0.4 > far @ query
    assert not embedder.encode(["   "]).any()


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["{tmp}/absent", "./absent", "~/absent-model", "", "  ", "{tmp}"])
def test_directory_without_a_model_is_unavailable_without_network(tmp_path: Path, name: str) -> None:
    """behaviour 183"""
    with pytest.raises(EmbedderUnavailable, match=r"search\.embedding_model") as caught:
        load_embedder(name.format(tmp=tmp_path))
    assert "\n" not in str(caught.value)
    assert caught.value.reason in str(caught.value)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("broken", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("data", [b"", b"{}", b"\x00garbage", b'{"a": [1'])
def test_broken_model_is_unavailable_with_the_reason(folder: Path, broken: str, data: bytes) -> None:
    """behaviour 183"""
    make_model(folder)
    (folder / broken).write_bytes(data)
    if (broken, data) == ("config.json", b"{}"):
        assert load_embedder(str(folder)).encode(["red"]).any()
        return
    with pytest.raises(EmbedderUnavailable) as caught:
        load_embedder(str(folder))
    assert caught.value.reason


def test_model_with_invalid_numbers_is_unavailable(folder: Path) -> None:
    vectors = np.ones((len(WORDS), 6), np.float32)
    vectors[3, 3] = np.nan
    make_model(folder, vectors=vectors)
    with pytest.raises(EmbedderUnavailable, match="not finite"):
        load_embedder(str(folder))


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "hub"
    monkeypatch.setattr(model2vec.persistence.hf, "HF_HUB_CACHE", str(cache))
    return cache


def test_hugging_face_model_is_downloaded_only_once(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = hub_cache / "models--someone--tiny" / "snapshots" / "abc"
    calls: list[tuple[str, bool]] = []

    def download(name: str, *, force_download: bool, **_: object) -> str:
        calls.append((name, force_download))
        make_model(snapshot)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    first = load_embedder("someone/tiny")
    second = load_embedder("someone/tiny")
    assert calls == [("someone/tiny", False)]
    assert first.identity == second.identity
    assert first.identity.name == "someone/tiny"
    np.testing.assert_array_equal(first.encode(TEXTS), second.encode(TEXTS))


def test_partially_downloaded_model_is_completed(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = hub_cache / "models--someone--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")

    def download(*_: object, **__: object) -> str:
        make_model(snapshot)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert load_embedder("someone/tiny").encode(["red"]).any()


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    "error",
    [
        ConnectionError("Connection refused"),
        ValueError("Repo id must be"),
        TimeoutError(),
        RuntimeError("odd\nmore"),
    ],
)
def test_unreachable_hub_makes_the_model_unavailable_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """behaviour 183"""

    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(EmbedderUnavailable, match="'someone/tiny' cannot be loaded") as caught:
        load_embedder("someone/tiny")
    assert caught.value.__cause__ is error
    assert caught.value.reason


def test_interrupt_while_loading_a_model_is_propagated(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(huggingface_hub, "snapshot_download", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_embedder("someone/tiny")


@pytest.mark.slow
def test_importing_the_stores_does_not_import_the_model_library() -> None:
    """The import takes a noticeable part of a second.

    Commands without embedding should not need this time.
    """
    program = (
        "import sys, lithos.search.embedding.embedder, lithos.search.index.vectors; "
        "print(sorted({'model2vec', 'huggingface_hub', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
