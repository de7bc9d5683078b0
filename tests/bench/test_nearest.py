"""`bench.nearest`: a small run from notes to the report, and the recall it computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.nearest import imitate, main, read_vault, recall
from lithos.stores.indexes.chunk_rows import VectorHit


def hits(*similarities: float) -> list[VectorHit]:
    return [VectorHit(number, 0, similarity) for number, similarity in enumerate(similarities)]


def test_recall_counts_what_is_as_near_as_the_last_right_one() -> None:
    assert recall([hits(0.9, 0.8, 0.7)], [hits(0.9, 0.7, 0.7)]) == 1
    assert recall([hits(0.9, 0.8, 0.7), hits(0.5)], [hits(0.9, 0.6, 0.5), hits(0.4)]) == pytest.approx(1 / 4)
    assert recall([hits()], [hits()]) == 0


@pytest.mark.slow
def test_a_run_writes_a_table_and_a_plot(tmp_path: Path) -> None:
    kept, report = tmp_path / "vectors.npy", tmp_path / "nearest.md"
    sizes = ["--sizes", "40,80", "--vectors", str(kept), "--report", str(report)]
    main([*sizes, "--synthetic", "200", "--others", "80"])
    text = report.read_text()
    for part in ("| 40 |", "| 80 |", "| 200 |", "imitated", "usearch graph", "nearest.svg"):
        assert part in text
    assert report.with_suffix(".svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_imitated_vectors_are_as_near_to_each_other_as_those_of_notes(tmp_path: Path) -> None:
    vault = read_vault(tmp_path / "vectors.npy", 100)
    imitated = imitate(vault, 100)
    assert len(imitated.codes) == imitated.chunks.sum()

    def nearest(codes: np.ndarray) -> float:
        units = codes / np.linalg.norm(codes.astype(np.float32), axis=1, keepdims=True)
        products = units @ units.T
        np.fill_diagonal(products, -1)
        return float(np.median(products.max(axis=1)))

    assert nearest(imitated.codes) == pytest.approx(nearest(vault.codes), abs=0.25)
