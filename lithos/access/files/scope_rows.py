"""The scope of a token (the paths it may change), as keys of its row of `tokens.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from lithos.notes.model.scopes import Scope, make_scope

#: Bytes of a line besides the pattern: its indent, a comma and the end.
_LINE: Final = 8


def row_of_scope(scope: Scope | None) -> dict[str, list[str]]:
    """Return the keys of a scope: empty without a scope, else both lists."""
    return {} if scope is None else {name: list(globs) for name, globs in scope.lists}


def scope_of_row(row: dict[str, Any]) -> Scope | None:
    """Return the scope of a row, or None. Raises `TypeError` and `ValueError` for a damaged one."""
    return make_scope(_globs(row, "write"), _globs(row, "propose"))


def _globs(row: dict[str, Any], name: str) -> list[str] | None:
    if name not in row:
        return None
    given = row[name]
    if not isinstance(given, list) or not all(isinstance(glob, str) for glob in given):
        raise TypeError("no list of patterns")
    return given


def size_of_scopes(scopes: Iterable[Scope | None]) -> int:
    """The bytes that the patterns of these scopes take in the file, each on a line of its own."""
    globs = [glob for scope in scopes if scope is not None for _, listed in scope.lists for glob in listed]
    return sum(len(json.dumps(glob)) + _LINE for glob in globs)
