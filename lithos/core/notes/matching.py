"""Shared list filters: tags, metadata, prefixes (docs/spec/coordination.md §5; docs/spec/tools.md §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from lithos.core.errors import InvalidInput

Scalar = str | int | float | bool


def check_metadata_match(match: Mapping[str, Any] | None) -> None:
    """Raises `InvalidInput` unless keys are non-empty text and values scalars."""
    for key, value in (match or {}).items():
        if not key.strip():
            raise InvalidInput("metadata_match has an empty key. Name the metadata key to compare.")
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput(
                f"metadata_match[{key!r}] must be a text, number or boolean; "
                "lists in the record match when they contain it."
            )


def matches_metadata(metadata: Mapping[str, Any], match: Mapping[str, Any] | None) -> bool:
    """True when every key's value equals the scalar or is a list that contains it, type-sensitively."""
    return all(_matches(metadata.get(key), wanted) for key, wanted in (match or {}).items())


def has_all(values: Iterable[str], wanted: Iterable[str] | None) -> bool:
    """True when every wanted value is there; no wish, no filter."""
    return not wanted or set(wanted) <= set(values)


def wished_tags(wish: str) -> tuple[str, ...]:
    """The tags that a filter means, each with all below it: `project`, `project/` and `#project` are one.

    By a filter with a `#` a tag that is written with one is meant as well.
    """
    name = wish.rstrip("/") or wish
    plain = name.lstrip("#")
    return (name,) if plain in ("", name) else (plain, name)


def has_tag(tags: Collection[str], wish: str) -> bool:
    """True when one of the tags is what a filter means, or below it: the rule of every filter by tag."""
    if wish in tags:
        return True
    for name in wished_tags(wish):  # loops: a list of all notes asks this of each
        below = name + "/"
        for tag in tags:
            if tag == name or tag.startswith(below):
                return True
    return False


def has_tags(tags: Collection[str], wanted: Iterable[str] | None) -> bool:
    """True when every wanted tag is there."""
    if not wanted:
        return True
    own = frozenset(tags)
    return all(has_tag(own, wish) for wish in wanted)


def _matches(value: Any, wanted: Scalar) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_same(item, wanted) for item in value)
    return _is_same(value, wanted)


def _is_same(value: Any, wanted: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return isinstance(value, str | int | float) and value == wanted
