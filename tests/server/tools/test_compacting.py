"""Compact answers: omitted values, kept values, and stored values, which are sent unchanged."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from lithos.notes.tools_rows import compact_metadata
from lithos.server.tools.compacting import CompactForm, compact, compact_refusal, drop_plain_totals

TIME = "2026-03-04T05:06:07.000008+00:00"
STORED = {"f": False, "n": None, "t": "", "o": {}, "l": [], "x_at": TIME, "score": 0.123456789}


class Given:
    explain = False


def made(answer: dict[str, Any], sparing: CompactForm | None = None, given: object = None) -> dict[str, Any]:
    before = deepcopy(answer)
    result = compact(answer, sparing or CompactForm(), given)
    assert answer == before, "what the tool made is not changed"
    return result


def test_empty_values_are_omitted_on_every_level() -> None:
    nothing = {"a": None, "b": "", "c": [], "d": {}, "e": False, "f": ()}
    row = {**nothing, "zero": 0, "true": True, "text": "x"}
    assert made({**row, "rows": [row, row], "one": row, "gone": nothing}) == {
        "zero": 0, "true": True, "text": "x",
        "rows": [{"zero": 0, "true": True, "text": "x"}] * 2,
        "one": {"zero": 0, "true": True, "text": "x"},
    }  # fmt: skip


def test_declared_keys_are_always_sent() -> None:
    sparing = CompactForm(always=("a", "items", "hit"), defaults={"a": 1})
    assert made({"a": "", "items": [], "hit": False, "b": ""}, sparing) == {
        "a": "",
        "items": [],
        "hit": False,
    }
    assert made({"a": 1}, sparing) == {"a": 1}


def test_default_values_hidden_keys_and_repetitions_are_omitted() -> None:
    sparing = CompactForm(defaults={"status": "active"}, unsaid=("author",))
    row = {"status": "active", "author": "a", "edge_id": "e", "id": "e", "updated": TIME, "updated_at": TIME}
    assert made({"rows": [row]}, sparing) == {
        "rows": [{"edge_id": "e", "updated_at": "2026-03-04T05:06:07Z"}]
    }
    assert made({"status": "archived", "id": "n", "edge_id": "e"}, sparing) == {
        "status": "archived", "id": "n", "edge_id": "e",
    }  # fmt: skip


@pytest.mark.parametrize("key", ["metadata", "extra", "evidence", "summaries", "tags"])
def test_stored_objects_are_sent_unchanged(key: str) -> None:
    assert made({"rows": [{key: STORED}]})["rows"][0][key] == STORED
    assert made({key: {}, "x": 1}) == {"x": 1}


def test_texts_that_look_like_times_or_scores_are_unchanged() -> None:
    row = {"title": TIME, "content": f"{TIME} ", "snippet": "0.123456789", "weight": 0.123456789}
    assert made(row) == row


def test_times_have_whole_seconds_and_scores_have_three_digits() -> None:
    row = {"created_at": TIME, "score": 0.123456, "at": TIME}
    assert made(row) == {"created_at": "2026-03-04T05:06:07Z", "score": 0.123, "at": TIME}
    assert made(row, CompactForm(exact=("created_at",)))["created_at"] == TIME
    other = {"made_at": "2026-03-04T05:06:07.000008+02:00"}
    assert made(other) == other


def test_optional_keys_are_sent_only_on_request() -> None:
    sparing, row = CompactForm(asked={"explain": ("score",)}), {"id": "a", "score": 0.5}
    assert made(row, sparing, Given()) == {"id": "a"}
    given = Given()
    given.explain = True
    assert made(row, sparing, given) == row


def test_user_written_metadata_is_sent_unchanged() -> None:
    own = {"author": "a", "status": "active", "version": 3, "confidence": 1.0, "aliases": [], "source": None}
    extra = {**STORED, "status": "", "extra": []}
    metadata = {**STORED, **own, "created_at": TIME, "namespace": "x/y", "extra": extra}
    answer = {"metadata": metadata, "path": "x/y/a.md"}
    assert made(answer, CompactForm(own={"metadata": compact_metadata}))["metadata"] == {
        **STORED, "author": "a", "created_at": "2026-03-04T05:06:07Z", "extra": {"status": "", "extra": []},
    }  # fmt: skip
    moved = made({**answer, "path": "z/a.md"}, CompactForm(own={"metadata": compact_metadata}))
    assert moved["metadata"]["namespace"] == "x/y"


def test_only_rows_that_are_sent_are_compacted() -> None:
    rows = [{"id": str(number), "a": ""} for number in range(10)]
    shown = compact({"rows": rows}, CompactForm(), None, limit=80, skip=3)["rows"]
    assert [len(row) for row in shown] == [2, 2, 2, 1, 1, 2, 2, 2, 2, 2]


def test_additional_lists_in_an_answer_stay_within_their_limit() -> None:
    rows = [{"id": "x" * 90}] * 3
    sparing = CompactForm(room={"similar": 210})
    assert made({"similar": rows}, sparing) == {"similar": rows[:2], "similar_total": 3}
    assert made({"similar": [{"id": "x" * 900}]}, sparing)["similar"] == [{"id": "x" * 900}]


def test_refusal_omits_only_empty_values() -> None:
    refusal = {"status": "error", "code": "c", "message": "m", "warnings": [], "held_by": None, "x_at": TIME}
    assert compact_refusal(refusal) == {"status": "error", "code": "c", "message": "m", "x_at": TIME}


def test_total_of_a_complete_list_is_omitted() -> None:
    fitted = {"a": {"b": [1], "b_total": 1, "c": [1], "c_total": 2}, "d": [], "d_total": 0}
    drop_plain_totals(fitted, ("a.b", "a.c", "d", "e.f"))
    assert fitted == {"a": {"b": [1], "c": [1], "c_total": 2}, "d": []}
