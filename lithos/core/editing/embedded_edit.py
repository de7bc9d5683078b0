"""One entry of a JSON document that is a string of another JSON document; every other character stays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from lithos.core.editing.json_edit import (
    CannotEdit,
    Insertion,
    find_entry,
    insert_entry,
    is_same_but,
    remove_entry,
)
from lithos.core.editing.json_text import InvalidText, Node, read_json

_UNIT: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|(?s:.)"
)


def read_embedded(text: str, key: str) -> str:
    """The inner document, empty where there is none. Raises `InvalidText` and `CannotEdit`."""
    node = _string(text, key)
    return "" if node is None else str(node.scalar)


def find_embedded(text: str, key: str, path: Sequence[str]) -> Node | None:
    """The value at a path of the inner document. Raises `InvalidText` and `CannotEdit`."""
    found: Node | None = _inside(key, find_entry, read_embedded(text, key), "json", path)
    return found


def insert_embedded(text: str, key: str, path: Sequence[str], value: Any) -> Insertion:
    """How to put in a value at a path of the inner document. Raises `InvalidText` and `CannotEdit`."""
    node = _string(text, key)
    if node is None:
        document = json.dumps(_nested(path, value), indent=2)
        found = insert_entry(text, "json", (key,), document)
        return Insertion(found.offset, found.text, found.parents + len(path))
    inner = _inside(key, insert_entry, str(node.scalar), "json", path, value)
    offset = _offsets(text, node)[inner.offset]
    return Insertion(offset, _escape(inner.text), inner.parents)


def remove_embedded(text: str, key: str, path: Sequence[str]) -> str:
    """The text without the entry at the path, which is there."""
    node = _string(text, key)
    assert node is not None
    old = str(node.scalar)
    new: str = _inside(key, remove_entry, old, "json", path)
    begin = _common(old, new)
    most = min(len(old), len(new)) - begin
    same = _common(old[::-1][:most], new[::-1][:most])
    offsets = _offsets(text, node)
    middle = _escape(new[begin : len(new) - same])
    return text[: offsets[begin]] + middle + text[offsets[len(old) - same] :]


def is_same_embedded_but(old: str, new: str, key: str, path: Sequence[str], prune: int = 0) -> bool:
    """Whether `new` is `old` with an entry more in the inner document."""
    if _around(old, key) != _around(new, key):
        return False
    return is_same_but(read_embedded(old, key), read_embedded(new, key) or "{}", "json", path, prune)


def _around(text: str, key: str) -> list[tuple[str, Any]]:
    root = read_json(text, "json")
    members = () if root is None else root.members
    return [(member.key, member.value.exact()) for member in members if member.key != key]


def _string(text: str, key: str) -> Node | None:
    node = find_entry(text, "json", (key,))
    if node is not None and node.kind != "string":
        raise CannotEdit(f"{key} should be a string that holds JSON, and is of kind {node.kind}.")
    return node


def _inside(key: str, act: Any, *arguments: Any) -> Any:
    try:
        return act(*arguments)
    except InvalidText as error:
        raise CannotEdit(f"The text in {key} cannot be read as JSON ({error}).") from error


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _offsets(text: str, node: Node) -> list[int]:
    """Where each character of a string begins in the text, and where it ends."""
    inside = text[node.start + 1 : node.end - 1]
    begins = [node.start + 1 + found.start() for found in _UNIT.finditer(inside)]
    return [*begins, node.end - 1]


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _escape(text: str) -> str:
    return json.dumps(text)[1:-1]
