"""Formats of values on pages: times, numbers, names, diffs and charts.

Also the Jinja filters and environment.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from attrs import frozen
from jinja2 import Environment, PackageLoader, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.times import parse_time
from lithos.server.console.labels import FILTERS, OWN_AGENTS

#: Maximum number of line groups that a page shows of a diff.
MOST_GROUPS: Final = 1_000
_KINDS: Final = {"+": "added", "-": "removed", "@": "place", "\\": "remark"}


@frozen
class DiffLines:
    """Consecutive diff lines of one kind:

    `added`, `removed`, `same`, `place` (position in the file) or `remark`.
    """

    kind: str
    text: str


@frozen
class Difference:
    """Diff as groups of lines, with the number of added lines and of removed lines."""

    groups: Sequence[DiffLines]
    added: int
    removed: int
    is_cut: bool


def read_diff(text: str, *, is_cut: bool) -> Difference:
    """Parse a unified diff. `is_cut` says whether the diff has already been shortened."""
    lines = text.split("\n")
    moved = 2 if text.startswith("rename from ") else 0
    header = 2 if lines[moved : moved + 1] and lines[moved].startswith("--- ") else 0
    body = lines[:moved] + lines[moved + header :]
    if body and not body[-1]:
        body.pop()
    groups = [
        DiffLines(kind, "\n".join(some))
        for kind, some in groupby(body, lambda line: _KINDS.get(line[:1], "same"))
    ]
    return Difference(
        groups[:MOST_GROUPS],
        sum(line.startswith("+") for line in body),
        sum(line.startswith("-") for line in body),
        is_cut or len(groups) > MOST_GROUPS,
    )


#: Width and height of a chart in SVG units.
WIDTH, HEIGHT = 240, 48
#: Minimum width of a sparkline in samples. 40 samples are ten minutes.
SPARK_SLOTS: Final = 40
#: The top of a scale is one of these values times a power of ten.
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


@frozen
class ChartLine:
    """Chart line: its points, in one piece per stretch without gaps, and its last value."""

    name: str
    pieces: tuple[str, ...]
    last: float | None


@frozen
class Chart:
    """Lines with a common time axis and a common scale from 0 to `top`. `unit` selects the number format."""

    key: str
    title: str
    unit: str
    top: float
    lines: tuple[ChartLine, ...]


def make_chart(
    key: str, title: str, unit: str, lines: Sequence[tuple[str, Sequence[float | None]]], slots: int
) -> Chart:
    """Return a chart that is `slots` samples wide. The newest sample is at the right edge."""
    values = [value for _, series in lines for value in series if value is not None]
    top = round_up(max(values, default=0.0))
    made = tuple(
        ChartLine(name, _pieces(series, top, slots), series[-1] if series else None) for name, series in lines
    )
    return Chart(key, title, unit, top, made)


def round_up(value: float) -> float:
    """Return a round number of at least `value` for the top of a scale, or 1 for zero."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    return next(power * step for step in _ROUND if power * step >= value * (1 - 1e-9))


def sparkline(series: Sequence[float]) -> str:
    """Return the points of a sparkline with its own scale. Without values, return an empty text."""
    pieces = _pieces(series, max(series, default=0.0) or 1.0, max(len(series), SPARK_SLOTS))
    return pieces[0] if pieces else ""


def _pieces(series: Sequence[float | None], top: float, slots: int) -> tuple[str, ...]:
    """Return the points of each stretch without gaps. A single value becomes a short dash."""
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


#: Maximum number of characters of a name or title on a page. A tooltip shows longer texts.
LONGEST_LABEL: Final = 160
LONGEST_TOOLTIP: Final = 1_000
#: Control characters and text direction characters. They are replaced, because a name must not rearrange a
#: page.
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
#: The same characters except line breaks, for texts with several lines.
_UNSEEN_IN_LINES: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_STEPS: Final = ((60, "s"), (60, "min"), (24, "h"), (30, "d"), (12, "mo"))
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def ago(moment: datetime, now: datetime) -> str:
    """Return a time relative to now: `just now`, `5 min ago`, `in 2 h`."""
    seconds = (now - moment).total_seconds()
    value, unit = abs(seconds), "s"
    if value < 5:
        return "just now"
    for size, name in _STEPS:
        unit = name
        if value < size:
            break
        value /= size
    else:
        unit = "y"
    shown = f"{int(value)} {unit}"
    return f"{shown} ago" if seconds > 0 else f"in {shown}"


