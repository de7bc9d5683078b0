"""The directory of the full-text index: its format marker, its checksums, and starting afresh."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path
from typing import Final

MARKER: Final = ".schema_version"
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
    """Return which segment file is damaged and how, `None` when every checksum is right.

    Tantivy writes a CRC-32 at the end of each file but compares it only on request, which its Python
    binding does not offer; searching a damaged file can panic. 20 MB take about 20 ms.
    """
    for path in sorted(directory.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.suffix not in (".json", ".lock"):
            problem = _check_footer(path)
            if problem:
                return f"{path.name} {problem}"
    return None


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
