"""Formats of configuration files, with functions that read, set and remove entries in a text.

JSON is read and written with `json`, and TOML with `tomlkit`. JSON with comments can be read but not written.
"""

from __future__ import annotations

import json
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import tomlkit
from attrs import frozen
from tomlkit.exceptions import TOMLKitError

ConfigEntry = Mapping[str, Any]
Value = ConfigEntry | list[Any]
Tree = Mapping[str, Any]

_NOTHING: Final[Tree] = {}
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*+(?:"|\Z))|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING: Final = re.compile(r'("(?:\\.|[^"\\])*+(?:"|\Z))|,(?=\s*+[}\]])', re.DOTALL)
#: Matches a TOML comment that has its own line.
_OWN_LINE: Final = re.compile(r"^[ \t]*+#.*", re.MULTILINE)
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class CannotEdit(Exception):
    """Raised if editing the text could change other content. The message contains the reason."""


class InvalidText(CannotEdit):
    """Raised if the text is not valid in its format. The message contains the position."""


class HasComments(CannotEdit):
    """Raised if the text has comments, trailing commas or other JSON5 syntax, which `json` would remove."""

    def __init__(self) -> None:
        super().__init__("It has comments, trailing commas or JSON5, which Lithos does not rewrite.")


@frozen
class Format(ABC):
    """Base class of the formats, which read and edit the text of a client's file.

    Methods raise `CannotEdit`.
    """

    path: tuple[str, ...]

    @abstractmethod
    def tree(self, text: str, exact: bool = True) -> dict[str, Any]:
        """Return the whole content of the text.

        If `exact` is set, numbers are returned as they are spelled.
        """

    @abstractmethod
    def edit(self, text: str, name: str, entry: Value | None, keep: Tree = _NOTHING) -> str:
        """Return the text with this entry added or replaced. The entry may also be a list.

        If `entry` is None, return the text without the entry. Surrounding objects that become empty are
        removed too, unless they are in `keep`.
        """

    def entries(self, text: str) -> ConfigEntry:
        """Return the entries of all servers by name."""
        return _servers(self.tree(text, exact=False), self.path)

    def place(self, text: str, name: str) -> str:
        """Return the keys under which an entry belongs, joined with dots, for display."""
        try:
            tree = self.tree(text)
        except CannotEdit:
            tree = {}
        return ".".join(self._place(tree, name)[:-1])

    def written(self, text: str, entry: ConfigEntry) -> ConfigEntry:
        """Return the entry as this text's version of the format spells it."""
        del text
        return entry

    def _place(self, tree: Tree, name: str) -> tuple[str, ...]:
        """Return the keys that lead to the entry with this name."""
        del tree
        return (*self.path, name)

    def _checked(self, old: str, new: str, name: str, entry: Value | None, keep: Tree) -> str:
        """Return `new` if it differs from `old` only in this entry. Otherwise raise `CannotEdit`."""
        wanted, made = self.tree(old), self.tree(new)
        place = self._place(wanted, name)
        if entry is not None and self.entries(new).get(name) == entry:
            entry = _found(made, place)  # Its numbers are spelled as in the rest of the exact tree.
        _change(wanted, place, entry, keep)
        lost = set(_OWN_LINE.findall(old)) - set(_OWN_LINE.findall(new))
        try:
            new.encode()
        except UnicodeEncodeError:
            lost = {"half a character"}
        if made != wanted or lost:
            raise CannotEdit("The entry cannot be changed without changing other content.")
        return new


@frozen
class JsonFormat(Format):
    """JSON with entries.

    If `embedded` is given, it is the key of a string that contains the JSON with the entries.
    """

    embedded: str = ""
    is_json5: bool = False

    def tree(self, text: str, exact: bool = True) -> dict[str, Any]:
        try:
            return self._read(text, exact)
        except InvalidText as error:
            bare = _TRAILING.sub(_kept, _COMMENT.sub(_kept, text))
            try:
                return self._read(bare, exact)
            except InvalidText:
                raise (HasComments() if self.is_json5 else error) from None

    def edit(self, text: str, name: str, entry: Value | None, keep: Tree = _NOTHING) -> str:
        try:
            tree = self._read(text, exact=False)
        except InvalidText:
            self.tree(text)
            raise HasComments from None
        _change(tree, self._place(tree, name), entry, keep)
        if self.embedded:
            inner = _load(text, exact=False).get(self.embedded, "")
            tree[self.embedded] = _dump(tree[self.embedded], inner).removesuffix("\n")
        return self._checked(text, _dump(tree, text), name, entry, keep)

    def _read(self, text: str, exact: bool) -> dict[str, Any]:
        tree = _load(text, exact)
        if self.embedded:
            tree[self.embedded] = _load(tree.get(self.embedded, ""), exact)
        return tree


class OpencodeFormat(JsonFormat):
    """Entries of opencode, which are under `mcp` in version 1 and under `mcp.servers` in version 2.

    New entries have the format of version 1, because version 2 can read it too
    (https://opencode.ai/docs/migrate-v1/). Version 2 drops `codemode` from such an entry, so the key is only
    written under `mcp.servers` (opencode.ai/docs/mcp-servers, September 2026).
    """

    def entries(self, text: str) -> ConfigEntry:
        tree = self.tree(text, exact=False)
        found, newer = _servers(tree, self.path), self._newer(tree)
        return found if newer is None else {key: found[key] for key in found if key != "servers"} | newer

    def written(self, text: str, entry: ConfigEntry) -> ConfigEntry:
        left_out = "codemode" if self._newer(self.tree(text)) is None else "enabled"
        return {key: value for key, value in entry.items() if key != left_out}

    def _place(self, tree: Tree, name: str) -> tuple[str, ...]:
        newer = self._newer(tree)
        is_newer = newer is not None and (name in newer or name not in _servers(tree, self.path))
        return (*self.path, "servers", name) if is_newer else (*self.path, name)

    def _newer(self, tree: Tree) -> dict[str, Any] | None:
        servers = _servers(tree, self.path).get("servers")
        return servers if isinstance(servers, dict) and not isinstance(servers.get("type"), str) else None


