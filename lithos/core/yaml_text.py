"""JSON-compatible values to YAML text that every YAML 1.1 and 1.2 reader reads back as the same value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import yaml
from yaml.resolver import Resolver

from lithos.core.times import format_time

_resolve: Final[Callable[[type[yaml.Node], str, tuple[bool, bool]], str]] = Resolver().resolve
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
# What libyaml does not accept as it stands, and line breaks, which quoted text would fold.
_ESCAPED: Final = re.compile(
    "[^\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_PLAIN: Final = re.compile(r"[\w/.(][^\t\[\]{},]*", re.DOTALL)
# Numbers and booleans of YAML 1.2 (Obsidian) and of other 1.1 readers that PyYAML's resolver calls text.
_AMBIGUOUS: Final = re.compile(
    r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+|0x[0-9a-fA-F]+|[yYnN]|\d[\d_:.]*", re.ASCII
)
_LONGEST_PLAIN_KEY: Final = 900  # libyaml: a simple key has at most 1024 characters

_SCALARS: Final = (str, bool, int, float, datetime, type(None))


def is_scalar(value: Any) -> bool:
    """True for everything that stands on one line: text, number, boolean, time, null."""
    return isinstance(value, _SCALARS)


def write_text(text: str, style: str | None = None) -> str:
    """`text` as a one-line scalar: in `style` (`'`, `"`, else plain) where that reads back the same."""
    if _ESCAPED.search(text) or style == '"':
        return '"' + _ESCAPED.sub(_escape, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
    if style != "'" and _is_plain(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character == "\n":
        return "\\n"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(text: str) -> bool:
    return (
        _PLAIN.fullmatch(text) is not None
        and ": " not in text
        and " #" not in text
        and text[-1] not in ": "
        and not text.startswith("...")
        and _AMBIGUOUS.fullmatch(text) is None
        and _resolve(yaml.ScalarNode, text, (True, False)) == _TEXT_TAG
    )


def write_inline(value: Any, style: str | None = None) -> str:
    """`value` on one line; `style` is the quoting to keep: `'`, `"`, "" for plain, None for no preference."""
    if isinstance(value, str):
        return write_text(value, style)
    if isinstance(value, datetime):
        quote = "'" if style is None else style
        return f"{quote}{format_time(value)}{quote}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = repr(value)  # 1e-07 is text to YAML 1.1, 1.0e-07 is a number
        return text if "." in text else text.replace("e", ".0e", 1)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow_key(key)}: {write_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(write_inline(item) for item in value) + "]"
    return str(value)


def _flow_key(key: str) -> str:
    text = write_text(key)
    return text if len(text) < _LONGEST_PLAIN_KEY else f"? {text} "


def write_block(value: Any, indent: str, newline: str) -> str:
    """A non-empty list or mapping as lines at `indent`, each ended by `newline`."""
    if isinstance(value, Mapping):
        return "".join(write_entry(key, item, indent, newline) for key, item in value.items())
    return "".join(f"{indent}- {write_inline(item)}{newline}" for item in value)


def write_entry(key: str, value: Any, indent: str, newline: str) -> str:
    """`key: value` as whole lines at `indent`."""
    name = write_text(key)
    head = f"{indent}{name}:" if len(name) < _LONGEST_PLAIN_KEY else f"{indent}? {name}{newline}{indent}:"
    if is_scalar(value) or not value:
        return f"{head} {write_inline(value)}{newline}"
    return f"{head}{newline}{write_block(value, indent + '  ', newline)}"
