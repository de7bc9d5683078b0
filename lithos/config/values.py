"""From what was written to a typed value; every refusal is a `ValueError` without details.

The loader words the error, since only it knows key, source and what is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import cattrs

from lithos.config.catalogue import Setting

_BOOLS: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}

_STRICT: Final = cattrs.Converter(detailed_validation=False)


def _expect(*kinds: type) -> Any:
    def structure(value: Any, _: Any) -> Any:
        # bool is an int to Python, and to nobody else
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError
        return kinds[0](value)

    return structure


def _structure_path(value: Any, _: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value).strip():
        raise ValueError
    return Path(value).expanduser()


def _structure_choice(value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or value not in get_args(kind):
        raise ValueError
    return value


def _structure_texts(value: Any, _: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return tuple(value)


def _structure_numbers(value: Any, _: Any) -> dict[str, float]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError
    return {name: _STRICT.structure(number, float) for name, number in value.items()}


def _has_origin(origin: Any) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) == origin


_STRICT.register_structure_hook(bool, _expect(bool))
_STRICT.register_structure_hook(int, _expect(int))
_STRICT.register_structure_hook(float, _expect(float, int))
_STRICT.register_structure_hook(str, _expect(str))
_STRICT.register_structure_hook(Path, _structure_path)
_STRICT.register_structure_hook_func(_has_origin(Literal), _structure_choice)
_STRICT.register_structure_hook_func(_has_origin(tuple), _structure_texts)
_STRICT.register_structure_hook_func(_has_origin(Mapping), _structure_numbers)


def structure_value(setting: Setting, raw: Any, *, from_text: bool) -> Any:
    """The typed value of a setting; `from_text` reads text as environment variables write values."""
    if from_text and isinstance(raw, str):
        raw = _read_text(setting.kind, raw.strip())
    try:
        value = _STRICT.structure(raw, setting.kind)
    except (OverflowError, RuntimeError) as error:  # a number too large for float, a home that is unknown
        raise ValueError from error
    if setting.convert is not None:
        value = setting.convert(value)
    if value is not None and not setting.rule.accepts(value):
        raise ValueError
    return value


def _read_text(kind: Any, text: str) -> Any:
    origin: Any = get_origin(kind)
    if kind is bool:
        return _BOOLS.get(text.lower(), text)
    if kind is int:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else text
    if kind is float:
        return float(text)
    if origin is tuple and not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    if origin in (tuple, Mapping):
        return json.loads(text)  # its error is a ValueError
    return text
