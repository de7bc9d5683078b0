"""The scope of a token, which lists the paths that it may change, as keys of its row in `tokens.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from lithos.notes.model.scopes import Scope, make_scope

#: Bytes that each line has in addition to the pattern: indent, comma and line end.
_LINE: Final = 8


def row_of_scope(scope: Scope | None) -> dict[str, list[str]]:
    """Return the scope as keys of a row. If there is no scope, the result is empty."""
    return {} if scope is None else {name: list(globs) for name, globs in scope.lists}


def scope_of_row(row: dict[str, Any]) -> Scope | None:
    """Return the scope in a row, or None if the row has no scope.

    Raises `TypeError` or `ValueError` for a damaged row.
    """
    return make_scope(_globs(row, "write"), _globs(row, "propose"))


def _globs(row: dict[str, Any], name: str) -> list[str] | None:
    if name not in row:
        return None
    given = row[name]
    if not isinstance(given, list) or not all(isinstance(glob, str) for glob in given):
        raise TypeError("the patterns are not a list")
    return given


def size_of_scopes(scopes: Iterable[Scope | None]) -> int:
    """Return how many bytes the patterns of these scopes need in the file, with one pattern per line."""
    globs = [glob for scope in scopes if scope is not None for _, listed in scope.lists for glob in listed]
    return sum(len(json.dumps(glob)) + _LINE for glob in globs)
