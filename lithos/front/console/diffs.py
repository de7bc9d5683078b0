"""A unified diff as lines of a page, grouped by what they are: a thousand changed lines are one element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from attrs import frozen

#: Groups of lines that are shown.
MOST_GROUPS: Final = 1_000
_KINDS: Final = {"+": "added", "-": "removed", "@": "place", "\\": "remark"}


@frozen
class Lines:
    """Lines of one kind: `added`, `removed`, `same`, `place` (where in the file), `remark`."""

    kind: str
    text: str


@frozen
class Difference:
    """A diff in groups of lines, with the numbers of lines added and removed."""

    groups: Sequence[Lines]
    added: int
    removed: int
    is_cut: bool


def read_diff(text: str, *, is_cut: bool) -> Difference:
    """Read a unified diff; `is_cut`: it was shortened already."""
    lines = text.split("\n")
    body = lines[2:] if text.startswith("--- ") else lines
    if body and not body[-1]:
        body.pop()
    groups = [
        Lines(kind, "\n".join(some))
        for kind, some in groupby(body, lambda line: _KINDS.get(line[:1], "same"))
    ]
    return Difference(
        groups[:MOST_GROUPS],
        sum(line.startswith("+") for line in body),
        sum(line.startswith("-") for line in body),
        is_cut or len(groups) > MOST_GROUPS,
    )
