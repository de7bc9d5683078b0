"""Comparison of revisions: the figures of a report, their ratios, and the printed table."""

from __future__ import annotations

import json

import attrs

from bench.revisions import Change, compare_rounds, read_figures


def test_report_figures_are_named_by_their_path() -> None:
    one = {
        "bench": "search",
        "clients_1": {"hybrid": {"p50": 2}},
        "name": "x",
        "ok": True,
        "machine": {"load": 9},
    }
    assert read_figures(f"progress\n{json.dumps(one)}\n") == {"clients_1.hybrid.p50": 2.0}
    two = [json.dumps({"bench": name, "rate": 1.5}) for name in ("events.delivery", "events.journal")]
    assert read_figures("\n".join(two)) == {"events.delivery.rate": 1.5, "events.journal.rate": 1.5}


def test_change_is_the_median_of_the_ratios_per_round() -> None:
    """The busy second round slows both revisions. The ratios of the three rounds are 2, 2.2 and 1.9."""
    old = [{"ms": 1.0, "notes": 10.0, "zero": 0.0}, {"ms": 10.0, "notes": 10.0, "zero": 1.0}]
    new = [{"ms": 2.0, "notes": 10.0, "zero": 1.0}, {"ms": 22.0, "notes": 10.0, "zero": 2.0}]
    pairs = [*zip(old, new, strict=True), ({"ms": 2.0, "notes": 10.0}, {"ms": 3.8, "notes": 10.0})]
    (change,) = compare_rounds(pairs)
    assert change == Change("ms", old=2.0, new=3.8, ratio=2.0, lowest=1.9, highest=2.2)
    assert change.agrees
    assert not attrs.evolve(change, lowest=0.9).agrees
