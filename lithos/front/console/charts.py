"""Small charts as points of SVG polylines: what templates put into attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

#: The box that points lie in.
WIDTH, HEIGHT = 240, 48
#: Places of a small line at least: ten minutes of samples.
SPARK_SLOTS: Final = 40
#: A scale ends at one of these times a power of ten.
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@frozen
class Line:
    """One line of a chart: pieces of points where there are gaps, and its last value."""

    name: str
    pieces: tuple[str, ...]
    last: float | None


@frozen
class Chart:
    """Lines over the same time and scale, from 0 to `top`; `unit` tells how numbers are shown."""

    key: str
    title: str
    unit: str
    top: float
    lines: tuple[Line, ...]


def make_chart(
    key: str, title: str, unit: str, lines: Sequence[tuple[str, Sequence[float | None]]], slots: int
) -> Chart:
    """A chart whose newest value stands at the right edge of `slots` places."""
    values = [value for _, series in lines for value in series if value is not None]
    top = round_up(max(values, default=0.0))
    made = tuple(
        Line(name, _pieces(series, top, slots), series[-1] if series else None) for name, series in lines
    )
    return Chart(key, title, unit, top, made)


def round_up(value: float) -> float:
    """The next round number, for the top of a scale; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next(power * step for step in _ROUND if power * step >= value * (1 - 1e-9))


def sparkline(series: Sequence[float]) -> str:
    """The points of one small line over its own scale; empty without values."""
    pieces = _pieces(series, max(series, default=0.0) or 1.0, max(len(series), SPARK_SLOTS))
    return pieces[0] if pieces else ""


def _pieces(series: Sequence[float | None], top: float, slots: int) -> tuple[str, ...]:
    """Points of each run without gaps; a run of one value is drawn as a short dash."""
    step, first = WIDTH / max(slots - 1, 1), slots - len(series)
    pieces: list[str] = []
    points: list[str] = []
    for place, value in enumerate([*series, None]):
        if value is None:
            if len(points) == 1:
                x, y = points[0].split(",")
                points.append(f"{float(x) + step / 2:.1f},{y}")
            if points:
                pieces.append(" ".join(points))
            points = []
        else:
            points.append(f"{(first + place) * step:.1f},{HEIGHT - 1 - value / top * (HEIGHT - 2):.1f}")
    return tuple(pieces)
