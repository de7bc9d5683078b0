"""How the bench of several vaults splits a collection."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.judged import Chunk, Collection, JudgedQuery
from bench.several_vaults import PARTS, SPLITS, parse_arguments, split_collection, split_documents


def collection(names: list[str]) -> Collection:
    chunks = tuple(Chunk(f"{name}-{part}", name, f"text {part}") for name in names for part in range(2))
    return Collection("some", chunks, (JudgedQuery("q", "text", "", {names[0]: 1}),))


@pytest.mark.parametrize("split", SPLITS)
def test_each_note_is_in_one_vault_with_the_others_of_its_document(split: str) -> None:
    whole = collection([f"d{number}" for number in range(90)])
    parts = split_collection(whole, split)
    assert Counter(chunk.id for part in parts for chunk in part.chunks) == Counter(
        chunk.id for chunk in whole.chunks
    )
    documents = [{chunk.doc for chunk in part.chunks} for part in parts]
    assert len(parts) == PARTS
    assert all(documents)
    assert sum(map(len, documents)) == 90
    assert all(part.queries == whole.queries for part in parts)
    assert len({part.name for part in parts}) == PARTS


def test_topics_are_neighbours_in_the_collection_and_folders_where_there_are_paths() -> None:
    plain = split_documents(collection(["c", "a", "b"]), "topic")
    assert plain == {"c": 0, "a": 1, "b": 2}
    paths = split_documents(collection(["z/1", "a/1", "m/1", "z/2", "a/2", "m/2"]), "topic")
    assert paths == {"a/1": 0, "a/2": 0, "m/1": 1, "m/2": 1, "z/1": 2, "z/2": 2}


def test_it_measures_both_splits_in_the_static_tier_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITHOS_EVAL", raising=False)
    given = parse_arguments(["eval", "--split", "topic", "--sample", "9"])
    assert (str(given.collections), given.split, given.sample, given.tier) == ("eval", ["topic"], 9, "static")
    assert parse_arguments(["eval"]).split is None
