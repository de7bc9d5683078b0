"""Nearest-neighbour search by size: recall of the inverted lists against the exact scan, and what they cost.

Usage: `python -m bench.nearest [--sizes 1000,10000,100000] [--vectors FILE] [--synthetic N] [--others N]`.

Notes are those of `bench.corpus`, embedded by the built-in model. That takes some minutes for 100,000 of
them, so `--vectors FILE` keeps the vectors in a file and takes them from there. `--synthetic N` adds a size
of N notes whose vectors are mixtures of two or three of the former with noise, which need not be embedded.
`--others N` compares other methods in N notes: a scan of 64 principal components and one of signs, both with
exact scores for the best 1 %, and usearch's own graph. Times are processor time of the thread, medians, so
that they mean something on a busy machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time, thread_time
from typing import Final
from unittest.mock import patch

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from bench.corpus import generate, queries
from bench.plot import draw_plot
from bench.tables import render_table
from lithos.actors.indexing.ports import ChunkSizes
from lithos.core.notes.document import parse_document
from lithos.stores.indexes import lists as searching
from lithos.stores.indexes.chunk_rows import (
    Codes,
    VectorEntry,
    VectorHit,
    VectorQuery,
    encode_rows,
    invert_lengths,
    multiply,
)
from lithos.stores.indexes.embedder import BUILTIN, EmbedderIdentity, load_embedder
from lithos.stores.indexes.vectors import VectorIndex

HERE: Final = Path(__file__).parent
QUERIES: Final = 60
DEPTHS: Final = (10, 200)
#: The threshold of a search by default.
THRESHOLD: Final = 0.3
#: Notes added to measure an update, and rows made at once.
UPDATES: Final = 200
_AT_ONCE: Final = 50_000
#: The share of rows whose exact scores the other methods look at.
RESCORED: Final = 0.01


@frozen
class Vault:
    """The vectors of notes: `chunks` of each, rows in the order of the notes."""

    codes: Codes
    chunks: NDArray[np.int64]

    def first(self, notes: int) -> Vault:
        """The vectors of the first notes."""
        chunks = self.chunks[:notes]
        return Vault(self.codes[: int(chunks.sum())], chunks)


@frozen
class Row:
    """What was measured at one size; times in ms, those of building in s of processor time."""

    notes: int
    rows: int
    kind: str
    exact: float
    exact_four: float
    lists: float
    lists_p95: float
    lists_four: float
    recall: tuple[float, ...]
    build: float
    merge: float
    update: float
    bytes_a_row: float
    is_used: bool


def measure(vault: Vault, kind: str, identity: EmbedderIdentity, vectors: NDArray[np.float32]) -> Row:
    """Build, search, change one size; the lists are also built where the server would do without."""
    with tempfile.TemporaryDirectory() as folder:
        index = fill(vault, Path(folder), identity)
        rows = index.chunk_count()
        is_used = rows >= searching.FROM
        right, exact, _ = search_all(index, vectors, DEPTHS)
        exact_four = search_in_fours(index, vectors)
        with patch.object(searching, "FROM", 1):
            build = timed(lambda: index.build_lists(lambda: None))
            found, lists, p95 = search_all(index, vectors, DEPTHS)
            lists_four = search_in_fours(index, vectors)
            update = timed(lambda: add(index, vault, vectors)) / UPDATES * 1e3
            merge = timed(lambda: index.build_lists(lambda: None))
        beside = 4 * 5 + (index._search.lists.centres.nbytes if index._search.lists else 0) / max(1, rows)
        return Row(
            len(vault.chunks), rows, kind, exact, exact_four, lists, p95, lists_four,
            tuple(recall(right[depth], found[depth]) for depth in DEPTHS),
            build, merge, update, beside, is_used,
        )  # fmt: skip


def fill(vault: Vault, folder: Path, identity: EmbedderIdentity) -> VectorIndex:
    """An index of all notes, by the way a start takes them from disk."""
    index = VectorIndex(folder, identity)
    index._rows.reserve(len(vault.codes))
    begin = 0
    for start in range(0, len(vault.chunks), _AT_ONCE):
        counts = vault.chunks[start : start + _AT_ONCE].tolist()
        notes = [(start + number, 1, chunks) for number, chunks in enumerate(counts, start=1)]
        index.adopt(notes, vault.codes[begin : begin + sum(counts)])
        begin += sum(counts)
    return index


def search_all(
    index: VectorIndex, vectors: NDArray[np.float32], depths: Sequence[int]
) -> tuple[dict[int, list[list[VectorHit]]], float, float]:
    """The hits by depth, and median and 95th percentile of the time of the deepest."""
    found: dict[int, list[list[VectorHit]]] = {}
    times: list[float] = []
    for depth in depths:
        times = []
        found[depth] = []
        for vector in vectors:
            begun = thread_time()
            found[depth].append(index.search(vector, depth, THRESHOLD))
            times.append((thread_time() - begun) * 1e3)
    return found, float(np.median(times)), float(np.quantile(times, 0.95))


def search_in_fours(index: VectorIndex, vectors: NDArray[np.float32]) -> float:
    """The time of one query of four that are asked together."""
    asked = [VectorQuery(vector, DEPTHS[-1], THRESHOLD) for vector in vectors]
    times = []
    for start in range(0, len(asked), 4):
        begun = thread_time()
        index.search_together(asked[start : start + 4])
        times.append((thread_time() - begun) * 1e3 / 4)
    return float(np.median(times))


def recall(right: Sequence[Sequence[VectorHit]], found: Sequence[Sequence[VectorHit]]) -> float:
    """The share of the right notes that were found; notes as near as the last right one are right too."""
    wanted = sum(len(hits) for hits in right)
    there = 0
    for exact, hits in zip(right, found, strict=True):
        least = exact[-1].similarity if exact else 2.0
        there += min(len(exact), sum(hit.similarity >= least for hit in hits))
    return there / max(1, wanted)


def add(index: VectorIndex, vault: Vault, vectors: NDArray[np.float32]) -> None:
    """Add notes of four chunks, one by one."""
    for number in range(UPDATES):
        rows = np.take(vectors, range(number, number + 4), axis=0, mode="wrap")
        index.apply([VectorEntry(len(vault.chunks) + 1 + number, 1, rows)], [])


def timed(call: Callable[[], object]) -> float:
    """Seconds of processor time of this thread."""
    begun = thread_time()
    call()
    return thread_time() - begun


def embed(notes: int) -> Vault:
    """The notes of the corpus, as the server embeds them."""
    embedder, sizes = load_embedder(BUILTIN), ChunkSizes(500)
    parts: list[Codes] = []
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), notes)
        for path in sorted(Path(folder).rglob("*.md")):
            document = parse_document(path.read_bytes(), path.stem, datetime.now(UTC))
            texts = [chunk.embedded for chunk in sizes.chunks(document.note.title, document.content)]
            parts.append(encode_rows(embedder.encode(texts)))
            counts.append(len(texts))
    return Vault(np.concatenate(parts), np.array(counts, np.int64))


def imitate(vault: Vault, notes: int) -> Vault:
    """More notes: each chunk a mixture of two or three chunks of notes that are there, and noise."""
    random = np.random.default_rng(notes)
    chunks = random.choice(vault.chunks, notes)
    rows = int(chunks.sum())
    codes = np.empty((rows, vault.codes.shape[1]), np.int8)
    inverse = np.nan_to_num(invert_lengths(vault.codes))
    for start in range(0, rows, _AT_ONCE):
        count = min(_AT_ONCE, rows - start)
        shares = random.dirichlet((2.0, 1.0, 0.5), count).astype(np.float32)
        mixed = random.normal(0, 0.02, (count, codes.shape[1])).astype(np.float32)
        for part in range(3):
            chosen = random.integers(0, len(vault.codes), count)
            mixed += vault.codes[chosen] * (inverse[chosen] * shares[:, part])[:, None]
        codes[start : start + count] = encode_rows(mixed)
    return Vault(codes, chunks.astype(np.int64))


# -- other methods -----------------------------------------------------------------------------------


@frozen
class Method:
    """A way to find the rows that may be nearest; `beside` are bytes a row besides the vectors."""

    name: str
    build: float
    beside: float
    update: str
    time: float
    recall: tuple[float, ...]


def compare_methods(vault: Vault, vectors: NDArray[np.float32]) -> list[Method]:
    """Recall by rows, not notes, of ways that are not used."""
    codes = vault.codes[vault.codes.any(axis=1)]
    inverse, asked = invert_lengths(codes), encode_rows(vectors)
    right = [np.argsort(-(multiply(codes, query[None])[:, 0] * inverse), kind="stable") for query in asked]

    def rate(
        name: str, find: Callable[[Codes], NDArray[np.intp]], build: float, beside: float, update: str
    ) -> Method:
        times, shares = [], dict.fromkeys(DEPTHS, 0.0)
        for query, best in zip(asked, right, strict=True):
            begun = thread_time()
            rows = find(query)
            scores = multiply(codes[rows], query[None])[:, 0] * inverse[rows]
            order = rows[np.argsort(-scores, kind="stable")]
            times.append((thread_time() - begun) * 1e3)
            for depth in DEPTHS:
                shares[depth] += len(set(best[:depth].tolist()) & set(order[:depth].tolist())) / depth
        return Method(
            name, build, beside, update, float(np.median(times)),
            tuple(share / len(asked) for share in shares.values()),
        )  # fmt: skip

    most = max(2 * DEPTHS[-1], int(RESCORED * len(codes)))
    return [
        rate(*_by_components(codes, inverse, most)),
        rate(*_by_signs(codes, most)),
        rate(*_by_graph(codes)),
    ]


_Way = tuple[str, Callable[[Codes], NDArray[np.intp]], float, float, str]


def _highest(values: NDArray[np.int32], most: int) -> NDArray[np.intp]:
    return np.argpartition(values, len(values) - most)[len(values) - most :]


def _by_components(codes: Codes, inverse: NDArray[np.float32], most: int) -> _Way:
    """64 principal components, a byte each."""
    begun = process_time()
    sample = codes[:: max(1, len(codes) // 50_000)].astype(np.float32)
    _, axes = np.linalg.eigh(sample.T @ sample)
    axes = axes[:, -64:].astype(np.float32)
    low = np.empty((len(codes), 64), np.int8)
    for start in range(0, len(codes), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        turned = (codes[part].astype(np.float32) * inverse[part, None]) @ axes
        low[part] = np.clip(np.rint(turned * (127 / 0.6)), -127, 127)
    build = process_time() - begun

    def find(query: Codes) -> NDArray[np.intp]:
        return _highest(multiply(low, encode_rows((query.astype(np.float32) @ axes)[None]))[:, 0], most)

    return "64 components, best 1 % exactly", find, build, 64, "a product"


def _by_signs(codes: Codes, most: int) -> _Way:
    """One bit a number."""
    import numkong  # noqa: PLC0415 - only here

    begun = process_time()
    signs = np.packbits(codes > 0, axis=1)
    build = process_time() - begun

    def find(query: Codes) -> NDArray[np.intp]:
        bits = np.packbits(query > 0)
        apart = np.asarray(numkong.cdist(signs, bits[None], metric="hamming", dtype="uint1"))[:, 0]
        return _highest(-apart.astype(np.int32), most)

    return "signs (one bit), best 1 % exactly", find, build, codes.shape[1] / 8, "a comparison"


def _by_graph(codes: Codes) -> _Way:
    """usearch's graph (HNSW) with its usual settings."""
    from usearch.index import Index  # noqa: PLC0415 - only here

    begun = process_time()
    index = Index(ndim=codes.shape[1], metric="cos", dtype="i8")
    index.add(np.arange(len(codes), dtype=np.uint64), codes, threads=1)
    build = process_time() - begun

    def find(query: Codes) -> NDArray[np.intp]:
        return index.search(query, 2 * DEPTHS[-1]).keys.astype(np.intp)

    beside = index.memory_usage / len(codes) - codes.shape[1]
    return (
        "usearch graph (HNSW 16, 128, 64)",
        find,
        build,
        beside,
        f"{build / len(codes) * 1e3:.1f} ms a chunk",
    )


