"""Bytecode of the methods that attrs generates, kept as Python keeps that of modules.

attrs writes the methods of a class as source text and compiles it whenever the module is imported: for the
500 classes of a server that is a quarter of all imports. Code is found by the hash of its source, so what
was made of other sources is never used. The file stands beside the bytecode of this module, and is trusted
as that is; where Python may write no bytecode, nothing is kept.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import sys
import zlib
from contextlib import suppress
from importlib import import_module
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType
from typing import Final

#: Classes whose code is kept: six times as many as a server has. Beyond, what was not used goes.
MOST: Final = 3_000
_CHECK: Final = 4
#: The number of a class in its `__hash__`, which attrs takes from a hash that is another in each process.
_CLASS_NUMBER: Final = re.compile(r"^( +)-?[0-9]+,$", re.MULTILINE)


class ClassCode:
    """Compiles, or finds what was compiled before. Any thread may `compile`; one at a time may `save`."""

    def __init__(self, path: Path) -> None:
        """What is in the file at `path`, if it can be used. Blocks."""
        self._path = path
        self._kept = _read(path)
        #: Made or used by this process.
        self._seen: dict[bytes, bytes] = {}
        #: How many were compiled.
        self.compiled = 0

    def compile(self, source: str, filename: str, mode: str) -> CodeType:
        """As the builtin does it."""
        number = zlib.crc32(filename.encode("utf-8", "surrogatepass"))
        source = _CLASS_NUMBER.sub(rf"\g<1>{number},", source)
        text = f"{mode}\0{filename}\0{source}".encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(text, digest_size=16).digest()
        kept = self._kept.get(key)
        if kept is not None:
            self._seen[key] = kept
            code: CodeType = marshal.loads(kept)  # noqa: S302 - of our own file, as Python loads modules
            return code
        made: CodeType = compile(source, filename, mode)
        self._seen[key] = marshal.dumps(made)
        self.compiled += 1
        return made

    def save(self) -> None:
        """Keep what was compiled for the next process; nothing if it cannot be written. Blocks."""
        if not self.compiled or sys.dont_write_bytecode:
            return
        seen = dict(self._seen)
        kept = self._kept | seen
        content = marshal.dumps(kept if len(kept) <= MOST else seen)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):  # an installation of somebody else's: as silent as Python is about modules
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(MAGIC_NUMBER + _check(content) + content)
                temporary.replace(self._path)
            finally:
                temporary.unlink(missing_ok=True)


_installed: list[ClassCode] = []


def install_class_code() -> None:
    """Have attrs compile here from now on, where there is a place for bytecode.

    attrs takes `compile` from the globals of its module, so that it takes this one.
    """
    with suppress(ImportError, NotImplementedError):
        made = ClassCode(Path(cache_from_source(__file__)).with_suffix(".classes"))
        vars(import_module("attr._make"))["compile"] = made.compile
        _installed[:] = [made]


def keep_class_code() -> None:
    """Save what was compiled since `install_class_code`. Blocks."""
    for each in _installed:
        each.save()


def _check(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECK)


def _read(path: Path) -> dict[bytes, bytes]:
    """What the file holds; nothing for one that is missing, of another Python, or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    begin = len(MAGIC_NUMBER) + _CHECK
    content = data[begin:]
    if data[:begin] != MAGIC_NUMBER + _check(content):
        return {}
    kept: dict[bytes, bytes] = marshal.loads(content)  # noqa: S302 - of our own file
    return kept
