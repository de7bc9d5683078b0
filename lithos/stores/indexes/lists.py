"""Inverted lists over chunk vectors (IVF): sublinear nearest-neighbour search in large stores.

`VectorIndex` comes in, nobody else; its lock is handed in where rows change meanwhile.

Rows that came since the lists were made are scanned exactly, and go to the lists (a merge) when they are
many; the centres are trained anew when there are twice as many rows as then. The lists only say where to
look: what a row is, and how near, the matrix tells, so old lists can miss a row but never give a wrong one.

On disk they are one file beside a generation of vectors, with a checksum. It may be missing, old or damaged:
then the lists are built again, and the exact scan answers until they are.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from math import sqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.stores.indexes.chunk_rows import ChunkRows, Codes, multiply
from lithos.stores.indexes.clustering import (
    ROWS_AT_ONCE,
    SAMPLE_PER_LIST,
    Numbers,
    assign,
    lists_for,
    train_centres,
)
from lithos.stores.indexes.embedder import Matrix
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


#: Rows that are looked at first, for the square root of all.
FIRST_PER_ROOT: Final = 10.0
#: The share of the rows from which on the exact scan is as cheap: a row copied out of the matrix takes some
#: four times as long as one in sequence, and several queries share the scan.
MOST: Final = 0.16
#: The yield is judged by so many of the best rows, or by as many as notes are wanted.
JUDGED: Final = 100
#: The yield, as a share of the best rows, that is small enough; and from a share of all rows on, where
#: looking further costs more than it finds.
ENOUGH: Final = 0.015
LATE: Final = 0.08
LATE_FROM: Final = 0.05


@frozen(eq=False)
class RowLists:
    """A value; changes of the rows make a new one."""

    #: The centres (lists, dims), all of one length: by them rows get their list.
    centres: Codes
    #: Rows, list by list; one may be dead by now, or another note's, which is then also looked for elsewhere.
    rows: NDArray[np.uint32]
    #: Where each list begins in `rows`, and the end of the last.
    starts: NDArray[np.int64]
    #: How many rows there were when the centres were trained.
    trained_on: int

    @classmethod
    def make(cls, centres: Codes, numbers: Numbers, rows: NDArray[np.uint32], trained_on: int) -> RowLists:
        """Lists of `rows`, each of which has the number of its list."""
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(centres)))
        starts = np.concatenate([[0], ends]).astype(np.int64)
        return cls(centres, rows[order], starts, trained_on)

    def numbers(self) -> Numbers:
        """The number of its list for each of `rows`."""
        return np.repeat(np.arange(len(self.centres), dtype=np.uint16), np.diff(self.starts))

    def gather(self, lists: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows of some lists, one list after the other."""
        parts = [self.rows[self.starts[number] : self.starts[number + 1]] for number in lists.tolist()]
        return np.concatenate(parts, dtype=np.intp) if parts else np.zeros(0, np.intp)

    def probe(
        self, query: Codes, compare: Callable[[NDArray[np.intp]], Matrix], best: Matrix, most: int
    ) -> tuple[NDArray[np.intp], Matrix] | None:
        """Rows among which the nearest of all rows are, with their similarities to `query` (dims,).

        `compare` gives the similarities of rows, negative for what does not count; `best` are those of rows
        that are in no list, `most` is how many notes are wanted. None: scan all.
        """
        order = np.argsort(-multiply(self.centres, query[None, :])[:, 0].astype(np.int32), kind="stable")
        sizes = np.cumsum(np.diff(self.starts)[order])
        judged = max(most, JUDGED)
        share, done = FIRST_PER_ROOT / max(1.0, sqrt(len(self.rows))), 0
        rows, similarities = np.zeros(0, np.intp), np.zeros(0, np.float32)
        while share <= MOST:
            end = min(int(np.searchsorted(sizes, share * len(self.rows))) + 1, len(order))
            if sizes[end - 1] > MOST * len(self.rows):
                return None  # lists of very many rows that are alike
            more = self.gather(order[done:end])
            found = compare(more)
            rows, similarities = np.concatenate([rows, more]), np.concatenate([similarities, found])
            level = _highest(np.concatenate([similarities, best]), judged)
            late = np.count_nonzero(similarities[len(similarities) // 2 :] >= max(level, 0)) / judged
            if late <= (ENOUGH if share < LATE_FROM else LATE):
                return rows, similarities
            if late > LATE * MOST / share:
                return None  # halved with each doubling it would not be small enough in time
            share, done = 2 * share, end
        return None


def _highest(values: Matrix, place: int) -> float:
    """The value at a place of the descending order; the lowest where there are fewer."""
    at = max(0, len(values) - place)
    return float(np.partition(values, at)[at]) if len(values) else 0.0


#: Rows from which on there are lists: the exact scan takes as long for fewer (`bench/nearest.md`).
FROM: Final = 400_000
#: Rows outside of the lists, as a share of those in them and at least, that are merged into them.
MERGED_SHARE: Final = 1 / 32
MERGED_LEAST: Final = 8_192
#: So many times the rows that the centres were trained on, they are trained anew.
GROWN: Final = 2.0
#: The number of a row that is in no list.
NO_LIST: Final = np.iinfo(np.uint16).max


class RowSearch:
    """Nearest rows in a matrix of rows; its owner locks, `rebuild` aside, which locks by itself."""

    def __init__(self, rows: ChunkRows) -> None:
        self._rows = rows
        #: None: every search scans all rows.
        self.lists: RowLists | None = None
        #: Rows from here on are in no list.
        self._covered = 0

    @property
    def is_due(self) -> bool:
        """Whether lists are to be made or made again."""
        if self._rows.found < FROM:
            return False
        return self._is_outgrown() or self._outside() > max(MERGED_LEAST, MERGED_SHARE * self._covered)

    def _is_outgrown(self) -> bool:
        return self.lists is None or self._rows.used > GROWN * self.lists.trained_on

    def _outside(self) -> int:
        return self._rows.used - self._covered + len(self._rows.strays)

    def nearest(
        self, queries: Codes, wanted: Sequence[int]
    ) -> Iterator[tuple[Matrix, NDArray[np.intp] | None]]:
        """For each query (queries, dims), which wants so many notes: similarities, and the rows they are of.

        Without rows they are those of all rows. Negative or NaN is what cannot be found.
        """
        if self.lists is None or self._rows.found < FROM:
            for similarities in self._rows.compare(queries):
                yield similarities, None
            return
        outside = np.concatenate([self._rows.strays, np.arange(self._covered, self._rows.used)])
        probed = [
            self._probe(self.lists, query, outside, similarities, most)
            for query, similarities, most in zip(queries, self._compare_outside(queries), wanted, strict=True)
        ]
        left = [number for number, found in enumerate(probed) if found is None]
        exact = dict(zip(left, self._rows.compare(queries[left]), strict=True)) if left else {}
        for number, found in enumerate(probed):
            yield (exact[number], None) if found is None else found

    def _compare_outside(self, queries: Codes) -> list[Matrix]:
        """The similarities of the rows in no list."""
        latest = self._rows.compare(queries, self._covered)
        return [
            np.concatenate([self._rows.compare_rows(query, self._rows.strays), similarities])
            for query, similarities in zip(queries, latest, strict=True)
        ]

    def _probe(
        self, lists: RowLists, query: Codes, outside: NDArray[np.intp], similarities: Matrix, most: int
    ) -> tuple[Matrix, NDArray[np.intp]] | None:
        best = np.fmax(similarities, -1)  # -1 for NaN

        def compare(rows: NDArray[np.intp]) -> Matrix:
            similarities = self._rows.compare_rows(query, rows)
            return np.fmax(similarities, -1, out=similarities)

        found = lists.probe(query, compare, best, most)
        if found is None:
            return None
        return np.concatenate([best, found[1]]), np.concatenate([outside, found[0]])

    def rebuild(self, lock: AbstractContextManager[None], check: Callable[[], None]) -> None:
        """Merge the rows outside into the lists, or make these anew; for a background thread.

        `lock` is taken for less than a millisecond at a time. `check` is called between pieces; what it
        raises leaves the lists as they were.
        """
        with lock:
            end, strays, former = self._rows.used, self._rows.strays, self.lists
            self._rows.fence = end
            anew = self._is_outgrown()
        if former is None or anew:
            centres = train_centres(self._sample(end, lock, check), lists_for(end), check)
            numbers, alive = self._assign(np.arange(end), centres, lock, check)
            made = RowLists.make(centres, numbers[alive], np.flatnonzero(alive).astype(np.uint32), end)
        else:
            made = self._merge(former, end, strays, lock, check)
        with lock:
            self.lists, self._covered = made, end
            # A row that was given to another note meanwhile was noted after those that are in a list now.
            self._rows.strays = self._rows.strays[len(strays) :]

    def _merge(
        self,
        former: RowLists,
        end: int,
        strays: NDArray[np.intp],
        lock: AbstractContextManager[None],
        check: Callable[[], None],
    ) -> RowLists:
        outside = np.concatenate([np.unique(strays[strays < self._covered]), np.arange(self._covered, end)])
        numbers, alive = self._assign(outside, former.centres, lock, check)
        kept = self._rows.are_alive(former.rows)
        is_stray = np.zeros(end, bool)
        is_stray[strays] = True
        kept &= ~is_stray[former.rows]
        return RowLists.make(
            former.centres,
            np.concatenate([former.numbers()[kept], numbers[alive]]),
            np.concatenate([former.rows[kept], outside[alive].astype(np.uint32)]),
            former.trained_on,
        )

    def _sample(self, end: int, lock: AbstractContextManager[None], check: Callable[[], None]) -> Codes:
        """Rows for training, evenly from all."""
        wanted = SAMPLE_PER_LIST * lists_for(end)
        chosen = np.unique(np.linspace(0, end - 1, min(end, wanted)).astype(np.intp))
        parts = []
        for start in range(0, len(chosen), ROWS_AT_ONCE):
            check()
            with lock:
                parts.append(self._rows.codes_of(chosen[start : start + ROWS_AT_ONCE]))
        sample = np.concatenate(parts)
        return sample[sample.any(axis=1)]

    def _assign(
        self,
        rows: NDArray[np.intp],
        centres: Codes,
        lock: AbstractContextManager[None],
        check: Callable[[], None],
    ) -> tuple[Numbers, NDArray[np.bool_]]:
        """The list of each of some rows, and which of them could be found when they were looked at."""
        numbers, alive = np.zeros(len(rows), np.uint16), np.zeros(len(rows), bool)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            check()
            piece = slice(start, start + ROWS_AT_ONCE)
            with lock:
                codes, alive[piece] = self._rows.codes_of(rows[piece]), self._rows.are_alive(rows[piece])
            numbers[piece] = assign(codes, centres)
        return numbers, alive

    def numbering(self) -> Callable[[], tuple[RowLists, Numbers]] | None:
        """A call that gives the lists of now and the number of every row's list, `NO_LIST` for none.

        It takes a while and needs no lock.
        """
        lists, strays, used = self.lists, self._rows.strays, self._rows.used
        if lists is None:
            return None

        def number() -> tuple[RowLists, Numbers]:
            numbers = np.full(used, NO_LIST, np.uint16)
            numbers[lists.rows] = lists.numbers()
            numbers[strays] = NO_LIST
            return lists, numbers

        return number

    def restore(self, centres: Codes, numbers: Numbers, trained_on: int) -> None:
        """Take lists that were kept: the number of each row, all rows that there are."""
        used = self._rows.used
        listed = (numbers != NO_LIST) & self._rows.are_alive(np.arange(used))
        rows = np.flatnonzero(listed)
        self.lists = RowLists.make(centres, numbers[rows], rows.astype(np.uint32), trained_on)
        self._covered = self._rows.fence = used
        self._rows.strays = np.flatnonzero(self._rows.are_alive(np.arange(used)) & ~listed)
