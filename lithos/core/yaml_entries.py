"""Where the top-level entries of a YAML mapping stand in its text.

Positions count characters of the YAML text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml
from attrs import frozen

from lithos.core.yaml_nodes import YamlMapping, is_merge

_COLON: Final = re.compile(r"[ \t]*:")
_ALIAS: Final = re.compile(r"\s+(\*[^\s,\[\]{}]+)")
_TRAILING_LINES: Final = re.compile(r"(?:\r?\n[ \t]*(?:#[^\n]*)?)+\Z")


@frozen(kw_only=True)
class Entry:
    """One top-level `key: value`.

    `start` and `end` enclose the value (of an alias: the `*name`), `line_start` and `line_end` all
    lines of the entry. `colon` is the position behind the colon, None for the `? key` form.
    """

    key: str
    node: yaml.Node
    merge: bool
    line_start: int
    colon: int | None
    start: int
    end: int
    line_end: int


def locate_entries(mapping: YamlMapping) -> list[Entry]:
    """The entries of a block mapping in the order of the text."""
    return [_locate(mapping, key, node) for key, node in mapping.root.value] if mapping.root else []


def _locate(mapping: YamlMapping, key: yaml.Node, node: yaml.Node) -> Entry:
    source = mapping.source
    colon = _COLON.match(source, key.end_mark.index)
    start, end = node.start_mark.index, end_of(source, node)
    if colon and start < colon.end():  # an alias: the node is that of its anchor
        alias = _ALIAS.match(source, colon.end())
        start, end = alias.span(1) if alias else (colon.end(), colon.end())
    return Entry(
        key=mapping.values.text(key),
        node=node,
        merge=is_merge(key),
        line_start=line_start(source, key.start_mark.index),
        colon=colon.end() if colon else None,
        start=start,
        end=end,
        line_end=line_end(source, end),
    )


def is_flow(node: yaml.Node) -> bool:
    """True for `[...]` and `{...}`."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def line_end(source: str, position: int) -> int:
    """Behind the line break of the line at `position`."""
    found = source.find("\n", position)
    return len(source) if found < 0 else found + 1


def line_start(source: str, position: int) -> int:
    """The first character of the line at `position`."""
    return source.rfind("\n", 0, position) + 1


def end_of(source: str, node: yaml.Node) -> int:
    """Where the value's last character stands; libyaml ends block values at the next token."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        return start + len(source[start:end].rstrip()) if node.style in ("|", ">") else end
    if is_flow(node) or not node.value:
        return int(end)
    last = node.value[-1] if isinstance(node, yaml.SequenceNode) else node.value[-1][1]
    if last.start_mark.index >= start:
        return end_of(source, last)
    return start + len(_TRAILING_LINES.sub("", source[start:end]))


def nodes_within(node: yaml.Node) -> Iterator[yaml.Node]:
    """The node and all below it, each once."""
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
