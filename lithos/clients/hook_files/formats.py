"""Files with hooks, in JSON and TOML: functions that find, add and remove the hooks of Lithos in a text.

Other hooks in the same file are never changed. See docs/spec/integration.md §2.2.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, frozen

from lithos.clients.connect.formats import (
    CannotEdit,
    InvalidText,
    JsonFormat,
    TomlFormat,
    rewrite_json,
)
from lithos.clients.hooks.entries import Hooks

#: Function that returns whether Lithos wrote a hook.
IsOurs = Callable[[object], bool]
#: Depth to which the keys of a backup are compared with the current file: `hooks`, the event, and one more.
_KEY_DEPTH: Final = 3


@frozen
class HookFormat(ABC):
    """Base class of the formats. Methods raise `CannotEdit`."""

    @abstractmethod
    def found(self, text: str, is_ours: IsOurs) -> Hooks:
        """Return the hooks of Lithos in the text."""

    @abstractmethod
    def added(self, text: str, hooks: Hooks) -> str:
        """Return the text with these hooks after all others."""

    @abstractmethod
    def removed(self, text: str, is_ours: IsOurs, before: str) -> str:
        """Return the text without the hooks of Lithos.

        Lists and objects that become empty are removed too, unless they are in `before`.
        """

    @abstractmethod
    def is_bare(self, text: str) -> bool:
        """Return whether the text contains no settings."""

    @abstractmethod
    def covers(self, new: str, old: str) -> bool:
        """Return whether `new` has all settings of `old`."""


@frozen
class JsonHooks(HookFormat):
    """Hooks under the key `hooks` of a JSON file. A new file also has the keys `head`."""

    head: Mapping[str, Any] = field(factory=dict)

    def found(self, text: str, is_ours: IsOurs) -> Hooks:
        return _split(JsonFormat(()).tree(text, exact=False), is_ours)[0]

    def added(self, text: str, hooks: Hooks) -> str:
        def add(tree: dict[str, Any]) -> None:
            for key, value in self.head.items():
                tree.setdefault(key, value)
            events = tree.setdefault("hooks", {})
            for event, entries in hooks.items():
                if not isinstance(events, dict) or not isinstance(events.setdefault(event, []), list):
                    raise CannotEdit(f"`hooks.{event}` does not have the form that the client documents.")
                events[event] += entries

        return rewrite_json(text, add)

    def removed(self, text: str, is_ours: IsOurs, before: str) -> str:
        kept = JsonFormat(()).tree(before)

        def remove(tree: dict[str, Any]) -> None:
            ours, left = _split(tree, is_ours)
            known = kept.get("hooks")
            gone = ours.keys() - (known or {}).keys()
            events = {event: rows for event, rows in left.items() if rows or event not in gone}
            tree["hooks"] = events
            if not events and known is None:
                del tree["hooks"]
            if not tree.keys() - self.head.keys() and not kept:
                tree.clear()

        return rewrite_json(text, remove)

    def is_bare(self, text: str) -> bool:
        return not JsonFormat(()).tree(text)

    def covers(self, new: str, old: str) -> bool:
        form = JsonFormat(())
        return _keys(form.tree(old)) <= _keys(form.tree(new))


@frozen
class TomlHooks(HookFormat):
    """Hooks as TOML tables. New tables are added at the end, and no other bytes change."""

    def found(self, text: str, is_ours: IsOurs) -> Hooks:
        return _split(TomlFormat(()).tree(text, exact=False), is_ours)[0]

    def added(self, text: str, hooks: Hooks) -> str:
        begin = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        new = text + _in_lines_of(text, begin + _tables(hooks))
        try:
            self.found(new, lambda hook: False)
        except InvalidText as error:
            raise CannotEdit(f"The tables cannot be added to the file: {error}.") from error
        return new

    def removed(self, text: str, is_ours: IsOurs, before: str) -> str:
        del before  # Tables are removed whole, so nothing empty remains.
        left, refusal = text, "The tables of Lithos were changed, so only a person can remove them."
        for event, entries in self.found(text, is_ours).items():
            for entry in entries:
                piece = _in_lines_of(text, _tables({event: [entry]}))
                if left.count(piece) != 1:
                    raise CannotEdit(refusal)
                begin, _, end = left.partition(piece)
                left = begin.removesuffix("\r\n" if "\r\n" in text else "\n") + end
        form = TomlFormat(())
        # A hook of another program may be in a group of Lithos.
        if _others(form.tree(left), is_ours) != _others(form.tree(text), is_ours):
            raise CannotEdit(refusal)
        return left

    def is_bare(self, text: str) -> bool:
        return not text.strip()

    def covers(self, new: str, old: str) -> bool:
        return set(old.split()) <= set(new.split())


def _tables(hooks: Hooks) -> str:
    """Return TOML tables, with an empty line between two of them. JSON strings are TOML strings too."""
    lines = []
    for event, entries in hooks.items():
        for entry in entries:
            lines += [f"[[hooks.{event}]]", *_values(entry)]
            for hook in entry["hooks"]:
                lines += ["", f"[[hooks.{event}.hooks]]", *_values(hook)]
            lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _values(table: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in table.items()
        if not isinstance(value, list)
    ]


def _in_lines_of(text: str, piece: str) -> str:
    return piece.replace("\n", "\r\n") if "\r\n" in text else piece


def _split(tree: Mapping[str, Any], is_ours: IsOurs) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the hooks of Lithos by event, and all other hooks by event."""
    events = tree.get("hooks", {})
    if not isinstance(events, Mapping):
        raise CannotEdit("`hooks` is not an object in the file.")
    ours: dict[str, list[Any]] = {}
    others: dict[str, Any] = {}
    for event, entries in events.items():
        if not isinstance(entries, list):
            others[event] = entries
            continue
        parts = [_split_entry(entry, is_ours) for entry in entries]
        if mine := [part for own, _ in parts for part in own]:
            ours[event] = mine
        others[event] = [part for _, other in parts for part in other]
    return ours, others


def _others(tree: dict[str, Any], is_ours: IsOurs) -> dict[str, Any]:
    """Return the tree without the hooks of Lithos and without empty events."""
    events = {event: rows for event, rows in _split(tree, is_ours)[1].items() if rows}
    return {key: value for key, value in tree.items() if key != "hooks"} | {"hooks": events}


def _split_entry(entry: Any, is_ours: IsOurs) -> tuple[list[Any], list[Any]]:
    """Return the part of an entry that Lithos wrote, and the other part, each as a list of at most one item.

    A group may have both parts.
    """
    hooks = entry.get("hooks") if isinstance(entry, Mapping) else None
    if not isinstance(hooks, list):
        return ([entry], []) if is_ours(entry) else ([], [entry])
    mine = [hook for hook in hooks if is_ours(hook)]
    if not mine:
        return [], [entry]
    rest = [hook for hook in hooks if not is_ours(hook)]
    return [{**entry, "hooks": mine}], [{**entry, "hooks": rest}] if rest else []


def _keys(tree: object, depth: int = _KEY_DEPTH) -> set[tuple[str, ...]]:
    """Return the paths of all keys in a tree down to `depth`."""
    if not depth or not isinstance(tree, Mapping):
        return {()}
    return {()} | {(key, *rest) for key, value in tree.items() for rest in _keys(value, depth - 1)}
