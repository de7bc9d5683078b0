"""The directory of the full-text index: its format marker, its checksums, and starting afresh."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any, Final

MARKER: Final = ".schema_version"
_SEGMENT_KINDS: Final = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC: Final = 1337
_TAIL: Final = struct.Struct("<II")
_BLOCK: Final = 1 << 20


def read_marker(directory: Path) -> str | None:
    """Return the name of the index format, `None` when there is no readable marker."""
    try:
        return (directory / MARKER).read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
        return None


def write_marker(directory: Path, name: str) -> None:
    """Write the format marker; the last step of making an index, so that half an index has none."""
    (directory / MARKER).write_text(name + "\n", encoding="utf-8")


def wipe(directory: Path) -> None:
    """Remove the index and leave an empty directory. Notes rebuild it."""
    if directory.is_dir() and not directory.is_symlink():
        shutil.rmtree(directory)
    elif directory.is_dir():  # A link to a directory elsewhere stays a link.
        for child in directory.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    else:
        directory.unlink(missing_ok=True)
    directory.mkdir(parents=True, exist_ok=True)


def find_damage(directory: Path) -> str | None:
    """Return which file of the index is damaged and how, `None` when all are there and as written.

    Tantivy writes a CRC-32 at the end of each file but compares it only on request, which its Python
    binding does not offer; searching a damaged file can panic. 20 MB take about 10 ms. Files that no
    committed segment has (a crash leaves such) do not matter.
    """
    try:
        names = _list_segment_files(json.loads((directory / "meta.json").read_bytes()))
    except (FileNotFoundError, IsADirectoryError, ValueError, KeyError, TypeError) as error:
        return f"meta.json cannot be read ({type(error).__name__}: {error})"
    for name in names:
        path = directory / name
        problem = _check_footer(path) if path.is_file() else "is missing"
        if problem:
            return f"{name} {problem}"
    return None


def _list_segment_files(meta: Any) -> list[str]:
    names: list[str] = []
    for segment in meta["segments"]:
        stem = str(segment["segment_id"]).replace("-", "")
        names += [f"{stem}.{kind}" for kind in _SEGMENT_KINDS]
        if segment["deletes"] is not None:
            names.append(f"{stem}.{segment['deletes']['opstamp']}.del")
    return names


def _check_footer(path: Path) -> str | None:
    """Check one file: data, JSON footer with the CRC-32 of the data, length of the footer, magic number."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _TAIL.size))
        tail = stream.read(_TAIL.size)
        if len(tail) < _TAIL.size:
            return "is too short"
        length, magic = _TAIL.unpack(tail)
        data_size = size - _TAIL.size - length
        if magic != _MAGIC or data_size < 0:
            return "has no footer"
        stream.seek(data_size)
        footer = stream.read(length)
        stream.seek(0)
        checksum, rest = 0, data_size
        while rest and (block := stream.read(min(rest, _BLOCK))):
            checksum, rest = zlib.crc32(block, checksum), rest - len(block)
    return None if f'"crc":{checksum}'.encode() in footer else "has another checksum than its data"