class TomlFormat(Format):
    """Entries as TOML tables. A new table is added at the end, and no other bytes change."""

    def tree(self, text: str, exact: bool = True) -> dict[str, Any]:
        try:
            return tomllib.loads(text, parse_float=str if exact else float)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InvalidText(str(error)) from error

    def edit(self, text: str, name: str, entry: Value | None, keep: Tree = _NOTHING) -> str:
        del keep  # `keep` is not needed, because the table headers show which objects existed.
        found = self.entries(text).get(name)
        piece = self._piece(text, name, found or entry or {})
        if found is None:
            new = text + piece
        elif entry is None and text.count(piece) == 1:
            new = text.replace(piece, "")
        else:
            new = self._edited(text, name, entry)
        try:
            return self._checked(text, new, name, entry, self.tree(new))
        except InvalidText as error:
            raise CannotEdit(f"A table cannot be added to the file: {error}.") from error

    def _piece(self, text: str, name: str, entry: Value) -> str:
        """Return the text of a new table, including the line breaks before the table."""
        table, document = _item(entry), tomlkit.document()
        for key in reversed((*self.path[1:], name)):
            outer = tomlkit.table(is_super_table=True)
            outer[key] = table
            table = outer
        document[self.path[0]] = table
        begin = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        piece = begin + document.as_string()
        return piece.replace("\n", "\r\n") if "\r\n" in text else piece

    def _edited(self, text: str, name: str, entry: Value | None) -> str:
        try:
            tree = tomlkit.parse(text)
            _change(tree, self._place(tree, name), None if entry is None else _item(entry), tree)
            new: str = tree.as_string()
        except (TOMLKitError, ValueError, RecursionError) as error:
            raise CannotEdit(f"The tables of the file cannot be edited: {error}.") from error
        return new


def rewrite_json(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    """Return the text after `change` has changed its tree. Raises `CannotEdit`."""
    try:
        tree = _load(text, exact=False)
    except InvalidText:
        JsonFormat(()).tree(text)
        raise HasComments from None
    change(tree)
    new, wanted = _dump(tree, text), _load(text, exact=True)
    change(wanted)
    # Numbers must keep their spelling, and those of `change` are compared in their spelling too.
    if _load(new, exact=True) != _load(json.dumps(wanted), exact=True) or not _is_utf8(new):
        raise CannotEdit("The hooks cannot be changed without changing other content.")
    return new


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_bare(tree: object) -> bool:
    """Return whether the tree contains nothing but empty objects."""
    return isinstance(tree, dict) and all(map(is_bare, tree.values()))


def _kept(found: re.Match[str]) -> str:
    return found[1] or ""


def _item(value: Value) -> Any:
    return tomlkit.item(dict(value) if isinstance(value, Mapping) else value)


def _servers(tree: Tree, path: Iterable[str]) -> dict[str, Any]:
    found = _found(tree, path)
    return found if isinstance(found, dict) else {}


def _found(tree: Tree, path: Iterable[str]) -> Any:
    found: Any = tree
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _change(tree: Any, path: tuple[str, ...], entry: Value | None, keep: Tree) -> None:
    """Set the entry at a path of the tree.

    If `entry` is None, delete the entry at the path. Objects that become empty are deleted too, unless they
    are in `keep`.
    """
    key, *rest = path
    if not rest:
        if entry is None:
            del tree[key]
        else:
            tree[key] = entry
        return
    if not isinstance(tree.setdefault(key, {}), dict):
        raise CannotEdit(f"`{key}` is not an object in the file.")
    inner = keep.get(key)
    _change(tree[key], tuple(rest), entry, inner if isinstance(inner, dict) else {})
    if not tree[key] and key not in keep:
        del tree[key]


def _load(text: str, exact: bool) -> dict[str, Any]:
    """Return the object in a JSON text. If `exact` is set, numbers are returned as they are spelled."""
    number = str if exact else None
    if not isinstance(text, str):
        raise CannotEdit("The value that contains the servers is not a string.")
    body = text if text.strip() else "{}"
    try:
        tree = json.loads(body, object_pairs_hook=_unique, parse_int=number, parse_float=number)
    except json.JSONDecodeError as error:
        raise InvalidText(f"{error.msg} (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # A number has too many digits, or the nesting is too deep.
        raise InvalidText(str(error)) from error
    if not isinstance(tree, dict):
        raise CannotEdit("The settings are not an object.")
    return tree


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CannotEdit(f"The key {twice!r} occurs twice, and clients may read either one.")
    return tree


def _dump(tree: Tree, old: str) -> str:
    """Return the tree as JSON with the indentation, line ends and escaped characters of the old text."""
    core = old.strip()
    start, end = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    indent, is_ascii = _INDENT.search(core), old.isascii() and "\\u" in old
    if "\n" not in core and core not in ("", "{}"):
        new = json.dumps(tree, ensure_ascii=is_ascii, separators=None if ": " in core else (",", ":"))
    else:
        new = json.dumps(tree, ensure_ascii=is_ascii, indent=indent[1] if indent else 2)
    new = new.replace("\n", "\r\n") if "\r\n" in old else new
    return start + new + end if core else new + "\n"
