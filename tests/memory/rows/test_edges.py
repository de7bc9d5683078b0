"""`edges.db`: one row per key, an outbox in the same file, and damaged or older files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import apsw
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.events import EDGE_UPSERTED, EventDraft
from lithos.kernel.values.times import format_time
from lithos.memory.rows.edges import EdgeStore
from lithos.notes.model.edges import Edge, EdgeFilter, UpsertEdge
from tests.fakes import START, Clock

ALL = EdgeFilter()
PLAIN = UpsertEdge(agent="ann", from_id="a", to_id="b", type="supports", weight=0.5, namespace="n")


def upsert(store: EdgeStore, number: int = 1, clock: Clock | None = None, **changes: Any) -> Edge:
    with store.transaction():
        wanted = attrs.evolve(PLAIN, **changes)
        return store.upsert(wanted, f"edge_{number:012}", (clock or Clock())())


def draft(number: int) -> EventDraft:
    return EventDraft(
        type=EDGE_UPSERTED,
        agent="ä",
        payload={"n": number, "x": None},
        timestamp=START,
        origin=f"tool:{number}",
    )


@pytest.fixture
def store(tmp_path):
    store = EdgeStore.open(tmp_path / "sub" / "edges.db", START)
    yield store
    store.close()


def test_edge_file_is_created_by_the_first_write(store, tmp_path):
    assert (store.edges(ALL), store.outbox()) == ([], [])
    assert list(tmp_path.rglob("*.db*")) == []
    upsert(store)
    assert (tmp_path / "sub" / "edges.db").exists()
    assert [edge.id for edge in store.edges(ALL)] == ["edge_000000000001"]


def test_upsert_of_an_existing_key_keeps_id_creation_and_position(store):
    """behaviour 83"""
    clock = Clock()
    first = upsert(
        store, 1, clock, provenance_actor="x", provenance_type="y", evidence="[1]", conflict_state="z"
    )
    upsert(store, 2, clock, namespace="other")
    clock.advance(5)
    again = upsert(store, 3, clock, weight=-7.25)
    assert (again.id, again.created_at) == (first.id, START)
    assert again == attrs.evolve(
        first, weight=-7.25, updated_at=clock(), provenance_actor=None, provenance_type=None, evidence=None,
        conflict_state=None,
    )  # fmt: skip
    assert [edge.id for edge in store.edges(ALL)] == [first.id, "edge_000000000002"]


def test_settled_conflict_changes_only_state_actor_and_time(store):
    clock = Clock()
    edge = upsert(store, 1, clock, provenance_actor="x", evidence="{}")
    with store.transaction():
        settled = store.settle_conflict(edge, "merged", "bob", clock.advance(1))
        assert store.edge(edge.id) == settled
        assert store.edge("edge_none") is None
    assert settled == attrs.evolve(
        edge, conflict_state="merged", provenance_actor="bob", updated_at=clock(), evidence="{}"
    )
    assert store.edges(ALL) == [settled]


def test_failed_transaction_stores_neither_edge_nor_outbox_row(store):
    upsert(store, 1)

    def break_off() -> None:
        with store.transaction():
            store.upsert(attrs.evolve(PLAIN, to_id="c"), "edge_x", START)
            store.add_to_outbox([draft(1), draft(1)])  # the origin must be unique

    with pytest.raises(apsw.ConstraintError):
        break_off()
    assert (len(store.edges(ALL)), store.outbox()) == (1, [])


def test_outbox_returns_whole_events_in_order_after_reopening(store, tmp_path):
    with store.transaction():
        store.add_to_outbox([draft(2), draft(1), draft(3)])
        store.clear_outbox(["tool:1", "tool:unknown"])
    store.close()
    again = EdgeStore.open(tmp_path / "sub" / "edges.db", START)
    assert again.outbox() == [draft(2), draft(3)]
    again.close()


def test_reopening_keeps_all_edge_rows(store, tmp_path):
    """behaviour 89"""
    edge = upsert(store, evidence='{"k": "é"}')
    store.close()
    again = EdgeStore.open(tmp_path / "sub" / "edges.db", START)
    assert again.edges(ALL) == [edge]
    again.close()


def test_older_file_gets_missing_columns_and_tolerates_invalid_times(tmp_path):
    path = tmp_path / "edges.db"
    old = apsw.Connection(str(path))
    old.execute(
        "CREATE TABLE edges(edge_id TEXT PRIMARY KEY, from_id TEXT NOT NULL, to_id TEXT NOT NULL,"
        " type TEXT NOT NULL, namespace TEXT NOT NULL, created_at TEXT NOT NULL,"
        " UNIQUE(from_id,to_id,type,namespace))"
    )
    old.execute("INSERT INTO edges VALUES('e1','a','b','supports','n',?)", (format_time(START),))
    old.execute("INSERT INTO edges VALUES('e2','a','c','supports','n','whenever')")
    old.close()
    store = EdgeStore.open(path, START)
    first, second = store.edges(ALL)
    assert (first.id, first.weight, first.created_at, first.updated_at) == ("e1", 1.0, START, START)
    assert (second.id, second.evidence) == ("e2", None)
    assert upsert(store, weight=0.25).id == "e1"
    store.close()


_ENDS = st.sampled_from("abc")
_COMMAND = st.builds(
    UpsertEdge,
    agent=st.just("ann"),
    from_id=_ENDS,
    to_id=_ENDS,
    type=st.sampled_from(("supports", "contradicts")),
    weight=st.floats(allow_nan=False, allow_infinity=False),
    namespace=st.sampled_from("nm"),
    provenance_actor=st.none() | st.text(max_size=2),
    evidence=st.none() | st.just("[]"),
    conflict_state=st.none() | st.just("open"),
)
_FILTER = st.builds(
    EdgeFilter,
    from_id=st.none() | _ENDS,
    to_id=st.none() | _ENDS,
    type=st.none() | st.just("supports"),
    namespace=st.none() | st.sampled_from("nx"),
)


def key_of(wanted: UpsertEdge) -> tuple[str, ...]:
    return wanted.from_id, wanted.to_id, wanted.type, wanted.namespace


@given(steps=st.lists(_COMMAND, max_size=12), wanted=_FILTER)
def test_mirror_is_a_dictionary_by_key_in_insertion_order(
    steps: list[UpsertEdge], wanted: EdgeFilter
) -> None:
    """behaviour 83"""
    model: dict[tuple[str, ...], tuple[str, UpsertEdge]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = EdgeStore.open(Path(folder) / "edges.db", START)
        for number, step in enumerate(steps):
            with store.transaction():
                edge = store.upsert(step, f"e{number}", START)
                known = model.get(key_of(step))
                model[key_of(step)] = (known[0] if known else f"e{number}", step)
                assert edge.id == model[key_of(step)][0]
        passing = [
            (edge_id, command)
            for edge_id, command in model.values()
            if all(
                value is None or getattr(command, name) == value
                for name, value in attrs.asdict(wanted).items()
            )
        ]
        assert [
            (edge.id, edge.weight, edge.provenance_actor, edge.evidence, edge.conflict_state)
            for edge in store.edges(wanted)
        ] == [(edge_id, c.weight, c.provenance_actor, c.evidence, c.conflict_state) for edge_id, c in passing]
        for ids in ("", "a", "bc", "x"):
            assert [edge.id for edge in store.edges_touching(ids)] == [
                edge_id for edge_id, c in model.values() if {c.from_id, c.to_id} & set(ids)
            ]
        store.close()
