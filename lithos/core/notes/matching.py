"""Shared list filters: tags, metadata, prefixes (coordination spec, section 5; tools spec, section 2)."""

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


def has_tags(tags: Collection[str], wanted: Iterable[str] | None) -> bool:
    """True when a note has every wanted tag; `project/` wants `project` or any below it."""
    return all(
        wish in tags or (is_branch(wish) and any(f"{tag}/".startswith(wish) for tag in tags))
        for wish in wanted or ()
    )


def is_branch(wish: str) -> bool:
    """True for a tag filter that takes the tags below as well: one that ends with a slash."""
    return len(wish) > 1 and wish.endswith("/")


def _matches(value: Any, wanted: Scalar) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_same(item, wanted) for item in value)
    return _is_same(value, wanted)


def _is_same(value: Any, wanted: Scalar) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return isinstance(value, str | int | float) and value == wanted
