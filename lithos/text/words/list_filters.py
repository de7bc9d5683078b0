"""List filters by tag and metadata (docs/spec/coordination.md §5; docs/spec/tools.md §2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from lithos.kernel.values.errors import InvalidInput
from lithos.text.words.analysis import normalise

Scalar = str | int | float | bool
#: Variation selectors. A character with a selector and the same character without one are the same tag.
_SELECTORS: Final = re.compile("[\ufe00-\ufe0f]+")


def check_metadata_match(match: Mapping[str, Any] | None) -> None:
    """Raise `InvalidInput` unless all keys are non-empty texts and all values are scalars."""
    for key, value in (match or {}).items():
        if not key.strip():
            raise InvalidInput("metadata_match has an empty key. Name the metadata key to compare.")
        if not isinstance(value, str | int | float | bool):
            raise InvalidInput(
                f"metadata_match[{key!r}] must be a text, number or boolean. A list in the record "
                "matches if it contains the value."
            )


def matches_metadata(metadata: Mapping[str, Any], match: Mapping[str, Any] | None) -> bool:
    """Return whether each key's value equals the wanted scalar or is a list that contains it.

    Values of different types, such as 1 and "1", are not equal.
    """
    return all(_matches(metadata.get(key), wanted) for key, wanted in (match or {}).items())


def has_all(values: Iterable[str], wanted: Iterable[str] | None) -> bool:
    """Return whether all wanted values are present. If no values are wanted, return True."""
    return not wanted or set(wanted) <= set(values)


def tag_key(tag: str) -> str:
    """Return the key shared by all spellings of a tag: `Work`, `work`, `#WORK` and `work/` are one tag.

    The key has no leading `#`, no trailing `/`, and no selectors for text or emoji presentation. Case and
    normal form are unified.
    """
    name = tag.strip().lstrip("#").rstrip("/") or tag
    if name.isascii():
        return name.lower()
    folded = normalise("NFC", normalise("NFC", name).casefold())
    return _SELECTORS.sub("", folded) or folded


def tag_keys(tags: Iterable[str]) -> set[str]:
    """Return the keys of the given tags."""
    return {tag_key(tag) for tag in tags}


def distinct_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return each distinct tag once, in its first spelling."""
    found: dict[str, str] = {}
    for tag in tags:
        found.setdefault(tag_key(tag), tag)
    return tuple(found.values())


def most_written(spelled: Mapping[str, int]) -> str:
    """Return the most frequent spelling of a tag, without a leading `#`.

    If several spellings are equally frequent, the alphabetically first one is returned.
    """
    best = min(spelled, key=lambda tag: (-spelled[tag], tag))
    return best.lstrip("#") or best


def has_tag(tags: Collection[str], wish: str) -> bool:
    """Return whether one of the tags equals `wish` or is nested below it. All tag filters use this rule."""
    if wish in tags:
        return True
    name = tag_key(wish)
    below = name + "/"
    for tag in tags:  # A plain loop is faster, and a listing of all notes calls this function for each note.
        own = tag_key(tag)
        if own == name or own.startswith(below):
            return True
    return False


def has_tags(tags: Collection[str], wanted: Iterable[str] | None) -> bool:
    """Return whether all wanted tags are present."""
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
