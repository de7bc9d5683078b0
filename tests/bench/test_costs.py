"""Limits of call costs: the rule for exceeding them, and the counted costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from bench.costs import Allowed, Cost, kinds_of, versions, write_allowed

LINE = Cost(steps=4_000, hand_overs=1, syncs=2, commits=1)
ALLOWED = Allowed({"hybrid": LINE}, {"python": "3.11", "trio": "1.0"})


@pytest.mark.parametrize(
    ("cost", "told"),
    [
        (LINE, []),
        (evolve(LINE, steps=4_080), []),
        (evolve(LINE, steps=4_081), ["hybrid: steps: 4081, allowed 4080"]),
        (evolve(LINE, steps=2_000, hand_overs=0), []),
        (evolve(LINE, hand_overs=2), ["hybrid: hand_overs: 2, allowed 1"]),
        (evolve(LINE, syncs=3, commits=2), ["hybrid: syncs: 3, allowed 2", "hybrid: commits: 2, allowed 1"]),
    ],
)
def test_call_may_exceed_its_step_limit_by_two_per_cent(cost: Cost, told: list[str]) -> None:
    complaints = ALLOWED.complaints({"hybrid": cost}, ALLOWED.versions)
    assert complaints[: len(told)] == told
    assert len(complaints) == len(told) + bool(told)  # the last line gives advice


def test_call_without_a_limit_and_changed_library_are_reported() -> None:
    complaints = ALLOWED.complaints({"new": LINE}, {"python": "3.11", "trio": "2.0"})
    assert complaints[:2] == ["new: no line in costs.json", "counted with trio 1.0, now 2.0"]


def test_updated_limits_keep_their_reasons(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    write_allowed({"hybrid": evolve(LINE, reasons=["it finds more"]), "read": LINE}, file)
    write_allowed({"hybrid": evolve(LINE, steps=5_000)}, file)
    written = Allowed.read(file)
    assert written.calls == {"hybrid": evolve(LINE, steps=5_000), "read": LINE}
    assert written.versions == versions()


def test_every_kind_of_call_has_a_limit() -> None:
    assert Allowed.read().calls.keys() == kinds_of([str(number) for number in range(100)]).keys()


@pytest.mark.slow
@pytest.mark.deadline(300)
def test_no_call_costs_more_than_its_limit() -> None:
    """behaviour 298"""
    made_with = Allowed.read().versions["python"]
    if versions()["python"] != made_with:
        pytest.skip(f"steps were counted with Python {made_with}: they differ between its versions")
    done = subprocess.run(
        [sys.executable, "-m", "bench.costs", "--check"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
