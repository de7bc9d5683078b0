"""The version store: exact bytes are returned, and stored once as deltas. Damaged files are moved aside."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.history.rows import schema
from lithos.history.rows.schema import CHAIN
from lithos.history.rows.store import HistoryFailed, HistoryStore, NewVersion
from lithos.notes.model.versions import CREATED, DELETED, OUTSIDE, RENAMED, UPDATED

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lithos" / "history.db"


@pytest.fixture
def store(path):
    store = HistoryStore.open(path, START)
    yield store
    store.close()


def make_version(version: int, data: bytes | None, note_id: str = "note", **fields) -> NewVersion:
    told = {
        "at": START + timedelta(seconds=version),
        "agent": "ada",
        "op": UPDATED if version > 1 else CREATED,
        "path": "a.md",
        "title": "A",
    }
    return NewVersion(note_id=note_id, version=version, data=data, **{**told, **fields})


def count(store: HistoryStore, table: str) -> int:
    return int(store._reader.execute(f"SELECT COUNT(*) FROM {table}").fetchall()[0][0])


def test_rows_and_bytes_are_returned_as_stored(store, path):
    store.add([make_version(1, b"one\r\n", changed=("body", "title"))])
    store.add([make_version(2, b"two\xff")])
    store.close()
    again = HistoryStore.open(path, START)
    row = again.row("note", 1)
    assert row is not None
    assert (row.at, row.agent, row.op, row.path, row.title) == (
        START + timedelta(seconds=1), "ada", CREATED, "a.md", "A",
    )  # fmt: skip
    assert (row.digest, row.size, row.changed) == (
        hashlib.sha256(b"one\r\n").hexdigest(),
        5,
        ("body", "title"),
    )
    assert again.content("note", 1) == b"one\r\n"
    assert again.content("note", 2) == b"two\xff"
    assert again.row("note", 3) is None
    assert again.content("other", 1) is None
    assert again.oldest("note") == 1
    assert again.oldest("other") is None
    again.close()


@given(
    st.lists(
        st.one_of(st.binary(max_size=300), st.sampled_from([b"", b"a" * 2000, b"b" * 2000])), max_size=70
    )
)
def test_any_bytes_in_any_order_are_returned_exactly(tmp_path_factory, states):
    store = HistoryStore.open(tmp_path_factory.mktemp("h") / "history.db", START)
    for version, data in enumerate(states, 1):
        store.add([make_version(version, data)])
    assert [store.content("note", version) for version in range(1, len(states) + 1)] == states
    store.close()


def test_change_of_a_large_note_is_stored_as_small_delta(store):
    words = [f"w{n}" for n in range(5000)]
    text = " ".join(random.Random(1).choices(words, k=150_000)).encode()
    store.add([make_version(1, text)])
    store.add([make_version(2, b"head " + text[:400_000] + b"middle" + text[400_000:])])
    sizes = [row[0] for row in store._reader.execute("SELECT LENGTH(data) FROM contents ORDER BY number")]
    assert sizes[1] < 1000 < sizes[0]
    assert store.content("note", 2) == b"head " + text[:400_000] + b"middle" + text[400_000:]


def test_every_fiftieth_version_is_stored_whole(store):
    text = " ".join(random.Random(1).choices([f"word{n}" for n in range(500)], k=300))
    for version in range(1, 121):
        store.add([make_version(version, f"{text} {version}".encode())])
    whole = [row[0] for row in store._reader.execute("SELECT number FROM contents WHERE base IS NULL")]
    assert whole == [1, 51, 101]
    assert store._reader.execute("SELECT MAX(depth) FROM contents").fetchall() == [(CHAIN,)]


def test_versions_with_equal_bytes_are_stored_once(store):
    store.add([make_version(1, b"same"), make_version(1, b"same", "other")])
    store.add([make_version(2, b"else"), make_version(3, b"same")])
    assert count(store, "contents") == 2
    assert store.content("note", 3) == b"same"


def test_former_state_is_recorded_unless_it_is_the_newest(store):
    first = make_version(4, b"found", op=OUTSIDE, agent="someone")
    store.add([make_version(5, b"new", before=first)])
    assert [(row.version, row.op) for row in store.rows("note", 10)[0]] == [(5, UPDATED), (4, OUTSIDE)]
    store.add([make_version(6, b"newer", before=make_version(5, b"new", op=OUTSIDE))])
    assert [row.version for row in store.rows("note", 10)[0]] == [6, 5, 4]
    store.add([make_version(8, b"newest", before=make_version(7, b"edited", op=OUTSIDE))])
    assert [row.version for row in store.rows("note", 10)[0]] == [8, 7, 6, 5, 4]
    assert store.content("note", 7) == b"edited"


def test_deletion_without_bytes_uses_the_bytes_of_the_previous_version(store):
    store.add([make_version(1, b"text")])
    store.add([make_version(2, None, op=DELETED)])
    assert store.content("note", 2) == b"text"
    row = store.row("note", 2)
    assert row is not None
    assert (row.op, row.size) == (DELETED, 4)


def test_last_of_several_rows_with_one_version_counts(store):
    store.add([make_version(1, b"text")])
    store.add([make_version(1, b"text", op=RENAMED, path="b.md")])
    row = store.row("note", 1)
    assert row is not None
    assert row.path == "b.md"
    rows, total = store.rows("note", 10)
    assert ([each.op for each in rows], total) == ([RENAMED, CREATED], 2)


def test_version_at_a_time_is_found_despite_clock_changes(store):
    store.add([make_version(1, b"a", at=START)])
    store.add([make_version(2, b"b", at=START - timedelta(hours=1))])
    store.add([make_version(3, b"c", at=START + timedelta(hours=1))])

    def current(hours: float) -> int | None:
        row = store.current_at("note", START + timedelta(hours=hours))
        return None if row is None else row.version

    assert [current(hours) for hours in (-2, -1, 0, 0.5, 1)] == [None, 2, 2, 2, 3]


def test_history_is_returned_in_pages(store):
    store.add([make_version(version, str(version).encode()) for version in range(1, 31)])
    rows, total = store.rows("note", 20)
    assert ([row.version for row in rows], total) == (list(range(30, 10, -1)), 30)
    rows, total = store.rows("note", 20, before=11)
    assert ([row.version for row in rows], total) == (list(range(10, 0, -1)), 30)


def test_versions_of_all_notes_are_filtered_by_agent_time_deletion(store):
    store.add([make_version(1, b"a", "one"), make_version(2, b"b", "two", agent="bob")])
    store.add([make_version(3, None, "one", op=DELETED), make_version(4, b"c", "three", agent="bob")])
    store.add([make_version(5, None, "two", op=DELETED), make_version(6, b"back", "two")])

    def find(**filters):
        rows, total = store.recent(limit=10, **filters)
        return [(row.note_id, row.version) for row in rows], total

    assert find() == ([("two", 6), ("two", 5), ("three", 4), ("one", 3), ("two", 2), ("one", 1)], 6)
    assert find(agent="bob") == ([("three", 4), ("two", 2)], 2)
    assert find(is_deleted=True) == ([("one", 3)], 1)
    since, until = START + timedelta(seconds=2), START + timedelta(seconds=4)
    assert find(since=since, until=until) == ([("one", 3), ("two", 2)], 2)
    assert find(before=3) == ([("two", 2), ("one", 1)], 2)
    rows, total = store.recent(limit=2)
    assert (len(rows), total) == (2, 6)


def test_dropped_row_leaves_the_base_of_other_rows_intact(store):
    text = b"some text that is long enough to be worth a difference " * 20
    places = store.add([make_version(version, text + str(version).encode()) for version in range(1, 11)])
    assert store.drop(places[:5]) == 5
    assert [store.content("note", version) for version in (5, 6, 10)] == [None, text + b"6", text + b"10"]
    assert count(store, "contents") == 10
    store.drop(places[5:])
    assert [count(store, table) for table in ("contents", "versions", "notes")] == [0, 0, 0]


def test_rows_are_pending_until_they_are_confirmed(store):
    first, second = store.add([make_version(1, b"a"), make_version(2, b"b")])
    assert [(each.place, each.former is None, each.is_newest) for each in store.pending()] == [
        (first, True, False),
        (second, False, True),
    ]
    store.confirm([first])
    assert [each.place for each in store.pending()] == [second]
    store.add([make_version(3, b"c")], confirmed=[second], is_pending=False)
    assert store.pending() == []


def test_history_rows_of_an_older_file_are_not_undos(path):
    store = HistoryStore.open(path, START)
    store.add([make_version(1, b"one")])
    store.close()
    older = apsw.Connection(str(path))
    older.execute("ALTER TABLE versions DROP COLUMN undo")
    older.close()
    store = HistoryStore.open(path, START)
    store.add([make_version(2, b"two", is_undo=True)])
    rows, _ = store.rows("note", 5)
    assert [row.is_undo for row in rows] == [True, False]
    store.close()


def test_history_file_is_moved_aside_when_a_write_finds_damage(store, path):
    store.add([make_version(version, random.Random(version).randbytes(3000)) for version in range(1, 200)])
    store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    store.close()
    damaged = path.read_bytes()
    connections = (apsw.Connection(str(path)), apsw.Connection(str(path)))
    store._connections = connections
    store.add([make_version(200, b"new", before=make_version(199, b"old"))])
    assert store.content("note", 200) == b"new"
    assert store.content("note", 199) == b"old"
    assert [each.read_bytes() for each in path.parent.glob("history.db.corrupt-*[0-9Z]")] == [damaged]
    assert store.failure is None
    assert store.damage is None


def test_rows_that_cannot_be_stored_are_refused_and_reported(store):
    store.add([make_version(1, b"a")])
    ((pages,),) = store._writer.execute("PRAGMA page_count").fetchall()
    store._writer.execute(f"PRAGMA max_page_count={pages}").fetchall()
    with pytest.raises(HistoryFailed, match="full"):
        store.add([make_version(2, random.Random(1).randbytes(100_000))])
    assert store.failure is not None
    assert store.row("note", 2) is None
    store._writer.execute("PRAGMA max_page_count=1000000").fetchall()
    store.add([make_version(2, b"b")])
    assert store.failure is None


def test_version_with_wrong_bytes_is_refused(store):
    store.add([make_version(1, b"a" * 100)])
    store._writer.execute("UPDATE contents SET digest=randomblob(32)")
    with pytest.raises(HistoryFailed, match="different bytes"):
        store.content("note", 1)
    store.add([make_version(2, b"a" * 101)])
    assert store.content("note", 2) == b"a" * 101


def test_newest_versions_of_all_notes_are_returned(store):
    store.add([make_version(version, b"%d" % version, f"note {version}") for version in range(1, 6)])
    store.add([make_version(9, None, "note 2", op=DELETED)])
    first = store.newest(0, 3)
    assert [(each.note_id, each.version, each.is_deletion) for each in first] == [
        ("note 1", 1, False), ("note 2", 9, True), ("note 3", 3, False),
    ]  # fmt: skip
    assert [each.note_id for each in store.newest(first[-1].number, 3)] == ["note 4", "note 5"]


def test_state_at_a_new_path_is_recorded_as_a_rename(store):
    store.add([make_version(1, b"text")])
    store.add([make_version(2, b"new", path="b.md", before=make_version(1, b"text", path="b.md"))])
    assert [(row.version, row.op, row.path) for row in store.rows("note", 10)[0]] == [
        (2, UPDATED, "b.md"), (1, RENAMED, "b.md"), (1, CREATED, "a.md"),
    ]  # fmt: skip


GINGER = b"# Ginger\n\nFresh ginger keeps for three weeks in the cold.\n"
PEELED = b"# Ginger\n\nFresh ginger keeps for five weeks in the cold, peeled.\n"


@pytest.mark.parametrize(
    ("packed", "former", "data"),
    [
        (
            "28b52ffd0000d10100232047696e6765720a0a46726573682067696e676572206b6565707320"
            "666f72207468726565207765656b7320696e2074686520636f6c642e0a",
            None,
            GINGER,
        ),
        ("28b52ffd0000b50000686669762c207065656c65642e0a02005c25d3470504", GINGER, PEELED),
        ("28b52ffd000069000061626361626361626320616263", b"abc", b"abcabcabc abc"),
    ],
    ids=["whole", "difference", "difference to less than a dictionary"],
)
def test_history_of_an_earlier_version_is_readable(packed: str, former: bytes | None, data: bytes) -> None:
    """Up to version 0.1, the package zstandard wrote these frames.

    The current code writes identical frames.
    """
    assert schema._unpack(bytes.fromhex(packed), former, len(data)) == data
    assert schema._pack(data, former).hex() == packed


def test_versions_of_two_notes_can_be_read_alternately(store):
    """The search for the note of a conflict copy reads versions alternately.

    A lock held between the reads would block the search permanently.
    """
    for note_id in ("one", "other"):
        store.add([make_version(number, b"%d" % number, note_id) for number in (1, 2)])
    read = [(data, list(store.contents("other", 9))) for data in store.contents("one", 9)]
    assert read == [(b"2", [b"2", b"1"]), (b"1", [b"2", b"1"])]
