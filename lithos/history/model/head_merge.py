"""Three-way merges of frontmatter by key. Comments, quoting and order stay as written.

If only one side changed a key, its value is used. Lists are merged as sets. The greater version and the
greater update time are used. If both sides changed a value differently, it is merged by lines where the
result is unambiguous, as in multi-line texts. Otherwise the value is a conflict, with markers in the
frontmatter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import yaml
from attrs import frozen

from lithos.history.model.conflict_markers import Marked, Markers, mark_texts
from lithos.kernel.values.times import parse_time
from lithos.notes.format.merging import is_same, merge_items, token_of
from lithos.text.yaml.edit import KeyChanges, apply_changes
from lithos.text.yaml.nodes import UnreadableNote, ValueReader, YamlMapping, is_merge, read_mapping

_UPDATED: Final = "updated_at"
#: The greater value of each of these keys is used, because every write sets the key again.
_OWN_UPDATED: Final = f"lithos_{_UPDATED}"
_GREATER: Final = frozenset(("version", _UPDATED, "lithos_version", _OWN_UPDATED))
#: Keys whose value may be a single text, which then counts as a list with one item.
_LISTS: Final = frozenset(
    prefix + key
    for key in ("tags", "aliases", "contributors", "derived_from_ids", "entities")
    for prefix in ("", "lithos_")
)


class _NotByKey(Exception):
    """The error raised when a frontmatter cannot be split into keys."""


@frozen
class _Entry:
    """A key with its own lines, its parsed value, and the blank lines and comments before it."""

    lead: str
    text: str
    value: Any

    @property
    def whole(self) -> str:
        return self.lead + self.text


@frozen
class _Head:
    """A frontmatter split by key. `tail` is the text after the last key."""

    entries: Mapping[str, _Entry]
    tail: str


def merge_heads(base: str, ours: str, theirs: str, markers: Markers) -> Marked:
    """Merge two changes of a frontmatter. The texts have no `---` lines, and their line break is LF."""
    try:
        return _ByKey(_take_apart(base), _take_apart(ours), _take_apart(theirs), markers).merge()
    except (_NotByKey, UnreadableNote):
        return _by_lines(base, ours, theirs, markers)


def _by_lines(base: str, ours: str, theirs: str, markers: Markers) -> Marked:
    """Merge by lines. If there is no conflict, the result must be readable if both sides were."""
    marked = mark_texts(base, ours, theirs, markers)
    if marked.conflicts or _is_plain(marked.text) or not (_is_plain(ours) and _is_plain(theirs)):
        return marked
    return _conflict(ours, theirs, markers)


def _is_plain(text: str) -> bool:
    """Return whether the text is valid frontmatter without duplicate keys."""
    try:
        root = read_mapping(text).root
    except UnreadableNote:
        return False
    keys = [key.value for key, _ in root.value if isinstance(key, yaml.ScalarNode)] if root else []
    return len(keys) == len(set(keys))


def _conflict(ours: str, theirs: str, markers: Markers) -> Marked:
    """Return a single conflict that has both complete texts between its markers."""
    opening, middle, closing = markers.lines
    return Marked(f"{opening}\n{_ended(ours)}{middle}\n{_ended(theirs)}{closing}\n", 1)


def _ended(text: str) -> str:
    return text + "\n" if text and not text.endswith("\n") else text


def _take_apart(text: str) -> _Head:
    """Split a text into its keys.

    Raises `UnreadableNote` for invalid text. Raises `_NotByKey` unless the text is a block of `key: value`
    lines that start in the first column.
    """
    mapping = read_mapping(text)
    if mapping.root is None:
        return _Head({}, text)
    if mapping.root.flow_style:
        raise _NotByKey
    values = _values_of(mapping)
    starts: list[tuple[str, int]] = []
    for key, _ in mapping.root.value:
        if key.start_mark.column or is_merge(key):
            raise _NotByKey
        starts.append((mapping.values.text(key), key.start_mark.index))
    if len(starts) != len(values):
        raise _NotByKey
    entries: dict[str, _Entry] = {}
    lead = text[: starts[0][1]]
    for (key, start), end in zip(starts, [*(at for _, at in starts[1:]), len(text)], strict=True):
        own = _own_lines(text[start:end])
        entries[key] = _Entry(lead, _ended(own), values[key])
        lead = text[start + len(own) : end]
    return _Head(entries, lead)


def _own_lines(block: str) -> str:
    """Return the block without unindented blank lines and comments at its end."""
    lines = block.split("\n")
    kept = len(lines)
    while kept > 1 and (lines[kept - 1].startswith("#") or not lines[kept - 1].strip()):
        kept -= 1
    return block if kept == len(lines) else "\n".join(lines[:kept]) + "\n"


def _values_of(mapping: YamlMapping) -> dict[str, Any]:
    """Return the value of each key.

    For a key in `_LISTS` the value is a list of texts, whether it is written as a list or as a text with
    commas.
    """
    values = mapping.values
    return {key: _value_of(key, node, values) for key, node in mapping.nodes.items()}


def _value_of(key: str, node: yaml.Node, values: ValueReader) -> Any:
    if key in _LISTS and isinstance(node, yaml.SequenceNode):
        return [values.text(item) for item in node.value]
    value = values.value(node)
    if key in _LISTS and isinstance(value, str):
        return [item for each in value.split(",") if (item := each.strip())]
    if key in (_UPDATED, _OWN_UPDATED) and isinstance(value, str):
        with suppress(ValueError):
            return parse_time(value)
    return value


class _ByKey:
    """A merge of three versions of a frontmatter."""

    def __init__(self, base: _Head, ours: _Head, theirs: _Head, markers: Markers) -> None:
        self._base, self._ours, self._theirs = base, ours, theirs
        self._markers = markers
        self._conflicts = 0
        #: The merged values of all keys that have no conflict.
        self._said: dict[str, Any] = {}

    def merge(self) -> Marked:
        """Return the merged text. Raise `_NotByKey` if the text does not parse to the merged values."""
        parts = [self._decide(key) for key in self._order()]
        tail = _merge_comments(self._base.tail, self._ours.tail, self._theirs.tail)
        text = "".join(map(_ended, parts)) + tail
        if not self._conflicts:
            said = _values_of(read_mapping(text))
            if said.keys() != self._said.keys() or not all(
                is_same(said[key], value) for key, value in self._said.items()
            ):
                raise _NotByKey
        return Marked(text, self._conflicts)

    def _order(self) -> Iterator[str]:
        """Yield our keys in order, and also the keys that only their text has.

        A key that only their text has follows the same key as in their text.
        """
        following: dict[str | None, list[str]] = {}
        before: str | None = None
        for key in self._theirs.entries:
            if key in self._ours.entries:
                before = key
            else:
                following.setdefault(before, []).append(key)
        yield from following.get(None, ())
        for key in self._ours.entries:
            yield key
            yield from following.get(key, ())

    def _decide(self, key: str) -> str:
        """Return the merged lines of a key. The result is empty for a removed key."""
        sides = self._base, self._ours, self._theirs
        base, ours, theirs = (side.entries.get(key) for side in sides)
        if _whole(ours) == _whole(theirs) or _whole(theirs) == _whole(base):
            return self._say(key, ours)
        if _whole(ours) == _whole(base):
            return self._say(key, theirs)
        if ours is None or theirs is None:
            return self._clash(ours, theirs)
        lead = _merge_comments(base.lead if base else "", ours.lead, theirs.lead)
        chosen = self._choose(key, base, ours, theirs)
        return self._clash(ours, theirs) if chosen is None else self._say(key, _with(chosen, lead))

    def _choose(self, key: str, base: _Entry | None, ours: _Entry, theirs: _Entry) -> _Entry | None:
        """Merge a key that both sides changed, or whose comments differ.

        The result is None if both sides changed the key in conflicting ways.
        """
        was = base.text if base else ""
        if theirs.text in (ours.text, was):
            return ours
        if ours.text == was:
            return theirs
        if key in _GREATER and type(ours.value) is type(theirs.value) in (int, datetime):
            return ours if ours.value >= theirs.value else theirs
        if is_same(ours.value, theirs.value) and not _has_comment(theirs.text):
            return ours
        items = _merged_list(base.value if base else None, ours.value, theirs.value)
        return self._by_lines(key, was, ours, theirs, items) or (
            None if items is None else _rewritten(key, ours, theirs, items)
        )

    def _by_lines(
        self, key: str, was: str, ours: _Entry, theirs: _Entry, items: list[Any] | None
    ) -> _Entry | None:
        """Merge the lines of a value. No changes may overlap, and a list must have the expected items."""
        marked = mark_texts(was, ours.text, theirs.text, self._markers)
        if marked.conflicts:
            return None
        try:
            said = _values_of(read_mapping(marked.text))
        except UnreadableNote:
            return None
        if list(said) != [key] or (items is not None and not _has_items(said[key], items)):
            return None
        return _Entry("", marked.text, said[key])

    def _say(self, key: str, entry: _Entry | None) -> str:
        if entry is None:
            return ""
        self._said[key] = entry.value
        return entry.whole

    def _clash(self, ours: _Entry | None, theirs: _Entry | None) -> str:
        self._conflicts += 1
        return _conflict(_whole(ours) or "", _whole(theirs) or "", self._markers).text


def _whole(entry: _Entry | None) -> str | None:
    return None if entry is None else entry.whole


def _with(entry: _Entry, lead: str) -> _Entry:
    return _Entry(lead, entry.text, entry.value)


def _has_comment(text: str) -> bool:
    """Return whether the text may contain a comment.

    A comment is at the start of a line or follows a space.
    """
    return any(mark in text for mark in (" #", "\t#", "\n#"))


def _merge_comments(base: str, ours: str, theirs: str) -> str:
    """Merge blank lines and comments. If both sides changed them, keep the lines of both sides."""
    if theirs in (ours, base):
        return ours
    if ours == base:
        return theirs
    known = set(ours.split("\n"))
    more = [line for line in theirs.split("\n") if line.strip() and line not in known]
    return _ended(ours) + "".join(f"{line}\n" for line in more)


def _merged_list(base: Any, ours: Any, theirs: Any) -> list[Any] | None:
    """Merge a list that both sides changed, with our items first. Return None if a value is not a list."""
    if not (isinstance(ours, list) and isinstance(theirs, list)):
        return None
    return merge_items(base if isinstance(base, list) else [], theirs, ours)


def _has_items(value: Any, items: list[Any]) -> bool:
    """Return whether a list has exactly these items, in any order."""
    return isinstance(value, list) and sorted(map(token_of, value)) == sorted(map(token_of, items))


def _rewritten(key: str, ours: _Entry, theirs: _Entry, items: list[Any]) -> _Entry | None:
    """Return our text with the new items. Unchanged items keep their spelling.

    The result is None if the new text would lose a comment.
    """
    if _has_comment(theirs.text):
        return None
    mapping = read_mapping(ours.text)

    def read_item(_: str, node: yaml.Node) -> Any:
        return mapping.values.text(node) if key in _LISTS else mapping.values.value(node)

    changes = KeyChanges(values={key: items}, removed=frozenset())
    for text in apply_changes(mapping, changes, "\n", read_item):
        try:
            said = _values_of(read_mapping(text))
        except UnreadableNote:
            continue
        if list(said) == [key] and is_same(said[key], items):
            return None if _has_comment(ours.text) and not _has_comment(text) else _Entry("", text, said[key])
    return None
