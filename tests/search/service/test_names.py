"""Search for notes by name, and notes without text of their own (docs/spec/search.md §5, §6)."""

from __future__ import annotations

from pathlib import Path

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.service.cache import CacheLookup, CacheRequest
from lithos.search.service.search import Search, SearchRequest
from tests.servers import Lithos, put_note, serving

TEMPLATES = "Template files, a template for each day, more templates: the template folder has templates."


async def rows(lithos: Lithos, query: str, mode: str = "hybrid") -> list[tuple[str, str | None]]:
    """Return the file names and match strengths of the rows."""
    answer = await lithos.server.get(Search).search(SearchRequest(query=query, mode=mode))
    return [(Path(hit.entry.path).stem, hit.match) for hit in answer.hits]


async def test_exact_name_is_found_although_other_names_share_its_stem(tmp_path: Path) -> None:
    """`templater` and `template` have the same stem. The alias is the exact word, which occurs in no text."""
    for number in range(6):
        put_note(tmp_path, f"templates-{number}.md", f"# Template {number}\n\n{TEMPLATES}\n")
    put_note(
        tmp_path,
        "silentvoid.md",
        "---\naliases: [Templater, obsidian-fill]\n---\n\n# Silent void\n\nRuns scripts at a cursor.\n",
    )
    async with serving(tmp_path) as lithos:
        assert (await rows(lithos, "templater"))[0][0] == "silentvoid"
        assert (await rows(lithos, "obsidian fill"))[0][0] == "silentvoid"
        assert (await rows(lithos, "template"))[0][0] != "silentvoid"
        assert "silentvoid" in [name for name, _ in await rows(lithos, "fill", mode="fulltext")]


async def test_note_without_text_is_weak_and_ranks_after_others(
    tmp_path: Path,
) -> None:
    """behaviour 265: links and a query under a heading do not count as text."""
    put_note(
        tmp_path,
        "maps.md",
        "# Maps of content\n\n- [[Garden]]\n\n```dataview\nLIST FROM #maps\n```\n",
    )
    put_note(
        tmp_path,
        "why.md",
        "# Notes on structure\n\nLong before folders there were lists. A note that does nothing but lead to "
        "others is called one of the maps of content; it grows with the subject.\n",
    )
    put_note(tmp_path, "garden.md", "# Garden\n\nTomatoes want sun.\n")
    async with serving(tmp_path) as lithos:
        for query in ("maps of content", "Maps of Content"):
            found = await rows(lithos, query)
            assert [name for name, _ in found][:2] == ["why", "maps"]
            for mode in ("hybrid", "fulltext", "semantic"):
                assert dict(await rows(lithos, query, mode)).get("maps", "weak") == "weak"
            looked_up = await lithos.server.get(CacheLookup).look_up(CacheRequest(query=query))
            assert looked_up.entry is None or Path(looked_up.entry.path).stem != "maps"


async def test_prefix_matches_only_while_the_query_is_being_typed(tmp_path: Path) -> None:
    put_note(tmp_path, "templater.md", "# Templater\n\nRuns scripts where the cursor stands.\n")
    put_note(tmp_path, "garden.md", "# Garden\n\nTomatoes want sun, temporary shade too.\n")
    async with serving(tmp_path) as lithos:
        search = lithos.server.get(Search)
        for mode in ("hybrid", "fulltext"):
            typed = await search.search(SearchRequest(query="run temp", mode=mode, prefix=True))
            assert [hit.entry.note.title for hit in typed.hits] == ["Templater", "Garden"]
            negated = await search.search(SearchRequest(query="scripts -temp", mode="fulltext", prefix=True))
            assert [hit.entry.note.title for hit in negated.hits] == ["Templater"]
        asked = await search.search(SearchRequest(query="temp", mode="fulltext"))
        assert asked.hits == ()


async def test_name_shared_by_many_notes_identifies_no_note(tmp_path: Path) -> None:
    for number in range(12):
        put_note(
            tmp_path, f"{number}.md", f"---\naliases: [Daily]\n---\n\n# Day {number}\n\nRain and wind.\n"
        )
    put_note(tmp_path, "rota.md", "# Rota\n\nDaily, daily, daily: who waters the daily plants daily.\n")
    async with serving(tmp_path) as lithos:
        catalogue = lithos.server.get(Catalogue)
        assert catalogue.named_in("daily") == {}
        assert set(catalogue.named_in("what is in day 3?").values()) == {"day 3"}
