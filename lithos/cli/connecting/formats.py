"""The formats of configuration files: where entries are in a text, and how one is put in and taken out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from attrs import frozen

from lithos.core.editing import json_edit, toml_edit
from lithos.core.editing.json_edit import CannotEdit, Insertion
from lithos.core.editing.json_text import read_json


class Edits(NamedTuple):
    """What edits a kind of text: functions of the text, of where the entry is, and of the entry."""

    insert: Callable[..., Insertion]
    remove: Callable[..., str]
    is_same_but: Callable[..., bool]


@frozen
class Format(ABC):
    """Reads and edits the text of one client: entries under a path of keys.

    `kind` is the dialect of JSON, or the key whose string holds it; "" where there is nothing to say.
    All raise `InvalidText` and `CannotEdit`.
    """

    edits: ClassVar[Edits]
    kind: Any
    path: tuple[str, ...]

    @abstractmethod
    def entries(self, text: str) -> Mapping[str, Any]:
        """The entries of all servers by name."""

    @abstractmethod
    def tree(self, text: str) -> Any:
        """All that the text holds."""

    def insert(self, text: str, name: str, entry: Mapping[str, Any]) -> Insertion:
        """How to put in an entry that is not there."""
        return self.edits.insert(text, *self._place(text, name), entry)

    def remove(self, text: str, name: str) -> str:
        """The text without an entry that is there."""
        return self.edits.remove(text, *self._place(text, name))

    def is_same_but(self, old: str, new: str, name: str, parents: int = 0) -> bool:
        """Whether `new` is `old` with this entry more, and as many objects around it at most."""
        return self.edits.is_same_but(old, new, *self._place(old, name), parents)

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry as this text's version of the format has it."""
        del text
        return entry

    def _place(self, text: str, name: str) -> tuple[Any, ...]:
        """Where the entry is, or would be, in this text."""
        del text
        path = (*self.path, name)
        return (self.kind, path) if self.kind else (path,)


class JsonFormat(Format):
    """Entries in a dialect of JSON."""

    edits = Edits(json_edit.insert_entry, json_edit.remove_entry, json_edit.is_same_but)

    def entries(self, text: str) -> Mapping[str, Any]:
        found = json_edit.find_entry(text, self.kind, self.path)
        if found is None or found.kind != "object":
            return {}
        names = [member.key for member in found.members]
        if len(names) > len(set(names)):
            twice = next(name for name in names if names.count(name) > 1)
            raise CannotEdit(f"The entry {twice!r} is there twice, and clients may read either one.")
        return dict(found.plain())

    def tree(self, text: str) -> Any:
        found = read_json(text, self.kind)
        return None if found is None else found.plain()


_SECOND: Final = JsonFormat("jsonc", ("mcp", "servers"))


class OpencodeFormat(JsonFormat):
    """opencode 1 has its servers under `mcp`, opencode 2 under `mcp.servers`, where it is written so.

    The second reads the first's as well (https://opencode.ai/docs/migrate-v1/), so that is what new ones are.
    """

    def entries(self, text: str) -> Mapping[str, Any]:
        found = super().entries(text)
        if not self._is_second(text):
            return found
        older = {name: entry for name, entry in found.items() if name != "servers"}
        return {**older, **_SECOND.entries(text)}

    def remove(self, text: str, name: str) -> str:
        second = self._is_second(text) and name in _SECOND.entries(text)
        return json_edit.remove_entry(text, self.kind, (*(_SECOND.path if second else self.path), name))

    def written(self, text: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._is_second(text):
            return entry
        return {key: value for key, value in entry.items() if key != "enabled"}

    def _place(self, text: str, name: str) -> tuple[Any, ...]:
        return (self.kind, (*(_SECOND.path if self._is_second(text) else self.path), name))

    def _is_second(self, text: str) -> bool:
        servers = super().entries(text).get("servers")
        return isinstance(servers, dict) and not isinstance(servers.get("type"), str)


class TomlFormat(Format):
    """Entries as tables."""

    edits = Edits(toml_edit.insert_table, toml_edit.remove_table, toml_edit.is_same_table_but)

    def entries(self, text: str) -> Mapping[str, Any]:
        found = toml_edit.find_table(text, self.path)
        return found if isinstance(found, dict) else {}

    def tree(self, text: str) -> Any:
        return toml_edit.read_toml(text)


class EmbeddedFormat(Format):
    """Entries of a JSON document that is the string of a key."""

    edits = Edits(json_edit.insert_embedded, json_edit.remove_embedded, json_edit.is_same_embedded_but)

    def entries(self, text: str) -> Mapping[str, Any]:
        found = json_edit.find_embedded(text, self.kind, self.path)
        return found.plain() if found is not None and found.kind == "object" else {}

    def tree(self, text: str) -> Any:
        inner = JsonFormat("json", ()).tree(json_edit.read_embedded(text, self.kind))
        return {**(JsonFormat("json", ()).tree(text) or {}), self.kind: inner}
