"""The note graph: after every change, it equals a newly built graph."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.index_links import Placeholder
from lithos.notes.catalogue.note_graph import LinkCounts, NoteGraph
from lithos.text.yaml.vault_style import PLAIN, VaultStyle
from tests.fakes import make_entry
from tests.graphs import Reference, described, expected_pairs, fresh_graph, generate_entries, note_id


def edges_of(graph: NoteGraph) -> set[tuple[str, str | Placeholder]]:
    return set(graph.links.edges())


def test_title_link_resolves_regardless_of_note_creation_order() -> None:
    """behaviour 179"""
    source, target = make_entry(1, links=("Some Title",)), make_entry(2, "x.md", title="some-title")
    for order in ((source, target), (target, source)):
        graph = NoteGraph()
        for entry in order:
            graph.put(entry)
        assert edges_of(graph) == {(note_id(1), note_id(2))}
        assert graph.counts() == LinkCounts(nodes=2, edges=1, unresolved=0)


def test_links_become_placeholders_while_their_target_is_deleted() -> None:
    """behaviour 179"""
    target = make_entry(2, "x.md", links=("n1",))
    graph = fresh_graph([make_entry(1, links=("x", "x")), make_entry(3, links=("Note 2",)), target])
    before = described(graph)
    graph.remove(note_id(2))
    assert edges_of(graph) == {(note_id(1), Placeholder("x")), (note_id(3), Placeholder("Note 2"))}
    assert graph.counts() == LinkCounts(nodes=4, edges=2, unresolved=3)
    graph.put(target)
    assert described(graph) == before


def test_ambiguous_stem_is_a_placeholder_until_one_note_remains() -> None:
    """behaviour 76"""
    graph = fresh_graph([make_entry(1, links=("same",)), make_entry(2, "a/same.md")])
    assert edges_of(graph) == {(note_id(1), note_id(2))}
    graph.put(make_entry(3, "b/same.md"))
    assert edges_of(graph) == {(note_id(1), Placeholder("same"))}
    assert graph.counts().unresolved == 1
    graph.remove(note_id(2))
    assert edges_of(graph) == {(note_id(1), note_id(3))}


def test_link_resolves_to_a_better_match_until_its_deletion() -> None:
    graph = fresh_graph([make_entry(1, links=("one",)), make_entry(2, "x.md", title="One")])
    graph.put(make_entry(3, "y.md", aliases=("ONE",)))
    assert edges_of(graph) == {(note_id(1), note_id(3))}
    graph.put(make_entry(4, "deep/one.md"))
    assert edges_of(graph) == {(note_id(1), note_id(4))}
    graph.remove(note_id(4))
    graph.put(make_entry(3, "y.md"))
    assert edges_of(graph) == {(note_id(1), note_id(2))}


def test_link_to_equal_titles_resolves_to_the_smallest_path() -> None:
    graph = fresh_graph(
        [
            make_entry(1, links=("Same",)),
            make_entry(2, "b.md", title="Same"),
            make_entry(3, "c.md", title="Same"),
        ]
    )
    assert edges_of(graph) == {(note_id(1), note_id(2))}
    graph.put(make_entry(2, "d.md", title="Same"))
    assert edges_of(graph) == {(note_id(1), note_id(3))}


def test_provenance_edge_exists_while_its_source_is_missing() -> None:
    """behaviours 43, 48"""
    graph = fresh_graph([make_entry(1, derived_from_ids=(note_id(2),))])
    assert graph.provenance.reach([note_id(2)], 1, "incoming") == {note_id(2): 0, note_id(1): 1}
    graph.put(make_entry(2))
    graph.remove(note_id(2))
    assert graph.provenance.edges() == {(note_id(1), note_id(2)): 1}
    graph.remove(note_id(1))
    assert graph.provenance.nodes() == set()


def test_update_without_new_links_leaves_the_graph_version_unchanged() -> None:
    graph = fresh_graph([make_entry(1, links=("n2",)), make_entry(2)])
    before = graph.links.version
    graph.put(make_entry(1, links=("n2",), version=2))
    assert graph.links.version == before


def test_graph_is_unchanged_when_an_unknown_note_is_removed() -> None:
    graph = fresh_graph([make_entry(1)])
    graph.remove("x")
    assert graph.counts() == LinkCounts(nodes=1, edges=0, unresolved=0)


def test_graph_of_a_generated_vault_equals_the_reference() -> None:
    entries = generate_entries(300, 4)
    graph, reference = fresh_graph(entries), Reference.of(entries)
    assert edges_of(graph) == expected_pairs(reference)
    assert len(reference.missing) > 50
    placeholders = {target for _, target in reference.missing}
    assert graph.links.nodes() == {*reference.entries, *map(Placeholder, placeholders)}


@pytest.mark.parametrize("steps", [0, 1, 3, 5, 100])
def test_graph_settled_in_steps_equals_graph_settled_at_once(steps: int) -> None:
    entries = generate_entries(250, 4)
    whole, stepped = NoteGraph(), NoteGraph()
    for graph in (whole, stepped):
        graph.load(entries)
    assert whole.settle()
    assert stepped.settle(steps) == (steps == 100)
    for graph in (whole, stepped):
        graph.put(make_entry(5, "elsewhere.md", title="Title of 9", links=("nowhere 7", "n8")))
        graph.remove(note_id(7))
    assert described(stepped) == described(whole)
    assert stepped.fingerprint == whole.fingerprint


@pytest.mark.parametrize("change", ["path", "links", "removal"])
def test_graph_fingerprint_changes_with_every_note_change(change: str) -> None:
    entry, other = make_entry(1), make_entry(2)
    graph = fresh_graph([entry, other])
    before = graph.fingerprint
    if change == "removal":
        graph.remove(note_id(1))
    else:
        graph.put(
            make_entry(1, "z.md" if change == "path" else None, links=("x",) if change == "links" else ())
        )
    assert graph.fingerprint != before
    graph.put(entry)
    assert graph.fingerprint == before


# -- random histories -------------------------------------------------------------------------------

names = st.sampled_from(["one", "Two", "t-w o", "ONE"])
paths = st.sampled_from(["one.md", "a/one.md", "b/two.md", "a/two.md", "c.md", "one.md.md"])
targets = st.one_of(
    names,
    paths,
    st.sampled_from([note_id(1), note_id(2), "a/one", "one#x", "two#y", "#", "t w-o", "nowhere"]),
)
puts = st.builds(
    lambda serial, path, title, aliases, links, sources: make_entry(
        serial,
        f"{serial}/{path}",
        title=title,
        aliases=tuple(aliases),
        links=tuple(links),
        derived_from_ids=tuple(note_id(source) for source in sources if source != serial),
    ),
    st.integers(1, 5),
    paths,
    names,
    st.lists(names, max_size=2, unique=True),
    st.lists(targets, max_size=4),
    st.lists(st.integers(1, 6), max_size=3, unique=True),
)


@given(st.lists(st.one_of(puts, st.integers(1, 5)), max_size=20))
def test_graph_equals_a_newly_built_graph_after_random_changes(history: list[Entry | int]) -> None:
    """behaviours 50, 137, 179"""
    catalogue = Catalogue()
    for step in history:
        if isinstance(step, int):
            catalogue.remove(note_id(step))
        else:
            catalogue.put(step)
    entries = list(catalogue)
    assert described(catalogue.graph) == described(fresh_graph(entries))
    assert edges_of(catalogue.graph) == expected_pairs(Reference.of(entries))
    for entry in entries:
        catalogue.remove(entry.note.id)
    assert described(catalogue.graph) == described(NoteGraph())
    assert len(catalogue.graph._interested) == 0


@given(st.lists(puts, max_size=5, unique_by=lambda entry: entry.serial), st.randoms(use_true_random=False))
def test_graph_is_independent_of_the_order_of_additions(entries: list[Entry], shuffle: object) -> None:
    shuffled = list(entries)
    shuffle.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Catalogue(), Catalogue()
    one.load([attrs.evolve(entry) for entry in entries])
    for entry in shuffled:
        other.put(entry)
    assert described(one.graph) == described(other.graph)


NAMES = ("pic.png", "Pic.PNG", "dir/pic.png", "n1", "doc.pdf#page=2", "doc.pdf", "gone.md", "N2")


@given(
    st.lists(st.sampled_from(NAMES), max_size=6),
    st.lists(st.tuples(st.sampled_from(("file", "note")), st.integers(0, 3), st.booleans()), max_size=12),
)
def test_links_to_existing_files_never_count_as_unresolved(
    links: list[str], changes: list[tuple[str, int, bool]]
) -> None:
    """After every change, the count of unresolved links equals the count in a newly loaded catalogue."""
    files = ("pic.png", "sub/PIC.png", "doc.pdf", "n1.canvas")
    catalogue, there = Catalogue(), set[str]()
    catalogue.put(make_entry(9, links=tuple(links)))
    for kind, number, comes in changes:
        if kind == "file":
            (there.add if comes else there.discard)(files[number])
            catalogue.see_file(files[number], is_there=comes)
        elif comes:
            catalogue.put(make_entry(number + 1, links=tuple(links[number:])))
        else:
            catalogue.remove(note_id(number + 1))
        fresh = Catalogue()
        for path in there:
            fresh.files.add(path)
        fresh.load(list(catalogue))
        assert catalogue.graph.counts() == fresh.graph.counts()
        assert edges_of(catalogue.graph) == edges_of(fresh.graph)


def test_file_name_is_an_alias_only_in_foreign_style_vaults() -> None:
    note = make_entry(1, "sub/Some File.md", title="Another title")
    for style, found in ((VaultStyle.of_foreign(), note_id(1)), (PLAIN, None)):
        catalogue = Catalogue(style=style)
        catalogue.put(note)
        assert catalogue.graph.resolve("some file") == found
        assert catalogue.graph.resolve("Some File") == note_id(1)
