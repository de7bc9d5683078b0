"""The lists on disk: one file beside a generation of vectors, with a checksum.

It may be missing, old or damaged: then the lists are built again, and the exact scan answers until they are.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, Final

import numpy as np

from lithos.stores.indexes.chunk_rows import Codes
from lithos.stores.indexes.lists.clustering import Numbers
from lithos.stores.indexes.lists.searching import NO_LIST
from lithos.telemetry import get_logger

log = get_logger("lithos.lists")

_LISTS: Final = "lists.*.npz"
_DIGEST: Final = hashlib.sha256().digest_size


def lists_name(generation: int) -> str:
    """The name of the file of a generation."""
    return _LISTS.replace("*", str(generation))


def write_lists(directory: Path, generation: int, centres: Codes, numbers: Numbers, trained_on: int) -> None:
    """Keep the lists of a generation, `numbers` in the order of its rows; a failure is only logged."""
    content = io.BytesIO()
    np.savez(content, centres=centres, numbers=numbers, trained_on=np.array(trained_on))
    path = directory / lists_name(generation)
    staged = path.with_suffix(".new")
    try:
        with staged.open("wb") as stream:
            stream.write(hashlib.sha256(content.getbuffer()).digest())
            stream.write(content.getbuffer())
        staged.replace(path)
        for other in directory.glob(_LISTS):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError as failure:
        log.warning("lists of vectors not saved; the next start builds them again", reason=str(failure))


def read_lists(directory: Path, generation: int, rows: int, dims: int) -> tuple[Codes, Numbers, int] | None:
    """Centres, the number of each row, and what the centres were trained on; None if they are of no use."""
    path = directory / lists_name(generation)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failure:
        log.warning("lists of vectors cannot be read; they are built again", reason=str(failure))
        return None
    if hashlib.sha256(memoryview(content)[_DIGEST:]).digest() != content[:_DIGEST]:
        log.warning("lists of vectors are damaged; they are built again", path=str(path))
        return None
    with np.load(io.BytesIO(content[_DIGEST:]), allow_pickle=False) as kept:
        centres: Any = kept["centres"]
        numbers: Any = kept["numbers"]
        trained_on = int(kept["trained_on"])
    listed = numbers[numbers != NO_LIST]
    if centres.shape[1:] != (dims,) or numbers.shape != (rows,) or listed.max(initial=0) >= len(centres):
        log.warning("lists of other vectors are not used; they are built again", path=str(path))
        return None
    return centres, numbers, trained_on
