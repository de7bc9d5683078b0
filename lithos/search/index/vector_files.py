"""The files of a vector store: data files by generation, and a manifest that names the current generation.

A save writes the files of a new generation, replaces `manifest.json` in one step and deletes the older files.
A crash at any point therefore leaves either the old or the new generation. The files are not synced, because
the store can be rebuilt. If a power loss damages a generation, its check fails.

usearch may end the process when it loads a damaged file. The manifest therefore has the size and SHA-256 of
every data file, and only matching files are loaded. No check in a child process is needed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import cattrs
import numpy as np
from attrs import frozen

from lithos.kernel.databases.sqlite import quarantine
from lithos.search.embedding.embedder import EmbedderIdentity

#: Format of the data files. Raise the number whenever their meaning changes. A store of another format is
#: replaced by an empty store.
FORMAT: Final = 2
MANIFEST: Final = "manifest.json"
_DATA_FILE: Final = re.compile(r"(?:vectors|notes|lists)\.(\d+)\.(?:usearch|npy|npz)")


@frozen
class DataFile:
    """The size in bytes and the SHA-256 of a data file when it was written."""

    size: int
    sha256: str


@frozen
class VectorManifest:
    """The content of `manifest.json`. `files` maps names to the data files of the generation."""

    format: int
    embedder: EmbedderIdentity
    chunks: int
    generation: int
    files: Mapping[str, DataFile]


class StoreDamaged(Exception):
    """The error raised for a damaged file of the store, for example with a wrong checksum or size.

    `path` is the file. The message describes the damage.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path.name} {problem}")
        self.path = path


def vectors_name(generation: int) -> str:
    """Return the name of the usearch file of a generation."""
    return f"vectors.{generation}.usearch"


def notes_name(generation: int) -> str:
    """Return the name of the file that lists the indexed notes of a generation."""
    return f"notes.{generation}.npy"


def read_manifest(directory: Path) -> VectorManifest | None:
    """Return the manifest, or `None` if it is missing or has another format.

    Raises `StoreDamaged` if the manifest is unreadable.
    """
    path = directory / MANIFEST
    try:
        found: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise StoreDamaged(path, f"is not JSON ({error})") from error
    if isinstance(found, dict) and isinstance(found.get("format"), int) and found["format"] != FORMAT:
        return None
    try:
        return cattrs.structure(found, VectorManifest)
    except (cattrs.BaseValidationError, TypeError, ValueError) as error:
        raise StoreDamaged(path, "lacks the keys of a manifest") from error


def verify_files(directory: Path, manifest: VectorManifest) -> None:
    """Raise `StoreDamaged` unless every data file still has its recorded size and hash."""
    expected = {vectors_name(manifest.generation), notes_name(manifest.generation)}
    if set(manifest.files) != expected:
        raise StoreDamaged(directory / MANIFEST, "does not name its data files")
    for name, written in manifest.files.items():
        path = directory / name
        if not path.is_file():
            raise StoreDamaged(path, "is missing")
        if path.stat().st_size != written.size:
            raise StoreDamaged(path, f"has {path.stat().st_size} bytes instead of {written.size}")
        if describe_file(path) != written:
            raise StoreDamaged(path, "differs from the written bytes")


def describe_file(path: Path) -> DataFile:
    """Return the size and SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return DataFile(stream.tell(), digest)


def write_generation(
    directory: Path,
    embedder: EmbedderIdentity,
    chunks: int,
    write_vectors: Callable[[Path], None],
    write_notes: Callable[[Path], None],
) -> VectorManifest:
    """Write the next generation, point the manifest to it, and delete all other generations.

    Raises any error that occurs while writing. The store then keeps its current generation.
    """
    generation = _next_generation(directory)
    vectors, notes = directory / vectors_name(generation), directory / notes_name(generation)
    write_vectors(vectors)
    write_notes(notes)
    files = {path.name: describe_file(path) for path in (vectors, notes)}
    manifest = VectorManifest(FORMAT, embedder, chunks, generation, files)
    staged = directory / f"{MANIFEST}.new"
    staged.write_text(json.dumps(cattrs.unstructure(manifest), indent=1) + "\n", encoding="utf-8")
    staged.replace(directory / MANIFEST)
    for name in list_data_files(directory):
        if name not in files:
            (directory / name).unlink(missing_ok=True)
    return manifest


def list_data_files(directory: Path) -> list[str]:
    """Return the names of the data files of all generations."""
    return sorted(path.name for path in directory.iterdir() if _DATA_FILE.fullmatch(path.name))


def _next_generation(directory: Path) -> int:
    """Return a number that is higher than every generation on disk. No file in use is then overwritten."""
    found = [0]
    for name in list_data_files(directory):
        match = _DATA_FILE.fullmatch(name)
        assert match is not None
        found.append(int(match[1]))
    return max(found) + 1


_STAMP_ROW: Final = np.dtype([("serial", np.uint64), ("stamp", np.uint64)])
_STAMPS: Final = "stamps.*.npy"


def write_stamps(directory: Path, generation: int, stamps: Mapping[int, int]) -> None:
    """Write one stamp per note in a file next to a generation.

    Used if the stamps of the store itself have another meaning.

    Raises `OSError`.
    """
    path = directory / _STAMPS.replace("*", str(generation))
    np.save(path, np.array(list(stamps.items()), _STAMP_ROW))
    for other in directory.glob(_STAMPS):
        if other != path:
            other.unlink(missing_ok=True)


def read_stamps(directory: Path, generation: int) -> dict[int, int]:
    """Return the stamps stored next to a generation, or an empty dict if they are missing or unreadable."""
    try:
        rows = np.load(directory / _STAMPS.replace("*", str(generation)), allow_pickle=False)
        return dict(rows.tolist())
    except (OSError, ValueError, TypeError, EOFError):
        return {}


def quarantine_store(directory: Path, damaged: Path) -> Path:
    """Quarantine all files of the store without changing them.

    Return the new path of the damaged file.

    If the damaged file is missing, the path of the manifest is returned instead.
    """
    now = datetime.now(UTC)
    moved = {
        name: quarantine(directory / name, now)
        for name in (MANIFEST, *list_data_files(directory))
        if (directory / name).exists()
    }
    return moved.get(damaged.name) or moved[MANIFEST]
