"""Lineage warnings, compared with a literal implementation of the spec (docs/spec/context.md §2)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lithos.notes.catalogue.lineage as module
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.lineage import Lineage, LineageStep
from lithos.notes.catalogue.relations import CountedEdges
from lithos.notes.model.edges import LINEAGE, RESOLUTIONS, Edge
from lithos.notes.model.note import Note
from tests.fakes import START, make_entry
from tests.memory.briefing.test_briefing import calls_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
IDS = "abcdefgh"


def edge(number: int, from_id: str, to_id: str, type: str = "depends_on", **more: Any) -> Edge:
    return Edge(
        id=f"e{number}", from_id=from_id, to_id=to_id, type=type, weight=1.0, namespace="n",
        created_at=START, updated_at=START, **more,
    )  # fmt: skip


class Vault:
    """Catalogue with its lineage. It also stores copies of the added notes and edges."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.lineage = Lineage(self.catalogue)
        self.notes: dict[str, Note] = {}
        self.edges: dict[str, Edge] = {}
        self._serials: dict[str, int] = {}

    def put(self, note_id: str, *sources: str, **fields: Any) -> None:
        serial = self._serials.setdefault(note_id, self.catalogue.take_serial())
        made = make_entry(
            serial, f"{note_id}.md", id=note_id, title=f"T{note_id}", derived_from_ids=sources, **fields
        )
        self.catalogue.put(made)
        self.notes[note_id] = made.note

    def remove(self, note_id: str) -> None:
        self.catalogue.remove(note_id)
        self.notes.pop(note_id, None)
        self._serials.pop(note_id, None)

    def relate(self, made: Edge) -> None:
        self.edges[made.id] = made
        self.catalogue.relations.put_edge(made)

    def suspicion(self, note_id: str) -> tuple[str, int] | None:
        """Return the id of the suspicious source and its distance in steps, or None."""
        found = [w for w in self.lineage.warnings(note_id, NOW) if w.kind == "suspect"]
        assert self.lineage.is_suspect(note_id) == bool(found)
        assert len(found) <= 1
        return (found[0].id, found[0].distance) if found else None

    def told(self, note_id: str) -> list[tuple[str, str, int]]:
        return [(w.kind, w.id, w.distance) for w in self.lineage.warnings(note_id, NOW)]


class Oracle:
    """Lineage warnings computed from the definitions, without regard to speed."""

    def __init__(self, notes: dict[str, Note], edges: Iterable[Edge]) -> None:
        self._notes, self._edges = notes, list(edges)

    def sources(self, note_id: str) -> set[str]:
        stated = set(self._notes[note_id].derived_from_ids)
        typed = {
            each.to_id
            for each in self._edges
            if each.from_id == note_id
            and each.type in LINEAGE
            and each.provenance_type not in ("inferred", "frontmatter")
        }
        return {each for each in stated | typed if each in self._notes and each != note_id}

    def distances(self, note_id: str) -> dict[str, int]:
        known, changed = {note_id: 0}, True
        while changed:
            changed = False
            for start, steps in list(known.items()):
                for end in self.sources(start):
                    if steps + 1 < known.get(end, 10**9):
                        known[end], changed = steps + 1, True
        return known

    def is_superseded(self, note_id: str) -> bool:
        return any(n.supersedes == note_id and n.id != note_id for n in self._notes.values())

    def chain(self, note_id: str) -> set[str]:
        """Return the ids of all notes that a note supersedes, directly or through existing notes."""
        found: set[str] = set()
        at = note_id
        while at in self._notes:
            older = self._notes[at].supersedes
            if older is None or older == at or older in found:
                break  # a note is not a successor of itself
            found.add(older)
            at = older
        return found

    def suspicion(self, note_id: str) -> tuple[str, int] | None:
        lineage = self.distances(note_id)
        excused = set().union(*(self.chain(each) for each in lineage))
        bad = [
            (steps, other)
            for other, steps in lineage.items()
            if other != note_id
            and (
                self._notes[other].status == "quarantined"
                or (self.is_superseded(other) and other not in excused)
            )
        ]
        if not bad:
            return None
        steps, other = min(bad)
        return other, steps

    def told(self, note_id: str) -> list[tuple[str, str, int]]:
        note, found = self._notes[note_id], []
        if note.status == "quarantined":
            found.append(("quarantined", note_id, 0))
        newer = sorted(n.id for n in self._notes.values() if n.supersedes == note_id and n.id != note_id)
        found += [("superseded", other, 1) for other in newer[: module.MOST_NAMED]]
        if (cause := self.suspicion(note_id)) is not None:
            found.append(("suspect", *cause))
        against = {
            other
            for each in self._edges
            if each.type == "contradicts" and each.conflict_state not in RESOLUTIONS
            for other in {each.from_id, each.to_id} - {note_id}
            if note_id in (each.from_id, each.to_id) and other in self._notes
        }
        return found + [("contradicted", other, 1) for other in sorted(against)[: module.MOST_NAMED]]


