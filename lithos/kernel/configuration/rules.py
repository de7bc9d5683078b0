"""Validation rules of settings: predicates with descriptions, and the attrs fields that use these rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import normalize

import attrs
from attrs import field, frozen


@frozen
class Rule:
    """A validation rule.

    `accepts` checks a value of the correct type. `text` completes the sentence "give ...".
    """

    text: str
    accepts: Callable[[Any], bool]


class Disagreement(ValueError):
    """Cross-field validation error: each setting is valid alone, but the two settings conflict.

    `keys` contains the keys of both settings.
    """

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


ANYTHING = Rule("", lambda _: True)


def whole(low: int, high: int | None = None) -> Rule:
    """Return the rule for whole numbers from `low` to `high`. None for `high` means no upper limit."""
    span = f"of at least {low}" if high is None else f"from {low} to {high}"
    return Rule(f"a whole number {span}", lambda n: n >= low and (high is None or n <= high))


def number(low: float, high: float | None = None) -> Rule:
    """Return the rule for finite numbers from `low` to `high`. None for `high` means no upper limit."""
    span = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
    return Rule(f"a number {span}", lambda n: math.isfinite(n) and n >= low and (high is None or n <= high))


POSITIVE = Rule("a number above 0", lambda n: math.isfinite(n) and n > 0)
FRACTION = number(0, 1)
NOT_BLANK = Rule("a text that is not blank", lambda text: bool(text.strip()))
NAMES = Rule("a list of texts, none of them blank", lambda names: all(name.strip() for name in names))


def are_patterns(globs: Sequence[str]) -> bool:
    """Return whether `notes.model.scopes.check_typed` accepts these patterns.

    The kernel must not import that function.
    """
    shown = [normalize("NFC", glob.strip()) for glob in globs]
    excludes = bool(shown) and shown[0].startswith("!")
    return len(shown) <= 100 and not excludes and all(_is_pattern(glob.removeprefix("!")) for glob in shown)


def _is_pattern(glob: str) -> bool:
    parts = glob.split("/")
    is_path = bool(glob) and not {".", ".."} & set(parts) and "" not in parts[:-1]
    names_notes = parts[-1] == "" or parts[-1].endswith(".md") or bool({"*", "?"} & set(parts[-1]))
    return is_path and names_notes and len(glob) <= 500 and glob.isprintable()


PATTERNS = Rule(
    "a list of at most 100 patterns of notes in the vault, such as plans/ (all below that folder) or "
    "**/*.md, of which the first does not begin with !",
    are_patterns,
)


def setting(
    default: Any,
    description: str,
    rule: Rule = ANYTHING,
    *,
    secret: bool = False,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """Return an attrs field. The rule is also its validator, so values that code creates are checked too.

    `description` is one line for the documentation. A `secret` is not shown in `repr`. `convert` is called
    before the rule is checked.
    """

    def validate(owner: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not rule.accepts(value):
            shown = "the value" if secret else repr(value)
            raise ValueError(
                f"{type(owner).__name__}.{attribute.name}: {shown} is not allowed; give {rule.text}"
            )

    metadata = {"description": description, "rule": rule, "secret": secret, "convert": convert}
    return field(default=default, validator=validate, converter=convert, repr=not secret, metadata=metadata)
