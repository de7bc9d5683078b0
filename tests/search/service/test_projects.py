"""Reads with the argument `project`, in every mode (docs/spec/projects.md §4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio
from attrs import evolve

from lithos.kernel.values.principals import OWNER
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.settings import AgentsConfig, IndexConfig
from lithos.search.index.fulltext_schema import FORMAT
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.settings import SearchConfig
from tests.servers import Lithos, put_note, refusal, serving, take_up

SHOP, BLOG = "github.com/acme/shop", "github.com/acme/blog"
TEXT = "The zebra cache keeps invoices for a day. Zebra invoices are cached by number."
#: Path and frontmatter of each note. All notes have the same text, so only a filter separates them.
NOTES: Final = {
    "shop": ("shop.md", f"project: {SHOP}"),
    "shop-name": ("by-name.md", "project: Shop"),
    "both": ("both.md", f'project: ["{BLOG}", "[[Projects/shop]]"]'),
    "blog": ("blog.md", f"project: https://{BLOG}.git"),
    "other-shop": ("other.md", "project: github.com/other/shop"),
    "folder": ("work/shop/folder.md", ""),
    "number": ("number.md", "project: 7"),
    "map": ("map.md", "project: {name: shop}"),
    "none": ("none.md", ""),
}
OF_SHOP: Final = {"shop", "shop-name", "both", "folder"}
COMMON: Final = {"number", "map", "none"}
FOLDERS: Final = AgentsConfig(projects={"work/shop/": SHOP})


@asynccontextmanager
async def vault(tmp_path: Path, **sections: Any) -> AsyncIterator[Lithos]:
    for name, (path, head) in NOTES.items():
        links = " ".join(f"[[{other}]]" for other in NOTES if other != name)
        put_note(tmp_path, path, f"---\ntags: [zoo]\n{head}\n---\n\n# {name}\n\n{TEXT}\n\n{links}\n")
    async with serving(tmp_path, projects=FOLDERS, **sections) as lithos:
        yield lithos


async def titles(lithos: Lithos, tool: str, **arguments: Any) -> set[str]:
    answer = await lithos.call(tool, **arguments)
    return {row["title"] for row in answer.get("results", answer.get("items"))}


WAYS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "fulltext": ("lithos_search", {"query": "zebra invoices", "mode": "fulltext"}),
    "semantic": ("lithos_search", {"query": "zebra invoices", "mode": "semantic", "threshold": 0.0}),
    "hybrid": ("lithos_search", {"query": "zebra invoices"}),
    "graph": ("lithos_search", {"query": "zebra invoices", "mode": "graph"}),
    "list": ("lithos_list", {}),
    "list of matches": ("lithos_list", {"content_query": "zebra"}),
    "list by tag": ("lithos_list", {"tags": ["zoo"], "title_contains": "", "path_prefix": ""}),
    "list by metadata": ("lithos_list", {"metadata_match": {}, "title_contains": "o"}),
    "retrieve": ("lithos_retrieve", {"query": "zebra invoices", "limit": 20}),
    "retrieve by tag": ("lithos_retrieve", {"query": "latest zebra update", "tags": ["zoo"], "limit": 20}),
    "retrieve by name": ("lithos_retrieve", {"query": "blog", "limit": 20}),
}


ANSWERS: Final[tuple[tuple[str | None, set[str]], ...]] = (
    (SHOP, OF_SHOP),
    (f"git@{SHOP.replace('/', ':', 1)}.git", OF_SHOP),
    ("GitHub.com/Acme/SHOP", OF_SHOP),
    ("shop", OF_SHOP | {"other-shop"}),
    (BLOG, {"blog", "both"}),
    ("", COMMON),
    ("  ", COMMON),
    ("*", set(NOTES)),
    (None, set(NOTES)),
    ("github.com/nobody/none", set()),
)


async def test_project_filters_every_way_to_find_a_note(tmp_path: Path) -> None:
    """Behaviour 319: with each mode and tool, only notes of the project are found."""
    async with vault(tmp_path) as lithos:
        for way, (tool, arguments) in WAYS.items():
            for project, expected in ANSWERS:
                found = await titles(lithos, tool, **arguments, project=project)
                part = arguments.get("title_contains", "")
                assert found == {each for each in expected if part in each}, (way, project)


async def cite(lithos: Lithos, query: str, note_id: str) -> None:
    """Complete a task that cites a note which a retrieval found."""
    task = (await lithos.call("lithos_task_create", title="T", agent="ann"))["task_id"]
    found = await lithos.call("lithos_retrieve", query=query, task_id=task, agent_id="ann")
    assert note_id in [row["id"] for row in found["results"]]
    await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=[note_id])


async def projects_of(lithos: Lithos, tool: str, own: str | None, **arguments: Any) -> dict[str, str]:
    """Return the projects in the rows of a session of a project, by title."""
    answer = await lithos.server.tools.call(tool, arguments, evolve(OWNER, project=own))
    rows = answer.get("results", answer.get("items"))
    assert {row["title"] for row in rows} == set(NOTES)
    return {row["title"]: row["project"] for row in rows if "project" in row}


async def test_rows_name_only_projects_other_than_that_of_the_session(tmp_path: Path) -> None:
    """Behaviour 320"""
    foreign = {"blog": BLOG, "other-shop": "github.com/other/shop"}
    every = {
        **foreign, "shop": SHOP, "shop-name": "Shop", "both": BLOG, "folder": SHOP,
    }  # fmt: skip
    calls = [("lithos_search", {"query": "zebra"}), ("lithos_retrieve", {"query": "zebra", "limit": 20})]
    async with vault(tmp_path, server={"answers": "compact"}) as lithos:
        for tool, arguments in [*calls, ("lithos_list", {})]:
            assert await projects_of(lithos, tool, SHOP, **arguments) == foreign
            assert await projects_of(lithos, tool, None, **arguments) == {}
        for tool, arguments in calls:
            assert await projects_of(lithos, tool, None, **arguments, explain=True) == every
            assert await projects_of(lithos, tool, SHOP, **arguments, explain=True) == foreign
    async with vault(tmp_path) as lithos:
        assert await projects_of(lithos, "lithos_list", None) == every


async def test_short_name_of_the_own_project_means_only_that_project(tmp_path: Path) -> None:
    """Behaviour 319: `shop` alone would also mean github.com/other/shop."""
    async with vault(tmp_path) as lithos:
        in_shop = evolve(OWNER, project=SHOP)
        answer = await lithos.server.tools.call("lithos_list", {"project": "shop"}, in_shop)
        assert {row["title"] for row in answer["items"]} == OF_SHOP


async def test_unknown_project_is_reported_with_similar_names(tmp_path: Path) -> None:
    """Behaviour 319"""
    async with vault(tmp_path) as lithos:
        for tool, arguments in (("lithos_search", {"query": "zebra"}), ("lithos_list", {}),
                                ("lithos_retrieve", {"query": "zebra"})):  # fmt: skip
            answer = await lithos.call(tool, project="github.com/acme/shopp", **arguments)
            assert answer["message"].startswith("No note belongs to the project 'github.com/acme/shopp'.")
            assert SHOP in answer["message"]
            named = await lithos.call(tool, project="blgo", **arguments)
            assert BLOG in named["message"]
            answer = await lithos.call(tool, project="quite/another", **arguments)
            assert answer["message"] == "No note belongs to the project 'quite/another'."
            assert "not a project" in refusal(
                await lithos.call(tool, project="a\nb", **arguments), "invalid_input"
            )
        known = await lithos.call("lithos_search", query="unheard", mode="fulltext", project=SHOP)
        assert known == {"results": []}


async def test_edited_property_moves_a_note_to_another_project(tmp_path: Path) -> None:
    """Behaviour 318: an editor changes the file, and searches follow."""
    async with vault(tmp_path) as lithos:
        file = lithos.knowledge / "none.md"
        for head, project in ((f"project: {SHOP}", SHOP), ("project: [blog]", "blog"), ("", "")):
            word = f"okapi{len(project)}"
            file.write_text(f"---\n{head}\n---\n\n# none\n\nAn {word} lives here.\n")
            await take_up(lithos, "none.md")
            with trio.fail_after(60):
                while not await titles(lithos, "lithos_search", query=word, mode="fulltext"):
                    await trio.sleep(0.01)
            for mode in ("fulltext", "semantic", "hybrid"):
                for asked in (SHOP, "blog", ""):
                    found = await titles(lithos, "lithos_search", query=word, mode=mode, project=asked)
                    assert ("none" in found) == (asked == project), (mode, head, asked)


async def test_changed_configuration_indexes_only_the_notes_concerned(tmp_path: Path) -> None:
    """Behaviour 318: the next start gives the notes of the folder another project."""
    async with vault(tmp_path) as lithos:
        assert "folder" in await titles(lithos, "lithos_search", query="zebra", project=SHOP)
    for sections, expected in (
        ({"projects": AgentsConfig(projects={"work": "blog"})}, {"blog", "both", "folder"}),
        ({"index": IndexConfig(project_property="")}, set()),
    ):
        async with serving(tmp_path, **sections) as lithos:
            assert not lithos.server.get(FulltextIndexer).index.index.was_rebuilt
            for mode in ("fulltext", "semantic", "hybrid"):
                found = await titles(lithos, "lithos_search", query="zebra", mode=mode, project="blog")
                assert found == expected, mode
            assert not (await lithos.call("lithos_stats"))["index_drift_detected"]


async def test_index_of_the_format_without_projects_is_rebuilt(tmp_path: Path) -> None:
    """Behaviour 64: an index of the former format has no field for projects."""
    async with vault(tmp_path):
        pass
    marker = tmp_path / ".tantivy" / ".schema_version"
    assert marker.read_text().strip() == FORMAT
    marker.write_text("L5\n")
    async with serving(tmp_path, projects=FOLDERS) as lithos:
        assert lithos.server.get(FulltextIndexer).index.index.was_rebuilt
        assert await titles(lithos, "lithos_search", query="zebra", project=SHOP, mode="fulltext") == OF_SHOP


async def test_links_and_earlier_questions_lead_to_no_note_of_another_project(tmp_path: Path) -> None:
    """Behaviour 319: the scouts of lithos_retrieve, too, obey the filter."""
    put_note(tmp_path, "seed.md", f"---\nproject: {SHOP}\n---\n\n# Seed\n\nZebra. [[Linked]] [[Kin]]\n")
    put_note(tmp_path, "linked.md", f"---\nproject: {BLOG}\n---\n\n# Linked\n\nOther words entirely.\n")
    put_note(tmp_path, "kin.md", f"---\nproject: {SHOP}\n---\n\n# Kin\n\nDifferent text again.\n")
    literal = SearchConfig(semantic_threshold=0.999)
    async with serving(tmp_path, search=literal) as lithos:
        linked = lithos.server.get(Catalogue).at_path("linked.md")
        assert linked is not None
        for _ in range(2):
            await cite(lithos, "zebra", linked.note.id)
        assert "Linked" in await titles(lithos, "lithos_retrieve", query="zebra")
        assert await titles(lithos, "lithos_retrieve", query="zebra", project=SHOP) == {"Seed", "Kin"}
        assert await titles(lithos, "lithos_retrieve", query="zebra", project=BLOG) == {"Linked"}


async def test_cache_lookup_answers_only_from_the_project(tmp_path: Path) -> None:
    """Behaviour 319: by match, by web page and by an earlier citation."""
    text = "How zebras get their stripes: melanocytes in the skin of the zebra make the stripes."
    question, page = "how do zebras get their stripes", "https://example.org/zebra"
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra stripes", text, metadata={"project": BLOG}, source_url=page)
        await cite(lithos, question, note)
        await cite(lithos, question, note)
        for more in ({}, {"source_url": page}):
            for project, is_hit in ((BLOG, True), (None, True), (SHOP, False), ("", False)):
                answer = await lithos.call("lithos_cache_lookup", query=question, project=project, **more)
                assert answer["hit"] is is_hit, (more, project)
                assert "candidates" not in answer
