"""Parsing of JSON from other programs, which may be damaged or malicious.

Invalid JSON raises an error with a readable message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lithos.attachments.model.parts import NotExtractable


def read_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Return the JSON object of a file, or {} for an empty file. Raises `NotExtractable`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        # Numbers are not needed, and Python refuses to parse very long numbers.
        value = json.loads(text, parse_int=bool, parse_float=bool) if text.strip() else {}
    except RecursionError:
        raise NotExtractable(f"{what} is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotExtractable(f"{what} is not UTF-8 text") from None
    except ValueError as failure:
        line = f" (line {failure.lineno})" if isinstance(failure, json.JSONDecodeError) else ""
        raise NotExtractable(f"{what} is not valid JSON{line}") from None
    if not isinstance(value, dict):
        raise NotExtractable(f"{what} is JSON, but not an object")
    return value


def objects_of(value: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of the list `name` in an object. Items of other types are skipped."""
    listed = value.get(name)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def text_of(value: dict[str, Any], *names: str) -> str:
    """Return the first of the named values that is a non-empty text, or ""."""
    return next((each for name in names if isinstance(each := value.get(name), str) and each), "")
