"""Blocks: some consecutive turns of a session as compressed JSON, and the vectors of these turns.

A turn is identified by a serial: the number of its block and its place in the block. A block that grows keeps
its number, so the serials of its turns never change.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.kernel.values.times import from_microseconds, to_microseconds
from lithos.search.embedding.embedder import Matrix
from lithos.search.index.chunk_rows import Codes, invert_lengths
from lithos.sessions.model.session import Turn

#: Number of low bits of a serial that contain the place of a turn in its block.
PLACE_BITS: Final = 8
#: A block is full with this number of turns or characters. A single turn may be larger.
FULL_TURNS: Final = 32
FULL_SIZE: Final = 24_000


def serial_of(block: int, place: int) -> int:
    """Return the serial of a turn."""
    return (block << PLACE_BITS) + place


def place_of(serial: int) -> tuple[int, int]:
    """Return the block and the place of a turn."""
    return serial >> PLACE_BITS, serial & ((1 << PLACE_BITS) - 1)


def pack_turns(turns: Sequence[Turn]) -> bytes:
    """Return turns as compressed JSON. Their numbers are not stored."""
    rows = [
        [
            each.who,
            None if each.when is None else to_microseconds(each.when),
            each.text,
            each.tools,
            each.files,
            each.outputs,
            each.key,
            each.cut,
        ]
        for each in turns
    ]
    return zlib.compress(json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode())


def unpack_turns(packed: bytes, first: int) -> list[Turn]:
    """Return the turns of a block. `first` is the number of its first turn."""
    rows: list[list[Any]] = json.loads(zlib.decompress(packed))
    return [_turn(first + place, row) for place, row in enumerate(rows)]


def unpack_some(packed: bytes, first: int, places: Iterable[int]) -> dict[int, Turn]:
    """Return some turns of a block by place. Missing turns are left out."""
    rows: list[list[Any]] = json.loads(zlib.decompress(packed))
    return {place: _turn(first + place, rows[place]) for place in places if place < len(rows)}


def _turn(number: int, row: list[Any]) -> Turn:
    who, when, text, tools, files, outputs, key, cut = row
    at = None if when is None else from_microseconds(when)
    return Turn(number, who, at, text, tuple(tools), tuple(files), tuple(outputs), key, cut)


#: The vectors of nothing.
NO_CODES: Final = np.zeros((0, 0), np.int8)


@frozen(eq=False)
class BlockVectors:
    """The int8 vectors of a block's turns: the place of the turn of each row, its inverse length, its codes.

    A turn may have several rows, one for each of its passages.
    """

    places: NDArray[np.uint8]
    inverse: Matrix
    codes: Codes

    @classmethod
    def of(cls, of_turns: Sequence[Codes]) -> BlockVectors:
        """Join the vectors of turns. The first turn has place 0."""
        counts = [len(codes) for codes in of_turns]
        places = np.repeat(np.arange(len(counts)), counts).astype(np.uint8)
        codes = np.concatenate(of_turns) if sum(counts) else NO_CODES
        return cls(places, invert_lengths(codes), codes)

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """Return the places, the inverse lengths and the codes as bytes.

        The bytes of several blocks can be joined, so that one array has the vectors of all of them.
        """
        return self.places.tobytes(), self.inverse.tobytes(), self.codes.tobytes()

    @classmethod
    def unpack(cls, places: bytes, inverse: bytes, codes: bytes) -> BlockVectors:
        """Reverse `pack`, also for joined bytes. The arrays share memory with the bytes."""
        found = np.frombuffer(places, np.uint8)
        rows = np.frombuffer(codes, np.int8).reshape(len(found), -1) if len(found) else NO_CODES
        return cls(found, np.frombuffer(inverse, np.float32), rows)

    def before(self, place: int) -> list[Codes]:
        """Return the vectors of each turn before a place."""
        return [self.codes[self.places == each] for each in range(place)]


def latest(turns: Sequence[Turn]) -> datetime | None:
    """Return the latest time of some turns."""
    return max((each.when for each in turns if each.when is not None), default=None)
