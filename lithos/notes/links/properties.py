"""Links in the properties of a note. They may be in quoted or unquoted texts, in lists and in mappings.

YAML reads an unquoted `up: [[Note]]` as a nested list, but the person who wrote it means a link. A changed
property is written in its old style. If the new text would not read back correctly in that style, it is put
in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Final

import yaml
from attrs import frozen

from lithos.notes.links.forms import WIKI
from lithos.text.yaml.edit import Edit, apply_edits
from lithos.text.yaml.layout import FRONTMATTER, Layout, read_layout
from lithos.text.yaml.nodes import UnreadableNote, YamlMapping, write_text

#: The bytes with which frontmatter begins.
_BEGINS: Final = (b"---", b"\xef\xbb\xbf---")
_ENDS: Final = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
#: Texts of which every link contains at least one.
_MARKS: Final = ("[[", "](")
_MARKS_IN_BYTES: Final = (b"[[", b"](")

#: Parts of an unquoted link because of which YAML would not read the link as one text.
_NO_LIST: Final = re.compile(r"[,{}#]|:\s|^\[\[[^\w(/.]")


@frozen
class Property:
    """A frontmatter text that may contain links, with its position in the YAML source.

    `style` is the quote character or block character. It is None for a link that YAML reads as a list, and
    for a line of unreadable frontmatter.
    """

    value: str
    start: int
    end: int
    style: str | None


def properties_in(data: bytes) -> list[Property]:
    """Return the texts with links in the frontmatter of a file.

    Return an empty list if the file cannot be read.
    """
    if not data.startswith(_BEGINS):
        return []
    end = _last_end(data)
    if not any(data.find(mark, 0, end) >= 0 for mark in _MARKS_IN_BYTES):
        return []
    try:
        return list(properties_of(read_layout(data)))
    except UnreadableNote:
        return []


def _last_end(data: bytes) -> int:
    found = _ENDS.search(data, data.index(b"---") + 3)
    return found.end() if found else 0


def properties_of(layout: Layout) -> Iterator[Property]:
    """Yield the texts with links in a frontmatter, in order. Malformed frontmatter is read line by line."""
    source = layout.yaml
    if not any(mark in source for mark in _MARKS):
        return
    try:
        mapping: YamlMapping = FRONTMATTER.load(source)
    except UnreadableNote:
        yield from _lines_of(source)
        return
    if mapping.root is not None:
        yield from _texts_below(mapping.root, source)


#: Callback that returns the edits for the links in the source of a property.
Rewrite = Callable[[str, Property], list[Edit]]


def _lines_of(source: str) -> Iterator[Property]:
    start = 0
    for line in source.splitlines(keepends=True):
        if _has_mark(line) and not line.lstrip().startswith("#"):
            yield Property(line, start, start + len(line), None)
        start += len(line)


def _has_mark(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


def _texts_below(root: yaml.Node, source: str) -> Iterator[Property]:
    for node, value in _walk(root, source):
        start, end = node.start_mark.index, node.end_mark.index
        if value is not None and _has_mark(source[start:end]):
            style = node.style or "" if isinstance(node, yaml.ScalarNode) else None
            yield Property(value, start, end, style)


def _walk(root: yaml.Node | None, source: str) -> Iterator[tuple[yaml.Node, str | None]]:
    """Yield all nodes except keys, with the values of texts. Each node is yielded once.

    A link that YAML reads as a list counts as a text.
    """
    seen: set[int] = set()
    waiting = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.ScalarNode):
            yield node, node.value
        elif isinstance(node, yaml.MappingNode):
            yield node, None
            waiting += (value for _, value in reversed(node.value))
        elif _is_flow_list(node) and source.startswith("[[", start) and WIKI.fullmatch(source, start, end):
            yield node, source[start:end]
        else:
            yield node, None
            waiting += reversed(node.value)


def _is_flow_list(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode) and bool(node.flow_style)


def property_edits(layout: Layout, rewrite: Rewrite) -> list[Edit]:
    """Return the edits of the whole text that change the links in its properties.

    `rewrite` returns the edits for one property.

    Positions that `rewrite` returns are relative to the source of a property. Return an empty list if the
    edits would change the meaning of the frontmatter.
    """
    source = layout.yaml
    changed = {
        each: edits
        for each in properties_of(layout)
        if (edits := rewrite(source[each.start : each.end], each))
    }
    for in_quotes in (False, True) if changed else ():
        made = [edit for each, edits in changed.items() for edit in _written(each, source, edits, in_quotes)]
        if _reads_right(source, apply_edits(source, made), changed):
            return [(layout.yaml_start + start, layout.yaml_start + end, text) for start, end, text in made]
    return []


def _written(each: Property, source: str, edits: list[Edit], in_quotes: bool) -> list[Edit]:
    """Return the edits for the source of a property, written in its style.

    If the property does not have a style, its whole text is put in double quotes.
    """
    written = source[each.start : each.end]
    if in_quotes and not each.style and "\n" not in written:
        return [(each.start, each.end, write_text(apply_edits(written, edits), '"'))]
    escape = _ESCAPES.get(each.style or "", str)
    return [(each.start + start, each.start + end, escape(text)) for start, end, text in edits]


_ESCAPES: Final[dict[str, Callable[[str], str]]] = {
    "'": lambda text: text.replace("'", "''"),
    '"': lambda text: write_text(text, '"')[1:-1],
}


def _reads_right(before: str, after: str, changed: Mapping[Property, list[Edit]]) -> bool:
    """Return whether a changed frontmatter has the same meaning, except for the new links.

    Malformed frontmatter is not parsed.
    """
    try:
        old: YamlMapping = FRONTMATTER.load(before)
    except UnreadableNote:
        return True
    try:
        new: YamlMapping = FRONTMATTER.load(after)
    except UnreadableNote:
        return False
    edits = {each.start: made for each, made in changed.items()}
    pairs = zip_longest(_walk(old.root, before), _walk(new.root, after))
    return old.nodes.keys() == new.nodes.keys() and all(_is_right(one, two, edits) for one, two in pairs)


def _is_right(
    old: tuple[yaml.Node, str | None] | None,
    new: tuple[yaml.Node, str | None] | None,
    edits: Mapping[int, list[Edit]],
) -> bool:
    if old is None or new is None:
        return False
    made = edits.get(old[0].start_mark.index) if old[1] is not None else None
    if made is None:
        return old[1] == new[1] and (old[0].tag == new[0].tag)
    is_one = isinstance(new[0], yaml.ScalarNode) or _NO_LIST.search(new[1] or "") is None
    return is_one and new[1] is not None and all(text in new[1] for _, _, text in made)


def decode(text: str, style: str | None) -> str:
    """Return a part of a property's source, decoded."""
    if style == "'":
        return text.replace("''", "'")
    if style == '"' and "\\" in text:
        return _decode_double(text)
    return text


def _decode_double(text: str) -> str:
    try:
        mapping: YamlMapping = FRONTMATTER.load(f'x: "{text}"')
    except UnreadableNote:
        return text
    return str(mapping.nodes["x"].value)
