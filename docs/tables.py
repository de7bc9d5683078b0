"""Markdown tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def make_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Each cell is one line of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in lines) + "\n"


def as_code(value: Any) -> str:
    """Return a value in backticks, in the form in which users type it. None becomes ""."""
    if value is None or value == "":
        return ""
    if isinstance(value, str):
        return f"`{value}`"
    if isinstance(value, Mapping):
        return f"`{json.dumps(dict(value))}`"
    if isinstance(value, tuple):
        value = list(value)
    return f"`{json.dumps(value, default=str)}`"


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
