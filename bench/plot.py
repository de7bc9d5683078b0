"""A log-log plot as SVG, written by hand: size along, several figures up. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Final

from attrs import frozen

WIDTH, HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 200, 20, 50
_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


@frozen
class Axis:
    """Powers of ten from `first` to `last` on the pixels from `begin` to `end`."""

    first: int
    last: int
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> Axis:
        """The axis that shows all values, which are positive."""
        first, last = floor(log10(min(values))), ceil(log10(max(values)))
        return cls(first, max(last, first + 1), begin, end)

    def place(self, value: float) -> float:
        """The pixel of a value."""
        share = (log10(value) - self.first) / (self.last - self.first)
        return round(self.begin + share * (self.end - self.begin), 1)

    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**power for power in range(self.first, self.last + 1)]


def draw_plot(series: Mapping[str, Mapping[int, float]], along: str) -> str:
    """The SVG; `series` has positive values by size for each name, which tells its unit."""
    sizes = [size for points in series.values() for size in points]
    values = [value for points in series.values() for value in points.values()]
    x = Axis.over(sizes, _LEFT, WIDTH - _RIGHT)
    y = Axis.over(values, HEIGHT - _BOTTOM, _TOP)
    parts = [*_draw_grid(x, y), _text(x.place(10 ** ((x.first + x.last) / 2)), HEIGHT - 12, along, "middle")]
    for number, (name, points) in enumerate(series.items()):
        parts += _draw_series(name, points, number, x, y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
    back = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    return "\n".join([f'{head} font-size="12">', back, *parts, "</svg>\n"])


def _draw_grid(x: Axis, y: Axis) -> list[str]:
    parts: list[str] = []
    for tick in x.ticks():
        parts.append(_line(x.place(tick), y.begin, x.place(tick), y.end))
        parts.append(_text(x.place(tick), y.begin + 16, f"{tick:,.10g}", "middle"))
    for tick in y.ticks():
        parts.append(_line(x.begin, y.place(tick), x.end, y.place(tick)))
        parts.append(_text(x.begin - 6, y.place(tick) + 4, f"{tick:,.10g}", "end"))
    return parts


def _draw_series(name: str, points: Mapping[int, float], number: int, x: Axis, y: Axis) -> list[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [(x.place(size), y.place(value)) for size, value in sorted(points.items())]
    line = " ".join(f"{left},{top}" for left, top in places)
    dots = [f'<circle cx="{left}" cy="{top}" r="3" fill="{colour}"/>' for left, top in places]
    label = _text(x.end + 12, _TOP + 14 + 18 * number, name, "start", colour)
    return [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, label]


def _line(left: float, top: float, right: float, bottom: float) -> str:
    return f'<line x1="{left}" y1="{top}" x2="{right}" y2="{bottom}" stroke="#ddd"/>'


def _text(left: float, top: float, text: str, anchor: str, colour: str = "#333") -> str:
    shown = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{left}" y="{top}" text-anchor="{anchor}" fill="{colour}">{shown}</text>'
