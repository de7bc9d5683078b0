"""Due times of notifications: after a quiet period with an upper limit."""

from __future__ import annotations

import math

from lithos.notes.watching.debounce import Pending


def test_no_change_is_due_without_a_notification():
    assert Pending(0.5).due == math.inf


def test_touched_file_is_due_after_quiet_and_delayed_by_touches():
    pending = Pending(0.5)
    pending.touch(["a"], 10.0)
    assert pending.due == 10.5
    pending.touch(["b", "a"], 10.25)
    assert pending.due == 10.75


def test_repeated_touches_delay_by_at_most_twice_the_debounce():
    pending = Pending(0.5)
    for step in range(100):
        pending.touch(["a"], 10.0 + step * 0.25)
    assert pending.due == 11.0


def test_taking_pending_files_returns_first_touch_times_and_removes_them():
    pending = Pending(0.5)
    pending.touch(["a"], 1.0)
    pending.touch(["a", "b"], 2.0)
    pending.compare(2.0)
    noticed = pending.take()
    assert (noticed.touched, noticed.compare) == ({"a": 1.0, "b": 2.0}, True)
    assert pending.due == math.inf
    assert not pending.take().compare


def test_requested_comparison_is_due_immediately():
    pending = Pending(0.5)
    pending.touch(["a"], 10.0)
    pending.compare_now(10.0)
    assert pending.due <= 10.0


def test_missing_note_may_reappear_within_one_debounce():
    """behaviour 136"""
    pending = Pending(0.5)
    pending.miss("n", 10.0)
    pending.miss("n", 10.4)
    assert pending.ripe(10.25) == []
    assert pending.due == 10.5
    assert pending.ripe(10.5) == ["n"]
    pending.find(["n"])
    assert (pending.ripe(11.0), pending.due) == ([], math.inf)


def test_wait_for_a_missing_note_is_limited_while_files_move():
    """behaviour 136"""
    pending = Pending(0.5)
    pending.miss("n", 10.0)
    pending.touch(["elsewhere.md"], 10.25)
    pending.take()
    assert pending.ripe(10.5) == []
    assert pending.due == 10.75
    assert pending.ripe(10.75) == ["n"]
    for step in range(10):
        pending.touch(["elsewhere.md"], 10.25 + step * 0.25)
        pending.take()
    assert (pending.ripe(11.25), pending.due) == ([], 11.5)
    assert pending.ripe(11.5) == ["n"]


def test_paths_found_by_a_comparison_are_due_immediately():
    pending = Pending(0.5)
    pending.touch_now(["a"], 10.0)
    assert pending.due <= 10.0
    assert pending.take().touched == {"a": 10.0}
    pending.touch_now([], 11.0)
    assert pending.due == math.inf


def test_wait_restarts_when_the_note_is_found_at_another_path():
    """behaviour 136"""
    pending = Pending(0.5)
    pending.miss("n", 10.0)
    pending.put_off(["n"], 10.5)
    assert (pending.ripe(10.75), pending.due) == ([], 11.0)
    assert pending.ripe(11.0) == ["n"]
