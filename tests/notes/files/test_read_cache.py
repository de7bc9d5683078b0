"""The cache of read notes: it detects every change of an entry or file, and limits its memory."""

from __future__ import annotations

import os
import time

import attrs
import pytest

from lithos.notes.files import read_cache
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.read_cache import (
    ENDLESS,
    LONGEST_RECALLED,
    RECALLED_BYTES,
    REST,
    SLOW_LOOK,
    SLOW_LOOKS,
    Recall,
)
from lithos.notes.files.values import Fingerprint
from tests.fakes import LateCalls, make_entry

OLD = 1_000_000_000.0


@pytest.fixture
def files(tmp_path):
    root = tmp_path / "knowledge"
    root.mkdir()
    return NoteFiles(root)


def put_old(files: NoteFiles, path: str, text: str, when: float = OLD) -> os.stat_result:
    """Write a file with an old modification time. Its status change time is recent."""
    target = files.root / path
    target.write_text(text)
    os.utime(target, (when, when))
    return target.stat()


def remembered(files: NoteFiles, path: str = "a.md", content: str = "one") -> tuple[Recall, object]:
    known, entry = Recall(files.fingerprint), make_entry(1, path)
    fingerprint = files.fingerprint(path)
    assert fingerprint is not None
    known.put(entry, fingerprint, content, ())
    return known, entry


def test_cached_note_is_returned_while_its_file_is_unchanged(files):
    put_old(files, "a.md", "one")
    known, entry = remembered(files)
    assert known.get(entry).content == "one"
    assert known.get(entry).content == "one"


def put_beside(path):
    """Replace the file with another file of the same size and times."""
    beside = path.with_name("b.tmp")
    beside.write_text("two")
    os.utime(beside, (OLD, OLD))
    beside.replace(path)


#: Ways to change a file. The second way preserves the file times, as `rsync --times` or `touch -r` does after
#: an edit of equal length.
CHANGES = {
    "edited": lambda path: path.write_text("two"),
    "edited with old times": lambda path: (path.write_text("two"), os.utime(path, (OLD, OLD))),
    "exchanged": put_beside,
    "touched": lambda path: os.utime(path, (OLD + 1, OLD + 1)),
    "linked": lambda path: path.symlink_to(path.rename(path.with_name("other.md"))),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_external_change_invalidates_the_cached_note(files, change):
    """docs/spec/notes.md: the file is the source of truth, whichever program changes it."""
    put_old(files, "a.md", "one")
    known, entry = remembered(files)
    time.sleep(0.02)  # The file system clock advances in steps of a few milliseconds.
    change(files.root / "a.md")
    assert known.get(entry) is None
    assert known._kept == {}
    assert known._left == RECALLED_BYTES


def test_cached_note_is_valid_for_one_state_of_its_entry(files):
    put_old(files, "a.md", "one")
    known, entry = remembered(files)
    assert known.get(attrs.evolve(entry, digest="other")) is None
    known, entry = remembered(files)
    assert known.get(attrs.evolve(entry, note=attrs.evolve(entry.note, status="archived"))) is None


def test_recently_changed_file_does_not_have_a_trusted_fingerprint(files):
    put_old(files, "a.md", "one")  # The modification time is old, but the status change time is recent.
    source, fingerprint = files.read_stable("a.md")
    assert (source.data, fingerprint) == (b"one", None)
    late = NoteFiles(files.root, LateCalls())
    source, fingerprint = late.read_stable("a.md")
    assert fingerprint == late.fingerprint("a.md") is not None


def test_cache_stays_within_its_byte_limit(files, monkeypatch):
    monkeypatch.setattr(read_cache, "RECALLED_BYTES", 10_000)
    known = Recall(lambda path: Fingerprint(1, 1, 1, 1, 1))
    entries = [make_entry(number) for number in range(1, 21)]
    for entry in entries:
        known.put(entry, Fingerprint(1, 1, 1, 1, 1), "x" * 1_000, ())
        assert known._left >= 0
        assert sum(each.size for each in known._kept.values()) <= 10_000
    assert known.get(entries[0]) is None
    assert known.get(entries[-1]) is not None
    known.put(entries[0], Fingerprint(1, 1, 1, 1, 1), "x" * (LONGEST_RECALLED + 1), ())
    assert known.get(entries[0]) is None


class Looks:
    """A cached note whose file never changes. Each file check takes a duration that the test chooses."""

    def __init__(self) -> None:
        self.now, self.lasts, self.made = 0.0, 0.0, 0
        self._known, self._entry = Recall(self._look, lambda: self.now), make_entry(1)
        self._known.put(self._entry, Fingerprint(1, 1, 1, 1, 1), "one", ())

    def _look(self, path: str) -> Fingerprint:
        self.made += 1
        self.now += self.lasts
        return Fingerprint(1, 1, 1, 1, 1)

    def find(self, *lasting: float) -> list[bool]:
        """Return, for each duration, whether the note is recalled after a file check of that many seconds."""
        found = []
        for self.lasts in lasting:
            found.append(self._known.get(self._entry) is not None)
        return found


@pytest.mark.parametrize("slow", [[SLOW_LOOK * 2] * SLOW_LOOKS, [ENDLESS * 2]])
def test_file_checks_are_suspended_after_slow_checks(slow):
    looks = Looks()
    assert all(looks.find(*slow))
    assert looks.find(0.0) == [False]
    assert looks.made == len(slow)
    looks.now += REST
    assert looks.find(0.0) == [True]


def test_occasional_slow_check_does_not_suspend_file_checks():
    """A check is occasionally slow because its thread waited for a processor.

    Suspending file checks after a single slow check would cost more.
    """
    looks, slow = Looks(), [SLOW_LOOK * 2] * (SLOW_LOOKS - 1)
    assert all(looks.find(*slow, 0.0, *slow, 0.0, *slow, 0.0))
    assert looks.made == 3 * SLOW_LOOKS
