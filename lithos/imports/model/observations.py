"""Observations and relations in the formats of basic-memory and of the MCP reference memory server.

A basic-memory note states `- [category] text #tag (context)` and `- relation_type [[Target]] (context)`. The
headings `Observations` and `Relations` are optional: list items count anywhere, except in code and quotes. A
link inside other text is not a relation.

A file of the MCP reference memory server has one JSON object per line. An object is an entity or a relation:
`{"type": "entity", "name": ..., "entityType": ..., "observations": [...]}` and `{"type": "relation", "from":
..., "to": ..., "relationType": ...}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen

from lithos.imports.model.texts import clean, clean_line, relation_type, tag_of
from lithos.kernel.values.limits import NAME
from lithos.text.markdown import mask_code
from lithos.text.pieces import matches_in_lines

#: Characters that a wiki-link cannot contain.
_UNLINKABLE: Final = frozenset("[]|#^")


class NoGraphLine(Exception):
    """Error: a value is neither an entity nor a relation. The message is the reason."""


@frozen
class Entity:
    """One entity with its observations."""

    name: str
    kind: str
    observations: tuple[str, ...]


@frozen
class Relation:
    """One relation, with its type as written in the file."""

    source: str
    target: str
    kind: str


def read_line(value: Any) -> Entity | Relation:
    """Return the entity or relation that a JSON value describes. Raises `NoGraphLine`."""
    if not isinstance(value, dict):
        raise NoGraphLine("the line is not a JSON object")
    kind = value.get("type")
    if kind == "entity":
        return _entity(value)
    if kind == "relation":
        return _relation(value)
    raise NoGraphLine(f"the type is {json.dumps(kind, default=str)[:60]}, not entity or relation")


def _entity(value: dict[str, Any]) -> Entity:
    name = clean_line(value.get("name"))
    if not name:
        raise NoGraphLine("the entity has no name")
    found = value.get("observations")
    if not isinstance(found, (list, str, type(None))):
        raise NoGraphLine("the observations are not a list")
    items = [found] if isinstance(found, str) else found or []
    texts = (_observation(item) for item in items)
    return Entity(name, clean_line(value.get("entityType"), 200), tuple(filter(None, texts)))


def _observation(item: Any) -> str:
    """Return the text of an observation.

    Some forks of the server store observations as objects with a text. Other values are converted to JSON.
    """
    if isinstance(item, dict):
        item = next((item[key] for key in ("content", "text", "observation") if item.get(key)), item)
    if item is None:
        return ""
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return clean(text).strip()


def _relation(value: dict[str, Any]) -> Relation:
    names = [clean_line(value.get(key)) for key in ("from", "to")]
    if not all(names):
        raise NoGraphLine("the relation does not name both ends, `from` and `to`")
    return Relation(names[0], names[1], clean_line(value.get("relationType"), 200) or "related_to")


def entity_blocks(observations: Iterable[str], relations: Sequence[tuple[str, str]]) -> list[str]:
    """Return the Markdown of an entity as list items: first the observations, then the relations."""
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
    """Return a wiki-link to the note with this title.

    If a link cannot contain the title, return the title.
    """
    return title if _UNLINKABLE & set(title) else f"[[{title}]]"


_ITEM: Final = re.compile(r"^[ \t]*[-*+][ \t]+(?P<text>[^\n]*)$", re.MULTILINE)
_CATEGORY: Final = re.compile(r"\[([^\[\]()\n]{1,200})\][ \t]+\S")
#: Times in a transcript, such as `[00:00:11]`, are not categories.
_CLOCK: Final = re.compile(
    r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s+-\s+\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?)?"
)
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\s#]{1,200})")
_LINKS_TO: Final = re.compile(r"\s#bm:links_to\s*\Z")
_TRAILING: Final = ".,;:!?)"
#: Maximum number of characters in an observation or relation. Longer list items are prose.
_LONGEST: Final = 20_000
#: Maximum number of characters in a relation type as written.
_LONGEST_TYPE: Final = NAME + 2


@frozen
class Statement:
    """The observations and relations that one note states.

    `tags` are the categories and then the hashtags of observations. `relations` are pairs of type and target.
    """

    tags: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]


def read_statements(content: str) -> Statement:
    """Return the observations and relations in a note's text."""
    tags: dict[str, None] = {}
    relations: dict[tuple[str, str], None] = {}
    masked = mask_code(content)
    for item in matches_in_lines(_ITEM, masked, 0):
        text = content[slice(*item.span("text"))].strip()
        if not text or len(text) > _LONGEST:
            continue
        relation = read_relation(text)
        if relation is not None:
            relations[relation] = None
            continue
        tags.update(dict.fromkeys(read_observation(text) or ()))
    return Statement(tuple(tags), tuple(relations))


def read_observation(item: str) -> tuple[str, ...] | None:
    """Return the tags of an observation, category first. Return None for another list item."""
    item = _LINKS_TO.sub("", item)
    category = _category(item)
    hashtags = [tag_of(found[1].rstrip(_TRAILING)) for found in _HASHTAG.finditer(item)]
    if category is None and not hashtags:
        return None
    return tuple(filter(None, [tag_of(category) if category else "", *hashtags]))


def _category(item: str) -> str | None:
    found = _CATEGORY.match(item)
    if found is None:
        return None
    name = found[1].strip()
    is_task = len(name) <= 1 and (name in "xX" or not name.isalnum())
    return None if is_task or _CLOCK.fullmatch(name) else name


def read_relation(item: str) -> tuple[str, str] | None:
    """Return the edge type and target of `type [[Target]] (context)`, or None for another list item.

    A type with several words must be quoted. A list item with other text before or after the link is prose.
    """
    before, opening, rest = item.partition("[[")
    target, closing, after = rest.partition("]]")
    if not opening or not closing or _LINKS_TO.search(item):
        return None
    label = _label(before.strip())
    target = target.partition("|")[0].strip()
    after = after.strip()
    if label is None or not target or "[[" in target or len(target) > NAME * 5:
        return None
    if after and not _is_one_group(after):
        return None
    return relation_type(label), target


def _label(before: str) -> str | None:
    if not before or len(before) > _LONGEST_TYPE:
        return None
    if before[0] in "'\"" and before[-1] == before[0] and len(before) > 2:
        return before[1:-1].strip() or None
    return None if any(letter.isspace() for letter in before) else before


def _is_one_group(text: str) -> bool:
    """Return whether the text is a single parenthesised group."""
    if not text.startswith("("):
        return False
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def permalink_of(target: str) -> str:
    """Return the permalink for a link target or a `memory://` address, in lower case and joined by `-`."""
    text = target.strip().removeprefix("memory://").lower()
    return re.sub(r"[\s_]+", "-", text).removesuffix(".md").strip("/")
