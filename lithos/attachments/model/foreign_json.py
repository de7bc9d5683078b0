"""JSON of other programs' files, which may be damaged or made to hurt: refused in words, never a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lithos.attachments.model.parts import NotExtractable


def read_object(text: str | bytes, what: str) -> dict[str, Any]:
    """The object that a file is; an empty file is an empty one. Raises `NotExtractable`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        # Numbers are of no interest; Python refuses to read very long ones.
        value = json.loads(text, parse_int=bool, parse_float=bool) if text.strip() else {}
    except RecursionError:
        raise NotExtractable(f"{what} is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotExtractable(f"{what} is not UTF-8 text") from None
    except ValueError as failure:
        line = f" (line {failure.lineno})" if isinstance(failure, json.JSONDecodeError) else ""
        raise NotExtractable(f"{what} is not valid JSON{line}") from None
    if not isinstance(value, dict):
        raise NotExtractable(f"{what} is JSON, but no object")
    return value


def objects_of(value: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Return the objects in a list of an object; items of other types are skipped."""
    listed = value.get(name)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each


def text_of(value: dict[str, Any], *names: str) -> str:
    """The first of these values that is a text and not empty; "" without one."""
    return next((each for name in names if isinstance(each := value.get(name), str) and each), "")
