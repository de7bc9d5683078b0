"""Lead coverage: how early a note and its best passage contain the query words (docs/spec/search.md §5).

lead(x)  = sum of idf(t) / (1 + first_x(t) / 25)  /  sum of idf(t)
LC(note) = 0.5 lead(first 128 stems of title and body) + 0.5 max of lead(passage) over its passages

where t are the distinct content stems of the query and first_x(t) is the position of the first t among the
stems of x, from 0. The position at which a word is first used shows the topic of a text. The formula was
chosen by measurements (`bench/quality.md`). Focused web retrieval uses similar positional weights.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

#: Position at which a word counts half as much as at the beginning.
_HALVING: Final = 25
#: Number of stems at the beginning of a note from which the note's own lead is computed.
LEADING: Final = 128
#: Maximum number of stems stored per note, which is about 100,000 characters. Later passages have no lead.
MOST_STEMS: Final = 16_384
_BITS: Final = np.uint32(0xFFFF)
#: Maximum number of pairs (wanted stem, note stem) up to which all pairs are compared directly.
_FEW_PAIRS: Final = 1 << 18
#: Type of stored integers: 32 bits, little-endian.
_STORED: Final = np.dtype("<u4")

Stems: TypeAlias = NDArray[np.uint32]


@frozen(eq=False)
class LeadText:
    """The hashed stems of all passages of a note, and the number of stems in each passage."""

    stems: Stems
    lengths: Stems

    @classmethod
    def of(cls, passages: Sequence[Sequence[str]]) -> LeadText:
        """Create the lead text from the stems of each passage, in order.

        If the first passage is empty, the note has no text of its own.
        """
        lengths: list[int] = []
        stems: list[int] = []
        for passage in passages:
            some = passage[: MOST_STEMS - len(stems)]
            lengths.append(len(some))
            stems += map(hash_stem, some)
            if len(stems) >= MOST_STEMS:
                break
        return cls(np.array(stems, _STORED), np.array(lengths, _STORED))

    def pack(self) -> bytes:
        """Return the number of passages, their lengths and the stems as 32-bit little-endian integers."""
        head = np.array([len(self.lengths)], np.uint32)
        return np.concatenate([head, self.lengths, self.stems]).astype(_STORED).tobytes()

    def held(self, stems: Sequence[str]) -> frozenset[str]:
        """Return which of these stems the note has."""
        wanted = np.array([hash_stem(stem) for stem in stems], np.uint32)
        return frozenset(compress(stems, np.isin(wanted, self.stems).tolist()))

    @classmethod
    def unpack(cls, packed: bytes) -> LeadText:
        """Reverse `pack`. Raise `ValueError` if the bytes have another format."""
        numbers = np.frombuffer(packed, _STORED)
        count = int(numbers[0]) if len(numbers) else 0
        lengths, stems = numbers[1 : 1 + count], numbers[1 + count :]
        if len(lengths) != count or int(lengths.sum()) != len(stems):
            raise ValueError(f"{len(packed)} bytes are not packed stems")
        return cls(stems, lengths)

    @property
    def size(self) -> int:
        """Return the size of both arrays in bytes."""
        return self.stems.nbytes + self.lengths.nbytes


def hash_stem(stem: str) -> int:
    """Return the 32-bit hash of a stem. Collisions are rare enough to ignore."""
    return zlib.crc32(stem.encode())


class Covered(NamedTuple):
    """How well a note covers the words of a query. Each value is 0..1.

    `coverage` is LC, `lead` the lead of the note alone, and `passage` the lead of its best passage. `share`
    and `words` show how many of the content stems the note contains, by idf and by number. `bare` is 1 for a
    note without text of its own.
    """

    coverage: float = 0.0
    lead: float = 0.0
    passage: float = 0.0
    share: float = 0.0
    words: float = 0.0
    bare: float = 0.0


#: Creates the same object as `Covered._make`, but without its checks.
_make_covered: Final = partial(tuple.__new__, Covered)


def lead_coverage(notes: Sequence[LeadText], idf: Mapping[str, float]) -> list[Covered]:
    """Return how well each note covers the content stems of a query. `idf` maps each stem to its idf.

    All notes are computed together, which takes tenths of a millisecond for sixty notes.
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
    found, term = _find(wanted, _joined([text.stems for text in texts]))
    lengths = _joined([text.lengths for text in texts]).astype(np.intp)
    counts = np.array([len(text.lengths) for text in texts])
    begins = counts.cumsum() - counts
    ends = lengths.cumsum()
    starts = ends - lengths
    passage = ends.searchsorted(found, side="right")
    note = np.repeat(np.arange(len(texts)), counts)[passage]
    first = _firsts(passage, term, len(shares))
    leads = _lead(shares[term[first]], found[first] - starts[passage[first]])
    best = np.maximum.reduceat(np.bincount(passage[first], leads, len(lengths)), begins)
    first = _firsts(note, term, len(shares))
    note, share = note[first], shares[term[first]]
    place = found[first] - starts[begins[note]]
    leading = place < LEADING
    of_notes = np.bincount(note[leading], _lead(share[leading], place[leading]), len(texts))
    by_idf = np.bincount(note, share, len(texts))
    by_number = np.bincount(note, minlength=len(texts)) / len(shares)
    bare = lengths[begins] == 0
    columns = np.array([0.5 * of_notes + 0.5 * best, of_notes, best, by_idf, by_number, bare])
    for i, row in zip(known, np.minimum(columns, 1).T.tolist(), strict=True):
        covered[i] = _make_covered(row)
    return covered


def _joined(parts: Sequence[Any]) -> Stems:
    """Concatenate many short arrays in a fifth of the time of `numpy.concatenate`."""
    return np.frombuffer(b"".join(parts), _STORED)


def _find(wanted: Stems, stems: Stems) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of the wanted stems. Also return the index of the wanted stem at each position.

    `wanted` must be sorted. Positions are grouped by stem. A table of the lower bits excludes most positions
    before the comparison. For long texts this takes a fifth of the time.
    """
    if len(wanted) * len(stems) <= _FEW_PAIRS:
        term, found = np.divmod((stems == wanted[:, None]).ravel().nonzero()[0], len(stems))
        return found, term
    table = np.zeros(_BITS + 1, bool)
    table[wanted & _BITS] = True
    likely = np.flatnonzero(table[stems & _BITS])
    values = stems[likely]
    term = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    is_found = wanted[term] == values
    found, term = likely[is_found], term[is_found]
    order = term.argsort(kind="stable")
    return found[order], term[order]


def _lead(share: NDArray[np.float64], place: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the contribution of a term to lead(x), computed from the term's first position."""
    return share / (1 + place / _HALVING)


def _firsts(text: NDArray[np.intp], term: NDArray[np.intp], terms: int) -> NDArray[np.intp]:
    """Return the index of the first position of each term in each text.

    The positions of each term must be ascending.
    """
    keys = text * terms + term
    is_first = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return is_first.nonzero()[0]