def random_step(vault: Vault, rng: random.Random) -> None:
    """Make a random change, mostly to a note. Only a few notes are bad, so that lineages become deep."""
    note_id = rng.choice(IDS)
    kind = rng.choices(["put", "relate", "remove", "reload"], [12, 5, 2, 1])[0]
    if kind == "put":
        sources = rng.sample(IDS, rng.choice([0, 1, 1, 2]))
        status = rng.choices(["active", "archived", "quarantined"], [12, 1, 1])[0]
        supersedes = rng.choice(IDS) if rng.random() < 0.25 else None
        vault.put(
            note_id, *(each for each in sources if each != note_id), status=status, supersedes=supersedes
        )
    elif kind == "relate":
        made = edge(
            rng.randrange(7),
            note_id,
            rng.choice(IDS),
            rng.choice([*sorted(LINEAGE), "contradicts", "supports"]),
            provenance_type=rng.choice([None, None, "asserted", "inferred", "frontmatter"]),
            conflict_state=rng.choice([None, "open", *RESOLUTIONS]),
        )
        vault.relate(made)
    elif kind == "remove":
        vault.remove(note_id)
    else:
        vault.catalogue.relations.load_edges(CountedEdges(vault.edges.values()))


def check(vault: Vault) -> Counter[str]:
    """Compare the lineage with the oracle. Return how often each kind of warning occurred."""
    oracle, fresh, told = Oracle(vault.notes, vault.edges.values()), Lineage(vault.catalogue), Counter[str]()
    for note_id in IDS:
        if note_id not in vault.notes:
            assert vault.told(note_id) == []
            continue
        expected = oracle.told(note_id)
        assert vault.told(note_id) == expected, note_id
        assert fresh.warnings(note_id, NOW) == vault.lineage.warnings(note_id, NOW)
        assert {kin.id for kin in vault.lineage.sources(note_id)} == oracle.sources(note_id)
        assert {kin.id for kin in vault.lineage.dependents(note_id)} == {
            other for other in vault.notes if note_id in oracle.sources(other)
        }
        told.update(f"{kind} {distance}" for kind, _, distance in expected)
    return told


#: Seeds of long histories in which every kind of warning occurs.
LONG = (3, 5, 6)


