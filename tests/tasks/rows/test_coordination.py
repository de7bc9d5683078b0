"""`coordination.db`: the journal and its order, agents, the access log, and counts."""

from __future__ import annotations

from datetime import timedelta

import apsw
import pytest

from lithos.events.model.agents import Agent, AuditRow
from lithos.events.rows.store import CoordinationCounts, CoordinationStore
from lithos.kernel.values.events import Event, EventDraft
from tests.fakes import START

CLOCK = int(START.timestamp() * 1000)
#: One day in milliseconds. Journal sequence numbers (seqs) use this unit.
DAY = 86_400_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "coordination.db"


@pytest.fixture
def store(path):
    store = CoordinationStore.open(path, START)
    yield store
    store.close()


def make_event(seq: int, **fields: object) -> Event:
    defaults = {"type": "note.created", "agent": "a", "payload": {"id": "x"}, "timestamp": START}
    return Event(seq=seq, draft=EventDraft(**{**defaults, **fields}))


def append(store: CoordinationStore, *events: Event) -> None:
    with store.transaction():
        store.append_events(events)


COLUMNS = {
    "agents": "id name type first_seen_at last_seen_at metadata archived_at",
    "tasks": "id title description status task_type created_by created_at tags outcome resolved_at metadata",
    "claims": "id task_id agent aspect claimed_at expires_at fence",
    "findings": "id task_id agent summary knowledge_id created_at",
    "task_edges": "id from_task_id to_task_id type metadata created_by created_at",
    "counters": "name value",
    "access_log": "id agent_id doc_id operation timestamp project",
    "told_projects": "session agent project last_seen",
    "events": "seq type agent payload tags timestamp origin",
    "cursors": "subscriber seq updated_at",
    "meta": "name value",
}


def test_tables_have_the_columns_of_the_specification(store):
    found = {
        table: " ".join(row[1] for row in store._reader.execute(f"PRAGMA table_info({table})"))
        for table in COLUMNS
    }
    assert found == COLUMNS


def test_specified_indexes_exist(store):
    connection = store._reader
    indexed = {
        (table, row[2])
        for table, name in connection.execute(
            "SELECT tbl_name, name FROM sqlite_master WHERE type='index'"
        ).fetchall()
        for row in connection.execute(f"PRAGMA index_info({name})").fetchall()
        if row[0] == 0
    }
    wanted = {("tasks", "status"), ("claims", "task_id"), ("claims", "expires_at"), ("findings", "task_id")}
    wanted |= {("task_edges", "from_task_id"), ("task_edges", "to_task_id")}
    assert indexed >= wanted | {("access_log", column) for column in ("agent_id", "doc_id", "timestamp")}


# -- the journal ------------------------------------------------------------------------------------


def test_events_are_read_back_unchanged_and_in_order(store):
    events = [
        make_event(CLOCK, tags=("ä", "b"), payload={"id": "1", "nested": {"n": [1, None, True]}}),
        make_event(CLOCK + 1, type="agent.registered", agent="é\n", origin="tool:abc"),
        make_event(CLOCK + 9, timestamp=START + timedelta(microseconds=1)),
    ]
    append(store, *events)
    assert store.events_after(0) == events
    assert store.events_after(CLOCK) == events[1:]
    assert store.events_after(0, limit=2) == events[:2]
    assert store.events_after(CLOCK + 9) == []
    assert store.event_count() == 3


def test_new_journal_starts_at_the_clock_without_lost_events(store):
    """behaviour 191: a sequence number that was lost with its file is never used again."""
    assert store.next_seq() == CLOCK
    assert store.pruned_through() == 0


def test_sequence_number_follows_the_clock_and_never_decreases(store, path):
    """behaviour 191: a restored copy lacks later sequence numbers, but the clock is already past them."""
    append(store, make_event(CLOCK), make_event(CLOCK + 5))
    store.close()
    for days, expected in [(-400, CLOCK + 6), (400, CLOCK + 400 * DAY), (1, CLOCK + 400 * DAY)]:
        again = CoordinationStore.open(path, START + timedelta(days=days))
        assert again.next_seq() == expected
        assert again.head() == CLOCK + 5, "what a subscriber is told, and may come back with"
        assert again.knows_position(CLOCK + 5)
        assert not again.knows_position(CLOCK + 6)
        again.close()


