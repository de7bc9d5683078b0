"""Tables made of printed measurements."""

from __future__ import annotations

import json
from pathlib import Path

from bench.quality_tables import difference, read_lines, render_tables

FIGURES = {"ndcg": 70.0, "mrr": 65.0, "recall": 88.0}
PLACE = {"bench": "quality", "collection": "docs", "layout": "titled", "tier": "static", "queries": 9}


def taught(group: str) -> dict[str, object]:
    return {
        **PLACE,
        "part": "taught",
        "group": group,
        "error": 0.1,
        "figures": FIGURES,
        "against": {name: {"ndcg": 62.0} for name in ("before", "hybrid")},
        "over": {name: {"ndcg": [8.0, 5.5, -1.5]} for name in ("before", "hybrid")},
    }


def test_a_difference_is_written_with_its_sign_and_interval() -> None:
    assert difference([-0.6, -1.2, 0.1]) == "−0.6 (−1.2 to 0.1)"
    assert difference([8.25, 5.0, 11.0]) == "+8.2 (5.0 to 11.0)"


def test_lines_of_several_files_become_one_table_a_part(tmp_path: Path) -> None:
    modes = {**PLACE, "part": "modes", "mode": "hybrid", "kind": "all", "figures": FIGURES, "over": {}}
    curve = {"bench": "lookup", "collection": "docs", "layout": "titled", "tier": "static", "rule": "fitted"}
    curve["roc"] = {"5%": {"right": 30.4, "wrong": 1.6}}
    (tmp_path / "one").write_text(f"{json.dumps(modes)}\nCOEFFICIENTS = 1\n", encoding="utf-8")
    (tmp_path / "two").write_text(
        "\n".join(map(json.dumps, (taught("same"), taught("again"), curve))), encoding="utf-8"
    )
    tables = list(render_tables(read_lines([tmp_path / "one", tmp_path / "two"])))
    assert [table.splitlines()[0].split(",")[0] for table in tables] == [
        "Search modes and the first day of retrieval",
        "After simulated use",
        "Cache look-ups",
    ]
    assert "| docs, titled, static ndcg | 9 |  |  | 70.0 |  |  |  |" in tables[0]
    assert tables[1].splitlines()[4].count("62.0 > 70.0 +8.0 (5.5 to −1.5)") == 2
    assert "30.4 / 1.6" in tables[2]


def test_of_a_measurement_made_twice_the_last_one_counts() -> None:
    newer = {**taught("same"), "figures": {"ndcg": 71.0}}
    (table,) = render_tables([taught("same"), newer])
    assert "62.0 > 71.0" in table
    assert "62.0 > 70.0" not in table