def readable(text: object, most: int = LONGEST_LABEL) -> str:
    """Return a text as one line of at most `most` characters.

    Control and direction characters become spaces.
    """
    plain = _UNSEEN.sub(" ", str(text)[: most * 4]).strip()
    return plain if len(plain) <= most else f"{beginning(plain, most - 1)}…"


def visible(text: object) -> str:
    """Return a text of several lines. Each control or direction character is shown as U+FFFD."""
    return _UNSEEN_IN_LINES.sub("\N{REPLACEMENT CHARACTER}", str(text))


def label(text: object, most: int = LONGEST_LABEL) -> Markup:
    """Return a name or title with its own text direction.

    A long text is cut, and its tooltip shows the full text.
    """
    shown = readable(text, most)
    whole = readable(text, LONGEST_TOOLTIP)
    if shown == whole:
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup('<bdi title="{}">{}</bdi>').format(whole, shown)


def commands(text: object, most: int = 800) -> Markup:
    """Return a sentence as HTML. The parts between back-ticks are marked up as code."""
    pieces = readable(text, most).split("`")
    if not len(pieces) % 2:  # one back-tick has no partner
        return Markup("{}").format("`".join(pieces))
    code, plain = Markup("<code>{}</code>"), Markup("{}")
    return Markup("").join((code if place % 2 else plain).format(piece) for place, piece in enumerate(pieces))


@pass_context
def when(context: Context, value: datetime | str | None, missing: str = "never") -> Markup:
    """Return a `<time>` element with the relative time. Its tooltip shows the exact time in UTC."""
    if value is None or value == "":
        return Markup("<span class=muted>{}</span>").format(missing)
    moment = parse_time(value) if isinstance(value, str) else value
    exact = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    shown = ago(moment, context["now"])
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment.isoformat(), exact, shown)


def number(value: float | None, digits: int = 2) -> str:
    """Return a whole number with thousands separators, or another number with `digits` decimals."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def size(count: float) -> str:
    """Return a number of bytes in a readable unit."""
    value = float(count)
    for unit in _UNITS:
        if value < 1000 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit always matches")


def short_id(value: str) -> Markup:
    """Return the first 8 characters of an id. The tooltip shows the full id."""
    return Markup('<code class=id title="{}">{}</code>').format(readable(value), readable(value)[:8])


def as_json(value: Mapping[str, Any], most: int) -> str:
    """Return metadata as indented JSON, cut at `most` characters. Empty metadata is "".

    Control and direction characters are escaped.
    """
    text = json.dumps(dict(value), ensure_ascii=False, indent=1)[:most] if value else ""
    return "\n".join(_UNSEEN.sub(_escape, line) for line in text.split("\n"))


def _escape(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a number and the noun in singular or plural: `1 note`, `2 notes`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def whole(text: str | None, digits: int = 9) -> int | None:
    """Return the whole number in a text from an address or form.

    The result is None for any other text, and for a number of more than `digits` digits.
    """
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= digits else None


def told(value: object) -> Any:
    """Return the decoded JSON value of a payload field, or None if the text is not JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def told_ids(value: object) -> list[str] | None:
    """Return the ids in the list of a payload field, or None if the field is not a list."""
    found = told(value)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list | tuple) else None


def folders_of(path: str) -> list[tuple[str, str]]:
    """Return the name and path of each folder in `path`, including the last part."""
    parts = path.split("/")[:20]
    return [(part, "/".join(parts[: place + 1]) + "/") for place, part in enumerate(parts) if part]


def query_with(args: Mapping[str, Any], **changed: Any) -> str:
    """Return the query string after changing some values. None removes a value."""
    from urllib.parse import urlencode  # noqa: PLC0415 - a name that templates do not see

    merged = {**args, **changed}
    kept = {key: value for key, value in merged.items() if value not in (None, "", False)}
    return f"?{urlencode(kept, doseq=True)}" if kept else "?"


@functools.cache
def make_environment() -> Environment:
    """Return the Jinja environment of this process, with autoescape and the templates of this package."""
    environment = Environment(
        loader=PackageLoader("lithos.server.console", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        label=label, readable=readable, visible=visible, when=when, number=number, size=size,
        short_id=short_id, commands=commands,
    )  # fmt: skip
    environment.filters.update(FILTERS)
    environment.globals.update(own_agents=OWN_AGENTS, plural=plural, query_with=query_with, ago=ago)
    return environment