def test_positions_of_an_empty_journal_stay_valid_after_idle_starts(store, path):
    """docs/spec/events-http.md §2: a client that got the head of an empty journal has missed nothing."""
    began = store.head()
    assert began == CLOCK - 1
    for days in (1, 2):
        store.close()
        store = CoordinationStore.open(path, START + timedelta(days=days))
        assert store.head() == began
        assert store.knows_position(began)
    assert not store.knows_position(store.next_seq() - 1), "nobody was told that one"
    append(store, make_event(store.next_seq()))
    assert store.knows_position(began)
    with store.transaction():
        store.prune_events(0)
    assert not store.knows_position(began)
    assert store.head() == CLOCK + 2 * DAY == store.pruned_through()
    store.close()


def test_positions_newer_than_a_restored_copy_are_unknown(store, path):
    """behaviour 191: no event after the restore gets the sequence number of one of the ten lost events."""
    append(store, *(make_event(CLOCK + i) for i in range(3)))
    store.close()
    copy = path.read_bytes()
    lost = [CLOCK + DAY + i for i in range(10)]
    store = CoordinationStore.open(path, START + timedelta(days=1))
    assert store.next_seq() == lost[0]
    append(store, *map(make_event, lost))
    store.close()
    path.write_bytes(copy)
    store = CoordinationStore.open(path, START + timedelta(days=1, seconds=1))
    append(store, *(make_event(store.next_seq() + i) for i in range(10)))
    assert not set(lost) & {event.seq for event in store.events_after(0)}
    assert not any(store.knows_position(seq) for seq in lost)
    assert store.knows_position(CLOCK + 2)
    store.close()


def test_new_journal_continues_after_the_lost_journal(store, path):
    """behaviour 191"""
    append(store, *(make_event(CLOCK + i) for i in range(1000)))
    store.close()
    path.unlink()
    again = CoordinationStore.open(path, START + timedelta(seconds=2))
    assert again.next_seq() > CLOCK + 999
    again.close()


def test_journal_without_its_counter_continues_after_its_head(store, path):
    """behaviour 191: covers a clock that is behind the head."""
    append(store, make_event(CLOCK + 10**9))
    with store.transaction():
        store._writer.execute("DELETE FROM meta")
    store.close()
    again = CoordinationStore.open(path, START)
    assert again.next_seq() == CLOCK + 10**9 + 1
    again.close()


def test_sequence_counter_survives_pruning_of_all_events(store):
    append(store, make_event(CLOCK), make_event(CLOCK + 1))
    with store.transaction():
        store.prune_events(0)
    assert store.event_count() == 0
    assert store.next_seq() == CLOCK + 2
    assert store.pruned_through() == CLOCK + 1


@pytest.mark.parametrize(("keep", "dropped"), [(10, None), (5, None), (4, 0), (2, 4)])
def test_pruning_keeps_the_newest_events_and_returns_its_position(store, keep, dropped):
    seqs = [CLOCK + 2 * i for i in range(5)]
    append(store, *map(make_event, seqs))
    with store.transaction():
        store.prune_events(keep)
    assert [event.seq for event in store.events_after(0)] == seqs[-keep:]
    assert store.pruned_through() == (0 if dropped is None else CLOCK + dropped)


def test_sequence_number_is_never_written_twice(store):
    append(store, make_event(CLOCK))
    with pytest.raises(apsw.ConstraintError):
        append(store, make_event(CLOCK + 1), make_event(CLOCK))
    assert [event.seq for event in store.events_after(0)] == [CLOCK]
    assert store.next_seq() == CLOCK + 1


def test_change_and_its_event_share_one_transaction(store):
    agent = Agent(id="a", first_seen_at=START, last_seen_at=START)
    append(store, make_event(CLOCK))

    def change() -> None:
        with store.transaction():
            store.put_agents([agent])
            store.append_events([make_event(CLOCK)])

    with pytest.raises(apsw.ConstraintError):
        change()
    assert store.agents() == []
    assert store.event_count() == 1


