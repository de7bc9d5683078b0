"""The formats of configuration files: where entries are in a text, and how one is put in and taken out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from attrs import frozen

from lithos.core.editing.json_edit import (
    CannotEdit,
    Insertion,
    find_embedded,
    find_entry,
    insert_embedded,
    insert_entry,
    is_same_but,
    is_same_embedded_but,
    read_embedded,
    remove_embedded,
    remove_entry,
)
from lithos.core.editing.json_text import Dialect, read_json
from lithos.core.editing.toml_edit import (
    find_table,
    insert_table,
    is_same_table_but,
    read_toml,
    remove_table,
)


class Format(Protocol):
    """Reads and edits the text of one client. All raise `InvalidText` and `CannotEdit`."""

    def entries(self, text: str) -> Mapping[str, Any]:
        """The entries of all servers by name."""
        ...

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        """How to put in an entry that is not there."""
        ...

    def remove(self, text: str, name: str) -> str:
        """The text without an entry that is there."""
        ...

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        """Whether `new` is `old` with this entry more, and as many objects around it at most."""
        ...

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry as this text's version of the format has it."""
        ...

    def tree(self, text: str) -> Any:
        """All that the text holds."""
        ...


@frozen
class JsonFormat:
    """Entries under a path of keys."""

    dialect: Dialect
    path: tuple[str, ...]

    def entries(self, text: str) -> Mapping[str, Any]:
        found = find_entry(text, self.dialect, self.path)
        if found is None or found.kind != "object":
            return {}
        names = [member.key for member in found.members]
        if len(names) > len(set(names)):
            twice = next(name for name in names if names.count(name) > 1)
            raise CannotEdit(f"The entry {twice!r} is there twice, and clients may read either one.")
        return dict(found.plain())

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        return insert_entry(text, self.dialect, (*self.path, name), entry)

    def remove(self, text: str, name: str) -> str:
        return remove_entry(text, self.dialect, (*self.path, name))

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        return is_same_but(old, new, self.dialect, (*self.path, name), parents)

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        del text
        return entry

    def tree(self, text: str) -> Any:
        found = read_json(text, self.dialect)
        return None if found is None else found.plain()


_V1: Final = JsonFormat("jsonc", ("mcp",))
_V2: Final = JsonFormat("jsonc", ("mcp", "servers"))


@frozen
class OpencodeFormat:
    """opencode 1 has its servers under `mcp`, opencode 2 under `mcp.servers`, where it is written so.

    The second reads the first's as well (https://opencode.ai/docs/migrate-v1/), so that is what new ones are.
    """

    def entries(self, text: str) -> Mapping[str, Any]:
        found = _V1.entries(text)
        if not _is_second(found):
            return found
        older = {name: entry for name, entry in found.items() if name != "servers"}
        return {**older, **_V2.entries(text)}

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        return self._of(text).insert(text, name, entry)

    def remove(self, text: str, name: str) -> str:
        second = _V2 if _is_second(_V1.entries(text)) and name in _V2.entries(text) else _V1
        return second.remove(text, name)

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        return self._of(old).is_same_but(old, new, name, parents)

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._of(text) is _V1:
            return entry
        return {key: value for key, value in entry.items() if key != "enabled"}

    def tree(self, text: str) -> Any:
        return _V1.tree(text)

    def _of(self, text: str) -> JsonFormat:
        return _V2 if _is_second(_V1.entries(text)) else _V1


def _is_second(mcp: Mapping[str, Any]) -> bool:
    servers = mcp.get("servers")
    return isinstance(servers, dict) and not isinstance(servers.get("type"), str)


@frozen
class TomlFormat:
    """Tables under a path of keys."""

    path: tuple[str, ...]

    def entries(self, text: str) -> Mapping[str, Any]:
        found = find_table(text, self.path)
        return found if isinstance(found, dict) else {}

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        return insert_table(text, (*self.path, name), entry)

    def remove(self, text: str, name: str) -> str:
        return remove_table(text, (*self.path, name))

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        return is_same_table_but(old, new, (*self.path, name), parents)

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        del text
        return entry

    def tree(self, text: str) -> Any:
        return read_toml(text)


@frozen
class EmbeddedFormat:
    """Entries under a path of a JSON document that is the string of a key."""

    key: str
    path: tuple[str, ...]

    def entries(self, text: str) -> Mapping[str, Any]:
        found = find_embedded(text, self.key, self.path)
        return found.plain() if found is not None and found.kind == "object" else {}

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        return insert_embedded(text, self.key, (*self.path, name), entry)

    def remove(self, text: str, name: str) -> str:
        return remove_embedded(text, self.key, (*self.path, name))

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        return is_same_embedded_but(old, new, self.key, (*self.path, name), parents)

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        del text
        return entry

    def tree(self, text: str) -> Any:
        inner = JsonFormat("json", self.path).tree(read_embedded(text, self.key))
        return {**(JsonFormat("json", ()).tree(text) or {}), self.key: inner}
