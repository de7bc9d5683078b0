"""Validation rules of settings: a predicate with its description, and the attrs field that carries both."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from unicodedata import normalize

import attrs
from attrs import field, frozen


@frozen
class Rule:
    """`accepts` judges a value of the right type; `text` completes the sentence "give ..."."""

    text: str
    accepts: Callable[[Any], bool]


class Disagreement(ValueError):
    """Cross-field validation error: two settings, each valid alone, conflict; `keys` names them."""

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


ANYTHING = Rule("", lambda _: True)


def whole(low: int, high: int | None = None) -> Rule:
    """Whole numbers in the closed range; `high` None leaves it open."""
    span = f"of at least {low}" if high is None else f"from {low} to {high}"
    return Rule(f"a whole number {span}", lambda n: n >= low and (high is None or n <= high))


def number(low: float, high: float | None = None) -> Rule:
    """Finite numbers in the closed range; `high` None leaves it open."""
    span = f"of at least {low:g}" if high is None else f"from {low:g} to {high:g}"
    return Rule(f"a number {span}", lambda n: math.isfinite(n) and n >= low and (high is None or n <= high))


#: Less has no room for the keys of an answer.
ANSWER_LIMIT = Rule("0 or a whole number of at least 4000", lambda n: n == 0 or n >= 4_000)
POSITIVE = Rule("a number above 0", lambda n: math.isfinite(n) and n > 0)
FRACTION = number(0, 1)
NOT_BLANK = Rule("a text that is not blank", lambda text: bool(text.strip()))
AGENT_NAME = Rule(
    "a name of at most 200 characters that is not blank", lambda text: bool(text.strip()) and len(text) <= 200
)
NAMES = Rule("a list of texts, none of them blank", lambda names: all(name.strip() for name in names))
HOST = Rule("a host name or address without spaces", lambda text: bool(re.fullmatch(r"\S+", text)))
TOKEN = Rule(
    "a text of visible ASCII characters without spaces (in YAML put it in quotes)",
    lambda text: bool(re.fullmatch(r"[\x21-\x7e]+", text)),
)
WEB_ADDRESS = Rule(
    "an address that starts with http:// or https://",
    lambda text: bool(re.fullmatch(r"https?://[^\s/]\S*", text)),
)
RIGHTS_MAP = Rule(
    "a map of at most 100 values to read, write or admin",
    lambda given: len(given) <= 100 and set(given.values()) <= {"read", "write", "admin"},
)


def _are_patterns(globs: Sequence[str]) -> bool:
    """Whether `core.scopes.check_typed` takes these, which nothing here may import."""
    shown = [normalize("NFC", glob.strip()) for glob in globs]
    excludes = bool(shown) and shown[0].startswith("!")
    return len(shown) <= 100 and not excludes and all(_is_pattern(glob.removeprefix("!")) for glob in shown)


def _is_pattern(glob: str) -> bool:
    parts = glob.split("/")
    is_path = bool(glob) and not {".", ".."} & set(parts) and "" not in parts[:-1]
    names_notes = parts[-1] == "" or parts[-1].endswith(".md") or bool({"*", "?"} & set(parts[-1]))
    return is_path and names_notes and len(glob) <= 500 and glob.isprintable()


def _are_agent_scopes(given: Mapping[str, Mapping[str, Sequence[str]]]) -> bool:
    if len(given) > 1_000 or not all(name.strip() and len(name) <= 200 for name in given):
        return False
    return all(
        name in ("write", "propose") and _are_patterns(globs)
        for lists in given.values()
        for name, globs in lists.items()
    )


PATTERNS = Rule(
    "a list of at most 100 patterns of notes in the vault, such as plans/ (all below that folder) or "
    "**/*.md, of which the first does not begin with !",
    _are_patterns,
)
AGENT_SCOPES = Rule(
    "for each of at most 1000 agents `write` and `propose`, each a list of patterns such as plans/ or "
    "**/*.md",
    _are_agent_scopes,
)
#: The address at which others see the server: no path, so that what it tells of itself is at its root.
PUBLIC_ADDRESS = Rule(
    "an address as https://notes.example.org, without a path (http only for 127.0.0.1, [::1] and localhost)",
    lambda text: bool(
        re.fullmatch(
            r"(?:https://[a-z0-9-]+(?:\.[a-z0-9-]+)*|http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?",
            text,
        )
    ),
)
DIRECTORY = Rule("the path of a directory", lambda path: "\0" not in str(path))


def _is_inner_folder(text: str) -> bool:
    parts = PurePosixPath(text).parts
    return bool(parts) and "\0" not in text and not any(part[0] in "./" for part in parts)


INNER_FOLDER = Rule(
    "a folder inside the data directory: no leading /, no .., no folder that starts with a dot",
    _is_inner_folder,
)


def setting(
    default: Any,
    description: str,
    rule: Rule = ANYTHING,
    *,
    secret: bool = False,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """An attrs field: its rule is also its validator, so a value made in code is checked as well.

    `description` is one line for the documentation. A `secret` stays out of `repr`. `convert` runs
    before the rule.
    """

    def validate(owner: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not rule.accepts(value):
            shown = "the value" if secret else repr(value)
            raise ValueError(
                f"{type(owner).__name__}.{attribute.name}: {shown} is not allowed; give {rule.text}"
            )

    metadata = {"description": description, "rule": rule, "secret": secret, "convert": convert}
    return field(default=default, validator=validate, converter=convert, repr=not secret, metadata=metadata)


def without_slash(address: str | None) -> str | None:
    """A converter: an address as it stands in front of a path, its host in small letters."""
    return None if address is None else address.strip().removesuffix("/").lower()