# -- agents and the access log ----------------------------------------------------------------------


def test_agents_are_read_back_unchanged_and_replaced(store):
    agent = Agent(
        id="a", name="Ä", type=None, first_seen_at=START, last_seen_at=START, metadata={"k": [1, {"x": None}]}
    )
    newer = Agent(id="a", type="t", first_seen_at=START, last_seen_at=START + timedelta(seconds=1))
    for version in (agent, newer):
        with store.transaction():
            store.put_agents([version])
        assert store.agents() == [version]


@pytest.mark.parametrize("metadata", ["", "{", "[1]", "null"])
def test_malformed_metadata_is_read_as_empty(store, metadata):
    with store.transaction():
        store.put_agents([Agent(id="a", first_seen_at=START, last_seen_at=START, metadata={"k": 1})])
        store._writer.execute("UPDATE agents SET metadata=?", (metadata,))
    assert store.agents()[0].metadata == {}


def test_access_log_is_filtered_and_sorted_newest_first(store):
    rows = [
        AuditRow(agent, doc, operation, START + timedelta(seconds=i))
        for i, (agent, doc, operation) in enumerate(
            [("a", "1", "read"), ("b", "1", "read"), ("a", "2", "search_result"), ("a", "1", "read")]
        )
    ]
    with store.transaction():
        store.add_audit(rows)

    def ids(**filters: object) -> list[int]:
        given = {"agent": None, "doc": None, "after": None, "limit": 100, **filters}
        return [int(row[0]) for row in store.audit(**given)]

    assert ids() == [4, 3, 2, 1]
    assert ids(limit=2) == [4, 3]
    assert ids(agent="a") == [4, 3, 1]
    assert ids(doc="1") == [4, 2, 1]
    assert ids(agent="a", doc="1") == [4, 1]
    assert ids(after=START + timedelta(seconds=1)) == [4, 3], "strictly later"
    assert ids(agent="' OR 1=1 --") == []
    first = store.audit(agent="b", doc=None, after=None, limit=1)
    assert first == [(2, "b", "1", "read", "2026-01-02T03:04:06.000006+00:00", None)]


def test_read_counts_include_only_read_calls(store):
    with store.transaction():
        store.add_audit([AuditRow("a", "1", op, START) for op in ("read", "read", "search_result")])
    assert store.read_counts() == {"1": 2}


def test_open_tasks_and_running_or_expired_claims_are_counted(store):
    def insert(task: str, status: str, *expiries: float) -> None:
        store._writer.execute(
            "INSERT INTO tasks(id,title,status,created_by,created_at) VALUES(?,'t',?,'a','x')", (task, status)
        )
        for i, seconds in enumerate(expiries):
            expires = (START + timedelta(seconds=seconds)).isoformat(timespec="microseconds")
            store._writer.execute(
                "INSERT INTO claims(task_id,agent,aspect,claimed_at,expires_at) VALUES(?,'a',?,'x',?)",
                (task, str(i), expires),
            )

    with store.transaction():
        insert("1", "open", 60, 0, -1)
        insert("2", "open")
        insert("3", "completed")
    assert store.counts(START) == CoordinationCounts(2, 1, 2), "at its time a claim has expired"


def test_event_is_found_by_its_type_and_time(store) -> None:
    events = [
        make_event(
            CLOCK + number * 40,
            type="task.completed" if number % 3 else "note.created",
            timestamp=START + timedelta(minutes=number),
            payload={"task_id": f"t{number % 5}"},
        )
        for number in range(3_000)
    ]
    append(store, *events)
    for number in (0, 1, 2, 1_500, 2_999):
        at = START + timedelta(minutes=number)
        found = store.find_event("task.completed", at, lambda event: event.draft.payload["task_id"] == "t2")
        expected = next(
            (each for each in events[number:] if each.draft.type == "task.completed"
             and each.draft.payload["task_id"] == "t2"),
            None,
        )  # fmt: skip
        assert found == expected
    assert store.find_event("task.created", START, lambda _: True) is None
    # The search reads only the next thousand events after that time. None of them matches.
    assert store.find_event("task.completed", START, lambda event: event.seq == events[2_000].seq) is None
