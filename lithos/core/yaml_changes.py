"""Changes to the keys of a frontmatter, made by ever less gentle means.

Span edits leave all else alone. Where anchors tie a changed key to others, those are written out
too. Last comes a plain restatement of all keys, which loses comments but no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml
from attrs import evolve, frozen

from lithos.core.yaml_entries import Entry, is_flow, locate_entries, nodes_within
from lithos.core.yaml_nodes import YamlMapping
from lithos.core.yaml_spans import Edit, SpanEditor, apply_edits
from lithos.core.yaml_text import write_entry

ReadItem = Callable[[str, yaml.Node], Any]


@frozen(kw_only=True)
class Changes:
    """New values by key, in the order in which missing keys are added, and the keys to drop."""

    values: Mapping[str, Any]
    removed: frozenset[str]
    drops_merges: bool = False


def apply_changes(mapping: YamlMapping, changes: Changes, newline: str, read_item: ReadItem) -> Iterator[str]:
    """The YAML text after `changes`, gentlest attempt first; keep the first that reads back right.

    `read_item(key, node)` is a list item's value as `changes.values` would hold it.
    """
    if mapping.root is None or not is_flow(mapping.root):
        editor = SpanEditor(mapping.source, newline, read_item)
        entries = locate_entries(mapping)
        yield _edit(mapping, entries, changes, editor)
        if "&" in mapping.source:
            yield _edit(mapping, entries, _untie(mapping, entries, changes), editor)
    yield _restate(mapping, changes, newline)


def _edit(mapping: YamlMapping, entries: list[Entry], changes: Changes, editor: SpanEditor) -> str:
    effective = {entry.key: entry for entry in entries if not entry.merge}  # of equal keys the last counts
    edits: list[Edit] = []
    for entry in entries:
        if changes.drops_merges if entry.merge else entry.key in changes.removed:
            edits += editor.remove(entry)
        elif effective.get(entry.key) is entry and entry.key in changes.values:
            edits += editor.replace(entry, changes.values[entry.key])
    missing = {key: value for key, value in changes.values.items() if key not in effective}
    return apply_edits(mapping.source, edits + editor.add(missing, _indent(mapping)))


def _indent(mapping: YamlMapping) -> str:
    root = mapping.root
    return " " * root.value[0][0].start_mark.column if root is not None and root.value else ""


def _untie(mapping: YamlMapping, entries: list[Entry], changes: Changes) -> Changes:
    """`changes` plus the keys that lean on anchors of changed ones, and all that merge keys bring in."""
    changed = set(changes.values) | changes.removed
    explicit = {entry.key for entry in entries if not entry.merge}
    leaning: set[str] = set()
    while more := (_leaning(entries, changed | leaning) & explicit) - changed - leaning:
        leaning |= more
    restated = {
        key: mapping.values.value(node)
        for key, node in mapping.nodes.items()
        if (key in leaning or key not in explicit) and key not in changed
    }
    return evolve(changes, values={**changes.values, **restated}, drops_merges=True)


def _leaning(entries: list[Entry], changed: set[str]) -> set[str]:
    spans = [(entry.line_start, entry.line_end) for entry in entries if entry.key in changed or entry.merge]
    return {
        entry.key
        for entry in entries
        if any(
            start <= node.start_mark.index < end for node in nodes_within(entry.node) for start, end in spans
        )
    }


def _restate(mapping: YamlMapping, changes: Changes, newline: str) -> str:
    values = {key: mapping.values.value(node) for key, node in mapping.nodes.items()} | dict(changes.values)
    return "".join(
        write_entry(key, value, "", newline) for key, value in values.items() if key not in changes.removed
    )
