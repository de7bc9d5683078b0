"""Times in messages and in files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.times import (
    format_optional,
    format_time,
    from_nanoseconds,
    parse_time,
    settled_time,
)

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def test_encoded_time_has_microseconds_and_offset():
    assert format_time(MOMENT) == "2026-01-02T03:04:05.000006+00:00"
    assert format_time(MOMENT.replace(microsecond=0)) == "2026-01-02T03:04:05.000000+00:00"
    assert format_time(MOMENT.astimezone(timezone(timedelta(hours=-5)))) == format_time(MOMENT)
    assert format_optional(None) is None
    assert format_optional(MOMENT) == format_time(MOMENT)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_timestamp_survives_encoding_and_decoding(moment):
    assert parse_time(format_time(moment)) == moment


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_encoded_times_sort_in_chronological_order(one, other):
    assert (format_time(one) < format_time(other)) == (one < other)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:05.000006", "2026-01-02T05:04:05.000006+02:00",
        "2026-01-02 03:04:05.000006+00:00", "  2026-01-01T22:04:05.000006-05:00\n",
    ],
)  # fmt: skip
def test_any_offset_is_read_and_a_missing_offset_means_utc(text):
    assert parse_time(text) == MOMENT
    assert parse_time(text).tzinfo is UTC


def test_date_without_time_means_the_start_of_day():
    assert parse_time("2026-01-02") == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01", "2026-01-02T25:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-01:00"]
)
def test_invalid_time_raises_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are those of the standard library
        parse_time(text)


def test_file_times_are_exact_to_the_microsecond():
    assert from_nanoseconds(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert from_nanoseconds(1_767_323_045_000_006_999) == MOMENT
    assert from_nanoseconds(-1) == datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert from_nanoseconds(2**63 - 1) == datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=UTC)


@given(st.integers(-(2**70), 2**70))
def test_any_file_time_can_be_converted(nanoseconds):
    moment = from_nanoseconds(nanoseconds)
    assert moment.tzinfo is UTC
    assert parse_time(format_time(moment)) == moment


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_file_times_keep_their_order(one, other):
    first, second = sorted((one, other))
    assert from_nanoseconds(first) <= from_nanoseconds(second)


DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("elapsed", "now", "settled"),
    [
        (HOUR, MOMENT + HOUR, MOMENT + HOUR),
        (10 * DAY, MOMENT + 12 * DAY, MOMENT + 12 * DAY),
        (0 * HOUR, MOMENT + 2 * DAY, MOMENT + 2 * DAY),
        (0 * HOUR, MOMENT + 400 * DAY, MOMENT),
        (HOUR, MOMENT + 400 * DAY, MOMENT + DAY),
        (HOUR, MOMENT.replace(year=9999), MOMENT + DAY),
        (3 * DAY, MOMENT + 60 * DAY, MOMENT + 60 * DAY),
        (HOUR, MOMENT - 400 * DAY, MOMENT - 400 * DAY),
        (HOUR, MOMENT.replace(year=1), MOMENT.replace(year=1)),
    ],
)
def test_settled_time_follows_clock_far_ahead_by_one_day_per_hour(elapsed, now, settled):
    assert settled_time(MOMENT, elapsed, now) == settled
