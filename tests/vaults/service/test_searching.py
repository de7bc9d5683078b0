"""Search across several vaults (docs/spec/vaults.md §2)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from attrs import evolve

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, InvalidMode, SearchBackendFailed
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.service.search import Search, SearchRequest
from lithos.vaults.service import searching
from lithos.vaults.service.searching import JointAnswer, JointSearch
from tests.servers import Lithos, put_note, serving

NAMES = ("work", "home", "project")
#: Each topic is frequent in one vault and rare in the others. Vaults therefore weigh its words differently.
TOPICS = {
    "work": ("meeting", "budget", "quarter", "invoice"),
    "home": ("garden", "recipe", "kitchen", "bicycle"),
    "project": ("turbine", "rotor", "bearing", "vibration"),
}
SHARED = ("plan", "repair", "tool", "list", "water", "weather", "letter", "market")
QUERIES = (
    "budget for the repair of a turbine",
    "water in the garden",
    "kitchen tool list",
    "meeting about rotor vibration and weather",
    "letter to the market",
    "plan",
)
MODES = ("hybrid", "fulltext", "semantic")


def make_notes(seed: int = 3, each: int = 25) -> Mapping[str, Mapping[str, str]]:
    """Return notes by vault and path.

    All notes have equal length, so this length is the mean length in every vault.
    """
    chance = random.Random(seed)
    vaults: dict[str, dict[str, str]] = {}
    for number, name in enumerate(NAMES):
        vaults[name] = {}
        for i in range(each):
            others = [word for other in NAMES if other != name for word in TOPICS[other]]
            said = [*chance.choices(TOPICS[name], k=5), *chance.choices(SHARED, k=6), chance.choice(others)]
            note_id = f"00000000-0000-4000-8000-{number:04}{i:08}"
            text = f"---\nid: {note_id}\ntags: [t{i % 2}]\n---\n\n# N{number}x{i}\n\n{' '.join(said)}.\n"
            vaults[name][f"{name}/{i:02}.md"] = text
    return vaults


@asynccontextmanager
async def serving_split(folder: Path) -> AsyncIterator[tuple[Lithos, dict[str, Parts]]]:
    """Serve all notes in one vault, and the same notes divided among three vaults."""
    async with AsyncExitStack() as stack:
        vaults: dict[str, Parts] = {}
        for name, notes in make_notes().items():
            for path, text in notes.items():
                put_note(folder / "whole", path, text)
                put_note(folder / name, path, text)
            vaults[name] = (await stack.enter_async_context(serving(folder / name))).server
        yield await stack.enter_async_context(serving(folder / "whole")), vaults


def paths(answer: JointAnswer) -> list[str]:
    """Return the paths of the rows. Assert that each row names the vault that contains its note."""
    assert all(hit.entry.path.startswith(f"{name}/") for name, hit in answer.rows)
    return [hit.entry.path for _, hit in answer.rows]


async def whole_rows(lithos: Lithos, request: SearchRequest) -> Sequence[tuple[str, float, str | None]]:
    answer = await lithos.server.get(Search).look(request)
    assert not answer.failed
    return [(hit.entry.path, hit.score, hit.match) for hit in answer.hits]


async def test_merged_rows_mostly_equal_the_rows_of_one_vault(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (whole, vaults):
        for mode in MODES:
            shared = 0
            for query in QUERIES:
                request = SearchRequest(query=query, mode=mode, limit=20)
                joint = await JointSearch(vaults).search(request)
                expected = await whole_rows(whole, request)
                assert (joint.failed, joint.lacking, joint.message) == ({}, {}, "")
                assert len(joint.rows) == len(expected) == 20
                scores = [hit.score for _, hit in joint.rows]
                assert scores == sorted(scores, reverse=True)
                assert all(hit.snippet for _, hit in joint.rows)
                shared += len(set(paths(joint)) & {path for path, _, _ in expected})
                if mode == "semantic":
                    assert scores == pytest.approx([score for _, score, _ in expected], abs=1e-4)
            assert shared / len(QUERIES) >= 15, mode


async def test_match_field_comes_from_the_vault_of_the_note(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        request = SearchRequest(query=QUERIES[0], limit=30)
        judged = {
            hit.entry.path: hit.judged
            for services in vaults.values()
            for hit in (await services.get(Search).look(request)).hits
        }
        joint = await JointSearch(vaults).look(request)
        assert {hit.entry.path: hit.judged for _, hit in joint.rows}.items() <= judged.items()


async def test_search_in_a_single_vault_equals_ordinary_search(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        only = vaults["home"]
        for mode in (*MODES, "graph"):
            for query in QUERIES:
                request = SearchRequest(query=query, mode=mode, prefix=True)
                joint = await JointSearch({"home": only}).look(request)
                assert tuple(hit for _, hit in joint.rows) == (await only.get(Search).look(request)).hits


async def test_paged_search_returns_each_row_once(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        search = JointSearch(vaults)
        for mode in MODES:
            request = SearchRequest(query=QUERIES[0], mode=mode, limit=40)
            at_once = paths(await search.look(request))
            paged: list[str] = []
            for offset in range(0, 40, 7):
                page = await search.look(evolve(request, limit=7, offset=offset))
                paged += paths(page)
            assert paged[:40] == at_once
            assert len(paged) == len(set(paged))


async def test_filters_and_word_prefixes_apply_in_every_vault(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (whole, vaults):
        search = JointSearch(vaults)
        for filters in (Filters(tags=("t1",)), Filters(path_prefix="home/")):
            answer = await search.look(SearchRequest(query=QUERIES[0], limit=30, filters=filters))
            assert answer.rows
            assert all(set(filters.tags) <= set(hit.entry.note.all_tags) for _, hit in answer.rows)
            assert all(path.startswith(filters.path_prefix or "") for path in paths(answer))
        begun = SearchRequest(query="turb", mode="fulltext", prefix=True, limit=50)
        assert set(paths(await search.look(begun))) == {row[0] for row in await whole_rows(whole, begun)}
        assert paths(await search.look(evolve(begun, prefix=False))) == []


async def test_failed_vault_is_named_and_other_vaults_answer(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        search, home = JointSearch(vaults), vaults["home"]
        home.get(FulltextIndex).tell_behind("the disk is full")
        answer = await search.look(SearchRequest(query=QUERIES[1], mode="fulltext"))
        assert answer.failed.keys() == {"home"}
        assert "the disk is full" in answer.failed["home"]
        assert "home did not answer" in answer.message
        assert {name for name, _ in answer.rows} == {"work", "project"}

        answer = await search.look(SearchRequest(query=QUERIES[1]))
        assert (answer.failed, answer.lacking) == ({}, {"home": ("fulltext",)})
        of_home = [hit for name, hit in answer.rows if name == "home"]
        assert of_home, "its meaning still answers"
        assert all(hit.judged is None for hit in of_home)
        assert all(hit.judged is not None for name, hit in answer.rows if name != "home")

        home.get(SemanticBackend).port.tell_behind("the disk is full")
        for mode in ("hybrid", "semantic"):
            answer = await search.look(SearchRequest(query=QUERIES[1], mode=mode))
            assert answer.failed.keys() == {"home"}
            assert {name for name, _ in answer.rows} == {"work", "project"}
        for other in ("work", "project"):
            vaults[other].get(FulltextIndex).tell_behind("gone")
            vaults[other].get(SemanticBackend).port.tell_behind("gone")
        for mode in MODES:
            with pytest.raises(SearchBackendFailed, match="gone"):
                await search.look(SearchRequest(query=QUERIES[1], mode=mode))


async def test_each_vault_records_its_own_rows_of_an_answer(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        answer = await JointSearch(vaults).search(SearchRequest(query=QUERIES[0], agent_id="ann"))
        for name, services in vaults.items():
            rows = await Lithos(services, tmp_path / name).audit()  # type: ignore[arg-type]
            own = {hit.entry.note.id for vault, hit in answer.rows if vault == name}
            assert {(agent, note) for agent, note, _ in rows} == {("ann", note) for note in own}


async def test_graph_search_starts_from_the_best_notes_of_each_vault(tmp_path: Path) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        search = JointSearch(vaults)
        request = SearchRequest(query=QUERIES[0], limit=5)
        best = {
            hit.entry.path for each in vaults.values() for hit in (await each.get(Search).look(request)).hits
        }
        walked = await search.look(SearchRequest(query=QUERIES[0], mode="graph", limit=50))
        assert set(paths(walked)) == best, "nothing is linked here"
        seed = next(hit.entry.note.id for name, hit in walked.rows if name == "project")
        alone = await search.look(SearchRequest(query="", mode="graph", seed_ids=(seed,)))
        assert [(name, hit.entry.note.id) for name, hit in alone.rows] == [("project", seed)]
        for services in vaults.values():
            services.get(FulltextIndex).tell_behind("gone")
            services.get(SemanticBackend).port.tell_behind("gone")
        links = await search.look(SearchRequest(query=QUERIES[0], mode="graph", seed_ids=(seed,)))
        assert [(name, hit.judged) for name, hit in links.rows] == [("project", None)]
        assert (links.failed, links.lacking) == ({}, {})


async def test_exact_title_match_from_any_vault_comes_first(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        vaults: dict[str, Parts] = {}
        for name, notes in make_notes().items():
            for path, text in notes.items():
                put_note(tmp_path / name, path, text)
            if name == "project":
                put_note(tmp_path / name, "project/named.md", "# Weather market\n\nThe rotor turns.\n")
            vaults[name] = (await stack.enter_async_context(serving(tmp_path / name))).server
        answer = await JointSearch(vaults).look(SearchRequest(query="weather market"))
        assert paths(answer)[0] == "project/named.md"
        assert answer.rows[0][1].score == max(hit.score for _, hit in answer.rows)


async def test_invalid_search_requests_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        search = JointSearch({"one": lithos.server})
        with pytest.raises(InvalidMode):
            await search.look(SearchRequest(query="x", mode="telepathy"))
        with pytest.raises(InvalidInput):
            await search.look(SearchRequest(query="x", offset=1_001))
        assert (await search.look(SearchRequest(query=" "))).rows == ()
        wrong = await search.look(SearchRequest(query='"open', mode="fulltext"))
        assert wrong.rows == ()
        assert "does not parse" in wrong.message


async def test_similarities_of_two_models_are_merged_by_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving_split(tmp_path) as (_, vaults):
        request = SearchRequest(query=QUERIES[1], mode="semantic", limit=6)
        home = vaults["home"]
        monkeypatch.setattr(
            searching, "model_of", lambda services, calibration: "another" if services is home else "one"
        )
        answer = await JointSearch(vaults).look(request)
        assert [name for name, _ in answer.rows] == [*NAMES, *NAMES]
        for name, services in vaults.items():
            own = (await services.get(Search).look(request)).hits[:2]
            assert [hit for vault, hit in answer.rows if vault == name] == list(own)
