"""`bench.soak`: what it computes, and what it takes for reached."""

from __future__ import annotations

import pytest

from bench.soak import judge_soak
from bench.soak_kinds import Samples


def samples_of(second: float, slope: float) -> Samples:
    """Ten minutes: calls of 10 ms, in the second half `second` times that; memory grows there."""
    samples = Samples(begin=0.0)
    half = (180 + 600) / 2
    for at in range(600):
        samples.calls.append((at, 0.01 * (second if at >= half else 1)))
        samples.memory.append((at, 200 + max(0.0, at - half) * slope / 60))
    samples.tools["read"] = 600
    return samples


def test_the_second_half_is_judged_by_itself() -> None:
    soaked = judge_soak(samples_of(second=1.1, slope=0.1), 600, 32)
    assert (soaked.calls, soaked.errors, soaked.p99_ratio) == (600, 0, 1.1)
    assert soaked.second_slope == pytest.approx(0.1, abs=0.001)
    assert soaked.slope < soaked.second_slope
    assert (soaked.first_p99, soaked.second_p99) == (10.0, 11.0)
    assert not soaked.problems(strict=True)


@pytest.mark.parametrize(("second", "slope", "missed"), [(1.2, 0.0, "p99 grew"), (1.0, 0.3, "memory")])
def test_what_is_slower_or_larger_than_aimed_at_is_told(second: float, slope: float, missed: str) -> None:
    soaked = judge_soak(samples_of(second, slope), 600, 32)
    (told,) = soaked.problems(strict=True)
    assert told.startswith(missed)
    assert not soaked.problems(), "the gate's limits are wider"


def test_a_failed_call_is_a_problem() -> None:
    samples = samples_of(1.0, 0.0)
    samples.failures.append("read: no")
    soaked = judge_soak(samples, 600, 32)
    assert soaked.problems() == ["1 of 600 calls failed: read: no"]
