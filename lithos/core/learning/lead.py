"""Lead coverage: how early a note, and its best passage, have the words of a query (search spec, section 5).

    lead(x)  = sum of idf(t) / (1 + first_x(t) / 25)  /  sum of idf(t)
    LC(note) = 0.5 lead(first 128 stems of title and body) + 0.5 max of lead(passage) over its passages

where t are the distinct content stems of the query and first_x(t) is the place of the first t among the stems
of x, from 0. Where a word stands first tells what a text is about. The formula was found by measuring
(`bench/quality.md`); positional weights of this kind are known from focused web retrieval.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

#: Places after which a word counts half.
_HALVING: Final = 25
#: Stems of a note that its own lead looks at.
LEADING: Final = 128
#: Stems of a note that are kept: those of some 100,000 characters. Passages behind them have no lead.
MOST_STEMS: Final = 16_384
_BITS: Final = np.uint32(0xFFFF)
#: Entries of a table of half a megabyte.
_MOST_KEYS: Final = 65_536

Stems: TypeAlias = NDArray[np.uint32]


@frozen(eq=False)
class LeadText:
    """The stems of a note's passages in a row, as hashes, and how many each passage has."""

    stems: Stems
    lengths: Stems

    @classmethod
    def of(cls, passages: Sequence[Sequence[str]]) -> LeadText:
        """From the stems of each passage, in order; the first begins with the title."""
        lengths: list[int] = []
        stems: list[int] = []
        for passage in passages:
            some = passage[: MOST_STEMS - len(stems)]
            lengths.append(len(some))
            stems += map(hash_stem, some)
            if len(stems) >= MOST_STEMS:
                break
        return cls(np.array(stems, np.uint32), np.array(lengths, np.uint32))

    def pack(self) -> bytes:
        """As bytes: the number of passages, their lengths, the stems; numbers of 32 bits, little-endian."""
        head = np.array([len(self.lengths)], np.uint32)
        return np.concatenate([head, self.lengths, self.stems]).astype("<u4").tobytes()

    @classmethod
    def unpack(cls, packed: bytes) -> LeadText:
        """The reverse of `pack`. Raises `ValueError` for bytes that it did not make."""
        numbers = np.frombuffer(packed, "<u4")
        count = int(numbers[0]) if len(numbers) else 0
        lengths, stems = numbers[1 : 1 + count], numbers[1 + count :]
        if len(lengths) != count or int(lengths.sum()) != len(stems):
            raise ValueError(f"{len(packed)} bytes that are no packed stems")
        return cls(stems, lengths)

    @property
    def size(self) -> int:
        """Bytes of both."""
        return self.stems.nbytes + self.lengths.nbytes


@lru_cache(maxsize=65_536)
def hash_stem(stem: str) -> int:
    """A stem as 32 bits; that two share one is so rare that it does not matter."""
    return zlib.crc32(stem.encode())


class Covered(NamedTuple):
    """How a note has the words of a query, each 0..1.

    `coverage` is LC, `lead` that of the note alone, `passage` that of its best passage; `share` and `words`
    are the shares of the content stems that it has at all, by idf and by number.
    """

    coverage: float = 0.0
    lead: float = 0.0
    passage: float = 0.0
    share: float = 0.0
    words: float = 0.0


def lead_coverage(notes: Sequence[LeadText], idf: Mapping[str, float]) -> list[Covered]:
    """How each note has the content stems of a query, given with their idf.

    A few passes over all stems together: some tenths of a millisecond for sixty notes.
    """
    total = sum(idf.values())
    known = [i for i, note in enumerate(notes) if len(note.stems)]
    covered = [Covered()] * len(notes)
    if not known or total <= 0:
        return covered
    texts = [notes[i] for i in known]
    weights = dict[int, float]()
    for stem, weight in idf.items():
        weights[hash_stem(stem)] = weights.get(hash_stem(stem), 0.0) + weight / total
    wanted = np.array(sorted(weights), np.uint32)
    shares = np.array([weights[stem] for stem in wanted.tolist()])
    stems = np.concatenate([text.stems for text in texts])
    found, term = _find(wanted, stems)
    of_passages = _leads(found, term, shares, np.concatenate([text.lengths for text in texts]))
    sizes = np.array([len(text.stems) for text in texts])
    of_notes = _leads(found, term, shares, sizes, LEADING)
    begins = np.cumsum([0, *(len(text.lengths) for text in texts[:-1])])
    best = np.maximum.reduceat(of_passages, begins)
    note = np.searchsorted(np.cumsum(sizes), found, side="right")
    flags = np.zeros(len(texts) * len(shares), bool)
    flags[note * len(shares) + term] = True
    had = np.flatnonzero(flags)
    by_idf = np.bincount(had // len(shares), weights=shares[had % len(shares)], minlength=len(texts))
    by_number = np.bincount(had // len(shares), minlength=len(texts)) / len(shares)
    columns = np.stack([0.5 * of_notes + 0.5 * best, of_notes, best, by_idf, by_number], axis=1)
    for i, row in zip(known, np.minimum(columns, 1).tolist(), strict=True):
        covered[i] = Covered(*row)
    return covered


def _find(wanted: Stems, stems: Stems) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places where a wanted stem (sorted) stands, and which it is.

    A table of the lower bits leaves few places to look at: a fifth of the time of comparing all.
    """
    table = np.zeros(_BITS + 1, bool)
    table[wanted & _BITS] = True
    likely = np.flatnonzero(table[stems & _BITS])
    values = stems[likely]
    term = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    is_found = wanted[term] == values
    return likely[is_found], term[is_found]


def _leads(
    found: NDArray[np.intp],
    term: NDArray[np.intp],
    shares: NDArray[np.float64],
    lengths: NDArray[np.integer[Any]],
    most: int | None = None,
) -> NDArray[np.float64]:
    """lead(x) of texts in a row of these lengths; `term` stands at each place `found` in the row."""
    ends = np.cumsum(lengths)
    text = np.searchsorted(ends, found, side="right")
    place = found - (ends - lengths)[text]
    if most is not None:
        near = place < most
        text, place, term = text[near], place[near], term[near]
    first = _first_of_each(text * len(shares) + term, len(lengths) * len(shares))
    values = shares[term[first]] / (1 + place[first] / _HALVING)
    sums: Any = np.bincount(text[first], weights=values, minlength=len(lengths))
    return np.asarray(sums, np.float64)


def _first_of_each(keys: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Where each different key (of `count` possible ones) stands first, in ascending order of the keys.

    A table instead of the sort of `numpy.unique`, where there are few keys: a tenth of its time.
    """
    if count > _MOST_KEYS:
        first: NDArray[np.intp] = np.unique(keys, return_index=True)[1]
        return first
    table = np.full(count, -1, np.intp)
    # Of a repeated key the last assignment stays, which is its first place here.
    table[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    return table[table >= 0]
