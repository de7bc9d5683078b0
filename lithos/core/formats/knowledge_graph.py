"""The file of the MCP reference memory server: a JSON object a line, an entity or a relation.

`{"type": "entity", "name": ..., "entityType": ..., "observations": [...]}` and
`{"type": "relation", "from": ..., "to": ..., "relationType": ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen

from lithos.core.formats.texts import clean, clean_line

#: Characters that a wiki-link cannot have.
_UNLINKABLE: Final = frozenset("[]|#^")


class NoGraphLine(Exception):
    """The value is neither an entity nor a relation; the message says why."""


@frozen
class Entity:
    """One thing that is remembered, with what was observed of it."""

    name: str
    kind: str
    observations: tuple[str, ...]


@frozen
class Relation:
    """One relation in active voice, its type as written."""

    source: str
    target: str
    kind: str


def read_line(value: Any) -> Entity | Relation:
    """An entity or a relation; raises `NoGraphLine`."""
    if not isinstance(value, dict):
        raise NoGraphLine("it is no JSON object")
    kind = value.get("type")
    if kind == "entity":
        return _entity(value)
    if kind == "relation":
        return _relation(value)
    raise NoGraphLine(f"its type is {json.dumps(kind, default=str)[:60]}, not entity or relation")


def _entity(value: dict[str, Any]) -> Entity:
    name = clean_line(value.get("name"))
    if not name:
        raise NoGraphLine("the entity has no name")
    found = value.get("observations")
    if not isinstance(found, (list, str, type(None))):
        raise NoGraphLine("the observations are no list")
    items = [found] if isinstance(found, str) else found or []
    texts = (_observation(item) for item in items)
    return Entity(name, clean_line(value.get("entityType"), 200), tuple(filter(None, texts)))


def _observation(item: Any) -> str:
    """A text; forks of the server store an object with it, other values count as their JSON."""
    if isinstance(item, dict):
        item = next((item[key] for key in ("content", "text", "observation") if item.get(key)), item)
    if item is None:
        return ""
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return clean(text).strip()


def _relation(value: dict[str, Any]) -> Relation:
    names = [clean_line(value.get(key)) for key in ("from", "to")]
    if not all(names):
        raise NoGraphLine("the relation does not name both of its ends, `from` and `to`")
    return Relation(names[0], names[1], clean_line(value.get("relationType"), 200) or "related_to")


def entity_blocks(observations: Iterable[str], relations: Sequence[tuple[str, str]]) -> list[str]:
    """The Markdown of an entity in blocks of a list item: observations, then relations (type, target)."""
    blocks = [_item(text) for text in observations]
    if not blocks and not relations:
        return ["*No observations.*"]
    if relations:
        blocks.append("\n## Relations\n" if blocks else "## Relations\n")
        blocks += (_item(f"{kind} {link_to(target)}") for kind, target in relations)
    return blocks


def _item(text: str) -> str:
    return "- " + text.replace("\n", "\n  ")


def link_to(title: str) -> str:
    """A wiki-link to the note with the title; the title itself where no link can have it."""
    return title if _UNLINKABLE & set(title) else f"[[{title}]]"