# -- report ------------------------------------------------------------------------------------------

_HEAD: Final = (
    "Notes", "Chunks", "Vectors", "In use", "Exact, ms", "Lists, ms (p95)", "Exact, lists of four, ms each",
    "Recall@10", "Recall@200", "Build, s", "Merge of 200 notes, s", "A new note, ms", "Bytes a chunk besides",
)  # fmt: skip


def render(rows: Sequence[Row], methods: Sequence[Method], others: int, picture: str) -> str:
    """The report as Markdown."""
    table = render_table(
        _HEAD,
        [
            (
                f"{row.notes:,}", f"{row.rows:,}", row.kind, "lists" if row.is_used else "exact scan",
                f"{row.exact:.2f}", f"{row.lists:.2f} ({row.lists_p95:.1f})",
                f"{row.exact_four:.2f}, {row.lists_four:.2f}", *(f"{share:.3f}" for share in row.recall),
                f"{row.build:.1f}", f"{row.merge:.2f}", f"{row.update:.2f}", f"{row.bytes_a_row:.0f}",
            )
            for row in rows
        ],
    )  # fmt: skip
    text = f"""# Nearest neighbours by size

Written by `python -m bench.nearest`. Times are processor time of one thread, of a query for {DEPTHS[-1]}
notes; recall is the share of the notes of the exact scan, {QUERIES} queries, threshold {THRESHOLD}. Up to
{searching.FROM:,} chunks the server scans all vectors; the columns of the lists say there what they would do.
A vector has 256 bytes, and what is beside it is counted per chunk.

{table}

![size against the time of a query]({picture})
"""
    if methods:
        rows_of_methods = [
            (
                method.name, f"{method.time:.2f}", *(f"{share:.3f}" for share in method.recall),
                f"{method.build:.1f}", f"{method.beside:.0f}", method.update,
            )
            for method in methods
        ]  # fmt: skip
        head = (
            "Method",
            "Query, ms",
            "Recall@10",
            "Recall@200",
            "Build, s",
            "Bytes a chunk besides",
            "Update",
        )
        text += (
            f"\n## Other ways\n\nOf chunks, in {others:,} notes.\n\n{render_table(head, rows_of_methods)}\n"
        )
    return text


