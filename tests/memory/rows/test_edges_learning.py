"""Projected, learned and weakened edges in `edges.db`."""

from __future__ import annotations

from itertools import count

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.memory.model.memory import ProjectionOutcome, ProjectProvenance
from lithos.memory.rows.edges import REINFORCEMENT, EdgeStore
from lithos.notes.model.edges import EdgeFilter, UpsertEdge
from tests.fakes import START, Clock

NOTHING = ProjectionOutcome()


class Edges:
    """Edge store that assigns the edge ids e1, e2, ..."""

    def __init__(self, path) -> None:
        self.store = EdgeStore.open(path / "edges.db", START)
        self._numbers = count(1)
        self.clock = Clock()

    def new_id(self) -> str:
        return f"e{next(self._numbers)}"

    def assert_edge(self, from_id, to_id, type="derived_from", namespace="n", weight=0.5, **changes):
        wanted = UpsertEdge(
            agent="x", from_id=from_id, to_id=to_id, type=type, weight=weight, namespace=namespace, **changes
        )
        with self.store.transaction():
            return self.store.upsert(wanted, self.new_id(), self.clock())

    def project(self, gone=(), complete=False, dry_run=False, **desired) -> ProjectionOutcome:
        """Project provenance. Each keyword has the form `note="namespace source source"`."""
        command = ProjectProvenance(
            desired={note: (text.split()[0], tuple(text.split()[1:])) for note, text in desired.items()},
            gone=gone,
            complete=complete,
            dry_run=dry_run,
        )
        with self.store.transaction():
            return self.store.learned.project(command, self.new_id, self.clock())

    def rows(self):
        return self.store.edges(EdgeFilter())

    def drawn(self) -> dict[str, str | None]:
        return {f"{edge.from_id}>{edge.to_id}@{edge.namespace}": edge.provenance_type for edge in self.rows()}


@pytest.fixture
def edges(tmp_path):
    edges = Edges(tmp_path)
    yield edges
    edges.store.close()


def test_projection_creates_missing_edges_only_once(edges):
    """behaviour 88"""
    assert edges.project(a="n s1 s2", b="m s1", c="n") == ProjectionOutcome(created=3)
    first = edges.rows()
    assert [
        attrs.astuple(edge)[1:] for edge in first if edge.from_id == "b"
    ] == [("b", "s1", "derived_from", 1.0, "m", START, START, None, "frontmatter", None, None)]  # fmt: skip
    edges.clock.advance(60)
    assert edges.project(a="n s1 s2", b="m s1", c="n") == edges.project(a="n s2 s1 s1") == NOTHING
    assert edges.rows() == first


def test_projection_removes_outdated_edges_and_repairs_changed_edges(edges):
    """behaviour 88"""
    edges.project(a="n s1 s2 s3", b="n s1", c="n s1")
    (first, second) = (edge for edge in edges.rows() if edge.to_id in ("s1", "s2") and edge.from_id == "a")
    edges.assert_edge("a", "s1", weight=0.2, provenance_type="frontmatter", evidence="[1]")
    edges.assert_edge("a", "s2", weight=1.0, provenance_type="frontmatter", provenance_actor="eve")
    edges.clock.advance(60)
    dry = edges.project(a="n s1 s2", gone=("b",), dry_run=True)
    assert len(edges.rows()) == 5
    assert edges.project(a="n s1 s2", gone=("b",)) == dry == ProjectionOutcome(removed=2, resynced=2)
    repaired = {edge.to_id: edge for edge in edges.rows() if edge.from_id == "a"}
    assert repaired == {"s1": attrs.evolve(first, updated_at=edges.clock()),
                        "s2": attrs.evolve(second, updated_at=edges.clock())}  # fmt: skip
    assert edges.project(a="m s1 s2") == ProjectionOutcome(created=2, removed=2)
    assert edges.project(b="n s1", complete=True) == ProjectionOutcome(created=1, removed=3)
    assert edges.drawn() == {"b>s1@n": "frontmatter"}


def test_asserted_edge_keeps_its_key_and_is_never_removed(edges):
    """behaviour 88"""
    edges.assert_edge("a", "s1", provenance_type="asserted", conflict_state="open")
    edges.assert_edge("a", "old")
    edges.assert_edge("a", "s2", type="supports", provenance_type="frontmatter")
    before = edges.rows()
    assert edges.project(a="n s1") == edges.project(complete=True) == edges.project(gone=("a",)) == NOTHING
    assert edges.rows() == before


NOTES = st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from("stu"), unique=True), max_size=3)


@given(steps=st.lists(NOTES, min_size=1, max_size=4), asserted=st.sets(st.sampled_from(["as", "bt", "cu"])))
def test_complete_projection_matches_the_frontmatter(tmp_path_factory, steps, asserted):
    """behaviour 88"""
    edges = Edges(tmp_path_factory.mktemp("projection"))
    for note, source in asserted:
        edges.assert_edge(note, source, provenance_type="asserted")
    expected = {f"{note}>{source}@n": "asserted" for note, source in asserted}
    try:
        for step in steps:
            edges.project(complete=True, **{note: f"n {' '.join(sources)}" for note, sources in step.items()})
            wanted = {
                f"{note}>{source}@n": "frontmatter" for note, sources in step.items() for source in sources
            }
            assert edges.drawn() == wanted | expected
    finally:
        edges.store.close()


def test_pair_edges_are_created_or_strengthened_to_at_most_one(edges):
    """behaviour 87"""
    edges.assert_edge("a", "b", type="related_to", weight=0.96, provenance_type="asserted")
    for _ in range(2):
        with edges.store.transaction():
            learned = edges.store.learned
            learned.reinforce([("a", "b", "n"), ("a", "c", "n")], edges.new_id, START)
    found = {edge.to_id: edge for edge in edges.rows()}
    assert (found["b"].weight, found["b"].provenance_type) == (1.0, "asserted")
    assert found["c"].weight == pytest.approx(0.5 + REINFORCEMENT)
    assert (found["c"].type, found["c"].provenance_type) == ("related_to", "reinforcement")


def test_edge_between_two_misleading_notes_is_weakened_once(edges):
    """behaviour 153"""
    edges.assert_edge("a", "b", weight=0.5)
    edges.assert_edge("c", "a", weight=0.02)
    edges.assert_edge("c", "d", weight=0.5)
    with edges.store.transaction():
        assert edges.store.learned.weaken_touching(["a", "b"], START) == 2
    assert [edge.weight for edge in edges.rows()] == [pytest.approx(0.45), 0.0, 0.5]
