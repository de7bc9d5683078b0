"""Note versions: every state of a note has its own version, whichever program wrote it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.model.note import AssignedVersion, effective_version, newest

digests = st.sampled_from("abcd")
versions = st.integers(1, 6)


def test_unknown_note_gets_the_version_in_its_file():
    assert effective_version(4, "a", None) == 4


def test_version_rises_by_one_after_edit_without_higher_version():
    """behaviour 269"""
    assert effective_version(1, "b", AssignedVersion(1, "a")) == 2
    assert effective_version(1, "b", AssignedVersion(7, "a")) == 8
    assert effective_version(7, "b", AssignedVersion(7, "a")) == 8


def test_version_in_the_file_is_kept_when_higher():
    """behaviour 269"""
    assert effective_version(2, "b", AssignedVersion(1, "a")) == 2
    assert effective_version(9, "b", AssignedVersion(1, "a")) == 9


def test_equal_bytes_keep_their_version():
    assert effective_version(1, "a", AssignedVersion(3, "a")) == 3


@given(st.lists(st.tuples(digests, versions), min_size=1))
def test_each_change_gets_a_new_and_higher_version(edits):
    """behaviour 269"""
    last: AssignedVersion | None = None
    for digest, own in edits:
        version = effective_version(own, digest, last)
        assert version >= own
        if last is not None and digest != last.digest:
            assert version > last.version
        elif last is not None:
            assert version >= last.version
        last = AssignedVersion(version, digest)


@given(st.lists(st.one_of(st.none(), st.builds(AssignedVersion, versions, digests))), digests)
def test_highest_known_version_wins_and_equal_bytes_break_ties(known, digest):
    found = newest(known, digest)
    held = [each for each in known if each is not None]
    if found is None:
        assert held == []
        return
    assert found.version == max(each.version for each in held)
    assert found.digest == digest or AssignedVersion(found.version, digest) not in held
