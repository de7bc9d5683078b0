"""Coverage of the accurate model: switching thresholds, order of embedding, and unusable vectors."""

from __future__ import annotations

from collections.abc import Iterable

from lithos.search.indexing.coverage import AccurateCoverage, NoteText


class Vault:
    """Notes with one chunk each. `held` maps each note to the digest of its accurate vectors."""

    def __init__(self, notes: int) -> None:
        self.held: dict[int, int] = {}
        self.notes = [NoteText(serial, serial * 10, 1) for serial in range(1, notes + 1)]
        self.coverage = AccurateCoverage(lambda: len(self.notes), self.held.get)

    def plan(self, kept: Iterable[int] = (), surplus: Iterable[int] = ()) -> AccurateCoverage:
        self.coverage.plan(self.notes, {serial: serial * 10 for serial in kept}, surplus)
        return self.coverage

    def fill(self, serials: Iterable[int]) -> None:
        for serial in serials:
            self.coverage.filled(serial, serial * 10)


def test_queries_use_accurate_vectors_from_99_until_below_97_percent() -> None:
    """behaviour 262"""
    vault = Vault(200)
    coverage = vault.plan()
    vault.fill(range(1, 198))
    assert (coverage.counts(), coverage.is_enough) == ((197, 200), False)
    vault.fill([198])
    assert (coverage.counts(), coverage.is_enough) == ((198, 200), True)
    coverage.change([NoteText(serial, 7, 1) for serial in range(1, 5)], [])
    assert (coverage.counts(), coverage.is_enough) == ((194, 200), True)
    coverage.change([NoteText(5, 7, 1)], [])
    assert (coverage.counts(), coverage.is_enough) == ((193, 200), False)
    coverage.filled(5, 7)
    assert not coverage.is_enough, "it takes 99 % again"


def test_coverage_counts_chunks_instead_of_notes() -> None:
    coverage = AccurateCoverage(lambda: 1000, lambda _: None)
    notes = [NoteText(1, 1, 990), NoteText(2, 1, 10)]
    coverage.plan(notes, {1: 1}, [])
    assert coverage.is_enough
    coverage.change([NoteText(1, 2, 990)], [])
    assert coverage.counts() == (0, 1000)
    assert not coverage.is_enough


def test_empty_vault_has_insufficient_coverage() -> None:
    assert not Vault(0).plan().is_enough


def test_coverage_is_insufficient_before_the_plan() -> None:
    vault = Vault(1)
    vault.coverage.change([], [9])
    assert not vault.coverage.is_enough
    assert not vault.coverage.is_complete


def test_changed_notes_are_embedded_first_followed_by_the_newest() -> None:
    vault = Vault(5)
    coverage = vault.plan()
    coverage.change([NoteText(2, 21, 1)], [])
    assert coverage.take(2) == [2, 5]
    assert coverage.take(10) == [4, 3, 1]
    assert coverage.take(10) == []
    assert coverage.is_drained
    assert not coverage.is_complete
    coverage.retry()
    assert sorted(coverage.take(10)) == [1, 2, 3, 4, 5]


def test_large_note_is_embedded_alone() -> None:
    coverage = AccurateCoverage(lambda: 5000, lambda _: None)
    coverage.plan([NoteText(1, 1, 2), NoteText(2, 1, 4998)], {}, [])
    assert coverage.take(48) == [2]


def test_note_changed_during_its_embedding_stays_stale() -> None:
    vault = Vault(2)
    coverage = vault.plan()
    assert coverage.take(1) == [2]
    coverage.change([NoteText(2, 21, 1)], [])
    coverage.filled(2, 20)
    assert coverage.stale() == {1, 2}
    assert coverage.take(1) == [2]
    coverage.filled(2, 21)
    assert coverage.stale() == {1}


def test_note_changed_before_the_plan_counts_as_newer() -> None:
    vault = Vault(3)
    vault.held[2] = 77
    vault.coverage.change([NoteText(1, 11, 1), NoteText(2, 21, 1, 77)], [3])
    coverage = vault.plan(kept=[1, 2, 3])
    assert coverage.stale() == {1, 3}
    assert coverage.stamps() == {2: 21}


def test_change_that_keeps_the_text_needs_no_new_vectors() -> None:
    vault = Vault(2)
    coverage = vault.plan(kept=[1, 2])
    vault.held[1] = 77
    coverage.change([NoteText(1, 11, 1, 77)], [])
    assert coverage.stale() == frozenset()
    assert coverage.stamps() == {1: 11, 2: 20}
    coverage.change([NoteText(1, 12, 1, 78)], [])
    assert coverage.stale() == {1}


def test_vectors_of_deleted_notes_are_unused_and_removed() -> None:
    vault = Vault(2)
    coverage = vault.plan(kept=[1, 2], surplus=[9])
    coverage.change([], [1])
    assert coverage.stale() == {1, 9}
    assert coverage.take(10) == [1, 9]
    coverage.filled(1, None)
    coverage.filled(9, None)
    assert coverage.is_complete
    assert coverage.stamps() == {2: 20}
