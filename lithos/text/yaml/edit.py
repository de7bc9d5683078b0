"""Minimal edits of YAML frontmatter: only the given keys change, and all other bytes stay the same.

`apply_changes` tries three methods, the least invasive first. First, span edits (start, end and replacement,
in characters of the YAML text) leave all other text unchanged. If anchors connect other keys to a changed
key, these keys are rewritten too. The last method rewrites all keys, which loses comments but no values.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import yaml
from attrs import evolve, frozen

from lithos.text.yaml.nodes import YamlMapping, is_merge, is_scalar, write_block, write_entry, write_inline

_COLON: Final = re.compile(r"[ \t]*:")
_ALIAS: Final = re.compile(r"\s+(\*[^\s,\[\]{}]+)")
_TRAILING_LINES: Final = re.compile(r"(?:\r?\n[ \t]*(?:#[^\n]*)?)+\Z")


Edit = tuple[int, int, str]
ReadItem = Callable[[str, yaml.Node], Any]


@frozen(kw_only=True)
class _Entry:
    """One top-level `key: value` entry.

    `start` and `end` enclose the value (for an alias, the `*name`). `line_start` and `line_end` enclose all
    lines of the entry. `colon` is the position after the colon, or None for the `? key` form.
    """

    key: str
    node: yaml.Node
    merge: bool
    line_start: int
    colon: int | None
    start: int
    end: int
    line_end: int


def _is_flow(node: yaml.Node) -> bool:
    """Return whether the node is written as `[...]` or `{...}`."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _line_end(source: str, position: int) -> int:
    """Return the position after the line break of the line at `position`."""
    found = source.find("\n", position)
    return len(source) if found < 0 else found + 1


def _line_start(source: str, position: int) -> int:
    """Return the start of the line at `position`."""
    return source.rfind("\n", 0, position) + 1


def _end_of(source: str, node: yaml.Node) -> int:
    """Return the end of the value's text. libyaml reports the next token as the end of a block value."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        return start + len(source[start:end].rstrip()) if node.style in ("|", ">") else end
    if _is_flow(node) or not node.value:
        return int(end)
    last = node.value[-1] if isinstance(node, yaml.SequenceNode) else node.value[-1][1]
    if last.start_mark.index >= start:
        return _end_of(source, last)
    return start + len(_TRAILING_LINES.sub("", source[start:end]))


def _nodes_within(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the node and all nodes below it, without duplicates."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, yaml.SequenceNode):
            waiting += current.value
        elif isinstance(current, yaml.MappingNode):
            waiting += (part for pair in current.value for part in pair)


#: Maximum number of old and new list items, counted together, that are compared thoroughly.
_COMPARED: Final = 200
_DASH: Final = re.compile(r"([ \t]*)-(?=[ \t\r\n])")
_HEADER_COMMENT: Final = re.compile(r"[|>][-+0-9]*([ \t]+#[^\r\n]*)")


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Return `source` with `edits` applied. Edits must not overlap."""
    parts: list[str] = []
    position = 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        parts += (source[position:start], text)
        position = end
    return "".join((*parts, source[position:]))


@frozen(kw_only=True)
class KeyChanges:
    """New values by key, and the keys to remove. Missing keys are added in this order."""

    values: Mapping[str, Any]
    removed: frozenset[str]


def apply_changes(
    mapping: YamlMapping, changes: KeyChanges, newline: str, read_item: ReadItem
) -> Iterator[str]:
    """Yield the YAML text after `changes` for each method, the least invasive first.

    The caller uses the first text that reads back correctly.

    `read_item(key, node)` returns the value of a list item in the form that `changes.values` uses.
    """
    if mapping.root is None or not _is_flow(mapping.root):
        editor = _Editor(mapping, newline, read_item)
        yield editor.edit(changes, drops_merges=False)
        if "&" in mapping.source:
            yield editor.edit(editor.untie(changes), drops_merges=True)
    values = {key: mapping.values.value(node) for key, node in mapping.nodes.items()} | dict(changes.values)
    yield "".join(
        write_entry(key, value, "", newline) for key, value in values.items() if key not in changes.removed
    )