def read_vault(path: Path | None, notes: int) -> Vault:
    """The vectors of at least so many notes: from the file, which is written if it is not there."""
    if path is None:
        return embed(notes)
    counts = path.with_name(f"{path.name}.ids.npy")
    if not path.exists():
        vault = embed(notes)
        np.save(path, vault.codes)
        np.save(counts, vault.chunks)
    return Vault(np.load(path, mmap_mode="r"), np.load(counts))


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.nearest", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--sizes", default="1000,10000,100000", help="notes, separated by commas")
    parser.add_argument("--vectors", type=Path, help="file of vectors (.npy), written if it is not there")
    parser.add_argument("--synthetic", type=int, default=0, help="a size of so many notes that are imitated")
    parser.add_argument("--others", type=int, default=0, help="compare other methods in so many notes")
    parser.add_argument("--report", type=Path, default=HERE / "nearest.md")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the report and its plot."""
    options = parse_arguments(arguments)
    sizes = [int(size) for size in options.sizes.split(",") if size]
    embedder = load_embedder(BUILTIN)
    vectors = embedder.encode(queries(11, QUERIES))
    vault = read_vault(options.vectors, max([*sizes, options.others]))
    rows, methods = [], []
    for size in sizes:
        rows.append(measure(vault.first(size), "bench notes", embedder.identity, vectors))
        _say(rows[-1])
    if options.others:
        methods = compare_methods(vault.first(options.others), vectors)
        _say(methods)
    if options.synthetic:
        begun = perf_counter()
        imitated = imitate(vault, options.synthetic)
        _say(f"imitated in {perf_counter() - begun:.0f} s")
        rows.append(measure(imitated, "imitated", embedder.identity, vectors))
        _say(rows[-1])
    report: Path = options.report
    picture = report.with_suffix(".svg")
    series = {
        "exact scan, ms": {row.notes: row.exact for row in rows},
        "lists, ms": {row.notes: row.lists for row in rows},
        "lists, p95, ms": {row.notes: row.lists_p95 for row in rows},
        "build, s": {row.notes: row.build for row in rows},
    }
    picture.write_text(draw_plot(series, "notes"))
    report.write_text(render(rows, methods, options.others, picture.name))


def _say(what: object) -> None:
    sys.stderr.write(f"{what}\n")


if __name__ == "__main__":
    main()
