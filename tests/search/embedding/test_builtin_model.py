"""The files of the built-in model, and the former built-in model that they contain."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from lithos.search.embedding.builtin_model import BUILTIN, FORMER, FORMER_SHA256, find_builtin
from lithos.search.embedding.embedder import Embedder, EmbedderIdentity, load_embedder
from lithos.search.index.chunk_rows import encode_rows
from tests.servers import load_once

ROOT = Path(__file__).parents[3]
#: Texts with the sum and the first values of the vectors that the former model made from its own files.
MADE = {
    "restart the database server after an upgrade": (-916, [-64, -90, 39, -83, -23, -77, -35, 11]),
    "Die Katze schläft auf dem Sofa": (-684, [-98, -7, -52, 44, -72, 13, -18, -10]),
    "Кошка спит на диване": (0, [0] * 8),
    "retry_with_backoff(max=5)": (-95, [-72, -10, -5, -127, -29, -56, -66, 1]),
    "x" * 150 + " word": (300, [5, 60, -59, 10, 127, 46, 13, 27]),
}


@pytest.fixture(scope="module")
def former() -> Embedder:
    return load_embedder(FORMER)


def test_model_files_have_their_published_digests() -> None:
    folder, paths = find_builtin()
    listed = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_former_model_makes_the_same_vectors_as_from_its_own_files(former: Embedder) -> None:
    """behaviour 321: the vectors of an old vault are compared with vectors of the model that made them."""
    assert former.identity == EmbedderIdentity("builtin", 256, "int8", FORMER_SHA256)
    codes = encode_rows(former.encode(list(MADE)))
    assert [(int(row.sum(dtype=int)), row[:8].tolist()) for row in codes] == list(MADE.values())


def test_english_and_code_keep_their_pieces_and_vectors(former: Embedder) -> None:
    """behaviour 320: the texts are the documentation and the code of this package."""
    paths = [*(ROOT / "docs").glob("*.md"), *(ROOT / "lithos" / "search").rglob("*.py")]
    words = re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in paths))
    unlike = [word for word in set(words) if not same_vectors(word, former)]
    assert sum(map(words.count, unlike)) <= 0.01 * len(words), unlike


def same_vectors(word: str, former: Embedder) -> bool:
    return np.array_equal(load_once(BUILTIN).encode([word]), former.encode([word]))


def test_model_knows_other_scripts() -> None:
    """behaviour 318"""
    cat, bank, sleeping = load_once(BUILTIN).encode(
        ["Кошка спит на диване", "Банк повысил процентную ставку", "где спит кот"]
    )
    assert cat @ sleeping > 0.3 > bank @ sleeping


@pytest.mark.parametrize(
    "text",
    [
        "The server läuft wieder, и всё работает. 数据库已备份",
        "192.168.0.1 – 4711 §§ () [] 10:45",
        "кот",
        "הודעה מאת server-07: \u200fהכול תקין",
        "Ｓｅｒｖｅｒ ﾃﾞｰﾀ １２３",
        "\ue000\uf8ff \U000e0001\ufffe \u0378",
        "ก" * 1_000_000,
        "\ud800 lone surrogate".encode("utf-8", "replace").decode(),
        "\x00\x1b[31m",
    ],
    ids=[
        "mixed",
        "numbers",
        "word",
        "right to left",
        "widths",
        "private",
        "megabyte",
        "surrogate",
        "control",
    ],
)
def test_unusual_text_has_a_finite_vector_of_length_one_or_zero(text: str) -> None:
    rows = load_once(BUILTIN).encode([text, text, "cat"])
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[0], load_once(BUILTIN).encode([text])[0])
    assert min(abs(np.linalg.norm(rows[0]) - length) for length in (0, 1)) < 1e-5