class _Editor:
    """Edits the entries of one block mapping.

    `read_item` returns the values of list items, which are compared with new values.
    """

    def __init__(self, mapping: YamlMapping, newline: str, read_item: ReadItem) -> None:
        self._mapping, self._source = mapping, mapping.source
        self._newline = newline
        self._read_item = read_item
        pairs = mapping.root.value if mapping.root is not None else ()
        self._entries = [self._locate(key, node) for key, node in pairs]
        self._indentation = " " * pairs[0][0].start_mark.column if pairs else ""

    def _locate(self, key: yaml.Node, node: yaml.Node) -> _Entry:
        source = self._source
        colon = _COLON.match(source, key.end_mark.index)
        start, end = node.start_mark.index, _end_of(source, node)
        if colon and start < colon.end():  # The value is an alias. Its node is the node of the anchor.
            alias = _ALIAS.match(source, colon.end())
            start, end = alias.span(1) if alias else (colon.end(), colon.end())
        return _Entry(
            key=self._mapping.values.text(key),
            node=node,
            merge=is_merge(key),
            line_start=_line_start(source, key.start_mark.index),
            colon=colon.end() if colon else None,
            start=start,
            end=end,
            line_end=_line_end(source, end),
        )

    def edit(self, changes: KeyChanges, *, drops_merges: bool) -> str:
        """Return the text with the changes applied. New entries are appended."""
        values = changes.values
        effective = {entry.key: entry for entry in self._entries if not entry.merge}  # last equal key wins
        edits: list[Edit] = []
        for entry in self._entries:
            if drops_merges if entry.merge else entry.key in changes.removed:
                edits.append((entry.line_start, entry.line_end, ""))
            elif effective.get(entry.key) is entry and entry.key in values:
                edits += self._replace(entry, values[entry.key])
        missing = (
            write_entry(key, value, self._indentation, self._newline)
            for key, value in values.items()
            if key not in effective
        )
        return apply_edits(self._source, [*edits, (len(self._source), len(self._source), "".join(missing))])

    def untie(self, changes: KeyChanges) -> KeyChanges:
        """Return `changes` extended by dependent keys.

        Dependent keys are the keys that depend on changed anchors, and all keys from merge keys.
        """
        changed = set(changes.values) | changes.removed
        explicit = {entry.key for entry in self._entries if not entry.merge}
        leaning: set[str] = set()
        while more := (self._leaning(changed | leaning) & explicit) - changed - leaning:
            leaning |= more
        restated = {
            key: self._mapping.values.value(node)
            for key, node in self._mapping.nodes.items()
            if (key in leaning or key not in explicit) and key not in changed
        }
        return evolve(changes, values={**changes.values, **restated})

    def _leaning(self, changed: set[str]) -> set[str]:
        spans = [
            (entry.line_start, entry.line_end)
            for entry in self._entries
            if entry.key in changed or entry.merge
        ]
        return {
            entry.key
            for entry in self._entries
            for node in _nodes_within(entry.node)
            if any(start <= node.start_mark.index < end for start, end in spans)
        }

    def _replace(self, entry: _Entry, value: Any) -> list[Edit]:
        """Return the edits that replace the value of an entry. The style of the value is kept."""
        node, colon = entry.node, entry.colon
        if colon is None:
            text = write_entry(entry.key, value, self._indent(entry.line_start), self._newline)
            return [(entry.line_start, entry.line_end, text)]
        space = " " if entry.start == colon else ""
        if node.start_mark.index < colon:
            return [(entry.start, entry.end, space + write_inline(value))]
        if isinstance(node, yaml.ScalarNode):
            return [(entry.start, entry.end, space + self._scalar(entry, node, value))]
        if _is_flow(node) or "\n" not in self._source[colon : entry.start]:
            return [(entry.start, entry.end, self._inline_list(entry, value))]
        first = _line_start(self._source, entry.start)
        if is_scalar(value) or not value:
            return [(colon, colon, " " + write_inline(value)), (first, entry.line_end, "")]
        if isinstance(node, yaml.SequenceNode) and not isinstance(value, Mapping):
            edits = self._edit_items(entry, node, value)
            if edits is not None:
                return edits
        indent = self._indent(first)
        if indent == self._indent(entry.line_start) and isinstance(value, Mapping):
            indent += "  "  # Only lists may be indented like their key.
        return [(first, entry.line_end, write_block(value, indent, self._newline))]

    def _indent(self, line_start: int) -> str:
        line = self._source[line_start : _line_end(self._source, line_start)]
        return line[: len(line) - len(line.lstrip(" "))]

    def _scalar(self, entry: _Entry, node: yaml.ScalarNode, value: Any) -> str:
        """Return `value` in the old quoting. A comment in the header of a block scalar is kept."""
        if node.style not in ("|", ">"):
            return write_inline(value, node.style or ("" if node.value else None))
        comment = _HEADER_COMMENT.match(self._source, entry.start)
        return write_inline(value) + (comment[1] if comment else "")

    def _inline_list(self, entry: _Entry, value: Any) -> str:
        """Return `value` on one line. Items that were in the old list keep their quoting."""
        node = entry.node
        if not isinstance(node, yaml.SequenceNode) or is_scalar(value) or isinstance(value, Mapping):
            return write_inline(value)
        known = {
            _identity(self._read_item(entry.key, item)): self._source[
                item.start_mark.index : item.end_mark.index
            ]
            for item in node.value
            if isinstance(item, yaml.ScalarNode) and item.start_mark.index >= entry.start
        }
        return "[" + ", ".join(known.get(_identity(item)) or write_inline(item) for item in value) + "]"

    def _edit_items(self, entry: _Entry, node: yaml.SequenceNode, wanted: Sequence[Any]) -> list[Edit] | None:
        """Return edits of single lines, so that the lines of unchanged items do not change.

        Return None if items share lines.
        """
        lines: list[tuple[int, int]] = []
        for item in node.value:
            start = _line_start(self._source, item.start_mark.index)
            if (lines and start < lines[-1][1]) or not _DASH.match(self._source, start):
                return None
            lines.append((start, _line_end(self._source, _end_of(self._source, item))))
        indent = self._indent(lines[0][0])
        old = [_identity(self._read_item(entry.key, item)) for item in node.value]
        new = [_identity(item) for item in wanted]
        edits: list[Edit] = []
        for i, j, k, m in _differences(old, new):
            place = lines[i][0] if i < len(lines) else lines[-1][1]
            text = write_block(wanted[k:m], indent, self._newline)
            dropped = lines[i:j]
            edits += [(place, dropped[0][1] if dropped else place, text)]
            edits += [(start, end, "") for start, end in dropped[1:]]
        return edits


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield bounds in order: `old[i:j]` must become `new[k:m]`. All other items are equal.

    For short lists, the fewest changes are searched for, which may take cubic time. For long lists, each new
    item is matched with the next equal old item.
    """
    if len(old) + len(new) <= _COMPARED:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        yield from ((i, j, k, m) for tag, i, j, k, m in codes if tag != "equal")
        return
    i = k = 0
    for j, m in [*_common(old, new), (len(old), len(new))]:
        if j > i or m > k:
            yield i, j, k, m
        i, k = j + 1, m + 1


def _common(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of equal items, in increasing order on both sides."""
    places: dict[str, deque[int]] = {}
    for place, item in enumerate(old):
        places.setdefault(item, deque()).append(place)
    last = -1
    for position, item in enumerate(new):
        waiting = places.get(item, deque())
        while waiting and waiting[0] <= last:
            waiting.popleft()
        if waiting:
            last = waiting.popleft()
            yield last, position


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
