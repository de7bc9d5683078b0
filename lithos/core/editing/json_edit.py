"""One entry of a JSON text put in or taken out; every other character stays (docs/spec/integration.md §2).

Entries are put in as one piece of text, so that taking out the same piece gives the text back. An embedded
entry is one of a JSON document that is a string of another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from posixpath import commonprefix
from typing import Any, Final

from attrs import frozen

from lithos.core.editing.json_text import Dialect, InvalidText, Member, Node, read_json

#: What stands behind a comma or a brace on its line: comments that end there.
_REST: Final = re.compile(r"(?:[ \t]*+/\*[^\r\n*]*+\*/)*+(?:[ \t]*+//[^\r\n]*+)?")
_COMMENT: Final = re.compile(r"[ \t]*+/[/*]")
_INDENT: Final = re.compile(r"[ \t]*+")


class CannotEdit(ValueError):
    """The text cannot be edited without touching more than the entry; says what to do."""


@frozen
class Insertion:
    """A piece of text to put in at `offset`; `parents` are the objects around the entry that it makes."""

    offset: int
    text: str
    parents: int = 0

    def apply(self, text: str) -> str:
        """The text with the piece."""
        return text[: self.offset] + self.text + text[self.offset :]


#: An edit reads the old text and the new one, each several times.
_read: Final = lru_cache(maxsize=2)(read_json)


def find_entry(text: str, dialect: Dialect, path: Sequence[str]) -> Node | None:
    """The value at a path of keys. Raises `InvalidText`, and `CannotEdit` where a key is there twice."""
    root = _read(text, dialect)
    if root is None:
        return None
    node, known = _walk(root, path)
    return node if known == len(path) else None


def _walk(node: Node, path: Sequence[str]) -> tuple[Node, int]:
    """The value at as much of the path as there is, and how many keys that is."""
    for known, key in enumerate(path):
        found = _only(node, key)
        if not found:
            return node, known
        node = found[0].value
    return node, len(path)


def insert_entry(text: str, dialect: Dialect, path: Sequence[str], value: Any) -> Insertion:
    """How to put in a value at a path that is not there. Raises `InvalidText` and `CannotEdit`."""
    root = _read(text, dialect)
    if root is None:
        document = json.dumps(_nested(path, value), indent=2, ensure_ascii=False)
        newline = _newline(text)
        begin = newline if text.strip("\ufeff \t") and not text.endswith("\n") else ""
        lines = document.split("\n")
        return Insertion(len(text), begin + newline.join(lines) + newline, len(path))
    node, known = _walk(root, path[:-1])
    if node.kind != "object":
        what = ".".join(path[:known]) if known else "the document"
        raise CannotEdit(f"Entries belong into an object, and {what} is of kind {node.kind}.")
    if _only(node, path[known]):
        raise CannotEdit(f"There already is an entry {'.'.join(path[: known + 1])}.")
    member = {path[known]: _nested(path[known + 1 :], value)}
    offset, piece = _place(text, root, node, member)
    return Insertion(offset, piece, len(path) - 1 - known)


def remove_entry(text: str, dialect: Dialect, path: Sequence[str]) -> str:
    """The text without the entry at the path, which is there; comments around it stay."""
    root = _read(text, dialect)
    assert root is not None
    node, _ = _walk(root, path[:-1])
    member = _only(node, path[-1])[0]
    number = list(node.members).index(member)
    begin = _line_start(text, member.start)
    if len(node.members) == 1:
        end = member.comma or member.end
        inner = text[node.start + 1 : begin] + text[end : node.end - 1]
        if not inner.strip():
            return text[: node.start + 1] + text[node.end - 1 :]
        return _join(text[:begin], text[end:])
    if member.comma is not None:
        rest = text[member.comma :]
        return _join(text[:begin], rest if begin < member.start else rest.lstrip(" \t"))
    before = node.members[number - 1]
    assert before.comma is not None
    begin = max(begin, before.comma)
    return _join(text[: before.comma - 1] + text[before.comma : begin], text[member.end :])


def _join(head: str, tail: str) -> str:
    """What stood around a piece that is gone; a comment that ends a line does not swallow what follows."""
    if "//" in head[head.rfind("\n") + 1 :] and not tail.lstrip(" \t").startswith(("\n", "\r")):
        return f"{head}{_newline(head)}{tail}"
    return head + tail


def is_same_but(old: str, new: str, dialect: Dialect, path: Sequence[str], prune: int = 0) -> bool:
    """Whether `new` is `old` with an entry more; `prune` objects around it may be new as well.

    Order, the spelling of numbers and keys that are there twice count.
    """
    before, after = _read(old, dialect), _read(new, dialect)
    assert after is not None
    left = _without(after, path, prune)
    return bool(left == (("object", ()) if before is None else before.exact()))


def _without(node: Node, path: Sequence[str], prune: int) -> Any:
    pairs: list[tuple[str, Any]] = []
    for member in node.members:
        if member.key != path[0]:
            pairs.append((member.key, member.value.exact()))
        elif len(path) > 1:
            rest = _without(member.value, path[1:], prune)
            if rest != ("object", ()) or len(path) - 1 > prune:
                pairs.append((member.key, rest))
    return ("object", tuple(pairs))


def _only(node: Node, key: str) -> list[Member]:
    found = node.named(key)
    if len(found) > 1:
        raise CannotEdit(f"The key {key!r} is there {len(found)} times, and clients may read either one.")
    return found


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _line_start(text: str, offset: int) -> int:
    """The line break before the offset, where only blanks lie between; else the offset."""
    at = offset
    while at and text[at - 1] in " \t":
        at -= 1
    if at and text[at - 1] == "\n":
        return at - 2 if text[at - 2 : at - 1] == "\r" else at - 1
    return offset


def _place(text: str, root: Node, node: Node, member: Mapping[str, Any]) -> tuple[int, str]:
    """Where a member goes into an object, and how it is written there."""
    newline = _newline(text)
    unit = _unit(text, root)
    members = node.members
    if not members:
        offset = _rest_end(text, node.start + 1)
        base = _indent_at(text, node.start)
        begin = newline + base + unit
        closing = "" if "\n" in text[offset : node.end - 1] else newline + base
        if "\n" not in text and root is not node:
            return node.start + 1, _render(member, None, "", text)
        return offset, begin + _render(member, unit, begin, text) + closing
    last = members[-1]
    if "\n" in text[node.start : members[0].start]:
        begin = newline + _indent_at(text, members[0].start)
        written = _render(member, unit, begin, text)
    else:
        begin = " " if _is_spaced(text) else ""
        written = _render(member, None, "", text)
    if last.comma is not None:
        offset = _rest_end(text, last.comma)
        if "//" in text[last.comma : offset] and "\n" not in begin:
            begin = newline + _indent_at(text, last.start)
        return offset, begin + written
    if _COMMENT.match(text, last.end):  # it belongs to the member before it
        return _rest_end(text, node.start + 1), begin + written + ","
    return last.end, "," + begin + written


def _rest_end(text: str, offset: int) -> int:
    """Behind the comments that follow an offset on its line."""
    found = _REST.match(text, offset)
    return found.end() if found is not None else offset


def _unit(text: str, root: Node) -> str:
    """One step of indentation: that of the first member which begins a line."""
    if root.members and "\n" in text[root.start : root.members[0].start]:
        inner, outer = _indent_at(text, root.members[0].start), _indent_at(text, root.start)
        if len(inner) > len(outer):
            return inner[len(outer) :]
    return "  "


def _indent_at(text: str, offset: int) -> str:
    """The blanks that the line of an offset begins with."""
    found = _INDENT.match(text, text.rfind("\n", 0, offset) + 1)
    return found[0].lstrip("\ufeff") if found is not None else ""


def _is_spaced(text: str) -> bool:
    return '": ' in text or ", " in text


def _render(member: Mapping[str, Any], unit: str | None, begin: str, text: str) -> str:
    """The member without braces: on lines that begin like `begin`, or on one."""
    if unit is None:
        separators = (", ", ": ") if _is_spaced(text) else (",", ":")
        return json.dumps(member, ensure_ascii=False, separators=separators)[1:-1]
    lines = json.dumps(member, indent=unit, ensure_ascii=False).split("\n")[1:-1]
    return begin.join(line[len(unit) :] for line in lines)


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
    begin = len(commonprefix([old, new]))
    most = min(len(old), len(new)) - begin
    same = len(commonprefix([old[::-1][:most], new[::-1][:most]]))
    offsets = _offsets(text, node)
    middle = _escape(new[begin : len(new) - same])
    return text[: offsets[begin]] + middle + text[offsets[len(old) - same] :]


def is_same_embedded_but(old: str, new: str, key: str, path: Sequence[str], prune: int = 0) -> bool:
    """Whether `new` is `old` with an entry more in the inner document."""
    before, after = (
        [(member.key, member.value.exact()) for member in root.members if member.key != key] if root else []
        for root in (_read(old, "json"), _read(new, "json"))
    )
    if before != after:
        return False
    return is_same_but(read_embedded(old, key), read_embedded(new, key) or "{}", "json", path, prune)


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


def _offsets(text: str, node: Node) -> list[int]:
    """Where each character of a string begins in the text, and where it ends."""
    inside = text[node.start + 1 : node.end - 1]
    begins = [node.start + 1 + found.start() for found in _UNIT.finditer(inside)]
    return [*begins, node.end - 1]


def _escape(text: str) -> str:
    return json.dumps(text)[1:-1]
