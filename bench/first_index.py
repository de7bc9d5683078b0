"""What indexing a folder costs the libraries alone, one after the other: the floor under a first start.

`python -m bench.first_index FOLDER`. *read* the files, *parse* their frontmatter (PyYAML, C loader), index
title and body with *tantivy* (its stemmer, its own number of threads, one commit), *encode* the chunks
with the built-in model, and put the vectors into a *usearch* index as thin as Lithos's. Loading the model and
cutting the chunks is not counted: it is no library's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml
from tantivy import Document, Index, SchemaBuilder

from lithos.core.text.chunk import chunk_text
from lithos.stores.indexes.embedder import BUILTIN, load_embedder
from lithos.stores.indexes.vectors import load_cpp_runtime

PARTS = ("read", "parse", "tantivy", "encode", "usearch")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.first_index", description=__doc__)
    parser.add_argument("folder", type=Path)
    print(json.dumps(index_barely(parser.parse_args().folder)))


def measure_floor(folder: Path, timeout: float | None = None) -> dict[str, float]:
    """Seconds of each of `PARTS`, taken in a process of its own, which may run for `timeout` seconds."""
    told = subprocess.run(
        [sys.executable, "-m", "bench.first_index", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=timeout,
    )
    seconds: dict[str, float] = json.loads(told.stdout)
    return seconds


def index_barely(folder: Path) -> dict[str, float]:
    """Do it, and the seconds of each part."""
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        seconds[part] = round(time.perf_counter() - began, 3)

    with timed("read"):
        files = [path.read_bytes() for path in sorted(folder.rglob("*.md"))]
    with timed("parse"):
        notes = [_parse(data.decode()) for data in files]
    with tempfile.TemporaryDirectory(prefix="lithos-bench-") as index, timed("tantivy"):
        _index_words(Path(index), notes)
    chunks = [chunk.embedded for title, body in notes for chunk in chunk_text(title, body)]
    embedder = load_embedder(BUILTIN)
    with timed("encode"):
        vectors = embedder.encode(chunks)
    load_cpp_runtime()
    from usearch.index import Index as VectorIndex  # noqa: PLC0415 - after the runtime it needs

    with timed("usearch"):
        thin = VectorIndex(
            ndim=vectors.shape[1],
            metric="ip",
            dtype="i8",
            connectivity=2,
            expansion_add=1,
            expansion_search=1,
        )
        thin.add(np.arange(len(vectors), dtype=np.uint64), vectors)
    return seconds


def _parse(text: str) -> tuple[str, str]:
    """Title and body of a note."""
    head, body = "", text
    if text.startswith("---\n"):
        head, _, body = text[4:].partition("\n---\n")
    values = yaml.load(head, yaml.CSafeLoader) or {}
    return str(values.get("title", "")), body


def _index_words(folder: Path, notes: list[tuple[str, str]]) -> None:
    builder = SchemaBuilder()
    for name in ("title", "body"):
        builder.add_text_field(name, tokenizer_name="en_stem")
    writer = Index(builder.build(), str(folder)).writer()
    for title, body in notes:
        writer.add_document(Document(title=[title], body=[body]))
    writer.commit()
    writer.wait_merging_threads()


if __name__ == "__main__":
    main()
