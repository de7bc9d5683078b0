"""Three-way merges of a note with a conflict copy of it, and their ancestor (docs/spec/copies.md §2).

No program says from which version the other machine began. An ancestor that is too new would have lines
count as deleted that the other machine never saw; one that is too old only leaves more in. So the search
goes to older ones while in doubt, and without one nothing counts as deleted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from attrs import frozen

from lithos.history.model.conflict_markers import MARKER_SIZE, Markers
from lithos.history.model.file_merge import merge_files
from lithos.notes.model.versions import COPY, OUTSIDE, head_of
from lithos.text.outline.differences import match_lines

#: What a person can keep of a place that both sides changed.
Side = Literal["note", "copy", "both"]
SIDES: Final[tuple[Side, ...]] = ("note", "copy", "both")
#: Version and time of update as Lithos writes them; `version: 1.4.2` and `28.11.2026` are a person's.
_STAMP: Final = re.compile(
    rb"^(version|updated_at):[ \t]*(['\"]?\d{1,19}['\"]?|['\"]?\d{4}-\d\d-\d\d(?:T[^\s#]{1,40})?['\"]?)"
    rb"[ \t]*(?:#[^\n]*)?\r?$",
    re.MULTILINE,
)
_STAMPS: Final = re.compile(
    rb"^(?:version:[ \t]*\d{1,19}|updated_at:[ \t]*['\"]?\d{4}-\d\d-\d\d(?:T[\d:.+Z-]{1,30})?['\"]?)"
    rb"[ \t]*\r?\n",
    re.MULTILINE,
)
_RUNS: Final = re.compile(rb"<{7,}|={7,}|>{7,}")


@frozen
class PastVersion:
    """A kept version of a note as the choice of an ancestor needs it: what made it, and its bytes."""

    op: str
    data: bytes


@frozen
class MergeBase:
    """From what both sides began: its bytes, None where it is not kept.

    `is_merged`: the note was made knowing the copy, which has nothing to add.
    """

    data: bytes | None
    is_merged: bool = False


def find_ancestor(versions: Sequence[PastVersion], copy: bytes, *, is_whole: bool) -> MergeBase:
    """The ancestor of a note and its copy among the kept versions, the newest first: that is the note now.

    `is_whole`: the last of them is the first that there was.
    """
    known = next((number for number, each in enumerate(versions) if each.data == copy), None)
    if known is not None:
        return _ancestor_of_known(versions, known)
    stamp, candidates = _stamp(copy), [each for each in versions if each.op != COPY]
    stamped = [each for each in candidates if stamp is not None and _stamp(each.data) == stamp]
    if stamped:
        candidates, is_whole = stamped, stamped[-1].op != OUTSIDE
    lines = _count(copy)
    counts = [_count(each.data) for each in candidates]
    if not counts:
        return MergeBase(None)
    # Of several as near the oldest.
    chosen = min(range(len(counts)), key=lambda number: (_distance(counts[number], lines), -number))
    # What the copy lacks was deleted by it only if all older ones had it: it may come from any of them.
    while chosen + 1 < len(counts) and any(
        (counts[chosen] - lines) - older for older in counts[chosen + 1 :]
    ):
        chosen += 1
    if not is_whole and counts[chosen] - lines:
        return MergeBase(None)
    return MergeBase(candidates[chosen].data)


def _ancestor_of_known(versions: Sequence[PastVersion], known: int) -> MergeBase:
    """Of a copy with the bytes of a version: programs that synchronise put other bytes in its place.

    What Lithos made of a version has all of it.
    """
    copy, newer = versions[known], versions[known - 1] if known else None
    if newer is None or copy.op == COPY or newer.op not in (OUTSIDE, COPY):
        return MergeBase(copy.data, is_merged=True)
    before = versions[known + 1 :]
    older = next((each for each in before if each.op != COPY and each.data != copy.data), None)
    return MergeBase(None if older is None else older.data)


def _stamp(data: bytes) -> tuple[tuple[bytes, bytes], ...] | None:
    """The version and time that a file says, where it says both: editors leave them as they are."""
    found = tuple(sorted((key, value.strip()) for key, value in _STAMP.findall(head_of(data))))
    return found if len(found) == 2 else None


def _count(data: bytes) -> Counter[bytes]:
    return Counter(line for each in data.split(b"\n") if (line := each.rstrip()))


def _distance(one: Counter[bytes], other: Counter[bytes]) -> int:
    return (one - other).total() + (other - one).total()


def common_lines(one: bytes, other: bytes) -> bytes:
    """The lines that two files have in common, in their order: what stands for an ancestor that is not kept.

    A line counts as the same with another line break behind it.
    """
    mine, theirs = one.splitlines(keepends=True), other.splitlines(keepends=True)
    numbers: dict[bytes, int] = {}
    sides = [
        [numbers.setdefault(line.rstrip(b"\r\n"), len(numbers)) for line in each] for each in (mine, theirs)
    ]
    blocks, _ = match_lines(*sides)
    return b"".join(line for i, _, size in blocks for line in mine[i : i + size])


@frozen
class MergeConflict:
    """A place that both sides changed otherwise: in which line of the merged text, and what each says."""

    line: int
    note: str
    copy: str


@frozen
class CopyMerge:
    """A note merged with its copy: pieces that are decided, and places that a person has to decide.

    None of either for binary files. `has_ancestor`: what one side lacks may have been deleted by it.
    """

    pieces: tuple[bytes | tuple[bytes, bytes], ...] | None
    has_ancestor: bool

    @property
    def places(self) -> tuple[MergeConflict, ...]:
        """What a person has to decide."""
        found: list[MergeConflict] = []
        line = 1
        for piece in self.pieces or ():
            if isinstance(piece, bytes):
                line += piece.count(b"\n")
            else:
                note, copy = (side.decode("utf-8", "replace") for side in piece)
                found.append(MergeConflict(line, note, copy))
                line += note.count("\n")
        return tuple(found)

    def resolved(self, choices: Sequence[Side]) -> bytes | None:
        """The merged bytes with one choice a place; None for a binary file, and where choices lack."""
        if self.pieces is None or len(choices) != len(self.places):
            return None
        left = iter(choices)
        return b"".join(
            piece if isinstance(piece, bytes) else _chosen(piece, next(left)) for piece in self.pieces
        )

    def marked(self, note: str, copy: str) -> str:
        """The merged text with the places between git's markers, under the names of both sides."""
        markers = Markers(note, copy, _size((b"".join(map(_all, self.pieces or ())),)))
        opening, middle, closing = (f"{line}\n" for line in markers.lines)
        parts: list[str] = []
        for piece in self.pieces or ():
            if isinstance(piece, bytes):
                parts.append(piece.decode("utf-8", "replace"))
            else:
                one, other = (side.decode("utf-8", "replace") for side in piece)
                parts += (opening, one, middle, other, closing)
        return "".join(parts)


