"""What a basic-memory note says: `- [category] text #tag (context)`, `- relation_type [[Target]] (context)`.

The headings `Observations` and `Relations` are a custom: a list item counts wherever it stands, but not in
code, nor in a quote. Links inside other text are links, no relations.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lithos.core.formats.texts import relation_type, tag_of
from lithos.core.limits import NAME
from lithos.core.text.markdown import mask_code
from lithos.core.text.pieces import matches_in_lines

_ITEM: Final = re.compile(r"^[ \t]*[-*+][ \t]+(?P<text>[^\n]*)$", re.MULTILINE)
_CATEGORY: Final = re.compile(r"\[([^\[\]()\n]{1,200})\][ \t]+\S")
#: `[00:00:11]` and the like of a transcript are no categories.
_CLOCK: Final = re.compile(
    r"\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s+-\s+\d{1,3}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?)?"
)
_HASHTAG: Final = re.compile(r"(?<!\S)#([^\s#]{1,200})")
_LINKS_TO: Final = re.compile(r"\s#bm:links_to\s*\Z")
_TRAILING: Final = ".,;:!?)"
#: A longer list item is prose.
_LONGEST: Final = 20_000
#: Of a relation's type as it is written.
_LONGEST_TYPE: Final = NAME + 2


@frozen
class Statement:
    """What one note says: tags (categories, then hashtags of observations) and relations (type, target)."""

    tags: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]
    observations: int


def read_statements(content: str) -> Statement:
    """The observations and relations of a note's text."""
    tags: dict[str, None] = {}
    relations: dict[tuple[str, str], None] = {}
    observations = 0
    masked = mask_code(content)
    for item in matches_in_lines(_ITEM, masked, 0):
        text = content[slice(*item.span("text"))].strip()
        if not text or len(text) > _LONGEST:
            continue
        relation = read_relation(text)
        if relation is not None:
            relations[relation] = None
            continue
        found = read_observation(text)
        if found is not None:
            observations += 1
            tags.update(dict.fromkeys(found))
    return Statement(tuple(tags), tuple(relations), observations)


def read_observation(item: str) -> tuple[str, ...] | None:
    """The tags of an observation, its category first; None for another list item."""
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
    """Type (as an edge has it) and target of `type [[Target]] (context)`; None for another list item.

    A type of several words is quoted; without quotes they are prose before a link, as is text behind it.
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
    """Whether the text is one pair of parentheses with what is inside."""
    if not text.startswith("("):
        return False
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def permalink_of(target: str) -> str:
    """The permalink that a link target or `memory://` address may be: lower case, words joined by `-`."""
    text = target.strip().removeprefix("memory://").lower()
    return re.sub(r"[\s_]+", "-", text).removesuffix(".md").strip("/")
