"""Values of tool arguments. For each kind of value there is a reader and a JSON schema.

Some clients and models encode a value twice, or send a text in place of the value: `"true"`, `"3"`, `"null"`,
`"[\"a\"]"`, or a single text for a list. Text is accepted if its meaning is clear. Otherwise, `ArgumentFault`
says what is expected.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, Union, get_args, get_origin

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import JSON_VALUES, holds_more_values
from lithos.text.yaml.nodes import MAX_DEPTH


class ArgumentFault(Exception):
    """An argument is unknown, missing or of the wrong type. `message` names the argument."""

    code: Final = "invalid_input"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


#: Maximum number of characters of an array or object that is sent as JSON text.
LONGEST_JSON_TEXT: Final = 1024 * 1024
#: Texts in lower case that are read as true or false.
_FLAGS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on", 1), True),
    **dict.fromkeys(("false", "0", "no", "off", 0), False),
}
#: Texts in lower case with which clients mean "no value".
_NOTHING: Final = frozenset({"null", "none", "undefined"})
#: Characters in the text for a list argument that suggest several items or broken JSON.
_MORE_THAN_ONE: Final = frozenset(',"[]{}\n')


def is_blank(value: Any) -> bool:
    """Return whether a value is a text that contains only white space."""
    return isinstance(value, str) and not value.strip()


def says_nothing(value: Any) -> bool:
    """Return whether a value is a text such as "null". It means "no value" if no text is expected."""
    return isinstance(value, str) and value.strip().lower() in _NOTHING


def kind_of(hint: Any) -> Any:
    """Return the kind of a type hint, which is a key of `KINDS`.

    `str | None` -> str, `tuple[str, ...] | None` -> tuple, `dict[str, Any]` -> dict, `dict[str, Any] |
    list[Any]` -> list, which accepts both.
    """
    if get_origin(hint) in (Union, types.UnionType):
        *_, hint = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) or hint


def read_text(name: str, value: Any) -> str:
    """Return the text of an argument, after checking its type and its characters.

    Raises `ArgumentFault`. Raises `InvalidInput` for text that a file cannot store.
    """
    if not isinstance(value, str):
        raise _wrong_type(name, "text", value)
    _check_characters(name, value)
    return value


def read_integer(name: str, value: Any) -> int:
    """Return the whole number of an argument. Raises `ArgumentFault`."""
    number = _read_number(name, value)
    if not number.is_integer():
        raise _wrong_type(name, "a whole number", value)
    return value if isinstance(value, int) else int(number)


def _read_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong_type(name, "a number", value)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _wrong_type(name, "a number", value) from None


def _read_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = value.strip().lower() if isinstance(value, str) else value
    flag = _FLAGS.get(said) if isinstance(said, str | int) else None
    if flag is None:
        raise _wrong_type(name, "true or false", value)
    return flag


def _read_texts(name: str, value: Any) -> tuple[str, ...]:
    value = _parse_json_text(value, list)
    if isinstance(value, str) and not _MORE_THAN_ONE.intersection(value):
        value = [value]
    if not isinstance(value, list):
        raise _wrong_type(name, 'a list of texts such as ["a","b"]', value)
    for position, item in enumerate(value, 1):
        if not isinstance(item, str):
            raise ArgumentFault(
                f"Argument '{name}' must be a list of texts, but item {position} is {_describe(item)}."
            )
        _check_characters(name, item)
    return tuple(value)


def _read_object(name: str, value: Any) -> dict[str, Any]:
    value = _parse_json_text(value, dict)
    if not isinstance(value, dict):
        raise _wrong_type(name, 'an object such as {"key":"value"}', value)
    _check_nested(name, value)
    return value


def _read_structure(name: str, value: Any) -> dict[str, Any] | list[Any]:
    value = _parse_json_text(value, dict | list)
    if not isinstance(value, dict | list):
        raise InvalidInput(f"{name} must be an object or an array, not {_describe(value)}.")
    _check_nested(name, value)
    return value


def _parse_json_text(value: Any, wanted: type[Any] | types.UnionType) -> Any:
    """Parse JSON text of the wanted type and return the result. Any other value is returned unchanged.

    Some clients encode arrays and objects twice.
    """
    if not isinstance(value, str) or not value.strip().startswith(("[", "{")):
        return value
    if len(value) > LONGEST_JSON_TEXT or holds_more_values(value.encode("utf-8", "replace"), JSON_VALUES):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, wanted) else value


_ANY_ITEM: Final = {"anyOf": [{"type": "object"}, {"type": "string"}]}
#: Reader and JSON schema for each kind of parameter.
KINDS: Mapping[Any, tuple[Callable[[str, Any], Any], Mapping[str, Any]]] = {
    str: (read_text, {"type": "string"}),
    int: (read_integer, {"type": "integer"}),
    float: (_read_number, {"type": "number"}),
    bool: (_read_flag, {"type": "boolean"}),
    tuple: (_read_texts, {"type": "array", "items": {"type": "string"}}),
    dict: (_read_object, {"type": "object"}),
    # Some clients cannot read a list schema whose items have no type. Others refuse a list schema without
    # items.
    list: (_read_structure, {"anyOf": [{"type": "object"}, {"type": "array", "items": _ANY_ITEM}]}),
    # The tool checks this value itself and answers with an error envelope.
    object: (lambda _, value: value, {"type": "number"}),
}


def _check_nested(name: str, value: Any, depth: int = 0) -> None:
    """Raise `InvalidInput` for a value that YAML or JSON could not store and read back."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{name} is nested deeper than {MAX_DEPTH} levels. Flatten the value.")
    if isinstance(value, str):
        _check_characters(name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_nested(name, key, depth)
            _check_nested(name, item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_nested(name, item, depth + 1)
    elif isinstance(value, int | float) and not _is_finite(value):
        raise InvalidInput(
            f"{name} contains a number that is too large or not finite. Send the number as text."
        )


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _check_characters(name: str, text: str) -> None:
    """Raise `InvalidInput` for text with NUL or a lone surrogate, which a text file cannot store."""
    if "\0" in text:
        raise InvalidInput(
            f"{name} contains a NUL character, which text files cannot store. Remove the character."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{name} contains half a character (a lone surrogate). Send valid UTF-8."
        ) from None


def _wrong_type(name: str, wanted: str, value: Any) -> ArgumentFault:
    return ArgumentFault(f"Argument '{name}' must be {wanted}, not {_describe(value)}.")


def _describe(value: Any) -> str:
    """Return a short description of a wrong value, whatever its size and depth."""
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Python does not convert integers of more than 4,300 digits to text
    return "a very large number" if not _is_finite(value) else repr(value)[:60]
