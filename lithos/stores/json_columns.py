"""JSON in columns that older versions, or people, may have filled."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def load_json(text: str | None) -> Any:
    """The value, or None for NULL and for what is no JSON (NaN, which Python would write, included)."""
    try:
        return json.loads(text, parse_constant=_refuse) if text is not None else None
    except (ValueError, TypeError, RecursionError):
        return None


def load_object(text: str | None) -> dict[str, Any]:
    """The object; anything else reads as an empty one (coordination spec, section 1)."""
    value = load_json(text)
    return value if isinstance(value, dict) else {}


def load_texts(text: str | None) -> tuple[str, ...]:
    """The texts of a list; anything else reads as none."""
    value = load_json(text)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
