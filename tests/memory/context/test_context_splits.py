"""Cache of split notes. Entries match the exact text, and the cache size is limited."""

from __future__ import annotations

from lithos.memory.briefing.passages import split_note
from lithos.memory.context import passage_cache
from lithos.memory.context.passage_cache import LONGEST_SPLIT, Splits

TEXT = "# One\n\nA first paragraph of it.\n\n## Two\n\nA second paragraph.\n"


def test_unchanged_note_is_split_only_once():
    kept = Splits(500, 800)
    first = kept.split(1, "T", TEXT)
    assert first == split_note("T", TEXT, 500, 800)
    assert kept.split(1, "T", str(TEXT)) is first


def test_note_with_changed_text_or_title_is_split_again():
    kept = Splits(500, 800)
    kept.split(1, "T", TEXT)
    assert kept.split(1, "T", f"{TEXT}more") == split_note("T", f"{TEXT}more", 500, 800)
    assert kept.split(1, "A much longer title", TEXT) == split_note("A much longer title", TEXT, 500, 800)
    assert len(kept._kept) == 1


def test_split_cache_stays_within_its_size_limit(monkeypatch):
    monkeypatch.setattr(passage_cache, "SPLIT_BYTES", 5_000)
    kept = Splits(500, 800)
    for serial in range(30):
        kept.split(serial, "T", TEXT * (serial % 3 + 1))
        assert kept._left >= 0
        assert sum(each.size for each in kept._kept.values()) + kept._left == 5_000
    assert 29 in kept._kept
    assert 0 not in kept._kept
    kept.split(99, "T", "x" * (LONGEST_SPLIT + 1))
    assert 99 not in kept._kept
