"""Three-way merges of a note with its conflict copy, and the search for their ancestor.

No program records the version from which the other machine started. If the chosen ancestor is too new, lines
that the other machine never had count as deleted. If it is too old, the merge only keeps more lines. In
doubt, the search therefore prefers older versions. Without an ancestor no line counts as deleted.
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

#: The choices that a person has for a passage that both sides changed.
Side = Literal["note", "copy", "both"]
SIDES: Final[tuple[Side, ...]] = ("note", "copy", "both")
#: Pattern of version and update time in the form that Lithos writes. Values such as `version: 1.4.2` and
#: `28.11.2026` come from a person.
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
    """A kept version of a note for the ancestor search, with its operation and its bytes."""

    op: str
    data: bytes


@frozen
class MergeBase:
    """The bytes from which both sides started. They are None if the history does not have them.

    `is_merged` means that the note already includes the copy, so the copy adds nothing.
    """

    data: bytes | None
    is_merged: bool = False


def find_ancestor(versions: Sequence[PastVersion], copy: bytes, *, is_whole: bool) -> MergeBase:
    """Return the common ancestor of a note and its conflict copy.

    `versions` are the kept versions, newest first. The first of them is the current version.

    `is_whole` is True if the last version in the list is the first version that the note ever had.
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
    # If several versions are equally similar, the oldest is chosen.
    chosen = min(range(len(counts)), key=lambda number: (_distance(counts[number], lines), -number))
    # The copy may come from any older version. A line therefore counts as deleted by the copy only if all
    # older versions had the line.
    while chosen + 1 < len(counts) and any(
        (counts[chosen] - lines) - older for older in counts[chosen + 1 :]
    ):
        chosen += 1
    if not is_whole and counts[chosen] - lines:
        return MergeBase(None)
    return MergeBase(candidates[chosen].data)


def _ancestor_of_known(versions: Sequence[PastVersion], known: int) -> MergeBase:
    """Return the ancestor of a copy that has the same bytes as a kept version.

    If a sync program replaced that version in the note's file with other bytes, the ancestor is an older
    version. Versions that Lithos made from that version contain its whole text.
    """
    copy, newer = versions[known], versions[known - 1] if known else None
    if newer is None or copy.op == COPY or newer.op not in (OUTSIDE, COPY):
        return MergeBase(copy.data, is_merged=True)
    before = versions[known + 1 :]
    older = next((each for each in before if each.op != COPY and each.data != copy.data), None)
    return MergeBase(None if older is None else older.data)


def _stamp(data: bytes) -> tuple[tuple[bytes, bytes], ...] | None:
    """Return the version and update time in the frontmatter. Return None unless both are present.

    Editors leave the version and the update time unchanged.
    """
    found = tuple(sorted((key, value.strip()) for key, value in _STAMP.findall(head_of(data))))
    return found if len(found) == 2 else None


def _count(data: bytes) -> Counter[bytes]:
    return Counter(line for each in data.split(b"\n") if (line := each.rstrip()))


def _distance(one: Counter[bytes], other: Counter[bytes]) -> int:
    return (one - other).total() + (other - one).total()


def common_lines(one: bytes, other: bytes) -> bytes:
    """Return the lines that two files share, in order. These lines are used if the ancestor is not kept.

    Lines that differ only in their line break count as equal.
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
    """A passage that both sides changed differently.

    The line is that in the merged text. `note` and `copy` are the texts of the two sides.
    """

    line: int
    note: str
    copy: str


@frozen
class CopyMerge:
    """A note merged with its copy. It has merged pieces, and conflicts that a person must resolve.

    `pieces` is `None` for binary files. If `has_ancestor` is True, a line that is missing on one side may
    have been deleted there.
    """

    pieces: tuple[bytes | tuple[bytes, bytes], ...] | None
    has_ancestor: bool

    @property
    def places(self) -> tuple[MergeConflict, ...]:
        """The conflicts that a person must resolve."""
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
        """Return the merged bytes. `choices` has one choice per conflict.

        The result is None for a binary file, or if choices are missing.
        """
        if self.pieces is None or len(choices) != len(self.places):
            return None
        left = iter(choices)
        return b"".join(
            piece if isinstance(piece, bytes) else _chosen(piece, next(left)) for piece in self.pieces
        )

    def marked(self, note: str, copy: str) -> str:
        """Return the merged text with git conflict markers.

        The markers have the names of both sides as labels.
        """
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
    """Merge the file of a note with its conflict copy. The frontmatter is merged by key."""
    if ancestor.is_merged:
        return CopyMerge((note,), has_ancestor=True)
    base = common_lines(note, copy) if ancestor.data is None else ancestor.data
    markers = Markers("", "", _size((base, note, copy)))
    merged = merge_files(base, note, copy, markers)
    if merged.data is None:
        return CopyMerge(None, ancestor.data is not None)
    return CopyMerge(tuple(_pieces(merged.data, markers)), ancestor.data is not None)


def _size(files: Sequence[bytes]) -> int:
    """Return a marker length that exceeds every marker-like run of characters in the files."""
    longest = (len(run) for each in files for run in _RUNS.findall(each))
    return max(longest, default=MARKER_SIZE - 1) + 1


def _pieces(data: bytes, markers: Markers) -> Iterator[bytes | tuple[bytes, bytes]]:
    """Split text at its markers. Yield merged pieces and conflicts."""
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
    """Return whether two files are equal, apart from the `version` and `updated_at` that Lithos wrote."""
    return one == other or _unstamped(one) == _unstamped(other)


def has_all_lines(note: bytes, copy: bytes) -> bool:
    """Return whether a note has every non-blank line of its copy at least as often.

    The frontmatter counts as part of the note.

    `version` and `updated_at` are ignored if they have the form in which Lithos writes them.
    """
    wanted, there = (_count(b"".join(_unstamped(each))) for each in (copy, note))
    del wanted[b""]
    return not wanted - there


def _unstamped(data: bytes) -> tuple[bytes, bytes]:
    head = head_of(data)
    return _STAMPS.sub(b"", head) if _stamp(data) else head, data[len(head) :]
