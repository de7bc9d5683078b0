"""The directed graph of note ids and link placeholders."""

from __future__ import annotations

from lithos.notes.catalogue.index_links import LinkGraph, Placeholder


def graph_of(*pairs: str) -> LinkGraph:
    """Build a graph from two-letter strings, such as `ab` for a link from a to b.

    An upper-case letter is a placeholder.
    """
    graph = LinkGraph()
    for start, end in pairs:
        graph.link(start, Placeholder(end) if end.isupper() else end)
    return graph


def test_edge_remains_until_removed_as_often_as_added() -> None:
    graph = graph_of("ab", "ab")
    assert (graph.node_count, graph.edge_count, graph.edges()) == (2, 1, {("a", "b"): 2})
    graph.unlink("a", "b")
    assert graph.edges() == {("a", "b"): 1}
    graph.unlink("a", "b")
    assert graph.edges() == {}
    assert graph.nodes() == {"a", "b"}


def test_only_nodes_without_edges_can_be_discarded() -> None:
    graph = graph_of("ab")
    graph.discard_lonely("a")
    graph.discard_lonely("b")
    graph.discard_lonely("unknown")
    assert "a" in graph
    graph.unlink("a", "b")
    graph.discard_lonely("a")
    assert graph.nodes() == {"b"}


def test_graph_version_changes_only_with_nodes_or_edges() -> None:
    graph = graph_of("ab")
    before = graph.version
    graph.link("a", "b")
    graph.unlink("a", "b")
    graph.add("a")
    assert graph.version == before
    graph.unlink("a", "b")
    assert graph.version > before


def test_traversal_returns_the_fewest_steps_in_each_direction() -> None:
    graph = graph_of("ab", "bc", "cd", "ad", "ea")
    assert graph.reach(["a"], 3, "outgoing") == {"a": 0, "b": 1, "d": 1, "c": 2}
    assert graph.reach(["a"], 3, "incoming") == {"a": 0, "e": 1}
    assert graph.reach(["c"], 1, "both") == {"c": 0, "b": 1, "d": 1}
    assert graph.reach(["c", "x", "c"], 2, "both") == {"c": 0, "b": 1, "d": 1, "a": 2}
    assert graph.reach(["x"], 3, "both") == {}


def test_traversal_of_a_cycle_ends() -> None:
    """behaviour 78"""
    graph = graph_of("ab", "bc", "ca", "aa")
    assert graph.reach(["a"], 1000, "outgoing") == {"a": 0, "b": 1, "c": 2}


def test_traversal_never_reaches_or_crosses_a_placeholder() -> None:
    graph = graph_of("aX", "bX")
    assert graph.reach(["a"], 3, "both") == {"a": 0}


def test_copied_graph_is_independent_of_the_original() -> None:
    graph = graph_of("ab")
    copied = graph.copy()
    graph.link("b", "c")
    assert copied.edges() == {("a", "b"): 1}
    assert copied.reach(["a"], 3, "both") == {"a": 0, "b": 1}


def test_pagerank_prefers_linked_notes_and_orders_ties_by_id() -> None:
    graph = graph_of("az", "bz", "cz", "zb", "cX")
    graph.add("d")
    scores = graph.pagerank()
    assert list(scores) == ["z", "b", "a", "c", "d"]
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert LinkGraph().pagerank() == {}


def plain_pagerank(pairs: list[str], nodes: list[str]) -> dict[str, float]:
    scores = dict.fromkeys(nodes, 1 / len(nodes))
    outgoing = {node: [end for start, end in pairs if start == node] for node in nodes}
    for _ in range(300):
        lost = sum(scores[node] for node in nodes if not outgoing[node])
        base = 0.15 / len(nodes) + 0.85 * lost / len(nodes)
        scores = {
            node: base
            + 0.85 * sum(scores[other] / len(outgoing[other]) for other in nodes if node in outgoing[other])
            for node in nodes
        }
    return scores


def test_pagerank_equals_the_textbook_formula_with_damping_85_percent() -> None:
    pairs = ["ab", "bc", "ca", "da", "db", "ea", "fe", "fc", "cf"]
    scores = plain_pagerank(pairs, list("abcdef"))
    assert list(graph_of(*pairs).pagerank()) == sorted(scores, key=lambda node: (-scores[node], node))


def test_neighbours_are_returned_in_both_directions() -> None:
    graph = graph_of("ab", "ac", "cX", "ba")
    assert [set(side) for side in graph.neighbours("a")] == [{"b", "c"}, {"b"}]
    assert set(graph.neighbours("c")[0]) == {Placeholder("X")}
    assert [set(side) for side in graph.neighbours("nobody")] == [set(), set()]
