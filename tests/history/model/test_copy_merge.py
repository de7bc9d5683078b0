"""Merges of conflict copies with their notes: ancestors, decisions and kept lines (copies.md §2)."""

from __future__ import annotations

from itertools import count, islice

import pytest

from lithos.history.model.copy_merge import (
    MergeBase,
    PastVersion,
    common_lines,
    find_ancestor,
    merge_copy,
    say_the_same,
)
from lithos.notes.model.versions import COPY, CREATED, OUTSIDE, UPDATED
from tests.history.model.divergence_counts import is_conflict, measure
from tests.history.model.divergences import diverge
from tests.repeats import repeats

BASE = b"one\ntwo\nthree\nfour\nfive\n"
OURS = b"one\ntwo\nthree\nfour\nfive\nours\n"
THEIRS = b"theirs\none\ntwo\nthree\nfour\nfive\n"


def stamped(body: bytes, version: int, updated: str = "2026-01-01") -> bytes:
    return b"---\nid: x\nversion: %d\nupdated_at: %s\n---\n" % (version, updated.encode()) + body


def ancestor(copy: bytes, *versions: tuple[str, bytes], is_whole: bool = True) -> MergeBase:
    return find_ancestor([PastVersion(*each) for each in versions], copy, is_whole=is_whole)


def test_merge_of_diverged_notes_loses_no_line_and_is_repeatable() -> None:
    """behaviour 285: the gate tests 1,000 of 10,000 divergences."""
    seeds = (seed for seed in count(500_000_000) if is_conflict(diverge(seed)))
    merged = 0
    for seed in islice(seeds, repeats("DIVERGENCES", 1_000)):
        counts, data = measure(seed)
        assert not counts["lines lost"], seed
        assert not counts["changed by a second run"], seed
        merged += data is not None
    assert merged > 200


@pytest.mark.parametrize(
    ("copy", "versions", "is_whole", "expected"),
    [
        (THEIRS, [(OUTSIDE, OURS), (CREATED, BASE)], True, BASE),
        # The stamp of the file determines its ancestor, although another version is more similar.
        (
            stamped(BASE + b"six\nseven\n", 2),
            [
                (UPDATED, stamped(BASE + b"six\nseven\nx\n", 3)),
                (UPDATED, stamped(BASE, 2)),
                (CREATED, stamped(b"", 1)),
            ],
            True,
            stamped(BASE, 2),
        ),
        # A line was added between two versions, and the copy lacks this line. The copy may come from the
        # older version.
        (BASE + b"x\n", [(UPDATED, BASE + b"new\nx\n"), (CREATED, BASE)], True, BASE),
        # An older version that is deleted may have lacked the lines. Neither side then counts as having
        # deleted them.
        (b"one\ntwo\n", [(UPDATED, BASE)], False, None),
        (b"one\ntwo\n", [(CREATED, BASE)], True, BASE),
        (THEIRS, [], True, None),
    ],
)
def test_ancestor_contains_only_lines_that_the_other_machine_had(
    copy: bytes, versions: list[tuple[str, bytes]], is_whole: bool, expected: bytes | None
) -> None:
    assert ancestor(copy, *versions, is_whole=is_whole) == MergeBase(expected)


def test_replaced_version_is_merged_from_its_parent() -> None:
    """Syncthing keeps the newer file, and the local version becomes the copy."""
    assert ancestor(OURS, (OUTSIDE, THEIRS), (UPDATED, OURS), (CREATED, BASE)) == MergeBase(BASE)
    merged = merge_copy(THEIRS, OURS, MergeBase(BASE)).resolved(())
    assert merged == b"theirs\none\ntwo\nthree\nfour\nfive\nours\n"


@pytest.mark.parametrize(
    "versions",
    [
        [(UPDATED, BASE + b"later\n"), (UPDATED, OURS), (CREATED, BASE)],
        [(OUTSIDE, BASE), (COPY, OURS), (UPDATED, BASE), (CREATED, b"")],
        [(OUTSIDE, OURS), (CREATED, BASE)],
    ],
)
def test_copy_adds_nothing_when_the_history_contains_its_text(versions: list[tuple[str, bytes]]) -> None:
    found = ancestor(OURS, *versions)
    assert found.is_merged
    merge = merge_copy(versions[0][1], OURS, found)
    assert (merge.resolved(()), merge.places) == (versions[0][1], ())


def test_both_sides_keep_all_lines_when_ancestor_is_missing() -> None:
    merge = merge_copy(b"a\nours\nb\nc\nd\n", b"a\nb\nc\nd\ntheirs\n", MergeBase(None))
    assert not merge.has_ancestor
    assert merge.resolved(()) == b"a\nours\nb\nc\nd\ntheirs\n"
    assert common_lines(b"a\r\nb\r\n", b"b\nc\n") == b"b\r\n"


@pytest.mark.parametrize(
    ("side", "kept"), [("note", b"mine\n"), ("copy", b"yours\n"), ("both", b"mine\nyours\n")]
)
def test_difference_changed_by_both_sides_needs_a_decision(side: str, kept: bytes) -> None:
    merge = merge_copy(b"a\nb\nmine\nc\nd\n", b"a\nb\nyours\nc\nd\n", MergeBase(b"a\nb\nwas\nc\nd\n"))
    (place,) = merge.places
    assert (place.line, place.note, place.copy) == (3, "mine\n", "yours\n")
    assert merge.resolved(()) is None
    assert merge.resolved((side,)) == b"a\nb\n" + kept + b"c\nd\n"  # type: ignore[arg-type]
    assert merge.marked("n", "c") == "a\nb\n<<<<<<< n\nmine\n=======\nyours\n>>>>>>> c\nc\nd\n"


def test_conflict_markers_in_a_note_are_treated_as_text() -> None:
    text = b"<<<<<<< x\nold\n=======\nolder\n>>>>>>> y\n\na\nb\nc\n"
    merge = merge_copy(text + b"mine\n", text + b"yours\n", MergeBase(text + b"was\n"))
    (place,) = merge.places
    assert (place.note, place.copy) == ("mine\n", "yours\n")
    assert merge.resolved(("note",)) == text + b"mine\n"


def test_key_changed_by_both_sides_needs_a_decision() -> None:
    was, mine, other = (b"---\nowner: %s\n---\ntext\n" % name for name in (b"ann", b"bob", b"cy"))
    (place,) = merge_copy(mine, other, MergeBase(was)).places
    assert (place.note, place.copy) == ("owner: bob\n", "owner: cy\n")
    assert merge_copy(b"a\0", b"b\0", MergeBase(b"c")).pieces is None


def test_version_and_time_alone_do_not_count_as_a_difference() -> None:
    assert say_the_same(stamped(BASE, 1), stamped(BASE, 4, "2027-01-01"))
    assert not say_the_same(stamped(BASE, 1), stamped(BASE, 1).replace(b"id: x", b"id: x # y"))
    assert not say_the_same(BASE + b"version: 1\n", BASE + b"version: 2\n")
    persons = "---\nversion: 1.4.{}\nupdated_at: 28.11.2026\n---\nText.\n"
    assert not say_the_same(*(persons.format(number).encode() for number in (1, 2))), "a person's own"
    alone = "---\nversion: {}\n---\nText.\n"
    assert not say_the_same(*(alone.format(number).encode() for number in (1, 2))), "Lithos writes both"
