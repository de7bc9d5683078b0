"""One table of a TOML text put in at its end or taken out; every other character stays."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from lithos.core.editing.json_edit import CannotEdit, Insertion
from lithos.core.editing.json_text import InvalidText

_PIECES: Final = re.compile(
    r'(?P<skip>"""(?s:(?:[^"\\]++|\\.|"{1,2}(?!"))*+)"{3,5}|\'\'\'(?s:(?:[^\']++|\'{1,2}(?!\'))*+)\'{3,5}'
    r'|"(?:[^"\\\n]++|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+)'
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<newline>\n)|(?P<other>[^\"'#\[\]{}\n]++)|(?P<odd>.)"
)
_POSITION: Final = re.compile(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$")
#: A key of so many parts, for which the parser takes the square of their number.
_ENDLESS: Final = re.compile(
    r"""(?:\.[ \t]*+(?:[A-Za-z0-9_-]{1,100}+|'[^'\n]{0,100}+'|"(?:[^"\\\n]|\\.){0,100}+")[ \t]*+){500}"""
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def read_toml(text: str) -> dict[str, Any]:
    """What the text holds. Raises `InvalidText`."""
    endless = _ENDLESS.search(text)
    if endless is not None:
        raise InvalidText.at(text, endless.start(), "a key of more than 500 parts")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = _POSITION.match(str(error))
        if found is None or found[2] is None:
            reason = found[1] if found is not None else str(error)
            raise InvalidText.at(text, len(text), reason) from error
        raise InvalidText(found[1], int(found[2]), int(found[3])) from error
    except RecursionError as error:
        raise InvalidText.at(text, 0, "too many values inside of each other") from error


def find_table(text: str, path: Sequence[str]) -> Any:
    """The value at a path of keys, None where there is none. Raises `InvalidText`."""
    value: Any = read_toml(text)
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def insert_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> Insertion:
    """How to put in a table at a path that is not there. Raises `CannotEdit` and `InvalidText`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(_key(key) for key in path)}]"]
    lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    body = text.removeprefix("\ufeff")
    begin = "" if not body or body.endswith("\n") else newline
    begin += newline if body.strip() else ""
    before = read_toml(text)
    parents = 0 if path[0] in before else len(path) - 1
    found = Insertion(len(text), begin + newline.join(lines) + newline, parents)
    try:
        read_toml(found.apply(text))
    except InvalidText as error:
        raise CannotEdit(
            f"A table [{'.'.join(path)}] cannot be added to what is there ({error.reason}): "
            f"{path[0]} is written in one piece."
        ) from error
    return found


def remove_table(text: str, path: Sequence[str]) -> str:
    """The text without the tables at and below the path. Raises `CannotEdit` where they are no tables."""
    read_toml(text)  # of what is no TOML the tables could not be told in linear time
    kept, at = [], 0
    for table, begin, end in _tables(text):
        if table[: len(path)] == tuple(path):
            blank = text[at:begin].removesuffix("\n").removesuffix("\r")
            is_last = blank.endswith("\n") and not text[end:].strip()  # without the blank line before it
            kept.append(blank if is_last else text[at:begin])
            at = end
    left = "".join([*kept, text[at:]])
    if find_table(left, path) is not None:
        raise CannotEdit(f"{'.'.join(path)} is written as a part of another value; take it out by hand.")
    return left


def is_same_table_but(old: str, new: str, path: Sequence[str], prune: int = 0) -> bool:
    """Whether `new` is `old` with a table more; `prune` tables around it may be new as well."""
    # Written out, since a number that is not a number is not equal to itself.
    return repr(_without(read_toml(new), path, prune)) == repr(read_toml(old))


def _without(tree: dict[str, Any], path: Sequence[str], prune: int) -> dict[str, Any]:
    left = dict(tree)
    below = left.pop(path[0], None)
    if len(path) > 1 and isinstance(below, dict):
        rest = _without(below, path[1:], prune)
        if rest or len(path) - 1 > prune:
            left = {key: rest if key == path[0] else value for key, value in tree.items()}
    return left


def _tables(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """The paths of the tables that headers begin, where each header is, and where its last line ends that is
    not blank or a comment."""
    depth, start, end, last = 0, None, 0, -1
    is_line_start = True
    path: tuple[str, ...] = ()
    for found in _PIECES.finditer(text):
        kind, at = found.lastgroup, found.start()
        if kind == "newline":
            is_line_start = is_line_start or depth == 0
            end = found.end() if last >= end else end
            continue
        if kind == "open" and depth == 0 and is_line_start:
            if start is not None:
                yield path, start, end
            path, start = _header(text, at), at
        depth += (kind == "open") - (kind == "close")
        if kind == "skip" and found[0][0] == "#":
            continue
        if found[0].strip():
            is_line_start, last = False, at
    if start is not None:
        yield path, start, len(text) if last >= end else end


def _header(text: str, at: int) -> tuple[str, ...]:
    stop = text.find("\n", at)
    tree: Any = tomllib.loads(text[at : len(text) if stop < 0 else stop].rstrip("\r"))
    path: list[str] = []
    while tree:
        key, tree = next(iter(tree.items()))
        path.append(key)
        tree = tree[0] if isinstance(tree, list) else tree
    return tuple(path)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool | str | int):
        # JSON's strings are TOML's, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(_value(each) for each in value) + "]"
