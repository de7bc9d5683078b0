"""Edits of a YAML mapping by text span: what is not named stays byte for byte.

An edit is (start, end, replacement); positions count characters of the YAML text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import yaml

from lithos.core.yaml_entries import Entry, end_of, is_flow, line_end, line_start
from lithos.core.yaml_text import is_scalar, write_block, write_entry, write_inline

Edit = tuple[int, int, str]

_DASH: Final = re.compile(r"([ \t]*)-(?=[ \t\r\n])")
_HEADER_COMMENT: Final = re.compile(r"[|>][-+0-9]*([ \t]+#[^\r\n]*)")


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """`source` with the non-overlapping `edits` made."""
    parts: list[str] = []
    position = 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        parts += (source[position:start], text)
        position = end
    return "".join((*parts, source[position:]))


class SpanEditor:
    """Edits the entries of one block mapping; `read_item` gives list items as values to compare."""

    def __init__(self, source: str, newline: str, read_item: Callable[[str, yaml.Node], Any]) -> None:
        self._source = source
        self._newline = newline
        self._read_item = read_item

    def remove(self, entry: Entry) -> list[Edit]:
        """Drop the entry's lines."""
        return [(entry.line_start, entry.line_end, "")]

    def add(self, values: Mapping[str, Any], indent: str) -> list[Edit]:
        """New entries behind all others."""
        text = "".join(write_entry(key, value, indent, self._newline) for key, value in values.items())
        return [(len(self._source), len(self._source), text)]

    def replace(self, entry: Entry, value: Any) -> list[Edit]:
        """Put `value` in the place of the entry's, in its style."""
        node = entry.node
        if entry.colon is None:
            return [(entry.line_start, entry.line_end, self._whole(entry, value))]
        if node.start_mark.index < entry.colon:
            return [(entry.start, entry.end, self._spaced(entry, write_inline(value)))]
        if isinstance(node, yaml.ScalarNode):
            return self._replace_scalar(entry, node, value)
        if is_flow(node) or "\n" not in self._source[entry.colon : entry.start]:
            return [(entry.start, entry.end, self._inline_list(entry, value))]
        if is_scalar(value) or not value:
            return self._replace_block_by_line(entry, entry.colon, value)
        if isinstance(node, yaml.SequenceNode) and not isinstance(value, Mapping):
            edits = self._edit_items(entry, node, value)
            if edits is not None:
                return edits
        return self._replace_block(entry, value)

    def _whole(self, entry: Entry, value: Any) -> str:
        return write_entry(entry.key, value, self._indent(entry.line_start), self._newline)

    def _indent(self, line_start: int) -> str:
        line = self._source[line_start : line_end(self._source, line_start)]
        return line[: len(line) - len(line.lstrip(" "))]

    def _spaced(self, entry: Entry, text: str) -> str:
        return f" {text}" if entry.start == entry.colon else text

    def _replace_scalar(self, entry: Entry, node: yaml.ScalarNode, value: Any) -> list[Edit]:
        comment = _HEADER_COMMENT.match(self._source, entry.start) if node.style in ("|", ">") else None
        quoting = {"'": "'", '"': '"'}.get(node.style or "", "" if node.value and not comment else None)
        text = write_inline(value, None if node.style in ("|", ">") else quoting)
        return [(entry.start, entry.end, self._spaced(entry, text) + (comment[1] if comment else ""))]

    def _inline_list(self, entry: Entry, value: Any) -> str:
        """`value` on one line; items of the old list keep their quoting."""
        node = entry.node
        if not isinstance(node, yaml.SequenceNode) or is_scalar(value) or isinstance(value, Mapping):
            return write_inline(value)
        known = {
            _identity(self._read_item(entry.key, item)): self._text_of(item)
            for item in node.value
            if isinstance(item, yaml.ScalarNode) and item.start_mark.index >= entry.start
        }
        return "[" + ", ".join(known.get(_identity(item)) or write_inline(item) for item in value) + "]"

    def _text_of(self, node: yaml.Node) -> str:
        return self._source[node.start_mark.index : node.end_mark.index]

    def _replace_block_by_line(self, entry: Entry, colon: int, value: Any) -> list[Edit]:
        first = line_start(self._source, entry.start)
        return [(colon, colon, " " + write_inline(value)), (first, entry.line_end, "")]

    def _replace_block(self, entry: Entry, value: Any) -> list[Edit]:
        first = line_start(self._source, entry.start)
        indent, outer = self._indent(first), self._indent(entry.line_start)
        if indent == outer and isinstance(value, Mapping):  # only lists may stand level with their key
            indent += "  "
        return [(first, entry.line_end, write_block(value, indent, self._newline))]

    def _edit_items(self, entry: Entry, node: yaml.SequenceNode, wanted: Sequence[Any]) -> list[Edit] | None:
        """Edits of single lines, so that items that stay keep theirs; None if items share lines."""
        lines = self._item_lines(node)
        if lines is None:
            return None
        indent = self._indent(lines[0][0])
        old = [_identity(self._read_item(entry.key, item)) for item in node.value]
        new = [_identity(item) for item in wanted]
        edits: list[Edit] = []
        for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            place = lines[i][0] if i < len(lines) else lines[-1][1]
            text = write_block(wanted[k:m], indent, self._newline)
            dropped = lines[i:j]
            edits += [(place, dropped[0][1] if dropped else place, text)]
            edits += [(start, end, "") for start, end in dropped[1:]]
        return edits

    def _item_lines(self, node: yaml.SequenceNode) -> list[tuple[int, int]] | None:
        lines: list[tuple[int, int]] = []
        position = 0
        for item in node.value:
            start = line_start(self._source, item.start_mark.index)
            if start < position or not _DASH.match(self._source, start):
                return None
            position = line_end(self._source, end_of(self._source, item))
            lines.append((start, position))
        return lines


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