def _all(piece: bytes | tuple[bytes, bytes]) -> bytes:
    return piece if isinstance(piece, bytes) else b"".join(piece)


def _chosen(sides: tuple[bytes, bytes], choice: Side) -> bytes:
    picked: Mapping[Side, bytes] = {"note": sides[0], "copy": sides[1], "both": b"".join(sides)}
    return picked[choice]


def merge_copy(note: bytes, copy: bytes, ancestor: MergeBase) -> CopyMerge:
    """Merge what a note's file says with its conflict copy, the frontmatter by key."""
    if ancestor.is_merged:
        return CopyMerge((note,), has_ancestor=True)
    base = common_lines(note, copy) if ancestor.data is None else ancestor.data
    markers = Markers("", "", _size((base, note, copy)))
    merged = merge_files(base, note, copy, markers)
    if merged.data is None:
        return CopyMerge(None, ancestor.data is not None)
    return CopyMerge(tuple(_pieces(merged.data, markers)), ancestor.data is not None)


def _size(files: Sequence[bytes]) -> int:
    """Characters of a marker that none of the files has."""
    longest = (len(run) for each in files for run in _RUNS.findall(each))
    return max(longest, default=MARKER_SIZE - 1) + 1


def _pieces(data: bytes, markers: Markers) -> Iterator[bytes | tuple[bytes, bytes]]:
    """What stands between markers, and what is decided."""
    opening, middle, closing = (line.encode() for line in markers.lines)
    decided: list[bytes] = []
    sides: list[list[bytes]] = []
    for line in data.splitlines(keepends=True):
        mark = line.rstrip(b"\r\n")
        if mark == opening:
            yield b"".join(decided)
            decided, sides = [], [[]]
        elif mark == middle and sides:
            sides.append([])
        elif mark == closing and sides:
            note, copy = (b"".join(side) for side in sides)
            yield note, copy
            sides = []
        else:
            (sides[-1] if sides else decided).append(line)
    yield b"".join(decided)


def say_the_same(one: bytes, other: bytes) -> bool:
    """Whether two files differ at most in the `version` and `updated_at` that Lithos gave them."""
    return one == other or _unstamped(one) == _unstamped(other)


def has_all_lines(note: bytes, copy: bytes) -> bool:
    """Whether a note has every line of its copy that is not blank, each as often, also of the frontmatter.

    `version` and `updated_at` as Lithos writes them do not count.
    """
    wanted, there = (_count(b"".join(_unstamped(each))) for each in (copy, note))
    del wanted[b""]
    return not wanted - there


def _unstamped(data: bytes) -> tuple[bytes, bytes]:
    head = head_of(data)
    return _STAMPS.sub(b"", head) if _stamp(data) else head, data[len(head) :]