@pytest.mark.parametrize("most", [module.STEPS, 1])
def test_lineage_equals_its_definition_after_random_changes(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """behaviours 231 and 233, even if a backward search takes many calls, and many sources are excused."""
    monkeypatch.setattr(module, "_AT_ONCE", min(most, module._AT_ONCE))
    monkeypatch.setattr(module, "_MOST_ALONE", min(most - 1, module._MOST_ALONE))
    told = Counter[str]()

    def run(seed: int, steps: int) -> None:
        vault, rng = Vault(), random.Random(seed)
        for _ in range(steps):
            random_step(vault, rng)
            if rng.random() < 0.3:
                told.update(check(vault))
        told.update(check(vault))

    given(st.integers(0, 2**32), st.integers(1, 60))(run)()
    for seed in LONG:
        run(seed, 60)
    kinds = ("quarantined 0", "superseded 1", "suspect 1", "suspect 2", "suspect 3", "contradicted 1")
    assert all(told[kind] > 0 for kind in kinds), told


def test_leaf_changed_twice_is_checked_after_its_new_sources() -> None:
    """Regression: the leaf was checked in the order of its first change, and its cause was missed."""
    vault = Vault()
    vault.put("bad", status="quarantined")
    vault.lineage.is_suspect("bad")
    vault.put("leaf", "missing")
    vault.put("middle", "bad")
    vault.put("leaf", "middle")
    assert vault.suspicion("leaf") == ("bad", 2)


def test_nearest_cause_is_reported_and_ties_are_broken_by_id() -> None:
    vault = Vault()
    vault.put("a", "d", "c", "b")
    vault.put("b", "e")
    vault.put("c")
    vault.put("d")
    vault.put("e", status="quarantined", quarantine_reason="made up")
    assert vault.suspicion("a") == ("e", 2)
    vault.put("d", status="quarantined")
    assert vault.suspicion("a") == ("d", 1)
    vault.put("c", status="quarantined", quarantine_reason="wrong numbers")
    assert vault.suspicion("a") == ("c", 1)
    (warning,) = vault.lineage.warnings("a", NOW)
    assert (warning.title, warning.reason) == ("Tc", "depends on a quarantined note: wrong numbers")


def test_check_of_cyclic_sources_ends_without_a_note_suspecting_itself() -> None:
    vault = Vault()
    vault.put("a", "b")
    vault.put("b", "c")
    vault.put("c", "a", "c")
    assert [vault.suspicion(each) for each in "abc"] == [None] * 3
    vault.put("a", "b", status="quarantined")
    assert [vault.suspicion(each) for each in "abc"] == [None, ("a", 2), ("a", 1)]


def test_inferred_and_projected_edges_do_not_count_until_asserted() -> None:
    vault = Vault()
    vault.put("a")
    vault.put("b", status="quarantined")
    for number, kind in enumerate(("inferred", "frontmatter")):
        vault.relate(edge(number, "a", "b", "depends_on", provenance_type=kind))
        assert vault.suspicion("a") is None
        vault.relate(edge(number, "a", "b", "depends_on", provenance_type="asserted"))
        assert vault.suspicion("a") == ("b", 1)
        vault.relate(edge(number, "a", "b", "depends_on", provenance_type=kind))
    assert vault.suspicion("a") is None


def test_note_superseding_its_superseded_source_is_not_suspect() -> None:
    vault = Vault()
    vault.put("a", "b", supersedes="c")
    vault.put("b")
    vault.put("c", supersedes="d")
    vault.put("d")
    vault.put("e", "d")
    assert vault.suspicion("a") is None
    vault.put("a", "d", supersedes="c")  # `a` supersedes `d` through `c`.
    assert vault.suspicion("a") is None
    assert vault.suspicion("e") == ("d", 1)
    vault.put("e", "d", "f")
    vault.put("f", "c")  # `e` also depends on `c`, which supersedes `d` and is two steps away.
    assert vault.suspicion("e") == ("c", 2)  # `a` supersedes `c`.
    vault.put("f", "c", "a")
    assert vault.suspicion("e") is None
    assert vault.told("d") == [("superseded", "c", 1)]


def test_deleted_source_counts_again_once_recreated() -> None:
    vault = Vault()
    vault.put("a", "b")
    vault.put("b", "c")
    vault.put("c", status="quarantined")
    assert vault.suspicion("a") == ("c", 2)
    vault.remove("b")
    assert vault.suspicion("a") is None
    vault.put("b", "c")
    assert vault.suspicion("a") == ("c", 2)
    vault.remove("c")
    assert vault.suspicion("a") is None
    vault.put("c", status="quarantined")
    assert vault.suspicion("a") == ("c", 2)
    vault.remove("a")
    assert vault.told("a") == []
    vault.put("d", supersedes="b")
    assert vault.told("b") == [("superseded", "d", 1), ("suspect", "c", 1)]
    vault.remove("d")
    assert vault.told("b") == [("suspect", "c", 1)]


def test_lineage_steps_name_the_relation_to_each_source() -> None:
    vault = Vault()
    vault.put("a", "b")
    vault.put("b")
    vault.put("c")
    vault.relate(edge(1, "a", "b", "refines"))
    vault.relate(edge(2, "a", "c", "refines"))
    vault.relate(edge(3, "a", "c", "depends_on"))
    vault.relate(edge(4, "a", "gone", "depends_on"))
    assert vault.lineage.sources("a") == [
        LineageStep("b", "derived_from_ids"),
        LineageStep("c", "depends_on"),
    ]
    assert vault.lineage.dependents("b") == [LineageStep("a", "derived_from_ids")]
    assert vault.lineage.dependents("c") == [LineageStep("a", "depends_on")]


def test_warnings_are_ordered_by_kind() -> None:
    vault = Vault()
    vault.put("a", "b", status="quarantined", quarantine_reason="x", expires_at=START)
    vault.put("b", status="quarantined")
    vault.put("c", supersedes="a")
    vault.relate(edge(1, "b", "a", "contradicts"))
    warnings = vault.lineage.warnings("a", NOW)
    assert [attrs.astuple(w) for w in warnings] == [
        ("quarantined", "a", "Ta", "x", 0),
        ("superseded", "c", "Tc", "superseded by this note", 1),
        ("suspect", "b", "Tb", "depends on a quarantined note", 1),
        ("expired", "a", "Ta", f"expired at {START.isoformat(timespec='microseconds')}", 0),
        ("contradicted", "b", "Tb", "unresolved contradiction", 1),
    ]


def test_adopted_catalogue_replaces_notes_and_keeps_typed_edges() -> None:
    vault, filled = Vault(), Catalogue()
    vault.relate(edge(1, "a", "b", "refines"))
    filled.load([
        make_entry(1, "a.md", id="a"),
        make_entry(2, "b.md", id="b", derived_from_ids=("c",)),
        make_entry(3, "c.md", id="c", status="quarantined", title="Tc"),
    ])  # fmt: skip
    assert vault.suspicion("a") is None
    vault.catalogue.take_over(filled)
    assert vault.suspicion("a") == ("c", 2)


def chain_of(length: int, width: int = 1) -> Vault:
    """Build a vault in which each note depends on the `width` notes before it, and note 0 is quarantined."""
    vault = Vault()
    entries = [
        make_entry(
            number + 1,
            f"{number}.md",
            id=f"{number:06}",
            derived_from_ids=tuple(f"{number - back:06}" for back in range(1, width + 1) if back <= number),
            status="active" if number else "quarantined",
        )
        for number in range(length)
    ]
    vault.catalogue.load(entries)
    return vault


async def test_suspicious_source_beyond_the_step_limit_is_reported_after_settling() -> None:
    vault = chain_of(3 * module.STEPS)
    far = f"{3 * module.STEPS - 1:06}"
    await vault.lineage.settle()
    (warning,) = vault.lineage.warnings(far, NOW)
    assert (warning.kind, warning.id) == ("suspect", "000000")
    near = f"{module.STEPS - 1:06}"
    assert vault.suspicion(near) == ("000000", module.STEPS - 1)
    vault.put("new", far)
    await vault.lineage.settle()
    assert vault.suspicion("new") is not None


def test_long_version_chain_is_checked_in_linear_time() -> None:
    """Each version depends on the version before it and supersedes it.

    Other notes depend on the last version and share its successors.
    """

    def calls(length: int) -> int:
        vault, ids = Vault(), ["", *(f"{number:06}" for number in range(length))]
        vault.catalogue.load([
            make_entry(
                number, f"{number}.md", id=ids[number], derived_from_ids=tuple(ids[number - 1].split()),
                supersedes=ids[number - 1] or None,
            )
            for number in range(1, length + 1)
        ])  # fmt: skip
        vault.put("child", ids[-1])
        made = calls_of(lambda: vault.lineage.is_suspect("child"))
        assert not vault.lineage.is_suspect("child")
        assert vault.told(ids[-2]) == [("superseded", ids[-1], 1)]
        return made

    assert calls(module.STEPS // 2) < 2.5 * calls(module.STEPS // 4)


@pytest.mark.slow
def test_lineage_call_cost_is_independent_of_lineage_length() -> None:
    """The test compares the cost of 100 independent calls for lineages of 1,000 and of 10,000 notes."""

    def calls(length: int) -> int:
        vault, rng = chain_of(length, 4), random.Random(1)

        def ask() -> None:
            for _ in range(100):
                vault.catalogue.relations.version += 1
                vault.lineage.is_suspect(f"{rng.randrange(length // 2, length):06}")

        return calls_of(ask)

    short, long = calls(1_000), calls(10_000)
    assert long < 1.5 * short, (short, long)
