"""`lithos_list` and `lithos_tags`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.servers import Clock, Lithos, put_note, refusal, serving


async def test_listed_item_has_exactly_the_documented_keys(lithos: Lithos, clock: Clock) -> None:
    note = await lithos.create("T", path="a", tags=["x"], metadata={"k": [1]}, note_type="summary")
    answer = await lithos.call("lithos_list")
    assert list(answer) == ["items", "total"]
    (item,) = answer["items"]
    assert list(item.items()) == [
        ("id", note), ("title", "T"), ("path", "a/t.md"), ("updated", clock.text),
        ("updated_at", clock.text),
        ("tags", ["x"]), ("source_url", ""), ("derived_from_ids", []), ("metadata", {"k": [1]}),
        ("version", 1), ("status", "active"), ("note_type", "summary"), ("author", "tester"),
        ("namespace", "a"),
    ]  # fmt: skip


async def test_notes_are_listed_in_the_order_of_first_indexing(tmp_path: Path) -> None:
    put_note(tmp_path, "b.md", "# From file b\n")
    put_note(tmp_path, "a/z.md", "# From file a/z\n")
    order = ["From file a/z", "From file b", "Zulu", "Alpha"]
    async with serving(tmp_path) as lithos:
        zulu = await lithos.create("Zulu")
        await lithos.create("Alpha")
        await lithos.write("Zulu", id=zulu)
        assert await lithos.listed() == order
    async with serving(tmp_path) as lithos:
        assert await lithos.listed() == order


async def test_concatenated_pages_equal_the_whole_list(lithos: Lithos) -> None:
    for number in range(7):
        await lithos.create(f"N{number}")
    whole = await lithos.listed()
    pages = [await lithos.call("lithos_list", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [item["title"] for page in pages for item in page["items"]] == whole
    assert {page["total"] for page in pages} == {7}
    assert await lithos.call("lithos_list", limit=0) == {"items": [], "total": 7}
    assert len(await lithos.listed(limit=10**18)) == 7
    assert await lithos.listed(offset=10**18) == []
    for name in ("limit", "offset"):
        assert "negative" in refusal(await lithos.call("lithos_list", **{name: -1}), "invalid_input")


async def test_since_filter_accepts_any_time_and_includes_it(tmp_path: Path) -> None:
    """behaviour 68"""
    clock = Clock("2026-01-01T12:00:00+00:00")
    async with serving(tmp_path, clock=clock) as lithos:
        note = await lithos.create("Old")
        clock.advance(hours=1)
        await lithos.create("New")
        for since, titles in (
            ("2026-01-01T13:00:00", ["New"]),
            ("2026-01-01T13:00:00Z", ["New"]),
            ("2026-01-01T15:00:00+02:00", ["New"]),
            ("2026-01-01T13:00:00.000001", []),
            ("2026-01-01", ["Old", "New"]),
        ):
            assert await lithos.listed(since=since) == titles
        clock.advance(hours=1)
        await lithos.write("Old", id=note)
        assert await lithos.listed(since="2026-01-01T13:30:00") == ["Old"]
        for bad in ("yesterday", "2026-99-01", "1"):
            assert "since" in refusal(await lithos.call("lithos_list", since=bad), "invalid_input")


async def test_title_filter_ignores_case_and_supports_paging(lithos: Lithos) -> None:
    """behaviour 69"""
    for title in ("Red apple", "green APPLE", "Pear", "Straße", "apple pie (x)"):
        await lithos.create(title)
    assert await lithos.listed(title_contains="Apple") == ["Red apple", "green APPLE", "apple pie (x)"]
    assert await lithos.listed(title_contains="STRASSE") == ["Straße"]
    assert await lithos.listed(title_contains="(X)") == ["apple pie (x)"]
    assert await lithos.listed(title_contains=".*") == []
    page = await lithos.call("lithos_list", title_contains="apple", limit=1, offset=1)
    assert ([item["title"] for item in page["items"]], page["total"]) == (["green APPLE"], 3)


async def test_all_filters_apply_before_paging(lithos: Lithos) -> None:
    """behaviours 54, 55, 70"""
    for number in range(12):
        await lithos.create(f"Zebra {number}", "zebra zebra zebra")
    await lithos.create(
        "Wanted zebra", "a long text about other things that names it once", tags=["a: b", "c"],
        path="p/q",
        agent="ann OR x", metadata={"k": "v"},
    )  # fmt: skip
    filters: list[dict[str, Any]] = [
        {"tags": ["a: b", "c"]},
        {"path_prefix": "p/"},
        {"author": "ann OR x"},
        {"title_contains": "wanted"},
        {"metadata_match": {"k": "v"}},
    ]
    for filtered in (*filters, {key: value for each in filters for key, value in each.items()}):
        for query in (None, "zebra", "", " "):
            answer = await lithos.call("lithos_list", content_query=query, limit=1, **filtered)
            assert [item["title"] for item in answer["items"]] == ["Wanted zebra"]
            assert answer["total"] == 1
    assert await lithos.listed(content_query="zebra", tags=["c", "other"]) == []


async def test_content_query_orders_the_whole_list_by_relevance(lithos: Lithos) -> None:
    """behaviour 70"""
    await lithos.create("Once", "zebra and very many other words in a rather long text about lions")
    await lithos.create("Zebra", "zebra zebra")
    await lithos.create("None", "lion")
    first = await lithos.call("lithos_list", content_query="zebra", limit=1)
    second = await lithos.call("lithos_list", content_query="zebra", limit=1, offset=1)
    assert [page["items"][0]["title"] for page in (first, second)] == ["Zebra", "Once"]
    assert first["total"] == second["total"] == 2
    assert await lithos.listed(content_query="(unbalanced") == []
    assert await lithos.listed(content_query="-zebra") == ["None"]


async def test_metadata_filter_compares_values_according_to_type(lithos: Lithos) -> None:
    """behaviour 71"""
    extras: dict[str, dict[str, Any]] = {
        "text": {"k": "1"},
        "number": {"k": 1},
        "truth": {"k": True},
        "list": {"k": ["1", 2, False], "other": "x"},
        "object": {"k": {"1": 1}},
        "odd": {"k') OR 1=1 --": "v", "a.b": 0.5},
    }
    for title, extra in extras.items():
        await lithos.create(title, "zebra", metadata=extra)
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"k": "1"}, {"text", "list"}),
        ({"k": 1}, {"number"}),
        ({"k": 1.0}, {"number"}),
        ({"k": True}, {"truth"}),
        ({"k": False}, {"list"}),
        ({"k": 0}, set()),
        ({"k": 2}, {"list"}),
        ({"k": 2, "other": "x"}, {"list"}),
        ({"k": 2, "other": "y"}, set()),
        ({"missing": ""}, set()),
        ({"k') OR 1=1 --": "v"}, {"odd"}),
        ({"a.b": 0.5}, {"odd"}),
        ({}, set(extras)),
    ]
    for content_query in (None, "zebra"):
        for match, titles in cases:
            found = await lithos.listed(metadata_match=match, content_query=content_query)
            assert set(found) == titles, match
        for bad in ({"k": None}, {"k": [1]}, {"k": {}}, {"": 1}, {" ": 1}):
            answer = await lithos.call("lithos_list", metadata_match=bad, content_query=content_query)
            assert "metadata_match" in refusal(answer, "invalid_input")


async def test_tag_prefix_ignores_case(lithos: Lithos) -> None:
    """behaviour 72"""
    await lithos.create("A", tags=["Topic:b", "topic:a", "x"])
    await lithos.create("B", tags=["topic:a", "Ä"])
    every = {"Topic:b": 1, "topic:a": 2, "x": 1, "Ä": 1}
    for prefix, names in (
        (None, list(every)),
        ("", list(every)),
        ("TOPIC", ["Topic:b", "topic:a"]),
        ("ä", ["Ä"]),
        ("z", []),
    ):
        tags = (await lithos.call("lithos_tags", prefix=prefix))["tags"]
        assert list(tags.items()) == [(name, every[name]) for name in sorted(names)]
