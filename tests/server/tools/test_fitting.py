"""Size limit of answers, `server.max_answer_chars` (docs/spec/vault.md §4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from lithos.app.capabilities import all_tools
from lithos.server.tools import fitting
from lithos.server.tools.fitting import MOST_BESIDE, UNPAGED, CuttableAnswer, fit

PAGED = {tool.name: tool.paged for tool in all_tools()}
ROWS = CuttableAnswer(rows=("rows",))
LONG = st.builds(str.__mul__, st.text(max_size=30), st.integers(0, 100))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | LONG,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=300), inner, max_size=6),
    max_leaves=25,
)


def size(answer: Any) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def pages(answer: dict[str, Any], paged: CuttableAnswer, limit: int) -> list[dict[str, Any]]:
    """Request all parts of an answer one after another, and return them."""
    found = [fit(answer, paged, limit, 0, is_skipped=False)]
    while "next_offset" in found[-1]:
        found.append(fit(answer, paged, limit, found[-1]["next_offset"], is_skipped=False))
    return found


def test_small_answer_is_unchanged() -> None:
    answer = {"rows": [{"a": 1}], "other": "x" * 1_000}
    assert fit(answer, ROWS, 4_000, 0, is_skipped=False) == answer | {"total": 1}
    assert fit(answer, UNPAGED, 4_000, 0, is_skipped=False) == answer
    assert "total" not in answer


def test_small_answer_is_measured_only_once_per_ten_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer is measured, so measuring must be cheap.

    Measuring each member and row separately took a fifth of the steps of a read.
    """
    measured: list[Any] = []

    def encode(value: Any) -> bytes:
        measured.append(value)
        return to_json(value)

    monkeypatch.setattr(fitting, "to_json", encode)
    fit({"rows": [{"a": 1}] * 10, "other": "x", "third": 3}, ROWS, 4_000, 0, is_skipped=False)
    assert len(measured) == 1
    measured.clear()
    fit({"rows": [{"a": 1}] * 45}, ROWS, 4_000, 0, is_skipped=False)
    assert len(measured) == 6
    measured.clear()
    fit({"rows": ["x" * 1_000] * 200}, ROWS, 4_000, 0, is_skipped=False)
    assert len(measured) == 2  # rows beyond the limit are not measured


def test_pages_contain_every_row_once_and_the_total() -> None:
    """behaviour 256"""
    answer = {"rows": [{"number": number, "text": "x" * (number % 400)} for number in range(500)]}
    found = pages(answer, ROWS, 4_000)
    assert [row["number"] for page in found for row in page["rows"]] == list(range(500))
    assert all(size(page) <= 4_000 and page["total"] == 500 for page in found)
    assert all(page["truncated"] is True for page in found[:-1])
    assert "truncated" not in found[-1]
    assert len(found) < 500 * 260 / 3_000


def test_offset_skips_rows_but_nothing_is_cut_without_limit() -> None:
    answer = {"rows": list(range(10_000)), "text": "x" * 100_000}
    whole = fit(answer, ROWS, 0, 9_990, is_skipped=False)
    assert whole == {"rows": list(range(9_990, 10_000)), "text": "x" * 100_000, "total": 10_000}


def test_large_object_is_paged_by_its_members() -> None:
    answer = {"tags": {f"tag {number}": number for number in range(1_000)}}
    found = pages(answer, PAGED["lithos_tags"], 4_000)
    assert {key: value for page in found for key, value in page["tags"].items()} == answer["tags"]
    assert found[0]["total"] == 1_000


def test_parallel_lists_are_paged_together_by_200_rows() -> None:
    """behaviour 256"""
    answer = {
        "id": "n", "links": {"outgoing": [], "incoming": [{"id": f"{n}"} for n in range(450)]},
        "related_ids": [f"{n}" for n in range(450)],
    }  # fmt: skip
    found = pages(answer, PAGED["lithos_related"], 40_000)
    assert [len(page["links"]["incoming"]) for page in found] == [MOST_BESIDE, MOST_BESIDE, 50]
    assert found[0]["links"]["incoming_total"] == found[0]["related_ids_total"] == 450
    assert found[0]["links"]["outgoing_total"] == 0
    assert answer["links"].keys() == {"outgoing", "incoming"}


def test_content_is_cut_at_a_paragraph_and_continues_there() -> None:
    """behaviour 256"""
    text = "\n\n".join(f'Paragraph {number}: "some" words\tand more.' for number in range(1_000))
    paged, begin, parts = PAGED["lithos_read"], 0, []
    while True:
        answer = {"content": text[begin:], "truncated": False}
        page = fit(answer, paged, 4_000, begin, is_skipped=True)
        assert size(page) <= 4_000
        if not page["truncated"]:
            break
        assert page["content"].endswith("more.")
        assert page["warnings"][0]["kind"] == "cut"
        assert page["warnings"][0]["length"] == len(text)
        parts.append(page["content"])
        begin = page["next_offset"]
    assert "".join([*parts, page["content"]]) == text


def test_oversized_row_is_shortened_and_reported() -> None:
    row = {"id": "t", "metadata": {"log": "y" * 50_000, "small": 1}, "description": "short"}
    page = fit({"rows": [row, row]}, ROWS, 4_000, 0, is_skipped=False)
    assert size(page) <= 4_000
    assert (page["rows"][0]["id"], page["rows"][0]["description"]) == ("t", "short")
    assert page["rows"][0]["metadata"]["small"] == 1
    assert (page["truncated"], page["next_offset"], page["shortened"]) == (True, 1, ["rows.metadata.log"])


@given(st.dictionaries(st.text(max_size=20), VALUES, max_size=8), st.sampled_from([UNPAGED, ROWS]))
def test_every_answer_stays_within_the_limit(answer: dict[str, Any], paged: CuttableAnswer) -> None:
    """behaviour 256"""
    if not isinstance(answer.get("rows"), list | None):
        del answer["rows"]
    assert size(fit(answer, paged, 4_000, 0, is_skipped=False)) <= 4_000


@given(st.text(min_size=100, max_size=9_000))
def test_content_can_be_read_to_its_end(text: str) -> None:
    begin, calls = 0, 0
    while True:
        page = fit({"content": text[begin:]}, PAGED["lithos_read"], 4_000, begin, is_skipped=True)
        assert size(page) <= 4_000
        if "next_offset" not in page:
            break
        assert page["next_offset"] > begin
        begin, calls = page["next_offset"], calls + 1
        assert calls < 200
