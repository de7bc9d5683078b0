"""The manifest: indexed notes are restored, and unusable rows are skipped."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.files import manifest as module
from lithos.notes.files.manifest import Entry, Manifest
from lithos.notes.files.values import FileState
from lithos.notes.model.note import Note
from tests.fakes import START, make_entry


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lithos" / "manifest.db"


@pytest.fixture
def manifest(path):
    manifest = Manifest.open(path, START)
    yield manifest
    manifest.close()


def make_row(serial: int, path: str | None = None, **fields: object) -> Entry:
    return make_entry(serial, path, **fields)


def reopened(manifest: Manifest, path) -> Manifest:
    manifest.close()
    return Manifest.open(path, START)


texts = st.text(max_size=12)
times = st.datetimes(timezones=st.just(UTC))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
#: Hypothesis infers the strategies of all other fields from their types.
fields = dict.fromkeys((field.name for field in attrs.fields(attrs.resolve_types(Note))), ...) | {
    "created_at": times,
    "updated_at": times,
    "expires_at": st.none() | times,
    "confidence": st.floats(0, 1),
    "version": st.integers(1),
    "summaries": st.none() | st.dictionaries(texts, texts, max_size=2),
    "extra": st.dictionaries(texts, json_values, max_size=3),
    "frontmatter_error": st.none() | st.fixed_dictionaries({"line": st.integers(), "reason": texts}),
}
notes = st.builds(Note, **fields)
rows = st.builds(
    Entry,
    path=texts,
    serial=st.integers(1, 2**62),
    state=st.builds(FileState, st.integers(0, 2**62), st.integers(-(2**63) + 1, 2**63 - 1)),
    digest=texts,
    identified=st.booleans(),
    note=notes,
    links=st.lists(texts, max_size=3).map(tuple),
)


def test_stored_row_is_restored_unchanged(tmp_path):
    manifest = Manifest.open(tmp_path / "m.db", START)

    @given(rows)
    def check(row):
        manifest.store([row], removed=[kept.path for kept in manifest.load()])
        assert manifest.load() == [row]

    check()
    manifest.close()


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime(2242, 3, 16, 12, 56, 31, 1)])
def test_distant_times_are_restored_to_the_microsecond(manifest, moment):
    row = make_row(1, created_at=moment.replace(tzinfo=UTC), expires_at=moment.replace(tzinfo=UTC))
    manifest.store([row])
    assert manifest.load() == [row]


def test_equal_values_of_many_notes_share_one_object(manifest):
    extra = {"priority": 3, "review": {"cycle": 30}}
    rows = [
        make_row(number, f"{number}.md", title=f"T{number}", note_type="hypothesis", extra=dict(extra))
        for number in (1, 2, 3)
    ]
    rows[0] = attrs.evolve(rows[0], links=("T2",))
    rows[2] = attrs.evolve(rows[2], note=attrs.evolve(rows[2].note, extra={**extra, "priority": 3.0}))
    manifest.store(rows)
    first, second, third = manifest.load()
    assert [first, second, third] == rows
    assert first.note.extra is second.note.extra
    assert first.note.note_type is second.note.note_type
    assert first.links[0] is second.note.title
    assert isinstance(third.note.extra["priority"], float)


def test_rows_are_loaded_in_path_order(manifest):
    manifest.store([make_row(1, "b.md"), make_row(2, "a.md"), make_row(3, "A.md")])
    assert [row.path for row in manifest.load()] == ["A.md", "a.md", "b.md"]


def test_row_replaces_its_path_and_removed_paths_are_deleted(manifest):
    manifest.store([make_row(1, "a.md"), make_row(2, "b.md")])
    manifest.store([make_row(1, "a.md", title="New")], removed=["b.md", "unknown.md"])
    assert [(row.path, row.note.title) for row in manifest.load()] == [("a.md", "New")]


def test_manifest_accepts_notes_that_swap_their_files(manifest):
    manifest.store([make_row(1, "a.md"), make_row(2, "b.md")])
    manifest.store([make_row(2, "a.md"), make_row(1, "b.md")])
    assert [(row.path, row.serial) for row in manifest.load()] == [("a.md", 2), ("b.md", 1)]


def test_moved_note_leaves_no_row_under_its_old_path(manifest):
    manifest.store([make_row(1, "a.md")])
    manifest.store([make_row(1, "b.md")])
    assert [row.path for row in manifest.load()] == ["b.md"]


def test_journal_position_is_kept_until_a_new_position_is_stored(manifest, path):
    assert manifest.seq is None
    manifest.store([make_row(1)], seq=41)
    manifest.store([make_row(2)])
    assert manifest.seq == 41
    again = reopened(manifest, path)
    assert again.seq == 41
    assert len(again.load()) == 2
    again.close()


def test_manifest_is_new_until_the_first_store(manifest, path):
    assert manifest.is_new
    again = reopened(manifest, path)
    assert again.is_new, "a start that was killed before its first store must count as none"
    again.store([], seq=0)
    third = reopened(again, path)
    assert not third.is_new
    third.close()


def test_manifest_with_rows_but_no_position_is_not_new(manifest, path):
    manifest.store([make_row(1)])
    again = reopened(manifest, path)
    assert not again.is_new
    again.close()


def test_manifest_of_another_format_is_dropped(manifest, path, monkeypatch):
    manifest.store([make_row(1)], seq=7)
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    again = reopened(manifest, path)
    assert again.is_new
    assert again.load() == []
    assert again.seq is None
    again.close()


def test_failed_manifest_write_changes_nothing(manifest):
    manifest.store([make_row(1, "a.md")], seq=1)

    def broken():
        yield make_row(2, "b.md")
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        manifest.store(broken(), removed=["a.md"], seq=2)
    assert [row.path for row in manifest.load()] == ["a.md"]
    assert manifest.seq == 1
