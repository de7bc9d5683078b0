"""The graph mode of `lithos_search`."""

from __future__ import annotations

from pathlib import Path

from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from tests.servers import MISSING_ID, Lithos, refusal, serving


async def make_chain(lithos: Lithos) -> dict[str, str]:
    """Create linked notes A -> B -> C -> D -> E and one unlinked note."""
    ids = {name: await lithos.create(name, f"text [[{chr(ord(name) + 1)}]]") for name in "ABCDE"}
    return ids | {"Apart": await lithos.create("Apart", "zebra")}


async def walk(lithos: Lithos, *seeds: str, query: str = "", **more: object) -> set[str]:
    return set(await lithos.found(query, mode="graph", seed_ids=list(seeds), **more))


async def test_graph_depth_limits_the_steps_in_both_directions(lithos: Lithos) -> None:
    """behaviour 66"""
    ids = await make_chain(lithos)
    assert await walk(lithos, ids["C"], graph_depth=1) == set("BCD")
    assert await walk(lithos, ids["C"], graph_depth=2) == set("ABCDE")
    assert await walk(lithos, ids["A"], graph_depth=1) == set("AB")
    assert await walk(lithos, ids["A"], graph_depth=0) == set("AB")
    assert await walk(lithos, ids["A"]) == set("ABC")
    assert await walk(lithos, ids["A"], graph_depth=99) == set("ABCD")
    assert await walk(lithos, ids["A"], ids["E"], graph_depth=1) == set("ABDE")
    assert await walk(lithos, ids["Apart"]) == {"Apart"}


async def test_unknown_seeds_are_skipped(lithos: Lithos) -> None:
    """behaviour 66"""
    ids = await make_chain(lithos)
    assert await walk(lithos, MISSING_ID, ids["A"], "?", graph_depth=1) == set("AB")
    assert await walk(lithos, MISSING_ID, query="text") == set()


async def test_query_selects_the_seeds_when_no_seeds_are_passed(lithos: Lithos) -> None:
    """behaviour 66"""
    await lithos.create("Start", "quagga herds [[Next]]")
    await lithos.create("Next", "plain [[Far]]")
    await lithos.create("Far", "away")
    for seeds in (None, []):
        found = await lithos.found("quagga", mode="graph", graph_depth=1, seed_ids=seeds)
        assert found[0] == "Start"
        assert set(found) == {"Start", "Next"}
    assert set(await lithos.found("quagga", mode="graph")) == {"Start", "Next", "Far"}


async def test_blank_query_without_seeds_finds_nothing(lithos: Lithos) -> None:
    """behaviour 66"""
    await make_chain(lithos)
    assert await walk(lithos) == set()


async def test_at_most_five_hits_become_seeds(lithos: Lithos) -> None:
    """behaviour 66"""
    for number in range(9):
        await lithos.create(f"Z{number}", "zebra")
    assert len(await lithos.found("zebra", mode="graph")) == 5


async def test_placeholders_are_neither_found_nor_traversed(lithos: Lithos) -> None:
    """behaviour 66"""
    one = await lithos.create("One", "[[nowhere]]")
    await lithos.create("Two", "[[nowhere]]")
    assert await walk(lithos, one, graph_depth=3) == {"One"}


async def test_filters_apply_before_the_limit_but_not_during_the_traversal(lithos: Lithos) -> None:
    """behaviours 54, 66"""
    hub = await lithos.create("Hub", " ".join(f"[[N{number}]]" for number in range(9)))
    for number in range(8):
        await lithos.create(f"N{number}", "x")
    await lithos.create("N8", "[[Last]]", tags=["rare"], agent="ann", path="deep")
    await lithos.create("Last", "x", tags=["rare"])
    assert await walk(lithos, hub, tags=["rare"], limit=1, graph_depth=1) == {"N8"}
    assert await walk(lithos, hub, tags=["rare"]) == {"N8", "Last"}
    assert await walk(lithos, hub, author="ann") == {"N8"}
    assert await walk(lithos, hub, path_prefix="deep/") == {"N8"}
    assert await walk(lithos, hub, entities=["x"]) == set()
    assert len(await lithos.found("", mode="graph", seed_ids=[hub], limit=4)) == 4


async def test_graph_scores_combine_pagerank_distance_and_similarity(lithos: Lithos) -> None:
    """behaviour 66"""
    seed = await lithos.create("Seed", "[[Popular]] [[Lonely]]")
    popular = await lithos.create("Popular", "cooking pasta with tomatoes")
    lonely = await lithos.create("Lonely", "volcanoes erupt molten lava")
    for number in range(4):
        await lithos.create(f"Fan {number}", "[[Popular]]")

    async def scores(query: str) -> dict[str, float]:
        answer = await lithos.call("lithos_search", query=query, mode="graph", seed_ids=[seed], graph_depth=1)
        return {row["id"]: row["score"] for row in answer["results"]}

    plain = await scores("")
    # PageRank order: popular, lonely, seed. Distance order: seed, popular, lonely.
    assert plain == {popular: 1 / 61 + 1 / 62, lonely: 1 / 62 + 1 / 63, seed: 1 / 63 + 1 / 61}
    assert list(plain) == [popular, seed, lonely]
    by_meaning = await scores("molten lava volcanoes")
    assert by_meaning[lonely] == plain[lonely] + 1 / 61
    assert by_meaning.keys() == plain.keys()


async def test_graph_search_rows_have_the_common_keys_and_are_audited(lithos: Lithos) -> None:
    """behaviour 66"""
    note = await lithos.create("Note", "A zebra here.")
    for query, snippet in (("zebra", "A zebra here."), ("", "A zebra here.")):
        answer = await lithos.call(
            "lithos_search", query=query, mode="graph", seed_ids=[note], agent_id="ann"
        )
        (row,) = answer["results"]
        assert "similarity" not in row
        assert (row["id"], row["snippet"]) == (note, snippet)
    assert await lithos.audit() == [("ann", note, "search_result")] * 2
    refusal(
        await lithos.call("lithos_search", query="", mode="graph", seed_ids=[note], threshold=2),
        "invalid_input",
    )


async def test_graph_search_uses_only_links_without_a_model(tmp_path: Path) -> None:
    """behaviour 66"""
    missing = SearchConfig(embedding_model=str(tmp_path / "no model"))
    async with serving(tmp_path, search=missing, settled=False) as lithos:
        await lithos.server.get(SemanticBackend).settled.wait()
        seed = await lithos.create("Seed", "zebra [[Next]]")
        await lithos.create("Next", "plain")
        assert await walk(lithos, seed, query="zebra") == {"Seed", "Next"}
        answer = await lithos.call("lithos_search", query="zebra", mode="graph")
        assert {row["title"] for row in answer["results"]} == {"Next", "Seed"}
        assert answer["failed_backends"] == ["semantic"]


async def test_graph_search_sees_a_write_immediately(lithos: Lithos) -> None:
    """behaviours 50, 66"""
    one, two = await lithos.create("One"), await lithos.create("Two")
    for _ in range(3):
        await lithos.write("One", "[[Two]]", id=one)
        assert await walk(lithos, two) == {"One", "Two"}
        await lithos.write("One", "text", id=one)
        assert await walk(lithos, two) == {"Two"}
    await lithos.call("lithos_delete", id=two, agent="a")
    assert await walk(lithos, two) == set()
