"""Read-only inspection of the indexes on disk, even while a server runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import numpy as np
from attrs import field, frozen

from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import EmbedderIdentity
from lithos.search.index import fulltext_schema, vector_files
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import FORMAT
from lithos.search.index.vector_files import StoreDamaged

#: Number of attempts. A running server may replace index files at any moment, so one attempt may fail.
_TRIES: Final = 3


@frozen
class IndexStamps:
    """The stamps of all indexed notes by serial, or the `reason` why the index is unusable."""

    stamps: Mapping[int, int] = field(factory=dict)
    reason: Literal["schema_mismatch", "embedder_mismatch", "check_failed"] | None = None
    detail: str = ""


def inspect_fulltext(directory: Path) -> IndexStamps:
    """Inspect a full-text index read-only. Blocks."""
    marker = fulltext_schema.read_marker(directory)
    if not fulltext_schema.is_current(marker):
        detail = f"its format is {marker[:40]!r}, not {FORMAT!r}" if marker else "it has no format marker"
        return IndexStamps(reason="schema_mismatch", detail=detail)
    return _try(lambda: IndexStamps(_read_fulltext(directory)))


def _try(inspect: Callable[[], IndexStamps]) -> IndexStamps:
    problem = ""
    for _ in range(_TRIES):
        try:
            return inspect()
        except (IndexFailed, StoreDamaged, OSError) as failure:
            problem = str(failure)
    return IndexStamps(reason="check_failed", detail=problem)


def _read_fulltext(directory: Path) -> Mapping[int, int]:
    """Return the stamps of all indexed notes.

    The index is opened through a folder of links, because opening an index creates files.
    """
    with tempfile.TemporaryDirectory(prefix="lithos-") as folder:
        twin = Path(folder)
        # First copy the files that list other files, then link the listed files. A file that is deleted in
        # between is reported as missing.
        for name in ("meta.json", ".managed.json", fulltext_schema.MARKER):
            if (directory / name).exists():
                (twin / name).write_bytes((directory / name).read_bytes())
        for file in directory.iterdir():
            if not (twin / file.name).exists() and not file.name.endswith(".lock"):
                (twin / file.name).symlink_to(file.absolute())
        index = FulltextIndex.open_sound(twin)
        return index.stamps()


def inspect_vectors(directory: Path, identity: EmbedderIdentity | None) -> IndexStamps:
    """Inspect a vector store read-only.

    If `identity` is not None, the store must belong to the embedder with this identity. Blocks.
    """
    return _try(lambda: _read_vectors(directory, identity))


def _read_vectors(directory: Path, identity: EmbedderIdentity | None) -> IndexStamps:
    manifest = vector_files.read_manifest(directory)
    if manifest is None:
        if (directory / vector_files.MANIFEST).exists():
            return IndexStamps(reason="schema_mismatch", detail="the vector store has another format")
        return IndexStamps()
    if identity is not None and manifest.embedder != identity:
        detail = f"the vectors belong to {manifest.embedder.name!r}, not to {identity.name!r}"
        return IndexStamps(reason="embedder_mismatch", detail=detail)
    vector_files.verify_files(directory, manifest)
    rows = np.load(directory / vector_files.notes_name(manifest.generation), allow_pickle=False)
    return IndexStamps({int(row[0]): int(row[1]) for row in rows.tolist()})
